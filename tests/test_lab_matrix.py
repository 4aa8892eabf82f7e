# SPDX-License-Identifier: Apache-2.0

import os
import signal
import threading
import time
from pathlib import Path

import lab_cases
import pytest
from lab_cases import PLAIN, matrix

from rtproof.lab.cell_runner import CellResult, CellsInterrupted
from rtproof.lab.guest_cell import CellStore

pytestmark = pytest.mark.slow


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
