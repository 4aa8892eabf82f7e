# SPDX-License-Identifier: Apache-2.0
"""Real cells: two kernels of Debian's under one load, in QEMU."""

from functools import partial
from pathlib import Path

import lab_kernels
import pytest

from rtproof.agents.build import find_agent
from rtproof.lab import guest_cell
from rtproof.lab.cell_runner import CellResults, GuestFunctions, KernelMatrix, run_missing_cells
from rtproof.lab.guest_cell import AGENT_LOG, CONSOLE_LOG, PREEMPTION_FILE, CellSetting, CellStore, parse_guest_load
from rtproof.lab.systems import NamedKernel, systems
from rtproof.record import run_folder

pytestmark = pytest.mark.slow

INFO = run_folder.RunInfo(
    command=["rtproof"], started="", host="", user="", rtproof_version="", agent_sha256="", agent_arch="", target="qemu"
)
RUNNER = GuestFunctions(guest_cell.boot_guest, partial(guest_cell.measure_guest_cell, {"x86_64": INFO}))


@pytest.fixture(scope="module")
def matrix() -> KernelMatrix:
    names = ("debian-6.1-rt", "debian-6.1")
    kernels = [NamedKernel(name, lab_kernels.kernel(name), catalogue=True) for name in names]
    setting = CellSetting(duration_ns=500_000_000, warmup_ns=200_000_000)
    return KernelMatrix(
        systems(kernels, ["none"]), (parse_guest_load("mmap"),), setting, 1, {"x86_64": find_agent("x86_64")}
    )


def measured(matrix: KernelMatrix, folder: Path, jobs: int) -> CellResults:
    ran = run_missing_cells(matrix.cells(), CellStore(folder), RUNNER, jobs, lambda _: None)
    assert [result.failure for result in ran.results] == ["", ""]
    return ran


@pytest.fixture(scope="module")
def first(matrix: KernelMatrix, tmp_path_factory: pytest.TempPathFactory) -> CellResults:
    return measured(matrix, tmp_path_factory.mktemp("first"), 2)


def test_a_cell_is_a_run_folder_of_what_was_asked(first: CellResults) -> None:
    rt, plain = first.results
    assert rt.kept
    assert plain.kept
    files = {AGENT_LOG, CONSOLE_LOG, "cell.json", "run.json", "run.rtrec"}
    assert {path.name for path in rt.kept.folder.iterdir()} == files
    assert {path.name for path in plain.kept.folder.iterdir()} == files | {PREEMPTION_FILE}
    assert rt.reading
    assert plain.reading
    assert (rt.reading.preemption, plain.reading.preemption) == ("", "none")
    assert "PREEMPT_RT" in rt.reading.kernel_version
    assert rt.reading.count + rt.reading.missed == 500
    assert (rt.reading.invalid, plain.reading.invalid) == ((), ())


def test_the_rt_kernel_is_told_from_the_plain_one(first: CellResults) -> None:
    """In virtual time these are numbers of instructions, so that they can be asserted."""
    rt, plain = (result.reading for result in first.results)
    assert rt
    assert plain
    assert 5 * rt.max_ns < plain.max_ns


def test_run_again_one_after_the_other_the_records_have_the_same_bytes(
    matrix: KernelMatrix, first: CellResults, tmp_path: Path
) -> None:
    again = measured(matrix, tmp_path, 1)
    assert again.fresh == 2
    for one, other in zip(first.kept, again.kept, strict=True):
        assert one.folder != other.folder
        assert (one.folder / "run.rtrec").read_bytes() == (other.folder / "run.rtrec").read_bytes()
