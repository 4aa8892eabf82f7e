# SPDX-License-Identifier: Apache-2.0

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_cases import small_analysis, summary_analysis
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.core.errors import UserError
from rtproof.exporters import hdr

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
