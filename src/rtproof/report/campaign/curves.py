# SPDX-License-Identifier: Apache-2.0
"""Cumulative percentages of all cells over each other, whole and with the article's zooms into the top."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtproof.analysis.phrases import value
from rtproof.profiles import Bins, Profile
from rtproof.report import cumulative
from rtproof.report.blocks import Block, Marker, Section, Text
from rtproof.report.campaign.naming import named
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import by_cell
from rtproof.report.cumulative import Named
from rtproof.report.figures import US

MOST = 8
"""Curves that a plot can hold; where there are more, each cell has plots of its own."""


def section(profile: Profile, outcomes: Sequence[Outcome]) -> Section:
    """Of each kind of latency that the profile has bins for, else of the one that the rows show."""
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    drawn = [block for each in parts if each.zooms for block in _blocks(profile, each, outcomes)]
    return Section("curves", "Cumulative percentages", tuple(drawn))


def _blocks(profile: Profile, bins: Bins, outcomes: Sequence[Outcome]) -> Iterator[Block]:
    measured = [each for each in outcomes if (stage := each.stage(bins.stage)) and stage.observed.count]
    if len(measured) <= MOST:
        yield from _plots(profile, bins, _curves(bins, named(measured)), bins.name)
        return
    for cell, group in by_cell(measured):
        curves = _curves(bins, [(each.system, each) for each in group])
        yield from _plots(profile, bins, curves, f"{bins.name}, {cell.label}")


def _curves(bins: Bins, outcomes: Sequence[tuple[str, Outcome]]) -> list[Named]:
    found = [(name, each.stage(bins.stage)) for name, each in outcomes]
    return [Named(name, stage.observed_counts) for name, stage in found if stage]


def _plots(profile: Profile, bins: Bins, curves: list[Named], title: str) -> Iterator[Block]:
    zooms = [zoom / 100 for zoom in bins.zooms]
    for plot in cumulative.plots(curves[:MOST], zooms, US, bins.name, _limits(profile, bins)):
        yield replace(plot, title=f"{plot.title}: {title}")
    more = [f"Of {len(curves)} curves the first {MOST} are drawn."] if len(curves) > MOST else []
    notes = tuple(filter(None, (*more, cumulative.left_out(curves[:MOST], zooms))))
    if notes:
        yield Text(notes)


def _limits(profile: Profile, bins: Bins) -> tuple[Marker, ...]:
    """The requirements are on the reaction as a whole and not on one of its stages."""
    limits = () if bins.stage else dict.fromkeys(claim.limit_ns for claim in profile.claims)
    return tuple(Marker(f"limit {value(limit_ns)}", "x", US.scale(limit_ns)) for limit_ns in limits)
