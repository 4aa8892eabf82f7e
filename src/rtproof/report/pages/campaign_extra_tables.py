# SPDX-License-Identifier: Apache-2.0
"""Tables that a profile asks for by name: stages, threads, application loops, cycles out of band, bins, kernels."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rtproof.articles import Article, ArticleFigure, ArticleRow
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent
from rtproof.judge.analysis_model import several_stages
from rtproof.profiles import CellPlan, Profile
from rtproof.report import number_format, stage_tables
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.number_format import US
from rtproof.report.pages import campaign_curves, campaign_table
from rtproof.report.pages.campaign_outcomes import CellOutcome
from rtproof.report.pages.campaign_table import article_rows, as_published, loop_summary, outcomes_by_cell
from rtproof.report.stage_tables import ENDS, HEADINGS, stage_ends, stage_numbers
from rtproof.report.thread_names import report_streams
from rtproof.statistics.exact_bounds import share_upper
from rtproof.summary import application_loops
from rtproof.summary.application_loops import DrawnPoints
from rtproof.summary.cycles import BAND_LEVEL, most_cycles_out_of_band
from rtproof.summary.summary_model import Cycles

LOOP_PARTS = {"work": "work duration", "loop": "overall loop time", "top": "top of loop timing error"}
"""By the names that the article's figures have."""
LOOP_LINES = {"min": "minimum", "max": "maximum", "mean": "average", "deviation": "standard deviation"}
SHARED_TERMS = "Top of loop timing error: what all loops share, and what varies"
LOOP_TERMS = ("min", "mean", "max", "deviation")
"""Of which ``lateness`` makes its parts."""
LOOP_SUMMARY = "No sample was kept, so that single loops, and with them these tables and plots, are not to be had: "


def loop_tables(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """Of each cell one table and one plot, with all systems in it."""
    cells = outcomes_by_cell(outcomes)
    found = [
        block
        for cell, group in cells
        for block in _loop_table(cell, group, [*article_rows(cell, article)], len(cells) > 1)
    ]
    without = [f"{each.cell.label}, {each.system}" for each in outcomes if each.analysis and not each.loops]
    return [*found, *([Text((f"{LOOP_SUMMARY}{'; '.join(without)}.",))] if without else [])]


def _loop_table(
    cell: CellPlan, group: Sequence[CellOutcome], published: Sequence[ArticleRow], several: bool
) -> Iterator[Block]:
    told = [each for each in group if each.loops]
    if not told:
        return
    of = f": {cell.label}" if several else ""
    here = [f"{each.system} (n = {_loop_count(each):,})" for each in told]
    header = ("", "[us]", *here, *(f"article: {row.label}" for row in published))
    rows = tuple(row for part, words in LOOP_PARTS.items() for row in _loop_rows(part, words, told, published))
    caption = f"Work, overall loop time and top of loop timing error{of}"
    yield Table(caption, header, rows, tuple(range(2, len(header))))
    columns = [*(_measured_lateness(each) for each in told), *(_published_lateness(row) for row in published)]
    names = [name for name, _ in application_loops.loop_lateness(None, None, None, None)]
    yield Table(SHARED_TERMS, header[1:], tuple(zip(names, *columns, strict=True)), tuple(range(1, len(header) - 1)))
    drawn = stage_tables.loop_time_plot(
        [named for each in told for named in _published_times(each)], f"{stage_tables.TITLE}{of}"
    )
    if drawn:
        yield drawn


def _loop_rows(
    part: str, words: str, told: Sequence[CellOutcome], published: Sequence[ArticleRow]
) -> Iterator[tuple[str, ...]]:
    for at, (name, line) in enumerate(LOOP_LINES.items()):
        here = (_measured_times(each, part, name) for each in told)
        beside = (as_published(row.figures.get(f"{part}.{name}"), US) for row in published)
        yield ("" if at else words, line, *here, *beside)


def _loop_count(outcome: CellOutcome) -> int:
    return outcome.loops.work.count if outcome.loops else 0


def _measured_lateness(outcome: CellOutcome) -> list[str]:
    found = loop_summary(outcome, "top")
    terms = [getattr(found, name) if found and found.count else None for name in LOOP_TERMS]
    return [US.show(ns) for _, ns in application_loops.loop_lateness(*terms)]


def _published_lateness(row: ArticleRow) -> list[str]:
    """With the digits that the article printed."""
    told = [row.figures.get(f"top.{name}") for name in LOOP_TERMS]
    parts = application_loops.loop_lateness(*(figure.value if figure else None for figure in told))
    step = max((figure.step for figure in told[:3] if figure), default=0)
    exact = [None if ns is None else ArticleFigure("", ns, "ns", step) for _, ns in parts[:3]]
    return [as_published(figure, US) for figure in (*exact, told[3])]


def _measured_times(outcome: CellOutcome, part: str, name: str) -> str:
    found = loop_summary(outcome, part)
    return US.show(getattr(found, name) if found and found.count else None)


def _published_times(outcome: CellOutcome) -> Iterator[tuple[str, DrawnPoints]]:
    """Of the first thread; where there are several, that is said."""
    if outcome.analysis is None or outcome.loops is None:
        return
    first = min(series.thread for series in outcome.analysis.record.series)
    several = len(outcome.analysis.summaries) > 1
    name = f"{outcome.system}, thread {first}" if several else outcome.system
    for each in stage_tables.loop_time_plots(outcome.analysis.record, {first: outcome.loops.length}).values():
        yield name, each


CYCLE_HEADER = (
    *("cell", "measured on", "not counted", "cycles", "out of the band", "possible share", "that is one every"),
    *("catch-up pairs", "correlation"),
)
CYCLES_EXPLAINED = (
    f"Possible is a share up to this one ({percent(BAND_LEVEL)} confidence, if cycles do not depend on each other): "
    "none of n out of the band still leaves up to 3 in n, the rule of three. A catch-up pair is a long cycle with a "
    "short one directly behind. The correlation is that of neighbouring cycles; a loop that makes up for each delay in "
    "its next cycle shows -0.5. A loop in virtual time has no possible share: run again it counts the same."
)


def cycle_table(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """A row for each cell on each system, the article's below."""
    found = [row for cell, group in outcomes_by_cell(outcomes) for row in _cycle_rows(cell, group, article)]
    if not any(each.analysis and each.analysis.cycles for each in outcomes):
        return []
    bands = dict.fromkeys(
        _band_text(each.analysis.cycles) for each in outcomes if each.analysis and each.analysis.cycles
    )
    caption = f"Cycles out of the band of {' or '.join(bands)}"
    return [Table(caption, CYCLE_HEADER, tuple(found), tuple(range(2, len(CYCLE_HEADER)))), Text((CYCLES_EXPLAINED,))]


def _band_text(found: Cycles) -> str:
    return f"{duration(found.low_ns)} to {duration(found.high_ns)}"


def _cycle_rows(cell: CellPlan, group: Sequence[CellOutcome], article: Article | None) -> Iterator[tuple[str, ...]]:
    rows = [_measured_cycles(each, each.analysis.cycles) for each in group if each.analysis and each.analysis.cycles]
    rows += [row for each in article_rows(cell, article) for row in _published_cycles(each, cell.period_ns)]
    yield from (("" if at else cell.label, *row) for at, row in enumerate(rows))


def _measured_cycles(outcome: CellOutcome, found: Cycles) -> tuple[str, ...]:
    correlation = number_format.UNKNOWN if found.correlation is None else f"{found.correlation:.2f}"
    pairs = number_format.count_text(found.catch_up_pairs)
    counted = _count_text(found.counted, found.out_of_band, found.period_ns, most_cycles_out_of_band(found))
    return (outcome.system, number_format.count_text(found.ignored), *counted, pairs, correlation)


def _published_cycles(row: ArticleRow, period_ns: int) -> Iterator[tuple[str, ...]]:
    told = [row.figures.get(name) for name in ("count", "below", "above")]
    n, below, above = (round(figure.value) if figure else None for figure in told)
    if n is not None and below is not None and above is not None:
        yield (f"article: {row.label}", "", *_cycle_counts(n, below + above, period_ns), "", "")


def _cycle_counts(n: int, out_of_band: int, period_ns: int) -> tuple[str, ...]:
    return _count_text(n, out_of_band, period_ns, share_upper(out_of_band, n, BAND_LEVEL) if n else None)


def _count_text(n: int, out_of_band: int, period_ns: int, most: float | None) -> tuple[str, ...]:
    possible = (
        (number_format.number_text(most, 2), duration(period_ns / most)) if most else (number_format.UNKNOWN,) * 2
    )
    return (number_format.count_text(n), number_format.count_text(out_of_band), *possible)


def stage_table(_profile: Profile, outcomes: Sequence[CellOutcome], _article: Article | None) -> list[Block]:
    rows = tuple(row for each in outcomes for row in _stage_rows(each))
    header = ("cell", "measured on", "stage", *HEADINGS)
    caption = "Every stage, from the due time until the clock was read"
    return [Table(caption, header, rows, tuple(range(3, len(header))))] if rows else []


def _stage_rows(outcome: CellOutcome) -> Iterator[tuple[str, ...]]:
    for at, stage in enumerate(several_stages(outcome.analysis) if outcome.analysis else ()):
        names = ("", "") if at else (outcome.cell.label, outcome.system)
        yield (*names, stage.series.field, *stage_numbers(stage.observed_counts, stage.observed))


def thread_table(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """As cyclictest prints them, a line for each thread; the article's threads have periods of their own."""
    rows = [row for each in outcomes for row in _thread_rows(each)]
    if not rows:
        return []
    cells = [cell for cell, _ in outcomes_by_cell(outcomes)]
    rows += [
        row for cell in cells for each in article_rows(cell, article) for row in _published_threads(cell.label, each)
    ]
    header = ("cell", "measured on", "thread", "CPU", "period [us]", *ENDS)
    return [Table("Every thread", header, tuple(rows), tuple(range(3, len(header))), folded=True)]


def _thread_rows(outcome: CellOutcome) -> Iterator[tuple[str, ...]]:
    for stream in report_streams(outcome.analysis) if outcome.analysis else ():
        if not stream.pooled:
            period = f"{stream.summary.series.period_ns / US.ns:g}"
            yield (
                *(outcome.cell.label, outcome.system, stream.name, stream.cpu, period),
                *stage_ends(stream.summary.observed),
            )


def _published_threads(cell: str, row: ArticleRow) -> Iterator[tuple[str, ...]]:
    for each in row.numbers:
        told = [as_published(each.figures.get(name), US) for name in ("period", "count", "min", "mean", "max")]
        yield (cell, f"article: {row.label}", each.name, "", *told)


RenderExtra = Callable[[Profile, Sequence[CellOutcome], Article | None], list[Block]]
EXTRA_TABLES: Mapping[str, tuple[str, RenderExtra]] = {
    "matrix": ("Boards and kernels", campaign_table.kernel_matrix),
    "thresholds": ("Maximum and 99.999 % threshold", campaign_curves.threshold_tables),
    "switch": ("Context switch from the fullest bins", campaign_curves.context_switch_table),
    "app": ("Work, loop time and top of loop", loop_tables),
    "cycles": ("What the cycles tell", cycle_table),
    "stages": ("Stages", stage_table),
    "threads": ("Threads", thread_table),
}


def check_extras(names: Sequence[str]) -> None:
    """UserError with the list of what there is for a name of none."""
    for name in names:
        if name not in EXTRA_TABLES:
            raise UserError(f"extras: there is no section {name!r}; there are: {', '.join(EXTRA_TABLES)}")


def extra_sections(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Section]:
    """What the profile asks for; UserError as of ``check``."""
    check_extras(profile.extras)
    found = [(name, *EXTRA_TABLES[name]) for name in profile.extras]
    drawn = [Section(name, title, tuple(render(profile, outcomes, article))) for name, title, render in found]
    return [section for section in drawn if section.blocks]
