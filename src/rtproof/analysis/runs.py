# SPDX-License-Identifier: Apache-2.0
"""Cutting long arrays into pieces of bearable size."""

import numpy as np

from rtproof.record import Int64Array


def pieces(sizes: Int64Array, most: int) -> list[slice]:
    """Consecutive runs of elements whose sizes add up to about ``most`` each; an element is never cut."""
    number = np.cumsum(sizes) // most
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], sizes.size], strict=True)] if starts else []
