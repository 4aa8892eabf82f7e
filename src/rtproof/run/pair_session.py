# SPDX-License-Identifier: Apache-2.0
"""Carry out one run on two boards: one gives edges, the other answers them. Both records come into one run folder.

The responder begins first and ends last, so that no edge finds nobody. Whichever of the two ends early ends the other.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO

from rtproof.core.errors import RecordError, RtproofError, TargetError
from rtproof.record import unfinished_run
from rtproof.record.reading import open_record
from rtproof.run import session
from rtproof.run.live_view import LiveView, Progress
from rtproof.run.session import LOG_NAMES, AgentListener, AgentOutcome, RunPlan, SignalForwarder, forwarding_signals
from rtproof.targets import LastingProcess, Process

READY_S = 120.0
"""How long the responder may take until it says that it measures. The generator finds out whether it does."""
LEAVE_S = 20.0
"""How long the responder may take to end after each of the three signals, once the generator has ended."""


@dataclass(frozen=True)
class PairOutcome:
    """How the two agents ended; None if nobody could follow one to its end.

    lost: for each record that could not be fetched, why.
    """

    responder: AgentOutcome | None
    generator: AgentOutcome | None
    lost: tuple[str, ...] = ()


def run_pair(responder: RunPlan, generator: RunPlan, view: LiveView) -> PairOutcome:
    """Measure on both boards into a new run folder. Ctrl-C asks the generator to finish, and then the responder.

    view: of what the generator measures. If it measured nothing, the folder is removed, and UserError or
    TargetError says why. A record that is still on a board can be fetched later.
    """
    with session.new_run(responder):
        try:
            with forwarding_signals() as forwarder:
                outcome = _PairRun(responder, generator, view, forwarder).measure()
            if _measured_nothing(generator):
                ended = outcome.generator
                raise session.nothing_measured(ended) if ended else TargetError("; ".join(outcome.lost))
        except BaseException:
            if _measured_nothing(generator):
                # Then neither record has anything that is worth keeping, nor a guest's console.
                for plan in (generator, responder):
                    plan.record.unlink(missing_ok=True)
                    for log in plan.folder.glob("*console.log"):
                        log.unlink()
            raise
        return outcome


def _measured_nothing(plan: RunPlan) -> bool:
    """Whether no edge is recorded, neither here nor on the board. A record that cannot be read may have some."""
    if unfinished_run.is_there(plan.folder, plan.record_name):
        return False
    try:
        return not session.has_content(plan.record) or not open_record(plan.record).chunk_refs
    except RecordError:
        return False


class _UnseenView(LiveView):
    """Shows nothing of a responder, and sets an event once it says for the first time that it measures."""

    def __init__(self, goal: str, begun: threading.Event) -> None:
        super().__init__(StringIO(), goal, False)
        self._begun = begun

    def feed(self, progress: Progress) -> None:
        self._begun.set()


class _Follower:
    """Follows an agent in a thread of its own. outcome: None until it has ended, and if it could not be followed."""

    def __init__(self, process: Process, listener: AgentListener, over: Callable[[], None]) -> None:
        self.outcome: AgentOutcome | None = None
        self.problem = ""
        self._process = process
        self._listener = listener
        self._over = over
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def _follow(self) -> None:
        try:
            self.outcome = session.follow(self._process, self._listener, lambda: False)
        except (RtproofError, OSError) as problem:
            self.problem = str(problem)
        finally:
            self._over()

    def end(self) -> None:
        """Ask the agent to finish, each time more firmly."""
        for ask in (self._process.interrupt, self._process.terminate, self._process.kill):
            if self.over:
                return
            ask()
            self._thread.join(LEAVE_S)


class _PairRun:
    """One run of the two, step by step. To a signal of the user it is one process, which is both agents."""

    def __init__(self, responder: RunPlan, generator: RunPlan, view: LiveView, forwarder: SignalForwarder) -> None:
        self._responder = responder
        self._generator = generator
        self._view = view
        self._forwarder = forwarder
        self._running: list[Process] = []
        self._begun = threading.Event()
        self._ended_first = threading.Event()

    def lines(self) -> Iterator[str]:
        return iter(())

    def wait(self) -> int:
        return 0

    def interrupt(self) -> None:
        """Ask the last one that was started to finish, the generator if it runs."""
        for process in self._running[-1:]:
            process.interrupt()

    def terminate(self) -> None:
        for process in self._running:
            process.terminate()

    def kill(self) -> None:
        for process in self._running:
            process.kill()

    def measure(self) -> PairOutcome:
        """Start the responder, then the generator; end the responder when the generator has ended; fetch both."""
        plan = self._responder
        self._forwarder.process = self
        process, remote = session.start_agent(plan, self._view.goal, self._view.length_ns)
        self._running.append(process)
        unseen = _UnseenView(self._view.goal, self._begun)
        listener = AgentListener(unseen, plan.folder / LOG_NAMES[plan.record_name])
        follower = _Follower(process, listener, self._responder_is_over)
        generator, problem, given = None, "", ""
        try:
            self._wait_until_begun(follower)
            generator, given, problem = self._follow_generator(follower)
        finally:
            follower.end()
            lost = [follower.problem] if follower.problem else _fetched(plan, remote)
        lost = [*([problem] if problem else _fetched(self._generator, given)), *lost]
        return PairOutcome(follower.outcome, generator, tuple(lost))

    def _responder_is_over(self) -> None:
        self._ended_first.set()
        self._begun.set()
        for process in self._running[1:]:
            process.interrupt()

    def _wait_until_begun(self, follower: _Follower) -> None:
        """TargetError or UserError if the responder ends before the generator began."""
        self._begun.wait(READY_S)
        if not self._ended_first.is_set():
            return
        if follower.outcome is None:
            raise TargetError(follower.problem or "the responder could not be followed")
        raise session.nothing_measured(follower.outcome)

    def _follow_generator(self, follower: _Follower) -> tuple[AgentOutcome | None, str, str]:
        """How it ended, where its record is, and why it could not be followed to its end."""
        plan = self._generator
        process, remote = session.start_agent(plan, self._view.goal, self._view.length_ns)
        self._running.append(process)
        if follower.over:
            process.interrupt()
        log = plan.folder / LOG_NAMES[plan.record_name]
        listener = AgentListener(self._view, log)
        try:
            return session.follow(process, listener, lambda: self._forwarder.received > 0), remote, ""
        except (RtproofError, OSError) as problem:
            if not isinstance(process, LastingProcess):
                process.kill()
            return None, remote, str(problem)


def _fetched(plan: RunPlan, remote: str) -> list[str]:
    """Bring a record home. Why that failed, if it did."""
    try:
        session.bring_home(plan.target, remote, plan.record)
    except (RtproofError, OSError) as problem:
        return [str(problem)]
    return []
