# SPDX-License-Identifier: Apache-2.0
"""What a cell measured: the few numbers of a comparison, the whole distribution, and the doubts about it."""

from dataclasses import dataclass
from pathlib import Path

from rtproof.analysis.analyse import analyse
from rtproof.analysis.cokernels import core_beside
from rtproof.analysis.counts import Counts
from rtproof.analysis.model import Analysis, Doubt, Severity, Summary
from rtproof.lab.cells import PREEMPTION
from rtproof.record import rundir


@dataclass(frozen=True)
class Reading:
    """Latencies of the activations that ran (min to max, counts) and of every due time (schedule_counts).

    field: which stage, of a probe that has several the deepest. preemption: what the guest's kernel said of its model,
    where it did. core: the co-kernel beside Linux; None where none was found.
    """

    count: int
    missed: int
    lost: int
    min_ns: int
    mean_ns: float
    max_ns: int
    counts: Counts
    schedule_counts: Counts
    probe: str
    field: str
    doubts: tuple[Doubt, ...]
    kernel_release: str
    kernel_version: str
    preemption: str
    core: str | None = None

    @property
    def invalid(self) -> tuple[Doubt, ...]:
        """Why this did not measure what was asked; nothing if it did."""
        return tuple(doubt for doubt in self.doubts if doubt.severity is Severity.INVALID)


def read(folder: Path) -> Reading:
    """The reading of a run folder; RecordError if it holds no value."""
    analysis = analyse(rundir.open_run(folder).record, None, 1)
    return reading(analysis, _preemption(folder / PREEMPTION))


def reading(analysis: Analysis, preemption: str = "") -> Reading:
    """The numbers of an analysis that a comparison needs."""
    summary, begin = _deepest(analysis), analysis.record.begin
    observed = summary.observed
    return Reading(
        count=observed.count,
        missed=summary.never_ran,
        lost=summary.lost,
        min_ns=observed.min,
        mean_ns=observed.mean or 0.0,
        max_ns=max(observed.max, summary.stalled_ns),
        counts=summary.observed_counts,
        schedule_counts=summary.schedule_counts,
        probe=" ".join(filter(None, (summary.series.probe, summary.series.method))),
        field=summary.series.field,
        doubts=analysis.doubts,
        kernel_release=begin.kernel_release,
        kernel_version=begin.kernel_version,
        preemption=preemption,
        core=core_beside(analysis.record),
    )


def _deepest(analysis: Analysis) -> Summary:
    """The stage that a limit judges."""
    return analysis.pooled


def _preemption(file: Path) -> str:
    """The model in brackets of the kernel's "none voluntary (full)"; empty if it did not say."""
    try:
        words = file.read_text(errors="replace").split()
    except OSError:
        return ""
    return next((word.strip("()") for word in words if word.startswith("(")), "")
