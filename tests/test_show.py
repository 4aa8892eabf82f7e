# SPDX-License-Identifier: Apache-2.0
"""``rtproof show``: one screen, the sections that are named, or all of them."""

import gzip
import shutil
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from run_folders import latencies, write_run

from rtproof.cli.main import main
from rtproof.experiment.stored_runs import read_histogram_file
from rtproof.judge.analysis_model import State, Verdict
from rtproof.record.requirement import Requirement
from rtproof.report.pages.ci_verdicts import RunRow
from rtproof.report.pages.first_screen import MOST_LINES as SUMMARY_LINES
from rtproof.report.pages.several_summary import SeveralRuns, several_text
from rtproof.report.section_list import SECTIONS
from rtproof.summary.summary_model import Doubt, Severity

MOST_LINES, WIDTH = 40, 80
CAMPAIGN = Path(__file__).parent / "golden_outputs" / "inputs" / "campaign"
CYCLICTEST = Path(__file__).parent / "data" / "cyclictest" / "histogram.txt"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_run(Path("a"), latencies(1, 4_000))
    return "a"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", *words]) == 0
    printed: str = capsys.readouterr().out
    return printed


def listed_sections(screen: str) -> list[str]:
    """The names in the list at the end of a screen."""
    listed = screen.partition("\nsections")[2].splitlines()[:-1]
    return " ".join(listed).replace(",", " ").split()


def test_it_fits_on_one_screen_and_names_every_section(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.html").touch()
    lines = shown(capsys, run).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    assert "page      a.html" in lines
    whole = shown(capsys, run, "--all").splitlines()
    titles = {one.name: one.title for one in SECTIONS}
    names = listed_sections("\n".join(lines))
    assert "percentiles" in names
    assert sorted(names) == sorted(name for name, title in titles.items() if title in whole)


def test_a_section_is_printed_as_it_is_in_the_whole_text(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = shown(capsys, run, "--all")
    for name in listed_sections(shown(capsys, run)):
        part = shown(capsys, run, "--section", name)
        assert part.partition("\n\n")[2].strip() in whole


def test_no_row_of_a_table_is_left_out(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    ranks = [line.split()[0] for line in shown(capsys, run, "--section", "outliers").splitlines() if line[:4].strip()]
    assert [rank for rank in ranks if rank.isdigit()] == [str(rank) for rank in range(1, 121)]


def test_several_sections_and_one_that_the_run_lacks(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, run, "--section", "histogram", "--section", "stages", "--section", "doubts").splitlines()
    assert [line for line in lines if line in {"Doubts", "Histogram", "Verdict"}] == ["Doubts", "Histogram"]
    assert lines[-1] == "This run has no section stages."


def test_a_series_is_one_screen_with_the_worst_run_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(20):
        write_run(Path("a/runs") / f"{number:02}", latencies(number, 400))
    Path("a/report.html").touch()
    for folder, limit, code, state in (("a", "1ns", 1, "EXCEEDED"), ("a/runs", "10s", 4, "UNDECIDED")):
        assert main(["show", folder, "--limit", limit]) == code
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= SUMMARY_LINES
        assert max(map(len, lines)) <= WIDTH
        assert lines[0].startswith(f"{state} ")
        assert "20 of 20 runs. " in lines[0]
        assert "page      a/report.html" in lines
        assert f"more      rtproof judge {folder} --limit {limit}" in lines
        begin = lines.index("") + 2
        end = next(at for at, line in enumerate(lines) if line.startswith("and "))
        assert lines[end] == f"and {20 - (end - begin)} more runs, none worse"
        largest = [float(line.split()[-1].replace(",", "")) for line in lines[begin:end]]
        assert largest == sorted(largest, reverse=True)


def test_a_run_of_a_series_that_cannot_be_read_is_said_and_comes_first(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runs").mkdir()
    Path(run).rename("runs/a")
    write_run(Path("runs/b"), latencies(1, 400))
    Path("runs/b/run.rtrec").write_bytes(b"nothing")
    assert main(["show", "runs"]) == 2
    screen = capsys.readouterr().out
    assert screen.startswith("ERROR     1 of 2 runs has no result. MEASURED 1 of 2 runs. a: ")
    assert screen.split("\n\n")[1].splitlines()[1].split() == ["b", "ERROR", "no", "result"]
    assert "doubts    runs/b" in screen


def test_a_run_without_its_record_is_no_run_that_passed(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        write_run(Path("runs") / str(number), latencies(number, 4_000))
    Path("runs/1/run.rtrec").unlink()
    for command in ("show", "judge"):
        assert main([command, "runs", "--limit", "1s"]) == 2
        assert "runs/1 is a run without its record: it has no run.rtrec" in capsys.readouterr().out


def test_the_limit_that_an_invalid_run_exceeded_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    invalid = str(CAMPAIGN.with_name("plain-invalid"))
    assert main(["show", invalid, "--limit", "500us", "--limit", "5us"]) == 3
    screen = capsys.readouterr().out
    assert screen.index("above 5 us") < screen.index("500 us was not exceeded")


def test_a_largest_latency_without_its_activation_is_told_without_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record may hold a largest value in its summary alone."""
    bare = str(tmp_path / "bare.rtrec")
    Path(bare).write_bytes(gzip.decompress(CAMPAIGN.with_name("summary-only.rtrec.gz").read_bytes()))
    assert "The largest latency was 75 us; n = 3" in shown(capsys, bare)
    assert main(["show", bare, "--limit", "50us"]) == 1
    assert "the largest was 75 us.\n" in capsys.readouterr().out


def judged(name: str, state: State, reason: str, *cells: str, doubts: tuple[Doubt, ...] = ()) -> RunRow:
    asked = None if state is State.NOT_ASKED else Requirement(1)
    return RunRow(name, (Verdict(state, asked, (reason,), (), (), None, None, None),), doubts, cells=cells)


def doubted(name: str, *doubts: Doubt, state: State = State.NOT_ASKED) -> RunRow:
    return judged(name, state, "something was measured", "1", *["-"] * 5, doubts=doubts)


def lines_of(runs: SeveralRuns, width: int = WIDTH) -> list[str]:
    return several_text(runs, [("more", "rtproof history a")], width).splitlines()


def test_a_doubt_of_several_runs_is_said_once_with_how_many_have_it() -> None:
    common = Doubt("simulated", Severity.WARNING, "simulated", "measure a machine")
    parts = [Doubt("damage", Severity.WARNING, f"{number} parts are damaged", "") for number in (2, 3)]
    policy = Doubt("policy", Severity.INVALID, "it did not run as fifo", "give it privilege")
    rows = (
        doubted("a", common, parts[0]),
        doubted("b", common, parts[1]),
        doubted("c", common, policy, state=State.INVALID),
        RunRow("d", failure="a/d is empty"),
        RunRow("e", failure="the campaign ended before"),
        RunRow("f", failure="the campaign ended before"),
    )
    lines = lines_of(SeveralRuns(rows, cautions=("Shortened.",), rest=", elsewhere"), 120)
    begin = next(at for at, line in enumerate(lines) if line.startswith("doubts"))
    assert [line[10:] for line in lines[begin:-1]] == [
        "a/d is empty",
        "2 of 6 runs: the campaign ended before",
        "c: it did not run as fifo: give it privilege",
        "2 of 6 runs, such as a: 2 parts are damaged",
        "and 2 more, elsewhere",
    ]
    assert len(lines) == SUMMARY_LINES
    lines = lines_of(SeveralRuns(rows[:3], cautions=("Shortened.",)), 120)
    begin = next(at for at, line in enumerate(lines) if line.startswith("doubts"))
    assert [line[10:] for line in lines[begin:-1]] == [
        "c: it did not run as fifo: give it privilege",
        "2 of 3 runs, such as a: 2 parts are damaged",
        "3 of 3 runs: simulated: measure a machine",
        "Shortened.",
    ]


def test_what_the_first_line_says_is_no_doubt_besides() -> None:
    policy = Doubt("policy", Severity.INVALID, "it did not run as fifo", "give it privilege")
    rows = [judged(name, State.INVALID, "it did not run as fifo", doubts=(policy,)) for name in "ab"]
    assert not any("privilege" in line for line in lines_of(SeveralRuns(rows[:1])))
    assert "doubts    2 of 2 runs: it did not run as fifo: give it privilege" in lines_of(SeveralRuns(rows))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_table_is_wider_than_the_terminal_and_no_two_rows_have_one_name(width: int) -> None:
    figures = ("1,000,000,000", "1,000", "100,000.5", "200,000.5", "300,000.5", "4,000,000.5")
    names = [f"{'long-' * 20}{number:02}{'-tail' * end}" for number in range(30) for end in (0, 1, 20)]
    rows = [judged(name, State.EXCEEDED, "it was late", *figures) for name in names]
    lines = lines_of(SeveralRuns(rows), width)
    assert len(lines) <= SUMMARY_LINES
    assert max(map(len, lines)) <= width
    table = lines[lines.index("") + 1 :]
    shown = [line.split("  ")[0] for line in table[1 : table.index("") - 1]]
    assert shown
    for name in shown:
        matching = [each for each in names if fnmatchcase(each, name.replace("...", "*"))]
        assert len(matching) == 1, name
    assert ("99 %" in table[0]) == (width == 120)
    assert "max us" in table[0]


def test_a_long_figure_of_a_cell_goes_on_below_itself() -> None:
    figure = "1,234 of 10,000 (up to 12.3 % possible), of which 3 stood still for 12.5 s at the longest"
    rows = [judged(f"stress-ng with {n} workers", State.PROVEN, "it held", figure) for n in (1, 2)]
    lines = lines_of(SeveralRuns(rows, ("cell", "verdict", "Cycles out of the band")))
    assert max(map(len, lines)) <= WIDTH
    told = [f"stress-ng with {n} workers PROVEN {figure}" for n in (1, 2)]
    assert " ".join(" ".join(lines[lines.index("") + 2 : -2]).split()) == " ".join(told)


def test_runs_with_one_name_have_their_folders_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a file of another tool is one of them, with all that it tells."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a/x/01", "a/y/01", "a/02")):
        write_run(Path(name), latencies(number, 400))
    shutil.copy(CYCLICTEST, "a/tool.txt")
    screen = shown(capsys, "a")
    rows = {line.split()[0]: line.split()[1:] for line in screen.split("\n\n")[1].splitlines()}
    assert rows.keys() == {"run", "x/01", "y/01", "02", "tool.txt"}
    told = read_histogram_file(Path("a/tool.txt"))
    assert told is not None
    assert told.count
    assert told.max_ns
    assert rows["tool.txt"] == [f"{told.count:,}", *["-"] * 4, f"{told.max_ns / 1_000:,.1f}"]


def test_options_of_one_run_are_refused_for_a_series(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").mkdir()
    Path(run).rename("runs/a")
    assert main(["show", "runs", "--all"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "give the folder of one" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--section", "histgram"], "there is no section 'histgram' (did you mean 'histogram'?); there are: in_band, "),
        (["--section", "doubts", "--all"], "give one of --section, --all and --json"),
        (["--json", "--all"], "give one of --section, --all and --json"),
    ],
)
def test_a_refusal_is_one_sentence(run: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run, *words]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"rtproof: {says}")
    assert err.count("\n") == 1
