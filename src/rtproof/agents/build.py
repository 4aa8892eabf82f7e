# SPDX-License-Identifier: Apache-2.0
"""Compile the agent, once for each state of its sources and compiler.

The compiler is called directly, with all sources at once, because this must work where there is no make; the flags come
from the same files that agent/Makefile uses (``cflags``, ``ldflags``, ``table.sh``), so they stand in one place.
"""

import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import rtproof
from rtproof.agents import compilers
from rtproof.agents.architectures import Architecture, architecture, host
from rtproof.agents.compilers import Compiler
from rtproof.errors import UserError

NAME = "rtproof-agent"
_PACKAGE = Path(rtproof.__file__).parent


def source_dir() -> Path:
    """The agent's C sources: beside this package when installed, in the checkout otherwise."""
    for candidate in (_PACKAGE / "_agent_source", _PACKAGE.parent.parent / "agent"):
        if (candidate / "table.sh").is_file():
            return candidate
    raise UserError(f"the agent's sources are not at {_PACKAGE / '_agent_source'}: install rtproof again")


def sources(folder: Path) -> list[str]:
    """The C files of the agent, relative to ``folder``: its own, one per probe, one per load."""
    found = [path for pattern in ("*.c", "probes/*.c", "loads/*.c") for path in folder.glob(pattern)]
    return sorted(str(path.relative_to(folder)) for path in found)


def cache_dir() -> Path:
    """Where built agents are kept (XDG base directory specification)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "rtproof" / "agents"


def build_agent(arch: str = "", compiler: str = "auto") -> Path:
    """The agent's program file for an architecture (default: this machine's), compiled unless the cache has it.

    ``compiler``: ``auto``, ``zig``, or a command such as ``arm-linux-gnueabi-gcc``. UserError if nothing can compile it
    or it does not compile.
    """
    wanted = architecture(arch) if arch else host()
    chosen = compilers.choose(wanted, compiler)
    folder = source_dir()
    place = cache_dir() / f"{wanted.name}-{_key(folder, wanted, chosen)}"
    program = place / NAME
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                _compile(folder, chosen, program)
    except OSError as error:
        raise UserError(f"cannot keep the agent in {place}: {error.strerror}") from error
    return program


def _key(folder: Path, arch: Architecture, compiler: Compiler) -> str:
    """Changes when anything does that the program depends on."""
    digest = hashlib.sha256(f"{arch.name}\n{compiler.identity}\n{_tree_digest(folder)}".encode())
    return digest.hexdigest()[:16]


def _tree_digest(folder: Path) -> str:
    headers = (str(path.relative_to(folder)) for path in folder.glob("**/*.h"))
    digest = hashlib.sha256()
    for name in [*sources(folder), *sorted(headers), "cflags", "ldflags", "table.sh"]:
        content = (folder / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _compile(folder: Path, compiler: Compiler, program: Path) -> None:
    """Compile into a temporary folder and move the finished program into place."""
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        run = functools.partial(subprocess.run, cwd=folder, capture_output=True, text=True, check=False)
        tables = []
        for kind in ("probe", "load"):
            tables.append(Path(scratch, f"{kind}_table.c"))
            tables[-1].write_text(run(["sh", "table.sh", kind]).stdout)
        built = Path(scratch, NAME)
        command = [*compiler.command, "@cflags", *sources(folder), *map(str, tables), "@ldflags", "-o", str(built)]
        result = run(command)
        if result.returncode != 0:
            raise UserError(f"the agent does not compile with {compiler.command[0]}: {_first_error(result.stderr)}")
        built.replace(program)


def _first_error(messages: str) -> str:
    lines = [line for line in messages.splitlines() if "error" in line or "undefined" in line]
    return (lines or messages.splitlines() or ["it gave no message"])[0]
