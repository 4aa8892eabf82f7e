# SPDX-License-Identifier: Apache-2.0
"""Runs without length or spread, and histograms without a value: no figure is "nan" or "inf", and JSON stays JSON."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import BEGIN, SERIES
from run_folders import INFO

from rtproof.cli.main import main
from rtproof.record import run_folder
from rtproof.record.contents import End, EndReason
from rtproof.record.writing import RecordWriter, SeriesWriter

DATA = Path(__file__).parent / "data" / "cyclictest"
NO_NUMBER = re.compile(r"\b(nan|inf)\b|\bNaN\b|\bInfinity\b")
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
RUNS: dict[str, tuple[list[int], int | None]] = {
    "one value": ([5_000], None),
    "one value in no time": ([5_000], 0),
    "no value": ([], None),
    "two of the same": ([5_000, 5_000], None),
    "all zero": ([0] * 1_000, None),
    "zero in no time": ([0, 0], 0),
    "all early": ([-5] * 1_000, None),
    "as long as can be written": ([2**62], None),
}


def write(folder: Path, values: list[int], length_ns: int | None) -> Path:
    run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, INFO)
    with RecordWriter(str(folder / run_folder.RECORD_NAME)) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES)
        if values:
            feed.add(np.array(values, np.int64))
        end_ns = len(values) * SERIES.period_ns if length_ns is None else length_ns
        writer.end(End(end_ns, EndReason.AS_ASKED, "", (feed.finish(),)))
    return folder


def no_constant(word: str) -> Any:
    pytest.fail(f"{word} is no JSON")


def check(path: Path, other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["show"],
        ["show", "--json", "--limit", "1ms"],
        ["judge", "--limit", "1ms", "--fixed-beforehand"],
        ["report", "--format", "text", "--output", "-"],
        ["report", "--format", "json", "--output", "-"],
        ["history", "--no-report", "--json"],
        ["compare", "--against", str(other), "--although-different", "--no-report", "--json"],
    ):
        code = main([words[0], str(path), *words[1:]])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2, 3, 4)
        assert "defect" not in out + err
        assert not NO_NUMBER.search(out), words
        if "json" in words or ("--json" in words and code != 2):
            json.loads(out, parse_constant=no_constant)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_without_length_or_spread(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write(tmp_path / "run", *RUNS[name])
    check(run, write(tmp_path / "other", [4_000, 6_000], None), capsys)
    assert main(["show", str(run)]) != 2


@pytest.mark.parametrize("form", ["bins", "cyclictest"])
def test_a_histogram_of_no_thread(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record"
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.end(End(0, EndReason.AS_ASKED, "", ()))
    assert main(["export", str(path), "--format", form, "--output", "-"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"rtproof: {path} has no thread that can be read, so it has no histogram\n")


def test_a_histogram_without_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.sub(r"^(\d{6}) .*$", r"\1 000000\t000000", (DATA / "histogram.txt").read_text(), flags=re.MULTILINE)
    (tmp_path / "hist.txt").write_text(text)
    check(tmp_path / "hist.txt", write(tmp_path / "other", [4_000, 6_000], None), capsys)
    told = json.loads((DATA / "result.json").read_text())
    for thread in told["thread"].values():
        thread.update(cycles=0, min=0, max=0, avg=0, histogram={})
    told["end_time"] = told["start_time"]
    (tmp_path / "result.json").write_text(json.dumps(told))
    check(tmp_path / "result.json", DATA / "histogram.txt", capsys)
