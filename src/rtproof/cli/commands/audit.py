# SPDX-License-Identifier: Apache-2.0
"""``rtproof audit``: what is wrong with a system for real time."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rtproof.audit import presets
from rtproof.cli import parameter_types, shell_completion
from rtproof.cli.experiment_options import PATH, target_options
from rtproof.cli.grouped_help import GroupedCommand

MOST_PID = 1 << 22
SEVERITIES = ("fatal", "high", "medium", "low", "info")
FOR_COLLECTING = {
    "target": "--target says where to collect facts, and {file} has them already: give one of the two",
    "target_option": "--target-option is for a target, and {file} has the facts already: give one of the two",
    "agent": "--agent collects facts, and {file} has them already: give one of the two",
    "output": "-o keeps the facts that are collected, and {file} has them already: give one of the two",
    "pid": "--pid is for facts that are collected: the application of a stored file is the one that the file tells of",
}
GIVEN = {
    "cmdline": "--cmdline",
    "kernel_config": "--kernel-config",
    "sysctl": "--sysctl",
    "proc_dump": "--proc-dump",
}
"""The options that hold facts, so that none are collected."""


def _explain(ctx: click.Context, _parameter: click.Parameter, check_id: str | None) -> None:
    if check_id is None:
        return
    from rtproof.audit.check_file import check_files, find_check
    from rtproof.report.pages.audit_page import check_text
    from rtproof.report.text_table import SCREEN_WIDTH, fitted_to_terminal

    check = find_check(check_id)
    with fitted_to_terminal(SCREEN_WIDTH):
        click.echo(check_text(check, check_files()[check.subject].title), nl=False)
    ctx.exit(0)


def _list_checks(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from rtproof.audit.check_file import check_files
    from rtproof.report.pages.audit_page import list_text

    click.echo(list_text(check_files()), nl=False)
    ctx.exit(0)


@click.command("audit", cls=GroupedCommand)
@click.argument("file", type=PATH, metavar="[FILE]", required=False)
@click.option("--cpus", type=parameter_types.CPUS, help="The CPUs of the real-time threads.")
@click.option("--pid", type=parameter_types.count_up_to(MOST_PID), metavar="PID", help="Audit this process, too.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(presets.names()),
    default="default",
    show_default=True,
    help="What the system is for.",
)
@target_options("collect the facts")
@click.option("--cmdline", metavar="FILE|TEXT", help="The kernel's command line, without an agent.")
@click.option("--kernel-config", type=PATH, metavar="FILE", help="The kernel's configuration, also packed.")
@click.option("--sysctl", type=PATH, metavar="FILE", help="The output of sysctl -a.")
@click.option("--proc-dump", type=PATH, metavar="DIR", help="A copy of files of /proc and /sys at their paths.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="New file for the facts.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="high",
    show_default=True,
    help="Least severity of a finding for exit code 1.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--junit", type=PATH, metavar="FILE", help="New file in JUnit's format.")
@click.option("--all", "full", is_flag=True, help="Print all that was read and all advice.")
@click.option("-v", "--verbose", is_flag=True, help="As --all, with sources and all other checks.")
@click.option(
    "--explain",
    metavar="ID",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    shell_complete=shell_completion.complete_checks,
    help="Explain this check, and end.",
)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_checks, help="List all checks, and end."
)
@click.pass_context
def command(ctx: click.Context, /, file: Path | None, **values: Any) -> None:
    """Say which settings are wrong for real time, and why.

    It also says who advises it, and how to change it.
    Without FILE, the facts of --target are collected and judged. FILE is a file of facts, a run folder or a record; it
    may be of another machine.

    Without an agent, give what you have: --cmdline, --kernel-config, --sysctl, --proc-dump. - is standard input. What
    is not given is unknown.

    The exit code is 1 if there is a finding of at least the severity --fail-on, 4 if there is none but such a check is
    unknown or has conflicting evidence, 2 for an error, and 0 otherwise.

    \b
    rtproof audit
    rtproof audit --cpus 2-3 --for telecom
    rtproof audit --target ssh --target-option host=board -o board.rtrec
    rtproof audit board.rtrec --junit audit.xml --fail-on medium
    rtproof audit --cmdline "isolcpus=2-3 quiet" --kernel-config config-6.12.gz --sysctl sysctl.txt
    """
    from rtproof.audit.check import Severity
    from rtproof.experiment import audited_system, given_files
    from rtproof.experiment.stored_runs import write_new_file
    from rtproof.report.pages import audit_page
    from rtproof.schema.encoder import json_bytes
    from rtproof.schema.published import audit_dict

    given = [GIVEN[name] for name in GIVEN if values[name] is not None]
    if file and given:
        raise click.UsageError(f"FILE has all facts of one system, and {given[0]} adds to no file: give one of the two")
    if file or given:
        _refuse_what_is_for_collecting(ctx, given[0] if given else "FILE")
    if values["junit"]:
        audited_system.refuse_output(values["junit"])
    if file:
        record = audited_system.read_facts(file)
    elif given:
        record = given_files.record_of(
            values["cmdline"], values["kernel_config"], values["sysctl"], values["proc_dump"]
        )
    else:
        record = audited_system.collect(
            values["target"], values["target_option"], values["pid"], values["output"], values["agent"]
        )
    result = audited_system.audit_of(record, values["purpose"], values["cpus"])
    preset = audited_system.preset_of(record, values["purpose"], values["cpus"])
    fail_on = Severity(values["fail_on"])
    if values["junit"]:
        write_new_file(values["junit"], audit_page.audit_junit(result, fail_on, preset))
    if values["as_json"]:
        click.echo(json_bytes(audit_dict(result, fail_on, preset)), nl=False)
    else:
        audited_system.print_audit(result, fail_on, preset, full=values["full"], verbose=values["verbose"])
    for what, path in (("facts", values["output"]), ("JUnit", values["junit"])):
        if path:
            click.echo(f"{what}: {path}", err=values["as_json"])
    ctx.exit(result.exit_code(fail_on))


def _refuse_what_is_for_collecting(ctx: click.Context, file: str) -> None:
    """UsageError for an option that says what to collect, where the facts are there already: in this file or option."""
    for name, why in FOR_COLLECTING.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(why.format(file=file), ctx)
