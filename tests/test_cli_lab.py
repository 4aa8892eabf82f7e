# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare`` from the command line to the files it leaves."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from analysis_records import SERIES, block, record
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.experiment.guest_campaign import in_all
from rtproof.lab import cell_runner
from rtproof.lab.kernel_comparison import VIRTUAL_TIME
from rtproof.record import run_folder
from rtproof.summary.loops import loop_cycles

__all__ = ["desk"]
pytestmark = pytest.mark.usefixtures("desk")


USUAL = ("--preempt", "none", "--load", "idle", "--load", "mmap", "--jobs", "2")


def compare(*arguments: str) -> int:
    return main(["lab", "compare", "--shifts", "1", *arguments])


@pytest.mark.slow
def test_it_prints_the_table_and_leaves_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*USUAL, "--output", "a") == 0
    out, err = capsys.readouterr()
    assert "At most 6.4 us with debian-6.1-rt (idle), 700 us with debian-6.1 preempt=none (mmap)" in out
    assert VIRTUAL_TIME in " ".join(out.split())
    assert out.endswith("\npage: a/page.html\n")
    assert sorted(line.partition(":")[0].partition("] ")[2] for line in err.splitlines()) == sorted(
        f"{system}, {load}" for load in ("idle", "mmap") for system in ("debian-6.1-rt", "debian-6.1 preempt=none")
    )
    assert sorted(path.name for path in Path("a").iterdir()) == ["cells", "page.html", "result.json", "table.md"]
    folders = sorted(path.name for path in Path("a/cells").iterdir())
    assert folders == ["debian-6.1-rt_idle__0", "debian-6.1-rt_mmap__0"] + [
        f"debian-6.1_preempt=none_{load}__0" for load in ("idle", "mmap")
    ]
    info = run_folder.open_run(Path("a/cells", folders[0])).info
    assert info is not None
    assert (info.command[:3], info.target, info.note) == (["rtproof", "lab", "compare"], "qemu", VIRTUAL_TIME)


@pytest.mark.slow
def test_a_second_time_everything_comes_from_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*USUAL, "--output", "a") == 0
    capsys.readouterr()
    assert compare(*USUAL, "--output", "b", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["cost"]["run_count"] == 0
    assert found["cost"]["cached_count"] == 4
    assert err.count("(cached)") == 4
    assert json.loads(Path("b/result.json").read_bytes()) == found
    first, second = (json.loads(Path(name, "result.json").read_bytes())["cells"] for name in "ab")
    assert first == second


@pytest.mark.slow
def test_a_failed_cell_is_shown_and_the_exit_code_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--kernel", "debian-6.1-rt", "--load", "fails", "--load", "idle", "--output", "a") == 2
    out, err = capsys.readouterr()
    assert "! debian-6.1-rt, fails: the guest's kernel panicked; the console's log is console.log" in out
    assert "debian-6.1-rt, fails: failed: the guest's kernel panicked" in err
    assert [path.name for path in Path("a/cells").iterdir()] == ["debian-6.1-rt_idle__0"]


@pytest.mark.slow
def test_ctrl_c_is_one_sentence_and_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*arguments: object) -> None:
        raise cell_runner.CellsInterrupted(3, 9)

    monkeypatch.setattr(cell_runner, "run_missing_cells", interrupt)
    assert compare("--output", "a") == 130
    sentence = "interrupted: 3 of 9 cells are finished and kept; the same command continues from there"
    assert capsys.readouterr().err == f"rtproof: {sentence}\n"
    assert not Path("a").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--load", "nope"], "there is no load 'nope'; there are: idle, mmap, dd,"),
        (["--load", "dd+nope:a=1"], "there is no load 'nope'; there are: idle,"),
        (["--load", "mmap@one"], "load 'mmap@one': an @ stands at the end, with a list of CPUs behind it"),
        (["--load", "dd+mmap@0,1"], "the load mmap@0,1 is bound to CPU 1, and the guests have only CPU 0: see --proc"),
        (["--load", "idle@0"], "'idle@0' is not a load: idle cannot be joined with other loads or bound to CPUs"),
        (["--load", "dd+"], "'dd+' is not a load: write a name,"),
        (["--kernel", "linux"], "'linux' is neither a file nor the name of a kernel"),
        (["--kernel", "."], ". is a folder: give the kernel image itself"),
        (["--preempt", "rt"], "Invalid value for '--preempt': 'rt' is not one of"),
        (["--duration", "2"], "Invalid value for '--duration': the duration '2' has no unit"),
        (["--jobs", "0"], "Invalid value for '--jobs': 0 is not in the range"),
        (["--shifts", "x"], "Invalid value for '--shifts': 'x' is not a valid integer range"),
        (["--output", "cache"], "cache exists already: nothing is ever written over"),
    ],
)
def test_refusals_are_one_sentence_before_anything_is_booted(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cache").mkdir()
    assert compare(*words) == 2
    assert_refused(capsys, sentence)
    assert list(Path("cache").iterdir()) == []


# ``rtproof lab profile`` from the command line to the files it leaves.


def profile(*arguments: str) -> int:
    return main(["lab", "profile", *arguments])


@pytest.mark.slow
def test_a_profile_on_two_kernels_leaves_a_page_a_table_and_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile("bootlin-timer", "--duration", "2s", "--output", "a") == 0
    out, err = capsys.readouterr()
    assert "debian-6.1-rt, debian-6.1 preempt=none" in out
    assert out.endswith("\nreport: a/report.html\n")
    assert sum(line.startswith("[") for line in err.splitlines()) == 8
    cells = [place for place in Path("a/cells").iterdir() if place.is_dir()]
    assert len(cells) == 8
    assert all(place.with_name(f"{place.name}.html").is_file() for place in cells)
    page = Path("a/report.html").read_text()
    assert "Shortened: 2.0 s instead of" in page
    assert "How it was made" in page
    assert all(f"./cells/{quote(place.name)}.html" in page for place in cells)
    assert "40" in Path("a/table.md").read_text()


@pytest.mark.slow
def test_the_folder_of_a_profile_in_guests_gives_its_pages_again(capsys: pytest.CaptureFixture[str]) -> None:
    """With the profile's limit, which the runs do not name: another profile may use the same ones from the cache."""
    assert profile("akamina", "--duration", "2s", "--output", "a") == main(["show", "a"])
    out, _ = capsys.readouterr()
    first, _, screen = out.partition("\nreport: a/report.html\n")
    assert "500 us" in first
    assert "500 us" in screen
    assert "500 us" in Path("a/cells/debian-6.1-rt__loaded.html").read_text()
    before = {name: Path("a", name).read_bytes() for name in ("report.html", "table.md", "result.json")}
    for name in before:
        Path("a", name).unlink()
    assert main(["report", "a"]) == 0
    assert {name: Path("a", name).read_bytes() for name in before} == before


# ``rtproof lab check``: its exit codes are what git bisect goes by.


def check(*arguments: str, load: str = "mmap", limit: str = "20us") -> int:
    return main(["lab", "check", "--kernel", "debian-6.1", "--load", load, "--max", limit, "--shifts", "1", *arguments])


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), [("699us", 1), ("699999ns", 1), ("700us", 0), ("1ms", 0)])
def test_the_exit_code_says_whether_the_maximum_is_above(
    limit: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("--preempt", "none", limit=limit) == code
    said, label = capsys.readouterr().out.splitlines()
    assert said.startswith("debian-6.1 preempt=none, mmap: the largest latency of 2,000 activations is 700 us, ")
    assert said.split(", ")[-1].startswith("above" if code else "not above")
    assert label == VIRTUAL_TIME


@pytest.mark.slow
def test_the_largest_of_all_shifts_is_judged() -> None:
    assert check("--shifts", "3", limit="701us") == 1
    assert check("--shifts", "2", limit="701us") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("bisect", "code"), [([], 3), (["--bisect"], 125)])
def test_a_cell_that_measured_something_else_is_no_answer(
    bisect: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("--kernel", "debian-6.1-rt", *bisect, load="invalid") == code
    assert capsys.readouterr().out.startswith("INVALID: 1 thread did not run as fifo")


# ``rtproof lab ten-ms`` from the command line to the files it leaves.


def ten_ms(*arguments: str) -> int:
    return main(["lab", "ten-ms", "--cycles", "500", *arguments])


def test_four_scenarios_in_one_command_each_on_its_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert ten_ms("--output", "a") == 0
    out, err = capsys.readouterr()
    assert out.endswith("\nreport: a/report.html\n")
    names = [line.partition("] ")[2].partition(": ")[0] for line in err.splitlines() if line.startswith("[")]
    plain, rt = "debian-6.1 preempt=none", "debian-6.1-rt"
    cells = [(plain, "other--idle"), (plain, "other--stress"), (rt, "fifo--stress"), (rt, "fifo--stress-flood")]
    assert sorted(names) == sorted(f"{system}, {cell}" for system, cell in cells)
    assert len([place for place in Path("a/cells").iterdir() if place.is_dir()]) == 4
    told = json.loads(Path("a/result.json").read_bytes())
    found = [(each["results"], each["article"]) for each in told["cells"]]
    assert [[result["system"] for result in results] for results, _ in found] == [[system] for system, _ in cells]
    articles = [rows[0]["figures"]["count"]["value"] for _, rows in found]
    assert articles == [11_229, 11_011, 11_019, 11_111]


@pytest.mark.parametrize(("counted", "whole"), [(11_000, 12_000), (9_000, 10_000), (900, 1_000), (1, 2)])
def test_as_many_cycles_are_counted_as_asked_for(counted: int, whole: int) -> None:
    assert in_all(counted) == whole
    loop = replace(SERIES, period_ns=10_000_000, probe="kernel", method="loop", field="task")
    assert loop_cycles(record([block([0] * (whole + 1), series=loop)], (loop,))).counted >= counted
