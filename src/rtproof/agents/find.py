# SPDX-License-Identifier: Apache-2.0
"""Where the agent for a target is."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import rtproof
from rtproof.agents.architectures import architecture, host
from rtproof.agents.build import NAME, build_agent
from rtproof.errors import UserError


def packaged(arch: str) -> Path:
    """Where an installed package has the agent for an architecture, if it has it."""
    return Path(rtproof.__file__).parent / "_agents" / arch / NAME


def find_agent(arch: str = "") -> Path:
    """The agent for an architecture (default: this machine's): packaged, else cached, else built now."""
    name = (architecture(arch) if arch else host()).name
    path = packaged(name)
    return path if path.exists() else build_agent(name)


def ask(path: Path, word: str, emulator: Sequence[str] = ()) -> str:
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
    return ask(path, "version", emulator).split()[0]
