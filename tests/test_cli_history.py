# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import BEGIN, SECOND
from run_folders import latencies, write_run

from rtproof.cli.main import main

DATA = Path(__file__).parent / "data" / "cyclictest"


def write(folder: Path, number: int, factor: float = 1.0, kernel: str = "6.1.0") -> Path:
    begin = replace(
        BEGIN,
        run_id=bytes([number + 1] * 16),
        origin_realtime_ns=BEGIN.origin_realtime_ns + number * 86_400 * SECOND,
        kernel_release=kernel,
    )
    return write_run(folder, latencies(number, 2_000, factor), begin=begin)


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 runs whose names are in another order than their starts; from the 13th on another kernel is slower."""
    folder = tmp_path_factory.mktemp("nightly")
    for n in range(24):
        write(folder / f"{99 - n}", n, *((1.0, "6.1.0") if n < 12 else (1.6, "6.12.0")))
    return folder


def test_a_change_is_found_and_the_page_lies_beside(
    nightly: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["history", str(nightly), "--output", str(page)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "history of 24 runs - 1 change" in out
    assert "At run 13" in out
    assert "kernel release: 6.1.0 to 6.12.0" in out
    assert f"report: {page}" in out
    assert "<html" in page.read_text()
    assert main(["history", str(nightly), "--output", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_json(nightly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(nightly), "--json", "--no-report"]) == 0
    told = json.loads(capsys.readouterr().out)
    (change,) = told["sequences"][0]["changes"]
    assert abs(change["run"] - 12) <= 1
    assert [Path(run["name"]).name for run in told["sequences"][0]["runs"]] == [str(99 - n) for n in range(24)]


def test_order_of_names(nightly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(nightly), "--json", "--no-report", "--order", "name"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(run["name"]).name for run in told["sequences"][0]["runs"]] == [str(76 + n) for n in range(24)]


def test_few_runs_and_a_torn_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(3):
        write(tmp_path / "runs" / f"{n}", n)
    (tmp_path / "runs" / "torn").mkdir()
    (tmp_path / "runs" / "torn" / "run.rtrec").write_bytes(b"nothing")
    (tmp_path / "runs" / "hist.txt").write_text((DATA / "histogram.txt").read_text())
    assert main(["history", str(tmp_path / "runs"), "--no-report"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "3 runs: too few to tell a change" in out
    assert "torn" in out
    assert "does not say when it was measured" in out


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no run in the folder" in err
    assert main(["history", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_the_page_lies_beside_the_folder_in_its_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "runs" / "a", 1)
    assert main(["history", str(tmp_path / "runs"), "--format", "markdown"]) == 0
    assert (tmp_path / "runs-history.md").read_text().startswith("# rtproof: history of 1 run")
    capsys.readouterr()
    assert main(["history", str(tmp_path / "runs"), "--output", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "rtproof-report"


def test_a_run_that_cannot_be_read_is_named_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        write(tmp_path / f"{number}", number)
    (tmp_path / "bad.rtrec").write_bytes(b"no record")
    assert main(["history", str(tmp_path), "--no-report"]) == 2
    out, err = capsys.readouterr()
    assert "history of 3 runs" in out
    assert "bad.rtrec" in out
    assert err == ""
    assert main(["history", str(tmp_path), "--no-report", "--json"]) == 2
    assert "bad.rtrec" in capsys.readouterr().out
