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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from agent_process import eventually, lives

from rtproof.agents.build import built_agent
from rtproof.cli.main import main
from rtproof.core.errors import RtproofError
from rtproof.doctor import apt_packages, examination, remedies
from rtproof.doctor.checks import (
    audit_files,
    clock,
    disk,
    idle_states,
    lab_emulators,
    lab_processors,
    memory_lock,
    processors,
    real_time,
    tracing,
)
from rtproof.doctor.findings import FEATURES, NOT_READY_CODE, Examination, Finding, Readiness, State, feature_state
from rtproof.doctor.host import MOST_BYTES, Attempts, Host
from rtproof.judge.analysis_model import State as VerdictState
from rtproof.vm.emulators import choose_emulator
from rtproof.vm.machine import ARCHES, Arch

ENOUGH_S = 300.0
"""So long may the checks take on a busy machine."""
ALLOWED = Attempts(lambda: 0, lambda _: 0, lambda _: 0)
REFUSED = Attempts(lambda: errno.EPERM, lambda _: errno.ENOMEM, lambda _: errno.EINVAL)
DEBIAN = 'PRETTY_NAME="Debian"\nID=debian\n'


def write(root: Path, name: str, text: str = "") -> Path:
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def program(folder: Path, name: str, script: str) -> None:
    path = write(folder, name, f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty system of Debian."""
    write(tmp_path / "root", "/etc/os-release", DEBIAN)
    return tmp_path / "root"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder on PATH, without a program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def user(root: Path) -> Host:
    """A host on which nothing is permitted to a plain user."""
    write(root, "/proc/self/status", "CapEff:\t0000000000000000\n")
    return Host(root, 1000, REFUSED)


def superuser(root: Path) -> Host:
    write(root, "/proc/self/status", "CapEff:\t000001ffffffffff\n")
    return Host(root, 0, ALLOWED)


def only(found: Iterator[Finding]) -> Finding:
    (finding,) = found
    return finding


# What is measured with.


def test_a_user_without_a_limit_is_told_the_command_for_the_shell(
    root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    found = only(real_time.check(user(root)))
    assert (found.state, found.needed) == (State.MISSING, True)
    assert "RTPRIO is 0" in found.meaning
    assert found.command == 'su -c "prlimit --pid $$ --rtprio=99 --memlock=unlimited"'
    program(programs, "sudo", "exit 1")
    write(root, "/etc/group", f"sudo:x:{os.getegid()}:\n")
    assert only(real_time.check(user(root))).command == "sudo prlimit --pid $$ --rtprio=99 --memlock=unlimited"


def test_a_container_is_told_its_options(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    write(root, "/proc/self/status", "CapEff:\t00000000a80425fb\n")
    write(root, "/run/.containerenv")
    host = Host(root, 0, REFUSED)
    assert only(real_time.check(host)).command.startswith("podman run --cap-add SYS_NICE --ulimit rtprio=99")
    assert only(memory_lock.check(host)).command == "podman run --ulimit memlock=-1 ..."


def test_a_machine_made_from_the_image_of_a_container_is_none(root: Path) -> None:
    write(root, "/.dockerenv")
    host = Host(root, 0, REFUSED)
    assert host.container == "docker"
    (root / "proc/self/ns").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert host.container == "docker"
    (root / "proc/self/ns/cgroup").symlink_to("cgroup:[4026531835]")
    assert host.container == ""


def test_cpus_that_are_refused_limit_and_all_of_them_forbid(root: Path) -> None:
    write(root, "/sys/devices/system/cpu/online", "0-5\n")
    some = Host(root, 0, replace(ALLOWED, cpu=lambda cpu: errno.EINVAL if cpu in (1, 2, 4) else 0))
    found = only(processors.check(some))
    assert (found.state, "the CPUs 1-2,4," in found.meaning) == (State.LIMITED, True)
    assert only(processors.check(Host(root, 0, REFUSED))).state is State.MISSING
    assert only(processors.check(Host(root, 0, ALLOWED))).state is State.OK


@pytest.mark.parametrize(
    ("source", "state"),
    [("tsc", State.OK), ("hpet", State.LIMITED), ("jiffies", State.LIMITED), ("", State.CANNOT_TELL)],
)
def test_the_clock_source(root: Path, source: str, state: State) -> None:
    write(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source)
    assert only(clock.check(superuser(root))).state is state


def test_the_device_of_idle_states(root: Path) -> None:
    assert only(idle_states.check(superuser(root))).state is State.LIMITED
    device = write(root, "/dev/cpu_dma_latency", "unchanged")
    assert only(idle_states.check(superuser(root))).state is State.OK
    assert device.read_text() == "unchanged"


# Traces and settings.


def test_a_kernel_without_tracefs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_mount", lambda: False)
    write(root, "/proc/filesystems", "nodev\tproc\n")
    assert "CONFIG_TRACING" in only(tracing.check(superuser(root))).meaning
    write(root, "/proc/filesystems", "nodev\ttracefs\n")
    assert "container or of kernel lockdown" in only(tracing.check(superuser(root))).meaning
    found = only(tracing.check(user(root)))
    assert "A trace needs root" in found.meaning
    assert "rtproof" in found.command


def test_tracefs_that_is_mounted_for_the_check_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = "/sys/kernel/tracing"

    def mount() -> bool:
        for name in ("available_tracers", "trace_marker", *(f"events/{event}/id" for event in tracing.EVENTS)):
            write(root, f"{place}/{name}", "nop\n")
        return True

    monkeypatch.setattr(tracing, "_mount", mount)
    assert only(tracing.check(superuser(root))).state is State.OK
    (root / place[1:] / "events" / tracing.EVENTS[0] / "id").unlink()
    found = only(tracing.check(superuser(root)))
    assert (found.state, tracing.EVENTS[0] in found.meaning) == (State.LIMITED, True)


def test_a_setting_that_cannot_be_read_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(audit_files.check(superuser(root))).state is State.OK
    name = "/sys/kernel/mm/transparent_hugepage/enabled"
    write(root, name)
    real = Host.read

    def read(self: Host, path: str) -> str:
        if path == name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self, path)

    monkeypatch.setattr(Host, "read", read)
    found = only(audit_files.check(superuser(root)))
    assert found.state is State.LIMITED
    assert name in found.meaning
    assert "Permission denied" in found.meaning


# Programs.


def test_a_program_that_hangs_is_stopped(root: Path, programs: Path, tmp_path: Path) -> None:
    program(programs, "ssh", f"echo $$ > {tmp_path}/pid; while :; do :; done")
    answer = Host(root).ask("ssh", "-V", patience_s=2)
    assert answer.fault == "did not answer within 2 s"
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
        ("while :; do echo 0123456789; done", "0123456789", ""),
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
    assert remedies.packages(superuser(root), "static-compiler") == command


@pytest.mark.parametrize(
    ("system", "release", "command"),
    [
        ("debian", "6.12.107-rt-amd64", "apt-get install linux-headers-6.12.107-rt-amd64"),
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
    assert remedies.headers_command(superuser(root), release) == command


def test_a_package_that_apt_does_not_have_is_not_advised(root: Path, programs: Path) -> None:
    program(
        programs, "apt-cache", "echo 'base-files | 12 | mirror'; echo '  gcc | 14 | mirror'; echo 'make | 4 | mirror'"
    )
    host = superuser(root)
    known = finding(State.MISSING, command="su -c 'apt-get install gcc make'")
    of_pip = finding(State.MISSING, command="python3 -m pip install rtla")
    unknown = finding(State.MISSING, command="sudo apt-get install gcc linux-headers-6.1.0-Own_1")
    found = apt_packages.checked([known, of_pip, unknown], host, ENOUGH_S)
    assert found[:2] == [known, of_pip]
    assert (found[2].command, found[2].state) == ("", State.MISSING)
    assert found[2].meaning.endswith("apt has no package linux-headers-6.1.0-Own_1.")
    program(programs, "apt-cache", "exit 0")
    (found_without_lists,) = apt_packages.checked([known], host, ENOUGH_S)
    assert found_without_lists.command == known.command
    assert "apt-get update" in found_without_lists.meaning


# Boards, the module, the disk, the shell.


def test_a_cache_that_cannot_be_written(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    host = superuser(root)
    before = sorted(tmp_path.rglob("*"))
    found = {each.name: each for each in disk.check(host)}
    assert found["cache folder"].state is State.OK
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setattr(disk, "_why_not_writable", lambda _: "Read-only file system")
    found = {each.name: each for each in disk.check(superuser(root))}
    assert "(Read-only file system)" in found["cache folder"].meaning
    assert found["cache folder"].command.startswith("export XDG_CACHE_HOME=")


# One check does not affect the others.


def module(name: str, check: object, features: tuple[str, ...] = ("measure",)) -> ModuleType:
    made = ModuleType(f"rtproof.doctor.checks.{name}")
    vars(made).update(FEATURES=features, check=check)
    return made


def good(_host: Host) -> Iterator[Finding]:
    yield Finding("good", ("measure",), State.OK, "It is good.")


def fails(_host: Host) -> Iterator[Finding]:
    yield from good(_host)
    raise ZeroDivisionError("planted")


def hangs(_host: Host) -> Iterator[Finding]:
    yield from good(_host)
    time.sleep(600)


def dies(_host: Host) -> Iterator[Finding]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield from ()


def chatters(_host: Host) -> Iterator[Finding]:
    print("noise" * 100_000)
    sys.stderr.write("noise")
    os.system("echo noise; echo noise >&2")
    yield from good(_host)


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
    made = [module(each.__name__, each) for each in (fails, hangs, dies, chatters, good)]
    monkeypatch.setattr("rtproof.core.plugins.load_plugins", lambda _: made)
    monkeypatch.setattr(examination, "GRACE_S", ENOUGH_S)
    receive = examination._receive

    def patient(running: list[examination.RunningCheck], _: float) -> None:
        """However busy the machine is, the one that hangs is the only one that is late."""
        receive([*running[:1], *running[2:]], time.monotonic() + ENOUGH_S)
        while not running[1].received:
            receive(running[1:2], time.monotonic() + 1)

    monkeypatch.setattr(examination, "_receive", patient)
    before = children()
    found = examination.examine(["measure"], True, Host(), 5)
    told = [each.meaning for each in found.findings if each.state is State.CANNOT_TELL]
    assert told == [
        "Nobody can tell, because the check failed (ZeroDivisionError: planted).",
        "Nobody can tell, because the check did not end within 5 s.",
        "Nobody can tell, because the process of the check ended without an answer.",
    ]
    assert sum(each.name == "good" for each in found.findings) == 4
    assert capfd.readouterr() == ("", "")
    assert children() <= before


def test_a_program_of_a_check_that_hangs_is_stopped_too(
    monkeypatch: pytest.MonkeyPatch, programs: Path, tmp_path: Path
) -> None:
    program(programs, "qemu-system-x86_64", f"echo $$ > {tmp_path}/pid; while :; do :; done")
    made = [module("lab_emulators", lab_emulators.check, ("lab",))]
    monkeypatch.setattr("rtproof.core.plugins.load_plugins", lambda _: made)
    found = examination.examine(["lab"], True, Host(), 3)
    assert "did not end within 3 s" in found.findings[0].meaning
    assert eventually(lambda: not written_lives(tmp_path / "pid"))


# The result.


def finding(state: State, needed: bool = True, name: str = "x", command: str = "") -> Finding:
    return Finding(name, ("measure",), state, "It means something.", command, needed)


@pytest.mark.parametrize(
    ("findings", "readiness"),
    [
        ((), Readiness.READY),
        ((finding(State.OK),), Readiness.READY),
        ((finding(State.OK), finding(State.LIMITED)), Readiness.LIMITED),
        ((finding(State.CANNOT_TELL),), Readiness.LIMITED),
        ((finding(State.MISSING, needed=False),), Readiness.LIMITED),
        ((finding(State.LIMITED), finding(State.MISSING)), Readiness.NOT_READY),
    ],
)
def test_the_state_of_a_feature(findings: tuple[Finding, ...], readiness: Readiness) -> None:
    assert feature_state("measure", findings).readiness is readiness


def made_examination(*findings: Finding, asked: tuple[str, ...] = ("measure",)) -> Examination:
    return Examination(findings, tuple(feature_state(name, findings) for name in FEATURES), asked)


def test_the_exit_code_is_that_of_no_verdict() -> None:
    assert NOT_READY_CODE not in {state.exit_code for state in VerdictState}
    assert NOT_READY_CODE != 2
    assert made_examination(finding(State.MISSING)).exit_code == NOT_READY_CODE
    assert made_examination(finding(State.MISSING), asked=("lab",)).exit_code == 0
    assert made_examination(finding(State.LIMITED)).exit_code == 0


# This machine, and what the program itself says of it.


def test_this_machine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examination, "PATIENCE_S", ENOUGH_S)
    monkeypatch.setattr(Host.ask, "__kwdefaults__", {"patience_s": ENOUGH_S})
    monkeypatch.chdir(tmp_path)
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == found["exit_code"]
    assert [each["feature"] for each in found["features"]] == list(FEATURES)
    assert not [each["meaning"] for each in found["things"] if "Nobody can tell" in each["meaning"]]
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
    for check, share_time, state in ((lab_emulators.check, False, states[0]), (lab_processors.check, True, states[1])):
        found = only(check(superuser(root)))
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
from rtproof.doctor.checks import real_time, tracing
from rtproof.doctor.findings import State
from rtproof.doctor.host import Host
for each in (real_time, tracing):
    (found,) = each.check(Host())
    print("refused" if found.state is State.MISSING else "usable")
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
