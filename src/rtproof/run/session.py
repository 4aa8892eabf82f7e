# SPDX-License-Identifier: Apache-2.0
"""One run: the agent on a target, from a new run folder to the record in it."""

import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path

from rtproof import files
from rtproof.errors import RtproofError, TargetError, UserError
from rtproof.record import rundir
from rtproof.run.live import LiveView
from rtproof.run.signals import forwarding
from rtproof.run.talk import Listener
from rtproof.run.watching import Watcher
from rtproof.targets import Target

LOG_NAME = "agent.log"
PROGRESS_INTERVAL = "500ms"
REFUSED = 2
AGENT_LIST = "see rtproof-agent list"
DESK_LIST = "see 'rtproof agent list' and 'rtproof loads'"
"""What the agent's advice is at the desk, where nobody has it in the PATH."""


@dataclass(frozen=True)
class Plan:
    """What one run shall do. ``arguments``: of the agent, without its name and what the session itself adds;

    ``info``: what is written down about the run before it starts.
    """

    folder: Path
    agent: Path
    arguments: tuple[str, ...]
    info: rundir.RunInfo


@dataclass(frozen=True)
class Outcome:
    """How the agent ended. ``said``: its last sentence, or nothing; ``interrupted``: the user asked it to finish.

    ``decided``: whoever watched the run asked it to finish.
    """

    exit_code: int
    said: str
    interrupted: bool = False
    decided: bool = False

    @property
    def failed(self) -> bool:
        """Whether the agent says that it could not do what was asked."""
        return self.exit_code > 0

    @property
    def killed_by(self) -> str:
        """Name of the signal that ended the agent; empty if it ended by itself."""
        if self.exit_code >= 0:
            return ""
        try:
            return signal.Signals(-self.exit_code).name
        except ValueError:
            return f"signal {-self.exit_code}"


def run(target: Target, plan: Plan, view: LiveView, watcher: Watcher | None = None) -> Outcome:
    """Measure into a new run folder. Ctrl-C asks the agent to finish, and so does who watches it when he knows enough.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    rundir.create(plan.folder)
    try:
        rundir.write_info(plan.folder, plan.info)
        outcome = _measure(target, plan, view, watcher)
        if not _has_content(plan.folder / rundir.RECORD_NAME):
            raise _nothing_measured(outcome)
    except BaseException:
        _remove_if_nothing_measured(plan.folder)
        raise
    return outcome


def _measure(target: Target, plan: Plan, view: LiveView, watcher: Watcher | None) -> Outcome:
    record = plan.folder / rundir.RECORD_NAME
    remote = target.place(record)
    with forwarding() as forwarder:
        arguments = ("run", "-o", remote, *plan.arguments, "--progress", PROGRESS_INTERVAL, "--stop-on-eof")
        process = target.start((target.push(plan.agent), *arguments))
        forwarder.process = process
        listener = Listener(view, plan.folder / LOG_NAME, watcher, process.interrupt)
        listener.listen(process.lines())
        outcome = Outcome(process.wait(), listener.last, forwarder.received > 0, listener.stopped)
        listener.finish(outcome.failed)
        target.pull(remote, record)
    if _has_content(record):
        _flush(record)
    return outcome


def _flush(record: Path) -> None:
    try:
        files.flush(record)
    except OSError as error:
        raise TargetError(f"cannot bring {record} to its medium: {error.strerror}") from error


def _nothing_measured(outcome: Outcome) -> RtproofError:
    if outcome.exit_code == REFUSED and outcome.said:
        return UserError(outcome.said.replace(AGENT_LIST, DESK_LIST))
    how = f"was killed by {outcome.killed_by}" if outcome.killed_by else f"ended with exit code {outcome.exit_code}"
    reason = f": {outcome.said}" if outcome.said else ""
    return TargetError(f"the agent {how} before it measured anything{reason}")


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _remove_if_nothing_measured(folder: Path) -> None:
    """Take back our own files where there is no record to go with them; what anybody else put there stays."""
    if _has_content(folder / rundir.RECORD_NAME):
        return
    for name in (rundir.RECORD_NAME, rundir.INFO_NAME, LOG_NAME):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
