# SPDX-License-Identifier: Apache-2.0
"""The lab's manners: its cache, its agents, the time that is left, and what signals leave behind."""

import os
import select
import signal
import subprocess
import sys
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path

import lab_cases
import lab_tasks
import pytest
import vm_cases

from rtproof.agents.architectures import host_architecture
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import guest_runner
from rtproof.lab import kernel_catalogue
from rtproof.lab.cell_runner import CellResult, TaskEnd, WorkerTask, run_tasks
from rtproof.lab.guest_cell import CellCost, StoredCell, cell_store_folder
from rtproof.lab.kernel_comparison import read_cell
from rtproof.vm.cache_folders import lab_cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with 3 MiB of kernels in three folders, the first unused for longest, and a snapshot."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for at in range(3):
        folder = lab_cache() / "kernels" / f"k{at}"
        folder.mkdir(parents=True)
        (folder / "image").write_bytes(bytes(1 << 20))
        os.utime(folder, (at + 1, at + 1))
    (lab_cache() / "snapshots").mkdir()
    (lab_cache() / "snapshots" / "a.state").write_bytes(bytes(2 << 20))
    return lab_cache()


def test_the_cache_is_listed_and_cut_to_a_size(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "cache"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["kernels", "3", "3", "none"] in rows
    assert ["snapshots", "1", "2", "4096"] in rows
    assert main(["lab", "cache", "bound", "--mib", "2", "kernels"]) == 0
    assert capsys.readouterr().out == "kernels: 1 MiB removed\n"
    assert sorted(path.name for path in (cache / "kernels").iterdir() if path.is_dir()) == ["k1", "k2"]


def test_all_of_the_cache_is_cleared(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "cache", "clear", "all"]) == 0
    assert "kernels: 3 MiB removed" in capsys.readouterr().out
    assert not list(cache.glob("*/*.state"))
    assert not list(cache.glob("*/k*"))


LAB = """
import sys
from rtproof.lab.guest_cell import opened_cell_store
with opened_cell_store():
    print("open", flush=True)
    sys.stdin.read()
"""


def test_what_a_running_lab_uses_is_not_removed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", LAB], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == "open\n"
        assert main(["lab", "cache", "clear", "all"]) == 2
        assert "a lab is running (n=1) and uses the cache" in capsys.readouterr().err
        assert (cache / "kernels" / "k0").is_dir()
        lab.communicate()
    assert main(["lab", "cache", "clear", "kernels"]) == 0
    assert not (cache / "kernels" / "k0").exists()
    assert cell_store_folder().is_dir()


@pytest.mark.parametrize("words", [["clear"], ["clear", "nothing"], ["bound", "all"], ["bound", "--mib", "-1", "all"]])
def test_a_wrong_part_is_a_usage_error(words: list[str], cache: Path) -> None:
    assert main(["lab", "cache", *words]) == 2
    assert (cache / "kernels" / "k0").is_dir()


def test_a_worker_is_interrupted_although_its_parent_ignores_ctrl_c() -> None:
    ends: list[TaskEnd] = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_tasks([WorkerTask("one", lab_tasks.interrupt_handlers)], 1, lambda task, end: ends.append(end))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ends == [TaskEnd([True, True])]


def test_ctrl_c_just_after_a_process_has_started_stops_that_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[SpawnProcess] = []
    start = SpawnProcess.start

    def start_and_interrupt(process: SpawnProcess) -> None:
        start(process)
        started.append(process)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", start_and_interrupt)
    task = WorkerTask("one", partial(lab_tasks.linger, tmp_path / "began", tmp_path / "cleaned"))
    try:
        with pytest.raises(KeyboardInterrupt):
            run_tasks([task], 1, lambda task, end: None)
        assert [process.exitcode for process in started] == [0]
    finally:
        for process in started:
            process.kill()
            process.join()


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (b"#!/bin/sh\necho broken >&2; exit 1\n", "does not say its version: broken"),
        (b"\x7fELF" + bytes(14) + b"\xb7\0" + bytes(60), "is for aarch64, and the guest is x86_64"),
        (b"\x7fELF" + bytes(14) + b"\xf3\0" + bytes(60), "is for another processor, and the guest is x86_64"),
    ],
    ids=["broken", "aarch64", "riscv"],
)
def test_an_agent_of_no_use_is_refused_before_a_kernel_is_fetched(
    agent: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host_architecture().name != "x86_64":
        pytest.skip("the case is for x86_64")
    program = tmp_path / "agent"
    program.write_bytes(agent)
    program.chmod(0o755)
    monkeypatch.setattr(guest_runner, "build_guest_agent", lambda arch: program)
    with pytest.raises(UserError, match=sentence):
        guest_runner.check_agents(["no-such", "debian-6.1"])


def test_headers_that_are_none_are_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"auto\.conf cannot be read \(No such file or directory\): --headers wants"):
        kernel_catalogue.module_for_headers(tmp_path)
    (tmp_path / "include/config").mkdir(parents=True)
    (tmp_path / "include/generated").mkdir()
    (tmp_path / "include/config/auto.conf").write_text("CONFIG_RISCV=y\n")
    (tmp_path / "include/generated/utsrelease.h").write_text('#define UTS_RELEASE "6.1.0-mine"\n')
    with pytest.raises(UserError, match="is for no architecture of the lab: there are x86_64, aarch64, armv7"):
        kernel_catalogue.module_for_headers(tmp_path)


@pytest.mark.parametrize("words", [[], ["--kernel", "debian-6.1", "--headers", "."]])
def test_a_module_is_for_one_kernel(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "module", *words]) == 2
    assert "give either --kernel or --headers" in capsys.readouterr().err


def test_the_time_left_is_estimated_from_the_cells_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = lab_cases.matrix(tmp_path, "idle", "mmap", "dd").cells()
    lab_cases.fill(cells[0], tmp_path)
    reading = read_cell(tmp_path)
    progress = guest_runner._CellProgress(len(cells), jobs=2)
    for cell, fresh, host_s in zip(cells, (False, *[True] * 5), (9.0, 4.0, 8.0, 6.0, 6.0, 6.0), strict=True):
        progress.tell(CellResult(cell, StoredCell(tmp_path, CellCost(host_s, 1.0), fresh), reading))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("(cached)")
    assert lines[1].endswith("(4.0 s); about 8 s left (estimate from n=1)")
    assert lines[2].endswith("(8.0 s); about 12 s left (estimate from n=2)")
    assert lines[5].endswith("(6.0 s)")


# A lab whose emulator starts and then waits for ever.
HOST = """
import sys, threading
from pathlib import Path
import vm_cases
from rtproof.cli import main
from rtproof.vm import cache_folders, qemu_process
import rtproof.cli.commands.lab.cache as cache
def wait(*ignored):
    folder = Path(sys.argv[1])
    with cache_folders.scratch_folder() as scratch, qemu_process.running_guest(vm_cases.machine(folder), scratch):
        threading.Event().wait(600)
cache._row = wait
sys.exit(main.main(["lab", "cache"]))
"""


def test_sigterm_leaves_no_emulator_and_no_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline = tmp_path / "lifeline"
    os.mkfifo(lifeline)
    (tmp_path / "cache" / "rtproof").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f"exec 3>{lifeline}; echo started >&3; exec sleep 600")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path)], env=environment) as host,
        lifeline.open() as said,
    ):
        assert said.readline() == "started\n"
        host.send_signal(signal.SIGTERM)
        assert host.wait(60) == 130
        assert select.select([said], [], [], 60)[0], "the emulator still holds its end"
        assert said.read() == ""
    assert [path for path in (lab_cache() / "scratch").iterdir() if path.is_dir()] == []
