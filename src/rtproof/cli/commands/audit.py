# SPDX-License-Identifier: Apache-2.0
"""``rtproof audit``: what is wrong with a system for real time."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rtproof.audit import presets
from rtproof.cli import shared_options
from rtproof.cli.shared_options import JSON_OPTION, PATH, GroupedCommand, option, target_options

MOST_PID = 1 << 22
SEVERITIES = ("fatal", "high", "medium", "low", "info")
FOR_COLLECTING = ("target", "target_option", "agent", "output", "pid")
GIVEN = {"cmdline": "--cmdline", "kernel_config": "--kernel-config", "sysctl": "--sysctl", "proc_dump": "--proc-dump"}
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
@option("--cpus", "The CPUs of the real-time threads.", shared_options.CPUS)
@option("--pid PID", "Audit this process, too.", shared_options.count_up_to(MOST_PID))
@option("--for purpose", "What the system is for.", click.Choice(presets.names()), default="default", show_default=True)
@target_options("collect the facts")
@option("--cmdline FILE|TEXT", "The kernel's command line, without an agent.")
@option("--kernel-config FILE", "The kernel's configuration, also packed.", PATH)
@option("--sysctl FILE", "The output of sysctl -a.", PATH)
@option("--proc-dump DIR", "A copy of files of /proc and /sys at their paths.", PATH)
@option("-o --output FILE", "New file for the facts.", PATH)
@option(
    "--fail-on",
    "Least severity of a finding for exit code 1.",
    click.Choice(SEVERITIES),
    default="high",
    show_default=True,
)
@JSON_OPTION
@option("--junit FILE", "New file in JUnit's format.", PATH)
@option("--all full", "Print all that was read and all advice.")
@option("-v --verbose", "As --all, with sources and all other checks.")
@option("--explain ID", "Explain this check, and end.", is_eager=True, expose_value=False, callback=_explain)
@option("--list", "List all checks, and end.", is_eager=True, expose_value=False, callback=_list_checks)
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
    for name in FOR_COLLECTING:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            typed = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{typed} is for facts that are collected, and {file} has them already", ctx)
