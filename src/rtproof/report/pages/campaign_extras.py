# SPDX-License-Identifier: Apache-2.0
"""The further sections of a profile: what a cell measured besides the metrics of the table of cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent
from rtproof.judge.analysis_model import is_response, several_stages
from rtproof.profiles import Bins
from rtproof.report import cumulative_curves, stage_tables
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.number_format import US, count_text, report_streams
from rtproof.report.pages.campaign_cells import (
    CellOutcome,
    MeasuredCampaign,
)
from rtproof.report.sections import answers
from rtproof.report.stage_tables import ENDS, HEADINGS, ContextSwitch, stage_ends
from rtproof.summary import loops
from rtproof.summary.counts import DominantBin
from rtproof.summary.loops import BAND_LEVEL

Row = tuple[str, ...]


def threshold_tables(campaign: MeasuredCampaign) -> list[Block]:
    """Return one table for each kind of latency that the profile has bins for, by the threshold of its article."""
    article = campaign.article
    share = article.threshold.value if article and article.threshold else cumulative_curves.SHARE
    tables: list[Block] = []
    for bins in campaign.profile.bins:
        found = [(name, stage) for name, each in campaign.named if (stage := each.stage(bins.stage))]
        caption = f"{bins.name.capitalize()}; the article's bins were {bins.count:,} of {duration(bins.width_ns)}"
        tables += [cumulative_curves.threshold_table(caption, found, share)] if found else []
    periods = {cell.period_ns for cell in campaign.profile.cells}
    says = cumulative_curves.threshold_definition(share, periods.pop() if len(periods) == 1 else None)
    note = (article.threshold_note,) if article and article.threshold_note else ()
    return [*tables, Text((says, *note))] if tables else []


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
    if not rows:
        return [Text((NO_DOMINANT_BIN,))]
    caption = "Context switch: from the fullest bin of the interrupt to the fullest bin of the task"
    table = Table(caption, SWITCH_HEADER, tuple(rows), tuple(range(2, len(SWITCH_HEADER))))
    return [table, Text((DOMINANT_RANGE_NOTE,))]


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
