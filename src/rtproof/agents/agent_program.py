# SPDX-License-Identifier: Apache-2.0
"""The agent's program file: where it is, which version it has, and what its ``list`` prints.

Each line of ``list`` describes one thing: tabs stand between its kind, its names and its help.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import rtproof
from rtproof.agents.architectures import architecture, host_architecture
from rtproof.agents.build import AGENT_NAME, build_agent
from rtproof.core.errors import UserError


def packaged_agent(arch: str) -> Path:
    """Where an installed package has the agent for an architecture, if it has it."""
    return Path(rtproof.__file__).parent / "_agents" / arch / AGENT_NAME


def find_agent(arch: str = "") -> Path:
    """The agent for an architecture (default: this machine's): packaged, else cached, else built now."""
    name = (architecture(arch) if arch else host_architecture()).name
    path = packaged_agent(name)
    return path if path.exists() else build_agent(name)


def agent_prints(path: Path, word: str, emulator: Sequence[str] = ()) -> str:
    """What the program file prints for a command of one word; ``emulator`` runs a foreign one."""
    try:
        result = subprocess.run([*emulator, str(path), word], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"cannot run {path} on this machine: {error.strerror}") from error
    if result.returncode != 0 or not result.stdout.strip():
        why = result.stderr.strip() or f"exit code {result.returncode}"
        raise UserError(f"{path} does not say its {word}: {why}")
    return result.stdout


def agent_version(path: Path, emulator: Sequence[str] = ()) -> str:
    """The version that the program file gives itself, such as ``0.1.0``."""
    return agent_prints(path, "version", emulator).split()[0]


NOT_HERE = "; not here: "
"""Stands in a help before what this machine lacks for it."""


FIELDS_OF_KIND = {"probe": 3, "probe_option": 4, "method": 4, "load": 3, "load_option": 4}


def listed_rows(listed: str, *kinds: str) -> list[list[str]]:
    """The words of each line of these kinds, by default of all. Lines that an agent of another version may have, with
    other words, are left out."""
    split = (line.split("\t") for line in listed.splitlines())
    return [row for row in split if len(row) == FIELDS_OF_KIND.get(row[0]) and row[0] in (kinds or FIELDS_OF_KIND)]


def missing_on_machine(text: str) -> str:
    """What the machine lacks, as a help says; "" if nothing."""
    return text.partition(NOT_HERE)[2]


def help_without_missing(text: str) -> str:
    """The help alone."""
    return text.partition(NOT_HERE)[0]
