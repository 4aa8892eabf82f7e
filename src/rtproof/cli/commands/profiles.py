# SPDX-License-Identifier: Apache-2.0
"""``rtproof profiles``: the articles' experiments, and how long they take."""

import click

from rtproof.cli import shared_options


@click.command("profiles")
@click.argument("name", required=False, metavar="[NAME|FILE]", shell_complete=shared_options.offer("profiles"))
def command(name: str | None) -> None:
    """List the profiles of 'run --profile', or show one.

    A profile is a list of measurements that repeats an article's experiment. The list of profiles says how many
    measurements each has, and how long they take at the article's length.
    """
    from rtproof.experiment import profile_campaign

    click.echo(profile_campaign.profiles_text(name), nl=False)
