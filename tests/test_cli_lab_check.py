# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab check``: its exit codes are what git bisect goes by."""

from pathlib import Path

import pytest
from lab_desk import desk

from rtproof.cli.main import main
from rtproof.lab import cell_runner
from rtproof.lab.kernel_comparison import VIRTUAL_TIME

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("desk")]


def check(*arguments: str, load: str = "mmap", limit: str = "20us") -> int:
    return main(["lab", "check", "--kernel", "debian-6.1", "--load", load, "--max", limit, *arguments])


@pytest.mark.parametrize(("limit", "code"), [("699us", 1), ("699999ns", 1), ("700us", 0), ("1ms", 0)])
def test_the_exit_code_says_whether_the_maximum_is_above(
    limit: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("--preempt", "none", limit=limit) == code
    said, label = capsys.readouterr().out.splitlines()
    assert said.startswith("debian-6.1 preempt=none, mmap: the largest latency of 2,000 activations is 700 us, ")
    assert said.split(", ")[-1].startswith("above" if code else "not above")
    assert label == VIRTUAL_TIME


def test_the_largest_of_all_shifts_is_judged() -> None:
    assert check("--shifts", "3", limit="701us") == 1
    assert check("--shifts", "2", limit="701us") == 0


@pytest.mark.parametrize(("bisect", "code"), [([], 2), (["--bisect"], 125)])
def test_a_cell_that_fails_is_no_answer(bisect: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(*bisect, load="fails") == code
    err = capsys.readouterr().err.splitlines()
    assert err[-1] == "rtproof: the guest's kernel panicked; the console's log is console.log"


@pytest.mark.parametrize(("bisect", "code"), [([], 3), (["--bisect"], 125)])
def test_a_cell_that_measured_something_else_is_no_answer(
    bisect: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("--kernel", "debian-6.1-rt", *bisect, load="invalid") == code
    assert capsys.readouterr().out.startswith("INVALID: policy fifo was asked for")


def test_an_image_of_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    Path("arch/x86/boot").mkdir(parents=True)
    Path("arch/x86/boot/bzImage").write_bytes(b"an image")
    assert check("--kernel", "arch/x86/boot/bzImage", load="idle") == 0
    assert capsys.readouterr().out.startswith("bzImage, idle: ")


@pytest.mark.parametrize(("bisect", "code"), [([], 2), (["--bisect"], 125)])
def test_no_kernel_is_no_answer(bisect: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--kernel", "vmlinux-that-did-not-build", *bisect) == code
    assert capsys.readouterr().err.startswith("rtproof: 'vmlinux-that-did-not-build' is no file")


def test_ctrl_c_ends_a_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise cell_runner.CellsInterrupted(0, 1)

    monkeypatch.setattr(cell_runner, "run_missing_cells", interrupt)
    assert check("--bisect") == 130


@pytest.mark.parametrize("words", [["--max", "20"], ["--max", "0us"], ["--shifts", "0"]])
def test_refusals_are_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert check(*words) == 2
    assert capsys.readouterr().err.count("\n") == 1
