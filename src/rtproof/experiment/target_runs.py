# SPDX-License-Identifier: Apache-2.0
"""Open the target of ``rtproof run`` and measure there one run, every run of a series, or every cell of a profile."""

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from rtproof import targets
from rtproof.core import files, plugins
from rtproof.core.errors import TargetError
from rtproof.core.plugins import checked_options
from rtproof.experiment import (
    exported_files,
    guest_runner,
    local_runner,
    profile_campaign,
    profile_setup,
    repeated_runs,
    run_request,
    stored_runs,
)
from rtproof.experiment.run_request import ProfileRequest, RunRequest, SeriesRequest
from rtproof.judge.watch import Watch
from rtproof.run import session
from rtproof.run.live_view import LiveView
from rtproof.run.session import AgentOutcome, RunPlan
from rtproof.targets import Target

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


def run_once(own: HostOptions, values: dict[str, Any], asked: RunRequest, watch: Watch | None) -> int:
    """Measure once and print what was found; the exit code. values: options of the agent; watch: ends the run early."""
    arguments, probe = run_request.agent_arguments(values), values["probe"] or ""
    with _open_target(own, lambda options: guest_runner.with_lab_kernel(own.target, options, probe)) as target:
        plan = _plan(own, target, arguments, asked)
        report = stored_runs.report_path(plan.folder, HTML) if own.report else None
        if report:
            files.refuse_existing(report)
        with files.removing_empty_folders(plan.folder):
            outcome = _measure(target, plan, run_request.length_text(values), watch)
    return _print_result(own, plan.folder, report, outcome)


def run_profile(own: HostOptions, wanted: ProfileRequest, asked: RunRequest) -> int:
    """Every cell of a profile, one after another."""
    profile = profile_setup.with_requirements(
        profile_setup.requested_profile(wanted, own.target == guest_runner.QEMU_TARGET), asked.requirements
    )
    asked = replace(asked, requirements=profile_setup.profile_requirements(profile, asked.requirements))
    folder = run_request.new_folder(own.output, profile.name)
    with _open_target(
        own, lambda options: guest_runner.target_options_for_profile(own.target, options, profile)
    ) as target:
        return profile_campaign.run_campaign(_desk(own, target, asked), profile, wanted, folder, own.as_json)


def run_several(own: HostOptions, several: SeriesRequest, asked: RunRequest) -> int:
    """Every run of a series, one after another."""
    folder = run_request.new_folder(own.output, several.kind)
    with _open_target(own, lambda options: guest_runner.with_lab_kernel(own.target, options, several.probe)) as target:
        desk = _desk(own, target, asked)
        measured = repeated_runs.measure_series(desk, several, folder)
    return repeated_runs.report_series(desk, several, measured, folder, own.as_json)


def _desk(own: HostOptions, target: Target, asked: RunRequest) -> local_runner.LocalRunner:
    return local_runner.LocalRunner(
        target, own.agent or local_runner.agent_of(target), asked, own.percentiles, own.report
    )


def _open_target(
    own: HostOptions, completed: Callable[[dict[str, str]], dict[str, str]]
) -> AbstractContextManager[Target]:
    """completed: the options with what goes without saying for what is measured."""
    module = plugins.load_plugin(targets, own.target)
    options = completed(checked_options(f"the target {own.target}", module.OPTIONS, own.target_option))
    opened: AbstractContextManager[Target] = module.open_target(options)
    return opened


def _plan(own: HostOptions, target: Target, arguments: tuple[str, ...], asked: RunRequest) -> RunPlan:
    machine = target.machine()
    agent = own.agent or local_runner.agent_of(target)
    folder = own.output or _usual_folder(target.host_name())
    limits = run_request.limit_arguments(asked.requirements)
    return RunPlan(folder, agent, (*arguments, *limits), local_runner.describe_run(asked, machine, agent))


def _usual_folder(host_name: str) -> Path:
    return Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host_name}"


def _measure(target: Target, plan: RunPlan, goal: str, watch: Watch | None) -> AgentOutcome:
    """Measure, with the live view on standard error, so that standard output holds nothing but the result."""
    on_terminal = sys.stderr.isatty()
    if watch is None:
        return session.run_session(target, plan, LiveView(sys.stderr, goal, on_terminal))
    view = LiveView(sys.stderr, f"{goal} at most", on_terminal, more=watch.lines)
    return session.run_session(target, plan, view, watch)


def _print_result(own: HostOptions, folder: Path, report: Path | None, outcome: AgentOutcome) -> int:
    """Print and write what was found; the exit code."""
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


def _report_agent_failure(outcome: AgentOutcome) -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    if outcome.failed:
        raise TargetError(outcome.said or f"the agent ended with exit code {outcome.exit_code}")
    if outcome.killed_by:
        sentence = f"the agent was killed by {outcome.killed_by}; what it measured until then is kept and judged"
        click.echo(f"rtproof: {sentence}", err=True)
