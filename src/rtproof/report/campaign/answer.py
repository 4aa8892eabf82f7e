# SPDX-License-Identifier: Apache-2.0
"""What a reader wants to know first: what each cell gave, in words, so that a narrow screen shows it too."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rtproof.analysis.cycles import CONFIDENCE, most_out_of_band
from rtproof.analysis.model import State
from rtproof.analysis.phrases import duration, percent, quantity
from rtproof.profiles import Profile
from rtproof.report import figures
from rtproof.report.blocks import Text
from rtproof.report.campaign import asked
from rtproof.report.campaign.metrics import longest, most_out, stalled
from rtproof.report.campaign.outcome import SEVERITY, Outcome
from rtproof.report.figures import US
from rtproof.report.sections.verdict import KINDS

MOST = 8
"""Cells of a system that are told one by one."""


def answer(profile: Profile, outcomes: Sequence[Outcome]) -> Text:
    """Of every cell what its article is about; the worst verdict where something was asked."""
    words, figure = next(each for column, each in ANSWERS.items() if column in (*profile.columns, ""))
    if words == OUT_OF_BAND and not all(each.virtual for each in outcomes):
        words = f"{words} ({percent(CONFIDENCE)} confidence)"
    states = [each.analysis.verdict.state for each in outcomes if each.analysis]
    alike = len(set(states)) < 2 and len(states) == len(outcomes)
    systems = list(dict.fromkeys(each.system for each in outcomes))
    lines = [_listed([each for each in outcomes if each.system == system], figure, alike) for system in systems]
    several = len(systems) > 1
    told = (f"{words}:",) if several else ()
    terms = tuple(zip(systems if several else [words], lines, strict=True))
    if not profile.claims or not states:
        return Text(told, terms=terms)
    worst = max(states, key=SEVERITY.index)
    headline = f"{worst.value} in {states.count(worst)} of {quantity(len(outcomes), 'cell')}"
    required = asked.sentences(asked.judged(profile.claims, outcomes), virtual=all(each.virtual for each in outcomes))
    below = (*required, *asked.assumptions(outcomes), *_needed(outcomes), *told)
    return Text(below, KINDS[worst], headline, terms)


def _listed(here: Sequence[Outcome], figure: Callable[[Outcome], str], alike: bool) -> str:
    """alike: all verdicts are the same, which stands above."""
    told = [f"{each.cell.label}: {_figure(each, figure, alike)}" for each in here[:MOST]]
    told += [f"and {len(here) - MOST} more cells, below"] if len(here) > MOST else []
    return "; ".join(told)


def _figure(outcome: Outcome, figure: Callable[[Outcome], str], alike: bool) -> str:
    if outcome.analysis is None:
        return "not measured"
    state = outcome.analysis.verdict.state
    return figure(outcome) if alike or state is State.NOT_ASKED else f"{state.value}, {figure(outcome)}"


def _cycles(outcome: Outcome) -> str:
    found = outcome.analysis.cycles if outcome.analysis else None
    if found is None:
        return figures.UNKNOWN
    stood = f", {stalled(found)}" if found.stalls else ""
    most = most_out_of_band(found)
    possible = f" (up to {most_out(most)} possible)" if most is not None else ""
    return f"{found.out_of_band:,} of {found.counted:,}{possible}{stood}"


def _loops(outcome: Outcome) -> str:
    found = outcome.loops
    if found is None or not found.loop.count:
        return figures.UNKNOWN
    ends = f"{US.show(found.loop.min)} to {US(found.loop.max)}"
    return f"{ends} (n = {found.loop.count:,}), top late by at most {US(found.error.max)}"


def _largest(outcome: Outcome) -> str:
    shown = outcome.shown
    if shown is None or not shown.observed.count:
        return figures.UNKNOWN
    return f"{US(shown.observed.max)} (n = {shown.observed.count:,})"


def _longest(outcome: Outcome) -> str:
    shown = outcome.shown
    return f"{longest(shown)} {US.name} (n = {shown.observed.count:,})" if shown else figures.UNKNOWN


OUT_OF_BAND = "Cycles out of the band"
ANSWERS: Mapping[str, tuple[str, Callable[[Outcome], str]]] = {
    "cycles": (OUT_OF_BAND, _cycles),
    "loop-max": ("Loop time", _loops),
    "longest": ("Largest latency", _longest),
    "": ("Largest latency", _largest),
}
"""By the column whose presence shows what a profile is about; the first that it has."""


def _needed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    verdicts = [each.analysis.verdict for each in outcomes if each.analysis]
    needed = [each.needed_ns for each in verdicts if each.state is State.UNDECIDED and each.needed_ns]
    if needed:
        yield f"To be PROVEN takes {duration(max(needed), up=True)} a cell, if nothing exceeds the limit."
