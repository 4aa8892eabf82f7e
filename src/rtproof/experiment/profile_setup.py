# SPDX-License-Identifier: Apache-2.0
"""A profile with the user's settings and limits, its article, and what it needs that this machine lacks."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rtproof import articles, exporters, loads, profiles, report
from rtproof.agents import build
from rtproof.articles import Article
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration
from rtproof.core.plugins import options_once
from rtproof.experiment.run_request import ProfileRequest, observer_options, why_gap_too_short, why_not_judgeable
from rtproof.profiles import CellPlan, OptionChange, Profile, Way, agent_arguments, run_options
from rtproof.profiles.profile import LOAD, with_claims, with_loads, with_options, with_parameters, with_settings
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import requirement_sentences

FIRST_METHOD = ""
"""Key of a probe's first method: the one it takes if no method is named."""

PROGRAM_OPTION = "--program"


AgentAbilities = tuple[Mapping[tuple[str, str], str], Mapping[str, str]]
"""What an agent has: methods by probe and method, loads by name. Each value says why not here, or ""."""


def agent_abilities(listed: str) -> AgentAbilities:
    """The abilities of the agent whose ``list`` printed this text."""
    methods: dict[tuple[str, str], str] = {}
    for _, probe, method, text in build.listed_rows(listed, "method"):
        methods[probe, method] = build.missing_on_machine(text)
        methods.setdefault((probe, FIRST_METHOD), methods[probe, method])
    return methods, {name: build.missing_on_machine(text) for _, name, text in build.listed_rows(listed, "load")}


def what_profile_lacks(profile: Profile, known: AgentAbilities, *, short: bool = False) -> list[str]:
    """Sentences: what the user has to say, and which way is taken in whose place; short: without reasons and help."""
    asked = [each for each in profile.parameters if each.default is None]
    words = [f"--set {each.name}=..." + ("" if short else f" ({each.help})") for each in asked]
    lines = Counter(line for cell in profile.cells for line in _what_cell_lacks(cell, known, short))
    cells = len(profile.cells)
    return [*words, *(line if n == cells else f"{n} of {cells} cells: {line}" for line, n in lines.items())]


def _what_cell_lacks(cell: CellPlan, known: AgentAbilities, short: bool) -> Iterable[str]:
    reasons = [(way, _why_way_cannot_run(cell, way, known)) for way in cell.ways]
    taken = next((way for way, why in reasons if not why), None)
    passed = reasons if taken is None else reasons[: cell.ways.index(taken)]
    whys = "; ".join(f"{way.name}: {why}" for way, why in passed) if len(reasons) > 1 else reasons[0][1]
    if taken is None:
        yield "can't run here" + ("" if short else f" ({whys})")
    elif passed:
        yield f"by way of {taken.name}" + ("" if short else f" ({whys})")


def _why_way_cannot_run(cell: CellPlan, way: Way, known: AgentAbilities) -> str:
    options = run_options(cell, way)
    probe = options.get("probe", "timer").partition(":")[0]
    here = (probe, options.get("method", FIRST_METHOD))
    methods, known_loads = known
    if here not in methods:
        return f"this agent has no probe {probe} with such a method"
    if methods[here]:
        return methods[here]
    words = iter(loads.resolve(options.get(LOAD, ())))
    for option, value in zip(words, words, strict=True):
        name = loads.load_name(value)
        if option == PROGRAM_OPTION:
            program = value.split()[1]
            lack = "" if shutil.which(program) else f"the program {program} is not installed"
        else:
            lack = known_loads.get(name, f"this agent has no load {name}")
        if lack:
            return lack
    return ""


def requested_profile(asked: ProfileRequest, in_guest: bool = False) -> Profile:
    """The profile as the user wants it; UserError where that makes no sense. in_guest: with what stands in there."""
    found = profiles.load(asked.profile)
    given = options_once(f"the profile {found.name}", asked.settings)
    chosen = with_settings(found, {**found.guest.settings, **given} if in_guest else given)
    if asked.given and not found.given:
        raise UserError(f"the profile {found.name} has no place for results of other tools: leave --given out")
    if in_guest and "load" not in asked.options:
        chosen = with_loads(chosen, found.guest.load)
    wanted = with_options(with_parameters(chosen), asked.options)
    return _with_observer(wanted) if asked.observer else wanted


def _with_observer(profile: Profile) -> Profile:
    """The profile with tracing on and off by turns in each cell."""

    def traced(cell: CellPlan) -> CellPlan:
        own = cell.options
        turns = observer_options(own.get("trace"), own.get("trace_blocks"), cell.length_ns)
        return replace(cell, options={**own, **turns})

    change = OptionChange("observer", (), "on")
    return replace(profile, cells=tuple(map(traced, profile.cells)), changes=(*profile.changes, change))


def published_article(profile: Profile) -> Article:
    """The article's figures, which the page can put beside what will be measured; UserError if it can't."""
    found = articles.load(profile.article)
    campaign_page.check_profile_page(profile, found)
    for each in profile.kept:  # The user must know before hours of measuring.
        known = plugins.load_plugin(exporters, each.format).OPTIONS
        plugins.checked_options(f"the format {each.format}", known, tuple(each.options.items()))
    return found


def with_requirements(profile: Profile, asked: tuple[Requirement, ...]) -> Profile:
    """The profile with the user's limits in place of the article's."""
    return with_claims(profile, asked) if asked else profile


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


# What ``rtproof profiles`` prints: the profiles there are, or the cells of one, and what they lack on this machine.


def profiles_text(name: str | None, agent: Path | None) -> bytes:
    """Every profile for a terminal, or the cells of the one with this name.

    agent: the program that is asked what can run here; by default the one for this machine. UserError for a profile
    that makes no sense.
    """
    lacks = agent_abilities(build.agent_prints(agent or build.find_agent(), "list"))
    found = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for each in found:
        published_article(each)
    sections = [_cells(found[0], lacks)] if name else [_overview(found, lacks)]
    return report.render("text", "rtproof: profiles", sections)


def _overview(found: list[Profile], lacks: AgentAbilities) -> Section:
    rows = tuple(
        (
            each.name,
            each.title,
            str(len(each.cells)),
            duration(each.article_ns),
            "; ".join(what_profile_lacks(each, lacks, short=True)),
        )
        for each in found
    )
    header = ("profile", "what it repeats", "cells", "article's length", "on this machine")
    table = Table("What rtproof run --profile repeats; rtproof profiles NAME tells more", header, rows, (2, 3))
    return Section("profiles", "Experiments of the articles", (table,))


def _cells(profile: Profile, lacks: AgentAbilities) -> Section:
    rows = tuple((each.key, duration(each.article_ns), " ".join(agent_arguments(each))) for each in profile.cells)
    axes = tuple(f"--set {axis}=...: {', '.join(values)}" for axis, values in profile.axes.items())
    given = tuple(
        f"--set {each.name}=...: {each.help}" + (f" (default {each.default})" if each.default else "")
        for each in profile.parameters
    )
    table = Table("Cells at the article's length", ("cell", "length", "as options of rtproof run"), rows, (1,))
    words = (profile.about, *profile.differs, *requirement_sentences(profile.claims))
    lacking = tuple(what_profile_lacks(profile, lacks))
    settings = [Text((*axes, *given))] if axes or given else []
    doubts = [Text(lacking, "doubt")] if lacking else []
    return Section(profile.name, profile.title, (Text(words), table, *settings, *doubts))
