# SPDX-License-Identifier: Apache-2.0

import os
import signal
import threading
import time
from pathlib import Path

import lab_cases
import pytest
from lab_cases import PLAIN, RT, matrix

from rtproof.lab.cell_runner import CellResult, CellsInterrupted, compare_kernels
from rtproof.lab.guest_cell import CellStore, GuestCell
from rtproof.lab.kernel_comparison import KernelComparison

pytestmark = pytest.mark.slow


def run_here(folder: Path, cells: list[GuestCell], jobs: int = 2) -> tuple[KernelComparison, tuple[CellResult, ...]]:
    ran = lab_cases.run(cells, CellStore(folder / "cells"), jobs)
    return compare_kernels(ran), ran.results


def test_every_cell_is_measured_told_of_once_and_read(tmp_path: Path) -> None:
    told: list[str] = []
    ran = lab_cases.run(
        matrix(tmp_path), CellStore(tmp_path / "cells"), 2, lambda result: told.append(result.cell.name)
    )
    found, results = compare_kernels(ran), ran.results
    names = [f"{s.name}, {load}" for load in ("idle", "mmap") for s in (RT, PLAIN)]
    assert sorted(told) == sorted(names)
    assert [result.cell.name for result in results] == names
    assert [spot.max_ns for spot in found.spots] == [6_400, 6_000, 6_400, 700_000]
    assert (found.fresh, found.cached, found.exit_code) == (4, 0, 0)
    assert (found.cost.host_s, found.cost.virtual_s) == (16.0, 8.0)
    assert [spot.count for spot in found.spots] == [lab_cases.ACTIVATIONS] * 4


def test_shifts_are_cells_of_their_own(tmp_path: Path) -> None:
    found, results = run_here(tmp_path, matrix(tmp_path, "mmap", systems=(PLAIN,), shifts=3))
    (spot,) = found.spots
    assert [reading.max_ns for reading in spot.readings] == [700_000, 701_000, 702_000]
    assert (spot.smallest_max_ns, spot.max_ns, spot.count) == (700_000, 702_000, 6_000)
    assert len({result.cell.slug for result in results}) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_the_finished_cells_and_says_how_many(tmp_path: Path, jobs: int) -> None:
    began, wanted = tmp_path / "began", matrix(tmp_path, "mmap", "lingers", systems=(PLAIN,))
    told: list[CellResult] = []

    def interrupt() -> None:
        deadline = time.monotonic() + lab_cases.DEADLINE_S
        while not (began.exists() and told) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(CellsInterrupted) as caught:
        lab_cases.run(wanted, CellStore(tmp_path / "cells"), jobs, told.append)
    watcher.join()
    assert caught.value.sentence == (
        "interrupted: 1 of 2 cells are finished and kept; the same command continues from there"
    )
    assert jobs == 1 or not Path("/proc", began.read_text()).exists()
    assert [path.name for path in (tmp_path / "cells").iterdir() if path.is_dir()] == [wanted[0].key()]
