# SPDX-License-Identifier: Apache-2.0
"""Carry out one run of the agent on a target, from the new run folder to the record in it."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rtproof.core import files
from rtproof.core.errors import AGENT_SAYS, LinkError, NoSuchRunError, RtproofError, TargetError, UserError
from rtproof.core.printable import clean
from rtproof.record import run_folder, unfinished_run
from rtproof.record.unfinished_run import UnfinishedRun
from rtproof.run.live_view import LiveView, Watcher, can_redraw, parse_over, parse_progress
from rtproof.targets import LastingProcess, LastingTarget, LentTarget, Process, Target

OWN_VOICE = "rtproof: "
"""Begins a sentence of the target, such as that the connection is lost. The next line may come much later."""
TRACE_IS_ON = "tracing"
NO_REAL_TIME = "the threads run without real time"
"""Begins the agent's sentence about a missing privilege that the user allowed. A limit makes such a run INVALID."""
LARGEST_LOG = 1 << 20
"""Number of characters of the agent's messages that are kept.

An agent that prints more is broken, and must not fill the disk or the screen.
"""


class AgentListener:
    """Takes the lines of the agent and the target. The agent's newest sentence is shown when the next line arrives.

    If the run fails, the last sentence says why, and ``run_session`` reports it as the error. ``watcher``: also gets
    the progress. ``stop``: called once, when the watcher says that the run may end. ``traced``: called when the agent
    says that the trace is on, which it does for a run that keeps the whole trace.
    """

    def __init__(
        self,
        view: LiveView,
        log_path: Path,
        watcher: Watcher | None = None,
        stop: Callable[[], None] = lambda: None,
        traced: Callable[[], None] = lambda: None,
    ) -> None:
        self._view = view
        self._watcher = watcher
        self._stop = stop
        self._traced = traced
        self._log_path = log_path
        self._room = LARGEST_LOG
        self._waiting = ""
        self.last = ""
        self.stopped = False

    def listen(self, lines: Iterable[str]) -> None:
        """Take lines until the agent prints no more."""
        for line in lines:
            self._show_waiting()
            if (progress := parse_progress(line)) is not None:
                self._view.feed(progress)
                told = progress.thread, progress.due_ns, progress.lost, progress.time_ns, progress.first_due_ns
                if self._watcher and self._watcher.progress(*told):
                    if not self.stopped:
                        self._stop()
                    self.stopped = True
            elif (over := parse_over(line)) is not None:
                if self._watcher:
                    self._watcher.over(over.thread, over.limit_ns, over.second, over.worst_ns, over.stretch)
            elif line == TRACE_IS_ON:
                self._traced()
            else:
                self._take("".join(each if each.isprintable() else "\ufffd" for each in line.expandtabs()))

    def finish(self, failed: bool) -> None:
        """Draw for the last time. If the run failed, the last sentence is not shown: the error message has it."""
        if not failed:
            self._show_waiting()
        self._view.draw(last=True)

    def _take(self, text: str) -> None:
        """Take a line without control characters, so that no target can send escape codes to the terminal."""
        if text.startswith(AGENT_SAYS):
            self.last = text.removeprefix(AGENT_SAYS)
        if self._watcher and self.last.startswith(NO_REAL_TIME):
            self._watcher.invalid(NO_REAL_TIME)
        self._room -= len(text) + 1
        if self._room >= 0:
            self._waiting = text
            # A full disk must not end the run here, because the agent handles a full disk.
            with contextlib.suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
                log.write(text + "\n")
        if text.startswith(OWN_VOICE):
            self._show_waiting()

    def _show_waiting(self) -> None:
        if self._waiting:
            self._view.say(self._waiting)
        self._waiting = ""


FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAKE_SIGNAL = signal.SIGURG
_WAKE_PAUSES_S = (0.0, 0.05)
_END_OF_SIGNALS = b"\0"


class SignalForwarder:
    """Forwards signals of this process to the agent: the first as SIGINT, the second as SIGTERM, then SIGKILL.

    starting: the agent may be running, and cannot be told yet. The first signal then waits for it, because an agent on
    a board that nobody knows of would go on alone. The second gives up.
    """

    def __init__(self) -> None:
        self.process: Process | None = None
        self.starting = False
        self.received = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal. The handler prints nothing, because it may have interrupted a print."""
        self.received += 1
        if self.process is None:
            if self.starting and self.received == 1:
                return
            raise KeyboardInterrupt
        firmness = (self.process.interrupt, self.process.terminate, self.process.kill)
        firmness[min(self.received, len(firmness)) - 1]()


@contextmanager
def forwarding_signals() -> Iterator[SignalForwarder]:
    """Forward signals within the context. In a thread other than the main thread nothing is forwarded.

    Python lets only the main thread install signal handlers.
    """
    forwarder = SignalForwarder()
    if threading.current_thread() is not threading.main_thread():
        yield forwarder
        return
    before = {number: signal.signal(number, forwarder.handle) for number in FORWARDED_SIGNALS}
    try:
        with _main_thread_woken():
            yield forwarder
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _main_thread_woken() -> Iterator[None]:
    """Interrupt the main thread's waiting at every signal.

    Python runs signal handlers between two steps of the main thread. A signal may come just before the main thread
    waits, or another thread may receive it. Without this, it would be handled only when the agent prints a line.
    """
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    handler = signal.signal(_WAKE_SIGNAL, lambda number, frame: None)
    before = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    poker = threading.Thread(target=_wake_main_thread, args=(receiving, threading.get_ident()), daemon=True)
    poker.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(sending, _END_OF_SIGNALS)
        poker.join()
        os.close(receiving)
        os.close(sending)
        signal.signal(_WAKE_SIGNAL, handler)


def _wake_main_thread(receiving: int, thread: int) -> None:
    """Send the wake-up signal to the thread twice, because the first may also come before the thread waits."""
    for number in iter(lambda: os.read(receiving, 1), _END_OF_SIGNALS):
        for pause_s in _WAKE_PAUSES_S if number[0] != _WAKE_SIGNAL else ():
            time.sleep(pause_s)
            signal.pthread_kill(thread, _WAKE_SIGNAL)


LOG_NAME = "agent.log"
LOG_NAMES = {run_folder.RECORD_NAME: LOG_NAME, run_folder.GENERATOR_NAME: "generator.log"}
"""What an agent said, beside the record that it wrote."""
PROGRESS_INTERVAL = "500ms"
REFUSED = 2
AGENT_LIST = "see rtproof-agent list"
DESK_LIST = "see 'rtproof agent list' and 'rtproof loads'"
"""This replaces the agent's advice in messages of the host, where the agent is not in the PATH."""


@dataclass(frozen=True)
class RunPlan:
    """What one run does. ``arguments``: the agent's arguments, without its name and those that the session adds.

    ``info``: written to ``run.json`` before the run starts. ``record_name``: of the record in the folder.
    """

    target: Target
    folder: Path
    agent: Path
    arguments: tuple[str, ...]
    info: run_folder.RunInfo
    target_options: Mapping[str, str] = field(default_factory=dict)
    record_name: str = run_folder.RECORD_NAME

    @property
    def record(self) -> Path:
        return self.folder / self.record_name


@dataclass(frozen=True)
class AgentOutcome:
    """How the agent ended. ``said``: the agent's last sentence, or "". ``interrupted``: the user ended the run.

    ``decided``: the watcher ended the run, because every limit was decided. ``vanished``: what happened to a run on a
    board whose end nobody saw.
    """

    exit_code: int
    said: str
    interrupted: bool = False
    decided: bool = False
    vanished: str = ""

    @property
    def failed(self) -> bool:
        """Whether the agent's exit code says that it could not do its task."""
        return self.exit_code > 0

    @property
    def killed_by(self) -> str:
        """The name of the signal that ended the agent; "" if it ended by itself."""
        if self.exit_code >= 0:
            return ""
        try:
            return signal.Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"


def run_session(
    plan: RunPlan,
    view: LiveView,
    watcher: Watcher | None = None,
    started: Callable[[], None] = lambda: None,
    traced: Callable[[], None] = lambda: None,
) -> AgentOutcome:
    """Measure into a new run folder. Ctrl-C asks the agent to finish, and so does the watcher once the run may end.

    started: called once the agent was started; until it returns, nothing that the agent says is heard. traced: called
    once the trace is on, of a run that keeps the whole trace.

    If nothing was measured, the folder is removed, and UserError or TargetError says why; KeyboardInterrupt if the user
    ended the run.
    """
    with new_run(plan):
        with forwarding_signals() as forwarder:
            process, remote = start_agent(plan, view.goal, view.length_ns, forwarder)
            listener = AgentListener(view, plan.folder / LOG_NAME, watcher, process.interrupt, traced)
            outcome = _follow(process, listener, forwarder, started)
            bring_home(plan.target, remote, plan.record)
        if not has_content(plan.folder / run_folder.RECORD_NAME):
            raise nothing_measured(outcome)
    return outcome


@contextmanager
def new_run(plan: RunPlan) -> Iterator[None]:
    """A new run folder with ``run.json``. It is removed if an error comes before anything is measured."""
    run_folder.create_run_folder(plan.folder)
    try:
        run_folder.write_run_info(plan.folder, plan.info)
        yield
    except BaseException:
        remove_if_nothing_measured(plan.folder)
        raise


def start_and_leave(plan: RunPlan, goal: str, length_ns: int) -> None:
    """Start a run on a board and leave it there. ``attach_session`` takes it up. UserError for any other target."""
    if not isinstance(plan.target, LastingTarget):
        raise UserError(f"a run on the target {plan.info.target} ends with rtproof, so it cannot be left running")
    with new_run(plan):
        start_agent(plan, goal, length_ns)
        if isinstance(plan.target, LentTarget):
            plan.target.keep()


def attach_session(
    target: LastingTarget,
    unfinished: UnfinishedRun,
    folder: Path,
    *,
    stop: bool = False,
    record_name: str = run_folder.RECORD_NAME,
) -> AgentOutcome:
    """Take up a run that goes on on a board, until its record is in the folder. stop: ask the agent to finish."""
    record = folder / record_name
    process = target.take_up(unfinished.where)
    view = LiveView(sys.stderr, clean(unfinished.goal), can_redraw(sys.stderr), length_ns=unfinished.length_ns)
    streams = process.stream_into(record)
    if stop:
        process.interrupt()
    with forwarding_signals() as forwarder, _new_log(folder / LOG_NAMES[record_name], goes_on=streams) as log:
        listener = AgentListener(view, log, stop=process.interrupt)
        try:
            outcome = _follow(process, listener, forwarder)
            bring_home(target, process.where()["record"], record)
        except NoSuchRunError as problem:
            if not streams:
                log.unlink(missing_ok=True)
            return _fetched_before(record, problem)
    if not any(
        has_content(folder / name) or unfinished_run.is_there(folder, name) for name in unfinished_run.OF_RECORD
    ):
        remove_if_nothing_measured(folder)
        raise nothing_measured(outcome)
    return outcome


@contextmanager
def _new_log(log: Path, *, goes_on: bool) -> Iterator[Path]:
    """Where the agent's messages go. They replace an earlier log only once all are here.

    Another process may follow the run into the same folder, and then this one is refused. goes_on: only those come that
    have not come before, so they are appended.
    """
    if goes_on:
        yield log
        return
    new = log.with_name(f".{log.name}.{os.getpid()}")
    try:
        yield new
        if new.exists():
            new.replace(log)
    finally:
        with contextlib.suppress(OSError):
            new.unlink()


def _fetched_before(record: Path, problem: NoSuchRunError) -> AgentOutcome:
    """How a run ended whose host was killed after it had removed the run from the board.

    A part of a record is not all of it: another board may have got the name.
    """
    from rtproof.record.reading import open_record  # slow to import, and no run needs it to begin

    if not has_content(record) or open_record(record).end is None:
        raise problem
    unfinished_run.remove(record.parent, record.name)
    return AgentOutcome(-signal.SIGKILL, "", vanished=str(problem))


def start_agent(
    plan: RunPlan, goal: str, length_ns: int, forwarder: SignalForwarder | None = None
) -> tuple[Process, str]:
    """Start the agent; the process, and the record's place on the target.

    Where it goes on without this host, the folder says how to find it, before it starts: this host may be killed, or
    its disk be full, at any moment.
    """
    target = plan.target
    lasts = isinstance(target, LastingTarget)
    remote = target.place(plan.record)
    with_host = () if lasts else ("--stop-on-eof",)
    words = ("run", "-o", remote, *plan.arguments, "--progress", PROGRESS_INTERVAL, *with_host)
    arguments = (target.push(plan.agent), *words)
    if isinstance(target, LastingTarget):
        unfinished = UnfinishedRun(
            target=plan.info.target,
            target_options=dict(plan.target_options),
            where=target.where(arguments),
            goal=goal,
            length_ns=length_ns,
        )
        unfinished_run.write(plan.folder, unfinished, plan.record_name)
    try:
        if forwarder:
            forwarder.starting = True
        process = target.start(arguments)
    except LinkError:
        raise  # it may have started
    except RtproofError:
        unfinished_run.remove(plan.folder, plan.record_name)
        raise
    if isinstance(process, LastingProcess):
        process.stream_into(plan.folder / plan.record_name)
    return process, remote


def _follow(
    process: Process, listener: AgentListener, forwarder: SignalForwarder, started: Callable[[], None] = lambda: None
) -> AgentOutcome:
    forwarder.process = process
    if forwarder.received:
        process.interrupt()
    started()
    return follow(process, listener, lambda: forwarder.received > 0)


def follow(process: Process, listener: AgentListener, interrupted: Callable[[], bool]) -> AgentOutcome:
    """Listen until the process ends. interrupted: whether the user ended the run."""
    listener.listen(process.lines())
    code = process.wait()
    vanished = process.ended_how() if isinstance(process, LastingProcess) else ""
    outcome = AgentOutcome(code, listener.last, interrupted(), listener.stopped, vanished)
    listener.finish(outcome.failed)
    return outcome


def bring_home(target: Target, remote: str, record: Path) -> None:
    """Fetch a record, and then forget that it was on a board."""
    target.pull(remote, record)
    if has_content(record):
        try:
            files.flush_file(record)
        except OSError as error:
            raise TargetError(f"cannot flush {record} to its medium: {error.strerror}") from error
    if unfinished_run.is_there(record.parent, record.name):
        unfinished_run.remove(record.parent, record.name)


def nothing_measured(outcome: AgentOutcome) -> RtproofError | KeyboardInterrupt:
    """Why nothing was measured. If the user ended the run, a series must not go on with its next one."""
    if outcome.interrupted:
        return KeyboardInterrupt()
    if outcome.exit_code == REFUSED and outcome.said:
        return UserError(outcome.said.replace(AGENT_LIST, DESK_LIST))
    how = f"was killed by {outcome.killed_by}" if outcome.killed_by else f"ended with exit code {outcome.exit_code}"
    said = outcome.said or outcome.vanished
    reason = f": {said}" if said else ""
    return TargetError(f"the agent {how} before it measured anything{reason}")


def has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def remove_if_nothing_measured(folder: Path) -> None:
    """Remove rtproof's own files if there is no record. Files of others stay, and so does their folder."""
    for name in unfinished_run.OF_RECORD:
        if has_content(folder / name) or unfinished_run.is_there(folder, name):
            return
    for name in (*LOG_NAMES, *LOG_NAMES.values(), run_folder.INFO_NAME):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
