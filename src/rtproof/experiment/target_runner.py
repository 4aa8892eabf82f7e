# SPDX-License-Identifier: Apache-2.0
"""Run cells one after another on one target, each in the first of its ways that works there.

Before a cell starts, its run folder gets ``run.json``: who asked for what, when and where, and with which agent.
Programs that a profile names beside its cells, such as Xenomai's latency, run here too where they are installed.
"""

import getpass
import hashlib
import math
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof import __version__
from rtproof.agents.architectures import architecture_of_machine
from rtproof.agents.build import agent_prints, architecture_of_agent, find_agent, listed_rows
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.phrases import names_instead, unknown_name
from rtproof.core.printable import clean
from rtproof.experiment.run_request import ExperimentRequest, limit_arguments
from rtproof.record.run_folder import RunInfo, TurnInfo, claims_text
from rtproof.run import session
from rtproof.run.live_view import LiveView, can_redraw
from rtproof.run.session import AgentOutcome, RunPlan
from rtproof.targets import LentTarget, Target

if TYPE_CHECKING:
    from rtproof.profiles import OtherTool, Profile

CANNOT_RUN_HERE = "can't run here"
"""The agent says this of a method or load that the machine lacks the means for."""
NOT_MEASURED_INTERRUPTED = "not measured: the campaign was interrupted before"
PART_IS_KEPT = "what it measured until then is kept and judged"


@dataclass(frozen=True)
class Cell:
    """One cell to measure: a run into ``folder``.

    name: for people. ways: the name of each way to measure it and the agent's arguments; the first that works is taken.
    announcement: told before it begins; goal: what the live view counts towards; note, turn: kept in the run folder.
    """

    name: str
    folder: Path
    ways: tuple[tuple[str, tuple[str, ...]], ...]
    announcement: str = ""
    goal: str = ""
    note: str = ""
    turn: TurnInfo | None = None


@dataclass(frozen=True)
class CellEnd:
    """How a cell ended. way: index of the way that was taken, None if none was.

    refused: the sentence for each way before. outcome: None if nothing was measured. failure: what the user must know,
    "" if all is well.
    """

    cell: Cell
    way: int | None = None
    refused: tuple[str, ...] = ()
    outcome: AgentOutcome | None = None
    failure: str = ""
    interrupted: bool = False


@dataclass(frozen=True)
class TargetRunner:
    """Runs cells on one open target. agent: program file on this host. asked: what each run folder stores."""

    target: Target
    agent: Path
    asked: ExperimentRequest

    def run(self, cells: Iterable[Cell]) -> Iterator[CellEnd]:
        """Run the cells and yield each one's end. After Ctrl-C the current cell ends and all later ones are skipped."""
        stopped, said = False, set[str]()
        for cell in cells:
            if stopped:
                ended = CellEnd(cell, failure=NOT_MEASURED_INTERRUPTED, interrupted=True)
            else:
                ended = self._run_cell(cell, said)
            stopped = stopped or ended.interrupted
            yield ended

    def plan(self, folder: Path, arguments: Sequence[str], note: str, turn: TurnInfo | None = None) -> RunPlan:
        """The plan of a run that begins now: its folder stores the time."""
        info = describe_run(replace(self.asked, note=note), self.target.machine(), self.agent, turn)
        claims = ("--claims", claims_text(info.requirements)) if info.requirements else ()
        words = (*arguments, *limit_arguments(self.asked.requirements), *claims)
        options = dict(self.asked.target_options)
        if isinstance(self.target, LentTarget):
            options = self.target.options_to_find_it(options)
        return RunPlan(self.target, folder, self.agent, words, info, options)

    def _run_cell(self, cell: Cell, said: set[str]) -> CellEnd:
        """The end of one cell. said: why a way could not be taken, which is told of the first cell alone."""
        if cell.announcement:
            click.echo(clean(cell.announcement), err=True)
        view = LiveView(sys.stderr, cell.goal, can_redraw(sys.stderr))
        refused: list[str] = []
        try:
            for at, (name, arguments) in enumerate(cell.ways):
                plan = self.plan(cell.folder, arguments, cell.note, cell.turn)
                try:
                    return _cell_end(cell, at, tuple(refused), session.run_session(plan, view))
                except UserError as problem:
                    refused.append(str(problem))
                    if at + 1 < len(cell.ways):
                        why = f"{name} can't be had here ({problem}); {cell.ways[at + 1][0]} is tried instead"
                        if why not in said:
                            view.say(why)
                        said.add(why)
        except RtproofError as problem:
            return CellEnd(cell, refused=tuple(refused), failure=str(problem))
        except OSError as error:
            return CellEnd(cell, refused=tuple(refused), failure=f"{error.filename or cell.name}: {error.strerror}")
        except KeyboardInterrupt:
            return CellEnd(cell, refused=tuple(refused), failure=NOT_MEASURED_INTERRUPTED, interrupted=True)
        return CellEnd(cell, refused=tuple(refused), failure=_no_way_sentence(cell, refused))


def _cell_end(cell: Cell, way: int, refused: tuple[str, ...], outcome: AgentOutcome) -> CellEnd:
    failure = ""
    if outcome.failed:
        failure = outcome.said or f"the agent ended with exit code {outcome.exit_code}"
    elif outcome.killed_by:
        failure = killed_sentence(outcome)
    elif outcome.interrupted:
        failure = f"it was interrupted; {PART_IS_KEPT}"
    return CellEnd(cell, way, refused, outcome, failure, outcome.interrupted)


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


def _no_way_sentence(cell: Cell, refused: Sequence[str]) -> str:
    """Why no way works, in one sentence.

    The last way's reason alone, if it is the same for all ways or is nothing that the machine lacks.
    """
    if len(set(refused)) == 1 or CANNOT_RUN_HERE not in refused[-1]:
        return refused[-1]
    reasons = "; ".join(f"{name}: {why}" for (name, _), why in zip(cell.ways, refused, strict=True))
    return f"none of its ways can be had here ({reasons})"


def describe_run(asked: ExperimentRequest, machine: str, agent: Path, turn: TurnInfo | None = None) -> RunInfo:
    """The contents of ``run.json``. machine: what ``uname -m`` says on the target; agent: program file on this host."""
    return RunInfo(
        command=list(asked.command),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node() or "localhost",
        user=_user_name(),
        rtproof_version=__version__,
        agent_sha256=_sha256(agent),
        agent_arch=architecture_of_agent(agent) or _architecture(machine),
        target=asked.target,
        requirements=asked.requirements,
        until_decided=asked.until_decided,
        note=asked.note,
        turn=turn,
    )


def fitting_agent(machine: str) -> Path:
    """The agent for a machine, built if there is none yet."""
    return find_agent(architecture_of_machine(machine).name)


_UNKNOWN = re.compile(r"there is no (load|probe) '([^']{1,60})'; see ")
_LACKS = re.compile(r"((load|probe) '([^']{1,60})' has no (option|method) '([^']{1,60})')")


def with_known_names(problem: UserError) -> UserError:
    """The agent's refusal of a name, with those that there are: of loads, probes, their options and methods.

    Any other refusal stays as it is.

    The agent for this machine is asked, because one for another machine cannot run here.
    """
    refused = _UNKNOWN.match(str(problem)) or _LACKS.match(str(problem))
    if not refused:
        return problem
    try:
        listed = agent_prints(fitting_agent(platform.machine()), "list")
    except RtproofError:
        return problem
    return UserError(_lacking(listed, refused) if refused.re is _LACKS else _unknown(listed, *refused.groups()))


def _unknown(listed: str, kind: str, name: str) -> str:
    from rtproof import loads

    known = [row[1] for row in listed_rows(listed, kind)]
    own = loads.names() if kind == "load" else []
    return unknown_name(kind, name, sorted({*known, *own}))


def _lacking(listed: str, refused: re.Match[str]) -> str:
    sentence, kind, owner, what, name = refused.groups()
    rows = listed_rows(listed, what if what == "method" else f"{kind}_option")
    return sentence + names_instead(name, (row[2] for row in rows if row[1] == owner))


def agent_of(target: Target) -> Path:
    """The agent that a target brings itself, else the one that fits its machine."""
    own = getattr(target, "own_agent", None)
    return Path(own()) if own else fitting_agent(target.machine())


def _architecture(machine: str) -> str:
    """Name of the architecture; the machine's own name if we build no agent for it, because the user may have one."""
    try:
        return architecture_of_machine(machine).name
    except UserError:
        return machine


def _user_name() -> str:
    """The user's name; the number where the system has no name for it, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _sha256(agent: Path) -> str:
    try:
        return hashlib.sha256(agent.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"the agent {agent} cannot be read: {error.strerror}") from error


PROGRAM_RESULTS_FOLDER = "given"


def run_programs(profile: "Profile", agent: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Run the profile's programs, each as long as a cell and under its loads.

    Yields the label and the file of each that ran. A line on standard error says why a program could not run.
    """
    for number, program in enumerate(profile.programs, 1):
        lack = what_program_lacks(program)
        if lack:
            click.echo(clean(f"rtproof: {program.command[0]} ({program.label}) was not run: {lack}"), err=True)
            continue
        try:
            yield (
                program.label,
                _run_program(profile, program, agent, folder / PROGRAM_RESULTS_FOLDER / f"{number}.txt"),
            )
        except RtproofError as problem:
            click.echo(clean(f"rtproof: {program.label}: {problem}"), err=True)


def what_program_lacks(program: "OtherTool") -> str:
    """Why the program cannot run here; "" if it can."""
    if program.needs and not Path(program.needs).exists():
        return f"there is no {program.needs}"
    return "" if shutil.which(program.command[0]) else f"there is no program {program.command[0]!r}"


def _run_program(profile: "Profile", program: "OtherTool", agent: Path, output: Path) -> Path:
    from rtproof import loads

    cell = profile.cells[0]
    length_s = max(1, math.ceil(cell.length_ns / 1e9))
    command = [word.replace("{seconds}", str(length_s)) for word in program.command]
    click.echo(clean(f"{' '.join(command)} ({program.label}), {length_s} s"), err=True)
    output.parent.mkdir(exist_ok=True)
    with session.under_loads(agent, loads.resolve(cell.loads)):
        session.run_tool(command, length_s, output)
    return output
