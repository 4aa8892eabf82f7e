# SPDX-License-Identifier: Apache-2.0
"""What a page of cells is made of: each cell on each system, what judged it, and the article that it repeats."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from rtproof.articles import Article, ArticleRow
from rtproof.core.phrases import capitalised
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Verdict
from rtproof.judge.verdict import worst_state
from rtproof.judge.worst_first import LOSS_CODES
from rtproof.profiles import CellPlan, Profile, Way
from rtproof.record.requirement import Requirement
from rtproof.summary.loops import ApplicationLoops, has_samples, is_app, loops_of_all_threads, loops_of_threads
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.summary_model import Cycles, Severity, Summary


@dataclass(frozen=True)
class CellOutcome:
    """A cell on one system.

    analysis: None where there is none; failure then says why, or says why an analysis is not whole. system: its name.
    way: the way that was taken; passed: the ways before it, and why each cannot be had here. link: the cell's own
    report. kept: files beside the report that the article kept as well. run: the run folder. Their paths are relative
    to the page; "" where there is none.
    """

    system: str
    cell: CellPlan
    analysis: Analysis | None = None
    way: Way | None = None
    passed: tuple[tuple[Way, str], ...] = ()
    failure: str = ""
    link: str = ""
    kept: tuple[str, ...] = ()
    run: str = ""

    @property
    def shown(self) -> Summary | None:
        """The stage that the row shows, of all threads together; None without an analysis."""
        if self.analysis is None:
            return None
        return self.stage(self.way.stage if self.way else "") or self.analysis.pooled

    def stage(self, name: str) -> Summary | None:
        """Return the stage of this name, or for an empty name the stage of the row; None if it was not measured."""
        if self.analysis is None:
            return None
        if not name:
            return self.shown if self.way and self.way.stage else self.analysis.pooled
        stages = self.analysis.stages or (self.analysis.pooled,)
        return next((stage for stage in stages if stage.series.field == name), None)

    @cached_property
    def loops(self) -> ApplicationLoops | None:
        """The loops of a periodic application, all threads together; None where no samples were kept."""
        record = self.analysis.record if self.analysis else None
        if record is None or not is_app(record) or not has_samples(record):
            return None
        return loops_of_all_threads(loops_of_threads(record).values())

    @property
    def cycles(self) -> Cycles | None:
        return self.analysis.cycles if self.analysis else None

    @property
    def invalid(self) -> tuple[str, ...]:
        """The reasons why the run did not measure what was asked."""
        doubts = self.analysis.doubts if self.analysis else ()
        return tuple(doubt.what for doubt in doubts if doubt.severity is Severity.INVALID)

    @property
    def losses(self) -> tuple[str, ...]:
        """What the run lost, where the loss does not make it INVALID."""
        doubts = self.analysis.doubts if self.analysis else ()
        return tuple(d.what for d in doubts if d.code in LOSS_CODES and d.severity is not Severity.INVALID)

    @cached_property
    def core(self) -> str | None:
        """The co-kernel beside the measured Linux; None if none was found."""
        return self.analysis.core if self.analysis else None

    @property
    def virtual(self) -> bool:
        return bool(self.analysis and self.analysis.virtual_clock)


CELL_FAILED_CODE = 2
"""The exit code of a campaign in which a cell has no result."""


@dataclass(frozen=True)
class OtherToolResult:
    """A result of another tool that the user gives; None for a figure without a value. notes: what it cannot tell."""

    label: str
    tool: str
    count: int | None
    min_ns: int | float | None
    mean_ns: int | float | None
    max_ns: int | float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredCampaign:
    """A profile, every cell on every system in the profile's order, and the article whose experiment it is.

    given: results of other tools. command: as the user typed it.
    """

    profile: Profile
    outcomes: Sequence[CellOutcome]
    article: Article | None = None
    given: Sequence[OtherToolResult] = ()
    command: str = ""

    @cached_property
    def marked(self) -> "MeasuredCampaign":
        """The same with "in-band" after the name of each system that has a co-kernel, for every table."""
        beside = {each.system for each in self.outcomes if each.core}
        return replace(
            self,
            outcomes=[
                replace(each, system=f"{each.system} ({IN_BAND})") if each.system in beside else each
                for each in self.outcomes
            ],
        )

    @cached_property
    def cells(self) -> list[tuple[CellPlan, list[CellOutcome]]]:
        """Each cell with its outcomes, in the order of the cells."""
        order = list(dict.fromkeys(each.cell.key for each in self.outcomes))
        found = sorted(self.outcomes, key=lambda each: order.index(each.cell.key))
        groups = [list(group) for _, group in groupby(found, key=lambda each: each.cell.key)]
        return [(group[0].cell, group) for group in groups]

    @cached_property
    def named(self) -> list[tuple[str, CellOutcome]]:
        """Each outcome with the label of its cell, and with the name of its system where there are several systems."""
        several = len(self.systems) > 1
        return [(f"{each.cell.label}, {each.system}" if several else each.cell.label, each) for each in self.outcomes]

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(each.system for each in self.outcomes))

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on all limits of all cells."""
        return [verdict for each in self.outcomes if each.analysis for verdict in each.analysis.verdicts]

    @property
    def exit_code(self) -> int:
        """2 if a cell failed, else of the worst verdict."""
        if any(each.analysis is None or each.failure for each in self.outcomes):
            return CELL_FAILED_CODE
        return worst_state(each.analysis.verdict.state for each in self.outcomes if each.analysis).exit_code

    def some_of(self, some: Sequence[CellOutcome]) -> str:
        """Return the names of some outcomes, or "All cells" where they are all of several."""
        if len(some) == len(self.outcomes) > 1:
            return "All cells"
        chosen = {id(each) for each in some}
        return "; ".join(name for name, each in self.named if id(each) in chosen)

    def published(self, *cells: CellPlan) -> list[ArticleRow]:
        """Return the article's rows that some cells repeat, each once, as far as the article has them."""
        rows = {row.key: row for row in self.article.rows} if self.article else {}
        return [rows[key] for key in dict.fromkeys(key for cell in cells for key in cell.article_rows) if key in rows]

    @property
    def repeated(self) -> list[ArticleRow]:
        """The article's rows that the profile repeats, in the article's order."""
        wanted = {key for cell in self.profile.cells for key in cell.article_rows}
        return [row for row in self.article.rows if row.key in wanted] if self.article else []


def judged_requirements(campaign: MeasuredCampaign) -> tuple[Requirement, ...]:
    """The requirements that judged the cells: those in the runs, else those of the profile.

    The runs come first because they may be older than today's defaults.
    """
    judged = tuple(dict.fromkeys(each.requirement for each in campaign.verdicts if each.requirement))
    return judged or campaign.profile.claims


def requirement_sentences(asked: Iterable[Requirement], *, virtual: bool = False) -> tuple[str, ...]:
    """Return sentences for each requirement. virtual: no confidence is named."""
    told = verdict_sentences.requested_limit_sentence if virtual else verdict_sentences.limit_sentence
    return tuple(
        f"Asked: {told(each)}." + ("" if each.plain else f" {capitalised(verdict_sentences.episode_sentence(each))}.")
        for each in asked
    )
