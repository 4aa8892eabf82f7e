# SPDX-License-Identifier: Apache-2.0

import hashlib
import importlib.util
import os
import platform
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_process import agent

import rtproof
from rtproof.agents import build
from rtproof.agents.architectures import (
    ARCHITECTURES,
    Architecture,
    architecture,
    architecture_of_machine,
    host_architecture,
)
from rtproof.agents.build import agent_prints
from rtproof.cli.main import main
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


@pytest.fixture
def only_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder as the whole PATH, and no zig from PyPI; what compilers answer is not kept between tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    asked = (build._identity, build.links_statically, build._ziglang_version)
    for function in asked:
        function.cache_clear()
    yield folder
    for function in asked:
        function.cache_clear()


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_no_two_builds_claim_the_same_machine() -> None:
    machines = [machine for arch in ARCHITECTURES for machine in arch.machines]
    assert len(machines) == len(set(machines))
    assert {architecture_of_machine(machine).name for machine in machines} == set(ELF)


def test_this_machine_has_a_build() -> None:
    assert platform.machine() in host_architecture().machines


@pytest.mark.parametrize("ask", [architecture, architecture_of_machine])
def test_an_unknown_machine_is_refused(ask: object) -> None:
    with pytest.raises(UserError, match="pdp11"):
        ask("pdp11")  # type: ignore[operator]


@needs_make
def test_the_makefile_compiles_the_same_sources(tmp_path: Path) -> None:
    run = subprocess.run(
        ["make", "-s", "-C", AGENT, "sources", f"O={tmp_path}"], capture_output=True, check=True, text=True
    )
    listed = [name for name in run.stdout.split() if not name.endswith("_table.c")]
    assert sorted(listed) == build.c_files_of(AGENT)


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


@needs_compiler
@pytest.mark.parametrize(
    "changed", ["main.c", "probes/probe.h", "probes/common/number.c", "loads/one.c", "cflags", "ldflags", "table.sh"]
)
def test_a_change_of_anything_it_is_made_of_is_a_new_agent(tiny_agent: Path, changed: str) -> None:
    first = build.build_agent()
    with (tiny_agent / changed).open("a") as file:
        file.write("\n")
    assert build.build_agent() != first


@needs_compiler
def test_a_new_probe_is_one_new_file(tiny_agent: Path) -> None:
    (tiny_agent / "probes" / "two.c").write_text('#include "probe.h"\nconst struct probe probe_two = { 2 };\n')
    assert subprocess.run([build.build_agent()], check=False).returncode == 1


def test_a_probe_says_in_its_own_file_that_its_due_times_come_from_outside(tiny_agent: Path) -> None:
    (tiny_agent / "probes" / "wire.c").write_text("const struct method wired = { .from_outside = true };\n")
    assert [build.probe_due_from_outside(name) for name in ("wire", "one", "nothing", "", "../main")] == [
        True,
        *[False] * 4,
    ]


def test_from_outside_are_the_probe_with_lines_and_that_of_the_users_own_application() -> None:
    probes = [path.stem for path in (AGENT / "probes").glob("*.c")]
    assert {name for name in probes if build.probe_due_from_outside(name)} == {"gpio", "foreign"}


@needs_compiler
def test_a_probe_that_is_not_named_as_its_file_is_named_in_the_error(tiny_agent: Path) -> None:
    (tiny_agent / "probes" / "bad.c").write_text('#include "probe.h"\nconst struct probe probe_good = { 2 };\n')
    with pytest.raises(UserError, match=r"does not compile with cc: .*probe_bad"):
        build.build_agent()


@needs_compiler
def test_failed_builds_leave_no_program(tiny_agent: Path, tmp_path: Path) -> None:
    (tiny_agent / "main.c").write_text("this is not C")
    with pytest.raises(UserError, match=r"main\.c:1:1: error"):
        build.build_agent()
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["lock"]


@needs_compiler
def test_a_cache_that_cannot_be_written_is_said(tiny_agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UserError, match="cannot keep the agent in /dev/null/rtproof"):
        build.build_agent()


def test_a_relative_cache_setting_is_ignored_as_its_specification_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert build.cache_dir() == Path.home() / ".cache" / "rtproof" / "agents"


def test_without_a_compiler_both_ways_to_get_one_are_named(only_in_path: Path) -> None:
    with pytest.raises(UserError, match=r"install gcc.*pip install 'rtproof\[cross\]'"):
        build.choose_compiler(host_architecture())


def test_the_pinned_zig_has_one_version_everywhere() -> None:
    folder = AGENT.parent
    wanted = f"ziglang=={build.PINNED_ZIG}"
    assert f'cross = ["{wanted}"]' in (folder / "pyproject.toml").read_text()
    for name in ("cross", "dev"):
        assert f"{wanted} \\\n" in (folder / "requirements" / f"{name}.txt").read_text()


def test_without_the_pinned_compiler_no_other_builds_for_a_guest(only_in_path: Path) -> None:
    for name in ("cc", "gcc", "zig"):
        script(only_in_path / name, "exit 0")
    with pytest.raises(UserError, match=r"it is not installed: pip install ziglang==.*'rtproof\[cross\]'"):
        build.choose_compiler(host_architecture(), build.PINNED)


def test_another_version_of_the_pinned_compiler_builds_nothing_for_a_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_ziglang_version", lambda: "0.13.0")
    with pytest.raises(UserError, match=r"and here is 0\.13\.0: pip install"):
        build.choose_compiler(host_architecture(), build.PINNED)


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


@needs_compiler
def test_a_compiler_without_a_static_library_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, only_in_path: Path
) -> None:
    real = shutil.which("cc", path=os.defpath)
    script(only_in_path / "cc", f'case "$*" in *-static*) exit 1 ;; esac; exec {real} "$@"')
    script(only_in_path / "musl-gcc", f'PATH={os.defpath}; exec {real} "$@"')
    assert build.choose_compiler(host_architecture()).command == ("musl-gcc",)


def test_a_compiler_asked_for_by_name_must_be_there(only_in_path: Path) -> None:
    with pytest.raises(UserError, match="'no-such-gcc -m32' is no compiler"):
        build.choose_compiler(host_architecture(), "no-such-gcc -m32")


def test_a_c_compiler_of_this_machine_builds_for_no_other(only_in_path: Path) -> None:
    script(only_in_path / "cc", "exit 0")
    other = next(arch for arch in ARCHITECTURES if arch != host_architecture())
    with pytest.raises(UserError, match=f"nothing here can build the agent for {other.name}"):
        build.choose_compiler(other)


def test_an_agent_that_cannot_be_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("no program")
    with pytest.raises(UserError, match=r"cannot run .*agent"):
        build.agent_version(tmp_path / "agent")


def test_a_program_that_is_no_agent_is_said(tmp_path: Path) -> None:
    script(tmp_path / "agent", "echo what >&2; exit 3")
    with pytest.raises(UserError, match="does not say its version: what"):
        build.agent_version(tmp_path / "agent")


def elf_header(arch: Architecture) -> bytes:
    """The first 20 bytes of a program file for an architecture."""
    bits, order, machine = ELF[arch.name]
    return b"\x7fELF" + bytes((bits, order)) + bytes(12) + machine.to_bytes(2, "little" if order == 1 else "big")


def other_architecture() -> Architecture:
    return next(arch for arch in ARCHITECTURES if ELF[arch.name] != ELF[host_architecture().name])


def test_the_packaged_agent_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent").write_bytes(elf_header(host_architecture()))
    monkeypatch.setattr(build, "packaged_agent", lambda arch: tmp_path / "agent")
    assert build.find_agent() == tmp_path / "agent"


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


def test_a_packaged_program_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "packaged_agent", lambda arch: tmp_path)
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory"):
        build.find_agent()


def test_the_header_of_each_architecture_stands_in_its_row() -> None:
    assert {arch.name: arch.elf for arch in ARCHITECTURES} == ELF
    assert {arch.name for arch in ARCHITECTURES if arch.has_scanner} == {"x86_64", "aarch64", "riscv64", "ppc64le"}


def test_the_programs_of_the_package_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "_PACKAGE", tmp_path)
    monkeypatch.setattr(build, "choose_compiler", choose_for_this_machine_only)
    name, other = host_architecture().name, other_architecture().name
    (tmp_path / "_agents" / other).mkdir(parents=True)
    (tmp_path / "_agents" / other / build.AGENT_NAME).write_bytes(bytes(1234))
    assert main(["agent", "files"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == [arch.name for arch in ARCHITECTURES]
    by_name = {line.split()[0]: line.split(maxsplit=1)[1] for line in said}
    assert by_name[other].split() == [build.AGENT_NAME, "1,234", hashlib.sha256(bytes(1234)).hexdigest()]
    assert by_name[name] == f"{build.AGENT_NAME:14} not here; built when it is needed, by cc"
    (third, *_) = set(by_name) - {name, other}
    assert by_name[third] == f"{build.AGENT_NAME:14} not here, and nothing here can build it"


def choose_for_this_machine_only(arch: Architecture) -> build.Compiler:
    if arch != host_architecture():
        raise UserError("none")
    return build.Compiler(("cc",), "cc")


@needs_zig
def test_a_program_that_was_built_for_a_guest_serves_a_board_too() -> None:
    for arch in (other_architecture(), host_architecture()):
        assert build.choose_compiler(arch, "zig") == build.choose_compiler(arch, build.PINNED)


def test_which_architecture_an_agent_is_for_is_known_by_its_place(tmp_path: Path) -> None:
    for found in (build.cache_dir() / "arm926-0123456789abcdef", build.packaged_agent("arm926").parent):
        assert build.architecture_of_agent(found / build.AGENT_NAME) == "arm926"
    for other in (tmp_path / "arm926-0" / build.AGENT_NAME, build.cache_dir() / "other-0" / build.AGENT_NAME):
        assert build.architecture_of_agent(other) == ""


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


LISTED = """probe\ttimer\ta timer
load\trtc\tinterrupts; not here: there is no /dev/rtc0; nor /dev/rtc
load_option\trtc\thz\trate
"""


def test_lines_are_taken_by_their_kind() -> None:
    assert [row[:2] for row in build.listed_rows(LISTED)] == [
        ["probe", "timer"],
        ["load", "rtc"],
        ["load_option", "rtc"],
    ]
    assert build.listed_rows(LISTED, "load_option", "probe") == [
        ["probe", "timer", "a timer"],
        ["load_option", "rtc", "hz", "rate"],
    ]
    assert build.listed_rows(LISTED, "method") == []


def test_lines_of_other_versions_are_left_out() -> None:
    assert build.listed_rows("load\tcpu\nload\tcpu\tbusy\tand more\nthing\ta\tb\n\n") == []


def test_a_help_is_apart_from_what_is_missing() -> None:
    ((*_, text),) = build.listed_rows(LISTED, "load")
    assert build.missing_on_machine(text) == "there is no /dev/rtc0; nor /dev/rtc"
    assert build.help_without_missing(text) == "interrupts"
    assert (build.missing_on_machine("a timer"), build.help_without_missing("a timer")) == (
        "",
        "a timer",
    )


def test_the_agent_tells_kinds_that_are_known() -> None:
    kinds = {row[0] for row in build.listed_rows(agent_prints(Path(agent()), "list"))}
    assert {"probe", "method", "load", "load_option"} <= kinds
