# SPDX-License-Identifier: Apache-2.0
"""``rtproof audit``: what is wrong with a system for real time."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types, shell_completion

MOST_PID = 1 << 22
PURPOSES = ("default", "control-loop", "audio", "telecom")


@click.command("audit")
@click.argument("file", type=click.Path(path_type=Path), metavar="[FILE]", required=False)
@click.option("--cpus", type=parameter_types.CPUS, help="The CPUs that shall be isolated for real-time threads.")
@click.option("--pid", type=parameter_types.count_up_to(MOST_PID), metavar="PID", help="Audit this application, too.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(PURPOSES),
    default="default",
    show_default=True,
    help="What the system is for.",
)
@click.option(
    "--target",
    default="local",
    metavar="NAME",
    shell_complete=shell_completion.complete_targets,
    help="Where to collect the facts (default local).",
)
@click.option(
    "--target-option", type=parameter_types.KEY_VALUE, multiple=True, help="An option of the target; may be repeated."
)
@click.option("--agent", type=click.Path(path_type=Path), metavar="FILE", help="Use this agent.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="NEW", help="Keep the facts in a new file.")
@click.pass_context
def command(ctx: click.Context, /, file: Path | None, **values: Any) -> None:
    """Say what is wrong with a system for real time, why, who says so, and how to change it.

    Without FILE, the facts of --target are collected and judged. FILE is a file of facts, a run folder or a record; it
    may be of another machine. The exit code is 1 if there is a finding of severity high or fatal, 4 if there is none
    but such a check is unknown, and 0 otherwise.

    \b
    rtproof audit
    rtproof audit --cpus 2-3 --for telecom
    rtproof audit --target ssh --target-option host=board -o board.rtrec
    rtproof audit board.rtrec
    """
    from rtproof.audit import judgement
    from rtproof.audit.facts import AuditRequest, Facts
    from rtproof.core.units import parse_cpus
    from rtproof.experiment.audited_system import CollectRequest, collect, read_facts
    from rtproof.report.pages.audit_page import audit_text

    if file:
        record = read_facts(file)
    else:
        record = collect(
            CollectRequest(values["target"], values["target_option"], values["pid"], values["output"], values["agent"])
        )
    cpus = frozenset(parse_cpus(values["cpus"])) if values["cpus"] else None
    result = judgement.audit(Facts(record, AuditRequest(cpus, values["pid"], values["purpose"])))
    click.echo(audit_text(result), nl=False)
    ctx.exit(0)
