# SPDX-License-Identifier: Apache-2.0
"""What can compile the agent on this machine: its own C compiler, musl-gcc, or zig."""

import functools
import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtproof.agents.architectures import Architecture, host
from rtproof.errors import UserError

HOW_TO_GET_ONE = (
    "install a C compiler (Debian: apt-get install gcc libc6-dev), which builds the agent for this machine, "
    "or zig (pip install 'rtproof[cross]'), which builds it for all"
)
ZIG_WITHOUT_TARGET = (sys.executable, "-m", "ziglang", "cc")


@dataclass(frozen=True)
class Compiler:
    """A command that compiles and links, and what it says about itself (part of the cache's key)."""

    command: tuple[str, ...]
    identity: str


def choose(arch: Architecture, wish: str = "auto") -> Compiler:
    """The first compiler here that can link statically for ``arch``; ``wish`` may be ``zig`` or a command instead.

    UserError that says what to install when there is none.
    """
    for command in _candidates(arch, wish):
        identity = _identity(command)
        if identity:
            return Compiler(command, identity)
    if wish in ("auto", "zig"):
        raise UserError(f"nothing here can build the agent for {arch.name}: {HOW_TO_GET_ONE}")
    raise UserError(f"{wish!r} is no compiler that can be run here")


def _candidates(arch: Architecture, wish: str) -> Iterator[tuple[str, ...]]:
    if wish not in ("auto", "zig"):
        yield tuple(shlex.split(wish))
        return
    if wish == "auto" and arch == host():
        yield from filter(links_statically, (("cc",), ("gcc",), ("musl-gcc",)))
    zig = _zig()
    if zig:
        yield (*zig, *arch.zig)


def _zig() -> tuple[str, ...]:
    """zig from PyPI if this Python has it (its version is pinned), else one in PATH, else nothing."""
    if importlib.util.find_spec("ziglang"):
        return ZIG_WITHOUT_TARGET
    return ("zig", "cc") if shutil.which("zig") else ()


@functools.cache
def _identity(command: tuple[str, ...]) -> str:
    """The compiler's name and version; empty if it cannot be run."""
    if not command or not shutil.which(command[0]):
        return ""
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return f"{shlex.join(command)}\n{result.stdout}" if result.returncode == 0 else ""


@functools.cache
def links_statically(command: tuple[str, ...]) -> bool:
    """Whether the compiler makes a static program: many systems have a compiler and no static C library."""
    if not shutil.which(command[0]):
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.c")
        source.write_text("int main(void) { return 0; }\n")
        tried = subprocess.run(
            [*command, "-static", "-pthread", str(source), "-o", str(source.with_suffix(""))],
            capture_output=True,
            check=False,
        )
    return tried.returncode == 0
