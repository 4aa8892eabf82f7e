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

from rtproof import files, plugins, targets
from rtproof.cli import (
    about,
    campaign,
    complete,
    guests,
    laboratory,
    measuring,
    profiled,
    repeated,
    results,
    tracing,
    types,
    until,
)
from rtproof.cli.options import checked_options
from rtproof.cli.requirement import PERCENTILES, refuse_short_gaps, requirement_options, take_requirements
from rtproof.errors import TargetError

if TYPE_CHECKING:
    from rtproof.analysis.watch import Watch
    from rtproof.run.session import Outcome, Plan

PATH = click.Path(path_type=Path)
HTML = "html"


@dataclass(frozen=True)
class Own:
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
@measuring.agent_options
@requirement_options
@until.until_options
@PERCENTILES
@profiled.profile_options
@tracing.observer_option
@repeated.repeat_options
@click.option("--output", type=PATH, metavar="FOLDER", help="New folder (default runs/TIME-HOST, or TIME-PROFILE).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--report/--no-report", default=True, help="Write an HTML report beside the run folder (default).")
@click.option("--note", default="", metavar="TEXT", help="Whatever is worth remembering about this run.")
@click.option("--agent", type=PATH, metavar="FILE", help="Use this agent instead of the one that fits the target.")
@click.option(
    "--target",
    default="local",
    metavar="NAME",
    shell_complete=complete.targets,
    help="Where to measure (default local).",
)
@click.option("--target-option", type=types.KEY_VALUE, multiple=True, help="An option of the target; may be repeated.")
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
    requirements = take_requirements(values)
    until.refuse_virtual_time(values)
    if values["profile"] is None and values["abba"] is None:
        refuse_short_gaps(requirements, values)
    watch = until.take(values, requirements)
    own = Own(**{field.name: values.pop(field.name) for field in fields(Own)})
    wanted = profiled.take(values)
    several = repeated.take(values)
    for side in several.sides if several else ():
        refuse_short_gaps(requirements, side.values)
    if several:
        repeated.refuse_beside({"--profile": bool(wanted), "--observer": own.observer})
    if own.observer:
        values = tracing.observed(values, bool(wanted))
    if wanted:
        ctx.exit(_run_profile(own, wanted, about.Asked(_typed(ctx), own.target, requirements, own.note)))
    if several:
        ctx.exit(_run_several(own, several, about.Asked(_typed(ctx), own.target, requirements, own.note)))
    arguments, probe = measuring.agent_arguments(values), values["probe"] or ""
    with _open_target(own, lambda options: guests.with_kernel_of_lab(own.target, options, probe)) as target:
        asked = about.Asked(_typed(ctx), own.target, requirements, own.note, until_decided=watch is not None)
        plan = _plan(own, target, arguments, asked)
        report = results.report_path(plan.folder, HTML) if own.report else None
        if report:
            files.refuse_existing(report)
        with files.no_empty_folders(plan.folder):
            outcome = _run(target, plan, measuring.goal(values), watch)
    ctx.exit(_tell(own, plan.folder, report, outcome))


def _typed(ctx: click.Context) -> tuple[str, ...]:
    typed: tuple[str, ...] = ctx.obj or ("rtproof", "run")
    return typed


def _run_profile(own: Own, wanted: profiled.Asked, asked: about.Asked) -> int:
    """Every cell of a profile, one after another."""
    profile = profiled.with_requirements(profiled.profile_of(wanted, own.target == guests.QEMU), asked.requirements)
    asked = replace(asked, requirements=profiled.requirements_of(profile, asked.requirements))
    folder = laboratory.new_folder(own.output, profile.name)
    with _open_target(own, lambda options: guests.for_profile(own.target, options, profile)) as target:
        return campaign.run(_desk(own, target, asked), profile, wanted, folder, own.as_json)


def _run_several(own: Own, several: repeated.Asked, asked: about.Asked) -> int:
    """Every run of a series, one after another."""
    folder = laboratory.new_folder(own.output, several.kind)
    with _open_target(own, lambda options: guests.with_kernel_of_lab(own.target, options, several.probe)) as target:
        desk = _desk(own, target, asked)
        measured = repeated.measure(desk, several, folder)
    return repeated.tell(desk, several, measured, folder, own.as_json)


def _desk(own: Own, target: targets.Target, asked: about.Asked) -> campaign.Desk:
    return campaign.Desk(target, own.agent or about.agent_of(target), asked, own.percentiles, own.report)


def _open_target(
    own: Own, completed: Callable[[dict[str, str]], dict[str, str]]
) -> AbstractContextManager[targets.Target]:
    """completed: the options with what goes without saying for what is measured."""
    module = plugins.load(targets, own.target)
    options = completed(checked_options(f"the target {own.target}", module.OPTIONS, own.target_option))
    opened: AbstractContextManager[targets.Target] = module.open_target(options)
    return opened


def _plan(own: Own, target: targets.Target, arguments: tuple[str, ...], asked: about.Asked) -> "Plan":
    from rtproof.run.session import Plan

    machine = target.machine()
    agent = own.agent or about.agent_of(target)
    folder = own.output or _usual_folder(target.host_name())
    limits = measuring.limit_arguments(asked.requirements)
    return Plan(folder, agent, (*arguments, *limits), about.about(asked, machine, agent))


def _usual_folder(host_name: str) -> Path:
    return Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host_name}"


def _run(target: targets.Target, plan: "Plan", goal: str, watch: "Watch | None") -> "Outcome":
    """Measure, with the live view on standard error, so that standard output holds nothing but the result."""
    from rtproof.run import session
    from rtproof.run.live import LiveView

    on_terminal = sys.stderr.isatty()
    if watch is None:
        return session.run(target, plan, LiveView(sys.stderr, goal, on_terminal))
    view = LiveView(sys.stderr, f"{goal} at most", on_terminal, more=watch.lines)
    return session.run(target, plan, view, watch)


def _tell(own: Own, folder: Path, report: Path | None, outcome: "Outcome") -> int:
    """Print and write what was found; the exit code."""
    result = results.read_run(folder, percentiles=own.percentiles)
    results.show(result, own.as_json, short=True)
    click.echo(f"\nall of it: rtproof show {shlex.quote(str(folder))}", err=own.as_json)
    click.echo(f"run: {folder}", err=own.as_json)
    if report:
        results.write_new(report, result.report(HTML))
        click.echo(f"report: {report}", err=own.as_json)
    for sentence in tracing.keep_beside(folder, result.analysis):
        click.echo(sentence, err=own.as_json)
    _complain(outcome)
    return result.exit_code


def _complain(outcome: "Outcome") -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    if outcome.failed:
        raise TargetError(outcome.said or f"the agent ended with exit code {outcome.exit_code}")
    if outcome.killed_by:
        sentence = f"the agent was killed by {outcome.killed_by}; what it measured until then is kept and judged"
        click.echo(f"rtproof: {sentence}", err=True)
