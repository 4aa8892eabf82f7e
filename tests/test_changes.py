# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.compare.change_points import SHORTEST, change_p_value, mean_changes


def noise(seed: int, n: int = 80) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.random.default_rng(seed).standard_normal(n)


def energy(left: list[float], right: list[float]) -> float:
    """As Matteson and James write it, pair by pair."""
    n, m = len(left), len(right)
    across = sum(abs(x - y) for x in left for y in right)
    within = [
        sum(abs(side[i] - side[k]) for i in range(len(side)) for k in range(i)) / max(len(side) - 1, 1)
        for side in (left, right)
    ]
    return 2 / (n + m) * (across - m * within[0] - n * within[1])


def test_the_p_value_is_that_of_students_t_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(3)
    for left, right in ((1, 5), (3, 3), (30, 12), (40, 40)):
        a, b = generator.normal(0, 1, left), generator.normal(1, 2, right)
        assert change_p_value(a, b) == pytest.approx(stats.ttest_ind(a, b).pvalue, rel=1e-9)


def test_the_p_value_where_nothing_varies() -> None:
    one, two = np.ones(4), np.full(4, 2.0)
    assert (change_p_value(one, one), change_p_value(one, two), change_p_value(one[:1], two[:1])) == (1.0, 0.0, 1.0)


def test_the_place_is_where_the_energy_distance_is_largest_for_any_end() -> None:
    """One window and one change: the place by brute force over all splits of all beginnings."""
    series = noise(5, 24)
    series[14:] += 3
    values = [float(x) for x in series]
    pairs = [
        (energy(values[:at], values[at:end]), at)
        for at in range(SHORTEST, 24 - SHORTEST + 1)
        for end in range(at + SHORTEST, 25)
    ]
    (found,) = mean_changes(values)
    assert found.at == max(pairs)[1]
    assert (found.since, found.until) == (0, 24)
    assert found.before == pytest.approx(series[: found.at].mean())


def test_a_step_is_found_and_its_sides_are_told() -> None:
    series = noise(1)
    series[40:] += 2
    (found,) = mean_changes(list(series))
    assert abs(found.at - 40) <= 3
    assert found.after - found.before == pytest.approx(2, abs=0.6)
    assert found.p < 1e-4


def test_several_steps_in_several_windows() -> None:
    series = noise(2, 200)
    series[30:] += 3
    series[110:] -= 4
    series[170:] += 3
    places = [change.at for change in mean_changes(list(series))]
    assert len(places) == 3
    assert all(abs(place - true) <= 2 for place, true in zip(places, (30, 110, 170), strict=True))
    found = mean_changes(list(series))
    assert [change.since for change in found] == [0, *places[:-1]]
    assert [change.until for change in found] == [*places[1:], 200]


def test_noise_has_no_change() -> None:
    assert sum(bool(mean_changes(list(noise(seed)))) for seed in range(60)) <= 2


def test_one_run_that_is_off_is_no_change_wherever_it_is() -> None:
    for at in (0, 1, 40, 78, 79):
        series = noise(4)
        series[at] += 6
        assert mean_changes(list(series)) == ()


def test_sequences_without_noise_or_of_a_few_runs() -> None:
    assert mean_changes([1.0] * 40) == ()
    (found,) = mean_changes([1.0] * 20 + [2.0] * 20)
    assert (found.at, found.p) == (20, 0.0)
    assert mean_changes([]) == mean_changes([1.0]) == mean_changes([1.0, 2.0, 1.0, 2.0, 1.0]) == ()


def test_what_a_window_takes_for_a_change_is_weighed_on_the_whole() -> None:
    """A change that only just passes in a window goes where the sides of the whole sequence do not differ enough."""
    series = noise(6, 40)
    series[20:] += 1.2
    weak, strict = mean_changes(list(series), p=1e-2), mean_changes(list(series), p=1e-7)
    assert weak
    assert strict == ()
