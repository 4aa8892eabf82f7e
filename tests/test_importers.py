# SPDX-License-Identifier: Apache-2.0

import json
from pathlib import Path
from typing import Any

import pytest

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import cyclictest, cyclictest_json, jitterdebugger, xenomai
from rtproof.judge.doubts.registry import contradicted

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
RTS|      8.720|     30.945|    106.589|       1|     2|    00:00:02/00:00:03
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


def test_file_of_bins_loses_its_guards_and_the_one_that_each_bin_has_too_much() -> None:
    found = xenomai.read(POINTS)
    assert found.histogram is not None
    assert (found.histogram.lo.tolist(), found.histogram.n.tolist()) == ([5_000], [10])
    assert (found.scale_ns, found.overflow, found.count) == (7_000, 3, 13)
    assert (found.min_ns, found.max_ns, found.duration_ns) == (-3_835, 21_106, 36_000_000_000_000)
    assert any("adds one" in note for note in found.notes)


def test_width_of_the_bins_is_read_from_the_file_of_bins() -> None:
    found = xenomai.read("0.5 1\n0.75 3\n1.25 5\n1.5 1\n")
    assert found.histogram is not None
    assert found.histogram.lo.tolist() == [500, 1_000]
    assert found.histogram.hi.tolist() == [999, 1_499]


DATA = Path(__file__).parent / "data" / "cyclictest"
MEASURED = (DATA / "histogram.txt").read_text()
SHORT = """# Histogram
000003 000002\t000000
000004 000001\t000005
# Min Latencies: 00003 00004
# Avg Latencies: 00003 00004
# Max Latencies: 00004 00004
# Histogram Overflows: 00000 00000
"""


def test_bins_are_microseconds_rounded_down_and_empty_rows_may_be_left_out() -> None:
    found = cyclictest.read(SHORT)
    assert found.histogram is not None
    assert (found.histogram.lo.tolist(), found.histogram.hi.tolist()) == ([3_000, 4_000], [3_999, 4_999])
    assert found.histogram.n.tolist() == [2, 6]
    assert (found.count, found.overflow, found.mean_ns, found.faults) == (8, 0, 3_625, ())


def test_file_that_was_cut_off_does_not_tell_what_lay_beyond() -> None:
    found = cyclictest.read("\n".join(SHORT.splitlines()[:3]))
    assert (found.count, found.overflow, found.max_ns) == (8, None, None)
    assert any("the lines behind its histogram (#) are missing" in note for note in found.notes)


def test_without_a_histogram_the_last_line_of_each_thread_counts() -> None:
    lines = [
        f"T: {thread} ( 1845) P:80 I:1000 C:{n:7} Min:     10 Act:   19 Avg:   44 Max:   {n}"
        for n in (100, 23350)
        for thread in (0, 1)
    ]
    found = cyclictest.read("policy: fifo: loadavg: 4.31\n" + "\n".join(lines))
    assert (found.count, found.min_ns, found.max_ns, found.histogram) == (46_700, 10_000, 23_350_000, None)
    assert (found.priority, found.period_ns) == (80, None)


@pytest.mark.parametrize(
    ("was", "is_now", "says"),
    [
        ("# Max Latencies: 00067 03258", "# Max Latencies: 00067 00048", "values lie beyond 50 us"),
        (
            "# Histogram Overflows: 00013 00037",
            "# Histogram Overflows: 00000 00037",
            "and its maximum 67 us lies beyond",
        ),
        ("# Min Latencies: 00020 00030", "# Min Latencies: 00023 00030", "below its minimum 23 us"),
        ("# Min Latencies: 00020 00030", "# Min Latencies: 00021 00030", "below its minimum 21 us"),
        ("# Total: 000000087", "# Total: 000000086", "its bins hold 100 values, its count says 99"),
        ("# Avg Latencies: 00035 00113", "# Avg Latencies: 00135 00113", "is not between"),
        ("03258", "18446744073709551000", "without its sign"),
    ],
)
def test_contradictions_are_named_and_the_rest_is_read(was: str, is_now: str, says: str) -> None:
    found = cyclictest.read(MEASURED.replace(was, is_now))
    assert found.count is not None
    faults = contradicted(found).faults
    assert any(says in fault for fault in faults), faults


def test_values_beyond_the_scale_and_a_maximum_without_its_sign() -> None:
    found = cyclictest.read(MEASURED.replace("03258", "18446744073709551000"))
    assert found.overflow == 50
    assert int(found.counts_of(found).n[-1]) == 50


def document(command: str = "cyclictest -h 50 -p 80 -i 250", **thread: Any) -> str:
    one = {"histogram": {"20": 3, "49": 1}, "cycles": 4, "min": 20, "max": 49, "avg": 27.25, "cpu": 1} | thread
    head = {"cmdline:": command, "rt_test_version:": "2.40", "resolution_in_ns": 0}
    return json.dumps(head | {"thread": {"0": one}})


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (document().replace('"resolution_in_ns": 0', '"resolution_in_ns": 1'), (4, 0, 4, 49)),
        (document(cycles=6, max=80), (6, 2, 4, 80_000)),
        (document(cycles=6, max=48), (4, None, 4, 48_000)),
        (document(histogram={}, min=60, max=80), (4, 4, 0, 80_000)),
    ],
    ids=["nanoseconds", "beyond the scale", "counted while the file was written", "all beyond the scale"],
)
def test_values_in_no_bin(text: str, figures: tuple[int | None, ...]) -> None:
    found = cyclictest_json.read(text)
    assert found.histogram is not None
    assert (found.count, found.overflow, found.histogram.total, found.max_ns) == figures


FILE = Path(__file__).parent / "data" / "jitterdebugger.json"


def test_values_in_no_bin_did_not_lie_beyond_the_scale_if_the_maximum_did_not() -> None:
    found = jitterdebugger.read(FILE.read_text().replace('"max": 7926', '"max": 700'))
    assert (found.parts[0].overflow, found.parts[0].count) == (None, 76)


JITTER = FILE.read_text()
NONSENSE = [
    ("== Sampling period: 1000 us\n", "no line of figures"),
    (TEXT + END.replace("30.945", "330.945"), "between its minimum and its maximum"),
    (TEXT + END.replace("30 - 31", " 8 - 9"), "overlap"),
    ("5 1\n5 3\n5 1\n", "do not increase"),
    ("5 1\n5 3\n6 1\n", "not the output of a tool"),
    ("", "not the output of a tool"),
    ("# Histogram\n", "neither a histogram nor a line"),
    (SHORT.replace("000003 000002\t000000", "000003 000002"), "number of columns"),
    (SHORT.replace("000004 000001", "000002 000001"), "do not increase"),
    (SHORT.replace("# Max Latencies: 00004 00004", "# Max Latencies: 00004"), "2 columns"),
    (SHORT.replace("000002", "9" * 5_000), "larger than any"),
    (SHORT.replace("000002", "9" * 19), "no computer"),
    (SHORT.replace("000002", str(2**62)).replace("000005", str(2**62)), "no computer"),
    (SHORT.replace("000004 0", "9999999999999999 0"), "outside of what a clock"),
    (document().replace('"cycles": 4', '"cycles": "four"'), "not of its form"),
    (document()[:-20], "not of its form"),
    (document(max=2**64 - 5), "without its sign"),
    (document(histogram={"20": 2**64 - 5}), "no computer"),
    ('{"cmdline:": "cyclictest", "rt_test_version:": "2.4", "thread": {}}', "no thread"),
    (JITTER.replace('"count": 84', '"count": "many"'), "not of its form"),
    (JITTER.replace('"resolution_in_ns": 1000', '"resolution_in_ns": 0'), "makes no sense"),
    (JITTER.replace('"max": 7926', '"max": 18446744073709551610'), "without its sign"),
]


@pytest.mark.parametrize(("content", "says"), NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_refused_in_a_sentence(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(UserError, match=says) as refused:
        importers.read(tmp_path / "x")
    assert str(tmp_path / "x") in str(refused.value)
