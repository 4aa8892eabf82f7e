# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import SECOND, block, record
from forecast_cases import SLOW, long_run

from rtproof.judge.analyse import analyse
from rtproof.tail.forecast_model import TailUnits, tail_units


def of(*largest: int, measured_ns: int = SECOND) -> TailUnits:
    return TailUnits(np.arange(len(largest)), np.array(largest), measured_ns)


def test_the_largest_of_each_second_over_all_threads() -> None:
    series = [SLOW, replace(SLOW, id=1, thread=1)]
    run = record([block([5, 1, 9], series=series[0]), block([4, 7, 2], series=series[1])], series)
    units = tail_units(analyse(run, None, 1).pooled)
    assert units.largest_ns.tolist() == [5, 7, 9]
    assert (units.count, units.measured_ns, units.unit_ns) == (3, 3 * SECOND, SECOND)


def test_a_second_in_which_nothing_ran_is_no_unit() -> None:
    largest = np.array([1, 3 * SECOND, 5, 2], np.int64)
    run = record([block(largest.tolist(), {1: 2}, series=SLOW)], (SLOW,))
    units = tail_units(analyse(run, None, 1).pooled)
    assert units.second.tolist() == [0, 1, 4, 5]
    assert units.unit_ns == 1.5 * SECOND


@pytest.mark.parametrize(
    ("largest", "step"),
    [((5_000, 7_000, 12_000), 2_000), ((3, 3, 3), 1), ((41, 83, 125, 166), 41), ((7, 8, 5_000), 1), ((), 1)],
)
def test_the_step_of_the_clock_is_the_least_distance(largest: tuple[int, ...], step: int) -> None:
    assert of(*largest).step_ns == step


def test_counts_and_probabilities() -> None:
    units = of(5, 9, 5, measured_ns=30 * SECOND)
    assert (units.counts.lo.tolist(), units.counts.n.tolist()) == ([5, 9], [2, 1])
    assert units.unit_ns == 10 * SECOND
    assert tail_units(analyse(long_run(np.array([4])), None, 1).pooled).largest_ns.tolist() == [4]
