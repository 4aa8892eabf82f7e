# SPDX-License-Identifier: Apache-2.0
"""What is written down about a run before it starts: who asked for what, when and where, and with which agent."""

import getpass
import hashlib
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof import __version__
from rtproof.agents.architectures import for_machine
from rtproof.agents.find import find_agent
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement
    from rtproof.record.rundir import RequirementInfo, RunInfo
    from rtproof.targets import Target


@dataclass(frozen=True)
class Asked:
    """What the user asked for. command: as typed; target: name of its plug-in."""

    command: tuple[str, ...]
    target: str
    requirements: "tuple[Requirement, ...]"
    note: str
    until_decided: bool = False


def about(asked: Asked, machine: str, agent: Path) -> "RunInfo":
    """The contents of ``run.json``. machine: what ``uname -m`` says on the target; agent: program file on this host."""
    from rtproof.record.rundir import RunInfo

    return RunInfo(
        command=list(asked.command),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node() or "localhost",
        user=_user(),
        rtproof_version=__version__,
        agent_sha256=_sha256(agent),
        agent_arch=_architecture(machine),
        target=asked.target,
        requirements=[_requirement_info(each) for each in asked.requirements],
        until_decided=asked.until_decided,
        note=asked.note,
    )


def fitting_agent(machine: str) -> Path:
    """The agent for a machine, built if there is none yet."""
    return find_agent(for_machine(machine).name)


def agent_of(target: "Target") -> Path:
    """The agent that a target brings itself, else the one that fits its machine."""
    own = getattr(target, "own_agent", None)
    return Path(own()) if own else fitting_agent(target.machine())


def _architecture(machine: str) -> str:
    """An agent of the user's own may run where none of ours does."""
    try:
        return for_machine(machine).name
    except UserError:
        return machine


def _user() -> str:
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


def _requirement_info(requirement: "Requirement") -> "RequirementInfo":
    from rtproof.record.rundir import RequirementInfo

    return RequirementInfo(
        limit_ns=requirement.limit_ns,
        at_most_ns=requirement.at_most_ns,
        confidence=requirement.confidence,
        gap_ns=requirement.gap_ns,
        longest_ns=requirement.longest_ns,
        bunches=requirement.bunches,
    )
