# SPDX-License-Identifier: Apache-2.0
"""``rtproof doctor``: what this machine lacks for which feature, and the command that brings it."""

import click

from rtproof.cli.shared_options import JSON_OPTION, option
from rtproof.doctor.findings import DEFAULT_FEATURE, FEATURES, doctor_json, examination_text


@click.command("doctor")
@click.argument("features", nargs=-1, metavar="[FEATURE]...", type=click.Choice(FEATURES))
@JSON_OPTION
@option("-v --verbose", "Also print what is there.")
@click.pass_context
def command(ctx: click.Context, features: tuple[str, ...], as_json: bool, verbose: bool) -> None:
    """Say what this machine lacks to use rtproof.

    It also says which command brings it. Everything is really tried, but nothing is changed, downloaded or built.
    Boards are not asked: their agent tells what they lack. The exit code is 0 if each named feature (default: measure)
    can be used, also if a part of it is lost, 5 if one is not ready, and 2 for an error. No verdict has the number 5.

    \b
    rtproof doctor
    rtproof doctor lab plots
    rtproof doctor --json | jq '.features[] | select(.readiness != "ready")'
    """
    from rtproof.doctor.examination import examine
    from rtproof.doctor.host import Host

    asked = tuple(dict.fromkeys(features)) or (DEFAULT_FEATURE,)
    found = examine(asked, bool(features), Host())
    click.echo(doctor_json(found) if as_json else examination_text(found, verbose))
    ctx.exit(found.exit_code)
