# SPDX-License-Identifier: Apache-2.0
"""Guests that boot: one of each preemption, and all else from their snapshots."""

import hashlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lab_kernels
import pytest
from agent_process import eventually

from rtproof.agents.build import cache_dir
from rtproof.core.errors import TargetError
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.guest import CONSOLE_LOG, Job, run_job, snapshot_folder, started_guest, wait_until_over
from rtproof.vm.initramfs import find_busybox
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow

# What differs from boot to boot on every other machine.
REVEALING = """
cat /proc/interrupts /proc/uptime /proc/stat >/out/counted
dd if=/dev/urandom of=/out/random bs=64k count=64 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do cat /proc/uptime; dmesg | md5sum; done >/out/spent
mkdir /out/deep && uname -r >/out/deep/release
echo said; echo complained >&2; exit 3
"""


def machine_of(name: str) -> Machine:
    kernel = lab_kernels.kernel(name)
    return Machine(kernel, busybox=find_busybox(kernel.arch), modules=("dummy",))


MACHINES = {"plain": "debian-6.1", "rt": "debian-6.1-rt"}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Machine]]:
    """Made with what the user's cache has; snapshots and scratch folders go to a cache of this module's own."""
    made = {kind: machine_of(name) for kind, name in MACHINES.items()}
    own = tmp_path_factory.mktemp("cache") / "rtproof"
    (own / "lab").mkdir(parents=True)
    (own / "agents").symlink_to(cache_dir())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(own.parent))
        yield made


@pytest.fixture
def plain(machines: dict[str, Machine]) -> Machine:
    return machines["plain"]


def scratch_folders() -> list[str]:
    return [path.name for path in (lab_cache() / "scratch").iterdir() if path.is_dir()]


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("kind", MACHINES)
def test_a_job_leaves_the_same_bytes_each_time_also_after_booting_anew(
    kind: str, machines: dict[str, Machine], tmp_path: Path
) -> None:
    machine = machines[kind]
    outcomes = [run_job(machine, Job(REVEALING), tmp_path / str(n)) for n in range(2)]
    (snapshot_folder() / f"{machine.identity}.state").unlink()
    outcomes.append(run_job(machine, Job(REVEALING), tmp_path / "2"))
    assert len({(o.exit_code, o.said, o.virtual_seconds) for o in outcomes}) == 1
    assert (outcomes[0].exit_code, outcomes[0].said) == (3, "said\ncomplained\n")
    assert digests(tmp_path / "0") == digests(tmp_path / "1") == digests(tmp_path / "2")
    assert (tmp_path / "0" / "random").stat().st_size == 4 << 20
    assert (tmp_path / "0" / "deep" / "release").read_text() == f"{machine.kernel.release}\n"
    assert outcomes[0].console == tmp_path / "0" / "console.log"


def test_files_and_modules_are_where_they_should_be(plain: Machine, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho from the host\n")
    program.chmod(0o755)
    outcome = run_job(plain, Job("/lab/program; lsmod; kill -9 $$", (("/lab/program", program),)), tmp_path / "out")
    assert outcome.said.startswith("from the host\n")
    assert "\ndummy " in outcome.said
    assert outcome.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("script", "timeout_s", "sentence"),
    [
        ("echo c >/proc/sysrq-trigger; sleep 99", 600, r"the guest's kernel panicked \(sysrq triggered crash\)"),
        ("reboot -f", 600, r"the guest died in the middle of the job \(the machine was reset or switched off"),
        ("sleep 99999999", 2, "the guest was not done within 2 s"),
        ("dd if=/dev/zero of=/out/x bs=1M count=70", 600, "the job left more in /out than"),
    ],
)
def test_a_guest_that_fails_is_told_in_a_sentence_and_its_console_kept(
    script: str, timeout_s: float, sentence: str, plain: Machine, tmp_path: Path
) -> None:
    log = tmp_path / CONSOLE_LOG
    with pytest.raises(TargetError, match=sentence) as raised, started_guest(plain, Job(script), log, 600) as guest:
        wait_until_over(guest, timeout_s, in_virtual_time=True)
    assert str(raised.value).endswith(f"; the console's log is {log}")
    assert list(tmp_path.iterdir()) == [log]
    assert scratch_folders() == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"boot": ("pci=off",)}, "the guest cannot be reached: this kernel shows no PCI device"),
        ({"modules": ("thinkpad_acpi",)}, "the module .*thinkpad_acpi.ko does not load: .*No such device"),
        ({"memory_mib": 24}, "the guest died (at once|as it booted)"),
    ],
)
def test_a_machine_that_does_not_come_up_is_told_in_a_sentence(
    changes: dict[str, object], sentence: str, plain: Machine, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match=sentence):
        run_job(replace(plain, **changes), Job(""), tmp_path / "out")  # type: ignore[arg-type]
    assert (tmp_path / "out" / "console.log").exists()


def test_a_damaged_snapshot_is_removed_and_made_anew(plain: Machine, tmp_path: Path) -> None:
    run_job(plain, Job(""), tmp_path / "first")
    state = snapshot_folder() / f"{plain.identity}.state"
    state.write_bytes(state.read_bytes()[:5000])
    with pytest.raises(TargetError, match=r"could not be loaded .* so the next run boots again"):
        run_job(plain, Job(""), tmp_path / "second")
    assert run_job(plain, Job("echo again"), tmp_path / "third").said == "again\n"


def test_ctrl_c_leaves_neither_process_nor_folder(plain: Machine, tmp_path: Path) -> None:
    run_job(plain, Job(""), tmp_path / "snapshot")
    code = (
        "import pickle, signal, sys; from pathlib import Path; from rtproof.vm.guest import Job, run_job\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored in the background\n"
        "run_job(pickle.loads(sys.stdin.buffer.read()), Job('sleep 1000000'), Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    host = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert host.stdin is not None
        host.stdin.write(pickle.dumps(plain))
        host.stdin.close()
        while not (emulators := guests_of(host.pid)):
            assert host.poll() is None
        host.send_signal(signal.SIGINT)
        assert host.wait(300) != 0
    finally:
        host.kill()
    assert eventually(lambda: not any(Path("/proc", pid, "exe").exists() for pid in emulators))
    assert scratch_folders() == []


def guests_of(pid: int) -> list[str]:
    """Those children that have become an emulator with a guest by now."""
    return [
        child for child in read(f"/proc/{pid}/task/{pid}/children").split() if is_guest(read(f"/proc/{child}/cmdline"))
    ]


def is_guest(command_line: str) -> bool:
    return "/qemu-system-" in command_line.split("\0", maxsplit=1)[0] and "-initrd" in command_line


def read(path: str) -> str:
    """Nothing if the process has just ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def test_wall_clock_time_passes_as_the_hosts_does(plain: Machine, tmp_path: Path) -> None:
    machine = replace(plain, in_virtual_time=False, modules=())
    outcome = run_job(machine, Job("sleep 1; echo done"), tmp_path / "out")
    assert outcome.said == "done\n"
    assert 1 <= outcome.virtual_seconds < outcome.host_seconds
