# SPDX-License-Identifier: Apache-2.0
"""Cumulative percentages of all cells over each other, whole and with the article's zooms into the top."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtproof.analysis.phrases import value
from rtproof.profiles import Bins, Profile
from rtproof.report import cumulative
from rtproof.report.blocks import Block, Marker, Section, Text
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.cumulative import Named
from rtproof.report.figures import US

MOST = 8
"""Curves that a plot can hold."""


def section(profile: Profile, outcomes: Sequence[Outcome]) -> Section:
    """Of each kind of latency that the profile has bins for, else of the one that the rows show."""
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    drawn = [block for each in parts if each.zooms for block in _plots(profile, each, outcomes)]
    return Section("curves", "Cumulative percentages", tuple(drawn))


def _plots(profile: Profile, bins: Bins, outcomes: Sequence[Outcome]) -> Iterator[Block]:
    named = [
        Named(f"{each.cell.label}, {each.system}", stage.observed_counts)
        for each in outcomes
        if (stage := each.stage(bins.stage)) is not None and stage.observed.count
    ]
    zooms = [zoom / 100 for zoom in bins.zooms]
    plots = cumulative.plots(named[:MOST], zooms, US, bins.name, _limits(profile, bins))
    if plots and len(named) > MOST:
        yield Text((f"Of {len(named)} curves of the {bins.name} the first {MOST} are drawn.",))
    for plot in plots:
        yield replace(plot, title=f"{plot.title}: {bins.name}")


def _limits(profile: Profile, bins: Bins) -> tuple[Marker, ...]:
    """The requirements are on the reaction as a whole and not on one of its stages."""
    limits = () if bins.stage else dict.fromkeys(claim.limit_ns for claim in profile.claims)
    return tuple(Marker(f"limit {value(limit_ns)}", "x", US.scale(limit_ns)) for limit_ns in limits)
