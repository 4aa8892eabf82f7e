# SPDX-License-Identifier: Apache-2.0
"""A profile with the user's settings and limits, and its article."""

from dataclasses import replace

from msgspec import structs

from rtproof import articles, exporters, profiles, report
from rtproof.articles import Article
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration
from rtproof.core.plugins import options_once
from rtproof.experiment.run_request import RunRequest, observer_options, why_gap_too_short, why_not_judgeable
from rtproof.profiles import CellPlan, OptionChange, Profile, agent_arguments
from rtproof.profiles.profile import with_claims, with_loads, with_options, with_parameters, with_settings
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import requirement_sentences


def requested_profile(asked: RunRequest, *, in_guest: bool = False) -> Profile:
    """The profile as the user wants it, with the user's limits if there are any. UserError where that makes no sense.

    in_guest: with what stands in there.
    """
    found = profiles.load(asked.profile)
    given = options_once(f"the profile {found.name}", asked.settings)
    chosen = with_settings(found, {**found.guest.settings, **given} if in_guest else given)
    if asked.given and not found.given:
        raise UserError(f"the profile {found.name} has no place for results of other tools: leave --given out")
    if in_guest and "load" not in asked.options:
        chosen = with_loads(chosen, found.guest.load)
    wanted = with_options(with_parameters(chosen), asked.options)
    wanted = _with_observer(wanted) if asked.observer else wanted
    return with_claims(wanted, asked.requirements) if asked.requirements else wanted


def _with_observer(profile: Profile) -> Profile:
    """The profile with tracing on and off by turns in each cell."""

    def traced(cell: CellPlan) -> CellPlan:
        own = cell.options
        turns = observer_options(own.get("trace"), own.get("trace_blocks"), cell.length_ns)
        return replace(cell, options={**own, **turns})

    change = OptionChange("observer", (), "on")
    return structs.replace(profile, cells=tuple(map(traced, profile.cells)), changes=(*profile.changes, change))


def published_article(profile: Profile) -> Article:
    """The article's figures, which the page can put beside what will be measured; UserError if it can't."""
    found = articles.load(profile.article)
    campaign_page.check_profile_page(profile, found)
    for each in profile.kept:  # The user must know before hours of measuring.
        known = plugins.load_plugin(exporters, each.format).OPTIONS
        plugins.checked_options(f"the format {each.format}", known, tuple(each.options.items()))
    return found


def profile_requirements(profile: Profile, asked: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The user's requirements, else the article's. UserError if one can't be judged."""
    found = asked or profile.claims
    for each in found:
        if reason := why_not_judgeable(each):
            raise UserError(f"the requirement of the profile {profile.name}: {reason}")
    for cell in profile.cells:
        if reason := why_gap_too_short(found, cell.period_ns):
            raise UserError(f"the cell {cell.key} of the profile {profile.name}: {reason}")
    return found


# What ``rtproof profiles`` prints: the profiles there are, or the cells of one.


def profiles_text(name: str | None) -> bytes:
    """Every profile for a terminal, or the cells of the one with this name. UserError for one that makes no sense."""
    found = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for each in found:
        published_article(each)
    if name:
        return report.render("text", "rtproof: profiles", [_cells(found[0])])
    rows = tuple((each.name, each.title, str(len(each.cells)), duration(each.article_ns)) for each in found)
    header = ("profile", "what it repeats", "cells", "article's length")
    table = Table("What rtproof run --profile repeats; rtproof profiles NAME tells more", header, rows, (2, 3))
    return report.render("text", "rtproof: profiles", [Section("profiles", "Experiments of the articles", (table,))])


def _cells(profile: Profile) -> Section:
    rows = tuple((each.key, duration(each.article_ns), " ".join(agent_arguments(each))) for each in profile.cells)
    settings = [f"--set {axis}=...: {', '.join(values)}" for axis, values in profile.axes.items()]
    for each in profile.parameters:
        settings.append(f"--set {each.name}=...: {each.help}" + (f" (default {each.default})" if each.default else ""))
    table = Table("Cells at the article's length", ("cell", "length", "as options of rtproof run"), rows, (1,))
    words = (profile.about, *profile.differs, *requirement_sentences(profile.claims))
    more = [Text(tuple(settings))] if settings else []
    return Section(profile.name, profile.title, (Text(words), table, *more))
