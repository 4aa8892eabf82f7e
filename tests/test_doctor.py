# SPDX-License-Identifier: Apache-2.0
"""``rtproof doctor``: each state of each thing on a made machine, and the same answer as the program's own refusal."""

import contextlib
import errno
import json
import os
import platform
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

from rtproof.agents import build
from rtproof.agents.build import built_agent
from rtproof.cli.main import main
from rtproof.core.errors import RtproofError, UserError
from rtproof.doctor import apt_packages, examination, remedies
from rtproof.doctor.checks import (
    agent,
    audit_files,
    clock,
    completion_of_shell,
    disk,
    idle_states,
    kernel_module,
    kernel_symbols,
    lab_emulators,
    lab_processors,
    load_programs,
    memory_lock,
    peer_programs,
    processors,
    real_time,
    serial_ports,
    ssh_client,
    tracing,
)
from rtproof.doctor.doctor_json import DOCTOR, doctor_json
from rtproof.doctor.doctor_text import examination_text
from rtproof.doctor.findings import FEATURES, NOT_READY_CODE, Examination, Finding, Readiness, State, feature_state
from rtproof.doctor.host import MOST_BYTES, Attempts, Host
from rtproof.judge.analysis_model import State as VerdictState
from rtproof.vm.emulators import choose_emulator
from rtproof.vm.machine import ARCHES, Arch

ENOUGH_S = 60.0
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


def test_a_control_group_without_a_budget_is_named(root: Path) -> None:
    host = replace(superuser(root), attempts=REFUSED)
    write(root, "/proc/self/cgroup", "4:cpu,cpuacct:/user\n")
    write(root, "/sys/fs/cgroup/cpu/user/cpu.rt_runtime_us", "0\n")
    found = only(real_time.check(host))
    assert "control group /user has no budget" in found.meaning
    assert found.command == "echo 950000 > /sys/fs/cgroup/cpu/user/cpu.rt_runtime_us"


def test_root_with_the_right_that_is_refused_is_told_of_the_filter(root: Path) -> None:
    found = only(real_time.check(replace(superuser(root), attempts=REFUSED)))
    assert "seccomp" in found.meaning
    assert found.command == ""


def test_a_container_is_told_its_options(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    write(root, "/proc/self/status", "CapEff:\t00000000a80425fb\n")
    write(root, "/run/.containerenv")
    host = Host(root, 0, REFUSED)
    assert only(real_time.check(host)).command.startswith("podman run --cap-add SYS_NICE --ulimit rtprio=99")
    assert only(memory_lock.check(host)).command == "podman run --ulimit memlock=-1 ..."


def test_another_refusal_is_told_as_it_is(root: Path) -> None:
    host = Host(root, 0, replace(ALLOWED, real_time=lambda: errno.ENOSYS))
    assert "Function not implemented" in only(real_time.check(host)).meaning


def test_cpus_that_are_refused_limit_and_all_of_them_forbid(root: Path) -> None:
    write(root, "/sys/devices/system/cpu/online", "0-5\n")
    some = Host(root, 0, replace(ALLOWED, cpu=lambda cpu: errno.EINVAL if cpu in (1, 2, 4) else 0))
    found = only(processors.check(some))
    assert (found.state, "the CPUs 1-2,4," in found.meaning) == (State.LIMITED, True)
    assert only(processors.check(Host(root, 0, REFUSED))).state is State.MISSING
    assert only(processors.check(Host(root, 0, ALLOWED))).state is State.OK


def test_the_quota_of_a_control_group_is_told(root: Path) -> None:
    write(root, "/sys/devices/system/cpu/online", "0\n")
    write(root, "/proc/self/cgroup", "0::/box\n")
    write(root, "/sys/fs/cgroup/box/cpu.max", "50000 100000\n")
    _, found = processors.check(superuser(root))
    assert "50 ms in each 100 ms" in found.meaning
    write(root, "/sys/fs/cgroup/box/cpu.max", "max 100000\n")
    assert len(list(processors.check(superuser(root)))) == 1


@pytest.mark.parametrize(
    ("source", "state"),
    [("tsc", State.OK), ("hpet", State.LIMITED), ("jiffies", State.LIMITED), ("", State.CANNOT_TELL)],
)
def test_the_clock_source(root: Path, source: str, state: State) -> None:
    write(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source)
    assert only(clock.check(superuser(root))).state is state


def test_a_clock_of_ticks_is_not_enough(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_getres", lambda _: 0.004)
    found = only(clock.check(superuser(root)))
    assert (found.state, "4,000,000 ns" in found.meaning) == (State.MISSING, True)


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


@pytest.mark.parametrize(
    ("text", "state"),
    [("0000000000000000 T _text\n", State.LIMITED), ("ffffffff81000000 T _text\n", State.OK), ("", State.LIMITED)],
)
def test_hidden_addresses_name_no_function(root: Path, text: str, state: State) -> None:
    write(root, "/proc/kallsyms", text)
    write(root, "/proc/sys/kernel/kptr_restrict", "2\n")
    found = only(kernel_symbols.check(superuser(root)))
    assert found.state is state
    assert found.command == ("sysctl kernel.kptr_restrict=0" if state is State.LIMITED else "")


def test_addresses_that_only_root_sees_are_not_called_hidden_from_everybody(root: Path) -> None:
    write(root, "/proc/kallsyms", "0000000000000000 T _text\n")
    write(root, "/proc/sys/kernel/kptr_restrict", "0\n")
    found = only(kernel_symbols.check(superuser(root)))
    assert "from a user who is not root" in found.meaning
    assert "sysctl" not in found.command


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


@pytest.mark.usefixtures("programs")
def test_without_programs_each_is_told_with_its_package(root: Path) -> None:
    assert only(ssh_client.check(superuser(root))).command == "apt-get install openssh-client"
    found = list(peer_programs.check(superuser(root)))
    assert [each.name for each in found] == ["cyclictest", "rtla"]
    assert feature_state("peer-tools", found).readiness is Readiness.NOT_READY


def test_a_program_that_is_there_and_does_not_answer_is_not_installed_again(root: Path, programs: Path) -> None:
    for name in ("ssh", "cyclictest"):
        program(programs, name, "kill -SEGV $$")
    found = [only(ssh_client.check(superuser(root))), next(iter(peer_programs.check(superuser(root))))]
    assert [(each.command, "SIGSEGV" in each.meaning) for each in found] == [("", True), ("", True)]


def test_one_tool_that_measures_is_enough(root: Path, programs: Path) -> None:
    program(programs, "rtla", "echo rtla version 6.12")
    found = {each.name: each for each in peer_programs.check(superuser(root))}
    assert found["rtla"].state is State.OK
    assert found["cyclictest"].state is State.LIMITED
    assert feature_state("peer-tools", found.values()).readiness is Readiness.LIMITED


def test_a_program_that_hangs_is_stopped(root: Path, programs: Path, tmp_path: Path) -> None:
    program(programs, "ssh", f"echo $$ > {tmp_path}/pid; while :; do :; done")
    begun = time.monotonic()
    answer = Host(root).ask("ssh", "-V", patience_s=0.3)
    assert answer.fault == "did not answer within 0.3 s"
    assert time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("script", "line", "fault"),
    [
        ("echo; echo ' version  1 '; echo more", "version 1", ""),
        ("printf '\\033[31mred\\377\\n'", "\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}", ""),
        (
            "while :; do echo 0123456789012345678901234567890123456789; done",
            "0123456789012345678901234567890123456789",
            "",
        ),
        ("exit 3", "", ""),
        ("echo no such library; exit 127", "no such library", "cannot be run: no such library"),
        ("kill -SEGV $$", "", "was ended by SIGSEGV"),
    ],
)
def test_what_a_program_prints(root: Path, programs: Path, script: str, line: str, fault: str) -> None:
    program(programs, "tool", script)
    answer = Host(root).ask("tool", "--version", patience_s=30)
    assert (answer.line, answer.fault) == (line, fault)


def test_a_file_that_is_no_program(root: Path, programs: Path) -> None:
    write(programs, "tool", "\x7fELF rubbish").chmod(0o755)
    assert "cannot be started" in Host(root).ask("tool").fault


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


def test_a_package_that_a_manager_lacks_gives_no_command(root: Path) -> None:
    write(root, "/etc/os-release", "ID=alpine\n")
    assert remedies.packages(superuser(root), "dkms") == ""


@pytest.mark.parametrize(
    ("system", "release", "command"),
    [
        ("debian", "6.12.107-rt-amd64", "apt-get install linux-headers-6.12.107-rt-amd64"),
        ("fedora", "6.12.4-200.fc41.x86_64", "dnf install kernel-devel-6.12.4-200.fc41.x86_64"),
        (
            "rhel",
            "5.14.0-362.8.1.el9_3.x86_64+rt",
            "dnf install kernel-rt-devel-5.14.0-362.8.1.el9_3.x86_64",
        ),
        (
            "rhel",
            "5.14.0-70.13.1.rt21.83.el9_0.x86_64",
            "dnf install kernel-rt-devel-5.14.0-70.13.1.rt21.83.el9_0.x86_64",
        ),
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
    found = apt_packages.checked([known, of_pip, unknown], host, 30)
    assert found[:2] == [known, of_pip]
    assert (found[2].command, found[2].state) == ("", State.MISSING)
    assert found[2].meaning.endswith("apt has no package linux-headers-6.1.0-Own_1.")
    program(programs, "apt-cache", "exit 0")
    (found_without_lists,) = apt_packages.checked([known], host, 30)
    assert found_without_lists.command == known.command
    assert "apt-get update" in found_without_lists.meaning


def test_headers_of_which_apt_tells_nothing_are_not_advised(root: Path, programs: Path) -> None:
    program(programs, "apt-cache", "while :; do :; done")
    headers = finding(State.MISSING, command=f"apt-get install linux-headers-{platform.release()}")
    other = finding(State.MISSING, command="apt-get install gcc")
    found = apt_packages.checked([headers, other], superuser(root), 0.3)
    assert found[0].command == ""
    assert "apt does not tell" in found[0].meaning
    assert found[1] == other


def test_a_system_package_fits_only_the_rtproof_of_the_system(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12's matplotlib does not load the numpy that pip brought."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(remedies, "_keeps_pip_out", lambda: True)
    monkeypatch.setattr(remedies, "_has_pip", lambda: True)
    monkeypatch.setattr(remedies, "_came_by_pip", lambda: False)
    host = superuser(root)
    assert remedies.python_package(host, "matplotlib>=3.9", "matplotlib") == "apt-get install python3-matplotlib"
    monkeypatch.setattr(remedies, "_came_by_pip", lambda: True)
    assert "-m pip install" in remedies.python_package(host, "matplotlib>=3.9", "matplotlib")


def test_a_capability_of_a_user_namespace_does_not_count(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    host = replace(superuser(root), attempts=REFUSED)
    write(root, "/proc/self/uid_map", "         0       1000          1\n")
    found = only(real_time.check(host))
    assert "does not count in a user namespace" in found.meaning
    assert found.command == ""
    write(root, "/proc/self/uid_map", "         0          0 4294967295\n")
    assert "seccomp" in only(real_time.check(host)).meaning


def test_an_agent_that_cannot_be_kept_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rtproof run`` refuses then, also if the cache, which it locks, has an agent."""
    monkeypatch.setattr(build, "packaged_agent", lambda name: root / name)
    monkeypatch.setattr(agent, "why_nothing_fits", lambda _: "Permission denied")
    found = only(agent.check(user(root)))
    assert (found.state, found.needed) == (State.MISSING, True)
    assert "none can be kept in" in found.meaning
    assert found.command.startswith("export XDG_CACHE_HOME=")


def test_a_current_folder_that_is_gone(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    found = {each.name: each for each in disk.check(superuser(root))}
    assert (found["current folder"].state, found["current folder"].command) == (State.MISSING, "cd")
    assert "temporary folder" in found


def test_the_table_of_packages_has_each_name_that_a_check_uses() -> None:
    known = set(remedies.known_packages())
    used = {
        *load_programs.PACKAGE_OF.values(),
        *lab_emulators.PACKAGE_OF.values(),
        *peer_programs.PACKAGE_OF.values(),
        *(
            "ssh",
            "static-compiler",
            "compiler",
            "make",
            "gpgv",
            "dkms",
            "matplotlib",
            "pyarrow",
            "pip",
        ),
    }
    assert used == known


@pytest.mark.usefixtures("programs")
def test_a_command_for_root(root: Path) -> None:
    assert remedies.as_root(superuser(root), "echo 1 > file") == "echo 1 > file"
    assert remedies.as_root(user(root), "echo 1 > file") == "su -c 'echo 1 > file'"


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/u/.local/share/pipx/venvs/rtproof", "pipx inject rtproof 'duckdb>=1.4'"),
        ("/home/u/.local/share/uv/tools/rtproof", "uv pip install --python PY 'duckdb>=1.4'"),
        ("/home/u/venv", "PY -m pip install 'duckdb>=1.4'"),
        (sys.base_prefix, "apt-get install python3-pip && PY -m pip install 'duckdb>=1.4'"),
    ],
)
def test_a_python_package_comes_the_way_that_rtproof_came(
    root: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", "PY")
    monkeypatch.setattr(remedies, "_has_pip", lambda: prefix != sys.base_prefix)
    monkeypatch.setattr(remedies, "_keeps_pip_out", lambda: False)
    assert remedies.python_package(superuser(root), remedies.requirement("parquet")) == command


def test_the_extras_are_those_of_the_package() -> None:
    assert remedies.requirement("cross").startswith("ziglang==")
    assert remedies.requirement("no-such-extra") == "rtproof[no-such-extra]"


# Boards, the module, the disk, the shell.


def test_serial_ports(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "/etc/group", "dialout:x:20:\n")
    monkeypatch.setattr(os, "getgroups", list)
    monkeypatch.setattr(os, "getegid", lambda: 1000)
    monkeypatch.setattr(remedies, "user_name", lambda _: "ada")
    monkeypatch.setattr(serial_ports, "user_name", lambda _: "ada")
    found = only(serial_ports.check(user(root)))
    assert (found.state, found.command.endswith("usermod -aG dialout ada'")) == (State.LIMITED, True)
    monkeypatch.setattr(os, "getgroups", lambda: [20])
    assert only(serial_ports.check(user(root))).state is State.OK
    write(root, "/dev/ttyUSB0")
    assert "/dev/ttyUSB0" in only(serial_ports.check(user(root))).meaning
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not open /dev/ttyUSB0" in only(serial_ports.check(user(root))).meaning


@pytest.mark.usefixtures("programs")
def test_what_keeps_the_module_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "_missing_to_agent", lambda: None)
    write(root, "/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    found = {each.name: each for each in kernel_module.check(user(root))}
    assert set(found) == {
        *(
            "kernel headers",
            "module build tools",
            "dkms",
            "signed modules",
            "right to load modules",
            "module rtproof.ko",
        )
    }
    assert "lockdown is integrity" in found["signed modules"].meaning
    write(root, "/sys/kernel/security/lockdown", "[none] integrity\n")
    variable = root / kernel_module.SECURE_BOOT[1:]
    variable.parent.mkdir(parents=True)
    variable.write_bytes(b"\6\0\0\0\1")
    found = {each.name: each for each in kernel_module.check(user(root))}
    assert "secure boot is on" in found["signed modules"].meaning


def test_a_module_that_answers_needs_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "_missing_to_agent", lambda: "")
    assert only(kernel_module.check(user(root))).state is State.OK


def test_a_user_without_a_home_has_no_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    found = [each for each in disk.check(superuser(root)) if each.name == "cache folder"]
    assert all("no home folder: set HOME" in each.meaning for each in found)
    assert feature_state("lab", found).readiness is Readiness.NOT_READY
    assert feature_state("measure", found).readiness is Readiness.LIMITED


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


def test_a_cache_inside_of_a_folder_that_is_closed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/closed/cache")
    real = Path.exists

    def exists(path: Path) -> bool:
        if str(path).startswith("/closed/"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "exists", exists)
    assert "cache folder" in [each.name for each in disk.check(superuser(root))]


def test_a_full_disk_limits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1 << 20}))
    assert {each.state for each in disk.check(superuser(root))} == {State.LIMITED}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(root: Path, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    monkeypatch.setenv("HOME", "/home/ada")
    found = only(completion_of_shell.check(user(root)))
    assert found.state is State.MISSING
    assert f"rtproof completion {shell} > ~/." in found.command
    write(root, found.command.rpartition("> ~")[2].replace("/.", "/home/ada/.", 1))
    assert only(completion_of_shell.check(user(root))).state is State.OK


def test_a_shell_that_completes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    assert "your shell is dash" in only(completion_of_shell.check(user(root))).meaning


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
    before = children()
    begun = time.monotonic()
    found = examination.examine(["measure"], True, Host(), 3)
    assert time.monotonic() - begun < 100
    told = [each.meaning for each in found.findings if each.state is State.CANNOT_TELL]
    assert told == [
        "Nobody can tell, because the check failed (ZeroDivisionError: planted).",
        "Nobody can tell, because the check did not end within 3 s.",
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
    number = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{number}").exists() or "Z" in Path(f"/proc/{number}/stat").read_text().split()[2]


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


def test_the_text_begins_with_the_features_and_has_whole_commands() -> None:
    long = "apt-get install " + "x" * 200
    text = examination_text(made_examination(finding(State.MISSING, command=long), finding(State.OK, name="y")), False)
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[: len(FEATURES)]] == list(FEATURES)
    assert lines[0] == "measure        not ready  see x"
    assert f"    {long}" in lines
    assert "ok: y" not in text
    assert "ok: y" in examination_text(made_examination(finding(State.OK, name="y")), True)


def test_nothing_in_the_text_leaves_the_line() -> None:
    text = examination_text(made_examination(finding(State.MISSING, name="\x1b[2J\u202ex", command="a\x1bb\nc")), False)
    assert all(line.isprintable() for line in text.splitlines())
    assert "    a\N{REPLACEMENT CHARACTER}b c" in text


def test_the_keys_of_the_json_stay() -> None:
    found = json.loads(doctor_json(made_examination(finding(State.MISSING, command="x"), finding(State.OK))))
    assert (found["schema"], found["version"]) == ("rtproof.doctor", 1)
    assert list(found) == list(DOCTOR.keys) == ["schema", "version", "asked", "exit_code", "features", "things"]
    assert found["features"][0] == {"feature": "measure", "readiness": "not ready", "lacking": ["x"]}
    assert found["things"] == [
        {
            "name": "x",
            "features": ["measure"],
            "state": state,
            "needed": True,
            "meaning": "It means something.",
            "command": command,
        }
        for state, command in (("missing", "x"), ("ok", None))
    ]


# This machine, and what the program itself says of it.


def test_this_machine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examination, "PATIENCE_S", ENOUGH_S)
    monkeypatch.chdir(tmp_path)
    code = main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == found["exit_code"]
    assert [each["feature"] for each in found["features"]] == list(FEATURES)
    assert not [each["meaning"] for each in found["things"] if "Nobody can tell" in each["meaning"]]
    assert all(each["command"] or each["state"] != "x" for each in found["things"])
    assert list(tmp_path.iterdir()) == []


def test_only_the_features_that_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "PATIENCE_S", ENOUGH_S)
    assert main(["doctor", "reports", "completion", "--json"]) in (0, NOT_READY_CODE)
    found = json.loads(capsys.readouterr().out)
    assert [each["feature"] for each in found["features"]] == ["reports", "completion"]
    assert {name for each in found["things"] for name in each["features"]} >= {"reports", "completion"}
    assert all({"reports", "completion"} & set(each["features"]) for each in found["things"])


def test_a_feature_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nope"]) == 2
    assert "'nope' is not one of 'measure'" in capsys.readouterr().err


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


def test_what_the_agent_refuses_is_missing(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Without a compiler and an agent, the doctor gives the sentence of the program that would build one."""
    from rtproof.agents import build
    from rtproof.doctor.checks import agent

    def none(*_: object, **__: object) -> None:
        raise UserError("nothing here can build the agent")

    monkeypatch.setattr(build, "built_agent", lambda: None)
    monkeypatch.setattr(build, "choose_compiler", none)
    found = only(agent.check(superuser(root)))
    assert "nothing here can build the agent" in found.meaning
    assert found.command == "apt-get install gcc libc6-dev"


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
