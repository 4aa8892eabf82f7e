# SPDX-License-Identifier: Apache-2.0
"""Compile the agent and other small programs for targets, and find the agent for a target."""

import fcntl
import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rtproof
from rtproof.agents.architectures import ARCHITECTURES, Architecture, architecture, host_architecture
from rtproof.core.errors import UserError
from rtproof.core.files import home_folder
from rtproof.core.scratch import scratch_folder

HOW_TO_GET_ONE = (
    "install a C compiler (Debian: apt-get install gcc libc6-dev), which builds the agent for this machine, "
    "or zig (pip install 'rtproof[cross]'), which builds it for all"
)
HOST_COMPILERS = (("cc",), ("gcc",), ("musl-gcc",))
ZIG_WITHOUT_TARGET = (sys.executable, "-m", "ziglang", "cc")

PINNED = "pinned"
"""The wish for the one compiler that builds what runs in guests: ``PINNED_ZIG`` from PyPI, and no other."""
PINNED_ZIG = "0.14.1"
"""The version in pyproject.toml and requirements/. A guest's virtual time depends on every instruction in it."""
KEPT_FOR_PINNED = ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
"""The variables that the pinned compiler gets. Others, such as CPATH, can change what it builds."""


@dataclass(frozen=True)
class Compiler:
    """A command that compiles and links. identity: what it says of itself, for the cache's key."""

    command: tuple[str, ...]
    identity: str
    environment: Mapping[str, str] | None = None


def choose_compiler(arch: Architecture, wish: str = "auto", *, static: bool = True) -> Compiler:
    """The first compiler on this machine that can link for ``arch``. UserError that says what to install.

    A zig that is the pinned one is the same compiler as with ``PINNED``, so a program that was built for a guest serves
    a board, too. static: the program needs no C library on the target. wish: ``zig``, ``PINNED`` or a command.
    """
    if wish == PINNED:
        return _pinned_compiler(arch)
    for command in _candidates(arch, wish, static=static):
        if command[: len(ZIG_WITHOUT_TARGET)] == ZIG_WITHOUT_TARGET and _ziglang_version() == PINNED_ZIG:
            return _pinned_compiler(arch)
        identity = _identity(command)
        if identity:
            return Compiler(command, identity)
    if wish in ("auto", "zig"):
        raise UserError(f"nothing here can build the agent for {arch.name}: {HOW_TO_GET_ONE}")
    raise UserError(f"{wish!r} is no compiler that can be run here")


def _pinned_compiler(arch: Architecture) -> Compiler:
    found = _ziglang_version()
    if found != PINNED_ZIG:
        here = f"here is {found}" if found else "it is not installed"
        raise UserError(
            f"the lab compiles with zig {PINNED_ZIG}, so that every machine gets the same bytes, and {here}: "
            f"pip install ziglang=={PINNED_ZIG}, or pip install 'rtproof[cross]'"
        )
    environment = {name: os.environ[name] for name in KEPT_FOR_PINNED if name in os.environ} | {"LC_ALL": "C"}
    command = (*ZIG_WITHOUT_TARGET, *arch.zig)
    return Compiler(command, f"zig {PINNED_ZIG} {shlex.join(arch.zig)}", environment)


@functools.cache
def _ziglang_version() -> str:
    """What the zig of this Python says its version is; empty without one."""
    if not importlib.util.find_spec("ziglang"):
        return ""
    said = subprocess.run([*ZIG_WITHOUT_TARGET[:-1], "version"], capture_output=True, text=True, check=False)
    return said.stdout.strip() if said.returncode == 0 else ""


def _candidates(arch: Architecture, wish: str, *, static: bool) -> Iterator[tuple[str, ...]]:
    """zig is the one from PyPI if this Python has it (with a pinned version), otherwise the one in PATH."""
    if wish not in ("auto", "zig"):
        yield tuple(shlex.split(wish))
        return
    if wish == "auto" and arch == host_architecture():
        yield from filter(links_statically, HOST_COMPILERS) if static else HOST_COMPILERS
    if importlib.util.find_spec("ziglang"):
        yield (*ZIG_WITHOUT_TARGET, *arch.zig)
    elif shutil.which("zig"):
        yield ("zig", "cc", *arch.zig)


@functools.cache
def _identity(command: tuple[str, ...]) -> str:
    """The compiler's name and version; empty if it cannot be run."""
    if not command or not shutil.which(command[0]):
        return ""
    result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return f"{shlex.join(command)}\n{result.stdout}" if result.returncode == 0 else ""


@functools.cache
def links_statically(command: tuple[str, ...]) -> bool:
    """Whether the compiler can make a static program. Many systems have a compiler without a static C library."""
    if not shutil.which(command[0]):
        return False
    with scratch_folder() as folder:
        source = folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        tried = subprocess.run(
            [*command, "-static", "-pthread", str(source), "-o", str(source.with_suffix(""))],
            capture_output=True,
            check=False,
        )
    return tried.returncode == 0


AGENT_NAME = "rtproof-agent"
SCANNER_NAME = "librtscan.so"
_PACKAGE = Path(rtproof.__file__).parent
_FROM_OUTSIDE = ".from_outside = true"


@dataclass(frozen=True)
class ProgramSources:
    """A program to compile. title: its name in messages. folder: its sources. tables: made by table.sh.

    library: a shared library for this machine. mapped: the linker's map lies beside the program, with MAP_SUFFIX.
    """

    name: str
    title: str
    folder: Path
    tables: tuple[str, ...] = ()
    library: bool = False
    mapped: bool = False


def source_dir() -> Path:
    return source_folder("agent")


def source_folder(name: str) -> Path:
    """A folder of C sources: in this package when it is installed, otherwise in the checkout. UserError if neither."""
    for candidate in (_PACKAGE / f"_{name}_source", _PACKAGE.parent.parent / name):
        if (candidate / "cflags").is_file():
            return candidate
    raise UserError(f"the {name}'s sources are not at {_PACKAGE / f'_{name}_source'}: install rtproof again")


def c_files_of(folder: Path) -> list[str]:
    """The C files of a program, relative to ``folder``: all in it and below it, except the tests."""
    files = (path.relative_to(folder) for path in folder.rglob("*.c"))
    return sorted(str(file) for file in files if file.parts[0] != "tests")


def probe_due_from_outside(probe: str) -> bool:
    """Whether the source of a probe's due times may pause. False if the probe's source is not here."""
    try:
        sources = source_dir() / "probes"
    except UserError:
        return False
    return any(path.stem == probe and _FROM_OUTSIDE in path.read_text() for path in sources.glob("*.c"))


def cache_dir() -> Path:
    """The folder of built agents (XDG base directory specification). UserError if this user has no home folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else home_folder() / ".cache") / "rtproof" / "agents"


def build_agent(arch: str = "", compiler: str = "auto", *, mapped: bool = False) -> Path:
    """The agent's program file for an architecture (default: this machine's). It is compiled unless the cache has it.

    compiler: ``auto``, ``zig``, ``PINNED``, or a command. UserError if there is none or the compilation fails.
    """
    sources = ProgramSources(AGENT_NAME, "the agent", source_dir(), ("probe", "load"), mapped=mapped)
    return build_program(sources, arch, compiler)


def build_scanner(arch: str = "", compiler: str = "auto") -> Path:
    """The shared library that counts the samples of large records, compiled as ``build_agent`` does."""
    sources = ProgramSources(SCANNER_NAME, "the scanner of samples", source_folder("scanner"), library=True)
    return build_program(sources, arch, compiler)


def build_program(program: ProgramSources, arch: str = "", compiler: str = "auto") -> Path:
    """The program file of any program. The arguments and errors are those of ``build_agent``."""
    wanted = architecture(arch) if arch else host_architecture()
    if compiler == "auto" and wanted == host_architecture():
        # A compiler whose program is there is known to link: asking it once more took a tenth of a second each run.
        first = HOST_COMPILERS[0]
        file = _place(program, wanted, Compiler(first, _identity(first))) / program.name
        if file.exists():
            return file
    chosen = choose_compiler(wanted, compiler, static=not program.library)
    place = _place(program, wanted, chosen)
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


def _place(program: ProgramSources, arch: Architecture, compiler: Compiler) -> Path:
    """The folder of the cache for what this compiler makes of a program. Its name has a digest of all that counts."""
    folder = program.folder
    headers = sorted(str(path.relative_to(folder)) for path in folder.glob("**/*.h"))
    tree = hashlib.sha256()
    for name in [*c_files_of(folder), *headers, "cflags", "ldflags", *(["table.sh"] if program.tables else [])]:
        content = (folder / name).read_bytes()
        tree.update(f"{name} {len(content)}\n".encode() + content)
    mapped = "mapped\n" if program.mapped else ""
    key = hashlib.sha256(f"{arch.name}\n{compiler.identity}\n{mapped}{tree.hexdigest()}".encode()).hexdigest()[:16]
    return cache_dir() / f"{arch.name}-{key}"


def _compile(program: ProgramSources, compiler: Compiler, file: Path) -> None:
    """Compile into a temporary folder and move the finished program into place."""
    if sys.stderr.isatty():  # it may take a minute
        print(f"rtproof: compiling {program.title}, once", file=sys.stderr)
    with scratch_folder(cache_dir()) as scratch:
        run = functools.partial(
            subprocess.run,
            cwd=program.folder,
            env=compiler.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        tables = []
        for kind in program.tables:
            tables.append(scratch / f"{kind}_table.c")
            tables[-1].write_text(run(["sh", "table.sh", kind]).stdout)
        built = scratch / program.name
        inputs = [*c_files_of(program.folder), *map(str, tables)]
        asked = [PRINT_MAP] if program.mapped else []
        result = run([*compiler.command, "@cflags", *inputs, "@ldflags", *asked, "-o", str(built)])
        if result.returncode != 0:
            lines = result.stderr.splitlines()
            wrong = [line for line in lines if "error" in line or "undefined" in line]
            why = (wrong or lines or ["it gave no message"])[0]
            raise UserError(f"{program.title} does not compile with {compiler.command[0]}: {why}")
        if program.mapped:
            file.with_suffix(MAP_SUFFIX).write_text(result.stdout)
        built.replace(file)


PRINT_MAP = "-Wl,--print-map"
"""GNU's linkers and zig's print the map of what they link; the program stays the same."""
MAP_SUFFIX = ".map"


# The next functions find the agent's program file, and read its version and the output of its ``list``.
#
# Each line of ``list`` describes one thing. Tabs separate its kind, its names and its help.


def packaged_agent(arch: str) -> Path:
    """The place of the agent for an architecture in an installed package. The file may be missing."""
    return _packaged_file(arch, AGENT_NAME)


def _packaged_file(arch: str, name: str) -> Path:
    return _PACKAGE / "_agents" / arch / name


def packaged_programs(arch: Architecture) -> list[Path]:
    """The agent and the scanner for an architecture, as far as the installed package has them."""
    return [path for name in (AGENT_NAME, SCANNER_NAME) if (path := _packaged_file(arch.name, name)).is_file()]


def _checked(file: Path, arch: Architecture) -> Path:
    """The file, if it is a program for this architecture; UserError otherwise, because an emulator could run it."""
    try:
        with file.open("rb") as stream:
            header = stream.read(20)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    wide, order, machine = arch.elf
    of_machine = machine.to_bytes(2, "little" if order == 1 else "big")
    if header[:4] != b"\x7fELF" or header[4:6] != bytes((wide, order)) or header[18:20] != of_machine:
        raise UserError(f"{file} is no program for {arch.name}: install rtproof again")
    return file


def find_agent(arch: str = "") -> Path:
    """The agent for an architecture (default: this machine's): the package's, or built. UserError if there is none."""
    wanted = architecture(arch) if arch else host_architecture()
    path = packaged_agent(wanted.name)
    return _checked(path, wanted) if path.exists() else build_agent(wanted.name)


def built_agent() -> Path | None:
    """The agent for this machine that is there without building one: the package's or the newest of the cache."""
    arch = host_architecture().name
    packaged = packaged_agent(arch)
    if packaged.exists():
        return packaged
    built = sorted(cache_dir().glob(f"{arch}-*/{AGENT_NAME}"), key=lambda path: path.stat().st_mtime)
    return built[-1] if built else None


def architecture_of_agent(agent: Path) -> str:
    """The name of the architecture that ``find_agent`` has found this for; "" for a program of the user's own."""
    name, folder = agent.parent.name.partition("-")[0], agent.parent.parent
    known = name in (each.name for each in ARCHITECTURES)
    return name if known and folder in (cache_dir(), packaged_agent(name).parent.parent) else ""


def find_scanner() -> Path:
    """The scanner for this machine: from the package, from the cache, or built now. UserError if it cannot be built."""
    arch = host_architecture()
    path = _packaged_file(arch.name, SCANNER_NAME)
    return _checked(path, arch) if path.exists() else build_scanner()


def agent_prints(path: Path, word: str, emulator: Sequence[str] = ()) -> str:
    """The output of the program file for the command ``word``. ``emulator``: runs a file for another processor."""
    try:
        result = subprocess.run([*emulator, str(path), word], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"cannot run {path} on this machine: {error.strerror}") from error
    if result.returncode != 0 or not result.stdout.strip():
        why = result.stderr.strip() or f"exit code {result.returncode}"
        raise UserError(f"{path} does not say its {word}: {why}")
    return result.stdout


def agent_version(path: Path, emulator: Sequence[str] = ()) -> str:
    return agent_prints(path, "version", emulator).split()[0]


NOT_HERE = "; not here: "
"""In a help text, what this machine lacks follows these words."""


FIELDS_OF_KIND = {"probe": 3, "probe_option": 4, "method": 4, "load": 3, "load_option": 4}


def listed_rows(listed: str, *kinds: str) -> list[list[str]]:
    """The fields of each line of these kinds, without lines that an agent of another version has in another form."""
    split = (line.split("\t") for line in listed.splitlines())
    return [row for row in split if len(row) == FIELDS_OF_KIND.get(row[0]) and row[0] in (kinds or FIELDS_OF_KIND)]


def missing_on_machine(text: str) -> str:
    """The part of a help text that says what this machine lacks; "" if it lacks nothing."""
    return text.partition(NOT_HERE)[2]


def help_without_missing(text: str) -> str:
    """The help text without the part that says what this machine lacks."""
    return text.partition(NOT_HERE)[0]
