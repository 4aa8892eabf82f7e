# SPDX-License-Identifier: Apache-2.0
"""Profiles in guests: what stands for hardware, which way is taken, and how cells become the lab's."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import lab_cases
import pytest
from lab_cases import PLAIN, matrix
from run_folders import INFO

from rtproof import loads, profiles
from rtproof.core.errors import TargetError, UserError
from rtproof.experiment import guest_campaign, profile_campaign
from rtproof.experiment.campaign_folder import cell_name
from rtproof.experiment.run_request import RunRequest
from rtproof.lab import cell_runner, guest_cell
from rtproof.lab.cell_runner import CellResult, CellResults
from rtproof.lab.guest_cell import IDLE_LOAD, REFUSAL_PREFIX, CellSetting, GuestCell, GuestLoad, parse_guest_load
from rtproof.profiles import Profile
from rtproof.vm.guest import Job, JobOutcome
from rtproof.vm.machine import Machine


def resolve(loads: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for load in loads for word in ("--load", load))


def shortened(name: str) -> Profile:
    asked = RunRequest((), "qemu", profile=name, options={"duration": "1s"})
    return profile_campaign.requested_profile(asked, in_guest=True)


class Runner:
    """Remembers cells, and refuses those with a probe that is not there."""

    def __init__(self, *absent: str) -> None:
        self.rounds: list[list[GuestCell]] = []
        self._absent = absent

    def run(self, cells: list[GuestCell]) -> CellResults:
        self.rounds.append(cells)
        return CellResults(tuple(self._result(cell) for cell in cells), 1.0)

    def _result(self, cell: GuestCell) -> CellResult:
        if cell.setting.probe in self._absent:
            return CellResult(cell, failure=f"{REFUSAL_PREFIX}there is no {cell.setting.probe}")
        return CellResult(cell, failure="the guest's kernel panicked")


def conduct(profile: Profile, runner: Runner) -> list[tuple[CellResult, tuple[str, ...]]]:
    trials = [(plan, system) for plan in profile.cells for system in (lab_cases.RT, lab_cases.PLAIN)]
    cell_of = partial(guest_campaign.trial_cell, profile, {"x86_64": Path("agent")}, "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "resolve", resolve)
        return guest_campaign.run_trials(trials, cell_of, runner.run)


def test_every_cell_is_run_on_every_system_with_the_options_of_its_profile() -> None:
    runner = Runner()
    ended = conduct(shortened("bootlin-timer"), runner)
    assert len(ended) == 2 * len(shortened("bootlin-timer").cells)
    (cells,) = runner.rounds
    first = cells[0]
    assert first.setting.arguments(first.load, 0)[:8] == (
        "--probe", "timer", "--period", "1ms", "--duration", "1s", "--warmup", "1s",
    )  # fmt: skip
    assert first.setting.more_arguments[first.setting.more_arguments.index("--method") :][:2] == (
        "--method",
        "clock_nanosleep",
    )
    assert first.load.loads == profiles.load("bootlin-timer").guest.load
    assert [cell.system for cell in cells[:2]] == [lab_cases.RT, lab_cases.PLAIN]
    names = {cell_name(result.cell.load.name, result.cell.system.name) for result, _ in ended}
    assert len(names) == len(ended)


def test_what_the_agent_refuses_is_tried_in_the_next_way() -> None:
    runner = Runner("kernel")
    ended = conduct(shortened("akamina"), runner)
    assert [len(cells) for cells in runner.rounds] == [4, 4]
    assert {cell.setting.probe for cell in runner.rounds[1]} == {"timerlat"}
    assert {result.cell.setting.probe for result, _ in ended} == {"timerlat"}
    assert {refused for _, refused in ended} == {("there is no kernel",)}


def test_loads_are_bound_one_by_one(tmp_path: Path) -> None:
    assert parse_guest_load("dd+net@0") == GuestLoad("dd+net@0", ("dd", "net@0"))
    assert parse_guest_load("article2-stress@0+dd:mib=8@1").loads == ("cpu@0", "dd@0", "timers@0", "dd:mib=8@1")
    (cell,) = matrix(tmp_path, "mmap@0", systems=(PLAIN,))
    assert "mmap@0" in cell.slug


@pytest.mark.parametrize("text", ["", "+", "dd+", "dd++net", "dd+idle", "idle@0"])
def test_what_is_no_load_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a load"):
        parse_guest_load(text)


def words(cell: GuestCell) -> list[str]:
    (line,) = [line for line in cell.job().script.splitlines() if guest_cell.GUEST_AGENT in line and " run " in line]
    return shlex.split(line)


def test_the_job_runs_the_agent_with_the_setting_and_the_loads(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,))
    cell = replace(cell, load=parse_guest_load("dd+net"), setting=CellSetting(more_arguments=("--policy", "rr")))
    asked = words(cell)
    assert asked[:3] == [guest_cell.GUEST_AGENT, "run", "-o"]
    pairs = list(pairwise(asked))
    for pair in [("--probe", "timer"), ("--period", "1ms"), ("--duration", "2s"), ("--warmup", "1s")]:
        assert pair in pairs
    assert [value for name, value in pairs if name == "--load"] == ["dd", "net"]
    assert ("--policy", "rr") in pairs
    assert cell.job().files == ((guest_cell.GUEST_AGENT, tmp_path / "agent"),)


def test_a_shift_starts_later_and_warms_up_longer(tmp_path: Path) -> None:
    first, second, third = matrix(tmp_path, "mmap", systems=(PLAIN,), shifts=3)
    waits = [int(cell.job().script.split("usleep ")[1].split()[0]) for cell in (first, second, third)]
    assert waits == [0, 137_137, 274_274]
    assert [words(cell)[words(cell).index("--warmup") + 1] for cell in (first, second)] == ["1s", "1037037us"]
    assert len({cell.key() for cell in (first, second, third)}) == 3


def test_the_key_changes_with_everything_that_goes_in(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,))
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


class Place(NamedTuple):
    folder: Path
    monkeypatch: pytest.MonkeyPatch


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def measured(at: Place, code: int, said: str, files: tuple[str, ...]) -> guest_cell.CellCost:
    (cell,) = matrix(at.folder, "mmap", systems=(PLAIN,))
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


TWO = replace(PLAIN, machine=replace(PLAIN.machine, cpus=2))
Run = bytes | Exception | type[BaseException]


def measured_by_runs(at: Place, *runs: Run, guarded: bool = True) -> tuple[guest_cell.CellCost, Path]:
    """A cell of which each run gives these bytes or fails so; its folder. With the guard it has two processors."""
    (cell,) = matrix(at.folder, "mmap", systems=(TWO if guarded else PLAIN,))
    left = list(runs)

    def run_job(machine: Machine, job: Job, out: Path, timeout_s: float) -> JobOutcome:
        log = out / "console.log"
        log.write_text(f"{len(left)} runs are left")
        run = left.pop(0)
        if isinstance(run, bytes):
            (out / "run.rtrec").write_bytes(run)
            return JobOutcome(0, "", log, 3.0, 5.0, guarded)
        raise TargetError(f"it died; the console's log is {log}") if run is TargetError else run

    at.monkeypatch.setattr(guest_cell, "run_job", run_job)
    store = guest_cell.CellStore(at.folder / "cells")
    cost = store.make("key", partial(guest_cell.measure_guest_cell, {"x86_64": INFO}, cell))
    assert not left
    return cost, store.folder("key")


@pytest.mark.parametrize(
    ("runs", "kept", "differing"),
    [((b"a", b"a"), b"a", 0), ((b"a", b"b", b"a"), b"a", 1), ((b"a", b"b", b"c", b"b"), b"b", 2)],
)
def test_the_record_is_kept_that_two_runs_gave(at: Place, runs: tuple[bytes, ...], kept: bytes, differing: int) -> None:
    cost, folder = measured_by_runs(at, *runs)
    assert (folder / "run.rtrec").read_bytes() == kept
    assert cost == guest_cell.CellCost(3.0 * len(runs), 5.0 * len(runs), len(runs), differing)
    assert [each.name for each in folder.parent.iterdir() if each.is_dir()] == ["key"]


def test_without_the_guard_one_processor_is_run_until_two_agree_too(at: Place) -> None:
    cost, folder = measured_by_runs(at, b"a", b"b", b"a", guarded=False)
    assert cost == guest_cell.CellCost(9.0, 15.0, 3, 1, 1)
    note = json.loads((folder / "run.json").read_text())["note"]
    assert note == "The guard of virtual time was off. Two of 3 runs gave these bytes, and 1 gave others."


def test_a_cell_without_two_runs_that_agree_is_invalid_and_measured_again(at: Place) -> None:
    cost, folder = measured_by_runs(at, *(b"%d" % run for run in range(6)))
    assert (folder / "run.rtrec").read_bytes() == b"0"
    assert (cost.runs, cost.differing, cost.none_agree) == (6, 5, True)
    assert "No two of 6 runs gave the same bytes." in json.loads((folder / "run.json").read_text())["note"]
    assert guest_cell.CellStore(folder.parent).find("key") is None


def test_a_reading_of_runs_that_all_differ_is_invalid(tmp_path: Path) -> None:
    (cell,) = matrix(tmp_path, "mmap", systems=(PLAIN,))
    out = tmp_path / "out"
    out.mkdir()
    lab_cases.fill(cell, out)
    for differing, invalid in ((4, []), (5, ["no two of 6 runs gave the same bytes"])):
        reading = cell_runner.checked_result(cell, out, guest_cell.CellCost(1.0, 1.0, 6, differing)).reading
        assert reading is not None
        assert [doubt.what for doubt in reading.invalid] == invalid


@pytest.mark.parametrize(("run", "ends"), [(KeyboardInterrupt, KeyboardInterrupt), (OSError(28, "full"), UserError)])
def test_an_interrupt_or_a_full_disk_in_a_second_run_leaves_nothing(
    at: Place, run: Run, ends: type[BaseException]
) -> None:
    with pytest.raises(ends):
        measured_by_runs(at, b"a", run)
    assert [each.name for each in (at.folder / "cells").iterdir()] == ["key.lock"]
