# SPDX-License-Identifier: Apache-2.0
"""What was asked of the cells, in the words of a single run."""

from collections.abc import Iterable, Sequence

from rtproof.analysis import wording
from rtproof.analysis.model import Requirement
from rtproof.profiles import Claim
from rtproof.report.campaign.outcome import Outcome


def requirements(claims: Iterable[Claim]) -> tuple[Requirement, ...]:
    """A profile's requirements, with the gap and the longest length that follow from their time filled in."""
    return tuple(
        Requirement(
            each.limit_ns,
            each.at_most_ns,
            gap_ns=each.gap_ns,
            longest_ns=each.longest_ns,
            bunches=each.bunches,
        )
        for each in claims
    )


def judged(claims: Iterable[Claim], outcomes: Sequence[Outcome]) -> tuple[Requirement, ...]:
    """What the cells were judged by: the runs tell it, which may be older than today's defaults; else the profile."""
    verdicts = [verdict for each in outcomes if each.analysis for verdict in each.analysis.verdicts]
    return tuple(dict.fromkeys(each.requirement for each in verdicts if each.requirement)) or requirements(claims)


def sentences(asked: Iterable[Requirement], *, virtual: bool = False) -> tuple[str, ...]:
    """One for each requirement, with what counts as an episode. virtual: no verdict has a confidence."""
    told = wording.asked if virtual else wording.limit
    return tuple(f"Asked: {told(each)}. {_capital(wording.episode(each))}." for each in asked)


def assumptions(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What the verdicts that rest on a bet assume, each once; nothing where none does."""
    verdicts = [verdict for each in outcomes if each.analysis for verdict in each.analysis.verdicts]
    told = dict.fromkeys(text for each in verdicts if (text := wording.assumed(each)))
    return tuple(f"Each cell by itself: {text[:1].lower()}{text[1:]}." for text in told)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
