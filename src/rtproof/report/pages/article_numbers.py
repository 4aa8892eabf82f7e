# SPDX-License-Identifier: Apache-2.0
"""The numbers that an article printed, one by one and in one picture: beside each the number measured here.

A row of the article stands beside the runs of the cell that repeats it. Of runs on several kernels those are taken
whose preemption model is that of the row. If there are none, all are taken, and the table names the other kernel.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rtproof.articles import ArticleFigure, ArticleNumbers, ArticleRow
from rtproof.core.phrases import duration, percent, quantity
from rtproof.judge.doubts.result_row import RowKind
from rtproof.profiles import Bins, Profile
from rtproof.report import number_format
from rtproof.report.blocks import BarPart, Bars, Block, Section, Table, Text
from rtproof.report.number_format import MS, NS, US, PrintedUnit, S, count_text
from rtproof.report.pages.campaign_cells import (
    ARTICLE_PREFIX,
    LOOP_PARTS,
    NOT_MEASURED,
    CellOutcome,
    MeasuredCampaign,
    OtherToolResult,
    bins_of,
    largest_text,
    load_averages,
    longest_answer_text,
    loop_summary,
    measured_length,
    results_of_stage,
    stalled_text,
)
from rtproof.summary import measured_kernel
from rtproof.summary.counts import NO_COUNTS, dominant_bin
from rtproof.summary.loops import is_app
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Moments, Summary

HEADER = ("row of the article", "number", "article", "here", "n here", "measured on, or why not here")
NOTE = (
    "The article measured another machine, with another kernel, for another length of time: its numbers stand beside "
    "those of this run, not against them. An empty cell has the same as the one above it."
)
NOT_HERE = "not here"
NO_VALUES = "-"
NOT_TOLD = "the run does not tell it"
NO_LOOPS = "the run kept no samples, which its loops are counted from"

FIGURES = {
    "period": "period",
    "count": "n",
    "low": "lower end of the band",
    "high": "upper end of the band",
    "below": "below the band",
    "above": "above the band",
    "min": "min",
    "actual": "last (Act)",
    "mean": "avg",
    "max": "max",
    "deviation": "sd",
    "bins": "bins",
    "bin_width": "width of a bin",
    "bin_start": "start of the first bin",
    "bin_from": "fullest bin from",
    "bin_to": "fullest bin to",
    "bin_share": "share in the fullest bin",
    "overflow": "beyond the last bin",
}
"""What the table calls an article's figures, in its order."""
UNITS = (NS, US, MS, S)
EXACT_FIGURES = ("period", "low", "high", "bins", "bin_width", "bin_start", "bin_from", "bin_to")
"""They were chosen and not measured, so that their decimals say nothing."""

CORE = "core"
PLAIN_MODELS = (measured_kernel.NONE, measured_kernel.VOLUNTARY, measured_kernel.FULL, measured_kernel.LAZY)
MODELS: Mapping[str, tuple[str, ...]] = {
    **{model: (model,) for model in (*PLAIN_MODELS, measured_kernel.RT)},
    "plain": PLAIN_MODELS,
    CORE: (measured_kernel.RT,),
}
"""By the preemption of an article's row: the models of the kernels whose runs stand beside it."""
KERNELS = {"rt": "PREEMPT_RT", "plain": "kernel without PREEMPT_RT", CORE: "co-kernel"}


ComparedNumber = tuple[str, str, str, str, str]
"""Name and text of an article's number, ours ("" for none), of how many values ours is, and why there is none.

For a number that is of no values their count is NO_VALUES.
"""
MeasuredNumbers = tuple[Mapping[str, float | None], Summary | None, str]
"""What was measured of one quantity.

Times in ns, counts and shares, by the key of the article's figure (missing or None if they are not told); the summary
of its values, if there is one; and why a number is not there.
"""


def article_section(campaign: MeasuredCampaign) -> Section:
    """Return a line for each number of the article's rows that the cells repeat; on a page also their picture."""
    lines = tuple(
        line
        for cell, group in campaign.cells
        for row in campaign.published(cell)
        for line in _row_lines(campaign.profile, group, row, results_of_stage(cell, campaign.given))
    )
    article, blocks = campaign.article, list[Block](article_picture(campaign))
    if article and lines:
        blocks.append(Table("Number by number", HEADER, lines, (2, 3, 4)))
        blocks.append(Text((NOTE, f"Source: {article.title}, {article.source}.")))
    return Section("article", "The article's numbers and ours", tuple(blocks) if lines else ())


def _row_lines(
    profile: Profile, group: Sequence[CellOutcome], row: ArticleRow, given: Sequence[OtherToolResult]
) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a row. Results of other tools in the cell's stage stand beside the row of a co-kernel."""
    beside = [(f"given: {each.tool}", _numbers_of_tool(each, row)) for each in given if row.preemption == CORE]
    if not beside:
        beside = [(_system_text(row, each), _numbers_of_run(profile, each, row)) for each in runs_beside(row, group)]
    name = row.label
    for system, numbers in beside:
        above = ("", "")
        for number, article, here, n, why in numbers:
            told = (n, system if here else f"{system}: {why}")
            changed = ("" if new == old else new for new, old in zip(told, above, strict=True))
            yield (name, number, article, here or NOT_HERE, *changed)
            name, above = "", told


def runs_beside(row: ArticleRow, group: Sequence[CellOutcome]) -> Sequence[CellOutcome]:
    return [each for each in group if _preemption(each) in MODELS.get(row.preemption, ())] or group


def _preemption(outcome: CellOutcome) -> str | None:
    """Return the preemption model of the kernel that was measured; None if it is not known.

    A kernel with PREEMPT_RT may have a second word, which says how its own code is preempted.
    """
    found = measured_kernel.preemption_model(outcome.analysis.record).effective if outcome.analysis else None
    return found.value.partition(" ")[0] if found and found.value else None


def _system_text(row: ArticleRow, outcome: CellOutcome) -> str:
    model = _preemption(outcome)
    if not row.preemption or model is None or (row.preemption != CORE and model in MODELS[row.preemption]):
        return outcome.system
    here, article = (KERNELS.get(each, f"preempt={each}") for each in (model, row.preemption))
    return f"{outcome.system}; {here} in place of the article's {article}"


def _numbers_of_run(profile: Profile, outcome: CellOutcome, row: ArticleRow) -> Iterator[ComparedNumber]:
    not_measured = "" if outcome.shown else outcome.failure or NOT_MEASURED
    for name, article, here, n in _figures_of_row(outcome, row):
        yield name, article, here, n, not_measured or NOT_TOLD
    for own in row.numbers:
        measured = ({}, None, not_measured) if not_measured else measured_numbers(profile, outcome, own)
        yield from _compared(own, measured, row)


def _figures_of_row(outcome: CellOutcome, row: ArticleRow) -> Iterator[tuple[str, str, str, str]]:
    """Yield what the article says of a whole run: name, its text, ours and of how many values ours is."""
    shown, cycles = outcome.shown, outcome.cycles
    if length := measured_length(row):
        yield "length", length, duration(shown.span_ns) if shown else "", NO_VALUES
    if row.loadavg:
        published = " ".join(f"{each:.2f}" for each in row.loadavg)
        yield "load average", published, " ".join(load_averages(outcome)), NO_VALUES
    if row.stopped:
        counted = count_text(cycles.counted) if cycles else NO_VALUES
        yield "stopped", "yes", stalled_text(cycles) if cycles else "", counted


def _numbers_of_tool(found: OtherToolResult, row: ArticleRow) -> Iterator[ComparedNumber]:
    values = {"count": found.count, "min": found.min_ns, "mean": found.mean_ns, "max": found.max_ns}
    for own in row.numbers:
        yield from _compared(own, (values, None, NOT_TOLD), row)


def _compared(own: ArticleNumbers, measured: MeasuredNumbers, row: ArticleRow) -> Iterator[ComparedNumber]:
    values, _, why = measured
    prefix, count = f"{own.name} " if len(row.numbers) > 1 else "", values.get("count")
    for name, article, here in _texts(own, measured):
        n = count_text(None if count is None else round(count)) if here else NO_VALUES
        yield f"{prefix}{name}", article, here, n, why


def _text(own: ArticleNumbers, measured: MeasuredNumbers, key: str, figure: ArticleFigure) -> str:
    """Our number of this key, in the unit that the article printed; "" if there is none."""
    values, summary, _ = measured
    if key == "max" and summary:
        longest = longest_answer_text if own.kind is RowKind.RESPONSE else largest_text
        unit = _unit(figure)
        return f"{longest(summary, unit)} {unit.name}" if summary.observed.count else ""
    here = _in_unit(values.get(key), figure)
    number, space, unit_name = here.partition(" ")
    return f"{number.rstrip('0').rstrip('.')}{space}{unit_name}" if key in EXACT_FIGURES and "." in here else here


def _texts(own: ArticleNumbers, measured: MeasuredNumbers) -> Iterator[tuple[str, str, str]]:
    """Yield each number that the article printed: its name, its text, and ours in the article's unit, "" for none."""
    _, summary, _ = measured
    for key, name in FIGURES.items():
        if figure := own.figures.get(key):
            printed = f"over {figure.text}" if key == "bin_share" else figure.text
            yield name, printed, _text(own, measured, key, figure)
    counts = summary.observed_counts if summary else NO_COUNTS
    for share, at in own.percentiles:
        known = summary and 0 < share.value < 1 and counts.n.size
        found = quantile(counts, share.value, ends=summary.observed).value if known and summary else None
        yield share.text, at.text, _in_unit(found, at)
    for share, at in own.curve:
        # A bin may hold the value, so that the share of values up to it is a range.
        ends = counts.exceedances(round(at.value)) if counts.total else ()
        texts = (number_format.share_text(counts.total - n, counts.total) for n in reversed(ends))
        yield f"up to {at.text}", share.text, " to ".join(dict.fromkeys(texts))


def _unit(figure: ArticleFigure) -> PrintedUnit:
    name = figure.text.split()[-1].lstrip("0123456789.>-")
    return next((each for each in UNITS if each.name == name), US)


def _in_unit(value: float | None, figure: ArticleFigure) -> str:
    if value is None:
        return ""
    if figure.unit == "%":
        return percent(round(value, 4))
    return _unit(figure)(value) if figure.unit == "ns" else f"{value:,.0f}"


THREAD = re.compile(r"thread (\d+)")
BIN_KEYS = ("bin_width", "bins")
"""The article's bins, where the profile has none."""
LOOP_KINDS = (RowKind.LENGTH, RowKind.LOOP, RowKind.TOP)
CYCLE_FIGURES = {"count": "counted", "below": "short", "above": "long"}
"""The keys of figures that an analysis calls otherwise; of all others it has the key with "_ns"."""


def measured_numbers(profile: Profile, outcome: CellOutcome, own: ArticleNumbers) -> MeasuredNumbers:
    """Return our numbers of this thread or field. The outcome has an analysis."""
    if own.kind in LOOP_KINDS and own.name in LOOP_PARTS:
        moments = loop_summary(outcome, own.name)
        if moments is None:
            return {}, None, NO_LOOPS if outcome.analysis and is_app(outcome.analysis.record) else NOT_TOLD
        return {"period": outcome.cell.period_ns, "count": moments.count, **_ends(moments)}, None, NOT_TOLD
    if own.kind is RowKind.LENGTH:
        keys = ("period", "count", "low", "high", "below", "above", "min", "max") if outcome.cycles else ()
        return {key: getattr(outcome.cycles, CYCLE_FIGURES.get(key, f"{key}_ns")) for key in keys}, None, NOT_TOLD
    if thread := THREAD.fullmatch(own.name):
        return _of_thread(outcome, own, int(thread[1]))
    bins = bins_of(profile, own.name)
    summary = outcome.stage(bins.stage) if bins else outcome.shown
    if summary is None:
        return {}, None, f"the way that was taken does not tell the {own.name} apart"
    return _of_summary(summary, own, bins)


def _of_thread(outcome: CellOutcome, own: ArticleNumbers, number: int) -> MeasuredNumbers:
    analysis, shown = outcome.analysis, outcome.shown
    if analysis is None or shown is None:
        return {}, None, NOT_MEASURED
    threads = [
        each for each in analysis.summaries if each.series.field == shown.series.field or len(analysis.stages) < 2
    ]
    if number >= len(threads):
        return {}, None, f"the run has {quantity(len(threads), 'thread')}, one on each processor"
    values, summary, why = _of_summary(threads[number], own, None)
    return {**values, "actual": analysis.record.last_value(threads[number].series.id)}, summary, why


def _of_summary(summary: Summary, own: ArticleNumbers, bins: Bins | None) -> MeasuredNumbers:
    observed, counts = summary.observed, summary.observed_counts
    values = {"period": summary.apart_ns, "count": observed.count, **_ends(observed)}
    width_ns, number = (bins.width_ns, bins.count) if bins else (round(own.value(key) or 0) for key in BIN_KEYS)
    if width_ns and (fullest := dominant_bin(counts, width_ns)):
        values |= {
            "bins": number or None,
            "bin_width": width_ns,
            "bin_start": 0,
            "bin_from": fullest.start,
            "bin_to": fullest.end,
            "bin_share": fullest.n / fullest.total,
            "overflow": counts.fixed_bins(0, width_ns, number).above if number else None,
        }
    return values, summary, NOT_TOLD


def _ends(moments: Moments) -> dict[str, float | None]:
    if not moments.count:
        return {}
    return {"min": moments.min, "mean": moments.mean, "max": moments.max, "deviation": moments.deviation}


# The next functions draw the smallest, average and largest values of the article's rows and ours.


PICTURE_SAYS = (
    "Each bar goes from the smallest value to the largest, on a logarithmic axis, and changes its colour at the "
    "average. It begins at the edge where no smallest value is known. What was measured here stands below what the "
    "article printed."
)
KINDS = tuple(f"{whose}, up to the {end}" for whose in ("article", "here") for end in ("average", "largest"))
MOST_BARS = 60
FEWEST_ROWS = 2
ENDS = ("min", "mean", "max")
NARROW = 1.02
"""A bar of one value only ends at this many times its begin, so that it is seen."""
ValueBar = tuple[str, bool, Mapping[str, float | None], Mapping[str, str]]
"""The name of a bar, whether it is the article's, its values in ns, and the same as words, by name of the figure."""


def article_picture(campaign: MeasuredCampaign) -> list[Bars]:
    """Return the picture; none if fewer than two rows of the article have a largest value above 0."""
    found = [
        bar
        for cell, group in campaign.cells
        for row in campaign.published(cell)
        for own in row.numbers
        for bar in _bars(campaign.profile, group, row, own)
        if (bar[2].get("max") or 0) > 0
    ]
    shown = found[:MOST_BARS]
    if sum(published for _, published, _, _ in shown) < FEWEST_ROWS:
        return []
    ends_us = [US.scale(ns) for _, _, values, _ in shown for key in ENDS if (ns := values.get(key)) and ns > 0]
    begin, end = min(ends_us) / NARROW, max(ends_us)
    printed = [", ".join(f"{FIGURES[key]} {bar[3][key]}" for key in ENDS[1:] if bar[3].get(key)) for bar in shown]
    bars = tuple((bar[0], _parts(bar, words, begin)) for bar, words in zip(shown, printed, strict=True))
    used = {part.kind for _, parts in bars for part in parts}
    kinds = tuple(kind for kind in KINDS if kind in used)
    left_out = f" Of {len(found)} bars the first {MOST_BARS} are drawn." if len(found) > MOST_BARS else ""
    title, says = "The article's values and ours in one picture", f"{PICTURE_SAYS}{left_out}"
    return [Bars(title, says, "us, logarithmic", kinds, bars, end, log=True, begin=begin, values=tuple(printed))]


def _bars(profile: Profile, group: Sequence[CellOutcome], row: ArticleRow, own: ArticleNumbers) -> Iterator[ValueBar]:
    """Yield the bar of the article's values, and those of the runs that they stand beside."""
    name = f", {own.name}" if len(row.numbers) > 1 else ""
    values_ns = {key: own.value(key) for key in own.figures}
    yield f"{ARTICLE_PREFIX}{row.label}{name}", True, values_ns, {key: own.figures[key].text for key in own.figures}
    for outcome in runs_beside(row, group) if "max" in own.figures else []:
        found = measured_numbers(profile, outcome, own) if outcome.shown else None
        if found and found[0]:
            here = {key: _text(own, found, key, figure) for key, figure in own.figures.items()}
            yield f"here: {outcome.system}{name}", False, found[0], here


def _parts(bar: ValueBar, words: str, axis_begin: float) -> tuple[BarPart, ...]:
    """The parts of a bar. On a logarithmic axis a value below its begin is drawn there."""
    least, mean, most = (US.scale(bar[2].get(key) or 0) for key in ENDS)
    to_mean, to_most = KINDS[:2] if bar[1] else KINDS[2:]
    begin = min(max(least, axis_begin), most / NARROW)
    if not begin < mean < most:
        return (BarPart(to_most, begin, most, words),)
    return BarPart(to_mean, begin, mean, words), BarPart(to_most, mean, most, words)
