# SPDX-License-Identifier: Apache-2.0
"""Run cells one after another on one target, each in the first of its ways that works there.

Before a cell starts, its run folder gets ``run.json``: who asked for what, when and where, and with which agent.
"""

import getpass
import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import click

from rtproof import __version__
from rtproof.agents.architectures import architecture_of_machine
from rtproof.agents.build import agent_prints, architecture_of_agent, find_agent, listed_rows
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean, one_line
from rtproof.core.units import format_duration
from rtproof.experiment.run_request import RunRequest
from rtproof.record.run_folder import RunInfo, TurnInfo, claims_text
from rtproof.run import session
from rtproof.run.live_view import LiveView, can_redraw
from rtproof.run.session import AgentOutcome, RunPlan
from rtproof.targets import LentTarget, Target

CANNOT_RUN_HERE = "can't run here"
"""The agent says this of a method or load that the machine lacks the means for."""
NOT_MEASURED_INTERRUPTED = "not measured: the campaign was interrupted before"
PART_IS_KEPT = "what it measured until then is kept and judged"


@dataclass(frozen=True)
class Cell:
    """One cell to measure: a run into ``folder``.

    name: for people. ways: the name of each way to measure it and the agent's arguments; the first that works is taken.
    announcement: told before it begins; goal: what the live view counts towards; note, turn: kept in the run folder.
    brief: the announcement is all that is shown; on a terminal the next one takes its place.
    """

    name: str
    folder: Path
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    announcement: str = ""
    goal: str = ""
    note: str = ""
    turn: TurnInfo | None = None
    brief: bool = False


@dataclass(frozen=True)
class CellEnd:
    """How a cell ended, as a campaign stores it.

    key: the name of its run folder. way: index of the way that was taken, None if nothing was measured. refused: the
    sentence for each way before. failure: what the user must know, "" if all is well. sha256: of its run, "" if no run
    can be read. report: whether the cell has its own report. files: its other files, as paths from the page. system:
    the guest that was measured, "" for the one system of a campaign on a target.
    """

    key: str
    sha256: str = ""
    way: int | None = None
    refused: tuple[str, ...] = ()
    failure: str = ""
    report: bool = False
    files: tuple[str, ...] = ()
    system: str = ""


def run_cells(target: Target, asked: RunRequest, cells: Iterable[Cell]) -> Iterator[tuple[CellEnd, bool]]:
    """Run the cells; yield each one's end and whether the user interrupted it. Then all later cells are skipped."""
    stopped, said = False, set[str]()
    for cell in cells:
        if stopped:
            yield CellEnd(cell.folder.name, failure=NOT_MEASURED_INTERRUPTED), True
            continue
        try:
            ended, stopped = _run_cell(target, asked, cell, said)
        except RtproofError as problem:
            ended = CellEnd(cell.folder.name, failure=str(problem))
        except OSError as error:
            ended = CellEnd(cell.folder.name, failure=f"{error.filename or cell.name}: {error.strerror}")
        except KeyboardInterrupt:
            ended, stopped = CellEnd(cell.folder.name, failure=NOT_MEASURED_INTERRUPTED), True
        yield ended, stopped


def plan_run(
    target: Target, asked: RunRequest, folder: Path, arguments: Sequence[str], turn: TurnInfo | None = None
) -> RunPlan:
    """The plan of a run that begins now: its folder stores the time."""
    agent = asked.agent or agent_of(target)
    info = describe_run(asked, target.machine(), agent, turn)
    claims = ("--claims", claims_text(info.requirements)) if info.requirements else ()
    # The agent keeps every exceedance of these limits, and tells of them while it measures.
    limits = dict.fromkeys(format_duration(each.limit_ns) for each in asked.requirements)
    words = (*arguments, *(word for limit in limits for word in ("--limit", limit)), *claims)
    options = dict(asked.target_options)
    if isinstance(target, LentTarget):
        options = target.options_to_find_it(options)
    return RunPlan(target, folder, agent, words, info, options)


def _run_cell(target: Target, asked: RunRequest, cell: Cell, said: set[str]) -> tuple[CellEnd, bool]:
    """The end of one cell, and whether it was interrupted.

    said: why a way could not be taken, which is told of the first cell alone. Where no way works, the last way's reason
    stands alone if it is the same for all ways or is nothing that the machine lacks.
    """
    with _view_of(cell) as view:
        return _run_ways(target, asked, cell, said, view)


@contextmanager
def _view_of(cell: Cell) -> Iterator[LiveView]:
    """Tell the announcement of a cell, and give its live view. That of a brief cell shows nothing."""
    on_terminal = can_redraw(sys.stderr)
    if not cell.brief:
        if cell.announcement:
            click.echo(clean(cell.announcement), err=True)
        yield LiveView(sys.stderr, cell.goal, on_terminal)
        return
    most = shutil.get_terminal_size().columns - 1 if on_terminal else None
    click.echo(one_line(cell.announcement, most), nl=not on_terminal, err=True)
    try:
        yield LiveView(StringIO(), cell.goal, on_terminal=False)
    finally:
        if on_terminal:
            click.echo(ERASED_LINE, nl=False, err=True)


ERASED_LINE = "\r\x1b[K"
"""Escape codes (ECMA-48) that clear the line of the cursor."""


def _run_ways(target: Target, asked: RunRequest, cell: Cell, said: set[str], view: LiveView) -> tuple[CellEnd, bool]:
    refused: list[str] = []
    for at, (name, arguments) in enumerate(cell.ways):
        plan = plan_run(target, replace(asked, note=cell.note), cell.folder, arguments, cell.turn)
        try:
            outcome = session.run_session(plan, view)
        except UserError as problem:
            refused.append(str(problem))
            if at + 1 < len(cell.ways):
                why = f"{name} can't be had here ({problem}); {cell.ways[at + 1][0]} is tried instead"
                if why not in said:
                    view.say(why)
                said.add(why)
            continue
        failure = f"it was interrupted; {PART_IS_KEPT}" if outcome.interrupted else ""
        if outcome.failed:
            failure = outcome.said or f"the agent ended with exit code {outcome.exit_code}"
        elif outcome.killed_by:
            failure = killed_sentence(outcome)
        return CellEnd(cell.folder.name, "", at, tuple(refused), failure), outcome.interrupted
    failure = refused[-1]
    if len(set(refused)) > 1 and CANNOT_RUN_HERE in failure:
        reasons = "; ".join(f"{name}: {why}" for (name, _), why in zip(cell.ways, refused, strict=True))
        failure = f"none of its ways can be had here ({reasons})"
    return CellEnd(cell.folder.name, failure=failure), False


def killed_sentence(outcome: AgentOutcome, lacks: str = "") -> str:
    """What the user must know of an agent that was killed; its record was read up to its last checkpoint.

    lacks: how much of what was asked the record has.
    """
    how = outcome.vanished or f"the agent was killed by {outcome.killed_by}"
    return "; ".join(part for part in (how, lacks, PART_IS_KEPT) if part)


def agent_failure(outcome: AgentOutcome, lacks: str = "") -> TargetError | None:
    """Why the agent failed. One that was killed has not failed, and that is printed, with what its record lacks."""
    if outcome.failed:
        return TargetError(outcome.said or f"the agent ended with exit code {outcome.exit_code}")
    if outcome.killed_by:
        click.echo(f"rtproof: {killed_sentence(outcome, lacks)}", err=True)
    return None


def describe_run(asked: RunRequest, machine: str, agent: Path, turn: TurnInfo | None = None) -> RunInfo:
    """The contents of ``run.json``. machine: what ``uname -m`` says on the target; agent: program file on this host.

    The user may have an agent for a machine for which we build none, which keeps its own name.
    """
    arch = architecture_of_agent(agent)
    if not arch:
        with suppress(UserError):
            arch = architecture_of_machine(machine).name
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # Many containers have no name for the user.
        user = str(os.getuid())
    try:
        digest = hashlib.sha256(agent.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"the agent {agent} cannot be read: {error.strerror}") from error
    return RunInfo(
        command=list(asked.command),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node() or "localhost",
        user=user,
        rtproof_version=__version__,
        agent_sha256=digest,
        agent_arch=arch or machine,
        target=asked.target,
        requirements=asked.requirements,
        until_decided=asked.until_decided,
        note=asked.note,
        turn=turn,
    )


def fitting_agent(machine: str) -> Path:
    return find_agent(architecture_of_machine(machine).name)


_UNKNOWN = re.compile(r"there is no (load|probe) '([^']{1,60})'; see ")


def with_known_names(problem: UserError) -> UserError:
    """The agent's refusal of a load or a probe, with the names that there are. Any other refusal stays as it is.

    The agent for this machine is asked, because one for another machine cannot run here.
    """
    refused = _UNKNOWN.match(str(problem))
    if not refused:
        return problem
    from rtproof import loads

    kind, name = refused.groups()
    try:
        known = [row[1] for row in listed_rows(agent_prints(fitting_agent(platform.machine()), "list"), kind)]
    except RtproofError:
        return problem
    return UserError(unknown_name(kind, name, sorted({*known, *(loads.names() if kind == "load" else [])})))


def agent_of(target: Target) -> Path:
    """The agent that a target brings itself, else the one that fits its machine."""
    own = getattr(target, "own_agent", None)
    return Path(own()) if own else fitting_agent(target.machine())
