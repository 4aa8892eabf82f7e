# SPDX-License-Identifier: Apache-2.0
"""The options of ``rtproof run`` that choose a profile, and the profile that they come to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import complete, kept, measuring, types
from rtproof.cli.options import once
from rtproof.cli.requirement import refusal, short_gap
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement
    from rtproof.articles import Article
    from rtproof.profiles import Claim, Profile

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

OPTIONS = (
    click.option(
        "--profile",
        metavar="NAME|FILE",
        shell_complete=complete.profiles,
        help="Repeat an article's experiment; see 'rtproof profiles'.",
    ),
    click.option(
        "--set", "settings", type=types.KEY_VALUE, multiple=True, help="What a profile is to measure; may be repeated."
    ),
    click.option(
        "--given", type=PATH, multiple=True, metavar="FILE", help="Another tool's result to lay beside; repeatable."
    ),
)


@dataclass(frozen=True)
class Asked:
    """What the user wants of a profile. options: those of the agent that stand on the command line."""

    profile: str
    settings: tuple[tuple[str, str], ...]
    given: tuple[Path, ...]
    options: Mapping[str, Any]


def profile_options(command: Command) -> Command:
    """Give a command the options of profiles."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take(values: dict[str, Any]) -> Asked | None:
    """Take the options of profiles out of a command's values; None if there is no profile."""
    name, settings, given = (values.pop(key) for key in ("profile", "settings", "given"))
    if name is None and (settings or given):
        raise click.UsageError(f"--{'set' if settings else 'given'} needs a --profile to speak of")
    if name is None:
        return None
    measuring.refuse_two_lengths(values)
    return Asked(name, settings, given, {key: value for key, value in values.items() if value not in (None, False, ())})


def profile_of(asked: Asked, in_guest: bool = False) -> "Profile":
    """The profile as the user wants it; UserError where that makes no sense. in_guest: with what stands in there."""
    from rtproof import profiles
    from rtproof.profiles import choose

    found = profiles.load(asked.profile)
    given = once(f"the profile {found.name}", asked.settings)
    chosen = choose.with_settings(found, {**found.guest.settings, **given} if in_guest else given)
    if asked.given and not found.given:
        raise UserError(f"the profile {found.name} has no place for results of other tools: leave --given out")
    if in_guest and "load" not in asked.options:
        chosen = choose.with_loads(chosen, found.guest.load)
    return choose.with_options(choose.ready(chosen), asked.options)


def article_of(profile: "Profile") -> "Article":
    """The article's figures, which the page can put beside what will be measured; UserError if it can't."""
    from rtproof import articles
    from rtproof.report import campaign as page

    found = articles.load(profile.article)
    page.check(profile, found)
    kept.check(profile)
    return found


def with_requirements(profile: "Profile", asked: "tuple[Requirement, ...]") -> "Profile":
    """The user's own in place of the article's."""
    from rtproof.profiles import choose

    claims = tuple(_claim(each) for each in asked)
    return choose.with_claims(profile, claims) if claims else profile


def _claim(asked: "Requirement") -> "Claim":
    """As a profile's file says it: what follows from the time is left out."""
    from rtproof.analysis.model import Requirement
    from rtproof.profiles import Claim

    usual = Requirement(asked.limit_ns, asked.at_most_ns)
    gap_ns = 0 if asked.gap_ns == usual.gap_ns else asked.gap_ns
    longest_ns = 0 if asked.longest_ns == usual.longest_ns else asked.longest_ns
    return Claim(asked.limit_ns, asked.at_most_ns, gap_ns, longest_ns, asked.bunches)


def requirements_of(profile: "Profile", asked: "tuple[Requirement, ...]") -> "tuple[Requirement, ...]":
    """The user's own, else the article's. UserError if one of these can't be judged."""
    from rtproof.report.campaign.asked import requirements

    found = asked or requirements(profile.claims)
    for each in found:
        if reason := refusal(each):
            raise UserError(f"the requirement of the profile {profile.name}: {reason}")
    for cell in profile.cells:
        if reason := short_gap(found, cell.period_ns):
            raise UserError(f"the cell {cell.key} of the profile {profile.name}: {reason}")
    return found
