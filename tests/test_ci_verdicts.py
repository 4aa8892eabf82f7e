# SPDX-License-Identifier: Apache-2.0

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from analysis_records import BEGIN, MS, SERIES
from msgspec import structs
from run_folders import INFO, latencies, write_run

from rtproof.cli.main import main
from rtproof.judge.analysis_model import State, Verdict
from rtproof.record.contents import End, EndReason
from rtproof.record.requirement import NO_LONGEST, Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.report.pages.ci_verdicts import (
    RunRow,
    ci_junit,
    ci_markdown,
    worst_exit_code,
    worst_row,
)
from rtproof.summary.summary_model import Doubt, Severity

DATA = Path(__file__).parent / "data" / "cyclictest"
SECOND, HOUR = 10**9, 3_600 * 10**9


def run(folder: Path, *limits: tuple[int, int]) -> Path:
    """Ten seconds without an episode above 1 ms, and without a pause above 1 us; limits and times fixed before it."""
    asked = tuple(Requirement(limit, ns, gap_ns=60 * SECOND, longest_ns=NO_LONGEST) for limit, ns in limits)
    return write_run(folder, latencies(1, 10_000), info=msgspec.structs.replace(INFO, requirements=asked))


def proven(folder: Path) -> Path:
    return run(folder, (MS, SECOND))


def refuted(folder: Path) -> Path:
    return run(folder, (1_000, HOUR))


def undecided(folder: Path) -> Path:
    return run(folder, (MS, HOUR))


def invalid(folder: Path) -> Path:
    """The agent counted more than the record holds."""
    proven(folder)
    place = folder / "run.rtrec"
    place.unlink()
    with RecordWriter(str(place)) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES)
        feed.add(latencies(1, 10_000))
        totals = structs.replace(feed.finish(), obtained=20_000)
        writer.end(End(20_000 * MS, EndReason.AS_ASKED, "", (totals,)))
    return folder


def unreadable(folder: Path) -> Path:
    folder.mkdir()
    (folder / "run.rtrec").write_bytes(b"no record")
    return folder


KINDS = {"proven": proven, "refuted": refuted, "undecided": undecided, "invalid": invalid, "unreadable": unreadable}


def judge(*words: object) -> int:
    return main(["judge", *map(str, words)])


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ("proven", 0),
        ("undecided", 4),
        ("refuted", 1),
        ("invalid", 3),
        ("unreadable", 2),
        ("proven undecided", 4),
        ("undecided refuted proven", 1),
        ("refuted invalid", 3),
        ("invalid unreadable proven", 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst_run(
    tmp_path: Path, kinds: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in kinds.split():
        KINDS[kind](tmp_path / kind)
    assert judge(tmp_path) == code
    out = capsys.readouterr().out
    assert all(kind.upper() in out for kind in kinds.split() if kind != "unreadable")


def test_a_limit_given_now_decides_nothing_unless_the_user_states_that_it_was_fixed(tmp_path: Path) -> None:
    place = run(tmp_path / "a")
    limit = ("--limit", "1ms", "--at-most", "1/s")
    assert judge(place, *limit) == 4
    assert judge(place, *limit, "--fixed-beforehand") == 0


def test_limits_stated_now_share_the_error_with_those_fixed_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 95 % 3.48 s prove once per second, at 97.5 % 4.15 s; ten seconds are 10, 3.8 s per 2.6 s are not enough."""
    place = run(tmp_path / "a", (2 * MS, SECOND))
    alone = write_run(tmp_path / "b", latencies(1, 10_000))
    asked = ("--limit", "1ms", "--at-most", "1/2600ms", "--fixed-beforehand")
    assert judge(alone, *asked) == 0
    assert judge(place, *asked) == 4
    assert "97.5 %" in capsys.readouterr().out


def test_histograms_are_judged_beside_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proven(tmp_path / "a")
    (tmp_path / "hist.txt").write_text((DATA / "histogram.txt").read_text())
    assert judge(tmp_path, "--limit", "1ms", "--at-most", "1/s", "--markdown", "-") == 4
    assert "of 200 samples above 1 ms" in capsys.readouterr().out
    stall = ("--limit", "1ms", "--at-most", "1/h", "--fixed-beforehand")
    assert judge(DATA / "stall.json", *stall) == 1
    assert judge(DATA / "stall.json", *stall[:4]) == 4
    assert judge(DATA / "stall.json", *stall[:2]) == 1, "a limit that is never to be exceeded may come later"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none",), "does not exist"),
        ((".",), "no run in the folder"),
        (("run", "--fixed-beforehand"), "--limit"),
        (("run", "--at-most", "1/h"), "--limit"),
        (("run",), "no limit to judge by"),
        ((), "RUN"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str], words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if "run" in words:
        run(tmp_path / "run")
    assert says in refused("judge", *words)


BAD = {
    "no record": ("bad.rtrec", b"no record"),
    "begins as a record": ("bad.rtrec", b"RTP\x1a\x00\x00\x00\x00" * 100),
    "cut off": ("bad.txt", b"# Histogram\n000001 000002\n000002 000003 000004\n"),
    "cut off JSON": ("bad.json", (DATA / "result.json").read_bytes()[:900]),
    "too large": ("bad.txt", b"# Histogram\n" + b"000001 000002\n" * 100),
}


def states_in_rows(shown: str) -> list[str]:
    """The verdict of each row of the table for a terminal."""
    words = [line.split() for line in shown.splitlines()]
    return [each[1] for each in words if len(each) > 1 and each[1] in {state.value for state in State}]


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_file_among_ten_is_an_error_and_the_others_are_judged(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "too large":
        monkeypatch.setattr("rtproof.importers.LARGEST_BYTES", 1_000)
    for number in range(9):
        proven(tmp_path / "runs" / f"{number}")
    name, content = BAD[kind]
    bad = tmp_path / "runs" / name
    bad.write_bytes(content)
    xml, page = tmp_path / "out.xml", tmp_path / "out.md"
    assert judge(tmp_path / "runs", "--junit", xml, "--markdown", page) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("rtproof: ERROR, 1 of 10 runs could not be read")
    assert states_in_rows(out).count("PROVEN") == 9
    assert page.read_text().count(" | PROVEN | ") == 9
    (row,) = (line for line in page.read_text().splitlines() if line.startswith("|") and "ERROR" in line)
    assert name in row
    suite = ET.parse(xml).getroot()[0]
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("10", "1", "0")
    (case,) = (case for case in suite if case.find("error") is not None)
    assert case.get("classname") == str(bad)


def test_a_defect_in_one_run_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rtproof.judge import analyse

    real = analyse.analyse

    def fails_on_the_third(record: Any, *more: Any, **named: Any) -> Any:
        if "2" in Path(record.path).parent.name:
            raise MemoryError
        return real(record, *more, **named)

    for number in range(4):
        proven(tmp_path / f"{number}")
    monkeypatch.setattr("rtproof.experiment.stored_runs.analyse", fails_on_the_third)
    assert judge(tmp_path) == 2
    out = capsys.readouterr().out
    assert states_in_rows(out).count("PROVEN") == 3
    assert f"ERROR: {tmp_path / '2'}: there is too little memory" in " ".join(out.split())


def test_a_folder_that_cannot_be_looked_into_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proven(tmp_path / "a")
    closed = tmp_path / "closed"
    closed.mkdir()
    look = os.scandir

    def refuse(path: str) -> Any:
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr("os.scandir", refuse)
    assert judge(tmp_path) == 2
    assert f"ERROR: {closed}" in capsys.readouterr().out


HOSTILE = 'a|b <img src=x> ]]> & "q" \x1b[31m\x00\u202e `c` *d*'


def judged(state: State, limit_ns: int = MS) -> Verdict:
    sentences = (("VERDICT", state.value), ("MAX", "3 us"))
    return Verdict(state, Requirement(limit_ns, HOUR), (f"because {state.value}",), sentences, (), 10**10, 0, 0)


def row(name: str, *states: State) -> RunRow:
    return RunRow(name, tuple(map(judged, states)), (Doubt("a", Severity.WARNING, "a doubt", ""),))


ROWS = [
    row("good", State.PROVEN),
    row("bad", State.REFUTED, State.UNDECIDED),
    row("wrong", State.INVALID),
    row("short", State.UNDECIDED),
    row("open", State.NOT_ASKED),
    RunRow("torn", failure="torn is not a record"),
]


def test_the_worst_decides() -> None:
    assert (worst_exit_code(ROWS), worst_row(ROWS)) == (2, "ERROR, 1 of 6 runs could not be read")
    assert (worst_exit_code(ROWS[:5]), worst_row(ROWS[:5])) == (3, "INVALID")
    assert (worst_exit_code([]), worst_exit_code(ROWS[:1])) == (0, 0)
    assert (worst_row([]), worst_row(ROWS[:1]), worst_row([ROWS[4]])) == ("MEASURED", "PROVEN", "MEASURED")


def test_junit_is_read_by_others() -> None:
    junitparser = pytest.importorskip("junitparser")
    found = junitparser.JUnitXml.fromstring(ci_junit(ROWS))
    assert (found.tests, found.failures, found.errors, found.skipped) == (7, 1, 2, 3)
    (suite,) = found
    cases = {case.classname: case for case in suite}
    good = cases["good"]
    assert good.is_passed
    assert (good.time, good.name.startswith("1 ms, at most once per 1 h")) == (10.0, True)
    (failure,) = next(case for case in suite if case.classname == "bad").result
    assert isinstance(failure, junitparser.Failure)
    assert (failure.message, failure.type) == ("REFUTED: because REFUTED", "REFUTED")
    assert isinstance(cases["wrong"].result[0], junitparser.Error)
    assert cases["torn"].result[0].message == "ERROR: torn is not a record"
    assert isinstance(cases["short"].result[0], junitparser.Skipped)
    assert cases["short"].result[0].message.startswith("UNDECIDED: because UNDECIDED")
    assert "MAX 3 us" in good.system_out


def test_nothing_from_a_run_breaks_out_of_the_document() -> None:
    junitparser = pytest.importorskip("junitparser")
    hostile = Verdict(State.REFUTED, Requirement(MS, HOUR), (HOSTILE,), (("VERDICT", HOSTILE),), (), 1, 0, 0)
    made = RunRow(HOSTILE, (hostile,), (Doubt("a", Severity.WARNING, HOSTILE, ""),))
    (suite,) = junitparser.JUnitXml.fromstring(ci_junit([made]))
    (case,) = suite
    assert "<img src=x>" in case.classname
    assert "\x00" not in case.classname
    shown = ci_markdown([made], HOSTILE).decode()
    assert "<img" not in shown.replace("\\<img", "")
    line = next(line for line in shown.splitlines() if "REFUTED |" in line)
    assert line.replace("\\|", "").count("|") == 6
