# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from rtproof import importers
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.importers import xenomai

TEXT = """== Sampling period: 1000 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      8.720|     30.000|     90.000|       0|     0|      8.720|     90.000
RTD|      9.000|     40.000|    106.589|       1|     2|      8.720|    106.589
"""
END = """---|--param|----range-|--samples
HSD|    min|   8 -  9 |        1
HSD|    avg|   8 -  9 |        3
HSD|    avg|  30 - 31 |     1996
HSD|    avg| 106 -107 |        1
HSD|    max| 106 -107 |        1
HSH|--param|--samples-|--average--|---stddev--
HSS|    min|         2|      8.500|      0.500
HSS|    avg|      2000|     30.000|      1.500
HSS|    max|         2|     98.000|      8.000
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      8.720|     32.945|    106.589|       1|     2|    00:00:02/00:00:03
"""
POINTS = """# 10:00:00 (periodic user-mode task, 1000 us period, priority 99)
# ----lat min|----lat avg|----lat max|-overrun|---msw|
#      -3.835|      6.343|     21.106|       0|     0|
# Xenomai version: Xenomai/cobalt v3.0
5 1
5.5 11
6.5 1
7.5 4
8 1
"""


def test_text_of_a_finished_run() -> None:
    found = xenomai.read(TEXT + END)
    assert (found.min_ns, found.mean_ns, found.max_ns) == (8_720, 32_945, 106_589)
    assert (found.period_ns, found.priority, found.title) == (1_000_000, 99, "periodic user-mode task")
    assert (found.count, found.overruns, found.mode_switches) == (2_000, 1, 2)
    assert (found.duration_ns, found.asked_duration_ns) == (2_000_000_000, 3_000_000_000)


def test_histogram_of_the_text_is_that_of_single_samples() -> None:
    counts = xenomai.read(TEXT + END).histogram
    assert counts is not None
    assert (counts.lo.tolist(), counts.hi.tolist()) == ([8_000, 30_000, 106_000], [8_999, 30_999, 106_999])
    assert counts.n.tolist() == [3, 1996, 1]


def test_text_that_was_cut_off_says_so() -> None:
    found = xenomai.read(TEXT)
    assert (found.min_ns, found.mean_ns, found.max_ns) == (8_720, 35_000, 106_589)
    assert found.count is None
    assert found.duration_ns is None
    assert any("did not finish" in note for note in found.notes)


def test_quiet_run_has_its_last_line_only() -> None:
    found = xenomai.read("\n".join(TEXT.splitlines()[:3]) + "\n" + END.splitlines()[-1] + "\n")
    assert found.max_ns == 106_589
    assert (found.count, found.histogram, found.priority) == (None, None, None)


def test_file_of_bins_loses_its_guards_and_the_one_that_each_bin_has_too_much() -> None:
    found = xenomai.read(POINTS)
    assert found.histogram is not None
    assert (found.histogram.lo.tolist(), found.histogram.n.tolist()) == ([5_000, 7_000], [10, 3])
    assert found.count == 13
    assert (found.min_ns, found.max_ns, found.duration_ns) == (-3_835, 21_106, 36_000_000_000_000)
    assert any("adds one" in note for note in found.notes)


def test_file_of_bins_of_the_old_version_has_no_head() -> None:
    found = xenomai.read("".join(line for line in POINTS.splitlines(keepends=True) if line[0] != "#"))
    assert found.count == 13
    assert found.min_ns is None


def test_width_of_the_bins_is_read_from_the_file_of_bins() -> None:
    found = xenomai.read("0.5 1\n0.75 3\n1.25 5\n1.5 1\n")
    assert found.histogram is not None
    assert found.histogram.lo.tolist() == [500, 1_000]
    assert found.histogram.hi.tolist() == [999, 1_499]


def test_reader_is_found_by_what_is_in_the_file(tmp_path: Path) -> None:
    for content in (TEXT, TEXT + END, POINTS):
        file = tmp_path / "latency.txt"
        file.write_text(content)
        assert importers.read(file).tool == xenomai.TOOL


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("== Sampling period: 1000 us\n", "no line of figures"),
        (TEXT + END.replace("32.945", "332.945"), "between its minimum and its maximum"),
        (TEXT + END.replace("30 - 31", " 8 - 9"), "overlap"),
        ("5 1\n5 3\n6 1\n", "do not increase"),
        ("some text\n", "not the output of a tool"),
        ("", "not the output of a tool"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "latency.txt"
    file.write_text(content)
    with pytest.raises(UserError, match=says) as refused:
        importers.read(file)
    assert str(file) in str(refused.value)


def test_missing_and_huge_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        importers.read(tmp_path / "none")
    huge = tmp_path / "huge"
    with huge.open("w") as file:
        file.truncate(importers.LARGEST_BYTES + 1)
    with pytest.raises(UserError, match="larger than"):
        importers.read(huge)


def test_every_importer_keeps_the_contract() -> None:
    for module in plugins.load_plugins(importers):
        assert module.__doc__
        assert isinstance(module.TOOL, str)
        assert callable(module.looks_like)
        assert callable(module.read)
