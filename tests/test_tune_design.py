# SPDX-License-Identifier: Apache-2.0
"""Designs of a tuning, and the effects that follow from their runs."""

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.tune import design
from rtproof.tune.effects import LEAST_DEVIATION, Effect, chosen, factorial, screened

HADAMARD_SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48)


@pytest.mark.parametrize("size", HADAMARD_SIZES)
def test_the_rows_and_columns_of_a_matrix_are_orthogonal(size: int) -> None:
    matrix = design.hadamard(size)
    for rows in (matrix, list(zip(*matrix, strict=True))):
        for a, b in product(range(size), repeat=2):
            assert sum(x * y for x, y in zip(rows[a], rows[b], strict=True)) == (size if a == b else 0)
    assert all(row[0] == 1 for row in matrix)


@pytest.mark.parametrize("size", [3, 6, 92])
def test_a_size_without_a_construction_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"no Hadamard matrix of {size} rows"):
        design.hadamard(size)


@pytest.mark.parametrize("knobs", [0, design.MOST_KNOBS + 1])
def test_a_screening_of_no_or_too_many_knobs_is_refused(knobs: int) -> None:
    with pytest.raises(ValueError, match="a screening has 1 to"):
        design.screening(knobs, random.Random(1))


@given(st.integers(1, design.MOST_KNOBS), st.integers(0, 2**32))
def test_a_screening_separates_every_knob_from_every_other(knobs: int, seed: int) -> None:
    pairs = design.screening(knobs, random.Random(seed))
    assert len(pairs) == design.screening_pairs(knobs) >= knobs + design.SPARE_PAIRS + 1
    assert all(second == tuple(not on for on in first) for first, second in pairs)
    effects = [(-1) ** knob * (knob + 1.0) for knob in range(knobs)]
    runs = [[sum(e for e, on in zip(effects, positions, strict=True) if on) for positions in pair] for pair in pairs]
    found = screened(pairs, [a - b for a, b in runs])
    assert [one.ln for one in found] == pytest.approx(effects)
    least = LEAST_DEVIATION * math.sqrt(2 / len(pairs))  # no scatter at all is not believed
    assert all(one.deviation > 0.99 * least and one.freedom == len(pairs) - knobs - 1 for one in found)


@given(st.integers(0, 2**32))
def test_what_two_knobs_do_together_does_not_disturb_a_third(seed: int) -> None:
    pairs = design.screening(5, random.Random(seed))
    runs = [[3.0 * (positions[0] == positions[1]) for positions in pair] for pair in pairs]
    assert [one.ln for one in screened(pairs, [a - b for a, b in runs])] == pytest.approx([0] * 5)


def test_what_the_second_run_of_a_pair_has_in_common_is_no_effect() -> None:
    pairs = design.screening(3, random.Random(7))
    assert [one.ln for one in screened(pairs, [5.0] * len(pairs))] == pytest.approx([0] * 3)


def test_too_few_pairs_or_blocks_are_refused() -> None:
    pairs = design.screening(3, random.Random(7))
    with pytest.raises(ValueError, match="4 pairs of runs are too few for 3 knobs"):
        screened(pairs[:4], [0.0] * 4)
    with pytest.raises(ValueError, match="two blocks"):
        factorial([{(False,): 1.0, (True,): 2.0}])
    with pytest.raises(ValueError, match="two blocks"):
        factorial([{(False,): 1.0, (True,): 2.0}, {(False,): 1.0}])


def test_each_block_of_a_factorial_has_every_setting_once() -> None:
    order = design.factorial_blocks(3, random.Random(3))
    blocks = [next(order) for _ in range(5)]
    assert all(sorted(block) == sorted(product((False, True), repeat=3)) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1


def test_the_intervals_of_the_effects_cover_the_truth_as_often_as_they_say() -> None:
    missed = [0, 0]
    for seed in range(400):
        drawn = random.Random(seed)
        pairs = design.screening(6, drawn)
        runs = [[0.5 * positions[0] + drawn.gauss(0, 1) for positions in pair] for pair in pairs]
        for knob, effect in enumerate(screened(pairs, [a - b for a, b in runs])):
            low, high = effect.interval(0.05)
            missed[0] += not low <= (0.5 if knob == 0 else 0) <= high
        blocks = [
            {setting: 0.5 * setting[0] + drawn.gauss(0, 1) for setting in product((False, True), repeat=2)}
            for _ in range(6)
        ]
        low, high = factorial(blocks).difference((True, False), (False, False)).interval(0.05)
        missed[1] += not low <= 0.5 <= high
    assert 0.03 < missed[0] / 2400 < 0.07
    assert 0.025 < missed[1] / 400 < 0.08


def test_a_block_that_is_slow_as_a_whole_does_not_count() -> None:
    drawn = random.Random(5)
    blocks = [
        {setting: slow - 0.3 * setting[0] + drawn.gauss(0, 0.05) for setting in product((False, True), repeat=2)}
        for slow in (0, 3, -2, 5, 1, 2)
    ]
    assert factorial(blocks).deviation < 0.1
    assert chosen(factorial(blocks), 0.05) == (0,)


def noiseless(truth: dict[tuple[bool, ...], float]) -> tuple[int, ...] | None:
    drawn = random.Random(9)
    blocks = [{setting: ln + drawn.gauss(0, 0.01) for setting, ln in truth.items()} for _ in range(6)]
    return chosen(factorial(blocks), 0.05)


SETTINGS = list(product((False, True), repeat=3))


@pytest.mark.parametrize(
    ("truth", "kept"),
    [
        (lambda s: 0.0, None),
        (lambda s: 0.4 * s[0], None),
        (lambda s: -0.4 * s[1], (1,)),
        (lambda s: -0.4 * s[0] - 0.2 * s[2], (0, 2)),
        (lambda s: -0.4 * (s[0] and s[2]), (0, 2)),
        (lambda s: -0.4 * (s[0] or s[2]), None),
        (lambda s: -0.4 * s[0] + 0.3 * s[1], (0,)),
        (lambda s: -0.2 * s[0] - 0.2 * s[1] - 0.2 * s[2], (0, 1, 2)),
    ],
    ids=["nothing", "hurts", "one", "two", "only together", "either", "helps and hurts", "all"],
)
def test_the_knobs_that_are_missed_are_kept(truth, kept) -> None:  # type: ignore[no-untyped-def]
    found = noiseless({setting: float(truth(setting)) for setting in SETTINGS})
    if kept is None and truth((True, False, False)) < 0:  # Either of two will do: one of them is enough.
        assert found is not None
        assert len(found) == 1
    else:
        assert found == kept


def test_an_effect_is_judged_by_its_whole_interval() -> None:
    effect = Effect(-0.5, 0.2, 10)
    low, high = effect.interval(0.05)
    assert low < -0.5 < high < 0
    assert effect.falls(0.05)
    assert not effect.falls(0.01)
    assert math.isclose(low + high, -1)
