# SPDX-License-Identifier: Apache-2.0
"""A comparison in all its forms: what it says, in which order, and that it never says it without its label."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import block, fact, record
from lab_cases import PLAIN, RT, load

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
)
from rtproof.record.contents import Moment

N = 200


def read(largest_ns: int, policy: str = "fifo", missed: int = 0) -> CellReading:
    values = np.full(N, 3_900)
    values[N // 2] = largest_ns
    facts = (fact("policy", "fifo"), fact("policy", policy, Moment.START, 0))
    ran = block(values.tolist(), {N // 2: missed} if missed else None)
    return reading_of_analysis(analyse(record([ran], facts=facts), None, 1), "none")


Column = tuple[GuestSystem, Mapping[str, list[int] | str | CellReading]]


def comparison(*columns: Column, shifts: int = 1) -> KernelComparison:
    """Per system and load: the largest latency of each shift, or why it failed, or a reading."""
    names = list(dict.fromkeys(name for _, cells in columns for name in cells))
    spots = tuple(_spot(each, name, cells[name]) for name in names for each, cells in columns)
    systems = tuple(each for each, _ in columns)
    return KernelComparison(
        systems, tuple(map(load, names)), CellSetting(), shifts, spots, CellCost(8.0, 4.0), 3, 1, 5.0
    )


def _spot(each: GuestSystem, name: str, cell: list[int] | str | CellReading) -> SystemUnderLoad:
    if isinstance(cell, str):
        return SystemUnderLoad(each, load(name), (), (cell,))
    return SystemUnderLoad(each, load(name), (cell,) if isinstance(cell, CellReading) else tuple(map(read, cell)))


def test_like_figures_are_not_ranked_as_clear() -> None:
    found = comparison(
        (RT, {"idle": [5_000, 5_100, 5_000, 5_200], "mmap": [6_400] * 4}),
        (PLAIN, {"idle": [5_100] * 4, "mmap": [704_000] * 4}),
        shifts=4,
    )
    assert [each.name for each in loads_clearly_won(found, rank_systems(found)[0])] == ["mmap"]
    assert loads_clearly_won(found, rank_systems(found)[1]) == []


FOUR = [137_000, 271_000, 464_000, 634_000]
"""Four shifts of one cell, as they were measured."""


@pytest.mark.parametrize(
    ("below", "above", "clear"),
    [
        pytest.param([5_000] * 4, [5_100] * 4, True, id="exact figures, apart"),
        pytest.param([5_000] * 3, [500_000] * 3, False, id="three shifts"),
        pytest.param([5_000] * 4, [500_000] * 3, False, id="three shifts of one"),
        pytest.param(FOUR, [each + 500_000 for each in FOUR], False, id="ranges touch"),
        pytest.param(FOUR, [2_900_000] * 4, False, id="apart by less than the spread"),
        pytest.param(FOUR, [2_940_000] * 4, True, id="apart by more than the spread"),
        pytest.param([20_000] * 4, FOUR, True, id="the spread of the other, 6.8 times below"),
        pytest.param([30_000] * 4, FOUR, False, id="the spread of the other, 4.57 times below"),
        pytest.param([5_000] * 4, [5_000] * 4, False, id="equal"),
    ],
)
def test_maxima_differ_only_by_more_than_the_shifts_move_them(below: list[int], above: list[int], clear: bool) -> None:
    one, other = _spot(RT, "mmap", below), _spot(PLAIN, "mmap", above)
    assert clearly_below(one, other) is clear
    assert not clearly_below(other, one)


def test_systems_are_ranked_by_the_loads_that_all_have_figures_for() -> None:
    found = comparison(
        (RT, {"idle": [5_000], "dd": "the guest never spoke"}), (PLAIN, {"idle": [4_000], "dd": [9_000]})
    )
    assert common_loads(found) == [load("idle")]
    assert [place.system for place in rank_systems(found)] == [PLAIN, RT]


def test_a_system_without_any_figure_hinders_nobody() -> None:
    found = comparison((RT, {"idle": "does not boot"}), (PLAIN, {"idle": [4_000]}))
    assert [place.system for place in rank_systems(found)] == [PLAIN]
    assert rank_systems(comparison((RT, {"idle": "does not boot"}))) == []


def test_a_failed_cell_counts_more_than_an_invalid_one() -> None:
    found = comparison((RT, {"a": "the guest never spoke", "b": read(5_000, "other")}))
    assert found.exit_code == 2
    assert replace(found, spots=found.spots[1:]).exit_code == 3
