# SPDX-License-Identifier: Apache-2.0
"""The model of a page of cells, and the table of cells, whose columns are metrics with a name in the profile's file."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from rtproof.articles import Article, ArticleFigure, ArticleNumbers, ArticleRow
from rtproof.core.errors import UserError
from rtproof.core.phrases import capitalised, duration, percent
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Verdict
from rtproof.judge.verdict import worst_state
from rtproof.judge.worst_first import LOSS_CODES
from rtproof.profiles import Bins, CellPlan, Profile, Way
from rtproof.record.contents import Moment
from rtproof.record.requirement import Requirement
from rtproof.report import number_format
from rtproof.report.blocks import Link, Section, Table, Text
from rtproof.report.number_format import MS, UNKNOWN, US, PrintedUnit, cell_text
from rtproof.summary import recorded_facts
from rtproof.summary.loops import (
    BAND_LEVEL,
    ApplicationLoops,
    has_samples,
    is_app,
    loops_of_all_threads,
    loops_of_threads,
    most_cycles_out_of_band,
)
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Cycles, Moments, Severity, Summary


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

    @property
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


MOST_TEXT_DIGITS = 3
CellReading = Callable[[CellOutcome], str]
Metric = tuple[str, CellReading]
"""The heading of a column, and how the text of a cell is got."""


def metrics_by_name(names: Sequence[str]) -> list[Metric]:
    """Return the columns of these names; UserError with the list of all names if one is not known."""
    for name in names:
        if name not in METRICS:
            raise UserError(f"columns: there is no column {name!r}; there are: {', '.join(METRICS)}")
    return [METRICS[name] for name in names]


def as_published(figure: ArticleFigure | None, unit: PrintedUnit | None = None) -> str:
    """Return a figure of an article with the digits that the article printed, in ``unit`` if the figure has a unit."""
    if figure is None:
        return ""
    if unit is None or figure.unit != "ns":
        return figure.text
    digits = min(max(0, math.ceil(-math.log10(figure.step / unit.ns))), MOST_TEXT_DIGITS) if figure.step else 0
    return f"{'> ' if figure.at_least else ''}{figure.value / unit.ns:,.{digits}f}"


def numbers_of(row: ArticleRow, name: str) -> ArticleNumbers | None:
    """The numbers of the latency that a profile calls so: "preemption" for "preemption latency"; None without one."""
    return next((each for each in row.numbers if name.startswith(each.name)), None)


def bins_of(profile: Profile, name: str) -> Bins | None:
    """The profile's bins of the latency that an article calls so; None without any."""
    return next((each for each in profile.bins if each.name.startswith(name)), None)


def largest_text(summary: Summary, unit: PrintedUnit = US) -> str:
    """Return the largest latency of the activations that ran; "at least ..." for a thread that never ran again."""
    if summary.stalled_ns > summary.observed.max:
        return f"at least {unit.show(summary.stalled_ns)}"
    return unit.show(summary.observed.max if summary.observed.count else None)


def longest_answer_text(summary: Summary, unit: PrintedUnit = US) -> str:
    """Return the longest answer.

    An event without an answer before the next event was later than that event, but it is not known by how much.
    """
    unanswered = summary.missed and max(summary.stalled_ns, summary.observed.max) < summary.next_due_ns
    return f"> {unit.show(summary.next_due_ns)}" if unanswered else largest_text(summary, unit)


def measured_length(row: ArticleRow) -> str:
    """Return the length that the article states; "" if it states none."""
    told = row.duration or row.asked
    return told.text if told else ""


def loop_summary(outcome: CellOutcome, part: str) -> Moments | None:
    """Return article 3's work, loop or top of a periodic application; None for anything else."""
    loops = outcome.loops
    return {"work": loops.work, "loop": loops.loop, "top": loops.error}[part] if loops else None


def out_of_band_bound(share: float | None) -> str:
    """Return the bound of the share of cycles out of the band as text: none seen does not mean that none will come."""
    return UNKNOWN if share is None else percent(float(f"{share:.2g}"))


def stalled_text(cycles: Cycles) -> str:
    """Return the total time in which loops stood still."""
    stalled_ns = sum(stall.duration_ns for stall in cycles.stalls)
    return f"STALLED {duration(stalled_ns)}" if stalled_ns else "no"


def load_averages(outcome: CellOutcome) -> list[str]:
    """Return the load averages of 1, 5 and 15 minutes at the end of the run; [] if they are not known."""
    text = recorded_facts.file_text(outcome.analysis.record, "/proc/loadavg", Moment.END) if outcome.analysis else None
    return (text or "").split()[:3]


def _of_summary(read: Callable[[Summary], str | int]) -> CellReading:
    return lambda outcome: cell_text(read(outcome.shown)) if outcome.shown else ""


def _in_us(read: Callable[[Summary], float | None]) -> CellReading:
    return _of_summary(lambda summary: US.show(read(summary) if summary.observed.count else None))


def _of_cycles(read: Callable[[Cycles], str | int]) -> CellReading:
    return lambda outcome: cell_text(read(outcome.cycles)) if outcome.cycles else UNKNOWN


def _of_loops(part: str, name: str, *, above_least: bool = False) -> CellReading:
    """A moment of article 3's work, loop or top. above_least: beyond the smallest, which varies from loop to loop."""

    def read(outcome: CellOutcome) -> str:
        found = loop_summary(outcome, part)
        if found is None or not found.count:
            return UNKNOWN
        return US.show(getattr(found, name) - (found.min if above_least else 0))

    return read


def _out_of_band_every(cycles: Cycles) -> str:
    share = most_cycles_out_of_band(cycles)
    return duration(cycles.period_ns / share) if share else UNKNOWN


LOOP_PARTS = ("work", "loop", "top")
LOOP_FIGURES = {"min": "min", "mean": "avg", "max": "max", "deviation": "sd"}
METRICS: Mapping[str, Metric] = {
    "n": ("n", _of_summary(lambda s: s.observed.count)),
    "min": ("min [us]", _in_us(lambda s: s.observed.min)),
    "mean": ("avg [us]", _in_us(lambda s: s.observed.mean)),
    "max": ("max [us]", _of_summary(largest_text)),
    "longest": ("max [us]", _of_summary(longest_answer_text)),
    "length": ("length", _of_summary(lambda s: duration(s.span_ns))),
    "deviation": ("deviation [us]", _in_us(lambda s: s.observed.deviation)),
    "missed": ("missed", _of_summary(lambda s: s.never_ran)),
    "p99.999": ("99.999 % [us]", _in_us(lambda s: quantile(s.observed_counts, 0.99999, ends=s.observed).value)),
    "verdict": ("verdict", lambda outcome: outcome.analysis.verdict.state.word if outcome.analysis else ""),
    "loadavg": ("load average", lambda outcome: next(iter(load_averages(outcome)), UNKNOWN)),
    "cycles": ("cycles", _of_cycles(lambda c: c.counted)),
    "below": ("below band", _of_cycles(lambda c: c.short)),
    "above": ("above band", _of_cycles(lambda c: c.long)),
    "out-share": (
        f"out of band, at most ({percent(BAND_LEVEL)})",
        _of_cycles(lambda c: out_of_band_bound(most_cycles_out_of_band(c))),
    ),
    "out-every": ("that is one every", _of_cycles(_out_of_band_every)),
    "cycle-max": ("max [ms]", _of_cycles(lambda c: MS.show(c.max_ns))),
    "cycle-min": ("min [ms]", _of_cycles(lambda c: MS.show(c.min_ns))),
    "catch-up": ("catch-up pairs", _of_cycles(lambda c: c.catch_up_pairs)),
    "correlation": ("correlation", _of_cycles(lambda c: UNKNOWN if c.correlation is None else f"{c.correlation:.2f}")),
    "stalled": ("stalled", _of_cycles(stalled_text)),
    **{
        f"{part}-{name}": (f"{part} {words} [us]", _of_loops(part, name))
        for part in LOOP_PARTS
        for name, words in LOOP_FIGURES.items()
    },
    "top-varying-mean": ("top varying, beyond its min, avg [us]", _of_loops("top", "mean", above_least=True)),
    "top-varying-max": ("top varying, beyond its min, max [us]", _of_loops("top", "max", above_least=True)),
}
MOST_COLUMNS = 10
"""A table with more metrics has them in its rows, and a column for each cell."""
ARTICLE_PREFIX = "article: "
NOT_MEASURED = "not measured"


def result_section(campaign: MeasuredCampaign) -> Section:
    """The table of cells, without columns that are empty in each measured cell."""
    measured, names = [each for each in campaign.outcomes if each.analysis], list(campaign.profile.columns)
    if measured:
        names = [name for name in names if {METRICS[name][1](each) for each in measured} - {UNKNOWN, ""}]
    columns, given = metrics_by_name(names), campaign.given
    turned = len(columns) > MOST_COLUMNS
    rows: list[tuple[str, ...]] = []
    left = list(given)
    for cell, several in campaign.cells:
        own = results_of_stage(cell, left)
        left = [each for each in left if each not in own]
        rows += [(cell.label if turned or not at else "", *_row(each, columns)) for at, each in enumerate(several)]
        rows += [_other_tool_row(each, names) for each in own]
    rows += [_other_tool_row(each, names) for each in left]
    header: tuple[str, ...] = ("cell", "measured on", *(heading for heading, _ in columns))
    if turned:
        header, *rows = zip(header, *rows, strict=True)
    numeric = tuple(range(1 if turned else 2, len(header)))
    table = Table(f"{campaign.profile.title}: the cells", header, tuple(rows), numeric)
    notes = tuple(f"{each.label}: {note}." for each in given for note in each.notes)
    return Section("result", "Result", (table, Text(notes)) if notes else (table,))


def _row(outcome: CellOutcome, columns: list[Metric]) -> tuple[str, ...]:
    name = f"{outcome.system} (INVALID)" if outcome.invalid else outcome.system
    where = Link(name, outcome.link) if outcome.link else name
    if outcome.analysis is None:
        return (where, NOT_MEASURED, *("" for _ in columns[1:])) if columns else (f"{where}: {NOT_MEASURED}",)
    return (where, *(read(outcome) for _, read in columns))


STAGE_AXIS = "stage"
STAGES_BY_WORDS = (
    ("irq", re.compile(r"\btimer (?:handler|IRQ)\b|: irq\b", re.I)),
    ("kernel", re.compile(r"\bin-kernel periodic task\b|^kernel task$|: kernel\b", re.I)),
    ("user", re.compile(r"\buser-mode task\b|^user task$|: user\b", re.I)),
)
"""The values of the axis, and how Xenomai, EVL and RTAI call what they measure there."""


def results_of_stage(cell: CellPlan, given: Sequence[OtherToolResult]) -> list[OtherToolResult]:
    """Return the results of other tools that measured the stage of this cell; [] for a cell without a stage."""
    wanted = cell.axes.get(STAGE_AXIS)
    return [
        each
        for each in given
        if wanted and next((stage for stage, words in STAGES_BY_WORDS if words.search(each.label)), "") == wanted
    ]


def _other_tool_row(given: OtherToolResult, columns: Sequence[str]) -> tuple[str, ...]:
    values = {
        "n": number_format.count_text(given.count),
        "min": US.show(given.min_ns),
        "mean": US.show(given.mean_ns),
        "max": US.show(given.max_ns),
    }
    return (given.label, f"given: {given.tool}", *(values.get(name, "") for name in columns))
