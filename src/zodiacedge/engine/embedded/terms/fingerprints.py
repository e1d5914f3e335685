"""Fingerprints: hashes of a term's kind and text or value that are the same in every process.

Dense ids are assigned in insertion order, so they differ between processes. Where several processes work on
one set of facts, fingerprints identify terms; code that merges terms must check for collisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zodiacedge.engine.embedded.kernels import layout as L
from zodiacedge.engine.embedded.kernels.hashing import mix
from zodiacedge.engine.embedded.kernels.jit import MEMORY, kernel, load8
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put
from zodiacedge.engine.embedded.terms.intern_kernels import hash_number
from zodiacedge.engine.embedded.terms.shared_texts import hash_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zodiacedge.engine.embedded.terms.dictionary import Dictionary

MOST_BITS = 63
# A hash starts from the kind, in the lowest bits, and the seed, above them. They are mixed before the first
# word: small numbers combined by XOR alone would cancel each other.
_KIND_BITS = 4
_FIRST = 0x2545F4914F6CDD1D
_LAST = 0x5BD1E995


@kernel
def fingerprint_terms(dictionary: int, first: int, total: int, seed: int, bits: int, out: int) -> None:
    """Write the fingerprints of terms with consecutive ids."""
    kinds = get(dictionary, L.D_KINDS)
    payloads = get(dictionary, L.D_PAYLOADS)
    for n in range(total):
        number = first + n
        kind = load8(kinds, number)
        payload = get(payloads, number)
        start = mix(_FIRST, kind + (seed << _KIND_BITS))
        if kind == L.K_FREE:
            hashed = start
        elif kind > L.K_OTHER:
            hashed = hash_number(start, payload)
        else:
            hashed = hash_text(dictionary, number, start)
        hashed = mix(mix(hashed, _LAST), hashed >> 32)
        put(out, n, hashed >> (MOST_BITS - bits))


def fingerprints(
    dictionary: Dictionary, first: int = 0, *, seed: int = 0, bits: int = MOST_BITS
) -> NDArray[np.int64]:
    """Return the fingerprints of all terms from an id on.

    Args:
        dictionary: The terms.
        first: The first id.
        seed: Another seed gives other fingerprints.
        bits: Bits of a fingerprint; tests use few, to provoke collisions.
    """
    hashes = np.empty(max(len(dictionary) - first, 0), np.int64)
    if len(hashes):
        fingerprint_terms(dictionary.address, first, len(hashes), seed, bits, MEMORY.address(hashes))
    return hashes
