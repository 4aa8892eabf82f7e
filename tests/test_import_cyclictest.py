# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import cyclictest

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


def test_measured_file_of_two_threads() -> None:
    found = importers.read(DATA / "histogram.txt")
    assert (found.tool, found.count, found.overflow, found.scale_ns) == (cyclictest.TOOL, 200, 50, 50_000)
    assert (found.min_ns, found.max_ns, found.largest_ns, found.resolution_ns) == (20_000, 3_258_000, 3_258_999, 1_000)
    assert found.histogram is not None
    assert found.histogram.total == 87 + 63
    assert [(part.count, part.overflow, part.max_ns) for part in found.parts] == [
        (100, 13, 67_000),
        (100, 37, 3_258_000),
    ]
    assert found.faults == ()
    assert any("beyond the scale" in note for note in found.notes)


def test_bins_are_microseconds_rounded_down_and_empty_rows_may_be_left_out() -> None:
    found = cyclictest.read(SHORT)
    assert found.histogram is not None
    assert (found.histogram.lo.tolist(), found.histogram.hi.tolist()) == ([3_000, 4_000], [3_999, 4_999])
    assert found.histogram.n.tolist() == [2, 6]
    assert (found.count, found.overflow, found.mean_ns, found.faults) == (8, 0, 3_625, ())


def test_row_number_is_not_the_line_number() -> None:
    dense = MEASURED.splitlines()
    sparse = [line for line in dense if not line.endswith("000000\t000000")]
    assert 0 < len(sparse) < len(dense)
    whole, thinned = cyclictest.read(MEASURED), cyclictest.read("\n".join(sparse))
    assert whole.histogram is not None
    assert thinned.histogram is not None
    assert whole.histogram.lo.tolist() == thinned.histogram.lo.tolist()


def test_column_of_sums_is_not_a_thread() -> None:
    lines = [f"{line}\t{sum(map(int, line.split()[1:])):06}" if line[0] == "0" else line for line in SHORT.splitlines()]
    summed = cyclictest.read("\n".join(lines))
    assert (len(summed.parts), summed.count) == (2, 8)


def test_file_that_was_cut_off_does_not_tell_what_lay_beyond() -> None:
    found = cyclictest.read("\n".join(SHORT.splitlines()[:3]))
    assert (found.count, found.overflow, found.max_ns) == (8, None, None)
    assert any("cut off" in note for note in found.notes)


def test_priority_and_period_come_from_the_lines_it_prints_while_it_runs() -> None:
    one = "# Histogram\n000003 000002\n# Max Latencies: 00003\n# Min Latencies: 00003\n# Histogram Overflows: 0\n"
    live = "T: 0 ( 1845) P:80 I:1000 C:      2 Min:      3 Act:    3 Avg:    3 Max:      3\n"
    found = cyclictest.read(live + one)
    assert (found.priority, found.period_ns, found.count) == (80, 1_000_000, 2)


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
        ("# Max Latencies: 00067 03258", "# Max Latencies: 00067 00048", "lies on it"),
        ("# Histogram Overflows: 00013 00037", "# Histogram Overflows: 00000 00037", "histogram ends at 49 us"),
        ("# Min Latencies: 00020 00030", "# Min Latencies: 00021 00030", "begins at 20 us"),
        ("# Total: 000000087", "# Total: 000000086", "add up to 87"),
        ("# Avg Latencies: 00035 00113", "# Avg Latencies: 00135 00113", "mean of thread 0"),
        ("03258", "18446744073709551000", "without its sign"),
    ],
)
def test_contradictions_are_named_and_the_rest_is_read(was: str, is_now: str, says: str) -> None:
    found = cyclictest.read(MEASURED.replace(was, is_now))
    assert found.count is not None
    assert any(says in fault for fault in found.faults), found.faults


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("# Histogram\n", "neither a histogram nor a line"),
        (SHORT.replace("000003 000002\t000000", "000003 000002"), "number of columns"),
        (SHORT.replace("000004 000001", "000002 000001"), "do not increase"),
        (SHORT.replace("# Max Latencies: 00004 00004", "# Max Latencies: 00004"), "2 columns"),
        (SHORT.replace("000002", "9" * 30), "larger than any"),
        (SHORT.replace("000002", "9" * 5_000), "larger than any"),
        (SHORT.replace("000002", "9" * 19), "no computer"),
        (SHORT.replace("000002", str(2**62)).replace("000005", str(2**62)), "no computer"),
        (SHORT.replace("000004 0", "9999999999999999 0"), "outside of what a clock"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "hist.txt"
    file.write_text(content)
    with pytest.raises(UserError, match=says) as refused:
        importers.read(file)
    assert str(file) in str(refused.value)
