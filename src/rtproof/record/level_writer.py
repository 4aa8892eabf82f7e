# SPDX-License-Identifier: Apache-2.0
"""Writes what is above the levels of a series as an agent does, from activations in order."""

from rtproof.record import Series, levels
from rtproof.record.slicing import Activations
from rtproof.record.writer import RecordWriter

LISTED_AT_ONCE = 256


class LevelWriter:
    """Takes the activations of one checkpoint after the other; LEVEL of the limits is written at once.

    limits_ns: the user's; None for a field before the last, which has no learned levels either. learns: whether the
    activations are all that there are, so that levels can be learned from them.
    """

    def __init__(
        self, writer: RecordWriter, series: Series, limits_ns: tuple[int, ...] | None, *, learns: bool = True
    ) -> None:
        self._writer = writer
        self._series = series
        self._limits = levels.limits(series, limits_ns or ())
        self._levels = list(self._limits)
        self._listed = [0] * len(self._limits)
        self._learner = levels.Learner(series.first_due_ns + levels.LEARN_NS, done=limits_ns is None or not learns)
        for level in self._limits:
            writer.level(series.id, level)

    def add(self, some: Activations) -> None:
        """Write what there is to tell of these."""
        for level in self._learner.learn(some, len(self._levels)):
            self._levels.append(level)
            self._writer.level(self._series.id, level)
        counts = levels.above(self._series, some, self._levels)
        if counts.second.size:
            self._writer.above(self._series.id, counts)
        listed = levels.exceeding(some, self._limits, self._listed)
        for start in range(0, listed.value.size, LISTED_AT_ONCE):
            self._writer.exceeded(self._series.id, listed.part(start, start + LISTED_AT_ONCE))
