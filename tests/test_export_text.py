# SPDX-License-Identifier: Apache-2.0
"""The exporters trace-txt and trace-dat; that trace-cmd reads traces of today is shown in test_agent_trace.py."""

import csv
import gzip
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import fact
from app_cases import TABLE, app_record
from explain_cases import begun, traced_run
from export_cases import limited_record, small_analysis
from stage_records import VIRTUAL, staged
from trace_cases import FILES, events_of_text, report_of_trace_cmd, trace_cmd, traced

from rtproof import exporters, importers
from rtproof.cli.main import main
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.exporters import app_csv, bins, trace_dat
from rtproof.importers import _trace_dat
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Fact, Record
from rtproof.record.reading import open_record
from rtproof.record.run_folder import open_run
from rtproof.summary import kernel_trace, recorded_facts
from rtproof.summary.kernel_trace import page_layout, print_addresses


@pytest.mark.parametrize("endian", ["little", "big"])
def test_the_trace_that_is_read_back_has_the_same_parts(tmp_path: Path, endian: str) -> None:
    about = FILES["about"].replace("little", endian)
    trace_dat.export(analyse(traced(about=about)), tmp_path / "a", {})
    found = _trace_dat.read(tmp_path / "a")
    assert (found.big, found.missing) == (endian == "big", ())
    written = {name: text.encode("latin-1") for name, text in FILES.items() if name != "about"}
    for cpu in ("cpu0", "cpu1"):  # trace-cmd counts as entries those left in the kernel
        written[f"{cpu}/stats"] = re.sub(rb"entries: \d", b"entries: 0", written[f"{cpu}/stats"])
    assert found.files == written | {"kallsyms": b"", "trace_clock": b"[mono]\n"}


@pytest.fixture
def arm(tmp_path: Path) -> Record:
    """Of a 32-bit ARM under Linux 6.1 PREEMPT_RT: 40 loops of the application with marks, in a buffer of 8 KiB."""
    whole = Path(__file__).parent / "data" / "trace" / "armhf.rtrec.gz"
    (tmp_path / "record").write_bytes(gzip.decompress(whole.read_bytes()))
    return open_record(tmp_path / "record")


def test_a_trace_of_a_32_bit_kernel_is_read_event_by_event(arm: Record, tmp_path: Path) -> None:
    said = trace_dat.export(analyse(arm), tmp_path / "trace.dat", {})
    text = kernel_trace.trace_text(arm, "text")
    events = events_of_text(text)
    assert said.endswith(f": {len(events)} events on 3 pages of 4096 bytes from 1 CPU")
    assert page_layout(arm).commit_size == 4
    assert print_addresses(arm) == {0xC0473AD4: "tracing_mark_write"}
    assert sum(int(kernel_trace.trace_statistics(arm, cpu)["entries"]) for cpu in kernel_trace.trace_cpus(arm)) == len(
        events
    )


def test_trace_cmd_finds_the_same_in_it(arm: Record, tmp_path: Path) -> None:
    trace_dat.export(analyse(arm), tmp_path / "trace.dat", {})
    assert report_of_trace_cmd(tmp_path / "trace.dat") == events_of_text(kernel_trace.trace_text(arm, "text"))
    assert "print:                tracing_mark_write: work 1" in trace_cmd("report", str(tmp_path / "trace.dat"))


def test_pages_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lost a part of its trace"):
        trace_dat.export(analyse(traced(**{"cpu0/raw": "a" * 100})), tmp_path / "a", {})
    whole = "field: local_t commit; offset:8; size:8;\nfield: char data; offset:16; size:4080;"
    for page in (
        "nothing",
        whole.replace("16; size:4080", "0; size:0"),
        whole.replace("8;\n", "900;\n"),
        f"{whole[:-5]}{9**20};",
    ):
        with pytest.raises(UserError, match="lacks the layout"):
            trace_dat.export(analyse(traced(header_page=page)), tmp_path / "a", {})
    assert list(tmp_path.iterdir()) == []


def lines(path: Path, comment: str = "words") -> list[str]:
    app_csv.export(analyse(app_record(TABLE, TABLE[:3], comment=comment)), path, {})
    return path.read_text().splitlines()


def test_statistics_are_those_of_the_rows_of_all_threads(tmp_path: Path) -> None:
    made = lines(tmp_path / "a.csv")
    empty = made.index("")
    rows = list(csv.DictReader(made[1:empty]))
    told = {row[0]: row[1:] for row in csv.reader(made[empty + 1 :])}
    assert [row["thread"] for row in rows] == ["0"] * 5 + ["1"] * 3
    for at, column in enumerate(("work_duration_us", "loop_time_us", "top_error_us")):
        values = [float(row[column]) for row in rows if row[column]]
        numbers = [min(values), max(values), statistics.mean(values), statistics.stdev(values), len(values)]
        names = ("minimum", "maximum", "average", "standard_deviation", "count")
        assert [float(told[name][at]) for name in names] == pytest.approx(numbers, abs=0.0006)
    total = sum(float(row["loop_time_us"]) for row in rows if row["loop_time_us"])
    assert float(told["sum_of_loop_times_us"][0]) == pytest.approx(total)
    assert told["loops_without_sleep"] == [str([row["slept"] for row in rows].count("0"))]


@pytest.mark.parametrize(
    ("comment", "first"),
    [
        ('a "b"', '"a ""b"""'),
        ("=1+1", '" =1+1"'),
        ("@cell", '" @cell"'),
        ("one\ntwo\x1b[0m", '"one two [0m"'),
        ("grün", '"gr\\xfcn"'),
        ("", '"rtproof on x86_64 6.1.0-rt"'),
    ],
)
def test_a_comment_is_one_harmless_cell(tmp_path: Path, comment: str, first: str) -> None:
    assert lines(tmp_path / "a.csv", comment)[0] == first


def test_a_loop_behind_a_hole_has_no_time(tmp_path: Path) -> None:
    app_csv.export(analyse(app_record(TABLE, gaps={1: 2})), tmp_path / "a.csv", {})
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()[1:7]))
    assert [(row["loop"], row["loop_time_us"] != "") for row in rows] == [
        *(("0", True), ("1", False), ("4", True), ("5", True), ("6", False))
    ]


def rows(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()]


def test_what_lies_off_the_scale_has_its_own_rows(tmp_path: Path) -> None:
    sentence = bins.export(small_analysis(), tmp_path / "a", {"width": "1us", "count": "2"})
    assert rows(tmp_path / "a") == [
        ["from_ns", "to_ns", "thread0", "thread1"],
        ["", "0", "1", "0"],
        ["0", "1000", "1", "3"],
        ["1000", "2000", "1", "0"],
        ["2000", "", "3", "0"],
    ]
    assert sentence.endswith("2 bins of 1us, observed view")


def test_the_schedule_view_has_the_missed_ones(tmp_path: Path) -> None:
    bins.export(small_analysis(), tmp_path / "a", {"width": "1s", "count": "1", "start": "-1s", "view": "schedule"})
    assert [row[2:] for row in rows(tmp_path / "a")[1:]] == [["0", "0"], ["1", "0"], ["9", "3"]]


def test_one_field_of_several(tmp_path: Path) -> None:
    several = analyse(staged({"irq": [1_000, 2_500], "task": [7_000, 9_000]}))
    sentence = bins.export(several, tmp_path / "a", {"width": "1us", "count": "2", "field": "task"})
    assert rows(tmp_path / "a")[0] == ["from_ns", "to_ns", "thread0.task"]
    assert "2 bins" in sentence
    with pytest.raises(UserError, match="field=moon is none of: irq, task"):
        bins.export(several, tmp_path / "b", {"field": "moon"})


@pytest.mark.parametrize(
    "options",
    [
        {"width": "0us"},
        {"width": "2"},
        {"count": "0"},
        {"count": "many"},
        {"start": "5"},
        {"width": "1000d", "count": "10000000"},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(UserError):
        bins.export(small_analysis(), tmp_path / "a", options)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_kept_a_summary_lists_all_that_was_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    process = ["--target", "simulated", "--target-option", "episodes=1/min", "--threads", "2"]
    asked = ["--limit", "100us", "--duration", "1h", "--record", "summary", "--output", "r", "--no-report"]
    assert main(["run", *process, *asked]) in (0, 1, 4)
    assert main(["export", "r", "--format", "exceedances", "--output", "list.csv"]) == 0
    mark, _, *rows = Path("list.csv").read_text().splitlines()
    assert mark.startswith("# ")
    record = open_run("r").record
    assert len(rows) == sum(int(record.levels[series.id][0].ran.sum()) for series in record.series) > 20
    for row in rows:
        limit_ns, thread, _, activation, due_ns, latency_ns = map(int, row.split(","))
        series = record.series[thread]
        assert due_ns == series.first_due_ns + activation * series.period_ns
        assert latency_ns > limit_ns == 100_000


# Files of figures that are no time on any machine say so themselves, whatever becomes of the sentence beside them.


PLAYED = fact("simulated", "poisson,seed=1")
WORDS = {VIRTUAL: recorded_facts.VIRTUAL_TIME_SENTENCE, PLAYED: recorded_facts.SIMULATED_SENTENCE}
FORMATS = [module for module in plugins.load_plugins(exporters) if "trace" not in module.SUFFIX]


def record_for(suffix: str) -> Record:
    if "perfetto" in suffix:
        return traced_run([310_000], begun().timer(300_000).to_victim(308_000))
    return app_record(TABLE, comment="words") if "app" in suffix else limited_record()


@pytest.mark.parametrize("marked", [(), (VIRTUAL,), (PLAYED,), (VIRTUAL, PLAYED)])
@pytest.mark.parametrize("suffix", [module.SUFFIX for module in FORMATS])
def test_what_is_no_time_is_said_in_the_file_and_beside_it(
    tmp_path: Path, suffix: str, marked: tuple[Fact, ...]
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("duckdb")
    (module,) = (each for each in FORMATS if suffix == each.SUFFIX)
    made = record_for(suffix)
    path = tmp_path / f"a{suffix}"
    sentence = module.export(analyse(replace(made, facts=(*made.facts, *marked))), path, {})
    content = path.read_bytes()
    for kind, words in WORDS.items():
        assert (words.encode() in content) == (words in sentence) == (kind in marked)


FOREIGN = Path(__file__).parent / "golden_outputs" / "inputs" / "public"


@pytest.mark.parametrize("name", ["cyclictest", "cyclictest-json"])
def test_another_tools_histogram_is_the_same_when_read_again(name: str, tmp_path: Path) -> None:
    source = FOREIGN / "cyclictest-h60-indented.txt"
    assert main(["export", str(source), "--format", name, "-o", str(tmp_path / "out")]) == 0
    first, again = importers.read(source), importers.read(tmp_path / "out")
    assert (again.count, again.overflow, again.faults) == (first.count, 604, ())
    assert (again.min_ns, again.max_ns) == (first.min_ns, first.max_ns)
    assert first.histogram is not None
    assert again.histogram is not None
    assert first.histogram.n.tolist() == again.histogram.n.tolist()


def test_values_beyond_another_tools_scale_are_in_no_bin(tmp_path: Path, refused: Callable[..., str]) -> None:
    source, out = FOREIGN / "cyclictest-h60-indented.txt", tmp_path / "out"
    assert main(["export", str(source), "--format", "bins", "-o", str(out)]) == 0
    below, *inside, above = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert (below[2], above, len(inside)) == ("0", ["60000", "", "604"], 30)
    assert sum(int(row[2]) for row in inside) == 2_998_821
    export = ("export", source, "-o", tmp_path / "more", "--format")
    assert "604 values beyond it lie: give count=30" in refused(*export, "bins", "--option", "count=31")
    assert "nothing tells where 604 values" in refused(*export, "hdr")


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("csv", "cyclictest-h60-indented.txt", "the format csv needs more: give bins"),
        ("bins", "cyclictest-lines-rt.txt", "there is nothing to export"),
        ("bins", "cyclictest-osadl-histogram.txt", "does not tell which values lie beyond"),
        ("bins", "cyclictest-contradiction.txt", "contradicts itself"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(
    name: str, file: str, words: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    assert words in refused("export", FOREIGN / file, "--format", name, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
