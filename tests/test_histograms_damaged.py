# SPDX-License-Identifier: Apache-2.0
"""A file whose figures contradict each other is INVALID, whichever tool printed it; a sound one is not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from analysis_records import MS, SERIES, block, count, record, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from rtproof import importers
from rtproof.cli.main import main
from rtproof.compare.run_metrics import figures_of
from rtproof.core.errors import UserError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.record.contents import View
from rtproof.record.requirement import Requirement
from rtproof.summary.counts import Counts
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.summary_model import Severity

DATA = Path(__file__).parent / "data"
LIMIT = Requirement(1_000_000_000)
US = 1_000
MEAN_OFF = """# Histogram
000000 000000
000020 000000
000029 000000
# Total: 000000000
# Min Latencies: 00020
# Avg Latencies: 00029
# Max Latencies: 00060
# Histogram Overflows: 00003
"""


def sound_files() -> dict[str, str]:
    """The text of a sound file of each format."""
    with ZipFile(DATA / "tool_outputs.zip") as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    for path in (
        DATA / "cyclictest" / "histogram.txt",
        DATA / "cyclictest" / "result.json",
        DATA / "jitterdebugger.json",
    ):
        found[path.name] = path.read_text(encoding="utf-8")
    return {name: text for name, text in found.items() if state_of(text) is not None}


def state_of(text: str) -> State | None:
    """The verdict on a limit that is far above everything; None for a text that no importer reads."""
    try:
        found = importers.read_text(text)
    except UserError:
        return None
    return None if found is None else analyse_histogram(found, [LIMIT]).verdict.state


SOUND = sound_files()


@pytest.mark.parametrize("name", SOUND)
def test_the_figures_of_a_sound_file_do_not_contradict_each_other(name: str) -> None:
    assert state_of(SOUND[name]) is not State.INVALID


def impossible(imported: ImportedHistogram, told: PrintedFigures) -> bool:
    """Whether no values can have these figures, even if each figure is wrong by two steps of the last digit."""
    bins, room = told.histogram, 2 * max(imported.resolution_ns or 1, 1)
    low, mean, high = told.min_ns, told.mean_ns, told.max_ns
    if not told.count or low is None or mean is None or high is None or imported.unsure:
        return False
    if not low - room <= mean <= high + room:
        return True
    if bins is None or told.overflow is None:
        return False
    values = bins.n.astype(float)
    least = float(values @ bins.lo) + told.overflow * imported.scale_end_ns
    most = float(values @ bins.hi) + told.overflow * high
    number = bins.total + told.overflow
    return number > 0 and not least / number - room <= mean <= most / number + room


@settings(deadline=None, max_examples=300)
@given(name=st.sampled_from(sorted(SOUND)), data=st.data())
def test_a_damaged_file_is_refused_or_invalid_where_its_figures_contradict_each_other(
    name: str, data: st.DataObject
) -> None:
    """One or two of its numbers are others, as a cut column, a lost digit or an edit leaves them."""
    text = SOUND[name]
    for _ in range(data.draw(st.integers(1, 2))):
        number = data.draw(st.sampled_from(list(re.finditer(r"(?<![\w.])\d+(?![\w.])", text))))
        other = data.draw(st.sampled_from(["0", "1", "7", number[0][:-1], number[0] + "0", "29", "400", "123456"]))
        text = (
            text[: number.start()]
            + other.rjust(len(number[0]), "0" if number[0][0] == "0" else " ")
            + text[number.end() :]
        )
    try:
        found = importers.read_text(text)
    except UserError:
        return
    if found is not None and any(impossible(found, each) for each in found.parts or (found,)):
        assert analyse_histogram(found, [LIMIT]).verdict.state is State.INVALID, text


def test_a_histogram_without_a_value_in_its_bins_whose_mean_contradicts_them_is_invalid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All 3 values lie beyond 30 us, and the mean is said to be 29 us."""
    path = tmp_path / "histogram.txt"
    path.write_text(MEAN_OFF)
    assert main(["show", str(path), "--limit", "100us"]) == 3
    assert "INVALID" in capsys.readouterr().out
    assert main(["judge", str(path), "--limit", "100us"]) == 3
    assert main(["export", str(path), "csv"]) == 2
    sound = tmp_path / "sound.txt"
    sound.write_text(MEAN_OFF.replace("00020\n", "00031\n").replace("00029\n", "00041\n"))
    assert main(["show", str(sound), "--limit", "100us"]) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"mean_ns": 29 * US},
        {"mean_ns": 61 * US},
        {"min_ns": 31 * US, "mean_ns": None},
        {"min_ns": 40 * US},
        {"max_ns": 55 * US},
        {"max_ns": 59 * US},
        {"max_ns": 61 * US, "mean_ns": None},
        {"max_ns": 80 * US},
    ],
    ids=str,
)
def test_whoever_reads_a_contradicted_file_is_told(wrong: dict[str, Any]) -> None:
    """In a comparison the file is named as INVALID."""
    low = np.array([30, 60]) * US
    bins = Counts(low, low + US - 1, np.array([9, 1]))
    sound = ImportedHistogram(
        "tool", "", count=10, min_ns=30 * US, mean_ns=33 * US, max_ns=60 * US, histogram=bins, overflow=0
    )
    assert not figures_of(analyse_histogram(sound)).invalid
    said = analyse_histogram(replace(sound, **wrong))
    assert said.verdict.state is State.INVALID
    assert figures_of(said).invalid


@pytest.mark.parametrize("wrong", [0, -1_000 * 100_000, 1_000 * 100_000], ids=["sound", "less", "more"])
def test_a_record_whose_mean_contradicts_its_bins_is_invalid_too(wrong: int) -> None:
    values = [9_000] * 990 + [1_000_000] * 10
    counted = count(SERIES, [block(values)])
    one = slice_of(SERIES, View.OBSERVED, values, [at * MS for at in range(1_000)], counted)
    made = record(
        [], [replace(SERIES, has_samples=False)], slices=(structs.replace(one, sum=one.sum + wrong),), end=None
    )
    said = {doubt.code: doubt.severity for doubt in analyse(made, LIMIT, workers=1).doubts}
    assert (said.get("distribution") is Severity.INVALID) == (wrong != 0)


def test_the_error_of_a_sum_of_doubles_near_the_largest_number_is_no_contradiction() -> None:
    largest = (1 << 63) - 1
    values = [5_000] * 119 + [largest]
    counted = count(SERIES, [block(values)])
    one = slice_of(SERIES, View.OBSERVED, values, [at * MS for at in range(len(values))], counted)
    made = record([], [replace(SERIES, has_samples=False)], slices=(one,), end=None)
    assert "distribution" not in {doubt.code for doubt in analyse(made, LIMIT, workers=1).doubts}


# Figures that only the length of the run, or another figure of the file, contradicts.


def damaged(name: str, old: str, new: str) -> str:
    assert old in SOUND[name]
    return SOUND[name].replace(old, new, 1)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("oslat.txt", "8552 4061", "9000000 4061"),  # one value of 9 s in 2 s
        ("oslat.txt", " 270 456", " 270000000 456"),  # values of 270 s together in 2 s
        ("signaltest.json", '"cycles": 20', '"cycles": 0'),  # no value, and a maximum
        ("rtla-timerlat-top.txt", "#6017", "#0"),
    ],
    ids=["longer than the run", "together longer than the run", "of no value", "of no activation"],
)
def test_a_figure_that_the_length_or_the_count_contradicts_makes_a_file_invalid(name: str, old: str, new: str) -> None:
    assert state_of(SOUND[name]) is State.HELD
    assert state_of(damaged(name, old, new)) is State.INVALID


def test_one_of_the_values_beyond_the_bins_is_the_maximum() -> None:
    """The ends alone allow a mean of 9,035 us, and so do the bins alone. Both together do not."""
    low = np.array([30, 60]) * US
    bins = Counts(low, low + US - 1, np.array([1, 8]))
    sound = ImportedHistogram(
        *("tool", ""),
        count=10,
        min_ns=30 * US,
        mean_ns=9_051 * US,
        max_ns=90_000 * US,
        histogram=bins,
        overflow=1,
        scale_ns=100 * US,
    )
    assert analyse_histogram(sound, [LIMIT]).verdict.state is not State.INVALID
    less = analyse_histogram(replace(sound, mean_ns=9_035 * US), [LIMIT])
    assert less.verdict.state is State.INVALID
    assert "the least that its other figures allow" in next(each.detail for each in less.doubts)


TWO_THREADS = """# Histogram
000010 000003 000001 000004
000011 000001 000003 000004
# Min Latencies: 00010 00010
# Avg Latencies: 00010 00010
# Max Latencies: 00011 00060 00060
# Histogram Overflows: 00000 00001 00001
"""
OF_LINE = "T: 0 ( 7) P:80 I:1000 C:      3 Min:     10 Act:   10 Avg:   10 Max:      11\n"


def test_the_sum_of_all_threads_is_that_of_each() -> None:
    """Option -H of cyclictest."""
    sound = TWO_THREADS.replace("Avg Latencies: 00010 00010", "Avg Latencies: 00010 00020")
    assert state_of(sound) is State.HELD
    for old, new in (("00060 00060", "00060 00061"), ("00001 00001\n", "00001 00002\n")):
        assert old in sound
        assert state_of(sound.replace(old, new)) is State.INVALID


def test_a_line_with_a_smaller_minimum_than_the_histogram_is_a_contradiction() -> None:
    one = "# Histogram\n000010 000003\n000011 000001\n# Min Latencies: 00010\n# Avg Latencies: 00010\n"
    one += "# Max Latencies: 00011\n# Histogram Overflows: 00000\n"
    assert state_of(OF_LINE + one) is State.HELD
    assert state_of(OF_LINE.replace("Min:     10", "Min:      3") + one) is State.INVALID


def test_figures_behind_two_histograms_are_of_two_runs() -> None:
    """The second maximum would have hidden the first."""
    first = "# Min Latencies: 00010\n# Avg Latencies: 00020\n# Max Latencies: 99999\n"
    with pytest.raises(UserError, match="2 measurements"):
        importers.read_text(first + TWO_THREADS)


@pytest.mark.parametrize("name", ["result.json", "oslat.json", "pmqtest.json", "cyclicdeadline.json"])
def test_a_file_that_lacks_a_thread_is_invalid(name: str) -> None:
    assert state_of(re.sub(r'"num_threads": \d+', '"num_threads": 9', SOUND[name])) is State.INVALID


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("hwlatdetect.txt", "Max Latency: 173us", "Max Latency: 17us"),  # a sample took 173 us
        ("hwlatdetect.txt", "Max Latency: 173us", "Max Latency: 5us"),  # 2 samples exceeded 10 us
        ("latmus.txt", "max latency: 21.106", "max latency: 3.106"),  # 10,000 values in the bin of 5 us
        ("xenomai-3.txt", "130.000\nRTD", "230.000\nRTD"),  # the worst so far, and 130 us at the end
        ("xenomai-2.5.txt", "|       3|    00", "|       0|    00"),  # overruns
    ],
    ids=["a sample", "the threshold", "a bin", "the worst so far", "overruns so far"],
)
def test_what_a_tool_tells_of_its_course_is_within_what_it_tells_at_its_end(name: str, old: str, new: str) -> None:
    assert state_of(SOUND[name]) is not State.INVALID
    assert state_of(damaged(name, old, new)) is State.INVALID


RTLA_ONE_BIN = """# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:02
Index   IRQ-000   Thr-000
0           100        {0}
{1}over:         0         1
count:      100       100
min:          0         1
avg:          0         6
max:          4       301
"""


@pytest.mark.parametrize(
    ("first", "more"), [(99, ""), (50, "250         0        49\n"), (49, "100         0        50\n")], ids=str
)
def test_rtlas_scale_ends_before_the_values_beyond_it(first: int, more: str) -> None:
    """The rows do not tell how wide a bin is. If only one is filled, it seemed to reach the largest value."""
    mean = "6" if not more else "129" if more.startswith("250") else "55"
    text = RTLA_ONE_BIN.format(first, more).replace("         6\n", f"{mean:>10}\n", 1)
    assert state_of(text) is State.HELD
    assert analyse_histogram(importers.read_text(text), [Requirement(300_000)]).verdict.state is State.EXCEEDED  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max:          4        23        29 ", "max:          4        33        29 "),
        ("min:          0         3         4 ", "min:          5         3         4 "),
        ("count:     1999      1999      1999", "count:     1999      1999      2999"),
        ("max:          4        23        29\n", "max:          4        23        99\n"),
    ],
    ids=["a later place", "a later place's minimum", "the count of all CPUs", "the maximum of all CPUs"],
)
def test_rtlas_places_and_its_last_rows_do_not_contradict_each_other(old: str, new: str) -> None:
    assert state_of(damaged("rtla-timerlat-hist.txt", old, new)) is State.INVALID


def test_a_larger_latency_in_an_earlier_place_is_in_no_value() -> None:
    """It stopped between interrupt and thread: the latency of the thread was longer than 99 us, and is not told."""
    text = damaged("rtla-timerlat-top.txt", "0         0         0         9 |", "0         0         0        99 |")
    said = analyse_histogram(importers.read_text(text), [Requirement(80_000)])  # type: ignore[arg-type]
    assert said.verdict.state is State.UNDECIDED
    assert "larger-elsewhere" in [doubt.code for doubt in said.doubts]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("stress-ng.txt", "max: 1389802", "max: 138980"),
        ("stress-ng.txt", "75.00%:      32146", "75.00%:      22146"),
        ("rteval.xml", '<maximum unit="us">1476', '<maximum unit="us">14760'),
        ("rteval.xml", "<samples>6000", "<samples>600"),
        ("rtla-osnoise-top.txt", "15020", "20020"),
    ],
    ids=["percentile", "percentiles", "maximum of the system", "samples of the system", "longest noise"],
)
def test_figures_that_are_parts_of_others_are_not_larger(name: str, old: str, new: str) -> None:
    assert state_of(SOUND[name]) is State.HELD
    assert state_of(damaged(name, old, new)) is State.INVALID


def test_one_value_has_one_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its mean seemed to have to lie between 18 us and 4 us."""
    path = tmp_path / "lines.txt"
    path.write_text(OF_LINE.replace("C:      3", "C:      1").replace("Max:      11", "Max:      40"))
    assert main(["judge", str(path), "--limit", "1s"]) == 3
    assert "its only value has a minimum of 10 us and a maximum of 40 us" in " ".join(capsys.readouterr().out.split())
