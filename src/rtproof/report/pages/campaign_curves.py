# SPDX-License-Identifier: Apache-2.0
"""The curves and the further tables of a campaign's page, as the articles print them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rtproof.articles import Article, ArticleFigure, ArticleNumbers, ArticleRow, ArticleStatement
from rtproof.compare.tail_crossing import (
    TailCrossing,
    TailDistance,
    TailLikeness,
    TailSample,
    tail_crossing,
    tail_distance,
    tail_sample,
)
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, limit_value, percent, quantity, value
from rtproof.judge.analysis_model import several_stages
from rtproof.profiles import Bins, CellPlan, Profile
from rtproof.report import answer_overlay, cumulative_curves, number_format, stage_tables
from rtproof.report.blocks import Block, Marker, Plot, Section, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import US, report_streams
from rtproof.report.pages import campaign_table
from rtproof.report.pages.campaign_outcomes import CellOutcome, outcomes_by_name
from rtproof.report.pages.campaign_table import (
    ARTICLE_PREFIX,
    article_rows,
    as_published,
    loop_summary,
    outcomes_by_cell,
)
from rtproof.report.pages.published_figures import (
    numbers_of,
    published_bin,
    published_curves,
    published_numbers,
    published_threshold,
)
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.sections.timeline import NamedSummary, maxima_plot
from rtproof.report.stage_tables import ENDS, HEADINGS, LoopPoints, stage_ends, stage_numbers
from rtproof.statistics import share_upper
from rtproof.summary import loops
from rtproof.summary.counts import DominantBin, dominant_bin, merge_counts
from rtproof.summary.loops import BAND_LEVEL, DrawnPoints, most_cycles_out_of_band
from rtproof.summary.summary_model import Cycles, Summary

TAILS_EXPLAINED = (
    "Better: from that latency on fewer activations are later, up to where chance decides. The same: at no latency "
    "more than 2 % of the activations apart. Independent: n counts for less where neighbouring activations resemble "
    "each other. Slower changes are not seen, so a small difference may be one between any two runs."
)
MOST_PAIRS = 30
"""The largest number of pairs that are compared. Pairs of the same cell or the same system come first."""


@dataclass(frozen=True)
class CellCurve:
    """The curve of a cell. name: of the cell, and of the system where there are several."""

    name: str
    outcome: CellOutcome
    summary: Summary


@dataclass(frozen=True)
class CurvePair:
    """Two curves of one kind of latency. better, apart: None where nothing surely differs, or nothing was measured."""

    first: CellCurve
    second: CellCurve
    samples: tuple[TailSample, TailSample]
    better: TailCrossing | None
    apart: TailDistance | None

    @property
    def virtual(self) -> bool:
        """Whether a run was in virtual time, which has no chance."""
        return self.first.outcome.virtual or self.second.outcome.virtual


def curve_pairs(profile: Profile, outcomes: Sequence[CellOutcome]) -> list[tuple[str, list[CurvePair]]]:
    """Return each kind of latency that the profile draws curves of, with at most MOST_PAIRS pairs of curves."""
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    return [(each.name, list(_compared_pairs(_cell_curves(outcomes, each.stage)))) for each in parts if each.zooms]


def tails_section(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> Section:
    """Return the comparison of tails for each kind of latency that the profile draws curves of."""
    tables = [table for name, some in curve_pairs(profile, outcomes) for table in _pair_tables(name, some, article)]
    return Section("tails", "What the curves tell", (*tables, Text((TAILS_EXPLAINED,))) if tables else ())


def _cell_curves(outcomes: Sequence[CellOutcome], stage: str) -> list[CellCurve]:
    found = [(name, each, each.stage(stage)) for name, each in outcomes_by_name(outcomes)]
    return [CellCurve(name, each, part) for name, each, part in found if part is not None and part.observed.count]


def _pair_tables(name: str, some: list[CurvePair], article: Article | None) -> list[Block]:
    rows = tuple(_pair_row(pair) for pair in some)
    if not rows:
        return []
    header = ("first", "second", "n (independent)", "better", "largest distance")
    return [Table(f"The {name} of cells two by two", header, (*rows, *_published_pairs(name, article)))]


def _compared_pairs(drawn: list[CellCurve]) -> Iterator[CurvePair]:
    samples = {id(each): tail_sample(each.summary) for each in drawn}
    found = sorted(combinations(drawn, 2), key=lambda pair: not _share_system_or_cell(*pair))
    for first, second in found[:MOST_PAIRS]:
        a, b = samples[id(first)], samples[id(second)]
        yield CurvePair(first, second, (a, b), tail_crossing(a, b), tail_distance(a, b))


def _share_system_or_cell(first: CellCurve, second: CellCurve) -> bool:
    return first.outcome.system == second.outcome.system or first.outcome.cell.key == second.outcome.cell.key


def _pair_row(pair: CurvePair) -> tuple[str, ...]:
    first, second = pair.first.name, pair.second.name
    worth = "; ".join(map(_effective_count_text, pair.samples))
    return (
        first,
        second,
        worth,
        _better_text(first, second, pair.better),
        _distance_text(pair.apart, virtual=pair.virtual) if pair.apart else "",
    )


def _effective_count_text(of: TailSample) -> str:
    return f"{of.counts.total:,} ({round(of.effective):,})"


def _better_text(first: str, second: str, found: TailCrossing | None) -> str:
    if found is None:
        return "neither, as far as chance does not decide"
    better = first if found.first_is_better else second
    if found.above is None:
        return f"{better}, throughout up to {value(found.until)}"
    top = percent(_two_digits(found.top_share))
    return f"{better}, above {value(found.above)}, the top {top}, up to {value(found.until)}"


def _distance_text(found: TailDistance, *, virtual: bool) -> str:
    """Return the largest distance, and what chance allows; nothing is chance in virtual time."""
    seen, most = percent(_two_digits(found.seen)), percent(_two_digits(found.most))
    where = f"{seen} at {value(found.at)}"
    if virtual:
        return where
    if found.likeness is TailLikeness.SAME:
        return f"{where}; the same, surely nowhere above {most}"
    if found.likeness is TailLikeness.DIFFERENT:
        return f"{where}; different, surely above {percent(_two_digits(found.least))} somewhere"
    return f"{where}; undecided, up to {most} is possible"


def _two_digits(share: float) -> float:
    return float(f"{share:.2g}")


def _published_pairs(name: str, article: Article | None) -> Iterator[tuple[str, ...]]:
    for each in article.statements if article else ():
        if article and name.startswith(each.field) and not each.limit:
            first, second = (row.label if (row := article.row(key)) else key for key in each.rows)
            yield (f"article: {first}", f"article: {second}", "", *_statement_cells(first, each))


def _statement_cells(first: str, each: ArticleStatement) -> tuple[str, str]:
    if each.says == "same":
        return "", "nearly the same"
    above = f", above {each.above.text}" if each.above else ""
    return f"{first}{above}, the top {each.top_share.text}" if each.top_share else f"{first}{above}", ""


def threshold_tables(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """Return one table for each kind of latency that the profile has bins for, by the threshold of its article."""
    share = article.threshold.value if article and article.threshold else cumulative_curves.SHARE
    tables = [table for each in profile.bins for table in _threshold_table(each, outcomes, article, share)]
    periods = {cell.period_ns for cell in profile.cells}
    says = cumulative_curves.threshold_definition(share, periods.pop() if len(periods) == 1 else None)
    beside = any(row[0].startswith(ARTICLE_PREFIX) for table in tables for row in table.rows)
    note = (article.threshold_note,) if article and article.threshold_note and not beside else ()
    return [*tables, Text((says, *note))] if tables else []


def _threshold_table(
    bins: Bins, outcomes: Sequence[CellOutcome], article: Article | None, share: float
) -> Iterator[Table]:
    found = [(name, each.stage(bins.stage)) for name, each in outcomes_by_name(outcomes)]
    known = [(name, summary) for name, summary in found if summary is not None]
    caption = f"{bins.name.capitalize()}; the article's bins were {bins.count:,} of {duration(bins.width_ns)}"
    cells = [cell for cell, _ in outcomes_by_cell(outcomes)]
    beside = (_published_threshold(*each, share) for each in published_numbers(bins, cells, article))
    told = tuple(row for row in beside if any(row[2:]))
    if known or told:
        table = cumulative_curves.threshold_table(caption, known, share)
        yield replace(table, rows=(*table.rows, *told))


def _published_threshold(row: ArticleRow, numbers: ArticleNumbers, share: float) -> tuple[str, ...]:
    count, most = (as_published(numbers.figures.get(key), US) for key in ("count", "max"))
    threshold, period_ns = as_published(published_threshold(numbers, share), US), numbers.value("period")
    often = duration(period_ns / (1 - share)) if period_ns and threshold else ""
    return (f"{ARTICLE_PREFIX}{row.label}", count, most, threshold, often)


def context_switch_table(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """Return the time from the interrupt to the task, as far as the fullest bin of each shows it.

    The profile's first bins are those of the interrupt, its second bins those of the task.
    """
    if len(profile.bins) != 2:
        return []
    rows = [_context_switch_row(each, found) for each in outcomes if (found := context_switch_time(each, profile.bins))]
    note = DOMINANT_RANGE_NOTE if rows else NO_DOMINANT_BIN
    cells = [cell for cell, _ in outcomes_by_cell(outcomes)]
    rows += [
        row
        for cell in cells
        for each in article_rows(cell, article)
        for row in _published_context_switch(cell.label, each, profile.bins)
    ]
    header = (
        *("cell", "measured on", "n", "interrupt, fullest bin [us]", "share in it"),
        *("task, fullest bin [us]", "share in it", "context switch [us]"),
    )
    caption = "Context switch: from the fullest bin of the interrupt to the fullest bin of the task"
    table = [Table(caption, header, tuple(rows), tuple(range(2, len(header))))] if rows else []
    return [*table, Text((note,))]


NO_DOMINANT_BIN = "No way that was taken tells the interrupt apart, so there is no context switch to tell of here."
DOMINANT_RANGE_NOTE = (
    "The difference of two bins is a range: from the end of the one to the start of the other at least, from the start "
    "of the one to the end of the other at most."
)


@dataclass(frozen=True)
class ContextSwitchTime:
    """The fullest bins of interrupt and task, and the bounds of the context switch, in nanoseconds."""

    interrupt: DominantBin
    task: DominantBin

    @property
    def least(self) -> int:
        return max(self.task.start - self.interrupt.end, 0)

    @property
    def most(self) -> int:
        return self.task.end - self.interrupt.start

    @property
    def n(self) -> int:
        return min(self.interrupt.total, self.task.total)


def context_switch_time(outcome: CellOutcome, bins: Sequence[Bins]) -> ContextSwitchTime | None:
    """Return the context switch; None where the interrupt was not measured apart.

    bins: those of the interrupt and those of the task.
    """
    if len(bins) != 2:
        return None
    stages = [outcome.stage(each.stage) for each in bins]
    if stages[0] is None or stages[1] is None or stages[0] is stages[1]:
        return None
    early = dominant_bin(stages[0].observed_counts, bins[0].width_ns)
    late = dominant_bin(stages[1].observed_counts, bins[1].width_ns)
    if early is None or late is None:
        return None
    return ContextSwitchTime(early, late)


def _context_switch_row(outcome: CellOutcome, found: ContextSwitchTime) -> tuple[str, ...]:
    bins = (*_bin_text(found.interrupt), *_bin_text(found.task))
    return (outcome.cell.label, outcome.system, number_format.count_text(found.n), *bins, _between_text(found))


def _between_text(found: ContextSwitchTime) -> str:
    return f"{_us_text(found.least)} to {_us_text(found.most)}"


def _bin_text(found: DominantBin) -> tuple[str, str]:
    return f"{_us_text(found.start)} to {_us_text(found.end)}", percent(round(found.n / max(found.total, 1), 4))


def _us_text(ns: int) -> str:
    return f"{ns / US.ns:g}"


def _published_context_switch(cell: str, row: ArticleRow, bins: Sequence[Bins]) -> Iterator[tuple[str, ...]]:
    several = [numbers_of(row, each.name) for each in bins]
    found = [published_bin(each) if each else None for each in several]
    texts = [_published_bin_text(*each) for each in zip(several, found, strict=True)]
    if any(found):
        early, late = found
        between = _between_text(ContextSwitchTime(early, late)) if early and late else ""
        yield (cell, f"{ARTICLE_PREFIX}{row.label}", "", *texts[0], *texts[1], between)


def _published_bin_text(numbers: ArticleNumbers | None, found: DominantBin | None) -> tuple[str, str]:
    if numbers is None or found is None:
        return "", ""
    edges, share = _bin_text(found)
    printed = numbers.figures.get("bin_share")
    return edges, f"over {printed.text}" if printed else share


MOST_CURVES = 8
"""The largest number of curves in a plot. With more curves, each cell has plots of its own."""


def overview_section(profile: Profile, outcomes: Sequence[CellOutcome]) -> Section:
    """Return the plots of the first screen: all latencies of each cell, and the largest over time.

    With many cells, those with the largest latencies are drawn.
    """
    known = [(name, each.shown) for name, each in outcomes_by_name(outcomes)]
    filled = [NamedSummary(name, shown) for name, shown in known if shown and shown.observed.count]
    latest_first = sorted(range(len(filled)), key=lambda at: -filled[at].summary.observed.max)
    drawn = [filled[at] for at in sorted(latest_first[:MOST_CURVES])]
    left_out = (
        f"Of {len(filled)} cells the {MOST_CURVES} with the largest latencies are drawn."
        if len(drawn) < len(filled)
        else ""
    )
    plots = [_all_latencies(profile, drawn, left_out), _over_time(profile, outcomes, drawn, left_out)]
    return Section("overview", "All cells", tuple(plot for plot in plots if plot))


def _all_latencies(profile: Profile, drawn: Sequence[NamedSummary], left_out: str) -> Plot | None:
    if not drawn:
        return None
    curves = [NamedCounts(each.name, each.summary.observed_counts) for each in drawn]
    count = sum(each.counts.total for each in curves)
    worst = max(drawn, key=lambda each: each.summary.observed.max)
    early = left_of_log_axis(merge_counts(each.counts for each in curves))
    says = (
        f"How often each latency occurred, in {quantity(count, 'activation')} that ran. The bins grow with latency. "
        f"The largest latency is {value(worst.summary.observed.max)}, in '{worst.name}'.{early} {left_out}"
    )
    return log_histogram_plot(curves, _limit_markers(profile), US, says.strip(), 1)


def _over_time(
    profile: Profile, outcomes: Sequence[CellOutcome], drawn: Sequence[NamedSummary], left_out: str
) -> Plot | None:
    """Return the largest latencies over time; None where the first screen has the loops' times."""
    timed = [each for each in drawn if (each.summary.seconds.obtained > 0).any()]
    if not timed or any(each.loops for each in outcomes):
        return None
    markers = tuple(replace(each, axis="y") for each in _limit_markers(profile))
    return maxima_plot(timed, markers, US, left_out)


def curves_section(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None = None) -> Section:
    """Return the curves of each latency that the profile has bins for, else of the latency that the rows show.

    The article's curves stand beside them, as far as its figures have them.
    """
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    drawn = [block for each in parts if each.zooms for block in _curve_blocks(profile, each, outcomes, article)]
    return Section("curves", "Cumulative percentages", tuple(drawn))


def _curve_blocks(
    profile: Profile, bins: Bins, outcomes: Sequence[CellOutcome], article: Article | None
) -> Iterator[Block]:
    cells = outcomes_by_cell(outcomes)
    curves = _named_curves(bins, outcomes_by_name(outcomes), [cell for cell, _ in cells], article)
    if len(curves) <= MOST_CURVES:
        yield from _curve_plots(profile, bins, curves, bins.name)
        return
    for cell, group in cells:
        curves = _named_curves(bins, [(each.system, each) for each in group], [cell], article)
        yield from _curve_plots(profile, bins, curves, f"{bins.name}, {cell.label}")


def _named_curves(
    bins: Bins, outcomes: Sequence[tuple[str, CellOutcome]], cells: Sequence[CellPlan], article: Article | None
) -> list[NamedCounts]:
    """The curves that were measured, and behind them those of the article's rows that these cells repeat."""
    found = [(name, each.stage(bins.stage)) for name, each in outcomes]
    measured = [NamedCounts(name, stage.observed_counts) for name, stage in found if stage and stage.observed.count]
    return [*measured, *published_curves(bins, cells, article)]


def _curve_plots(profile: Profile, bins: Bins, curves: list[NamedCounts], title: str) -> Iterator[Block]:
    zooms = [zoom / 100 for zoom in bins.zooms]
    for plot in cumulative_curves.cumulative_plots(
        curves[:MOST_CURVES], zooms, US, bins.name, () if bins.stage else _limit_markers(profile)
    ):
        yield replace(plot, title=f"{plot.title}: {title}")
    more = [f"Of {len(curves)} curves the first {MOST_CURVES} are drawn."] if len(curves) > MOST_CURVES else []
    notes = tuple(filter(None, (*more, cumulative_curves.left_out_of_plot(curves[:MOST_CURVES], zooms))))
    if notes:
        yield Text(notes)


def _limit_markers(profile: Profile) -> tuple[Marker, ...]:
    """Return a marker for each limit. Limits are set for the whole reaction, not for a stage of it."""
    limits = dict.fromkeys(claim.limit_ns for claim in profile.claims)
    return tuple(Marker(f"limit {limit_value(limit_ns)}", "x", US.scale(limit_ns)) for limit_ns in limits)


LOOP_PARTS = {"work": "work duration", "loop": "overall loop time", "top": "top of loop timing error"}
"""Keys: the names that the article's figures have."""
LOOP_LINES = {"min": "minimum", "max": "maximum", "mean": "average", "deviation": "standard deviation"}
SHARED_TERMS = "Top of loop timing error: what all loops share, and what varies"
LOOP_TERMS = ("min", "mean", "max", "deviation")
"""Names of the moments in an analysis and, after "top.", in an article's figures."""
LOOP_SUMMARY = "No sample was kept, so that single loops, and with them these tables and plots, are not to be had: "


def loop_tables(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """Return one table and one plot for each cell, with all systems in both. The first screen has the first plot."""
    found = _first_plot_foremost(list(_loop_tables(outcomes_by_cell(outcomes), article)))
    without = [f"{each.cell.label}, {each.system}" for each in outcomes if each.analysis and not each.loops]
    return [*found, *([Text((f"{LOOP_SUMMARY}{'; '.join(without)}.",))] if without else [])]


def _loop_tables(cells: list[tuple[CellPlan, list[CellOutcome]]], article: Article | None) -> Iterator[Block]:
    for cell, group in cells:
        yield from _loop_table(cell, group, [*article_rows(cell, article)], len(cells) > 1)


def _first_plot_foremost(blocks: list[Block]) -> list[Block]:
    first = next((block for block in blocks if isinstance(block, Plot)), None)
    return [replace(block, foremost=True) if first and block is first else block for block in blocks]


def _loop_table(
    cell: CellPlan, group: Sequence[CellOutcome], published: Sequence[ArticleRow], several: bool
) -> Iterator[Block]:
    told = [each for each in group if each.loops]
    if not told:
        return
    of = f": {cell.label}" if several else ""
    here = [f"{each.system} (n = {_loop_count(each):,})" for each in told]
    rows = tuple(row for part, words in LOOP_PARTS.items() for row in _loop_rows(part, words, told))
    caption = f"Work, overall loop time and top of loop timing error{of}"
    yield Table(caption, ("", "[us]", *here), rows, tuple(range(2, 2 + len(here))))
    header = ("[us]", *here, *(f"{ARTICLE_PREFIX}{row.label}" for row in published))
    columns = [*(_measured_lateness(each) for each in told), *(_published_lateness(row) for row in published)]
    names = [name for name, _ in loops.loop_lateness(None, None, None, None)]
    yield Table(SHARED_TERMS, header, tuple(zip(names, *columns, strict=True)), tuple(range(1, len(header))))
    yield from stage_tables.loop_plots([named for each in told for named in _drawn_loops(each)], of)


def _loop_rows(part: str, words: str, told: Sequence[CellOutcome]) -> Iterator[tuple[str, ...]]:
    for at, (name, line) in enumerate(LOOP_LINES.items()):
        yield ("" if at else words, line, *(_measured_times(each, part, name) for each in told))


def _loop_count(outcome: CellOutcome) -> int:
    return outcome.loops.work.count if outcome.loops else 0


def _measured_lateness(outcome: CellOutcome) -> list[str]:
    found = loop_summary(outcome, "top")
    terms = [getattr(found, name) if found and found.count else None for name in LOOP_TERMS]
    return [US.show(ns) for _, ns in loops.loop_lateness(*terms)]


def _published_lateness(row: ArticleRow) -> list[str]:
    """Return the article's figures with the digits that it printed."""
    told = [row.figures.get(f"top.{name}") for name in LOOP_TERMS]
    parts = loops.loop_lateness(*(figure.value if figure else None for figure in told))
    step = max((figure.step for figure in told[:3] if figure), default=0)
    exact = [None if ns is None else ArticleFigure("", ns, "ns", step) for _, ns in parts[:3]]
    return [as_published(figure, US) for figure in (*exact, told[3])]


def _measured_times(outcome: CellOutcome, part: str, name: str) -> str:
    found = loop_summary(outcome, part)
    return US.show(getattr(found, name) if found and found.count else None)


def _drawn_loops(outcome: CellOutcome) -> Iterator[tuple[str, LoopPoints]]:
    """Yield the loops of the first thread to draw. With several threads, the curve's name says which thread it is."""
    if outcome.analysis is None or outcome.loops is None:
        return
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


def cycle_blocks(_profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Block]:
    """Return the cycles of loops: a plot, a row for each cell on each system, and what it means; [] without cycles."""
    found = [row for cell, group in outcomes_by_cell(outcomes) for row in _cycle_rows(cell, group, article)]
    measured = [each.analysis.cycles for each in outcomes if each.analysis and each.analysis.cycles]
    if not measured:
        return []
    bands = dict.fromkeys(map(_band_text, measured))
    caption = f"Cycles out of the band of {' or '.join(bands)}"
    table = Table(caption, CYCLE_HEADER, tuple(found), tuple(range(2, len(CYCLE_HEADER))))
    points = [(name, each) for name, outcome in outcomes_by_name(outcomes) for each in _drawn_cycles(outcome)]
    plot = [stage_tables.cycle_plot(points, measured[0])] if points and len(bands) == 1 else []
    return [*plot, table, Text((CYCLES_EXPLAINED,))]


def _drawn_cycles(outcome: CellOutcome) -> list[DrawnPoints]:
    """The cycles of the first thread; none of a cell without them."""
    analysis = outcome.analysis
    return list(loops.cycle_points(analysis.record).values())[:1] if analysis and analysis.cycles else []


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


def answer_pictures(_profile: Profile, outcomes: Sequence[CellOutcome], _article: Article | None) -> list[Block]:
    """Return all answers of each cell laid over each other, as the article's oscilloscope showed them."""
    drawn = (
        answer_overlay.overlay_of_run(each.analysis, f": {name}")
        for name, each in outcomes_by_name(outcomes)
        if each.analysis and stage_tables.is_response(each.analysis)
    )
    return [picture for picture in drawn if picture]


def thread_table(_profile: Profile, outcomes: Sequence[CellOutcome], _article: Article | None) -> list[Block]:
    """Return a line for each thread, as cyclictest prints them; Act is the last latency."""
    rows = [row for each in outcomes for row in _thread_rows(each)]
    if not rows:
        return []
    header = ("cell", "measured on", "thread", "CPU", "period [us]", *ENDS[:2], "Act [us]", *ENDS[2:])
    return [Table("Every thread", header, tuple(rows), tuple(range(3, len(header))), folded=True)]


def _thread_rows(outcome: CellOutcome) -> Iterator[tuple[str, ...]]:
    analysis = outcome.analysis
    for stream in report_streams(analysis) if analysis else ():
        if analysis and not stream.pooled:
            series = stream.summary.series
            count, least, mean, most = stage_ends(stream.summary.observed)
            last = US.show(analysis.record.last_value(series.id))
            where = (outcome.cell.label, outcome.system, stream.name, stream.cpu, f"{series.period_ns / US.ns:g}")
            yield (*where, count, least, last, mean, most)


RenderExtra = Callable[[Profile, Sequence[CellOutcome], Article | None], list[Block]]
EXTRA_TABLES: Mapping[str, tuple[str, RenderExtra]] = {
    "matrix": ("Boards and kernels", campaign_table.kernel_matrix),
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


def extra_sections(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Section]:
    """Return the extra tables that the profile asks for. Raises UserError as ``check_extras`` does."""
    check_extras(profile.extras)
    found = [(name, *EXTRA_TABLES[name]) for name in profile.extras]
    drawn = [Section(name, title, tuple(render(profile, outcomes, article))) for name, title, render in found]
    return [section for section in drawn if section.blocks]
