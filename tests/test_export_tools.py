# SPDX-License-Identifier: Apache-2.0
"""The text is read back by a small parser, which first proves itself on what cyclictest 2.4 itself printed."""

import base64
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import block, record
from export_cases import small_analysis
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.cli.main import main
from rtproof.exporters import _columns, cyclictest, hdr, parquet
from rtproof.judge.analyse import analyse

ROW = re.compile(r"\d{6} \d{6,}(\t\d{6,})*")
FOOTER = re.compile(r"# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows):((?: \d{5,})+)")
CYCLES = re.compile(r"# Thread (\d+):((?: \d{5,})*)(?: # (\d{5,}) others)?")


@dataclass
class Parsed:
    rows: list[list[int]]
    footer: dict[str, list[int]]
    cycles: list[list[int]]
    others: list[int]


def parse(text: str) -> Parsed:
    lines = text.split("\n")
    assert lines[0] == "# Histogram"
    assert lines[-2:] == ["", ""]
    assert "# Histogram Overflow at cycle number:" in lines
    rows = [[int(n) for n in line.replace("\t", " ").split()] for line in lines if ROW.fullmatch(line)]
    footer = {m[1]: [int(n) for n in m[2].split()] for line in lines if (m := FOOTER.fullmatch(line))}
    cycles = [m for line in lines if (m := CYCLES.fullmatch(line))]
    assert len(lines) == len(rows) + len(footer) + len(cycles) + 4
    return Parsed(rows, footer, [[int(n) for n in m[2].split()] for m in cycles], [int(m[3] or 0) for m in cycles])


def test_no_more_cycles_are_named_than_there_are_bins(tmp_path: Path) -> None:
    late = analyse(record([block([50_000] * 10)]))
    cyclictest.export(late, tmp_path / "a", {"bins": "3"})
    parsed = parse((tmp_path / "a").read_text())
    assert (parsed.cycles, parsed.others) == ([[0, 1, 2]], [7])


HdrHistogram: Any = pytest.importorskip("hdrh.histogram", reason="hdrhistogram is the judge").HdrHistogram

LARGEST = 2**36
VALUES = st.dictionaries(st.integers(0, LARGEST), st.integers(1, 2**40), max_size=40)


def arrays(counts: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(sorted(counts), np.int64), np.array([counts[value] for value in sorted(counts)], np.int64)


def decoded(counts: dict[int, int], digits: int) -> Any:
    return HdrHistogram.decode(base64.b64encode(hdr.encode(*arrays(counts), digits)))


def slots(histogram: Any) -> dict[int, int]:
    return {step.value_iterated_to: step.count_at_value_iterated_to for step in histogram.get_recorded_iterator()}


@settings(deadline=None, max_examples=50)
@given(VALUES, st.integers(1, 3))
def test_another_program_decodes_the_same_counts(counts: dict[int, int], digits: int) -> None:
    judge = HdrHistogram(1, LARGEST, digits)
    for value, count in counts.items():
        judge.record_value(value, count)
    assert slots(decoded(counts, digits)) == slots(judge)


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53 + 1, 2**62])
def test_the_edges_of_the_scale(value: int) -> None:
    histogram = decoded({value: 7}, 3)
    assert histogram.get_total_count() == 7
    assert histogram.get_count_at_value(value) == 7


def log_lines(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines() if line.startswith("Tag=")]


def test_each_thread_is_a_tagged_histogram(tmp_path: Path) -> None:
    sentence = hdr.export(small_analysis(), tmp_path / "a.hlog", {})
    lines = log_lines(tmp_path / "a.hlog")
    assert [line[0] for line in lines] == ["Tag=thread0", "Tag=thread1"]
    totals = [HdrHistogram.decode(line[-1].encode()).get_total_count() for line in lines]
    assert totals == [6, 3]
    assert [line[3] for line in lines] == ["3.002", "0.000"]
    assert "1 values below 0 stand at 0" in sentence


def test_the_log_reader_of_the_package_takes_it(tmp_path: Path) -> None:
    log = pytest.importorskip("hdrh.log")
    hdr.export(small_analysis(), tmp_path / "a.hlog", {})
    reader = log.HistogramLogReader(str(tmp_path / "a.hlog"), HdrHistogram(1, 2**62, 3))
    found = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found.append((histogram.get_tag(), histogram.get_total_count()))
    assert found == [("thread0", 6), ("thread1", 3)]
    assert reader.get_start_time_sec() == 1_700_000_000.0


def test_the_schedule_view_counts_the_missed_ones(tmp_path: Path) -> None:
    hdr.export(small_analysis(), tmp_path / "a.hlog", {"view": "schedule"})
    totals = [HdrHistogram.decode(line[-1].encode()).get_total_count() for line in log_lines(tmp_path / "a.hlog")]
    assert totals == [10, 3]


duckdb = pytest.importorskip("duckdb")


def rows(path: Path) -> list[tuple[int, ...]]:
    with duckdb.connect() as connection:
        found: list[tuple[int, ...]] = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    return found


def samples() -> list[tuple[int, ...]]:
    return [
        (series.thread, series.cpu, *row)
        for series, part in _columns.all_columns(small_analysis().record)
        for row in zip(*map(list, (part.index, part.due_ns, part.value, part.missed)), strict=True)
    ]


def test_the_command_prints_nothing_but_its_sentence(tmp_path: Path) -> None:
    """At its end duckdb told of 27 leaked instances."""
    run = Path(__file__).parent / "golden_outputs" / "inputs" / "refuted"
    export = [sys.executable, "-m", "rtproof", "export", str(run), "--format", "parquet"]
    done = subprocess.run([*export, "-o", str(tmp_path / "a.parquet")], capture_output=True, check=True, timeout=300)
    assert done.stderr == b""


@pytest.mark.parametrize(
    "text",
    [
        "IO Error: Async write failed for range [offset=9, size=7]: "
        '{"exception_type":"IO","exception_message":"Could not write file \\"/x/000000\\": No space left on device"}',
        'IO Error: Could not write all bytes to file "/x/000000": wanted=9 wrote=7',
    ],
)
def test_a_full_disk_is_told_as_of_every_other_format(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise duckdb.IOException(text)

    monkeypatch.setattr(parquet, "_write_parts", full)
    run = Path(__file__).parent / "golden_outputs" / "inputs" / "refuted"
    file = tmp_path / "a.parquet"
    assert main(["export", str(run), "--format", "parquet", "-o", str(file)]) == 2
    assert capsys.readouterr().err == f"rtproof: no space left on the disk while writing {file}\n"
    assert list(tmp_path.iterdir()) == []


def test_every_sample_is_a_row(tmp_path: Path) -> None:
    sentence = parquet.export(small_analysis(), tmp_path / "a.parquet", {})
    assert rows(tmp_path / "a.parquet") == samples()
    assert "9 samples" in sentence


def test_other_programs_read_it(tmp_path: Path) -> None:
    reader = pytest.importorskip("pyarrow.parquet")
    parquet.export(small_analysis(), tmp_path / "a.parquet", {})
    file = reader.ParquetFile(tmp_path / "a.parquet")
    assert file.schema_arrow.names == ["thread", "cpu", "activation", "due_ns", "latency_ns", "missed_after"]
    assert file.metadata.row_group(0).column(4).compression == "ZSTD"
    assert file.metadata.metadata[b"rtproof_run_id"] == bytes(16).hex().encode()


def test_parts_come_out_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PART_ROWS", 2)
    parquet.export(small_analysis(), tmp_path / "a.parquet", {})
    assert rows(tmp_path / "a.parquet") == samples()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
