# SPDX-License-Identifier: Apache-2.0
"""The further tables of a profile, one function for each: what a cell measured besides the columns of its row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rtproof.articles import ArticleFigure, ArticleNumbers, ArticleRow
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent
from rtproof.judge.analysis_model import is_response, several_stages
from rtproof.profiles import Bins
from rtproof.report import answer_overlay, cumulative_curves, stage_tables
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.number_format import UNKNOWN, US, count_text, number_text, report_streams
from rtproof.report.pages.campaign_outcomes import CellOutcome, MeasuredCampaign
from rtproof.report.pages.campaign_table import (
    ARTICLE_PREFIX,
    as_published,
    board_table,
    longest_answer_text,
    loop_figure,
)
from rtproof.report.pages.published_figures import numbers_of, published_bin, published_threshold
from rtproof.report.stage_tables import ENDS, HEADINGS, ContextSwitch, LoopPoints, context_switch, stage_ends
from rtproof.statistics import share_upper
from rtproof.summary import loops
from rtproof.summary.counts import DominantBin
from rtproof.summary.loops import BAND_LEVEL, most_cycles_out_of_band

Row = tuple[str, ...]


def kernel_matrix(campaign: MeasuredCampaign) -> list[Block]:
    """Return a row for each board and a column for each cell, with the article's boards below."""
    rows: list[Row] = []
    for system in campaign.systems:
        here = {each.cell.key: each for each in campaign.outcomes if each.system == system}
        releases = [each.analysis.record.begin.kernel_release for each in here.values() if each.analysis]
        largest = (_largest(here.get(cell.key)) for cell, _ in campaign.cells)
        rows.append((system, next(iter(releases), ""), *largest))
    places: dict[tuple[str, str], list[str]] = {}
    for at, (cell, _) in enumerate(campaign.cells):
        for row in campaign.published(cell):
            of_board = places.setdefault((row.board, row.kernel), [""] * len(campaign.cells))
            of_board[at] = as_published(row.figures.get("max"), US)
    rows += [(f"{ARTICLE_PREFIX}{board}", kernel, *maxima) for (board, kernel), maxima in places.items()]
    return [board_table([cell.label for cell, _ in campaign.cells], rows)]


def _largest(outcome: CellOutcome | None) -> str:
    shown = outcome.shown if outcome else None
    return longest_answer_text(shown) if shown and (shown.observed.count or shown.never_ran) else "not measured"


def threshold_tables(campaign: MeasuredCampaign) -> list[Block]:
    """Return one table for each kind of latency that the profile has bins for, by the threshold of its article."""
    article = campaign.article
    share = article.threshold.value if article and article.threshold else cumulative_curves.SHARE
    tables = [table for each in campaign.profile.bins if (table := _threshold_table(campaign, each, share)).rows]
    periods = {cell.period_ns for cell in campaign.profile.cells}
    says = cumulative_curves.threshold_definition(share, periods.pop() if len(periods) == 1 else None)
    beside = any(row[0].startswith(ARTICLE_PREFIX) for table in tables for row in table.rows)
    note = (article.threshold_note,) if article and article.threshold_note and not beside else ()
    return [*tables, Text((says, *note))] if tables else []


def _threshold_table(campaign: MeasuredCampaign, bins: Bins, share: float) -> Table:
    found = [(name, stage) for name, each in campaign.named if (stage := each.stage(bins.stage))]
    caption = f"{bins.name.capitalize()}; the article's bins were {bins.count:,} of {duration(bins.width_ns)}"
    table = cumulative_curves.threshold_table(caption, found, share)
    published = (
        _published_threshold(row, own, share)
        for row in campaign.published(*(cell for cell, _ in campaign.cells))
        if (own := numbers_of(row, bins.name))
    )
    return replace(table, rows=(*table.rows, *(row for row in published if any(row[2:]))))


def _published_threshold(row: ArticleRow, numbers: ArticleNumbers, share: float) -> Row:
    count, most = (as_published(numbers.figures.get(key), US) for key in ("count", "max"))
    threshold, period_ns = as_published(published_threshold(numbers, share), US), numbers.value("period")
    often = duration(period_ns / (1 - share)) if period_ns and threshold else ""
    return (f"{ARTICLE_PREFIX}{row.label}", count, most, threshold, often)


NO_DOMINANT_BIN = "No way that was taken tells the interrupt apart, so there is no context switch to tell of here."
DOMINANT_RANGE_NOTE = (
    "The difference of two bins is a range: from the end of the one to the start of the other at least, from the start "
    "of the one to the end of the other at most."
)
SWITCH_HEADER = (
    *("cell", "measured on", "n", "interrupt, fullest bin [us]", "share in it"),
    *("task, fullest bin [us]", "share in it", "context switch [us]"),
)


def context_switch_table(campaign: MeasuredCampaign) -> list[Block]:
    """Return the time from the interrupt to the task, as far as the fullest bin of each shows it.

    The profile's first bins are those of the interrupt, its second bins those of the task.
    """
    bins = campaign.profile.bins
    if len(bins) != 2:
        return []
    here = [(each, found) for each in campaign.outcomes if (found := context_switch_of(each, bins))]
    rows: list[Row] = [
        (each.cell.label, each.system, count_text(found.n), *_bin(found.interrupt), *_bin(found.task), found.range_us)
        for each, found in here
    ]
    note = DOMINANT_RANGE_NOTE if rows else NO_DOMINANT_BIN
    for cell, _ in campaign.cells:
        rows += [row for each in campaign.published(cell) for row in _published_switch(cell.label, each, bins)]
    caption = "Context switch: from the fullest bin of the interrupt to the fullest bin of the task"
    table = [Table(caption, SWITCH_HEADER, tuple(rows), tuple(range(2, len(SWITCH_HEADER))))] if rows else []
    return [*table, Text((note,))]


def context_switch_of(outcome: CellOutcome, bins: Sequence[Bins]) -> ContextSwitch | None:
    """Return the context switch; None where the interrupt was not measured apart."""
    if len(bins) != 2:
        return None
    interrupt, task = (outcome.stage(each.stage) for each in bins)
    if interrupt is None or task is None or interrupt is task:
        return None
    return context_switch(interrupt, task, bins[0].width_ns, bins[1].width_ns)


def _bin(found: DominantBin | None, share: str = "") -> tuple[str, str]:
    if found is None:
        return "", ""
    return stage_tables.bin_text(found), share or percent(round(found.n / max(found.total, 1), 4))


def _published_switch(cell: str, row: ArticleRow, bins: Sequence[Bins]) -> Iterator[Row]:
    own = [numbers_of(row, each.name) for each in bins]
    early, late = (published_bin(each) if each else None for each in own)
    printed = [each.figures.get("bin_share") if each else None for each in own]
    shares = [f"over {share.text}" if share else "" for share in printed]
    if early or late:
        between = ContextSwitch(early, late).range_us if early and late else ""
        yield (cell, f"{ARTICLE_PREFIX}{row.label}", "", *_bin(early, shares[0]), *_bin(late, shares[1]), between)


LOOP_PARTS = {"work": "work duration", "loop": "overall loop time", "top": "top of loop timing error"}
"""Keys: the names that the article's figures have."""
LOOP_LINES = {"min": "minimum", "max": "maximum", "mean": "average", "deviation": "standard deviation"}
LOOP_TERMS = ("min", "mean", "max", "deviation")
"""Names of the moments in an analysis and, after "top.", in an article's figures."""
SHARED_TERMS = "Top of loop timing error: what all loops share, and what varies"
LOOP_SUMMARY = "No sample was kept, so that single loops, and with them these tables and plots, are not to be had: "


def loop_tables(campaign: MeasuredCampaign) -> list[Block]:
    """Return two tables and the plots of each cell, with all systems in them. The first screen has the first plot."""
    several = len(campaign.cells) > 1
    found = [
        block
        for cell, group in campaign.cells
        if (told := [each for each in group if each.loops])
        for block in _loop_blocks(told, campaign.published(cell), f": {cell.label}" if several else "")
    ]
    first = next((block for block in found if isinstance(block, Plot)), None)
    found = [replace(each, foremost=True) if isinstance(each, Plot) and each is first else each for each in found]
    without = [f"{each.cell.label}, {each.system}" for each in campaign.outcomes if each.analysis and not each.loops]
    return [*found, *([Text((f"{LOOP_SUMMARY}{'; '.join(without)}.",))] if without else [])]


def _loop_blocks(told: Sequence[CellOutcome], published: Sequence[ArticleRow], of: str) -> Iterator[Block]:
    here = [f"{each.system} (n = {each.loops.work.count if each.loops else 0:,})" for each in told]
    rows = tuple(
        ("" if at else words, line, *(US.show(loop_figure(each, part, name)) for each in told))
        for part, words in LOOP_PARTS.items()
        for at, (name, line) in enumerate(LOOP_LINES.items())
    )
    caption = f"Work, overall loop time and top of loop timing error{of}"
    yield Table(caption, ("", "[us]", *here), rows, tuple(range(2, 2 + len(here))))
    header = ("[us]", *here, *(f"{ARTICLE_PREFIX}{row.label}" for row in published))
    terms = [loops.loop_lateness(*(loop_figure(each, "top", name) for name in LOOP_TERMS)) for each in told]
    columns = [*([US.show(ns) for _, ns in each] for each in terms), *map(_published_lateness, published)]
    names = [name for name, _ in terms[0]]
    yield Table(SHARED_TERMS, header, tuple(zip(names, *columns, strict=True)), tuple(range(1, len(header))))
    yield from stage_tables.loop_plots([named for each in told for named in _drawn_loops(each)], of)


def _published_lateness(row: ArticleRow) -> list[str]:
    """Return the article's figures with the digits that it printed."""
    told = [row.figures.get(f"top.{name}") for name in LOOP_TERMS]
    parts = loops.loop_lateness(*(figure.value if figure else None for figure in told))
    step = max((figure.step for figure in told[:3] if figure), default=0)
    exact = [None if ns is None else ArticleFigure("", ns, "ns", step) for _, ns in parts[:3]]
    return [as_published(figure, US) for figure in (*exact, told[3])]


def _drawn_loops(outcome: CellOutcome) -> Iterator[tuple[str, LoopPoints]]:
    """Yield the loops of the first thread to draw. With several threads, the curve's name says which thread it is."""
    if outcome.analysis and outcome.loops:
        first = min(series.thread for series in outcome.analysis.record.series)
        several = len(outcome.analysis.summaries) > 1
        name = f"{outcome.system}, thread {first}" if several else outcome.system
        yield name, stage_tables.loop_points(outcome.analysis.record, {first: outcome.loops.length})[first]


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


def cycle_blocks(campaign: MeasuredCampaign) -> list[Block]:
    """Return the cycles of loops: a plot, a row for each cell on each system, and what it means; [] without cycles."""
    measured = [each.cycles for each in campaign.outcomes if each.cycles]
    if not measured:
        return []
    rows: list[Row] = []
    for cell, group in campaign.cells:
        told = [row for each in group for row in _measured_cycles(each)]
        told += [row for each in campaign.published(cell) for row in _published_cycles(each, cell.period_ns)]
        rows += [("" if at else cell.label, *row) for at, row in enumerate(told)]
    bands = dict.fromkeys(f"{duration(found.low_ns)} to {duration(found.high_ns)}" for found in measured)
    caption = f"Cycles out of the band of {' or '.join(bands)}"
    table = Table(caption, CYCLE_HEADER, tuple(rows), tuple(range(2, len(CYCLE_HEADER))))
    points = [
        (name, drawn)
        for name, each in campaign.named
        if each.analysis and each.cycles
        for drawn in list(loops.cycle_points(each.analysis.record).values())[:1]
    ]
    plot = [stage_tables.cycle_plot(points, measured[0])] if points and len(bands) == 1 else []
    return [*plot, table, Text((CYCLES_EXPLAINED,))]


def _measured_cycles(outcome: CellOutcome) -> Iterator[Row]:
    if found := outcome.cycles:
        correlation = UNKNOWN if found.correlation is None else f"{found.correlation:.2f}"
        counted = _cycle_counts(found.counted, found.out_of_band, found.period_ns, most_cycles_out_of_band(found))
        yield (outcome.system, count_text(found.ignored), *counted, count_text(found.catch_up_pairs), correlation)


def _published_cycles(row: ArticleRow, period_ns: int) -> Iterator[Row]:
    told = [row.figures.get(name) for name in ("count", "below", "above")]
    n, below, above = (round(figure.value) if figure else None for figure in told)
    if n is not None and below is not None and above is not None:
        most = share_upper(below + above, n, BAND_LEVEL) if n else None
        yield (f"{ARTICLE_PREFIX}{row.label}", "", *_cycle_counts(n, below + above, period_ns, most), "", "")


def _cycle_counts(n: int, out_of_band: int, period_ns: int, most: float | None) -> Row:
    possible = (number_text(most, 2), duration(period_ns / most)) if most else (UNKNOWN, UNKNOWN)
    return (count_text(n), count_text(out_of_band), *possible)


def stage_table(campaign: MeasuredCampaign) -> list[Block]:
    rows = [
        (
            *(("", "") if at else (each.cell.label, each.system)),
            stage.series.field,
            *stage_tables.stage_numbers(stage.observed_counts, stage.observed),
        )
        for each in campaign.outcomes
        for at, stage in enumerate(several_stages(each.analysis) if each.analysis else ())
    ]
    header = ("cell", "measured on", "stage", *HEADINGS)
    caption = "Every stage, from the due time until the clock was read"
    return [Table(caption, header, tuple(rows), tuple(range(3, len(header))))] if rows else []


def answer_pictures(campaign: MeasuredCampaign) -> list[Block]:
    """Return all answers of each cell laid over each other, as the article's oscilloscope showed them."""
    return [
        picture
        for name, each in campaign.named
        if each.analysis and is_response(each.analysis)
        if (picture := answer_overlay.overlay_of_run(each.analysis, f": {name}"))
    ]


def thread_table(campaign: MeasuredCampaign) -> list[Block]:
    """Return a line for each thread, as cyclictest prints them; Act is the last latency."""
    rows = [row for each in campaign.outcomes for row in _thread_rows(each)]
    header = ("cell", "measured on", "thread", "CPU", "period [us]", *ENDS[:2], "Act [us]", *ENDS[2:])
    return [Table("Every thread", header, tuple(rows), tuple(range(3, len(header))), folded=True)] if rows else []


def _thread_rows(outcome: CellOutcome) -> Iterator[Row]:
    if analysis := outcome.analysis:
        for stream in (each for each in report_streams(analysis) if not each.pooled):
            series = stream.summary.series
            count, least, mean, most = stage_ends(stream.summary.observed)
            where = (outcome.cell.label, outcome.system, stream.name, stream.cpu, f"{series.period_ns / US.ns:g}")
            yield (*where, count, least, US.show(analysis.record.last_value(series.id)), mean, most)


EXTRA_TABLES: Mapping[str, tuple[str, Callable[[MeasuredCampaign], list[Block]]]] = {
    "matrix": ("Boards and kernels", kernel_matrix),
    "thresholds": ("Maximum and threshold", threshold_tables),
    "switch": ("Context switch from the fullest bins", context_switch_table),
    "app": ("Work, loop time and top of loop", loop_tables),
    "cycles": ("What the cycles tell", cycle_blocks),
    "stages": ("Stages", stage_table),
    "answers": ("All answers over the edge of the input", answer_pictures),
    "threads": ("Threads", thread_table),
}


def check_extras(names: Sequence[str]) -> None:
    """Raise UserError with the list of the extra tables if a name is not one of them."""
    for name in names:
        if name not in EXTRA_TABLES:
            raise UserError(f"extras: there is no section {name!r}; there are: {', '.join(EXTRA_TABLES)}")


def extra_sections(campaign: MeasuredCampaign, names: Sequence[str]) -> list[Section]:
    """Return extra tables by their names. Raises UserError as ``check_extras`` does."""
    check_extras(names)
    return [Section(name, EXTRA_TABLES[name][0], tuple(EXTRA_TABLES[name][1](campaign))) for name in names]
