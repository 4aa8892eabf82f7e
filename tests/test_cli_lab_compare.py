# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare`` from the command line to the files it leaves."""

import json
from pathlib import Path

import pytest
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.lab import cell_runner
from rtproof.lab.kernel_comparison import VIRTUAL_TIME
from rtproof.record import run_folder

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("desk")]
USUAL = ("--preempt", "none", "--load", "idle", "--load", "mmap", "--jobs", "2")


def compare(*arguments: str) -> int:
    return main(["lab", "compare", *arguments])


def test_it_prints_the_table_and_leaves_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(*USUAL, "--output", "a") == 0
    out, err = capsys.readouterr()
    assert "debian-6.1-rt stayed within 6.4 us (idle); debian-6.1 preempt=none reached 700 us (mmap)" in out
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


def test_the_usual_comparison_is_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--load", "idle") == 0
    out = capsys.readouterr().out
    assert "debian-6.1-rt  debian-6.1 preempt=none  debian-6.1 preempt=full" in out
    (folder,) = Path("runs").iterdir()
    assert folder.name.endswith("Z-lab")


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


def test_a_failed_cell_is_shown_and_the_exit_code_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--kernel", "debian-6.1-rt", "--load", "fails", "--load", "idle", "--output", "a") == 2
    out, err = capsys.readouterr()
    assert "! debian-6.1-rt, fails: the guest's kernel panicked; the console's log is console.log" in out
    assert "debian-6.1-rt, fails: failed: the guest's kernel panicked" in err
    assert [path.name for path in Path("a/cells").iterdir()] == ["debian-6.1-rt_idle__0"]


def test_an_invalid_cell_makes_the_exit_code_three() -> None:
    assert compare("--kernel", "debian-6.1-rt", "--load", "invalid", "--output", "a") == 3


def test_ctrl_c_is_one_sentence_and_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*arguments: object) -> None:
        raise cell_runner.CellsInterrupted(3, 9)

    monkeypatch.setattr(cell_runner, "run_missing_cells", interrupt)
    assert compare("--output", "a") == 130
    sentence = "interrupted: 3 of 9 cells are finished and kept, the same command goes on from there"
    assert capsys.readouterr().err == f"rtproof: {sentence}\n"
    assert not Path("a").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--load", "nope"], "there is no load 'nope'; there are: idle, mmap, dd,"),
        (["--load", "dd+nope:a=1"], "there is no load 'nope'; there are: idle,"),
        (["--load", "dd+"], "'dd+' is not a load: write a name,"),
        (["--kernel", "linux"], "'linux' is no file and no name of a kernel;"),
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
