# SPDX-License-Identifier: Apache-2.0
"""The text is read back by a small parser, which first proves itself on what cyclictest 2.4 itself printed."""

import base64
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from analysis_records import SERIES, block, record
from export_cases import small_analysis, summary_analysis
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_records import VIRTUAL, staged

from rtproof import exporters
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.exporters import _columns, bins, csv, cyclictest, hdr, parquet
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis

PRINTED = """# Histogram
000000 000000\t000000
000001 000001\t000000
000002 000086\t000063
# Total: 000000087 000000063
# Min Latencies: 00001 00002
# Avg Latencies: 00035 00113
# Max Latencies: 00067 03258
# Histogram Overflows: 00013 00003
# Histogram Overflow at cycle number:
# Thread 0: 00025 00026 # 00011 others
# Thread 1: 00000 00001 00002

"""
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


def test_the_parser_reads_what_cyclictest_prints() -> None:
    parsed = parse(PRINTED)
    assert parsed.rows[2] == [2, 86, 63]
    assert parsed.footer["Max Latencies"] == [67, 3258]
    assert (parsed.cycles, parsed.others) == ([[25, 26], [0, 1, 2]], [11, 0])


def test_the_small_run(tmp_path: Path) -> None:
    sentence = cyclictest.export(small_analysis(), tmp_path / "a", {"bins": "5"})
    parsed = parse((tmp_path / "a").read_text())
    assert parsed.rows == [[0, 2, 3], [1, 1, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]
    assert parsed.footer == {
        "Total": [3, 3],
        "Min Latencies": [0, 0],
        "Avg Latencies": [828, 0],
        "Max Latencies": [3002, 0],
        "Histogram Overflows": [3, 0],
    }
    assert parsed.cycles == [[1, 3, 5], []]
    assert "3 latencies are beyond the scale" in sentence
    assert "1 wake-ups before their due time stand at 0" in sentence
    assert "4 missed activations are not in it" in sentence


def test_no_more_cycles_are_named_than_there_are_bins(tmp_path: Path) -> None:
    late = analyse(record([block([50_000] * 10)]))
    cyclictest.export(late, tmp_path / "a", {"bins": "3"})
    parsed = parse((tmp_path / "a").read_text())
    assert (parsed.cycles, parsed.others) == ([[0, 1, 2]], [7])


def test_400_bins_are_usual(tmp_path: Path) -> None:
    cyclictest.export(small_analysis(), tmp_path / "a", {})
    assert [row[0] for row in parse((tmp_path / "a").read_text()).rows] == list(range(400))


def test_a_summary_serves_but_knows_no_cycles(tmp_path: Path) -> None:
    sentence = cyclictest.export(summary_analysis(), tmp_path / "a", {"bins": "10"})
    parsed = parse((tmp_path / "a").read_text())
    assert parsed.footer["Total"] == [2]
    assert (parsed.cycles, parsed.others) == ([[]], [1])
    assert "known to one part in 1024" in sentence


@pytest.mark.parametrize("bins", ["0", "-1", "few", ""])
def test_bins_that_make_no_sense_are_refused(tmp_path: Path, bins: str) -> None:
    with pytest.raises(UserError, match="is not a whole number from 1 to"):
        cyclictest.export(small_analysis(), tmp_path / "a", {"bins": bins})


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


def test_five_digits_resolve_single_units() -> None:
    assert slots(decoded({199_999: 1, 200_000: 2}, 5)) == {199_999: 1, 200_000: 2}


def test_nothing_is_an_empty_histogram() -> None:
    assert decoded({}, 3).get_total_count() == 0


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


def test_a_summary_serves_with_a_note(tmp_path: Path) -> None:
    sentence = hdr.export(summary_analysis(), tmp_path / "a.hlog", {"digits": "2"})
    histogram = HdrHistogram.decode(log_lines(tmp_path / "a.hlog")[0][-1].encode())
    assert histogram.get_total_count() == 3
    assert "known to one part in 1024" in sentence


@pytest.mark.parametrize("options", [{"digits": "0"}, {"digits": "6"}, {"digits": "x"}, {"view": "all"}])
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(UserError):
        hdr.export(small_analysis(), tmp_path / "a.hlog", options)
    assert list(tmp_path.iterdir()) == []


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
    with pytest.raises(
        UserError,
        match=r"^the format parquet needs duckdb: pip install 'rtproof\[parquet\]' \(it cannot be loaded: [^\n]+\)$",
    ):
        parquet.export(small_analysis(), tmp_path / "a.parquet", {})


# Every export format of a run whose activations have several values.


LINES = """thread,cpu,field,activation,due_ns,latency_ns,missed_after
0,0,irq,0,0,1000,1
0,0,irq,2,2000000,2500,0
0,0,task,0,0,7000,1
0,0,task,2,2000000,9000,0
"""


def analysis() -> Analysis:
    return analyse(staged({"irq": [1_000, 2_500], "task": [7_000, 9_000]}, gaps={0: 1}))


def written(module: ModuleType, folder: Path, made: Analysis, **options: str) -> tuple[str, str]:
    """The sentence and the file."""
    path = folder / f"a{module.SUFFIX}"
    sentence: str = module.export(made, path, options)
    return sentence, path.read_text()


def test_csv_has_a_line_for_each_value_and_a_column_for_its_field(tmp_path: Path) -> None:
    sentence, text = written(csv, tmp_path, analysis())
    assert text == LINES
    assert "4 samples;" in sentence


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    parquet.export(analysis(), tmp_path / "a.parquet", {})
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "a.parquet")]).fetchall()
    assert [",".join(map(str, row)) for row in found] == LINES.splitlines()[1:]


def test_bins_have_a_column_for_each_field(tmp_path: Path) -> None:
    _, text = written(bins, tmp_path, analysis(), count="4")
    assert text.splitlines()[0] == "from_ns,to_ns,thread0.irq,thread0.task"
    assert text.splitlines()[2:] == ["0,2000,1,0", "2000,4000,1,0", "4000,6000,0,0", "6000,8000,0,1", "8000,,0,1"]


def test_hdr_has_a_histogram_for_each_field(tmp_path: Path) -> None:
    sentence, text = written(hdr, tmp_path, analysis())
    tags = [line.partition(",")[0] for line in text.splitlines() if line.startswith("Tag=")]
    assert tags == ["Tag=thread0.irq", "Tag=thread0.task"]
    assert ": 2 histograms" in sentence


def test_cyclictest_has_the_judged_field_only_and_says_so(tmp_path: Path) -> None:
    sentence, text = written(cyclictest, tmp_path, analysis())
    assert "# Min Latencies: 00007\n" in text
    assert "# Max Latencies: 00009\n" in text
    assert "of several fields it holds task" in sentence


def test_a_field_cannot_break_the_format() -> None:
    assert _columns.plain('a,b "c"\n;é') == "a_b__c____"


FOR_ALL = [
    name for name in plugins.plugin_names(exporters) if not hasattr(plugins.load_plugin(exporters, name), "NEEDS")
]


@pytest.mark.parametrize("name", FOR_ALL)
def test_what_is_no_time_is_said_with_every_export(name: str, tmp_path: Path) -> None:
    module = plugins.load_plugin(exporters, name)
    if name == "parquet":
        pytest.importorskip("duckdb")
    for number, facts in enumerate([(), (VIRTUAL,)]):
        made = analyse(staged({"irq": [1], "task": [2]}, facts=facts))
        sentence = module.export(made, tmp_path / f"{number}", {})
        assert ("virtual time" in sentence) == bool(facts)


def test_formats_with_room_for_words_say_it_inside(tmp_path: Path) -> None:
    made = analyse(staged({"irq": [1], "task": [2]}, facts=(VIRTUAL,)))
    assert "#[virtual time: the figures count instructions" in written(hdr, tmp_path, made)[1]
    assert "\n# virtual time: the figures count instructions" in written(cyclictest, tmp_path, made)[1]
