# SPDX-License-Identifier: Apache-2.0
"""Runs on boards, as the tests of every way to a board start and check them."""

import subprocess
import sys
from pathlib import Path

from rtproof.record.contents import Record
from rtproof.record.reading import open_record


def rtproof(*words: str) -> "subprocess.CompletedProcess[str]":
    """The program, to its end."""
    command = [sys.executable, "-m", "rtproof", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def assert_whole(folder: Path, seconds: int) -> Record:
    """Every due time of the run is accounted for, and it ended as asked."""
    record = open_record(folder / "run.rtrec")
    assert record.end is not None
    assert not record.damage
    assert record.end.reason.name == "AS_ASKED"
    for total in record.end.totals:
        assert total.obtained + total.missed >= seconds * 1000
        assert total.lost == 0
    return record
