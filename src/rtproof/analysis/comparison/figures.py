# SPDX-License-Identifier: Apache-2.0
"""What comparison and history look at of one run: a few numbers in logarithms, and the facts beside them.

Latencies of two systems differ by factors, and so do those of two runs of one system, so means and deviations are of
natural logarithms.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from rtproof.analysis.cokernels import LINUX
from rtproof.analysis.comparison.blocks import NO_BLOCKS, Blocks, blocks_of
from rtproof.analysis.comparison.facts import BESIDE, facts_of
from rtproof.analysis.counts import Counts
from rtproof.analysis.crossing import sample
from rtproof.analysis.model import Analysis, Severity
from rtproof.analysis.views import of_view
from rtproof.record import Seconds, View

QUANTILES = (0.5, 0.99, 0.999)
UNCOUNTED = "how many values lie beyond the scale of the histogram is not told, so every figure may be too small"
VIEWS = {View.OBSERVED: "observed", View.CHARGED: "schedule"}


@dataclass(frozen=True)
class Reading:
    """One number of one run in logarithms, and between what its bin leaves it; or ``why`` there is none."""

    ln: float | None
    ln_low: float | None = None
    ln_high: float | None = None
    why: str = ""


@dataclass(frozen=True)
class RunFigures:
    """One run. counts: values of all threads in one view; overflow: how many were beyond the scale, of unknown size.

    seconds: None where the file has no order of time. started_ns, booted_ns: of the wall clock since 1970, None if
    unknown; the second is that of the kernel, good to a few seconds. invalid: why the run did not measure what was
    asked; a run that has such reasons is not compared. effective: how many independent values the run is worth by the
    correlation of neighbours. missed, lost: None where the file does not count them. unclear: sentences on what else it
    does not tell.
    """

    name: str
    facts: Mapping[str, str]
    counts: Counts
    largest: int | None = None
    unit: str = "ns"
    overflow: int = 0
    seconds: Seconds | None = None
    span_ns: int | None = None
    missed: int | None = 0
    lost: int | None = 0
    effective: float | None = None
    run_id: str = ""
    started_ns: int | None = None
    booted_ns: int | None = None
    invalid: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    blocks: Blocks = field(default=NO_BLOCKS, repr=False)

    @property
    def core(self) -> str | None:
        """The co-kernel that ran beside the measured Linux; None where none was found."""
        name = self.facts.get(BESIDE)
        return None if name == LINUX else name

    @property
    def n(self) -> int:
        """All values, also those beyond the scale."""
        return self.counts.total + self.overflow

    def quantile(self, p: float) -> Reading:
        """The natural logarithm of the value that a share p does not exceed, by nearest rank; upper end of its bin.

        There is none where fewer than one of n values is expected above it.
        """
        share = Fraction(repr(p))
        if self.n * (1 - share) < 1:
            return Reading(None, why=f"{self.n:,} values do not reach to {100 * p:g} %")
        rank = math.ceil(self.n * share)
        if rank > self.counts.total:
            return Reading(None, why=f"{100 * p:g} % lies beyond the scale of the histogram")
        low, high = self.counts.value_at_rank(rank)
        return self._read(low, high if self.largest is None else min(high, self.largest))

    def _read(self, low: int, high: int) -> Reading:
        if low <= 0:
            why = f"the value at that rank is {high:,} {self.unit}" if high <= 0 else f"its bin ends at {low:,}"
            return Reading(None, why=f"{why}, and only what is above 0 has a ratio")
        return Reading(math.log(high), math.log(low), math.log(high))

    @property
    def second_maxima(self) -> Reading:
        """Mean of the logarithms of the largest value of each second in which an activation ran."""
        if self.seconds is None:
            return Reading(None, why="the file has no order of time, so there are no maxima of seconds")
        largest = self.seconds.max[self.seconds.obtained > 0]
        if not largest.size:
            return Reading(None, why="nothing ran")
        if int(largest.min()) <= 0:
            return Reading(None, why="the maximum of a second is not above 0, and only what is has a ratio")
        mean = float(np.log(largest).mean())
        return Reading(mean, mean, mean)

    def above(self, level: int) -> tuple[int, int]:
        """How many values are larger than a level, at least and at most; unequal where a bin holds the level."""
        least, most = self.counts.exceedances(level)
        return least + self.overflow, most + self.overflow

    def share_above(self, level: int) -> Reading:
        """Logarithm of the share of values above a level. Half a value is added, so that none has a logarithm too.

        (k + 1/2) / (n + 1) is the usual estimate that is finite for k = 0 and whose logarithm is nearly unbiased.
        """
        if not self.n:
            return Reading(None, why="nothing ran")
        ends = [math.log((k + 0.5) / (self.n + 1)) for k in self.above(level)]
        return Reading((ends[0] + ends[1]) / 2, ends[0], ends[1])


def figures_of(analysis: Analysis, name: str = "", view: View = View.OBSERVED, *, blocks: bool = False) -> RunFigures:
    """The figures of a run, of the field that a limit judges. name: by default the path of its record.

    view: CHARGED for the schedule, in which missed activations stand with their lateness. blocks: also the parts of
    the run that the shift function of one run against another needs.
    """
    record, pooled = analysis.record, analysis.pooled
    counts, ends = of_view(pooled, view)
    begin = record.begin
    realtime, monotonic = begin.origin_realtime_ns, begin.origin_monotonic_ns
    return RunFigures(
        name=name or record.path,
        facts={**facts_of(record), "view": VIEWS[view]},
        counts=counts,
        largest=ends.max if ends.count else None,
        unit=pooled.series.unit,
        seconds=pooled.seconds,
        span_ns=pooled.span_ns,
        missed=pooled.never_ran,
        lost=pooled.lost,
        effective=sample(pooled).effective,
        run_id=begin.run_id.hex() if any(begin.run_id) else "",
        started_ns=realtime or None,
        booted_ns=realtime - monotonic if realtime and monotonic else None,
        invalid=tuple(doubt.what for doubt in analysis.doubts if doubt.severity is Severity.INVALID),
        blocks=blocks_of(record, view) if blocks else NO_BLOCKS,
    )


def figures_of_histogram(
    name: str, counts: Counts, facts: Mapping[str, str], overflow: int | None = 0, largest: int | None = None
) -> RunFigures:
    """The figures of a histogram without order of time, such as another tool prints.

    overflow: values beyond its scale, None where it does not count them: then all its figures may be too small, which
    is told. largest: where the tool says so beside the histogram. facts: as far as they are known, with the keys of
    ``facts``.
    """
    return RunFigures(
        name,
        {"view": "observed", **facts},
        counts,
        None if overflow else largest,
        overflow=overflow or 0,
        missed=None,
        lost=None,
        effective=float(counts.total),
        unclear=(UNCOUNTED,) if overflow is None else (),
    )
