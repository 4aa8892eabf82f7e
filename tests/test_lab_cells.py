# SPDX-License-Identifier: Apache-2.0

import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from lab_cases import PLAIN, matrix

from rtproof.core.errors import TargetError, UserError
from rtproof.lab import guest_cell
from rtproof.lab.guest_cell import IDLE_LOAD, CellSetting, GuestCell, GuestLoad, parse_guest_load
from rtproof.record import run_folder
from rtproof.vm.guest import Job, JobOutcome
from rtproof.vm.machine import Machine


def test_loads_are_names_and_several_at_once() -> None:
    assert parse_guest_load("idle") == IDLE_LOAD
    assert parse_guest_load("dd:mib=8+net") == GuestLoad("dd:mib=8+net", ("dd:mib=8", "net"))
    assert parse_guest_load("article2-stress+net") == GuestLoad("article2-stress+net", ("cpu", "dd", "timers", "net"))


@pytest.mark.parametrize("text", ["", "+", "dd+", "dd++net", "dd+idle"])
def test_what_is_no_load_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a load"):
        parse_guest_load(text)


def test_a_load_that_is_a_program_is_refused() -> None:
    with pytest.raises(
        UserError, match="the load stress-ng:workers=2 runs a program of the target's, and a guest has none"
    ):
        parse_guest_load("cpu+stress-ng:workers=2")


def words(cell: GuestCell) -> list[str]:
    (line,) = [line for line in cell.job().script.splitlines() if guest_cell.GUEST_AGENT in line and " run " in line]
    return shlex.split(line)


def test_the_job_runs_the_agent_with_the_setting_and_the_loads(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,)).cells()
    cell = replace(cell, load=parse_guest_load("dd+net"), setting=CellSetting(more=("--policy", "rr")))
    asked = words(cell)
    assert asked[:3] == [guest_cell.GUEST_AGENT, "run", "-o"]
    pairs = list(pairwise(asked))
    for pair in [("--probe", "timer"), ("--period", "1ms"), ("--duration", "2s"), ("--warmup", "1s")]:
        assert pair in pairs
    assert [value for name, value in pairs if name == "--load"] == ["dd", "net"]
    assert ("--policy", "rr") in pairs
    assert cell.job().files == ((guest_cell.GUEST_AGENT, tmp_path / "agent"),)


def test_a_shift_starts_later_and_warms_up_longer(tmp_path: Path) -> None:
    first, second, third = matrix(tmp_path, "mmap", systems=(PLAIN,), shifts=3).cells()
    waits = [int(cell.job().script.split("usleep ")[1].split()[0]) for cell in (first, second, third)]
    assert waits == [0, 137_137, 274_274]
    assert [words(cell)[words(cell).index("--warmup") + 1] for cell in (first, second)] == ["1s", "1037037us"]
    assert len({cell.key() for cell in (first, second, third)}) == 3


def test_the_key_changes_with_everything_that_goes_in(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,)).cells()
    again = replace(cell, agent=Path(cell.agent))
    assert cell.key() == again.key()
    other = tmp_path / "other"
    other.write_text("another agent")
    machine = replace(PLAIN.machine, memory_mib=1024)
    changed = [
        replace(cell, agent=other),
        replace(cell, load=IDLE_LOAD),
        replace(cell, setting=CellSetting(duration_ns=10**9)),
        replace(cell, system=replace(PLAIN, machine=machine)),
    ]
    assert len({each.key() for each in (cell, *changed)}) == 5
    assert replace(cell, system=replace(PLAIN, kernel="another name")).key() == cell.key()


def test_an_agent_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,)).cells()
    with pytest.raises(UserError, match="nowhere cannot be read"):
        replace(cell, agent=tmp_path / "nowhere").key()


INFO = run_folder.RunInfo(
    command=["rtproof"], started="", host="", user="", rtproof_version="", agent_sha256="", agent_arch="", target="qemu"
)


class Place(NamedTuple):
    folder: Path
    monkeypatch: pytest.MonkeyPatch


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def measured(at: Place, code: int, said: str, files: tuple[str, ...]) -> guest_cell.CellCost:
    (cell,) = matrix(at.folder, "mmap", systems=(PLAIN,)).cells()
    out = at.folder / "out"
    out.mkdir()

    def run_job(machine: Machine, job: Job, out: Path, timeout_s: float) -> JobOutcome:
        for name in files:
            (out / name).write_text("")
        return JobOutcome(code, said, out / "console.log", 3.0, 5.0)

    at.monkeypatch.setattr(guest_cell, "run_job", run_job)
    return guest_cell.measure_guest_cell({"x86_64": INFO}, cell, out)


def test_a_measured_cell_is_a_run_folder(at: Place) -> None:
    assert measured(at, 0, "", ("run.rtrec",)) == guest_cell.CellCost(3.0, 5.0)
    assert sorted(path.name for path in (at.folder / "out").iterdir()) == ["run.json", "run.rtrec"]


@pytest.mark.parametrize(
    ("code", "said", "files", "why"),
    [
        (1, "a\nrtproof-agent: no space left\n", (), "no space left"),
        (-9, "", ("run.rtrec",), "exit code -9"),
        (0, "", (), "exit code 0"),
    ],
)
def test_an_agent_that_did_not_measure_is_a_sentence_with_its_last_words(
    at: Place, code: int, said: str, files: tuple[str, ...], why: str
) -> None:
    with pytest.raises(TargetError, match=why) as caught:
        measured(at, code, said, files)
    assert "console.log" in str(caught.value)


def test_what_the_agent_refuses_is_its_sentence(at: Place) -> None:
    with pytest.raises(UserError) as caught:
        measured(at, 2, "rtproof-agent: there is no load 'x'\n", ())
    assert str(caught.value) == "the agent refused: there is no load 'x'"
