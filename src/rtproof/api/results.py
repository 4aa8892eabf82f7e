# SPDX-License-Identifier: Apache-2.0
"""What a run says, as frozen data for users of the Python API.

Each class holds a part of the published JSON (docs/json-schema.md) under names that stay. Times are whole nanoseconds,
and their names end with ``_ns``. None means that the run does not tell the figure.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from rtproof.core.errors import RtproofError
from rtproof.core.notebook import html_table, number_text, time_text

__all__ = ["Distribution", "Figures", "Quantile", "Summary"]


@dataclass(frozen=True)
class Quantile:
    """The latency that a share of all activations does not exceed, by nearest rank.

    Attributes:
        share: From 0 to 1: 0.99 is the 99th percentile.
        n: The number of values.
        value_ns: The latency; None if fewer than one of n values is expected above it.
        low_ns: The lower end of its interval; None if the run does not tell it.
        high_ns: The upper end.
        confidence: Of the interval; None without one.
        beyond_scale: Whether the value lies beyond the scale of another tool's histogram.
    """

    share: float
    n: int
    value_ns: int | None
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    beyond_scale: bool = False


@dataclass(frozen=True)
class Distribution:
    """The latencies of one view: of the activations that ran, or of all that were due.

    Attributes:
        n: The number of values; None if another tool does not tell it.
        min_ns: The smallest value.
        mean_ns: The mean.
        max_ns: The largest value.
        deviation_ns: The standard deviation.
        quantiles: One for each share, ascending.
    """

    n: int | None
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    deviation_ns: float | None
    quantiles: tuple[Quantile, ...]

    def quantile(self, share: float) -> Quantile:
        """The quantile of this share. RtproofError if the summary was made without it."""
        for each in self.quantiles:
            if each.share == share:
                return each
        known = ", ".join(str(each.share) for each in self.quantiles)
        raise RtproofError(f"there is no quantile {share} here: summary(shares=[{share}]) adds it to {known or 'none'}")

    def _value_ns(self, share: float) -> int | None:
        return next((each.value_ns for each in self.quantiles if each.share == share), None)


@dataclass(frozen=True)
class Figures:
    """The numbers of one measuring thread, or of all threads together.

    Attributes:
        thread: The number of the thread; None for all threads together.
        cpu: The CPU that the thread is bound to; None if it is bound to none.
        n: Activations that ran, or of which nothing is known.
        due: Due times: those of the activations that ran and those of the missed ones.
        missed: Due times for which the thread never ran.
        lost: Activations whose latency is not known.
        exact: True: counted from samples. False: from bins, whose values are known to one part in 1024.
        observed: The latencies of the activations that ran.
        schedule: The latencies of all activations that were due: the missed ones too, each with its lateness.
            None for another tool's histogram.
        offset_ns: The constant part of the latency: the median.
        jitter_ns: How far the latencies lie apart: the 99th minus the first percentile.
        peak_to_peak_ns: The largest minus the smallest latency.
    """

    thread: int | None
    cpu: int | None
    n: int | None
    due: int | None
    missed: int | None
    lost: int | None
    exact: bool
    observed: Distribution
    schedule: Distribution | None
    offset_ns: int | None
    jitter_ns: int | None
    peak_to_peak_ns: int | None

    @property
    def min_ns(self) -> int | None:
        """The smallest latency of an activation that ran."""
        return self.observed.min_ns

    @property
    def median_ns(self) -> int | None:
        """The median of the activations that ran."""
        return self.observed._value_ns(0.5)

    @property
    def p99_ns(self) -> int | None:
        """The 99th percentile of the activations that ran."""
        return self.observed._value_ns(0.99)

    @property
    def p99_9_ns(self) -> int | None:
        """The 99.9th percentile of the activations that ran."""
        return self.observed._value_ns(0.999)

    @property
    def max_ns(self) -> int | None:
        """The largest latency of an activation that ran."""
        return self.observed.max_ns


@dataclass(frozen=True)
class Summary:
    """The numbers of a run.

    Attributes:
        pooled: All threads together.
        threads: Each thread by itself.
    """

    pooled: Figures
    threads: tuple[Figures, ...]

    def _repr_html_(self) -> str:
        head = ("thread", "n", "missed", "min", "median", "99 %", "99.9 %", "max")
        return html_table("latency of the activations that ran", head, map(_figures_row, (*self.threads, self.pooled)))


def _figures_row(one: Figures) -> tuple[str, ...]:
    name = "all" if one.thread is None else str(one.thread)
    times = (one.min_ns, one.median_ns, one.p99_ns, one.p99_9_ns, one.max_ns)
    return (name, number_text(one.n), number_text(one.missed), *map(time_text, times))


_NAMES = {
    "share_ratio": "share",
    "values_count": "n",
    "confidence_ratio": "confidence",
    "obtained_count": "n",
    "expected_count": "due",
    "missed_count": "missed",
    "lost_count": "lost",
}
"""The published keys whose attribute here has another name."""


def summary_of(analysis: dict[str, Any]) -> Summary:
    """The numbers of all threads, of the published JSON. RtproofError if the values are no times."""
    if "min_ns" not in analysis["pooled"]["observed"]:
        raise RtproofError("the values of this run are no times, so only to_json() has them")
    found = [_renamed(_flat(one)) for one in (analysis["pooled"], *analysis["threads"])]
    pooled, *threads = msgspec.convert(found, list[Figures])
    return Summary(pooled, tuple(threads))


def _flat(figures: dict[str, Any]) -> dict[str, Any]:
    """The published figures, with what stands in the objects ``spread`` and ``series`` beside the others."""
    unknown = dict.fromkeys(("thread", "cpu", "offset_ns", "jitter_ns", "peak_to_peak_ns"))
    found: dict[str, Any] = unknown | figures | (figures["spread"] or {}) | figures.get("series", {})
    return found


def _renamed(found: Any) -> Any:
    if isinstance(found, dict):
        return {_NAMES.get(key, key): _renamed(each) for key, each in found.items()}
    return [_renamed(each) for each in found] if isinstance(found, list) else found
