# SPDX-License-Identifier: Apache-2.0
"""What ``rtproof profiles`` prints: the profiles there are, or the cells of one, and what they lack on this machine."""

from pathlib import Path

from rtproof import profiles, report
from rtproof.agents import build
from rtproof.core.phrases import duration
from rtproof.experiment import profile_setup
from rtproof.experiment.profile_setup import AgentAbilities, what_profile_lacks
from rtproof.profiles import Parameter, Profile, agent_arguments
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.pages.campaign_outcomes import requirement_sentences, requirements_of_limits


def profiles_text(name: str | None, agent: Path | None) -> bytes:
    """Every profile for a terminal, or the cells of the one with this name.

    agent: the program that is asked what can run here; by default the one for this machine. UserError for a profile
    that makes no sense.
    """
    lacks = profile_setup.agent_abilities(build.agent_prints(agent or build.find_agent(), "list"))
    found = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for each in found:
        profile_setup.published_article(each)
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


def _preset(parameter: Parameter) -> str:
    return f" (default {parameter.default})" if parameter.default else ""


def _cells(profile: Profile, lacks: AgentAbilities) -> Section:
    rows = tuple((each.key, duration(each.article_ns), " ".join(agent_arguments(each))) for each in profile.cells)
    axes = tuple(f"--set {axis}=...: {', '.join(values)}" for axis, values in profile.axes.items())
    given = tuple(f"--set {each.name}=...: {each.help}{_preset(each)}" for each in profile.parameters)
    table = Table("Cells at the article's length", ("cell", "length", "as options of rtproof run"), rows, (1,))
    words = (profile.about, *profile.differs, *requirement_sentences(requirements_of_limits(profile.claims)))
    lacking = tuple(what_profile_lacks(profile, lacks))
    settings = [Text((*axes, *given))] if axes or given else []
    doubts = [Text(lacking, "doubt")] if lacking else []
    return Section(profile.name, profile.title, (Text(words), table, *settings, *doubts))
