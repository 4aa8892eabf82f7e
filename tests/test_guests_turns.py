# SPDX-License-Identifier: Apache-2.0
"""A guest with several processors in virtual time: its soakers, what befalls them, and the same bytes each time."""

import signal
from collections.abc import Iterator
from pathlib import Path

import lab_kernels
import lab_qemu
import pytest

from rtproof.agents.build import cache_dir
from rtproof.core.errors import TargetError
from rtproof.lab.guest_cell import CellSetting, GuestCell, GuestSystem, parse_guest_load
from rtproof.record.contents import Moment
from rtproof.record.reading import open_record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.vm.emulators import fetched_qemu_folder
from rtproof.vm.guest import Job, run_job, snapshot_folder
from rtproof.vm.initramfs import build_guest_agent, find_busybox
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow

SETTING = CellSetting("timer", 1_000_000, 300_000_000, 100_000_000)
SECOND_CPU = "/sys/devices/system/cpu/cpu1/online"
LAST_SOAKER = "$(pidof soaker | tr ' ' '\\n' | sort -n | tail -1)"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Made with what the user's cache has; its snapshot goes to a cache of this module's own."""
    lab_qemu.for_several_processors()
    kernel = lab_kernels.kernel("debian-6.1-rt")
    made = Machine(kernel, busybox=find_busybox(kernel.arch), cpus=2)
    own = tmp_path_factory.mktemp("cache") / "rtproof"
    (own / "lab" / "qemu").mkdir(parents=True)
    (own / "agents").symlink_to(cache_dir())
    fetched = fetched_qemu_folder()
    (own / "lab" / "qemu" / fetched.name).symlink_to(fetched)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(own.parent))
        yield made


def test_a_cell_gives_the_same_bytes_also_after_booting_anew(machine: Machine, tmp_path: Path) -> None:
    agent = build_guest_agent(machine.kernel.arch)
    job = GuestCell(GuestSystem("rt", "", machine), parse_guest_load("idle"), SETTING, agent).job()
    folders = (tmp_path / "first", tmp_path / "again")
    for folder in folders:
        (snapshot_folder() / f"{machine.boot_identity}.state").unlink(missing_ok=True)
        assert run_job(machine, job, folder).exit_code == 0
    first, again = ((folder / RECORD_NAME).read_bytes() for folder in folders)
    assert first == again
    record = open_record(tmp_path / "first" / RECORD_NAME)
    assert record.fact("turn_us", Moment.START) == "4"
    assert record.fact("soakers", Moment.START) == "2"
    shares = [float(text) for text in (record.fact("cpu_shares", Moment.START) or "").split()]
    assert len(shares) == 2
    assert 0.99 < sum(shares) < 1.01
    assert min(shares) > 0.2
    assert [series.cpu for series in record.series] == [0, 1]


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo one; seq 20000 | tail -1; exit 5", 5, "one\n20000\n"),
        ("kill -SEGV $$", -signal.SIGSEGV, ""),
        ("while :; do :; done & sleep 1000 & exit 6", 6, ""),
        ("exec no-such-program", 127, "sh: exec: line 0: no-such-program: not found\n"),
    ],
)
def test_a_job_beside_soakers_ends_as_without(
    script: str, code: int, said: str, machine: Machine, tmp_path: Path
) -> None:
    outcome = run_job(machine, Job(script), tmp_path / "out")
    assert (outcome.exit_code, outcome.said) == (code, said)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (f"kill -KILL {LAST_SOAKER}; sleep 9", r"the soaker of CPU 1 died \(signal 9\)"),
        (f"kill -STOP {LAST_SOAKER}; sleep 0.1", r"CPU 1 idled for \d+ ms beside its soaker"),
        (f"echo 0 >{SECOND_CPU}; sleep 0.1", "the soaker of CPU 1 was moved"),
        ("umount -l /proc", "nobody can tell whether CPU 0 idled"),
    ],
)
def test_a_processor_that_loses_its_soaker_is_a_sentence(
    script: str, sentence: str, machine: Machine, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match=rf"^the guest says: {sentence}"):
        run_job(machine, Job(script), tmp_path / "out")
