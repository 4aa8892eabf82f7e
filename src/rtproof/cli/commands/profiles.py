# SPDX-License-Identifier: Apache-2.0
"""``rtproof profiles``: the articles' experiments, how long they take, and what they lack here."""

from pathlib import Path

import click

from rtproof.cli import parameter_types
from rtproof.cli.parameter_types import PATH, option


@click.command("profiles")
@click.argument("name", required=False, metavar="[NAME|FILE]", shell_complete=parameter_types.offer("profiles"))
@option("--agent FILE", "Use this agent.", PATH)
def command(name: str | None, agent: Path | None) -> None:
    """List the profiles of 'run --profile', or show one.

    A profile is a list of measurements that repeats an article's experiment. The list of profiles says how many
    measurements each has, how long they take at the article's length, and what this machine lacks.
    """
    from rtproof.experiment import profile_setup

    click.echo(profile_setup.profiles_text(name, agent), nl=False)
