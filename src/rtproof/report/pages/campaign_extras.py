# SPDX-License-Identifier: Apache-2.0
"""The further sections of a profile: what a cell measured besides the metrics of the table of cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rtproof import articles
from rtproof.articles import BELOW, Article, ArticleRow, ArticleStatement
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent
from rtproof.judge.analysis_model import is_response, several_stages
from rtproof.judge.doubts.row_statements import CONFIDENCE, contradiction
from rtproof.profiles import Bins
from rtproof.report import cumulative_curves, stage_tables
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.number_format import US, count_text, report_streams
from rtproof.report.pages.campaign_cells import (
    ARTICLE_PREFIX,
    CellOutcome,
    MeasuredCampaign,
    as_published,
    bins_of,
    numbers_of,
)
from rtproof.report.pages.published_figures import published_bin, published_threshold
from rtproof.report.sections import answers
from rtproof.report.stage_tables import ENDS, HEADINGS, ContextSwitch, stage_ends
from rtproof.statistics import share_upper
from rtproof.summary import loops
from rtproof.summary.counts import DominantBin
from rtproof.summary.loops import BAND_LEVEL

Row = tuple[str, ...]


def threshold_tables(campaign: MeasuredCampaign) -> list[Block]:
    """Return one table for each kind of latency that the profile has bins for, by the threshold of its article."""
    article = campaign.article
    share = article.threshold.value if article and article.threshold else cumulative_curves.SHARE
    published = campaign.published(*(cell for cell, _ in campaign.cells))
    tables = []
    for bins in campaign.profile.bins:
        found = [(name, stage) for name, each in campaign.named if (stage := each.stage(bins.stage))]
        caption = f"{bins.name.capitalize()}; the article's bins were {bins.count:,} of {duration(bins.width_ns)}"
        table = cumulative_curves.threshold_table(caption, found, share)
        beside = tuple(row for each in published for row in _published_threshold(each, bins, share))
        tables += [replace(table, rows=(*table.rows, *beside))] if found or beside else []
    periods = {cell.period_ns for cell in campaign.profile.cells}
    says = cumulative_curves.threshold_definition(share, periods.pop() if len(periods) == 1 else None)
    lost = article and not any(row[0].startswith(ARTICLE_PREFIX) for table in tables for row in table.rows)
    note = (article.threshold_note,) if article and lost and article.threshold_note else ()
    return [*tables, Text((says, *note))] if tables else []


def _published_threshold(row: ArticleRow, bins: Bins, share: float) -> Iterator[Row]:
    if numbers := numbers_of(row, bins.name):
        count, most = (as_published(numbers.figures.get(key), US) for key in ("count", "max"))
        threshold, period_ns = as_published(published_threshold(numbers, share), US), numbers.value("period")
        often = duration(period_ns / (1 - share)) if period_ns and threshold else ""
        if most or threshold:
            yield f"{ARTICLE_PREFIX}{row.label}", count, most, threshold, often


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
    rows: list[Row] = []
    for each in campaign.outcomes:
        if found := context_switch_of(each, bins):
            ends = (*_bin(found.interrupt), *_bin(found.task), found.range_us)
            rows.append((each.cell.label, each.system, count_text(found.n), *ends))
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
    return stage_tables.context_switch(interrupt, task, bins[0].width_ns, bins[1].width_ns)


def _bin(found: DominantBin) -> tuple[str, str]:
    return stage_tables.bin_text(found), percent(round(found.n / max(found.total, 1), 4))


def _published_switch(cell: str, row: ArticleRow, bins: Sequence[Bins]) -> Iterator[Row]:
    """Yield the row of an article that tells the fullest bin of the interrupt or of the task."""
    found, cells = [], []
    for each in bins:
        numbers = numbers_of(row, each.name)
        fullest, share = published_bin(numbers) if numbers else None, numbers and numbers.figures.get("bin_share")
        found.append(fullest)
        if not fullest:
            cells += ["", ""]
        elif share or not fullest.n:
            cells += [stage_tables.bin_text(fullest), f"over {share.text}" if share else ""]
        else:
            cells += _bin(fullest)
    early, late = found
    if early or late:
        between = ContextSwitch(early, late).range_us if early and late else ""
        yield cell, f"{ARTICLE_PREFIX}{row.label}", "", *cells, between


def loop_plots(campaign: MeasuredCampaign) -> list[Block]:
    """Return the plots of each cell's loops, with all systems in them. The first screen has the first plot."""
    plots = []
    for cell, group in campaign.cells:
        named = []
        for each in group:
            if each.analysis and each.loops:
                first = min(series.thread for series in each.analysis.record.series)
                name = f"{each.system}, thread {first}" if len(each.analysis.summaries) > 1 else each.system
                points = stage_tables.loop_points(each.analysis.record, {first: each.loops.length})
                named.append((name, points[first]))
        plots += stage_tables.loop_plots(named, f": {cell.label}" if len(campaign.cells) > 1 else "") if named else []
    without = [name for name, each in campaign.named if each.analysis and not each.loops]
    note = [Text((f"No sample was kept, so single loops are not known: {'; '.join(without)}.",))] if without else []
    return [*(replace(plot, foremost=not at) for at, plot in enumerate(plots)), *note]


CYCLES_EXPLAINED = (
    f"At most so many cycles out of the band are possible ({percent(BAND_LEVEL)} confidence, if cycles do not depend "
    "on each other): none of n still leaves up to 3 in n, the rule of three. A catch-up pair is a long cycle with a "
    "short one directly behind. The correlation is that of neighbouring cycles; a loop that makes up for each delay in "
    "its next cycle shows -0.5. A loop in virtual time has no possible share: run again it counts the same."
)


def cycle_plot(campaign: MeasuredCampaign) -> list[Block]:
    """Return a plot of the cycles, and what the metrics of cycles mean; [] without cycles."""
    measured = [each.cycles for each in campaign.outcomes if each.cycles]
    points = [
        (name, drawn)
        for name, each in campaign.named
        if each.analysis and each.cycles
        for drawn in list(loops.cycle_points(each.analysis.record).values())[:1]
    ]
    one_band = len({(found.low_ns, found.high_ns) for found in measured}) == 1
    plot = [stage_tables.cycle_plot(points, measured[0])] if points and one_band else []
    return [*plot, Text((CYCLES_EXPLAINED,))] if measured else []


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
        if (picture := answers.overlay_of_run(each.analysis, f": {name}"))
    ]


def thread_table(campaign: MeasuredCampaign) -> list[Block]:
    """Return a line for each thread, as cyclictest prints them; Act is the last latency."""
    rows: list[Row] = []
    for each in campaign.outcomes:
        for stream in report_streams(each.analysis) if each.analysis else ():
            if each.analysis and not stream.pooled:
                series = stream.summary.series
                count, least, mean, most = stage_ends(stream.summary.observed)
                where = (each.cell.label, each.system, stream.name, stream.cpu, f"{series.period_ns / US.ns:g}")
                rows.append((*where, count, least, US.show(each.analysis.record.last_value(series.id)), mean, most))
    header = ("cell", "measured on", "thread", "CPU", "period [us]", *ENDS[:2], "Act [us]", *ENDS[2:])
    return [Table("Every thread", header, tuple(rows), tuple(range(3, len(header))), folded=True)] if rows else []


HEADER = ("conclusion", "of", "n", "not below", "max [us]", "one every", "what this shows")
ONE_EVERY = (
    "One every: where none of n values was at the limit or above, they may still come as often as this "
    f"({percent(CONFIDENCE)} confidence, if values do not depend on each other). A missed activation counts with how "
    "late it was."
)


@dataclass(frozen=True)
class CheckedRow:
    """A row that a conclusion is about, or a run that repeats one. None: it is not known.

    of: label of the article's row, or name of the run. least, most: how many of ``count`` values were not below the
    limit. max_text: the maximum in us as the article printed it. every_ns: if none was, values may come this often.
    shows: what this says of the conclusion, in words.
    """

    of: str
    published: bool
    count: int | None = None
    least: int | None = None
    most: int | None = None
    max_ns: float | None = None
    max_text: str = ""
    every_ns: int | None = None
    shows: str = ""


CheckedConclusion = tuple[ArticleStatement, tuple[CheckedRow, ...]]
"""A conclusion on a limit, with the article's rows first and the runs that repeat them behind."""


def conclusions_section(campaign: MeasuredCampaign) -> Section:
    """Return a row for each row of the article that a conclusion is about, and for each run that repeats one."""
    rows = tuple(
        (
            "" if at else f"{each.field} {each.says} {each.limit.text if each.limit else ''}",
            f"{ARTICLE_PREFIX}{row.of}" if row.published else row.of,
            "" if row.count is None else count_text(row.count),
            "" if row.least is None else " to ".join(dict.fromkeys((f"{row.least:,}", f"{row.most:,}"))),
            row.max_text,
            "" if row.every_ns is None else duration(row.every_ns),
            row.shows,
        )
        for each, checked in checked_conclusions(campaign)
        for at, row in enumerate(checked)
    )
    caption = "The article's conclusions by its own figures, and by the runs that repeat its rows"
    table = Table(caption, HEADER, rows, (2, 3, 4, 5))
    return Section("conclusions", "What the article concludes", (table, Text((ONE_EVERY,))) if rows else ())


def checked_conclusions(campaign: MeasuredCampaign) -> list[CheckedConclusion]:
    """Return the conclusions on limits that are about rows which were repeated."""
    article, found = campaign.article, []
    for each in article.statements if article else ():
        repeating = [one for one in campaign.named if set(one[1].cell.article_rows) & set(each.rows)]
        if article and each.limit and repeating:
            bins = bins_of(campaign.profile, each.field)
            here = [_measured(name, one, bins.stage if bins else "", each) for name, one in repeating]
            found.append((each, (*_published(article, each), *here)))
    return found


def _published(article: Article, each: ArticleStatement) -> Iterator[CheckedRow]:
    claimed = {claim.name: {own.name: own for own in claim.figures} for claim in articles.claims(article)}
    for row in filter(None, map(article.row, each.rows)):
        figures = claimed[row.key][each.field]
        told = next(own for own in row.numbers if own.name == each.field).figures
        against = contradiction(figures)
        none = 0 if each.says == BELOW and not against and figures.count else None
        every_ns = None if none is None else _one_every(figures.count or 0, figures.period_ns)
        shown = against or ("" if "max" in told else "the article gives no maximum to check it with")
        most = as_published(told.get("max"), US)
        yield CheckedRow(row.label, True, figures.count, none, none, figures.max_ns, most, every_ns, shown)


def _one_every(count: int, period_ns: float | None) -> int | None:
    return round(period_ns / share_upper(0, count, CONFIDENCE)) if count and period_ns else None


def _measured(name: str, outcome: CellOutcome, stage: str, each: ArticleStatement) -> CheckedRow:
    summary = outcome.stage(stage)
    if summary is None or each.limit is None or not summary.schedule_counts.total:
        return CheckedRow(name, False, shows="not measured")
    n, most_ns = summary.schedule_counts.total, summary.observed.max
    least, most = summary.schedule_counts.exceedances(round(each.limit.value) - 1)
    period_ns = summary.series.period_ns / max(len(summary.threads), 1)
    every_ns = None if most or outcome.virtual else _one_every(n, period_ns)
    shown = _shown(outcome, least, most + summary.lost, each.says == BELOW)
    return CheckedRow(name, False, n, least, most, most_ns, US.show(most_ns), every_ns, shown)


def _shown(outcome: CellOutcome, least: int, most: int, below: bool) -> str:
    """least, most: how many values were not below the limit. below: the article concludes that none is."""
    if outcome.invalid:
        return f"nothing, for the run is INVALID: {outcome.invalid[0]}"
    if least:
        return "it does not hold here" if below else "it holds here"
    if most:
        return "undecided: values were lost, or a bin holds the limit"
    rate = "; virtual time shows no rate" if outcome.virtual else ""
    return f"{'it held here' if below else 'it was not seen here'}{rate}"


EXTRA_SECTIONS: Mapping[str, tuple[str, Callable[[MeasuredCampaign], list[Block]]]] = {
    "thresholds": ("Maximum and threshold", threshold_tables),
    "switch": ("Context switch from the fullest bins", context_switch_table),
    "app": ("Work, loop time and top of loop", loop_plots),
    "cycles": ("What the cycles tell", cycle_plot),
    "stages": ("Stages", stage_table),
    "answers": ("All answers over the edge of the input", answer_pictures),
    "threads": ("Threads", thread_table),
}


def check_extras(names: Sequence[str]) -> None:
    """Raise UserError with the list of the further sections if a name is not one of them."""
    for name in names:
        if name not in EXTRA_SECTIONS:
            raise UserError(f"extras: there is no section {name!r}; there are: {', '.join(EXTRA_SECTIONS)}")


def extra_sections(campaign: MeasuredCampaign) -> list[Section]:
    """Return the profile's further sections. A stored profile may name one that is there no more."""
    names = [name for name in campaign.profile.extras if name in EXTRA_SECTIONS]
    return [Section(name, EXTRA_SECTIONS[name][0], tuple(EXTRA_SECTIONS[name][1](campaign))) for name in names]
