# SPDX-License-Identifier: Apache-2.0
"""``rtproof show``: one screen, the sections that are named, or all of them."""

import gzip
from pathlib import Path

import pytest
from run_folders import latencies, write_run

from rtproof.cli.main import main
from rtproof.report.pages.run_summary import MOST_LINES as SUMMARY_LINES
from rtproof.report.section_list import GROUPS, SECTION_NAMES, SECTIONS

MOST_LINES, WIDTH = 40, 80
CAMPAIGN = Path(__file__).parent / "golden_outputs" / "inputs" / "campaign"


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
    assert screen.split("\n\n")[1].splitlines()[1].split() == ["b", "not", "measured"]
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


def test_options_of_one_run_are_refused_for_a_series(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").mkdir()
    Path(run).rename("runs/a")
    assert main(["show", "runs", "--all"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "give the folder of one" in err


def test_a_campaign_is_one_screen_with_the_worst_cell_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(CAMPAIGN)]) == 2
    screen = capsys.readouterr().out
    assert len(screen.partition("\n\nsections")[0].splitlines()) <= SUMMARY_LINES
    assert screen.startswith("REFUTED   1 of 4 cells. late: ")
    rows = [line.split()[0] for line in screen.split("\n\n")[1].splitlines()]
    assert rows == ["cell", "refuses", "late", "good", "dies"]
    names = listed_sections(screen)
    assert main(["show", str(CAMPAIGN), "--all"]) == 2
    whole = capsys.readouterr().out
    for name in names:
        assert main(["show", str(CAMPAIGN), "--section", name]) == 2
        assert capsys.readouterr().out.partition("\n\n")[2].strip() in whole
    assert main(["show", str(CAMPAIGN), "--section", "doubts"]) == 2
    assert "there is no section 'doubts'; there are: result" in capsys.readouterr().err


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


def test_the_help_names_every_section(capsys: pytest.CaptureFixture[str]) -> None:
    words = shown(capsys, "--help").replace(",", " ").replace(".", " ").split()
    assert set(SECTION_NAMES) <= set(words)


def test_each_section_has_one_of_eight_headings() -> None:
    assert len(GROUPS) <= 8
    assert {one.group for one in SECTIONS} == set(GROUPS)
