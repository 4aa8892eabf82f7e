# SPDX-License-Identifier: Apache-2.0
"""The table of a campaign: a row for each cell on each system.

Its columns are metrics with a name in the profile's file. A second table has a row for each board and a column for each
kernel, with the article's boards below.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rtproof.articles import Article, ArticleFigure, ArticleRow
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent
from rtproof.profiles import CellPlan, Profile
from rtproof.record.contents import Moment
from rtproof.report import number_format
from rtproof.report.blocks import Block, Link, Section, Table, Text
from rtproof.report.number_format import MS, US, PrintedUnit
from rtproof.report.pages.campaign_outcomes import CellOutcome, OtherToolResult
from rtproof.summary import recorded_facts
from rtproof.summary.loops import BAND_LEVEL, most_cycles_out_of_band
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Cycles, Moments, Summary

MOST_TEXT_DIGITS = 3


@dataclass(frozen=True)
class CampaignMetric:
    """A column. here: the text of a cell."""

    heading: str
    here: Callable[[CellOutcome], str]


def metrics_by_name(names: tuple[str, ...]) -> list[CampaignMetric]:
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


def _summary_metric(words: Callable[[Summary], str]) -> Callable[[CellOutcome], str]:
    return lambda outcome: words(outcome.shown) if outcome.shown else ""


def _shown_us(value: Callable[[Summary], float | None]) -> Callable[[CellOutcome], str]:
    return _summary_metric(lambda summary: US.show(value(summary) if summary.observed.count else None))


def _rarity_metric(summary: Summary) -> str:
    return US.show(quantile(summary.observed_counts, 0.99999, ends=summary.observed).value)


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


def _cycle_metric(words: Callable[[Cycles], str]) -> Callable[[CellOutcome], str]:
    def here(outcome: CellOutcome) -> str:
        cycles = outcome.analysis.cycles if outcome.analysis else None
        return words(cycles) if cycles else number_format.UNKNOWN

    return here


def loop_summary(outcome: CellOutcome, part: str) -> Moments | None:
    """Return article 3's work, loop or top of a periodic application; None for anything else."""
    loops = outcome.loops
    return {"work": loops.work, "loop": loops.loop, "top": loops.error}[part] if loops else None


def _loop_metric(part: str, name: str) -> CampaignMetric:
    def here(outcome: CellOutcome) -> str:
        found = loop_summary(outcome, part)
        return US.show(getattr(found, name) if found and found.count else None)

    words = {"mean": "avg", "deviation": "sd"}.get(name, name)
    return CampaignMetric(f"{part} {words} [us]", here)


def out_of_band_bound(share: float | None) -> str:
    """Return the bound of the share of cycles out of the band as text: none seen does not mean that none will come."""
    return number_format.UNKNOWN if share is None else percent(float(f"{share:.2g}"))


def stalled_text(cycles: Cycles) -> str:
    """Return the total time in which loops stood still."""
    stalled_ns = sum(stall.duration_ns for stall in cycles.stalls)
    return f"STALLED {duration(stalled_ns)}" if stalled_ns else "no"


def _verdict_metric(outcome: CellOutcome) -> str:
    return outcome.analysis.verdict.state.word if outcome.analysis else ""


def load_averages(outcome: CellOutcome) -> list[str]:
    """Return the load averages of 1, 5 and 15 minutes at the end of the run; [] if they are not known."""
    text = recorded_facts.file_text(outcome.analysis.record, "/proc/loadavg", Moment.END) if outcome.analysis else None
    return (text or "").split()[:3]


METRICS: Mapping[str, CampaignMetric] = {
    "n": CampaignMetric("n", _summary_metric(lambda s: number_format.count_text(s.observed.count))),
    "min": CampaignMetric("min [us]", _shown_us(lambda s: s.observed.min)),
    "mean": CampaignMetric("avg [us]", _shown_us(lambda s: s.observed.mean)),
    "max": CampaignMetric("max [us]", _summary_metric(largest_text)),
    "longest": CampaignMetric("max [us]", _summary_metric(longest_answer_text)),
    "length": CampaignMetric("length", _summary_metric(lambda s: duration(s.span_ns))),
    "deviation": CampaignMetric("deviation [us]", _shown_us(lambda s: s.observed.deviation)),
    "missed": CampaignMetric("missed", _summary_metric(lambda s: number_format.count_text(s.never_ran))),
    "p99.999": CampaignMetric("99.999 % [us]", _summary_metric(_rarity_metric)),
    "verdict": CampaignMetric("verdict", _verdict_metric),
    "loadavg": CampaignMetric(
        "load average", lambda outcome: next(iter(load_averages(outcome)), number_format.UNKNOWN)
    ),
    "cycles": CampaignMetric("cycles", _cycle_metric(lambda c: number_format.count_text(c.counted))),
    "below": CampaignMetric("below band", _cycle_metric(lambda c: number_format.count_text(c.short))),
    "above": CampaignMetric("above band", _cycle_metric(lambda c: number_format.count_text(c.long))),
    "out-share": CampaignMetric(
        f"out of band, at most ({percent(BAND_LEVEL)})",
        _cycle_metric(lambda c: out_of_band_bound(most_cycles_out_of_band(c))),
    ),
    "cycle-max": CampaignMetric("max [ms]", _cycle_metric(lambda c: MS.show(c.max_ns))),
    "cycle-min": CampaignMetric("min [ms]", _cycle_metric(lambda c: MS.show(c.min_ns))),
    "catch-up": CampaignMetric("catch-up pairs", _cycle_metric(lambda c: number_format.count_text(c.catch_up_pairs))),
    "stalled": CampaignMetric("stalled", _cycle_metric(stalled_text)),
    **{
        f"{part}-{name}": _loop_metric(part, name)
        for part in ("work", "loop", "top")
        for name in ("min", "mean", "max", "deviation")
    },
}


ARTICLE_PREFIX = "article: "
LENGTH_COLUMN = "length"
NOT_MEASURED = "not measured"
SYSTEM_HEADING = "measured on"


def result_section(
    profile: Profile, outcomes: Sequence[CellOutcome], given: Sequence[OtherToolResult], *, short: bool
) -> Section:
    """Return the section of results. short: without columns that have no values here, because a terminal is narrow."""
    names = tuple(name for name in profile.columns if not short or _column_has_values(name, outcomes))
    columns = metrics_by_name(names)
    rows = _result_rows(outcomes, given, names)
    header = ("cell", SYSTEM_HEADING, *(column.heading for column in columns))
    table = Table(f"{profile.title}: the cells", header, tuple(rows), tuple(range(2, len(header))))
    blocks: list[Block] = [table]
    blocks += [Text(tuple(f"{each.label}: {note}." for each in given for note in each.notes))] if given else []
    return Section("result", "Result", tuple(blocks))


def _result_rows(
    outcomes: Sequence[CellOutcome], given: Sequence[OtherToolResult], names: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return the rows of each cell, behind them those of other tools in its stage, and the other ones at the end."""
    columns = metrics_by_name(names)
    rows: list[tuple[str, ...]] = []
    left = list(given)
    for cell, several in outcomes_by_cell(outcomes):
        own = results_of_stage(cell, left)
        left = [each for each in left if each not in own]
        rows += [*_cell_rows(cell, several, columns), *(_other_tool_row(each, names) for each in own)]
    return [*rows, *(_other_tool_row(each, names) for each in left)]


def _column_has_values(name: str, outcomes: Sequence[CellOutcome]) -> bool:
    """Return whether a column has a value here; False for lengths, which another table has as well."""
    (metric,) = metrics_by_name((name,))
    said = {metric.here(each) for each in outcomes if each.analysis}
    return name != LENGTH_COLUMN and (not said or not said <= {number_format.UNKNOWN, ""})


def outcomes_by_cell(outcomes: Sequence[CellOutcome]) -> list[tuple[CellPlan, list[CellOutcome]]]:
    """Return each cell with its outcomes, in the order of the cells."""
    order = list(dict.fromkeys(each.cell.key for each in outcomes))
    found = sorted(outcomes, key=lambda each: order.index(each.cell.key))
    groups = [list(group) for _, group in groupby(found, key=lambda each: each.cell.key)]
    return [(group[0].cell, group) for group in groups]


def article_rows(cell: CellPlan, article: Article | None) -> Iterator[ArticleRow]:
    """Yield the article's rows that a cell repeats, as far as the article has them."""
    for key in cell.article_rows if article else ():
        row = article.row(key) if article else None
        if row:
            yield row


def _cell_rows(cell: CellPlan, several: list[CellOutcome], columns: list[CampaignMetric]) -> Iterator[tuple[str, ...]]:
    for at, outcome in enumerate(several):
        yield ("" if at else cell.label, *_measured_row(outcome, columns))


def _measured_row(outcome: CellOutcome, columns: list[CampaignMetric]) -> tuple[str, ...]:
    name = f"{outcome.system} (INVALID)" if outcome.invalid else outcome.system
    where = Link(name, outcome.link) if outcome.link else name
    if outcome.analysis is None:
        return (where, NOT_MEASURED, *("" for _ in columns[1:])) if columns else (f"{where}: {NOT_MEASURED}",)
    return (where, *(column.here(outcome) for column in columns))


STAGE_AXIS = "stage"
NO_STAGE = "none"
STAGES_BY_WORDS = (
    ("irq", re.compile(r"\btimer (?:handler|IRQ)\b|: irq\b", re.I)),
    ("kernel", re.compile(r"\bin-kernel periodic task\b|^kernel task$|: kernel\b", re.I)),
    ("user", re.compile(r"\buser-mode task\b|^user task$|: user\b", re.I)),
)
"""The values of the axis, and how Xenomai, EVL and RTAI call what they measure there."""


def results_of_stage(cell: CellPlan, given: Sequence[OtherToolResult]) -> list[OtherToolResult]:
    """Return the results of other tools that measured the stage of this cell; [] for a cell without a stage."""
    return [each for each in given if _stage_of(each) == cell.axes.get(STAGE_AXIS, NO_STAGE)]


def _stage_of(given: OtherToolResult) -> str:
    """The stage that a result measured, by the title of its own; "" if that tells none."""
    return next((stage for stage, words in STAGES_BY_WORDS if words.search(given.label)), "")


def _other_tool_row(given: OtherToolResult, columns: tuple[str, ...]) -> tuple[str, ...]:
    values = {
        "n": number_format.count_text(given.count),
        "min": US.show(given.min_ns),
        "mean": US.show(given.mean_ns),
        "max": US.show(given.max_ns),
    }
    return (given.label, f"given: {given.tool}", *(values.get(name, "") for name in columns))


def kernel_matrix(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    cells = outcomes_by_cell(outcomes)
    systems = dict.fromkeys(each.system for each in outcomes)
    rows = [
        (system, _kernel_of(system, outcomes), *(_largest_text(system, group) for _, group in cells))
        for system in systems
    ]
    places: dict[tuple[str, str], list[str]] = {}
    for at, (cell, _) in enumerate(cells):
        for row in article_rows(cell, article):
            places.setdefault((row.board, row.kernel), [""] * len(cells))[at] = _published_matrix_row(row)
    rows += [(f"article: {board}", kernel, *maxima) for (board, kernel), maxima in places.items()]
    return [board_table([cell.label for cell, _ in cells], rows)]


def board_table(cells: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the table of rows with board, kernel and the largest latency of each cell."""
    header = ("board", "kernel", *cells)
    caption = "Largest latency of each board with each kernel [us]"
    return Table(caption, header, tuple(rows), tuple(range(2, len(header))))


def _kernel_of(system: str, outcomes: Sequence[CellOutcome]) -> str:
    """Return the kernel release of the first cell that was measured on this system."""
    releases = [
        each.analysis.record.begin.kernel_release for each in outcomes if each.analysis and each.system == system
    ]
    return releases[0] if releases else ""


def _largest_text(system: str, group: Sequence[CellOutcome]) -> str:
    shown = next((each.shown for each in group if each.system == system), None)
    return longest_answer_text(shown) if shown and (shown.observed.count or shown.never_ran) else "not measured"


def _published_matrix_row(row: ArticleRow) -> str:
    return as_published(row.figures.get("max"), US)
