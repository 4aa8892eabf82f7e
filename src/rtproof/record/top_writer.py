# SPDX-License-Identifier: Apache-2.0
"""Writes the largest activations of a series as they become known."""

import numpy as np

from rtproof.record import Int64Array, Top
from rtproof.record.merge import largest
from rtproof.record.writer import RecordWriter

TOP_K = 256


class TopWriter:
    """Keeps the K largest of one series, and writes those that come to be among them."""

    def __init__(self, writer: RecordWriter, series: int) -> None:
        self._writer = writer
        self._series = series
        self._top = Top(TOP_K, *(np.zeros(0, dtype=np.int64) for _ in range(3)))

    @property
    def lacks(self) -> int:
        """How many of the K there are not yet."""
        return TOP_K - self._top.value.size

    def add(self, index: Int64Array, due_ns: Int64Array, value: Int64Array) -> None:
        """Some activations: a TOP chunk with those of the K largest so far that were not among them before."""
        before = self._top
        candidates = np.arange(value.size)
        if before.value.size == TOP_K:
            candidates = np.flatnonzero(value > before.value[-1])
        self._top = largest(
            TOP_K,
            np.concatenate((before.index, index[candidates])),
            np.concatenate((before.due_ns, due_ns[candidates])),
            np.concatenate((before.value, value[candidates])),
        )
        fresh = ~np.isin(self._top.index, before.index)
        if fresh.any():
            new = Top(TOP_K, self._top.index[fresh], self._top.due_ns[fresh], self._top.value[fresh])
            self._writer.top(self._series, new)
