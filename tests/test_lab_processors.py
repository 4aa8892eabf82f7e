# SPDX-License-Identifier: Apache-2.0
"""Which cells are compared, on one or several processors, what is said of them, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import SERIES, block, fact, file, record
from lab_cases import FakeMachine, Turns, facts_of_turns, kernel, load
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment.guest_runner import judge_kernel
from rtproof.judge.analyse import analyse
from rtproof.lab.guest_cell import CellCost, CellSetting, GuestSystem
from rtproof.lab.kernel_comparison import (
    CellReading,
    KernelComparison,
    SystemUnderLoad,
    clearly_below,
    common_loads,
    loads_clearly_won,
    rank_systems,
    reading_of_analysis,
    unlike_sentences,
)
from rtproof.lab.systems import measured_cpus, refuse_wrong_cpus
from rtproof.record.contents import Moment

__all__ = ["desk"]

ISOLATED = "isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1"
N = 100


def system(name: str) -> GuestSystem:
    return GuestSystem(name, "", FakeMachine(kernel(name), cpus=2))


RT, PLAIN = system("debian-6.1-rt"), system("debian-6.1")


def read(
    largest_ns: dict[int, int],
    *,
    of: int = 2,
    missed: int = 0,
    told: tuple[tuple[str, str], ...] = (),
    policy: str = "fifo",
) -> CellReading:
    """What a guest with so many processors measured: by CPU the largest latency. told: facts besides the usual ones."""
    blocks, every = [], []
    for at, (cpu, ns) in enumerate(largest_ns.items()):
        series = replace(SERIES, id=at, thread=at, cpu=cpu)
        values = np.full(N, 3_900)
        values[N // 2] = ns
        blocks.append(block(values.tolist(), {N // 2: missed} if missed else None, series=series))
        every.append(series)
    facts = [fact("policy", "fifo"), *(fact("policy", policy, Moment.START, each.thread) for each in every)]
    facts += [fact(key, text, Moment.START) for key, text in told or facts_of_turns(Turns((), of) if of > 1 else None)]
    online = file("/sys/devices/system/cpu/online", f"0-{of - 1}\n")
    made = record(blocks, every, facts=tuple(facts), files=(online,))
    return reading_of_analysis(analyse(made, None, 1))


def spot(each: GuestSystem, name: str, *shifts: dict[int, int] | int | CellReading, of: int = 2) -> SystemUnderLoad:
    """shifts: what each measured, by CPU, or as the one number of a guest with one processor."""
    readings = []
    for shift in shifts:
        measured, count = ({0: shift}, 1) if isinstance(shift, int) else (shift, of)
        readings.append(measured if isinstance(measured, CellReading) else read(measured, of=count))
    return SystemUnderLoad(each, load(name), tuple(readings))


def failed(each: GuestSystem, name: str, why: str) -> SystemUnderLoad:
    return SystemUnderLoad(each, load(name), (), (why,))


def comparison(*spots: SystemUnderLoad) -> KernelComparison:
    systems = tuple(dict.fromkeys(each.system for each in spots))
    loads = tuple(dict.fromkeys(each.load for each in spots))
    shifts = max(len(each.readings) for each in spots)
    return KernelComparison(systems, loads, CellSetting(), shifts, spots, CellCost(8.0, 4.0), 3, 1, 5.0)


def test_a_reading_has_the_figures_of_each_measured_processor() -> None:
    found = read({0: 10_000, 1: 25_000}, missed=2)
    assert (found.pooled.observed.count, found.pooled.never_ran, found.max_ns, found.online) == (2 * N, 4, 25_000, 2)
    first, second = found.cpus
    observed = first.pooled.observed
    assert (first.cpu, observed.count, first.pooled.never_ran, observed.min, first.max_ns) == (0, N, 2, 3_900, 10_000)
    assert second.pooled.observed.mean == (3_900 * (N - 1) + 25_000) / N
    assert (first.share, second.share) == (0.667, 0.333)
    assert int(found.pooled.observed_counts.n.sum()) == 2 * N


def test_like_figures_are_not_ranked_as_clear() -> None:
    found = comparison(
        *(spot(RT, "idle", 5_000, 5_100, 5_000, 5_200), spot(RT, "mmap", *[6_400] * 4)),
        *(spot(PLAIN, "idle", *[5_100] * 4), spot(PLAIN, "mmap", *[704_000] * 4)),
    )
    assert [each.name for each in loads_clearly_won(found, rank_systems(found)[0])] == ["mmap"]
    assert loads_clearly_won(found, rank_systems(found)[1]) == []


AS_MEASURED = [137_000, 271_000, 464_000, 634_000]
"""Four shifts of one cell."""


@pytest.mark.parametrize(
    ("below", "above", "clear"),
    [
        pytest.param([5_000] * 4, [5_100] * 4, True, id="exact figures, apart"),
        pytest.param([5_000] * 3, [500_000] * 3, False, id="three shifts"),
        pytest.param([5_000] * 4, [500_000] * 3, False, id="three shifts of one"),
        pytest.param(AS_MEASURED, [each + 500_000 for each in AS_MEASURED], False, id="ranges touch"),
        pytest.param(AS_MEASURED, [2_900_000] * 4, False, id="apart by less than the spread"),
        pytest.param(AS_MEASURED, [2_940_000] * 4, True, id="apart by more than the spread"),
        pytest.param([20_000] * 4, AS_MEASURED, True, id="the spread of the other, 6.8 times below"),
        pytest.param([30_000] * 4, AS_MEASURED, False, id="the spread of the other, 4.57 times below"),
        pytest.param([5_000] * 4, [5_000] * 4, False, id="equal"),
    ],
)
def test_maxima_differ_only_by_more_than_the_shifts_move_them(below: list[int], above: list[int], clear: bool) -> None:
    one, other = spot(RT, "mmap", *below), spot(PLAIN, "mmap", *above)
    assert clearly_below(one, other) is clear
    assert not clearly_below(other, one)


def test_systems_are_ranked_by_the_loads_that_all_have_figures_for() -> None:
    found = comparison(
        *(spot(RT, "idle", 5_000), failed(RT, "dd", "the guest never spoke")),
        *(spot(PLAIN, "idle", 4_000), spot(PLAIN, "dd", 9_000)),
    )
    assert common_loads(found) == [load("idle")]
    assert [place.system for place in rank_systems(found)] == [PLAIN, RT]


def test_a_system_without_any_figure_hinders_nobody() -> None:
    found = comparison(failed(RT, "idle", "does not boot"), spot(PLAIN, "idle", 4_000))
    assert [place.system for place in rank_systems(found)] == [PLAIN]
    assert rank_systems(comparison(failed(RT, "idle", "does not boot"))) == []


def test_a_failed_cell_counts_more_than_an_invalid_one() -> None:
    invalid = spot(RT, "b", read({0: 5_000}, of=1, policy="other"))
    assert comparison(failed(RT, "a", "the guest never spoke"), invalid).exit_code == 2
    assert comparison(invalid).exit_code == 3


@pytest.mark.parametrize("told", ["", "0.6", "0.6 0.4 ", "0,6 0,4", "nan nan", "0.6 -0.4", "x" * 100])
def test_shares_that_are_none_are_left_out(told: str) -> None:
    shares = [each.share for each in read({1: 9_000}, told=(("cpu_shares", told),)).cpus]
    assert shares == [None]


FOUR = ({0: 9_000}, {0: 9_100}, {0: 9_200}, {0: 9_300})


@pytest.mark.parametrize(
    ("shifts", "of", "named"),
    [
        ([{1: 27_000 + at} for at in range(4)], 2, "1 of 2"),
        ([{0: 90_000 + at, 1: 5_000} for at in range(4)], 2, "0-1 of 2"),
        ([{0: 90_000 + at} for at in range(4)], 1, "0 of 1"),
    ],
    ids=["others", "some of them", "of a guest with fewer"],
)
def test_cells_on_other_processors_are_not_compared(shifts: list[dict[int, int]], of: int, named: str) -> None:
    found = comparison(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *shifts, of=of))
    assert not clearly_below(*found.spots)
    assert rank_systems(found) == []
    assert f"(debian-6.1-rt: 0 of 2; debian-6.1: {named})" in unlike_sentences(found)[0]


def test_cells_on_the_same_processors_are_compared_as_they_are() -> None:
    found = comparison(spot(RT, "idle", {0: 9_000, 1: 8_000}), spot(PLAIN, "idle", {0: 4_000, 1: 30_000}))
    assert unlike_sentences(found) == []
    assert [place.max_ns for place in rank_systems(found)] == [9_000, 30_000]


@pytest.mark.parametrize(
    ("boot", "cpus", "sentence"),
    [
        ("isolcpus=5", 2, "--boot isolcpus=5: the guest has 2 processors, numbers 0 to 1"),
        ("isolcpus=domain,managed_irq,2-3", 2, "--boot isolcpus=domain,managed_irq,2-3: the guest has 2 processors"),
        ("isolcpus=1", 1, "--boot isolcpus=1: the guest has 1 processor, number 0; --processors gives it more"),
        ("isolcpus=0-1", 2, "--boot isolcpus=0-1 isolates every processor of the guest"),
        ("nohz_full=0,1,2,3", 4, "--boot nohz_full=0,1,2,3 isolates every processor of the guest"),
    ],
)
def test_arguments_for_processors_that_a_guest_lacks_are_refused(boot: str, cpus: int, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence.replace("(", r"\(")):
        refuse_wrong_cpus(["", boot], cpus)


def test_other_arguments_are_left_to_the_kernel() -> None:
    refuse_wrong_cpus([ISOLATED, "rcu_nocbs=0-1 irqaffinity=0-1", "rcu_nocbs=all", "isolcpus=1-N", "isolcpus="], 2)


def test_measured_processors_have_one_form() -> None:
    assert [measured_cpus(text, 4) for text in (None, "1", "3,0-1", "0, 1,2")] == ["", "1", "0-1,3", "0-2"]
    assert measured_cpus("0", 1) == "0"
    assert measured_cpus(None, 2, "deadline") == ""


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--processors", "2", "--measured-cpus", "2"], "--measured-cpus 2: the guest has 2 processors, numbers"),
        (["--measured-cpus", "0-1"], "--measured-cpus 0-1: the guest has 1 processor, number 0; --processors"),
        (["--processors", "2", "--measured-cpus", "x"], "--measured-cpus: 'x' is not a list of CPUs"),
        (["--processors", "2", "--measured-cpus", "1-0"], "--measured-cpus: the CPU range '1-0' runs backwards"),
        (["--pace", "4"], "--pace is for guests with several processors, which take turns: give --processors as well"),
        (["--processors", "1", "--no-soakers"], "--no-soakers is for guests with several processors"),
        (["--processors", "9"], "Invalid value for '--processors': 9 is not in the range"),
        (["--processors", "2", "--qemu", " "], "Invalid value for '--qemu': it is empty: give system"),
        (["--processors", "2", "--load", "mmap@0,2"], "the load mmap@0,2 is bound to CPU 2, and the guests have"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence_before_anything_is_fetched(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtproof.lab.kernel_catalogue.resolve_kernel", lambda *_, **__: pytest.fail("fetched"))
    for command in (["compare"], ["check", "--kernel", "debian-6.1", "--max", "1ms"], ["profile", "akamina"]):
        assert main(["lab", *command, *words]) == 2
        assert_refused(capsys, sentence)


@pytest.mark.parametrize(
    ("measured", "limit_ns", "code", "where"),
    [
        ({0: 6_400}, 6_400, 0, "100 activations on processor 0 of 2 is "),
        ({1: 7_400}, 6_400, 1, "100 activations on processor 1 of 2 is "),
        ({0: 6_400, 1: 7_400}, 7_400, 0, "200 activations on processors 0-1 of 2 is "),
    ],
)
def test_a_check_judges_what_was_measured(
    measured: dict[int, int], limit_ns: int, code: int, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_kernel(comparison(spot(RT, "idle", measured)), limit_ns) == code
    assert capsys.readouterr().out.startswith(f"debian-6.1-rt, idle: the largest latency of {where}")
