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

from rtproof import profiles
from rtproof.core.errors import TargetError, UserError
from rtproof.experiment import guest_campaign, guest_runner
from rtproof.experiment.campaign_folder import cell_name
from rtproof.experiment.guest_campaign import GuestBench, GuestTrial
from rtproof.lab import guest_cell
from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.cell_runner import CellResult, CellResults
from rtproof.lab.guest_cell import (
    IDLE_LOAD,
    REFUSAL_PREFIX,
    CellCost,
    CellSetting,
    GuestCell,
    GuestLoad,
    parse_guest_load,
)
from rtproof.lab.kernel_comparison import CellReading
from rtproof.lab.latency_phases import ExecutedPhase
from rtproof.lab.systems import NamedKernel
from rtproof.profiles import CellPlan, Profile, Way, profile
from rtproof.record import run_folder
from rtproof.summary.counts import NO_COUNTS
from rtproof.vm.guest import Job, JobOutcome
from rtproof.vm.machine import Machine


def resolve(loads: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for load in loads for word in ("--load", load))


def shortened(name: str) -> Profile:
    return profile.with_parameters(guest_runner.for_guests(profiles.load(name), {})).shortened(
        duration_ns=1_000_000_000
    )


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


def conduct(profile: Profile, runner: Runner) -> list[GuestTrial]:
    bench = GuestBench(runner.run, {"x86_64": Path("agent")}, resolve)
    return guest_campaign.run_trials(profile, (lab_cases.RT, lab_cases.PLAIN), bench)


def test_every_profile_is_ready_for_guests_without_a_word_of_the_user() -> None:
    for name in profiles.names():
        assert shortened(name).cells


def test_what_the_user_names_comes_before_what_a_guest_has() -> None:
    own = guest_runner.for_guests(profiles.load("bootlin-gpio"), {"in": "5"})
    values = {parameter.name: parameter.default for parameter in own.parameters}
    assert (values["in"], values["out"], values["chip"]) == ("5", "6", "rtproof-loop")


def test_every_cell_is_run_on_every_system_with_the_options_of_its_profile() -> None:
    runner = Runner()
    trials = conduct(shortened("bootlin-timer"), runner)
    assert len(trials) == 2 * len(shortened("bootlin-timer").cells)
    (cells,) = runner.rounds
    first = cells[0]
    assert first.setting.arguments(first.load, 0)[:8] == (
        "--probe", "timer", "--period", "1ms", "--duration", "1s", "--warmup", "1s",
    )  # fmt: skip
    assert first.setting.more[first.setting.more.index("--method") :][:2] == ("--method", "clock_nanosleep")
    assert first.load.loads == ("doload",)
    assert [cell.system for cell in cells[:2]] == [lab_cases.RT, lab_cases.PLAIN]
    assert len({cell_name(trial.plan.key, trial.system.name) for trial in trials}) == len(trials)


def test_a_cell_that_names_processors_of_its_own_keeps_them() -> None:
    own, other, floating = shortened("bootlin-timer").cells[:3]
    own = replace(own, options={**own.options, "cpus": "0"})
    floating = replace(floating, options={**floating.options, "policy": "deadline"})
    runner = Runner()
    bench = GuestBench(runner.run, {"x86_64": Path("agent")}, resolve, "1,3")
    guest_campaign.run_trials(replace(shortened("bootlin-timer"), cells=(own, other, floating)), (lab_cases.RT,), bench)
    (cells,) = runner.rounds
    named = [words[words.index("--cpus") + 1] if "--cpus" in words else "" for words in (c.setting.more for c in cells)]
    assert named == ["0", "1,3", ""]


def test_what_the_agent_refuses_is_tried_in_the_next_way() -> None:
    runner = Runner("kernel")
    trials = conduct(shortened("akamina"), runner)
    assert [len(cells) for cells in runner.rounds] == [4, 4]
    assert {cell.setting.probe for cell in runner.rounds[1]} == {"timerlat"}
    assert {trial.plan.ways[trial.way].name for trial in trials} == {"timerlat"}
    assert {(way.name, why) for trial in trials for way, why in trial.passed} == {("kernel", "there is no kernel")}


def test_the_last_way_that_is_refused_is_a_failure() -> None:
    trials = conduct(shortened("akamina"), Runner("kernel", "timerlat", "timer"))
    outcomes = guest_campaign.trial_outcomes(shortened("akamina"), trials)
    assert {outcome.failure for outcome in outcomes} == {f"{REFUSAL_PREFIX}there is no timer"}
    assert all(len(outcome.passed) == 2 for outcome in outcomes)


def test_a_failed_cell_is_not_tried_in_another_way() -> None:
    runner = Runner()
    trials = conduct(shortened("akamina"), runner)
    assert len(runner.rounds) == 1
    assert {outcome.failure for outcome in guest_campaign.trial_outcomes(shortened("akamina"), trials)} == {
        "the guest's kernel panicked"
    }


def test_the_guest_is_set_up_before_the_agent_as_the_profile_wishes() -> None:
    runner = Runner()
    for name in ("bootlin-gpio", "simple-rt-app", "bootlin-timer"):
        conduct(shortened(name), runner)
    for name, (cell, *_) in zip(("bootlin-gpio", "simple-rt-app"), runner.rounds, strict=False):
        setup = profiles.load(name).guest.setup
        assert setup
        assert cell.job().script.splitlines()[: len(setup)] == list(setup)
    assert not profiles.load("bootlin-timer").guest.setup
    assert runner.rounds[2][0].job().script.startswith("usleep 0\n")


def test_what_stands_in_a_guest_for_the_articles_hardware_is_said() -> None:
    for name in profiles.names():
        guest = profiles.load(name).guest
        assert bool(guest.says) == bool(guest.setup or guest.load or guest.settings)


def test_the_agent_is_told_the_profiles_limit_so_that_records_keep_what_exceeds_it() -> None:
    runner = Runner()
    conduct(shortened("akamina"), runner)
    conduct(shortened("bootlin-timer"), runner)
    asked = [cell.setting.arguments(cell.load, 0) for (cell, *_) in runner.rounds]
    assert asked[0][asked[0].index("--limit") + 1] == "500us"
    assert "--limit" not in asked[1]


def test_our_module_is_for_stages_of_the_kernel_and_for_its_chip() -> None:
    ours = {name for name in profiles.names() if guest_runner.profile_needs_our_module(profiles.load(name))}
    assert ours == {"akamina", "bootlin-gpio", "bootlin-xenomai", "ten-ms"}


def test_kernels_get_the_modules_for_the_profiles_hardware_as_far_as_they_have_them(tmp_path: Path) -> None:
    for name in ("veth.ko", "lm75.ko", "i2c-piix4.ko.xz"):
        (tmp_path / name).touch()
    kernel = replace(lab_cases.kernel(), modules=tmp_path)
    named = [NamedKernel("debian-6.1", kernel, True, (Path("rtproof.ko"),)), NamedKernel("own", lab_cases.kernel())]

    def modules(profile: str) -> list[tuple[str | Path, ...]]:
        return [each.modules for each in guest_runner.with_modules_of_profile(named, profiles.load(profile))]

    assert modules("akamina") == modules("bootlin-gpio") == [(Path("rtproof.ko"), "veth"), ()]
    assert modules("simple-rt-app") == [(Path("rtproof.ko"), "veth", "i2c-piix4", "lm75"), ()]
    (tmp_path / "lm75.ko").unlink()
    (tmp_path / "modules.builtin").write_text("kernel/drivers/net/veth.ko\n")
    kernel = replace(kernel, modules=tmp_path.rename(tmp_path.with_name("other")))
    (own,) = guest_runner.with_modules_of_profile([NamedKernel("own", kernel)], profiles.load("simple-rt-app"))
    assert own.modules == ("veth", "i2c-piix4")


def test_programs_are_refused_because_a_guest_has_none() -> None:
    def programs(loads: Sequence[str]) -> tuple[str, ...]:
        return tuple(word for load in loads for word in ("--program", f"{load}:stress-ng"))

    bench = GuestBench(Runner().run, {"x86_64": Path("agent")}, programs)
    with pytest.raises(UserError, match="'doload' is a program, and guests have none"):
        guest_campaign.run_trials(shortened("bootlin-timer"), (lab_cases.RT,), bench)


def test_a_way_with_a_program_is_passed_over_where_another_is_left() -> None:
    def programs(loads: Sequence[str]) -> tuple[str, ...]:
        return tuple(word for load in loads for word in ("--program" if load == "stress-ng" else "--load", load))

    runner = Runner()
    bench = GuestBench(runner.run, {"x86_64": Path("agent")}, programs)
    (trial,) = guest_campaign.run_trials(shortened("simple-rt-app"), (lab_cases.RT,), bench)
    assert [why for _, why in trial.passed] == ["the load 'stress-ng' is a program, and guests have none of these"]
    assert runner.rounds[0][0].load.loads == ("cpu:workers=1",)


def test_a_load_of_long_sections_is_added_where_the_profiles_own_does_not_reach_the_kernel() -> None:
    assert profiles.load("simple-rt-app").guest.load == ("cpu:workers=1", "mmap")
    assert profiles.load("akamina").guest.load == ()


def test_an_outcome_is_read_from_the_cell_and_judged_by_the_profiles_limit(tmp_path: Path) -> None:
    profile = shortened("akamina")

    class Measured(Runner):
        def _result(self, cell: GuestCell) -> CellResult:
            folder = tmp_path / cell.slug
            folder.mkdir()
            lab_cases.fill(replace(cell, load=lab_cases.load("idle")), folder)
            return CellResult(cell, lab_cases.kept(folder, CellCost(1.0, 1.0)))

    found = guest_campaign.trial_outcomes(profile, conduct(profile, Measured()))
    assert [outcome.cell.key for outcome in found] == ["unloaded", "unloaded", "loaded", "loaded"]
    for outcome in found:
        assert outcome.analysis is not None
        assert outcome.analysis.verdict.requirement is not None
        assert outcome.analysis.verdict.requirement.limit_ns == 500_000
        assert outcome.link.startswith("cells/")


def test_a_plan_that_was_not_run_says_so() -> None:
    plan = CellPlan("one", "one", {}, {}, 1, None, 1, 1, ways=(Way("only"),))
    (outcome,) = guest_campaign.trial_outcomes(profiles.load("akamina"), [GuestTrial(lab_cases.RT, plan)])
    assert outcome.failure == "it was not run"


def test_the_largest_latency_of_each_kernel_is_explained_or_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = shortened("akamina")
    trials = conduct(profile, Runner())
    asked: list[str] = []

    def explain(result: CellResult) -> CellExplanation:
        asked.append(result.cell.name)
        if len(asked) > 1:
            raise UserError("there is no compiler")
        phase = ExecutedPhase("without a switch of tasks", 0, 900, (), ())
        return CellExplanation(result.cell.name, 900, 0, 1, (phase,), None, (), 9, idle=False)

    monkeypatch.setattr(guest_runner, "explain_result", explain)
    latencies_ns = iter((700, 800, 900, 600))
    read = [
        replace(
            trial,
            result=CellResult(
                trial.result.cell,
                lab_cases.kept(tmp_path, CellCost(1.0, 1.0)),
                CellReading(1, 0, 0, 0, 0.0, next(latencies_ns), NO_COUNTS, NO_COUNTS, "timer", "", (), "", "", ""),
            ),
        )
        for trial in trials
        if trial.result
    ]
    guest_campaign.explain_largest(read, tmp_path, as_json=False)
    names = [trial.result.cell.name for trial in read if trial.result]
    assert asked == [names[2], names[1]], "of each of the two kernels the one with the largest latency"
    kept = json.loads((tmp_path / "explanations.json").read_text())
    assert [each["cell"] for each in kept["explanations"]] == asked[:1]
    assert kept["failures"] == [f"{asked[1]}: there is no compiler"]
    said = " ".join(capsys.readouterr().out.split())
    assert "without a switch of tasks" in said
    assert "there is no compiler" in said


def test_loads_are_names_and_several_at_once() -> None:
    assert parse_guest_load("idle") == IDLE_LOAD
    assert parse_guest_load("dd:mib=8+net") == GuestLoad("dd:mib=8+net", ("dd:mib=8", "net"))
    assert parse_guest_load("article2-stress+net") == GuestLoad("article2-stress+net", ("cpu", "dd", "timers", "net"))


def test_loads_are_bound_one_by_one(tmp_path: Path) -> None:
    assert parse_guest_load("dd+net@0") == GuestLoad("dd+net@0", ("dd", "net@0"))
    assert parse_guest_load("article2-stress@0+dd:mib=8@1").loads == ("cpu@0", "dd@0", "timers@0", "dd:mib=8@1")
    (cell,) = matrix(tmp_path, "mmap@0", systems=(PLAIN,)).cells()
    assert "mmap@0" in cell.slug


@pytest.mark.parametrize("text", ["", "+", "dd+", "dd++net", "dd+idle", "idle@0"])
def test_what_is_no_load_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a load"):
        parse_guest_load(text)


def test_a_load_that_is_a_program_is_refused() -> None:
    with pytest.raises(
        UserError, match="the load stress-ng:workers=2 runs a program of the target, and a guest has none"
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


# Run until two agree.


TWO = replace(PLAIN, machine=replace(PLAIN.machine, cpus=2))
Run = bytes | Exception | type[BaseException]


def measured_by_runs(at: Place, *runs: Run) -> tuple[guest_cell.CellCost, Path]:
    """A cell of two processors, of which each run gives these bytes or fails so; its folder."""
    (cell,) = matrix(at.folder, "mmap", systems=(TWO,)).cells()
    left = list(runs)

    def run_job(machine: Machine, job: Job, out: Path, timeout_s: float) -> JobOutcome:
        log = out / "console.log"
        log.write_text(f"{len(left)} runs are left")
        run = left.pop(0)
        if isinstance(run, bytes):
            (out / "run.rtrec").write_bytes(run)
            return JobOutcome(0, "", log, 3.0, 5.0)
        raise TargetError(f"it died; the console's log is {log}") if run is TargetError else run

    at.monkeypatch.setattr(guest_cell, "run_job", run_job)
    store = guest_cell.CellStore(at.folder / "cells")
    kept = store.make("key", partial(guest_cell.measure_guest_cell, {"x86_64": INFO}, cell))
    assert not left
    return kept.cost, kept.folder


@pytest.mark.parametrize(
    ("runs", "kept", "differing"),
    [((b"a", b"a"), b"a", 0), ((b"a", b"b", b"a"), b"a", 1), ((b"a", b"b", b"c", b"b"), b"b", 2)],
)
def test_the_record_is_kept_that_two_runs_gave(at: Place, runs: tuple[bytes, ...], kept: bytes, differing: int) -> None:
    cost, folder = measured_by_runs(at, *runs)
    assert (folder / "run.rtrec").read_bytes() == kept
    assert cost == guest_cell.CellCost(3.0 * len(runs), 5.0 * len(runs), len(runs), differing)
    assert [each.name for each in folder.parent.iterdir()] == ["key"]


def test_a_cell_without_two_runs_that_agree_has_failed(at: Place) -> None:
    with pytest.raises(TargetError, match="no two of 6 runs gave the same bytes"):
        measured_by_runs(at, *(b"%d" % run for run in range(6)))


def test_the_log_of_a_second_run_that_failed_is_where_the_error_says_until_the_next_attempt(at: Place) -> None:
    with pytest.raises(TargetError, match="it died") as caught:
        measured_by_runs(at, b"a", TargetError)
    assert Path(str(caught.value).split()[-1]).read_text() == "1 runs are left"
    guest_cell.CellStore(at.folder / "cells").make("other", lambda folder: guest_cell.CellCost(0, 0))
    measured_by_runs(at, b"a", b"a")
    assert sorted(each.name for each in (at.folder / "cells").iterdir()) == ["key", "other"]


@pytest.mark.parametrize(("run", "ends"), [(KeyboardInterrupt, KeyboardInterrupt), (OSError(28, "full"), UserError)])
def test_an_interrupt_or_a_full_disk_in_a_second_run_leaves_nothing(
    at: Place, run: Run, ends: type[BaseException]
) -> None:
    with pytest.raises(ends):
        measured_by_runs(at, b"a", run)
    assert not list((at.folder / "cells").iterdir())


def test_what_another_lab_runs_again_is_no_leftover(at: Place) -> None:
    """Process 1 runs always; no process has the number 0."""
    for name in ("key.1-again", "key.0-again", "key.0"):
        (at.folder / "cells" / name).mkdir(parents=True)
    measured_by_runs(at, b"a", b"a")
    assert sorted(each.name for each in (at.folder / "cells").iterdir()) == ["key", "key.1-again"]


def test_several_processors_may_take_the_host_longer(tmp_path: Path) -> None:
    one, two = (matrix(tmp_path, "mmap", systems=(system,)).cells()[0] for system in (PLAIN, TWO))
    assert guest_cell.longest_host_s(two) > 3 * guest_cell.longest_host_s(one)
