# SPDX-License-Identifier: Apache-2.0

import sys
from pathlib import Path

import pytest
from analysis_records import SERIES, block, record
from export_cases import small_analysis, summary_analysis

from rtproof.core.errors import UserError
from rtproof.exporters import _columns, parquet
from rtproof.judge.analyse import analyse

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


def test_a_run_without_samples_is_a_file_without_rows(tmp_path: Path) -> None:
    parquet.export(analyse(record([])), tmp_path / "a.parquet", {})
    assert rows(tmp_path / "a.parquet") == []


@pytest.mark.parametrize("name", ["it's", "[abc]", "a*b?", "with space"])
def test_any_folder_will_do(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    parquet.export(small_analysis(), tmp_path / name / "a.parquet", {})
    assert (tmp_path / name / "a.parquet").stat().st_size > 0
    assert len(list((tmp_path / name).iterdir())) == 1


def test_latencies_are_compressed(tmp_path: Path) -> None:
    values = [10_000 + (n * 7919) % 500 for n in range(20_000)]
    parquet.export(analyse(record([block(values)], (SERIES,))), tmp_path / "a.parquet", {})
    assert (tmp_path / "a.parquet").stat().st_size < 20_000 * 10


def test_a_summary_has_no_samples_to_write(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="parquet needs every sample"):
        parquet.export(summary_analysis(), tmp_path / "a.parquet", {})
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").symlink_to("nowhere")
    with pytest.raises(UserError, match="exists already"):
        parquet.export(small_analysis(), tmp_path / "a.parquet", {})


def test_without_duckdb_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UserError, match="parquet needs the package duckdb"):
        parquet.export(small_analysis(), tmp_path / "a.parquet", {})
