# SPDX-License-Identifier: Apache-2.0
"""How the cells of a profile came out, as the page takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rtproof.analysis.app import App, has_samples, is_app, of_threads, together
from rtproof.analysis.cokernels import IN_BAND, core_beside
from rtproof.analysis.doubts import LOSSES
from rtproof.analysis.model import Analysis, Severity, State, Summary
from rtproof.analysis.virtual_time import virtual_time
from rtproof.profiles import CellPlan, Way


@dataclass(frozen=True)
class Outcome:
    """A cell on one system: an analysis, or (failure) the sentence that says why there is none or why it is not whole.

    system: its name. way: the one that was taken; passed: those before it and why they can't be had here. link: the
    cell's own report, kept: files beside it that the article kept as well; both relative to the page.
    """

    system: str
    cell: CellPlan
    analysis: Analysis | None = None
    way: Way | None = None
    passed: tuple[tuple[Way, str], ...] = ()
    failure: str = ""
    link: str = ""
    kept: tuple[str, ...] = ()

    @property
    def shown(self) -> Summary | None:
        """The stage that the row shows, of all threads together."""
        if self.analysis is None:
            return None
        return self.stage(self.way.stage if self.way else "") or self.analysis.pooled

    def stage(self, name: str) -> Summary | None:
        """A stage by its name, the one that the row shows by an empty name; None if it was not measured."""
        if self.analysis is None:
            return None
        if not name:
            return self.shown if self.way and self.way.stage else self.analysis.pooled
        stages = self.analysis.stages or (self.analysis.pooled,)
        return next((stage for stage in stages if stage.series.field == name), None)

    @cached_property
    def loops(self) -> App | None:
        """Of a periodic application whose samples were kept, all threads together."""
        record = self.analysis.record if self.analysis else None
        if record is None or not is_app(record) or not has_samples(record):
            return None
        return together(of_threads(record).values())

    @property
    def invalid(self) -> tuple[str, ...]:
        """Why the run did not measure what was asked."""
        doubts = self.analysis.doubts if self.analysis else ()
        return tuple(doubt.what for doubt in doubts if doubt.severity is Severity.INVALID)

    @property
    def losses(self) -> tuple[str, ...]:
        """What is gone from the run, where that does not make it INVALID."""
        doubts = self.analysis.doubts if self.analysis else ()
        return tuple(d.what for d in doubts if d.code in LOSSES and d.severity is not Severity.INVALID)

    @cached_property
    def core(self) -> str | None:
        """The co-kernel beside the measured Linux; None where none was found."""
        return core_beside(self.analysis.record) if self.analysis else None

    @property
    def virtual(self) -> bool:
        return bool(self.analysis and virtual_time(self.analysis.record))


def marked(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The same, with "in-band" behind the name of each system that has a co-kernel, for every table of the page."""
    beside = {each.system for each in outcomes if each.core}
    return [replace(each, system=f"{each.system} ({IN_BAND})") if each.system in beside else each for each in outcomes]


@dataclass(frozen=True)
class Given:
    """A result of another tool that the user lays beside; None where it does not say. notes: what it can't tell."""

    label: str
    tool: str
    count: int | None
    min_ns: int | float | None
    mean_ns: int | float | None
    max_ns: int | float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class More:
    """What else a page tells. given: results of other tools; command: as typed."""

    given: Sequence[Given] = ()
    command: str = ""


NOTHING_MORE = More()
SEVERITY = (State.PROVEN, State.NOT_ASKED, State.UNDECIDED, State.REFUTED, State.INVALID)
FAILED = 2
"""Exit code of a campaign of which a cell has no result."""


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """2 if a cell failed, else of the worst verdict: INVALID, REFUTED, UNDECIDED, then PROVEN or nothing asked."""
    if any(each.analysis is None or each.failure for each in outcomes):
        return FAILED
    states = [each.analysis.verdict.state for each in outcomes if each.analysis]
    return max(states, key=SEVERITY.index, default=State.NOT_ASKED).exit_code
