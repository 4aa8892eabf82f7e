# SPDX-License-Identifier: Apache-2.0
"""Open the target of ``rtproof run`` and measure there one run, every run of a series, or every cell of a profile.

Functions import what only a guest, a pair, a series or a profile needs. One run begins without waiting for it.
"""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from rtproof import targets
from rtproof.core import files, patience, plugins
from rtproof.core.errors import LinkError, RecordStaysError, TargetError, UserError
from rtproof.core.plugins import checked_options
from rtproof.core.printable import clean
from rtproof.core.units import format_duration, parse_duration
from rtproof.experiment import run_request, target_runner
from rtproof.experiment.run_request import QEMU_TARGET, RunRequest, program_name
from rtproof.record import unfinished_run
from rtproof.record.run_folder import GENERATOR_NAME, RECORD_NAME, read_run_info
from rtproof.record.unfinished_run import UnfinishedRun
from rtproof.run import session
from rtproof.run.live_view import LiveView, can_redraw
from rtproof.run.session import AgentOutcome
from rtproof.targets import LastingTarget, Target

if TYPE_CHECKING:
    from rtproof.judge.watch import Watch

LONGEST_NAME = 64
"""Of a machine, in a folder's name. It comes from the target, which may say anything."""


SHOWS_LOADS_NS = 2_000_000_000
"""A run that ends when it is decided lasts this long if it has loads. A record without their work is INVALID."""


def run_requested(asked: RunRequest) -> int:
    """Measure every cell of a profile, every run of a series, or once, and print what was found; the exit code."""
    if asked.profile:
        return _run_profile(asked)
    return _run_several(asked) if asked.sides else run_once(asked)


def run_once(asked: RunRequest) -> int:
    """Measure once, on two boards if one gives the edges, and print what was found; the exit code."""
    if asked.generator:
        return _run_pair(asked)
    if asked.detach:
        return _start_detached(asked)
    folder, outcome = measure_once(asked, watch_of(asked))
    from rtproof.experiment import printed_runs

    return printed_runs.print_result(asked, folder, outcome)


def watch_of(asked: RunRequest) -> "Watch | None":
    """Tells how the limits stand, and ends a run that ends when it is decided; None without a limit.

    None for a guest too, unless it is to end: it may run in virtual time, where nothing has a probability.
    """
    if not asked.requirements or (asked.target == QEMU_TARGET and not asked.until_decided):
        return None
    from rtproof.judge.watch import Watch

    outside = run_request.has_outside_events({"probe": asked.probe})
    least_ns = SHOWS_LOADS_NS if "--load" in asked.arguments else 0
    return Watch(asked.requirements, from_outside=outside, least_ns=least_ns, ends_run=asked.until_decided)


def measure_once(asked: RunRequest, watch: "Watch | None" = None, *, quiet: bool = False) -> tuple[Path, AgentOutcome]:
    """Measure once. The new run folder, and how the agent ended. quiet: nothing is shown while it measures."""
    with open_target_for(asked) as target:
        return measure_on(target, asked, watch, quiet=quiet)


def open_target_for(asked: RunRequest) -> AbstractContextManager[Target]:
    """The target that the request names, open within the context, with what the measurement needs of it."""
    return _open_target(asked, lambda options: _with_lab_kernel(asked.target, options, asked.probe))


def _with_lab_kernel(target: str, options: dict[str, str], probe: str) -> dict[str, str]:
    if target != QEMU_TARGET:
        return options
    from rtproof.experiment.guest_runner import with_lab_kernel

    return with_lab_kernel(target, options, probe)


def measure_on(
    target: Target, asked: RunRequest, watch: "Watch | None", *, quiet: bool = False
) -> tuple[Path, AgentOutcome]:
    """Measure once on an open target. The new run folder, and how the agent ended."""
    folder = asked.output or _usual_folder(target.host_name())
    plan = target_runner.plan_run(target, asked, folder, asked.arguments)
    # The live view is on standard error, so that standard output holds nothing but the result.
    stream, on_terminal = (StringIO(), False) if quiet else (sys.stderr, can_redraw(sys.stderr))
    goal = f"{asked.length} at most" if watch and watch.ends_run else asked.length
    silent = run_request.TOLD_AT_THE_END.get(run_request.probe_name(asked.probe), "")
    more = watch.lines if watch else tuple
    view = LiveView(stream, goal, on_terminal, more=more, length_ns=asked.length_ns, silent=silent)
    prepare = partial(_prepare_to_judge, asked.warmup_ns)
    with files.removing_empty_folders(folder), _telling_the_way_back(folder):
        try:
            return folder, session.run_session(plan, view, watch, prepare, asked.when_traced)
        except UserError as problem:
            raise target_runner.with_known_names(problem) from None


def _run_pair(asked: RunRequest) -> int:
    """Measure once on two boards, one of which gives the edges that the other answers; the exit code.

    TargetError if a record is still on its board.
    """
    assert asked.generator
    (name, options), arguments = asked.generator
    from rtproof.judge.analyse import refuse_long_limits
    from rtproof.run import pair_session

    refuse_long_limits(asked.requirements)
    giving = replace(asked, target=name, target_options=options, agent=None)
    with open_target_for(asked) as target, open_target_for(giving) as other:
        folder = asked.output or _usual_folder(target.host_name())
        plan = target_runner.plan_run(target, replace(asked, requirements=()), folder, asked.arguments)
        info = target_runner.describe_run(asked, target.machine(), plan.agent)
        plan = replace(plan, info=msgspec.structs.replace(info, generator=name))
        other_plan = replace(target_runner.plan_run(other, giving, folder, arguments), record_name=GENERATOR_NAME)
        view = LiveView(sys.stderr, asked.length, can_redraw(sys.stderr), length_ns=asked.length_ns)
        with files.removing_empty_folders(folder):
            outcome = pair_session.run_pair(plan, other_plan, view)
    from rtproof.experiment import printed_runs

    attach_it = f"{program_name()} attach {shlex.quote(str(folder))}"
    left = [name for name in (GENERATOR_NAME, RECORD_NAME) if unfinished_run.is_there(folder, name)]
    if left:
        why = "; ".join(outcome.lost)
        raise TargetError(f"{why}; not both records are here yet: {attach_it} fetches the rest")
    for sentence in outcome.lost:
        click.echo(f"rtproof: {sentence}", err=True)
    if not (folder / RECORD_NAME).exists():
        raise TargetError(f"the responder left no record; the generator's is {folder / GENERATOR_NAME}")
    code = printed_runs.print_result(asked, folder, outcome.generator or AgentOutcome(0, ""))
    if outcome.responder and (failure := target_runner.agent_failure(outcome.responder)):
        raise failure
    return code


def _start_detached(asked: RunRequest) -> int:
    """Start a run on a board, leave it there, and print the commands that attach to it and end it; the exit code."""
    with _open_target(asked, lambda options: options) as target:
        folder = asked.output or _usual_folder(target.host_name())
        plan = target_runner.plan_run(target, asked, folder, asked.arguments)
        with _telling_the_way_back(folder):
            session.start_and_leave(plan, asked.length, asked.length_ns)
    name = shlex.quote(str(folder))
    click.echo("The run goes on without this computer.")
    click.echo(f"{program_name()} attach {name}   shows it, and fetches the result")
    click.echo(f"{program_name()} stop {name}     ends it now, and fetches the result")
    return 0


def attach(folder: Path, *, stop: bool, report: bool, trust: bool) -> int:
    """Take up a run that goes on on a board, until it ends, and print what was found; the exit code.

    Of a run on two boards the generator is followed to its end, and then the responder is asked to finish.
    trust: whoever wrote the folder. UserError else of a folder that is not the user's own.
    """
    from rtproof.experiment import printed_runs

    left = [name for name in (GENERATOR_NAME, RECORD_NAME) if unfinished_run.is_there(folder, name)]
    paired = GENERATOR_NAME in left or (folder / GENERATOR_NAME).exists()
    runs = {name: unfinished_run.read(folder, name) for name in left or [RECORD_NAME]}
    foreign = [run for run in runs.values() if not unfinished_run.is_own(run)]
    if foreign and not trust:
        named = []
        for run in foreign:  # As they stand behind rtproof run, and what the board is told to run.
            words = ["--target", run.target]
            options = [f"{name}={value}" for name, value in run.target_options.items()]
            words += [word for option in options for word in ("--target-option", option)]
            words += [f"{name}={value}" for name, value in run.where.items() if value]
            named.append(clean(shlex.join(words)))
        why = f"nothing shows that you began the run in {folder} on this computer"
        raise UserError(f"{why}, and its files make this computer run: {'; '.join(named)}; --trust allows that")
    info = read_run_info(folder)
    asked = RunRequest(
        command=("rtproof", "attach", str(folder)),
        target=info.target if info else "",
        requirements=info.requirements if info else (),
        report=report,
    )
    outcomes = [
        _take_up(asked, folder, name, run, stop=stop or (paired and name == RECORD_NAME)) for name, run in runs.items()
    ]
    return printed_runs.print_result(asked, folder, outcomes[0])


def _take_up(
    asked: RunRequest, folder: Path, record_name: str, unfinished: UnfinishedRun, *, stop: bool
) -> AgentOutcome:
    asked = replace(asked, target=unfinished.target, target_options=tuple(unfinished.target_options.items()))
    # The target may be starting up, or its link may be cut just now.
    longest_ns = parse_duration(unfinished.target_options.get("patience", patience.USUAL))
    meanwhile = f"trying for {format_duration(longest_ns)}"
    trying = patience.Patience(f"the target {asked.target}", longest_ns / 1e9, meanwhile)
    with ExitStack() as stack:
        target = trying.tried(lambda: stack.enter_context(_open_target(asked, dict)), partial(click.echo, err=True))
        if not isinstance(target, LastingTarget):
            raise UserError(f"a run on the target {unfinished.target} cannot be taken up")
        with _telling_the_way_back(folder):
            return session.attach_session(target, unfinished, folder, stop=stop, record_name=record_name)


def _run_profile(asked: RunRequest) -> int:
    """Every cell of a profile, one after another."""
    from rtproof.experiment import guest_runner, profile_campaign

    profile = profile_campaign.requested_profile(asked, in_guest=asked.target == QEMU_TARGET)
    asked = replace(asked, requirements=profile_campaign.profile_requirements(profile, asked.requirements))
    folder = run_request.new_folder(asked.output, profile.name)
    with _open_target(
        asked, lambda options: guest_runner.target_options_for_profile(asked.target, options, profile)
    ) as target:
        asked = replace(asked, agent=asked.agent or target_runner.agent_of(target))
        return profile_campaign.run_campaign(target, asked, profile, folder)


def _run_several(asked: RunRequest) -> int:
    """Every run of a series, one after another."""
    from rtproof.experiment import repeated_runs

    folder = run_request.new_folder(asked.output, "repeat" if len(asked.sides) == 1 else "abba")
    probe = next((side.probe for side in asked.sides if side.probe), "")
    with _open_target(asked, lambda options: _with_lab_kernel(asked.target, options, probe)) as target:
        asked = replace(asked, agent=asked.agent or target_runner.agent_of(target))
        measured = repeated_runs.measure_series(target, asked, folder)
    return repeated_runs.report_series(asked, measured, folder)


NO_PROBE = "timer"
"""A probe that needs nothing of a guest."""


def open_named_target(name: str, given: tuple[tuple[str, str], ...]) -> AbstractContextManager[Target]:
    """The target of this name, open within the context, with the kernel of the lab if it is a guest."""
    asked = RunRequest(command=(), target=name, target_options=given)
    return _open_target(asked, lambda options: _with_lab_kernel(name, options, NO_PROBE))


def _open_target(
    asked: RunRequest, completed: Callable[[dict[str, str]], dict[str, str]]
) -> AbstractContextManager[Target]:
    """completed: the options with what goes without saying for what is measured."""
    module = plugins.load_plugin(targets, asked.target)
    options = completed(checked_options(f"the target {asked.target}", module.OPTIONS, asked.target_options))
    opened: AbstractContextManager[Target] = module.open_target(options)
    return opened


def _usual_folder(host_name: str) -> Path:
    """A folder named by the time; with a number behind it if another run began in the same second."""
    name = clean(host_name).replace("/", "-")[:LONGEST_NAME]
    return files.free_path(Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}")


JUDGING_MODULES = (
    "numpy",
    "numpy.ma",
    "rtproof.summary.summary_model",
    "rtproof.judge.analysis_model",
    "rtproof.judge.verdict",
    "rtproof.judge.analyse",
    "rtproof.report.audit_findings",
    "rtproof.experiment.printed_runs",
)
"""Each takes at most 100 ms to import on a PC."""


def _prepare_to_judge(warmup_ns: int) -> None:
    """Load what judges while the agent warms up: this host may be the measured system, and is left alone afterwards.

    A part is loaded if twice the longest so far still fits; at first, if all the time of this process until now does.
    What does not fit is loaded when the run has ended.
    """

    def read_checks() -> None:
        from rtproof.audit import check_file

        check_file.severe_checks()

    parts: list[Callable[[], object]] = [*(partial(import_module, name) for name in JUDGING_MODULES), read_checks]
    room_s, longest_s, now_s = time.process_time(), 0.0, time.monotonic()
    begins_s = now_s + warmup_ns / 1e9
    for part in parts:
        if now_s + room_s > begins_s:
            return
        part()
        began_s, now_s = now_s, time.monotonic()
        longest_s = max(longest_s, now_s - began_s)
        room_s = 2 * longest_s


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
