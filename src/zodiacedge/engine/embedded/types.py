"""Types of the arrays that kernels and NumPy work on, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
"""Ids of terms: a column of them, or rows."""

Flags = NDArray[np.bool_]
"""A truth value per row."""

Keys = NDArray[np.int64]
"""Fingerprints of terms: a column of them, or rows."""
