# SPDX-License-Identifier: Apache-2.0
"""``rtproof doctor``: each state of each thing on a made machine, and the same answer as the program's own refusal."""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from agent_process import eventually, lives

from rtproof.agents.build import built_agent
from rtproof.cli.main import main
from rtproof.core.errors import RtproofError
from rtproof.doctor import examination, host, machine_checks
from rtproof.doctor.examination import CHECKS, Check, look
from rtproof.doctor.findings import (
    FEATURES,
    NOT_READY_CODE,
    Examination,
    Finding,
    Readiness,
    State,
    feature_state,
    limited,
    missing,
    ok,
)
from rtproof.doctor.host import MOST_BYTES, Host
from rtproof.judge.analysis_model import State as VerdictState
from rtproof.vm.emulators import choose_emulator
from rtproof.vm.machine import ARCHES, Arch

ENOUGH_S = 300.0
"""So long may the checks take on a busy machine."""
Files = Mapping[str, str]
DEBIAN = 'PRETTY_NAME="Debian"\nID=debian\n'
NO_RIGHTS = {"/proc/self/status": "CapEff:\t0000000000000000\n"}
PODMAN = {"/proc/self/status": "CapEff:\t00000000a80425fb\n", "/run/.containerenv": ""}
SUDO = {"/etc/group": f"sudo:x:{os.getegid()}:\n"}
TRACING = {
    f"/sys/kernel/tracing/{name}": "nop\n"
    for name in ("available_tracers", "trace_marker", *(f"events/{event}/id" for event in machine_checks.EVENTS))
}
HIDDEN = {"/proc/kallsyms": "0 T a\n", "/proc/sys/kernel/kptr_restrict": "2"}
OF_CONTAINER = "--ulimit rtprio=99 --ulimit memlock=-1"
LIMITS = "prlimit --pid $$ --rtprio=99 --memlock=unlimited"


def write(root: Path, name: str, text: str = "") -> Path:
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def program(folder: Path, name: str, script: str) -> None:
    write(folder, name, f"#!/bin/sh\n{script}\n").chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty system of Debian."""
    return write(tmp_path / "root", "/etc/os-release", DEBIAN).parents[1]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder on PATH, without a program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def refusing(error: Callable[..., int]) -> Callable[..., None]:
    """A system call that the kernel refuses with these error numbers."""

    def call(*arguments: object) -> None:
        if number := error(*arguments):
            raise OSError(number, os.strerror(number))

    return call


def found_of(thing: str, host: Host) -> dict[str, Finding]:
    """What the check of a thing finds, by the names of the things."""
    (check,) = (each for each in CHECKS if each.name == thing)
    return {each.name: each for each in look(check, host)}


CASES: dict[str, list[tuple[int, Files, State, str, str]]] = {
    "real-time policy": [
        (1000, NO_RIGHTS, State.MISSING, "RTPRIO is 0", f'su -c "{LIMITS}"'),
        (1000, NO_RIGHTS | SUDO, State.MISSING, "RTPRIO is 0", f"sudo {LIMITS}"),
        (0, PODMAN, State.MISSING, "lacks CAP_SYS_NICE", f"podman run --cap-add SYS_NICE {OF_CONTAINER} ..."),
        (0, {}, State.MISSING, "seccomp", ""),
    ],
    "locked memory": [
        (0, PODMAN, State.LIMITED, "(no memory)", "podman run --ulimit memlock=-1 ..."),
        (1000, NO_RIGHTS, State.LIMITED, "16 MiB", f'su -c "{LIMITS}"'),
    ],
    "choice of CPUs": [
        (0, {"/sys/devices/system/cpu/online": "0-5\n"}, State.LIMITED, "CPUs 1-2,4,", ""),
        (0, {"/sys/devices/system/cpu/online": "1-2\n"}, State.MISSING, "CPUs 1-2,", ""),
        (0, {"/sys/devices/system/cpu/online": "0,3\n"}, State.OK, "(0,3)", ""),
    ],
    "idle states": [
        (0, {}, State.LIMITED, "No such file", ""),
        (0, {"/dev/cpu_dma_latency": "kept"}, State.OK, "can be opened", ""),
    ],
    "kernel trace": [
        (0, {"/proc/filesystems": "nodev\tproc\n"}, State.MISSING, "CONFIG_TRACING", ""),
        (0, {"/proc/filesystems": "nodev\ttracefs\n"}, State.MISSING, "kernel lockdown", ""),
        (1000, NO_RIGHTS, State.MISSING, "needs root", "su -c 'rtproof run --explain'"),
        (0, TRACING, State.OK, "/sys/kernel/tracing", ""),
        (0, dict([*TRACING.items()][:-1]), State.LIMITED, machine_checks.EVENTS[-1], ""),
    ],
    "kernel symbols": [
        (0, {"/proc/kallsyms": "ffffffff81000000 T a\n"}, State.OK, "addresses", ""),
        (0, HIDDEN, State.LIMITED, "kptr_restrict", "sysctl kernel.kptr_restrict=0"),
    ],
    "serial ports": [
        (0, {}, State.OK, "No serial adapter", ""),
        (54321, {"/etc/group": "uucp:x:65432:\n"}, State.LIMITED, "in no group", "su -c 'usermod -aG uucp 54321'"),
        (0, {"/dev/ttyUSB0": "", "/dev/ttyS0": ""}, State.OK, "/dev/ttyUSB0.", ""),
    ],
    "ssh": [(0, {}, State.LIMITED, "ssh is not installed", "apt-get install openssh-client")],
}
"""By thing: the user, the files of the machine, and the finding."""


@pytest.mark.parametrize(("thing", "case"), [(thing, each) for thing, cases in CASES.items() for each in cases])
def test_each_state_of_a_thing(
    root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, thing: str, case: tuple[int, Files, State, str, str]
) -> None:
    user, files, state, words, command = case
    for name, text in files.items():
        write(root, name, text)
    if SUDO.items() <= files.items():
        program(programs, "sudo", "exit 1")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0) if files else (99, 99))
    monkeypatch.setattr(os, "sched_setscheduler", refusing(lambda _, policy, __: errno.EPERM if policy else 0))
    monkeypatch.setattr(os, "sched_setaffinity", refusing(lambda _, cpus: errno.EINVAL if cpus & {1, 2, 4} else 0))
    monkeypatch.setattr(machine_checks, "_why_not_locked", lambda _: "no memory")
    monkeypatch.setattr(machine_checks, "_mount_tracefs", lambda: False)
    found = found_of(thing, Host(root, user))[thing]
    assert (found.state, found.command) == (state, command)
    assert words in found.meaning
    assert {name: (root / name[1:]).read_text() for name in files} == dict(files)


def test_a_machine_made_from_the_image_of_a_container_is_none(root: Path) -> None:
    write(root, "/.dockerenv")
    spaces = root / "proc/self/ns"
    spaces.mkdir(parents=True)
    (spaces / "pid").symlink_to("pid:[4026531836]")
    assert Host(root, 0).container == "docker"
    (spaces / "cgroup").symlink_to("cgroup:[4026531835]")
    assert Host(root, 0).container == ""


def test_a_cache_that_cannot_be_written(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = sorted(tmp_path.rglob("*"))
    assert found_of("cache folder", Host(root, 0))["cache folder"].state is State.OK
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(machine_checks, "why_not_writable", lambda _: "Read-only file system")
    found = found_of("cache folder", Host(root, 0))["cache folder"]
    assert "(Read-only file system)" in found.meaning
    assert found.command.startswith("export XDG_CACHE_HOME=")


# Programs.


def test_a_program_that_hangs_is_stopped(root: Path, programs: Path, tmp_path: Path) -> None:
    program(programs, "ssh", f"echo $$ > {tmp_path}/pid; while :; do :; done")
    assert Host(root).ask("ssh", "-V", patience_s=2).fault == "did not answer within 2 s"
    assert not written_lives(tmp_path / "pid")


def written_lives(pid: Path) -> bool:
    """Whether the program lives whose number is in this file. On a busy machine it may have been stopped before."""
    number = pid.read_text().strip() if pid.exists() else ""
    return bool(number) and lives(number)


@pytest.mark.parametrize(
    ("script", "line", "fault"),
    [
        ("echo; echo ' version  1 '; echo more", "version 1", ""),
        ("printf '\\033[31mred\\377\\n'", "\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}", ""),
        ("exit 3", "", ""),
        ("echo no such library; exit 127", "no such library", "cannot be run: no such library"),
        ("kill -SEGV $$", "", "was ended by SIGSEGV"),
    ],
)
def test_what_a_program_prints(root: Path, programs: Path, script: str, line: str, fault: str) -> None:
    program(programs, "tool", script)
    answer = Host(root).ask("tool", "--version", patience_s=ENOUGH_S)
    assert (answer.line, answer.fault) == (line, fault)


def test_a_file_is_read_in_part_and_a_pipe_does_not_wait(root: Path) -> None:
    write(root, "/sys/large", "x" * (3 * MOST_BYTES))
    assert len(Host(root).read("/sys/large")) == MOST_BYTES
    os.mkfifo(root / "sys" / "pipe")
    assert Host(root).text("/sys/pipe") == ""


# Commands for this system and this user.


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install gcc libc6-dev"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install gcc glibc-static"),
        ("ID=endeavouros\nID_LIKE=arch\n", "pacman -S gcc"),
        ("ID=alpine\n", "apk add gcc musl-dev"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper install gcc glibc-devel-static"),
        ("ID=nixos\n", ""),
        ("", ""),
    ],
)
def test_packages_of_each_system(root: Path, release: str, command: str) -> None:
    write(root, "/etc/os-release", release)
    assert host.packages(Host(root, 0), "static-compiler") == command


@pytest.mark.parametrize(
    ("system", "release", "command"),
    [
        ("debian", "6.12.107-rt-amd64", "apt-get install linux-headers-6.12.107-rt-amd64"),
        ("debian", "6.1.0-9-686-pae", "apt-get install linux-headers-6.1.0-9-686-pae"),
        ("ubuntu", "6.8.0-45-generic", "apt-get install linux-headers-6.8.0-45-generic"),
        ("debian", "6.12.62+rpt-rpi-v8", "apt-get install linux-headers-6.12.62+rpt-rpi-v8"),
        ("debian", "6.1.0-Own_1", ""),
        ("fedora", "6.12.4-200.fc41.x86_64", "dnf install kernel-devel-6.12.4-200.fc41.x86_64"),
        ("rhel", "5.14.0-362.8.1.el9_3.x86_64+rt", "dnf install kernel-rt-devel-5.14.0-362.8.1.el9_3.x86_64"),
        ("fedora", "6.12.0-mine", ""),
        ("arch", "6.12.1-arch1-1", "pacman -S linux-headers"),
        ("arch", "6.11.0-rt7-1-rt", "pacman -S linux-rt-headers"),
        ("arch", "6.6.63-1-lts", "pacman -S linux-lts-headers"),
        ("arch", "6.12.0-mine", ""),
        ("alpine", "6.6.56-0-virt", "apk add linux-virt-dev"),
        ("alpine", "6.6.56-custom", ""),
        ("suse", "6.4.0-150600.10-rt", "zypper install kernel-rt-devel"),
        ("suse", "6.12.0-mine", ""),
        ("nixos", "6.12.0", ""),
    ],
)
def test_the_headers_of_the_kernel_that_runs(root: Path, system: str, release: str, command: str) -> None:
    """Headers of another kernel of the same system build a module that this kernel does not load."""
    write(root, "/etc/os-release", f"ID={system}\n")
    assert host.headers_command(Host(root, 0), release) == command


# One check does not affect the others.


def fails(_host: Host) -> Iterator[Finding]:
    yield ok("It is good.")
    raise ZeroDivisionError("planted")


def hangs(_host: Host) -> Iterator[Finding]:
    yield ok("It is good.")
    time.sleep(600)


def dies(_host: Host) -> Iterator[Finding]:
    yield ok("It is good.")
    os.kill(os.getpid(), signal.SIGKILL)


def chatters(_host: Host) -> Finding:
    print("noise" * 100_000)
    sys.stderr.write("noise")
    os.system("echo noise; echo noise >&2")
    return ok("It is good.")


def silent(_host: Host) -> Iterator[Finding]:
    yield from ()


def children() -> set[int]:
    """The processes whose parent is this one; tests that ran here before may have left some."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = place.read_text().rpartition(")")[2].split()
            if int(after_name[1]) == os.getpid():
                found.add(int(place.parent.name))
    return found


def test_a_check_that_fails_hangs_or_dies_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = (fails, hangs, dies, chatters, silent)
    monkeypatch.setattr(examination, "CHECKS", [Check(each.__name__, "measure", each) for each in made])
    monkeypatch.setattr(examination, "GRACE_S", ENOUGH_S)
    wait = examination._wait

    def patient(processes: dict[int, object], longest_s: float) -> None:
        """However busy the machine is, the one that hangs is the only one that is late."""
        late = [*processes][1:2] if longest_s == 5 else []
        wait([each for each in processes if each not in late], ENOUGH_S)

    monkeypatch.setattr(examination, "_wait", patient)
    before = children()
    found = examination.examine(["measure"], True, Host(), 5)
    assert [(each.name, each.state, each.meaning) for each in found.findings] == [
        ("fails", State.OK, "It is good."),
        ("fails", State.CANNOT_TELL, "The check failed (ZeroDivisionError: planted)."),
        ("hangs", State.OK, "It is good."),
        ("hangs", State.CANNOT_TELL, "The check did not end within 5 s."),
        ("dies", State.OK, "It is good."),
        ("dies", State.CANNOT_TELL, "The check ended without an answer."),
        ("chatters", State.OK, "It is good."),
    ]
    assert capfd.readouterr() == ("", "")
    assert children() <= before


def test_a_program_of_a_check_that_hangs_is_stopped_too(
    monkeypatch: pytest.MonkeyPatch, programs: Path, tmp_path: Path
) -> None:
    program(programs, "qemu-system-x86_64", f"echo $$ > {tmp_path}/pid; while :; do :; done")
    monkeypatch.setattr(examination, "CHECKS", [each for each in CHECKS if each.name == "QEMU"])
    (found,) = examination.examine(["lab"], True, Host(), 3).findings
    assert (found.name, found.meaning) == ("QEMU", "The check did not end within 3 s.")
    assert eventually(lambda: not written_lives(tmp_path / "pid"))


# The result.


def of_measure(*findings: Finding) -> list[Finding]:
    return [replace(each, name="x", features=("measure",)) for each in findings]


@pytest.mark.parametrize(
    ("findings", "readiness"),
    [
        ((), Readiness.READY),
        ((ok(""),), Readiness.READY),
        ((ok(""), limited("")), Readiness.LIMITED),
        ((Finding(State.CANNOT_TELL, ""),), Readiness.LIMITED),
        ((missing("", needed=False),), Readiness.LIMITED),
        ((limited(""), missing("")), Readiness.NOT_READY),
    ],
)
def test_the_state_of_a_feature(findings: tuple[Finding, ...], readiness: Readiness) -> None:
    assert feature_state("measure", of_measure(*findings)).readiness is readiness


def exit_code(finding: Finding, asked: str = "measure") -> int:
    findings = of_measure(finding)
    return Examination(tuple(findings), tuple(feature_state(name, findings) for name in FEATURES), (asked,)).exit_code


def test_the_exit_code_is_that_of_no_verdict() -> None:
    assert NOT_READY_CODE not in {2, *(state.exit_code for state in VerdictState)}
    assert exit_code(missing("")) == NOT_READY_CODE
    assert exit_code(missing(""), "lab") == 0
    assert exit_code(limited("")) == 0


def test_each_feature_has_a_check_and_stands_in_the_guide() -> None:
    assert {name for each in CHECKS for name in each.features.split()} == set(FEATURES)
    guide = Path(__file__).parents[1].joinpath("docs/how-to/doctor.md").read_text()
    assert [name for name in FEATURES if f"`{name}`" not in guide] == []


# This machine, and what the program itself says of it.


def test_this_machine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examination, "PATIENCE_S", ENOUGH_S)
    monkeypatch.setattr(Host.ask, "__kwdefaults__", {"patience_s": ENOUGH_S})
    monkeypatch.chdir(tmp_path)
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == found["exit_code"]
    assert [each["feature"] for each in found["features"]] == list(FEATURES)
    assert not [each["meaning"] for each in found["things"] if each["state"] == State.CANNOT_TELL.value]
    assert not [each["name"] for each in found["things"] if each["command"] and each["state"] == State.OK.value]
    missing = {each["name"] for each in found["things"] if each["state"] == State.MISSING.value and each["needed"]}
    not_ready = [each["readiness"] == Readiness.NOT_READY.value for each in found["features"]]
    assert [not missing.isdisjoint(each["lacking"]) for each in found["features"]] == not_ready
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "states"),
    [
        ("", (State.MISSING, State.MISSING)),
        ("5.2.0", (State.MISSING, State.MISSING)),
        ("7.2.0", (State.OK, State.MISSING)),
        ("9.0.0", (State.OK, State.OK)),
    ],
)
def test_the_doctor_says_of_a_qemu_what_the_lab_says(
    root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, version: str, states: tuple[State, State]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(root))
    script = f'case "$*" in *--version*) echo "QEMU emulator version {version}";; *) echo filter-buffer hubport;; esac'
    for arch in ARCHES.values() if version else ():
        program(programs, arch.qemu, script)
    things = ("QEMU", "QEMU for several CPUs")
    for thing, share_time, state in zip(things, (False, True), states, strict=True):
        found = found_of(thing, Host(root, 0))[thing]
        assert found.state is state
        refused = [refusal for arch in ARCHES.values() if (refusal := refusal_of_lab(arch, share_time))]
        assert bool(refused) == (state is State.MISSING)
        assert not refused or refused[0] in found.meaning


def refusal_of_lab(arch: Arch, share_time: bool) -> str:
    try:
        choose_emulator(arch.qemu, arch.package, share_time)
    except RtproofError as error:
        return str(error)
    return ""


PLAIN_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
RIGHTS = {"root": (), "user": PLAIN_USER, "user with a limit": ("prlimit", "--rtprio=99", *PLAIN_USER)}
ASKED = """
from rtproof.doctor.findings import State
from rtproof.doctor.host import Host
from rtproof.doctor.machine_checks import kernel_trace, real_time
for check in (real_time, kernel_trace):
    print("refused" if check(Host()).state is State.MISSING else "usable")
"""


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("rights", RIGHTS.values(), ids=RIGHTS)
def test_the_agent_refuses_what_the_doctor_says_is_missing(rights: tuple[str, ...], tmp_path: Path) -> None:
    agent = built_agent()
    if agent is None:
        pytest.skip("no agent is built")
    place = Path(tempfile.mkdtemp(prefix="rtproof-"))
    try:
        place.chmod(0o777)
        shutil.copy(agent, place / "agent")
        code = f"import sys; sys.path[:0] = {sys.path!r}\n{ASKED}"
        answer = subprocess.run([*rights, sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if answer.returncode:
            pytest.skip(f"another user cannot run this Python: {answer.stderr.splitlines()[-1:]}")
        told = answer.stdout.split()
        assert told == [agent_says(rights, place), agent_says(rights, place, "--trace", "on")]
    finally:
        shutil.rmtree(place)


def agent_says(rights: tuple[str, ...], place: Path, *options: str) -> str:
    """What the agent makes of a short run: usable or refused."""
    out = place / f"run{len(options)}"
    own = ("--allow-unprivileged", *options) if options else ()
    command = [*rights, str(place / "agent"), "run", "--duration", "200ms", *own, "--output", str(out)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place)
    assert ran.returncode == 0 or "policy" in ran.stderr or "trace" in ran.stderr, ran.stderr
    return "refused" if ran.returncode else "usable"
