# SPDX-License-Identifier: Apache-2.0
"""``rtproof run``: measure, judge, report."""

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import experiment_options, measurement_options, parameter_types, shell_completion
from rtproof.cli.measurement_options import PERCENTILE_OPTION, refuse_short_gaps, requirement_options, take_requirements
from rtproof.core import files, plugins
from rtproof.core.errors import TargetError
from rtproof.core.plugins import checked_options
from rtproof.experiment import run_request

if TYPE_CHECKING:
    from rtproof import targets
    from rtproof.experiment import local_runner
    from rtproof.judge.watch import Watch
    from rtproof.run.session import AgentOutcome, RunPlan


PATH = click.Path(path_type=Path)
HTML = "html"


@dataclass(frozen=True)
class HostOptions:
    """The options that the host keeps to itself."""

    percentiles: tuple[float, ...]
    output: Path | None
    as_json: bool
    report: bool
    note: str
    agent: Path | None
    target: str
    target_option: tuple[tuple[str, str], ...]
    observer: bool


@click.command("run")
@measurement_options.agent_options
@requirement_options
@measurement_options.until_options
@PERCENTILE_OPTION
@experiment_options.profile_options
@measurement_options.observer_option
@experiment_options.repeat_options
@click.option("--output", type=PATH, metavar="FOLDER", help="New folder (default runs/TIME-HOST, or TIME-PROFILE).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--report/--no-report", default=True, help="Write an HTML report beside the run folder (default).")
@click.option("--note", default="", metavar="TEXT", help="Whatever is worth remembering about this run.")
@click.option("--agent", type=PATH, metavar="FILE", help="Use this agent instead of the one that fits the target.")
@click.option(
    "--target",
    default="local",
    metavar="NAME",
    shell_complete=shell_completion.complete_targets,
    help="Where to measure (default local).",
)
@click.option(
    "--target-option", type=parameter_types.KEY_VALUE, multiple=True, help="An option of the target; may be repeated."
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Measure how late a system reacts, and judge it.

    Leaves a run folder with everything that was measured. With --limit it says whether the limit holds, and so does the
    exit code: 0 PROVEN or no limit asked, 1 REFUTED, 2 usage or tool error, 3 INVALID, 4 UNDECIDED. Ctrl-C ends the run
    properly and keeps it.

    \b
    rtproof run --duration 20s --load sched --limit 500us --at-most 1/h
    rtproof run --until-decided --max-duration 12h --limit 500us --at-most 1/h
    rtproof run --profile akamina --duration 20s
    rtproof run --abba '--policy fifo' '--policy rr' --repeat 5 --duration 60s
    """
    from rtproof.experiment import guest_runner, stored_runs

    requirements = take_requirements(values)
    measurement_options.refuse_virtual_time(values)
    if values["profile"] is None and values["abba"] is None:
        refuse_short_gaps(requirements, values)
    watch = measurement_options.take_until_options(values, requirements)
    own = HostOptions(**{field.name: values.pop(field.name) for field in fields(HostOptions)})
    wanted = experiment_options.take_profile_options(values)
    several = experiment_options.take_repeat_options(values)
    for side in several.sides if several else ():
        refuse_short_gaps(requirements, side.values)
    if several:
        experiment_options.refuse_with_repeat({"--profile": bool(wanted), "--observer": own.observer})
    if own.observer:
        values = measurement_options.with_observer(values, bool(wanted))
    if wanted:
        ctx.exit(
            _run_profile(own, wanted, run_request.RunRequest(_command_words(ctx), own.target, requirements, own.note))
        )
    if several:
        ctx.exit(
            _run_several(own, several, run_request.RunRequest(_command_words(ctx), own.target, requirements, own.note))
        )
    arguments, probe = run_request.agent_arguments(values), values["probe"] or ""
    with _open_target(own, lambda options: guest_runner.with_lab_kernel(own.target, options, probe)) as target:
        asked = run_request.RunRequest(
            _command_words(ctx), own.target, requirements, own.note, until_decided=watch is not None
        )
        plan = _plan(own, target, arguments, asked)
        report = stored_runs.report_path(plan.folder, HTML) if own.report else None
        if report:
            files.refuse_existing(report)
        with files.removing_empty_folders(plan.folder):
            outcome = _measure(target, plan, run_request.length_text(values), watch)
    ctx.exit(_print_result(own, plan.folder, report, outcome))


def _command_words(ctx: click.Context) -> tuple[str, ...]:
    typed: tuple[str, ...] = ctx.obj or ("rtproof", "run")
    return typed


def _run_profile(own: HostOptions, wanted: run_request.ProfileRequest, asked: run_request.RunRequest) -> int:
    """Every cell of a profile, one after another."""
    from rtproof.experiment import guest_runner, profile_campaign, profile_setup

    profile = profile_setup.with_requirements(
        profile_setup.requested_profile(wanted, own.target == guest_runner.QEMU_TARGET), asked.requirements
    )
    asked = replace(asked, requirements=profile_setup.profile_requirements(profile, asked.requirements))
    folder = run_request.new_folder(own.output, profile.name)
    with _open_target(
        own, lambda options: guest_runner.target_options_for_profile(own.target, options, profile)
    ) as target:
        return profile_campaign.run_campaign(_desk(own, target, asked), profile, wanted, folder, own.as_json)


def _run_several(own: HostOptions, several: run_request.SeriesRequest, asked: run_request.RunRequest) -> int:
    """Every run of a series, one after another."""
    from rtproof.experiment import guest_runner, repeated_runs

    folder = run_request.new_folder(own.output, several.kind)
    with _open_target(own, lambda options: guest_runner.with_lab_kernel(own.target, options, several.probe)) as target:
        desk = _desk(own, target, asked)
        measured = repeated_runs.measure_series(desk, several, folder)
    return repeated_runs.report_series(desk, several, measured, folder, own.as_json)


def _desk(own: HostOptions, target: "targets.Target", asked: run_request.RunRequest) -> "local_runner.LocalRunner":
    from rtproof.experiment import local_runner

    return local_runner.LocalRunner(
        target, own.agent or local_runner.agent_of(target), asked, own.percentiles, own.report
    )


def _open_target(
    own: HostOptions, completed: Callable[[dict[str, str]], dict[str, str]]
) -> "AbstractContextManager[targets.Target]":
    """completed: the options with what goes without saying for what is measured."""
    from rtproof import targets

    module = plugins.load_plugin(targets, own.target)
    options = completed(checked_options(f"the target {own.target}", module.OPTIONS, own.target_option))
    opened: AbstractContextManager[targets.Target] = module.open_target(options)
    return opened


def _plan(
    own: HostOptions, target: "targets.Target", arguments: tuple[str, ...], asked: run_request.RunRequest
) -> "RunPlan":
    from rtproof.experiment import local_runner
    from rtproof.run.session import RunPlan

    machine = target.machine()
    agent = own.agent or local_runner.agent_of(target)
    folder = own.output or _usual_folder(target.host_name())
    limits = run_request.limit_arguments(asked.requirements)
    return RunPlan(folder, agent, (*arguments, *limits), local_runner.describe_run(asked, machine, agent))


def _usual_folder(host_name: str) -> Path:
    return Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host_name}"


def _measure(target: "targets.Target", plan: "RunPlan", goal: str, watch: "Watch | None") -> "AgentOutcome":
    """Measure, with the live view on standard error, so that standard output holds nothing but the result."""
    from rtproof.run import session
    from rtproof.run.live_view import LiveView

    on_terminal = sys.stderr.isatty()
    if watch is None:
        return session.run_session(target, plan, LiveView(sys.stderr, goal, on_terminal))
    view = LiveView(sys.stderr, f"{goal} at most", on_terminal, more=watch.lines)
    return session.run_session(target, plan, view, watch)


def _print_result(own: HostOptions, folder: Path, report: Path | None, outcome: "AgentOutcome") -> int:
    """Print and write what was found; the exit code."""
    from rtproof.experiment import exported_files, stored_runs

    result = stored_runs.read_run(folder, percentiles=own.percentiles)
    stored_runs.print_run(result, own.as_json, short=True)
    click.echo(f"\nall of it: rtproof show {shlex.quote(str(folder))}", err=own.as_json)
    click.echo(f"run: {folder}", err=own.as_json)
    if report:
        stored_runs.write_new_file(report, result.report(HTML))
        click.echo(f"report: {report}", err=own.as_json)
    for sentence in exported_files.export_trace_files(folder, result.analysis):
        click.echo(sentence, err=own.as_json)
    _report_agent_failure(outcome)
    return result.exit_code


def _report_agent_failure(outcome: "AgentOutcome") -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    if outcome.failed:
        raise TargetError(outcome.said or f"the agent ended with exit code {outcome.exit_code}")
    if outcome.killed_by:
        sentence = f"the agent was killed by {outcome.killed_by}; what it measured until then is kept and judged"
        click.echo(f"rtproof: {sentence}", err=True)
