# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from export_cases import small_analysis, summary_analysis

from rtproof.core.errors import UserError
from rtproof.exporters import csv

EXPECTED = """thread,cpu,activation,due_ns,latency_ns,missed_after
0,0,0,0,1000,0
0,0,1,1000000,3002500,3
0,0,5,5000000,-300,0
0,0,6,6000000,1900000,1
0,0,8,8000000,7,0
0,0,9,9000000,70000,0
1,3,0,500,100,0
1,3,1,1000600,200,0
1,3,2,2000800,300,0
"""


def test_every_sample_is_a_line(tmp_path: Path) -> None:
    sentence = csv.export(small_analysis(), tmp_path / "a.csv", {})
    assert (tmp_path / "a.csv").read_text() == EXPECTED
    assert "9 samples; facts about the run are not in it" in sentence


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("precious")
    with pytest.raises(UserError, match=r"a\.csv exists already"):
        csv.export(small_analysis(), tmp_path / "a.csv", {})
    assert (tmp_path / "a.csv").read_text() == "precious"


def test_a_summary_has_no_samples_to_write(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs every sample and this run kept only a summary \(--record summary\)"):
        csv.export(summary_analysis(), tmp_path / "a.csv", {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_fails_halfway_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv, "_lines", full)
    with pytest.raises(OSError, match="No space left"):
        csv.export(small_analysis(), tmp_path / "a.csv", {})
    assert list(tmp_path.iterdir()) == []
