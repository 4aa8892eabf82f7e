# SPDX-License-Identifier: Apache-2.0
"""``rtproof profiles``: the articles' experiments, how long they take, and what they lack here."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof.cli import shell_completion

if TYPE_CHECKING:
    from rtproof.experiment.profile_setup import AgentAbilities
    from rtproof.profiles import Parameter, Profile
    from rtproof.report.blocks import Section


@click.command("profiles")
@click.argument("name", required=False, metavar="[NAME|FILE]", shell_complete=shell_completion.complete_profiles)
@click.option("--agent", type=click.Path(path_type=Path), metavar="FILE", help="Ask this agent what can run here.")
def command(name: str | None, agent: Path | None) -> None:
    """List the profiles of 'run --profile', or the cells of one.

    A profile repeats an article's experiment. Told are the cells that it has, how long they take at the article's
    length, and what is lacking on this machine.
    """
    from rtproof import profiles, report
    from rtproof.agents.build import agent_prints, find_agent
    from rtproof.experiment import profile_setup
    from rtproof.experiment.profile_setup import agent_abilities

    lacks = agent_abilities(agent_prints(agent or find_agent(), "list"))
    found = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for each in found:
        profile_setup.published_article(each)
    sections = [_cells(found[0], lacks)] if name else [_overview(found, lacks)]
    click.echo(report.render("text", "rtproof: profiles", sections), nl=False)


def _overview(found: "list[Profile]", lacks: "AgentAbilities") -> "Section":
    from rtproof.core.phrases import duration
    from rtproof.experiment.profile_setup import what_profile_lacks
    from rtproof.report.blocks import Section, Table

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


def _preset(parameter: "Parameter") -> str:
    return f" (default {parameter.default})" if parameter.default else ""


def _cells(profile: "Profile", lacks: "AgentAbilities") -> "Section":
    from rtproof.core.phrases import duration
    from rtproof.experiment.profile_setup import what_profile_lacks
    from rtproof.profiles import agent_arguments
    from rtproof.report.blocks import Section, Table, Text
    from rtproof.report.pages.campaign_outcomes import requirement_sentences, requirements_of_limits

    rows = tuple((each.key, duration(each.article_ns), " ".join(agent_arguments(each))) for each in profile.cells)
    axes = tuple(f"--set {axis}=...: {', '.join(values)}" for axis, values in profile.axes.items())
    given = tuple(f"--set {each.name}=...: {each.help}{_preset(each)}" for each in profile.parameters)
    table = Table("Cells at the article's length", ("cell", "length", "as options of rtproof run"), rows, (1,))
    words = (profile.about, *profile.differs, *requirement_sentences(requirements_of_limits(profile.claims)))
    lacking = tuple(what_profile_lacks(profile, lacks))
    settings = [Text((*axes, *given))] if axes or given else []
    doubts = [Text(lacking, "doubt")] if lacking else []
    return Section(profile.name, profile.title, (Text(words), table, *settings, *doubts))
