# SPDX-License-Identifier: Apache-2.0
"""The curves of cells: all latencies, the largest over time, cumulative percentages, and tails two by two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rtproof.articles.article import SAME
from rtproof.compare.tail_crossing import (
    TailCrossing,
    TailDistance,
    TailLikeness,
    TailSample,
    tail_crossing,
    tail_distance,
    tail_sample,
)
from rtproof.core.phrases import limit_value, percent, quantity, value
from rtproof.profiles import Bins, CellPlan, Profile
from rtproof.report import cumulative_curves
from rtproof.report.blocks import Block, Marker, Plot, Section, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import US, ReportStream
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign
from rtproof.report.pages.published_figures import published_curves
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.sections.timeline import maxima_plot
from rtproof.summary.counts import merge_counts

TAILS_EXPLAINED = (
    "Better: from that latency on fewer activations are later, up to where chance decides. The same: at no latency "
    "more than 2 % of the activations apart. Independent: n counts for less where neighbouring activations resemble "
    "each other. Slower changes are not seen, so a small difference may be one between any two runs."
)
TAILS_HEADER = ("first", "second", "n (independent)", "better", "largest distance")
MOST_PAIRS = 30
"""The largest number of pairs that are compared. Pairs of the same cell or the same system come first."""
MOST_CURVES = 8
"""The largest number of curves in a plot. With more curves, each cell has plots of its own."""


@dataclass(frozen=True)
class CurvePair:
    """Two curves of one kind of latency, by name of their cells. better, apart: None where nothing surely differs.

    virtual: a run was in virtual time, which has no chance.
    """

    latency: str
    first: str
    second: str
    samples: tuple[TailSample, TailSample]
    better: TailCrossing | None
    apart: TailDistance | None
    virtual: bool


def curve_pairs(campaign: MeasuredCampaign) -> list[CurvePair]:
    """Return pairs of curves of each kind of latency that the profile draws curves of, at most MOST_PAIRS of each."""
    return [pair for each in _drawn_bins(campaign.profile) for pair in _compared_pairs(campaign, each)]


def _drawn_bins(profile: Profile) -> list[Bins]:
    """The latencies that the profile has bins for, else the latency that the rows show."""
    return [each for each in profile.bins or (Bins("latency", 0, 0, zooms=profile.zooms),) if each.zooms]


def _compared_pairs(campaign: MeasuredCampaign, bins: Bins) -> Iterator[CurvePair]:
    drawn = [
        (name, each, tail_sample(stage))
        for name, each in campaign.named
        if (stage := each.stage(bins.stage)) and stage.observed.count
    ]
    pairs = list(combinations(drawn, 2))
    pairs.sort(key=lambda pair: pair[0][1].system != pair[1][1].system and pair[0][1].cell.key != pair[1][1].cell.key)
    for (first, one, a), (second, other, b) in pairs[:MOST_PAIRS]:
        virtual = one.virtual or other.virtual
        yield CurvePair(bins.name, first, second, (a, b), tail_crossing(a, b), tail_distance(a, b), virtual)


def tails_section(campaign: MeasuredCampaign) -> Section:
    """Return the comparison of tails for each kind of latency that the profile draws curves of."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for pair in curve_pairs(campaign):
        worth = "; ".join(f"{each.counts.total:,} ({round(each.effective):,})" for each in pair.samples)
        told = (pair.first, pair.second, worth, _better_text(pair), _distance_text(pair))
        rows.setdefault(pair.latency, []).append(told)
    tables = [
        Table(f"The {name} of cells two by two", TAILS_HEADER, (*some, *_published_pairs(name, campaign)))
        for name, some in rows.items()
    ]
    return Section("tails", "What the curves tell", (*tables, Text((TAILS_EXPLAINED,))) if tables else ())


def _better_text(pair: CurvePair) -> str:
    found = pair.better
    if found is None:
        return "neither, as far as chance does not decide"
    better = pair.first if found.first_is_better else pair.second
    if found.above is None:
        return f"{better}, throughout up to {value(found.until)}"
    return f"{better}, above {value(found.above)}, the top {_two_digits(found.top_share)}, up to {value(found.until)}"


def _distance_text(pair: CurvePair) -> str:
    """Return the largest distance, and what chance allows; nothing is chance in virtual time."""
    found = pair.apart
    if found is None:
        return ""
    where, most = f"{_two_digits(found.seen)} at {value(found.at)}", _two_digits(found.most)
    if pair.virtual:
        return where
    chance = {
        TailLikeness.SAME: f"the same, surely nowhere above {most}",
        TailLikeness.DIFFERENT: f"different, surely above {_two_digits(found.least)} somewhere",
        TailLikeness.UNDECIDED: f"undecided, up to {most} is possible",
    }
    return f"{where}; {chance[found.likeness]}"


def _two_digits(share: float) -> str:
    return percent(float(f"{share:.2g}"))


def _published_pairs(name: str, campaign: MeasuredCampaign) -> Iterator[tuple[str, ...]]:
    article = campaign.article
    for each in article.statements if article else ():
        if article and name.startswith(each.field) and not each.limit:
            first, second = (row.label if (row := article.row(key)) else key for key in each.rows)
            above = f", above {each.above.text}" if each.above else ""
            top = f", the top {each.top_share.text}" if each.top_share else ""
            said = ("", "nearly the same") if each.says == SAME else (f"{first}{above}{top}", "")
            yield f"article: {first}", f"article: {second}", "", *said


def overview_section(campaign: MeasuredCampaign) -> Section:
    """Return the plots of the first screen: all latencies of each cell, and the largest over time.

    With many cells, those with the largest latencies are drawn.
    """
    filled = [
        ReportStream(name, "", each.shown) for name, each in campaign.named if each.shown and each.shown.observed.count
    ]
    latest_first = sorted(range(len(filled)), key=lambda at: -filled[at].summary.observed.max)
    drawn = [filled[at] for at in sorted(latest_first[:MOST_CURVES])]
    left_out = (
        f"Of {len(filled)} cells the {MOST_CURVES} with the largest latencies are drawn."
        if len(drawn) < len(filled)
        else ""
    )
    plots = [_all_latencies(campaign, drawn, left_out), _over_time(campaign, drawn, left_out)] if drawn else []
    return Section("overview", "All cells", tuple(plot for plot in plots if plot))


def _all_latencies(campaign: MeasuredCampaign, drawn: Sequence[ReportStream], left_out: str) -> Plot | None:
    curves = [NamedCounts(each.name, each.summary.observed_counts) for each in drawn]
    count = sum(each.counts.total for each in curves)
    worst = max(drawn, key=lambda each: each.summary.observed.max)
    early = left_of_log_axis(merge_counts(each.counts for each in curves))
    says = (
        f"How often each latency occurred, in {quantity(count, 'activation')} that ran. The bins grow with latency. "
        f"The largest latency is {value(worst.summary.observed.max)}, in '{worst.name}'.{early} {left_out}"
    )
    return log_histogram_plot(curves, _limit_markers(campaign.profile), US, says.strip(), 1)


def _over_time(campaign: MeasuredCampaign, drawn: Sequence[ReportStream], left_out: str) -> Plot | None:
    """Return the largest latencies over time; None where the first screen has the loops' times."""
    timed = [each for each in drawn if (each.summary.seconds.obtained > 0).any()]
    if not timed or any(each.loops for each in campaign.outcomes):
        return None
    markers = tuple(replace(each, axis="y") for each in _limit_markers(campaign.profile))
    return maxima_plot(timed, markers, US, left_out)


def curves_section(campaign: MeasuredCampaign) -> Section:
    """Return the cumulative curves. Those of the article stand beside them, as far as its figures have them."""
    drawn = [block for each in _drawn_bins(campaign.profile) for block in _curve_blocks(campaign, each)]
    return Section("curves", "Cumulative percentages", tuple(drawn))


def _curve_blocks(campaign: MeasuredCampaign, bins: Bins) -> Iterator[Block]:
    curves = _named_curves(campaign, bins, campaign.named, [cell for cell, _ in campaign.cells])
    if len(curves) <= MOST_CURVES:
        yield from _curve_plots(campaign.profile, bins, curves, bins.name)
        return
    for cell, group in campaign.cells:
        curves = _named_curves(campaign, bins, [(each.system, each) for each in group], [cell])
        yield from _curve_plots(campaign.profile, bins, curves, f"{bins.name}, {cell.label}")


def _named_curves(
    campaign: MeasuredCampaign, bins: Bins, named: Sequence[tuple[str, CellOutcome]], cells: Sequence[CellPlan]
) -> list[NamedCounts]:
    """Return the curves that were measured, and behind them those of the article's rows that these cells repeat."""
    measured = [
        NamedCounts(name, stage.observed_counts)
        for name, each in named
        if (stage := each.stage(bins.stage)) and stage.observed.count
    ]
    return [*measured, *published_curves(bins, campaign.published(*cells))]


def _curve_plots(profile: Profile, bins: Bins, curves: list[NamedCounts], title: str) -> Iterator[Block]:
    zooms, shown = [zoom / 100 for zoom in bins.zooms], curves[:MOST_CURVES]
    markers = () if bins.stage else _limit_markers(profile)
    for plot in cumulative_curves.cumulative_plots(shown, zooms, US, bins.name, markers):
        yield replace(plot, title=f"{plot.title}: {title}")
    more = [f"Of {len(curves)} curves the first {MOST_CURVES} are drawn."] if len(curves) > MOST_CURVES else []
    if notes := tuple(filter(None, (*more, cumulative_curves.left_out_of_plot(shown, zooms)))):
        yield Text(notes)


def _limit_markers(profile: Profile) -> tuple[Marker, ...]:
    """Return a marker for each limit. Limits are set for the whole reaction, not for a stage of it."""
    limits = dict.fromkeys(claim.limit_ns for claim in profile.claims)
    return tuple(Marker(f"limit {limit_value(limit_ns)}", "x", US.scale(limit_ns)) for limit_ns in limits)
