"""The total order of terms on ids: numbers by value, texts by their bytes, each kind by columns.

It is the order of `zodiacedge.terms.order_key`. UTF-8 sorts as code points do. Strings with a tag and
literals without a value are compared as terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.terms import order_key

if TYPE_CHECKING:
    from zodiacedge.engine.embedded.terms.dictionary import Dictionary
    from zodiacedge.engine.embedded.types import Ids

_NUMBERS = (L.K_INTEGER, L.K_DECIMAL, L.K_DOUBLE, L.K_FLOAT)
# Kinds that follow each other in the order.
_GROUPS = (
    _NUMBERS,
    (L.K_MOMENT,),
    (L.K_DATE,),
    (L.K_DURATION,),
    (L.K_STRING,),
    (L.K_TAGGED,),
    (L.K_OTHER,),
    (L.K_BOOLEAN,),
    (L.K_IRI,),
    (L.K_BLANK,),
)
# Numbers of equal value are ordered by the names of their datatypes.
_TIES = {L.K_DECIMAL: 0, L.K_DOUBLE: 1, L.K_FLOAT: 2, L.K_INTEGER: 3}
# Integers up to here are doubles too.
_EXACT = 1 << 53


def in_order(dictionary: Dictionary, ids: Ids) -> Ids:
    """Return distinct ids in the total order of their terms."""
    kinds = dictionary.kinds[ids]
    present = set(np.unique(kinds).tolist())
    parts = [
        _group_in_order(dictionary, group, ids[np.isin(kinds, group)])
        for group in _GROUPS
        if not present.isdisjoint(group)
    ]
    return np.concatenate(parts) if parts else ids


def _group_in_order(dictionary: Dictionary, group: tuple[int, ...], ids: Ids) -> Ids:
    kind = group[0]
    if group == _NUMBERS:
        return _numbers_in_order(dictionary, ids)
    if kind > L.K_OTHER:
        return np.asarray(ids[np.argsort(dictionary.payloads[ids], kind="stable")])
    if kind in {L.K_TAGGED, L.K_OTHER}:
        return _terms_in_order(dictionary, ids)
    ends, text = dictionary.texts(ids)
    texts = pa.BinaryArray.from_buffers(pa.binary(), len(ids), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    return np.asarray(ids[pc.array_sort_indices(texts).to_numpy()])


def _numbers_in_order(dictionary: Dictionary, ids: Ids) -> Ids:
    kinds, payloads = dictionary.kinds[ids], dictionary.payloads[ids]
    whole = kinds == L.K_INTEGER
    if whole.all():
        return np.asarray(ids[np.argsort(payloads, kind="stable")])
    if (np.abs(payloads[whole]) > _EXACT).any() or (payloads[whole] == np.iinfo(np.int64).min).any():
        return _terms_in_order(dictionary, ids)
    values = payloads.view(np.float64).copy()
    values[whole] = payloads[whole]
    if (kinds == kinds[0]).all():
        return np.asarray(ids[np.argsort(values, kind="stable")])
    ties = np.zeros(len(ids), np.int8)
    for kind, tie in _TIES.items():
        ties[kinds == kind] = tie
    return np.asarray(ids[np.lexsort((ties, values))])


def _terms_in_order(dictionary: Dictionary, ids: Ids) -> Ids:
    return np.array(sorted(ids.tolist(), key=lambda number: order_key(dictionary.decode(number))), np.int32)
