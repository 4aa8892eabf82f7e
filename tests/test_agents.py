# SPDX-License-Identifier: Apache-2.0

import importlib.util
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import (
    ARCHITECTURES,
    Architecture,
    architecture,
    host_architecture,
)
from rtproof.core.errors import UserError

AGENT = Path(__file__).parent.parent / "agent"
PT_INTERP = 3
SHT_SYMTAB = 2

# Class (1: 32 bits, 2: 64 bits), byte order (1: little, 2: big) and machine of the ELF header (System V ABI, elf.h).
ELF = {
    "x86_64": (2, 1, 62),
    "aarch64": (2, 1, 183),
    "armv7": (1, 1, 40),
    "arm926": (1, 1, 40),
    "arm920t": (1, 1, 40),
    "riscv64": (2, 1, 243),
    "ppc64le": (2, 1, 21),
    "i386": (1, 1, 3),
    "ppc": (1, 2, 20),
}

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
needs_zig = pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="ziglang is not installed (extra cross)")
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="there is no make here")
each_architecture = pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda arch: arch.name)


def elf_identity(program: bytes) -> tuple[int, int, int]:
    order = "<" if program[5] == 1 else ">"
    return program[4], program[5], struct.unpack_from(order + "H", program, 18)[0]


def header_types(program: bytes) -> tuple[set[int], set[int]]:
    """Types of the program headers and of the section headers of an ELF file."""
    order = "<" if program[5] == 1 else ">"
    wide = program[4] == 2
    segments, sections = struct.unpack_from(order + ("QQ" if wide else "II"), program, 32 if wide else 28)
    sizes = struct.unpack_from(order + "HHHH", program, 54 if wide else 42)
    word = struct.Struct(order + "I")
    segment_types = {word.unpack_from(program, segments + n * sizes[0])[0] for n in range(sizes[1])}
    section_types = {word.unpack_from(program, sections + n * sizes[2] + 4)[0] for n in range(sizes[3])}
    return segment_types, section_types


def emulator(arch: Architecture) -> tuple[str, ...]:
    program = shutil.which(f"{arch.qemu[0]}-static") or shutil.which(arch.qemu[0])
    if not program:
        pytest.skip(f"{arch.qemu[0]} is not installed (Debian: qemu-user-static)")
    return (program, *arch.qemu[1:])


@pytest.fixture
def tiny_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source folder with the real flags and table maker, one probe and one load, and a cache of its own."""
    folder = tmp_path / "agent"
    for kind in ("probe", "load"):
        place, declared = folder / f"{kind}s", f"extern const struct {kind} *const {kind}s[];"
        (place / "common").mkdir(parents=True)  # what plug-ins share is compiled, and is no plug-in
        (place / f"{kind}.h").write_text(f"struct {kind} {{ int x; }}; int {kind}_number(void); {declared}\n")
        (place / "one.c").write_text(f'#include "{kind}.h"\nconst struct {kind} {kind}_one = {{ 1 }};\n')
        (place / "common" / "number.c").write_text(
            f"int {kind}_number(void);\nint {kind}_number(void) {{ return 1; }}\n"
        )
    (folder / "main.c").write_text(
        '#include "probes/probe.h"\nint main(void) { return !probes[0] || !!probes[probe_number()]; }\n'
    )
    for name in ("cflags", "ldflags", "table.sh"):
        shutil.copy(AGENT / name, folder)
    monkeypatch.setattr(build, "source_dir", lambda: folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@needs_compiler
def test_the_agent_for_this_machine_is_static_stripped_and_of_this_version() -> None:
    path = build.build_agent()
    program = path.read_bytes()
    segments, sections = header_types(program)
    assert elf_identity(program) == ELF[host_architecture().name]
    assert PT_INTERP not in segments
    assert SHT_SYMTAB not in sections
    assert build.agent_version(path) == rtproof.__version__


@needs_compiler
def test_a_second_build_compiles_nothing(tiny_agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.build_agent()
    assert subprocess.run([first], check=False).returncode == 0
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert build.build_agent() == first
    if build.links_statically(build.HOST_COMPILERS[0]):
        monkeypatch.setattr(build, "links_statically", lambda _: pytest.fail("linked something to try the compiler"))
        assert build.build_agent() == first


@needs_compiler
@pytest.mark.parametrize(
    "changed", ["main.c", "probes/probe.h", "probes/common/number.c", "loads/one.c", "cflags", "ldflags", "table.sh"]
)
def test_a_change_of_anything_it_is_made_of_is_a_new_agent(tiny_agent: Path, changed: str) -> None:
    first = build.build_agent()
    with (tiny_agent / changed).open("a") as file:
        file.write("\n")
    assert build.build_agent() != first


def test_a_probe_says_in_its_own_file_that_its_due_times_come_from_outside(tiny_agent: Path) -> None:
    (tiny_agent / "probes" / "wire.c").write_text("const struct method wired = { .from_outside = true };\n")
    assert [build.probe_due_from_outside(name) for name in ("wire", "one", "nothing", "", "../main")] == [
        True,
        *[False] * 4,
    ]


@needs_compiler
def test_failed_builds_leave_no_program(tiny_agent: Path, tmp_path: Path) -> None:
    (tiny_agent / "main.c").write_text("this is not C")
    with pytest.raises(UserError, match=r"main\.c:1:1: error"):
        build.build_agent()
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["lock"]


@needs_zig
def test_what_runs_in_a_guest_is_the_same_with_another_compiler_place_and_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_agent: Path
) -> None:
    # Building the C library takes most of a minute, once a machine.
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(Path.home() / ".cache" / "zig"))
    first = build.build_agent("x86_64", build.PINNED).read_bytes()
    for name in ("cc", "gcc"):
        script(tmp_path / name, "exit 1")
    moved = tmp_path / "another place" / "agent"
    shutil.copytree(tiny_agent, moved)
    monkeypatch.setattr(build, "source_dir", lambda: moved)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "stddef.h").write_text("#error another header\n")
    monkeypatch.setenv("CPATH", str(tmp_path / "include"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another cache"))
    assert build.build_agent("x86_64", build.PINNED).read_bytes() == first


def elf_header(arch: Architecture) -> bytes:
    """The first 20 bytes of a program file for an architecture."""
    bits, order, machine = ELF[arch.name]
    return b"\x7fELF" + bytes((bits, order)) + bytes(12) + machine.to_bytes(2, "little" if order == 1 else "big")


def other_architecture() -> Architecture:
    return next(arch for arch in ARCHITECTURES if ELF[arch.name] != ELF[host_architecture().name])


@pytest.mark.parametrize(
    "content",
    [elf_header(other_architecture()), elf_header(host_architecture())[:19], b"", b"#!/bin/sh\necho 0.1.0\n" * 2],
)
def test_a_packaged_program_for_another_processor_is_never_run(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_PACKAGE", tmp_path)
    name = host_architecture().name
    (tmp_path / "_agents" / name).mkdir(parents=True)
    for program, find in ((build.AGENT_NAME, build.find_agent), (build.SCANNER_NAME, build.find_scanner)):
        (tmp_path / "_agents" / name / program).write_bytes(content)
        with pytest.raises(UserError, match=rf"{program} is no program for {name}: install rtproof again"):
            find()


@needs_zig
@pytest.mark.slow
@each_architecture
def test_zig_builds_for_every_architecture_what_runs_on_it(arch: Architecture) -> None:
    path = build.build_agent(arch.name, "zig")
    program = path.read_bytes()
    assert elf_identity(program) == ELF[arch.name]
    assert PT_INTERP not in header_types(program)[0]
    assert build.agent_version(path, emulator(arch)) == rtproof.__version__


@needs_zig
@needs_make
@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm920t", "ppc"])
def test_the_c_tests_pass_on_the_oldest_and_on_a_big_endian_processor(name: str) -> None:
    arch = architecture(name)
    compiler = build.choose_compiler(arch, "zig").command
    place = AGENT.parent / "build" / f"agent-{name}"
    arguments = [f"O={place}", f"CC={' '.join(compiler)}", f"RUN={' '.join(emulator(arch))}"]
    run = subprocess.run(["make", "-s", "-C", AGENT, "check", *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
