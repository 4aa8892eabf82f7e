# SPDX-License-Identifier: Apache-2.0
"""Outputs of other tools that have a reader: what is read of each, and what is refused.

``data/tool_outputs.zip`` holds what the programs of Debian wrote here. The outputs of RTAI, rtla, latmus, Xenomai,
rteval and hwlatdetect in it were built from the formats of their sources.
"""

import json
import zipfile
from pathlib import Path

import pytest

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import latmus, rtla, xenomai
from rtproof.judge.doubts.registry import contradicted
from rtproof.summary.imported_histogram import ImportedHistogram

ARCHIVE = Path(__file__).parent / "data" / "tool_outputs.zip"


OSNOISE = (
    "      1037436    98.21129       19201        15020        1023           0        58070          137          214"
)


def output(name: str) -> str:
    with zipfile.ZipFile(ARCHIVE) as outputs:
        return outputs.read(name).decode()


def names() -> list[str]:
    with zipfile.ZipFile(ARCHIVE) as outputs:
        return outputs.namelist()


def read(tmp_path: Path, text: str) -> ImportedHistogram:
    """Read by whichever reader knows the text."""
    (tmp_path / "x").write_text(text)
    return importers.read(tmp_path / "x")


FIGURES = {
    "oslat.json": ("oslat", 164_939_221, 0, 8_551_000, 392),
    "oslat.txt": ("oslat", 164_939_221, 0, 8_551_000, 392),
    "oslat-moved.json": ("oslat", 39_653_880, 0, 1_821_000, 459),
    "cyclicdeadline.json": ("rt-tests", 200, 2_000, 692_000, None),
    "pmqtest.json": ("rt-tests", 30, 17_000, 48_000, None),
    "ptsematest.json": ("rt-tests", 30, 1_000, 41_000, None),
    "svsematest.json": ("rt-tests", 30, 16_000, 65_000, None),
    "sigwaittest.json": ("rt-tests", 30, 18_000, 32_000, None),
    "signaltest.json": ("rt-tests", 40, 27_000, 10_247_000, None),
    "rt-app.log": ("rt-app", 200, 27_000, 126_000, 0),
    "stress-ng.txt": ("stress-ng cyclic", 7_356, 13_027, 1_389_802, None),
    "rtai-latency.txt": ("RTAI", 30_000, -29_837, 53_262, None),
    "rtai-preempt.txt": ("RTAI", None, -1_510, 1_811, None),
    "rtla-timerlat-hist.txt": ("rtla", 1_999, 3_000, 29_000, 0),
    "rtla-timerlat-top.txt": ("rtla", 12_034, 3_000, 62_000, None),
    "rtla-osnoise-hist.txt": ("rtla", 103_500, 0, 1_290_000, 1),
    "rtla-osnoise-top.txt": ("rtla", None, None, 15_020_000, None),
    "latmus.txt": ("EVL latmus", 60_000, 205, 21_106, 10),
    "cyclictest-v.txt": ("cyclictest -v", 348, 25_000, 12_123_000, 0),
    "rteval.xml": ("rteval", 6_000, 8_000, 1_476_000, 0),
    "hwlatdetect.txt": ("hwlatdetect", None, None, 173_000, None),
    "cyclictest-live.txt": ("cyclictest", 893, 13_000, 1_019_000, None),
    "linuxcnc.txt": ("LinuxCNC latency-histogram", None, -10_300, 35_600, None),
    "xenomai-3.txt": ("Xenomai latency", 900_000, 1_016, 130_000, None),
    "latmus-lines.txt": ("EVL latmus", 3_000, 205, 21_106, None),
    "xenomai-2.5.txt": ("Xenomai latency", 20_000, -1_573, 22_500, None),
    "cyclictest-2.4-H-2-threads.txt": ("cyclictest", 139 + 200, 68_000, 87_548_000, 13 + 2),
    "cyclictest-h60-indented.txt": ("cyclictest", 2_998_821 + 604, 5_000, 1_475_000, 604),
    "cyclictest-lines-kernel-message-inside.txt": ("cyclictest", 5_000, 7_000, 44_000, None),
    "cyclictest-osadl-histogram.txt": ("cyclictest", 44_220_549, None, None, None),
    "cyclictest-utf16.txt": ("cyclictest", 44_220_549, 4_000, 28_000, 0),
    "oslat-2.60-vm.txt": ("oslat", 582_741_767 + 615_459_390, 1_000, 56_000, 2),
    "pmqtest.txt": ("rt-tests", 999_998 + 999_947, 49_000, 6_578_000, None),
    "rtla-osnoise-hist-empty.txt": ("rtla", 0, None, None, 0),
    "rtla-top-12h.txt": ("rtla", 2 * 43_200_096, 2_000, 12_000, None),
    "rtla-top-indented-spike.txt": ("rtla", 4 * 58_634, 2_000, 30_000, None),
    "xenomai-blank-before-bar.txt": ("Xenomai latency", None, 514, 1_333_165, None),
    "histogram.txt": ("cyclictest", 200, 20_000, 3_258_000, 50),
    "result.json": ("cyclictest --json", 200, 20_000, 3_258_000, 50),
    "stall.json": ("cyclictest --json", 1_593, 25_000, 402_666_000, 0),
    "jitterdebugger.json": ("jitterdebugger", 84 + 65 + 61 + 50, 26_000, 7_926_000, 8 + 3 + 1 + 16),
}
"""As counted in the files without rtproof."""
PLACES = [
    *(Path(__file__).parent / "golden_outputs" / "inputs" / "public").iterdir(),
    *(Path(__file__).parent / "data" / "cyclictest").iterdir(),
    Path(__file__).parent / "data" / "jitterdebugger.json",
]
FILES = {path.name: path for path in PLACES}


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_are_those_that_stand_in_the_output(name: str, tmp_path: Path) -> None:
    found = importers.read(FILES[name]) if name in FILES else read(tmp_path, output(name))
    assert (found.tool, found.count, found.min_ns, found.max_ns, found.overflow) == FIGURES[name]
    assert faults(found) == ()


def test_each_output_of_the_archive_has_its_figures() -> None:
    assert set(names()) <= set(FIGURES)


def test_moved_bins_of_oslat_hold_shorter_times_too(tmp_path: Path) -> None:
    found = read(tmp_path, output("oslat-moved.json"))
    assert found.histogram is not None
    assert (int(found.histogram.lo[0]), int(found.histogram.hi[0])) == (0, 1_999)
    assert found.unsure


@pytest.mark.parametrize("name", ["oslat.txt", "rt-app.log", "rtai-latency.txt", "rtla-timerlat-hist.txt"])
def test_two_measurements_in_a_file_are_not_mixed(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it has 2 measurements"):
        read(tmp_path, output(name) * 2)


def test_of_timerlats_places_the_last_one_is_taken_and_none_added_up() -> None:
    found = rtla.read(output("rtla-timerlat-hist.txt"))
    assert found.title == "timerlat: return to user space"
    assert [part.count for part in found.parts] == [1_000, 999]
    without = output("rtla-timerlat-hist.txt").replace("Usr", "XYZ")
    with pytest.raises(UserError, match="the name of no stage"):
        rtla.read(without)


def test_a_cpu_without_a_column_is_no_shift_of_columns() -> None:
    text = "\n".join(
        " ".join(words[:1] + words[4:]) if words[0] != "#" else line
        for line in output("rtla-timerlat-hist.txt").partition("ALL:")[0].splitlines()
        for words in [line.split()]
    )
    found = rtla.read(text)
    assert [(part.cpu, part.count, part.max_ns) for part in found.parts] == [(2, 999, 14_000)]


def test_rtlas_values_beyond_the_scale_are_counted() -> None:
    found = rtla.read(output("rtla-osnoise-hist.txt"))
    assert (found.overflow, found.scale_ns) == (1, 20_000)
    assert found.histogram is not None
    assert found.histogram.hi.tolist() == [4_999, 9_999, 14_999, 19_999]


def test_a_count_that_latmus_added_to_each_bin_is_taken_off() -> None:
    old = "\n".join(line for line in output("latmus.txt").splitlines() if "sample count" not in line)
    found = latmus.read(old.replace("9+ 10", "9 11").replace("1 19990", "1 19991").replace("5 10000", "5 10001"))
    assert found.count == 29_999 + 19_990 + 10_000 + 10


def test_bins_with_values_before_their_time_become_one() -> None:
    early = output("latmus.txt").replace("min latency: 0.205", "min latency: -1.205")
    found = latmus.read(early)
    assert found.histogram is not None
    assert found.histogram.lo.tolist() == [-1_205, 5_000]
    assert found.histogram.n.tolist() == [49_990, 10_000]
    assert (found.scale_ns, found.overflow) == (9_000, 10)
    assert not found.unsure


GRAVITY = """HSD|    avg|   0 -  1 |     1000
HSS|    avg|      1000|      0.000|      0.000
RTS|     -0.573|     -0.550|     -0.524|       0|     0|    00:00:01/00:00:01
"""


def test_values_that_all_came_before_their_time_lie_between_minimum_and_maximum() -> None:
    found = xenomai.read(GRAVITY)
    assert found.histogram is not None
    assert (found.histogram.lo.tolist(), found.histogram.hi.tolist()) == ([-573], [-524])


@pytest.mark.parametrize(
    ("bins", "mean", "largest"),
    [
        ("6 -  7 |     1000", "-0.550", "-0.524"),
        ("0 -  1 |      900\nHSD|    avg|   1 -  2 |      100", "9.000", "15.524"),
    ],
)
def test_bins_of_another_width_than_told_are_left_out(bins: str, mean: str, largest: str) -> None:
    """Written with -B100 or -B10000: the numbers of the bins are ten times too large or too small."""
    told = GRAVITY.replace("0 -  1 |     1000", bins).replace("-0.550", mean).replace("-0.524", largest)
    found = xenomai.read(told)
    assert found.histogram is None
    assert xenomai.NOT_BELIEVED in found.notes
    assert (found.count, found.faults) == (1_000, ())


def test_bins_of_an_assumed_width_do_not_show_what_exceeded_a_limit() -> None:
    """Written with -B 500 -H 29: the bins look like 28 us, are half as wide, and the last one is open."""
    bins = "1 -  2 |      900\nHSD|    avg|  28 - 29 |      100"
    told = GRAVITY.replace("0 -  1 |     1000", bins).replace("-0.550", " 4.000").replace("-0.524", "30.000")
    found = xenomai.read(told.replace("-0.573", " 1.000"))
    assert found.histogram is not None
    assert found.unsure


@pytest.mark.parametrize(
    ("last", "least", "largest", "overflow"),
    [
        ("28 - 29", " 1.000", "28.999", 0),
        ("28 - 29", " 1.000", "29.001", 100),
        ("28 - 29", "-28.50", "12.000", 0),
        ("28 - 29", "-28.50", "30.000", 0),
        ("28 - 29", "-1.500", "30.000", 100),
    ],
    ids=["on it", "above it", "early", "early and above it", "early, but not so far"],
)
def test_xenomais_scale_ends_with_its_last_bin_only_if_the_maximum_lies_above(
    last: str, least: str, largest: str, overflow: int
) -> None:
    bins = f"0 -  1 |      900\nHSD|    avg|  {last} |      100"
    told = GRAVITY.replace("0 -  1 |     1000", bins).replace("-0.573", least).replace("-0.550", " 3.000")
    found = xenomai.read(told.replace("-0.524", largest))
    assert (found.overflow, found.count) == (overflow, 1_000)
    assert found.summary.observed_counts.total == 1_000
    assert xenomai.read(told.replace("-0.524", largest).replace("     1000|", "     1001|")).overflow is None


def test_the_first_xenomai_printed_nanoseconds() -> None:
    lines = output("xenomai-2.5.txt").splitlines()[5:]
    text = "\n".join(lines).replace(".", "").replace("All results in microseconds", "")
    found = xenomai.read(text)
    assert (found.min_ns, found.max_ns, found.mode_switches, found.overruns) == (-1_573, 22_500, None, 3)


@pytest.mark.parametrize(
    ("name", "was", "is_now", "says"),
    [
        ("oslat.txt", "001 (us):\t 81908302 83027637", "001 (us):\t 5", "a row of its table is missing"),
        ("oslat.txt", "1.001 1.001", "1.0.1 1.001", "1.0.1 stands where a time belongs"),
        ("oslat.json", '"thread": {', '"thread": {}, "x": {', "no thread"),
        ("oslat.json", '"min": 1', '"min": -9', "below 1 us"),
        ("oslat.json", '"max": 8552', '"max": 99999999999999', "can count to"),
        ("pmqtest.json", '"sender"', '"x"', "a sender or a receiver only"),
        ("rt-app.log", "wu_lat", "wu", "no column wu_lat"),
        ("rt-app.log", "\n   0 ", "\n# 0 ", "the thread never ran"),
        ("rt-app.log", "         31\n", f" {'9' * 19}\n", "larger than any clock"),
        ("stress-ng.txt", "mean:", "man:", "is missing"),
        ("stress-ng.txt", "min: ", "min: 9999999999", "does not lie between"),
        ("rtai-latency.txt", "RTH|", "RTX|", "no line with the names of its columns"),
        ("rtai-latency.txt", "|          2", "", "a line has 5 figures"),
        ("rtai-latency.txt", "2495", "99495", "does not lie between"),
        ("rtla-timerlat-hist.txt", "over:", "upper:", "its last rows are missing"),
        ("rtla-timerlat-hist.txt", "10            0", "10", "the row 10 has 5 numbers"),
        ("rtla-timerlat-hist.txt", "over:         0         0         0", "over: 0 0 99999999999999", "can count to"),
        ("rtla-timerlat-top.txt", "  1 #6017", "  0 #6017", "two rows"),
        ("rtla-osnoise-top.txt", OSNOISE, " 1 2", "fewer figures"),
        ("latmus.txt", "\n0 30000\n1 19990\n5 10000\n9+ 10", "", "no rows of numbers"),
        ("hwlatdetect.txt", "Max Latency:", "Max:", "ended before it had measured"),
        ("hwlatdetect.txt", " 500000us", " 5000000us", "looked for longer than there was time"),
        ("hwlatdetect.txt", "threshold: 2", "threshold: 999999999999999999", "no computer can count to"),
        ("latmus.txt", "\n0 30000\n1 19990\n5 10000\n9+ 10", "\n0 1 1\n9+ 10 2", "more than one measurement"),
        ("latmus.txt", "1 19990", "1 999999999999\n2 999999999999", "can count to"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(name: str, was: str, is_now: str, says: str, tmp_path: Path) -> None:
    text = output(name)
    assert was in text
    with pytest.raises(UserError, match=says) as refused:
        read(tmp_path, text.replace(was, is_now))
    assert str(refused.value).startswith(f"{tmp_path / 'x'} looks like the output of ")


@pytest.mark.parametrize(
    ("name", "was", "is_now", "says"),
    [
        ("rtai-latency.txt", "      45325|          0", "      40000|          0", "ovl max"),
        ("rtai-latency.txt", "45325|          0", "45325|          9", "become fewer"),
        ("latmus.txt", "count: 60000", "count: 60001", "60,001 samples"),
        ("rtla-timerlat-hist.txt", "863         0", "900         0", "its bins hold 1,037 values"),
        ("cyclicdeadline.json", "10:24:28", "10:20:28", "before it began"),
    ],
)
def test_contradictions_are_named(name: str, was: str, is_now: str, says: str, tmp_path: Path) -> None:
    text = output(name)
    assert was in text
    assert any(says in fault for fault in faults(read(tmp_path, text.replace(was, is_now))))


def faults(found: ImportedHistogram) -> tuple[str, ...]:
    """Where the file contradicts itself, as its importer says it, or as the rules for figures do."""
    return contradicted(found).faults


LINES = "T: 0 ( 900) P:80 I:1000 C: {0} Min: {1} Act: 5 Avg: 6 Max: {2}\n"
HISTOGRAM = "# Histogram\n000003 000000\n000004 000090\n000020 000010\n# Total: 000000100\n# Min Latencies: 00004\n"
TRAILER = "# Avg Latencies: 00005\n# Max Latencies: 00020\n# Histogram Overflows: 00000\n"


def test_the_lines_of_two_runs_of_cyclictest_are_not_mixed(tmp_path: Path) -> None:
    for lines in (LINES.format(90, 4, 20) + LINES.format(10, 4, 20), LINES.format(9, 4, 20).replace("900", "901")):
        with pytest.raises(UserError, match="lines of several runs"):
            read(tmp_path, LINES.format(8, 4, 20) + lines)
    with pytest.raises(UserError, match="it has 2 measurements"):
        read(tmp_path, (HISTOGRAM + TRAILER) * 2)


def test_lines_that_hold_more_than_the_histogram_are_a_fault(tmp_path: Path) -> None:
    sound = read(tmp_path, LINES.format(99, 4, 20) + HISTOGRAM + TRAILER)
    assert sound.faults == ()
    (fault,) = read(tmp_path, LINES.format(99, 4, 5_000) + HISTOGRAM + TRAILER).faults
    assert "a maximum of 5,000 us, and its histogram has none" in fault
    (fault,) = read(tmp_path, LINES.format(101, 4, 20) + HISTOGRAM + TRAILER).faults
    assert "counts 101 cycles, and its histogram 100" in fault


def test_a_file_of_two_tools_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="looks like the output of cyclictest and of stress-ng cyclic"):
        read(tmp_path, LINES.format(9, 4, 20) + output("stress-ng.txt"))


CYCLICTEST_JSON = {
    "file_version": 1,
    "cmdline:": "cyclictest -q -p 80 -i 1000 -D 10 -h 100 --json=x",
    "rt_test_version:": "2.40",
    "start_time": "Fri, 20 Nov 2026 23:20:21 +0000",
    "end_time": "Fri, 20 Nov 2026 23:20:31 +0000",
    "resolution_in_ns": 0,
    "thread": {"0": {"histogram": {"4": 10_000}, "cycles": 10_000, "min": 4, "max": 4, "avg": 4.0, "cpu": 0}},
}


def cyclictest_json(command: str, **thread: object) -> str:
    told = {**CYCLICTEST_JSON["thread"]["0"], **thread}  # type: ignore[index]
    return json.dumps({**CYCLICTEST_JSON, "cmdline:": command, "thread": {"0": told}})


@pytest.mark.parametrize(
    ("options", "priority", "period_us", "asked_s"),
    [
        ("-q -p 80 -i 200 -D 10", 80, 200, 10),
        ("-qp80 -i200 -D10s", 80, 200, 10),
        ("-mqSp 80 -mi 200 -D 1M", 80, 200, 60),
        ("--quiet --priority 80 --interval 200 --duration 1H", 80, 200, 3_600),
        ("--priority=80 --interval=200 --duration=1d", 80, 200, 86_400),
        ("-a 0-3 -t 1 -p 80 -i 200 -D 10", 80, 200, 10),
        ("-t -p 80 -a -i 200 -D 10", 80, 200, 10),
        ("-i 200 -D 10", 0, 200, 10),
        ("--policy=fifo -i 200 -D 10", None, 200, 10),
        ("--policy=other -i 200 -D 10", 0, 200, 10),
        ("-p 80 -D 10", 80, 1_000, 10),
    ],
)
def test_options_are_read_as_getopt_reads_them(
    options: str, priority: int | None, period_us: int, asked_s: int, tmp_path: Path
) -> None:
    found = read(tmp_path, cyclictest_json(f"cyclictest {options} --json x"))
    assert (found.priority, found.period_ns) == (priority, period_us * 1_000)
    assert found.asked_duration_ns == asked_s * 1_000_000_000
    assert any("without -p" in note for note in found.notes) is (priority == 0)


def test_more_cycles_than_fit_into_the_run_are_a_fault(tmp_path: Path) -> None:
    assert read(tmp_path, json.dumps(CYCLICTEST_JSON)).faults == ()
    many = cyclictest_json("cyclictest -p 80 -h 100", cycles=50_000, histogram={"4": 50_000})
    (fault,) = faults(read(tmp_path, many))
    assert fault.startswith("50,000 samples, 39,000 more than 11.0 s has room for")


def test_cycles_that_the_histogram_lacks_are_a_fault_if_they_are_many(tmp_path: Path) -> None:
    few = cyclictest_json("cyclictest -p 80 -i 100 -h 100", cycles=10_100)
    assert faults(read(tmp_path, few)) == ()
    many = cyclictest_json("cyclictest -p 80 -i 100 -h 100", cycles=90_000)
    (fault,) = faults(read(tmp_path, many))
    assert fault == "its bins hold 10,000 values, its count says 90,000"


def test_values_that_are_all_in_rtlas_first_bin_lie_in_it(tmp_path: Path) -> None:
    rows = output("rtla-timerlat-hist.txt").splitlines()
    first = [row for row in rows if not row.startswith(("10 ", "20 "))]
    found = read(tmp_path, "\n".join(row.replace("944       134", "1000      1000") for row in first) + "\n")
    assert found.histogram is not None
    assert (found.histogram.lo[0], found.histogram.hi[0] >= 29_000) == (0, True)
    assert not any("its histogram ends" in fault for fault in found.faults)


def test_tables_of_two_runs_of_rtla_top_are_refused(tmp_path: Path) -> None:
    later = output("rtla-timerlat-top.txt")
    with pytest.raises(UserError, match="of several runs"):
        read(tmp_path, later + later.replace("00:00:06", "00:00:02"))


def test_a_phase_of_rt_app_that_never_slept_is_in_no_bin(tmp_path: Path) -> None:
    head, *rows = output("rt-app.log").splitlines()
    columns = next(row for row in [head, *rows] if row.startswith("#idx")).removeprefix("#").split()
    last = rows[-1].split()
    late = [*last]
    late[columns.index("slack")], late[columns.index("wu_lat")] = "-250", "0"
    found = read(tmp_path, "\n".join([head, *rows, " ".join(late)]) + "\n")
    assert (found.count, found.overruns, found.min_ns) == (200, 1, 27_000)
    assert any(
        "the work of 1 of 201 phases ended after their period, the latest 250 us" in note for note in found.notes
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<rteval><cyclictest command_line='x'/></rteval>", "rteval left all of them away"),
        ("<rteval><timerlat/></rteval>", "adds up the values of interrupt, thread and user space"),
        ("<rteval><cyclictest/><cyclictest/></rteval>", "2 measurements"),
        ("<rteval><cyclictest>", "no whole XML document"),
        ("<rteval><cyclictest><core id='1'/></cyclictest></rteval>", "stands where a whole number belongs"),
        ("       0:       1:      40\n       0:       0:      40\n", "do not increase"),
        ("       0:       0:9999999999999999999\n", "lost its sign"),
        ("       0:       0:9000000000000000000\n", "outside of what a clock can show"),
        ("<rteval><!DOCTYPE a [<!ENTITY b 'c'>]></rteval>", "a type definition"),
    ],
)
def test_what_rteval_and_cyclictest_v_did_not_measure_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        read(tmp_path, text)


def test_a_table_of_pairs_is_no_file_of_xenomai(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1 1\n2 40\n7 3\n9 1\n")
    assert importers.recognised(tmp_path / "x") is None
    (tmp_path / "x").write_text("1 1\n1.5 41\n2.5 3\n3 1\n")
    found = importers.read(tmp_path / "x")
    assert (found.tool, found.count) == ("Xenomai latency", 42)
