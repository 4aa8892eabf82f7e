# SPDX-License-Identifier: Apache-2.0
"""Open the target of ``rtproof run`` and measure there one run, every run of a series, or every cell of a profile.

Functions import what only a guest, a pair, a series or a profile needs. One run begins without waiting for it.
"""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from rtproof import targets
from rtproof.core import files, patience, plugins
from rtproof.core.errors import LinkError, RecordStaysError, TargetError, UserError
from rtproof.core.phrases import quantity
from rtproof.core.plugins import checked_options
from rtproof.core.printable import clean
from rtproof.core.units import format_duration, parse_duration
from rtproof.experiment import (
    exported_files,
    foreign_tools,
    local_runner,
    printed_runs,
    run_request,
    stored_runs,
)
from rtproof.experiment.local_runner import LocalRunner
from rtproof.experiment.printed_runs import program_name
from rtproof.experiment.run_request import (
    QEMU_TARGET,
    TABLES,
    VERDICT_ONLY,
    ExperimentRequest,
    GeneratorRequest,
    Measurement,
    ProfileRequest,
    SeriesRequest,
)
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.paired import refuse_long_limits
from rtproof.judge.verdict_sentences import claim_answer
from rtproof.judge.watch import Watch
from rtproof.record.run_folder import GENERATOR_NAME, RECORD_NAME, read_run_info
from rtproof.report.pages.run_summary import verdict_line
from rtproof.run import session, unfinished_run
from rtproof.run.live_view import LiveView, can_redraw
from rtproof.run.session import AgentOutcome, RunPlan
from rtproof.summary.kernel_trace import has_recorder
from rtproof.targets import LastingTarget, Target

if TYPE_CHECKING:
    from rtproof.run.pair_session import PairOutcome

HTML = "html"
CUT_OFF = "truncated"
"""The doubt about a record without an end; it says how much of what was asked the record covers."""
LONGEST_NAME = 64
"""Of a machine, in a folder's name. It comes from the target, which may say anything."""


def run_once(asked: ExperimentRequest, wanted: Measurement, watch: Watch | None) -> int:
    """Measure once and print what was found; the exit code. watch: ends the run early."""
    return _print_result(asked, *_measure_once(asked, wanted, watch or _onlooker(asked, wanted)))


def _onlooker(asked: ExperimentRequest, wanted: Measurement) -> Watch | None:
    """A watch that tells how the limits stand and ends nothing; None without a limit.

    None for a guest too: it may run in virtual time, where nothing has a probability.
    """
    if not asked.requirements or asked.target == QEMU_TARGET:
        return None
    outside = run_request.has_outside_events({"probe": wanted.probe})
    return Watch(asked.requirements, from_outside=outside, ends_run=False)


def _measure_once(
    asked: ExperimentRequest, wanted: Measurement, watch: Watch | None, *, quiet: bool = False
) -> tuple[Path, Path | None, AgentOutcome]:
    """The new run folder, the place of its page if one is asked, and how the agent ended."""
    with open_target_for(asked, wanted) as target:
        return _measure_on(target, asked, wanted, watch, quiet=quiet)


def open_target_for(asked: ExperimentRequest, wanted: Measurement) -> AbstractContextManager[Target]:
    """The target that the request names, open within the context, with what this measurement needs of it."""
    return _open_target(asked, lambda options: _with_lab_kernel(asked.target, options, wanted.probe))


def _with_lab_kernel(target: str, options: dict[str, str], probe: str) -> dict[str, str]:
    """The options, for a guest with its kernel resolved."""
    if target != QEMU_TARGET:
        return options
    from rtproof.experiment.guest_runner import with_lab_kernel

    return with_lab_kernel(target, options, probe)


def _measure_on(
    target: Target, asked: ExperimentRequest, wanted: Measurement, watch: Watch | None, *, quiet: bool = False
) -> tuple[Path, Path | None, AgentOutcome]:
    folder = asked.output or _usual_folder(target.host_name())
    plan = _runner(asked, target).plan(folder, wanted.arguments, asked.note)
    report = stored_runs.report_path(folder, HTML) if asked.report else None
    with files.removing_empty_folders(folder):
        outcome = _measure(target, plan, wanted, watch, quiet=quiet)
    return folder, report, outcome


@dataclass(frozen=True)
class MeasuredRun:
    """A run that was measured and judged. page: None if none was asked. interrupted: Ctrl-C ended it early.

    failure: why the agent failed although it left a record; None if it did not.
    """

    folder: Path
    page: Path | None
    analysis: Analysis
    interrupted: bool
    failure: TargetError | None


def measure_and_judge(
    target: Target, asked: ExperimentRequest, wanted: Measurement, watch: Watch | None
) -> MeasuredRun:
    """Measure once on an open target, write the page if one is asked, and print no result."""
    folder, page, outcome = _measure_on(target, asked, wanted, watch or _onlooker(asked, wanted))
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    if page:
        stored_runs.write_new_file(page, result.report(HTML))
    for sentence in _trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=True)
    return MeasuredRun(folder, page, result.analysis, outcome.interrupted, _agent_failure(outcome))


@dataclass(frozen=True)
class CyclictestOutput:
    """What ``rtproof cyclictest`` prints and writes.

    bins_us: the end of the histogram; None: the lines of each thread. json_file: a new file for the result. nsecs: the
    lines are in nanoseconds. quiet: nothing is printed while it measures. command: for the result, as typed.
    """

    bins_us: int | None
    json_file: Path | None
    nsecs: bool
    quiet: bool
    command: str


def measure_folder(asked: ExperimentRequest, wanted: Measurement) -> tuple[Path, TargetError | None]:
    """Measure once. The run's folder, and why the agent failed although it left a record; None if it did not."""
    folder, _, outcome = _measure_once(asked, wanted, None)
    return folder, _agent_failure(outcome)


def run_pair(asked: ExperimentRequest, wanted: Measurement, generator: GeneratorRequest) -> int:
    """Measure once on two boards, one of which gives the edges that the other answers; the exit code."""
    from rtproof.run import pair_session

    refuse_long_limits(asked.requirements)
    giving = replace(asked, target=generator.target, target_options=generator.target_options, agent=None)
    with (
        open_target_for(asked, wanted) as target,
        open_target_for(giving, wanted) as other,
    ):
        folder = asked.output or _usual_folder(target.host_name())
        plan = _runner(replace(asked, requirements=()), target).plan(folder, wanted.arguments, asked.note)
        info = local_runner.describe_run(asked, target.machine(), plan.agent)
        plan = replace(plan, info=msgspec.structs.replace(info, generator=generator.target))
        other_plan = replace(
            _runner(giving, other).plan(folder, generator.arguments, asked.note),
            record_name=GENERATOR_NAME,
        )
        report = stored_runs.report_path(folder, HTML) if asked.report else None
        view = LiveView(sys.stderr, wanted.length, can_redraw(sys.stderr))
        view.length_ns = wanted.length_ns
        sides = (pair_session.Side(target, plan), pair_session.Side(other, other_plan))
        with files.removing_empty_folders(folder):
            outcome = pair_session.run_pair(*sides, view)
    return _print_pair(asked, folder, report, outcome)


def _print_pair(asked: ExperimentRequest, folder: Path, report: Path | None, outcome: "PairOutcome") -> int:
    """Print and write what was found; the exit code. TargetError if a record is still on its board."""
    attach_it = f"{program_name()} attach {shlex.quote(str(folder))}"
    left = [name for name in (GENERATOR_NAME, RECORD_NAME) if unfinished_run.is_there(folder, name)]
    if left:
        why = "; ".join(outcome.lost)
        raise TargetError(f"{why}; not both records are here yet: {attach_it} fetches the rest")
    for sentence in outcome.lost:
        click.echo(f"rtproof: {sentence}", err=True)
    if not (folder / RECORD_NAME).exists():
        raise TargetError(f"the responder left no record; the generator's is {folder / GENERATOR_NAME}")
    code = _print_result(asked, folder, report, outcome.generator or AgentOutcome(0, ""))
    if outcome.responder and (failure := _agent_failure(outcome.responder)):
        raise failure
    return code


def start_detached(asked: ExperimentRequest, wanted: Measurement) -> int:
    """Start a run on a board, leave it there, and say how to take it up; the exit code."""
    with _open_target(asked, lambda options: options) as target:
        if not isinstance(target, LastingTarget):
            raise UserError(f"a run on the target {asked.target} ends with rtproof, so it cannot be left running")
        folder = asked.output or _usual_folder(target.host_name())
        plan = _runner(asked, target).plan(folder, wanted.arguments, asked.note)
        with _telling_the_way_back(folder):
            session.start_and_leave(target, plan, wanted.length, wanted.length_ns)
    name = shlex.quote(str(folder))
    click.echo(
        f"the run goes on there; {program_name()} attach {name} takes it up, {program_name()} stop {name} ends it"
    )
    return 0


def attach(folder: Path, *, stop: bool, report: bool) -> int:
    """Take up a run that goes on on a board, until it ends, and print what was found; the exit code.

    Of a run on two boards the generator is followed to its end, and then the responder is asked to finish.
    """
    left = [name for name in (GENERATOR_NAME, RECORD_NAME) if unfinished_run.is_there(folder, name)]
    paired = GENERATOR_NAME in left or (folder / GENERATOR_NAME).exists()
    info = read_run_info(folder)
    asked = ExperimentRequest(
        command=("rtproof", "attach", str(folder)),
        target=info.target if info else "",
        requirements=stored_runs.requirements_of(info) if info else (),
    )
    outcomes = [
        _take_up(asked, folder, name, stop=stop or (paired and name == RECORD_NAME)) for name in left or [RECORD_NAME]
    ]
    page = stored_runs.report_path(folder, HTML) if report else None
    return _print_result(asked, folder, page, outcomes[0])


def _take_up(asked: ExperimentRequest, folder: Path, record_name: str, *, stop: bool) -> AgentOutcome:
    """Follow one agent until its record is here."""
    unfinished = unfinished_run.read(folder, record_name)
    asked = replace(asked, target=unfinished.target, target_options=tuple(unfinished.target_options.items()))
    with _open_when_reached(asked, unfinished.target_options) as target:
        if not isinstance(target, LastingTarget):
            raise UserError(f"a run on the target {unfinished.target} cannot be taken up")
        view = LiveView(sys.stderr, clean(unfinished.goal), can_redraw(sys.stderr))
        view.length_ns = unfinished.length_ns
        with _telling_the_way_back(folder):
            return session.attach_session(target, folder, view, stop=stop, record_name=record_name)


def run_as_cyclictest(asked: ExperimentRequest, wanted: Measurement, output: CyclictestOutput) -> int:
    """Measure once, and print and write what cyclictest does; the exit code."""
    if output.json_file:
        files.refuse_existing(output.json_file)
        if not output.json_file.absolute().parent.is_dir():
            raise UserError(f"cannot write {output.json_file}: its folder does not exist")
    folder, report, outcome = _measure_once(asked, wanted, None, quiet=output.quiet)
    result = stored_runs.read_run(folder)
    name, options = ("cyclictest-lines", {"unit": "ns" if output.nsecs else "us"})
    if output.bins_us:
        name, options = "cyclictest", {"bins": str(output.bins_us)}
    click.echo(exported_files.exported_text(name, result.analysis, options), nl=False)
    missed, verdict = quantity(result.analysis.pooled.never_ran, "missed cycle"), result.analysis.verdict
    click.echo(f"rtproof: {missed}; {verdict.state.value}: {claim_answer(verdict)}", err=True)
    click.echo(f"rtproof: all of it: rtproof show {shlex.quote(str(folder))} --all", err=True)
    if output.json_file:
        options = {"bins": str(output.bins_us or 0), "command": output.command}
        exported_files.write_export("cyclictest-json", output.json_file, result.analysis, options)
    if report:
        stored_runs.write_new_file(report, result.report(HTML))
    _report_agent_failure(outcome, result.analysis)
    return result.exit_code


def run_profile(asked: ExperimentRequest, wanted: ProfileRequest) -> int:
    """Every cell of a profile, one after another."""
    from rtproof.experiment import guest_runner, profile_campaign, profile_setup

    profile = profile_setup.with_requirements(
        profile_setup.requested_profile(wanted, asked.target == QEMU_TARGET), asked.requirements
    )
    asked = replace(asked, requirements=profile_setup.profile_requirements(profile, asked.requirements))
    folder = run_request.new_folder(asked.output, profile.name)
    with _open_target(
        asked, lambda options: guest_runner.target_options_for_profile(asked.target, options, profile)
    ) as target:
        return profile_campaign.run_campaign(_runner(asked, target), profile, wanted, folder)


def run_several(asked: ExperimentRequest, several: SeriesRequest) -> int:
    """Every run of a series, one after another."""
    from rtproof.experiment import repeated_runs

    folder = run_request.new_folder(asked.output, several.kind)
    with _open_target(asked, lambda options: _with_lab_kernel(asked.target, options, several.probe)) as target:
        measured = repeated_runs.measure_series(_runner(asked, target), several, folder)
    return repeated_runs.report_series(asked, several, measured, folder)


def _runner(asked: ExperimentRequest, target: Target) -> LocalRunner:
    return LocalRunner(target, asked.agent or local_runner.agent_of(target), asked)


def _open_target(
    asked: ExperimentRequest, completed: Callable[[dict[str, str]], dict[str, str]]
) -> AbstractContextManager[Target]:
    """completed: the options with what goes without saying for what is measured."""
    module = plugins.load_plugin(targets, asked.target)
    options = completed(checked_options(f"the target {asked.target}", module.OPTIONS, asked.target_options))
    opened: AbstractContextManager[Target] = module.open_target(options)
    return opened


@contextmanager
def _open_when_reached(asked: ExperimentRequest, options: Mapping[str, str]) -> Iterator[Target]:
    """The target of a run that goes on there. It may be starting up, or its link may be cut just now."""
    longest_ns = parse_duration(options.get("patience", patience.USUAL))
    meanwhile = f"trying for {format_duration(longest_ns)}"
    trying = patience.Patience(f"the target {asked.target}", longest_ns / 1e9, meanwhile)
    with ExitStack() as stack:
        while True:
            try:
                target = stack.enter_context(_open_target(asked, dict))
            except LinkError as problem:
                for sentence in trying.lost(problem):
                    click.echo(sentence, err=True)
                continue
            for sentence in trying.found():
                click.echo(sentence, err=True)
            yield target
            return


def _usual_folder(host_name: str) -> Path:
    """A folder named by the time; with a number behind it if another run began in the same second."""
    name = clean(host_name).replace("/", "-")[:LONGEST_NAME]
    return files.free_path(Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}")


def _measure(
    target: Target, plan: RunPlan, wanted: Measurement, watch: Watch | None, *, quiet: bool = False
) -> AgentOutcome:
    """Measure, with the live view on standard error, so that standard output holds nothing but the result."""
    stream, on_terminal = (StringIO(), False) if quiet else (sys.stderr, can_redraw(sys.stderr))
    goal = f"{wanted.length} at most" if watch and watch.ends_run else wanted.length
    view = LiveView(stream, goal, on_terminal, more=watch.lines if watch else tuple)
    view.length_ns = wanted.length_ns
    view.silent = foreign_tools.told_at_the_end(wanted.probe)
    try:
        with _telling_the_way_back(plan.folder):
            return session.run_session(target, plan, view, watch, wanted.when_traced)
    except UserError as problem:
        raise local_runner.with_known_names(problem) from None


@contextmanager
def _telling_the_way_back(folder: Path) -> Iterator[None]:
    """Add to an error how to have what was measured: the run goes on without its host."""
    try:
        yield
    except (LinkError, RecordStaysError, KeyboardInterrupt) as problem:
        if not any(unfinished_run.is_there(folder, name) for name in unfinished_run.OF_RECORD):
            raise
        why = str(problem) or "interrupted, and the run may go on there"
        raise LinkError(f"{why}; {program_name()} attach {shlex.quote(str(folder))} takes the run up") from None


def _print_result(asked: ExperimentRequest, folder: Path, report: Path | None, outcome: AgentOutcome) -> int:
    """Print and write what was found; the exit code."""
    result = stored_runs.read_run(folder, percentiles=asked.percentiles)
    show = f"{program_name()} show {shlex.quote(str(folder))}"
    if asked.as_json or asked.shown == TABLES:
        printed_runs.print_run(result, asked.as_json, short=True)
        click.echo(f"\nall of it: {show} --all\nrun: {folder}", err=asked.as_json)
    elif asked.shown == VERDICT_ONLY:
        click.echo(verdict_line(result.analysis))
    else:
        printed_runs.print_summary(result, report, show, new_page=report is not None)
        report = None
    if report:
        stored_runs.write_new_file(report, result.report(HTML))
        if asked.as_json or asked.shown == TABLES:
            click.echo(f"report: {report}", err=asked.as_json)
    for sentence in _trace_sentences(asked, folder, result.analysis):
        click.echo(sentence, err=asked.as_json)
    _report_agent_failure(outcome, result.analysis)
    return result.exit_code


def _trace_sentences(asked: ExperimentRequest, folder: Path, analysis: Analysis) -> list[str]:
    """Write the trace for other programs; the sentences to print. An explained run's screen has no room for all."""
    told = exported_files.export_trace_files(folder, analysis)
    if asked.shown == run_request.SUMMARY and has_recorder(analysis.record):
        return [sentence for sentence in told if sentence.startswith(exported_files.NOT_WRITTEN)]
    return told


def _report_agent_failure(outcome: AgentOutcome, analysis: Analysis) -> None:
    """What the user must know of an agent that did not end well, after what was measured has been shown."""
    cut_off = (doubt.what for doubt in analysis.doubts if doubt.code == CUT_OFF)
    if failure := _agent_failure(outcome, next(cut_off, "")):
        raise failure


def _agent_failure(outcome: AgentOutcome, lacks: str = "") -> TargetError | None:
    """Why the agent failed. One that was killed has not failed, and that is printed, with what its record lacks."""
    if outcome.failed:
        return TargetError(outcome.said or f"the agent ended with exit code {outcome.exit_code}")
    if outcome.killed_by:
        click.echo(f"rtproof: {local_runner.killed_sentence(outcome, lacks)}", err=True)
    return None
