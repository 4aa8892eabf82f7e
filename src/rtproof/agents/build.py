# SPDX-License-Identifier: Apache-2.0
"""Compile the agent, and other small programs for targets, once for each state of their sources and compiler.

The compiler is called directly, with all sources at once, because this must work where there is no make; the flags come
from the same files that agent/Makefile uses (``cflags``, ``ldflags``, ``table.sh``), so they stand in one place.
"""

import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import rtproof
from rtproof.agents import compilers
from rtproof.agents.architectures import Architecture, architecture, host
from rtproof.agents.compilers import Compiler
from rtproof.errors import UserError

NAME = "rtproof-agent"
_PACKAGE = Path(rtproof.__file__).parent
_FROM_OUTSIDE = ".from_outside = true"


@dataclass(frozen=True)
class Program:
    """A program to compile. ``title``: what messages call it; ``folder``: its sources; ``tables``: made by table.sh."""

    name: str
    title: str
    folder: Path
    tables: tuple[str, ...] = ()


def source_dir() -> Path:
    """The agent's C sources."""
    return source_folder("agent")


def source_folder(name: str) -> Path:
    """A folder of C sources: beside this package when installed, in the checkout otherwise."""
    for candidate in (_PACKAGE / f"_{name}_source", _PACKAGE.parent.parent / name):
        if (candidate / "cflags").is_file():
            return candidate
    raise UserError(f"the {name}'s sources are not at {_PACKAGE / f'_{name}_source'}: install rtproof again")


def sources(folder: Path) -> list[str]:
    """The C files of a program, relative to ``folder``: all in it and below it, but for the tests."""
    files = (path.relative_to(folder) for path in folder.rglob("*.c"))
    return sorted(str(file) for file in files if file.parts[0] != "tests")


def from_outside(probe: str) -> bool:
    """Whether a probe declares ``from_outside`` for a method: what gives that method its due times may pause.

    The desk must know this before any agent runs. False for a probe whose source is not here.
    """
    try:
        sources = source_dir() / "probes"
    except UserError:
        return False
    return any(path.stem == probe and _FROM_OUTSIDE in path.read_text() for path in sources.glob("*.c"))


def cache_dir() -> Path:
    """Where built agents are kept (XDG base directory specification)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "rtproof" / "agents"


def build_agent(arch: str = "", compiler: str = "auto") -> Path:
    """The agent's program file for an architecture (default: this machine's), compiled unless the cache has it.

    ``compiler``: ``auto``, ``zig``, or a command such as ``arm-linux-gnueabi-gcc``. UserError if nothing can compile it
    or it does not compile.
    """
    return build_program(Program(NAME, "the agent", source_dir(), ("probe", "load")), arch, compiler)


def build_program(program: Program, arch: str = "", compiler: str = "auto") -> Path:
    """The file of any program, as ``build_agent`` does it for the agent."""
    wanted = architecture(arch) if arch else host()
    chosen = compilers.choose(wanted, compiler)
    place = cache_dir() / f"{wanted.name}-{_key(program, wanted, chosen)}"
    file = place / program.name
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                _compile(program, chosen, file)
    except OSError as error:
        raise UserError(f"cannot keep {program.title} in {place}: {error.strerror}") from error
    return file


def _key(program: Program, arch: Architecture, compiler: Compiler) -> str:
    """Changes when anything does that the program depends on."""
    digest = hashlib.sha256(f"{arch.name}\n{compiler.identity}\n{_tree_digest(program)}".encode())
    return digest.hexdigest()[:16]


def _tree_digest(program: Program) -> str:
    folder = program.folder
    headers = (str(path.relative_to(folder)) for path in folder.glob("**/*.h"))
    maker = ["table.sh"] if program.tables else []
    digest = hashlib.sha256()
    for name in [*sources(folder), *sorted(headers), "cflags", "ldflags", *maker]:
        content = (folder / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _compile(program: Program, compiler: Compiler, file: Path) -> None:
    """Compile into a temporary folder and move the finished program into place."""
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        run = functools.partial(subprocess.run, cwd=program.folder, capture_output=True, text=True, check=False)
        tables = []
        for kind in program.tables:
            tables.append(Path(scratch, f"{kind}_table.c"))
            tables[-1].write_text(run(["sh", "table.sh", kind]).stdout)
        built = Path(scratch, program.name)
        inputs = [*sources(program.folder), *map(str, tables)]
        result = run([*compiler.command, "@cflags", *inputs, "@ldflags", "-o", str(built)])
        if result.returncode != 0:
            why = _first_error(result.stderr)
            raise UserError(f"{program.title} does not compile with {compiler.command[0]}: {why}")
        built.replace(file)


def _first_error(messages: str) -> str:
    lines = [line for line in messages.splitlines() if "error" in line or "undefined" in line]
    return (lines or messages.splitlines() or ["it gave no message"])[0]
