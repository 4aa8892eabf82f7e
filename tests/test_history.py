# SPDX-License-Identifier: Apache-2.0
"""Where the latency of a system changed. Runs that resemble their neighbours are no changes."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from history_cases import DAY, invalid, run, stepped

from rtproof.compare.change_points import (
    SHORTEST,
    change_p_value,
    mean_changes,
    neighbour_correlation,
    slow_drift,
    visible_step,
)
from rtproof.compare.history import (
    BY_NAME,
    FEWEST,
    MARGIN,
    FactChange,
    analyse_history,
    condition_changes,
    fact_changes,
)
from rtproof.compare.run_metrics import NO_CLOCK, RunFigures
from rtproof.report.blocks import Text
from rtproof.report.pages import comparison_page
from rtproof.report.pages.history_page import history_title
from rtproof.summary.counts import counts_of_values


def autoregressive(phi: float, seed: int, n: int = 80) -> list[float]:
    """Deviation 1."""
    series = np.random.default_rng(seed).standard_normal(n)
    for at in range(1, n):
        series[at] = phi * series[at - 1] + np.sqrt(1 - phi * phi) * series[at]
    return [float(one) for one in series]


def histories(phi: float, times: int = 40) -> Iterator[list[float]]:
    return (autoregressive(phi, 1_000 + seed) for seed in range(times))


def half_noise(seed: int, n: int) -> list[float]:
    """Half of the variance is a slow wander of AR 0.9, and half is independent."""
    noise = np.random.default_rng(10_000 + seed).standard_normal(n)
    return [float(one) for one in (np.array(autoregressive(0.9, seed, n)) + noise) / math.sqrt(2)]


@pytest.mark.parametrize("runs", [20, 50, 200])
def test_runs_that_wander_are_hardly_ever_a_change(runs: int) -> None:
    """Of AR 0.9 at most 5 %, and with half of it independent at most 10 %, and two standard errors (benchmark 12)."""
    times = 60 if runs == 200 else 150
    wander = np.mean([bool(mean_changes(autoregressive(0.9, seed, runs))) for seed in range(times)])
    half = np.mean([bool(mean_changes(half_noise(seed, runs))) for seed in range(times)])
    assert wander <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / times)
    assert half <= 0.10 + 2 * math.sqrt(0.10 * 0.90 / times)


@pytest.mark.parametrize("runs", [20, 50, 200])
def test_half_as_late_again_is_found_in_runs_that_wander(runs: int) -> None:
    """The runs of one system differ by a factor of 1.13, as the medians of 24 runs did (one standard deviation)."""
    step, middle = math.log(1.5) / math.log(1.13), runs // 2
    shifted = [np.array(half_noise(seed, runs)) + step * (np.arange(runs) >= middle) for seed in range(40)]
    found = [any(abs(at - middle) <= 3 for at, _ in mean_changes(one.tolist())) for one in shifted]
    assert np.mean(found) >= 0.7


@pytest.mark.parametrize("runs", [20, 50, 200])
def test_runs_that_wander_hardly_ever_drift(runs: int) -> None:
    """Of 1,000 histories of each kind and length at most 0.014."""
    times = 60 if runs == 200 else 150
    for wander in (autoregressive, lambda _, seed, n: half_noise(seed, n)):
        drifts = np.mean([slow_drift(wander(0.9, seed, runs)) is not None for seed in range(times)])
        assert drifts <= 0.02 + 2 * math.sqrt(0.02 * 0.98 / times)


def test_a_slow_drift_is_told() -> None:
    """Each run x1.02 of the one before: after 60 runs x3.2, and no change was noticed."""
    found = analyse_history([run(n, factor=1.02**n) for n in range(60)])
    (sequence,) = found.sequences
    assert sequence.places == ()
    assert sequence.metrics[0].drift_ratio == pytest.approx(1.02**59, rel=0.15)
    assert "0 changes of latency, a slow drift" in history_title(found)
    assert not any(metric.drift for metric in analyse_history([run(n) for n in range(60)]).sequences[0].metrics)
    assert analyse_history(stepped()).sequences[0].metrics[0].drift is None


def test_copies_of_a_run_are_one_run() -> None:
    """Forty of them had no change, and the next one of 5 % was to be noticed."""
    first = run(0)
    copies = [replace(first, name=f"copy {n}", run_id=f"{n + 99:032x}", started_ns=n * DAY) for n in range(40)]
    found = analyse_history([first, *copies])
    assert found.runs == 1
    assert {one.why for one in found.left_out} == {"it has the same values as run 00, so it is no further run"}
    one_value = counts_of_values(np.full(10, 5_000))
    assert analyse_history([replace(each, counts=one_value) for each in copies]).runs == 40


HOUR = DAY // 24


@pytest.mark.parametrize(
    ("boot_h", "start_h", "said"),
    [
        ([0] * 4, [1, 2, 3, 4], ""),
        ([0, 0, 5, 5], [1, 4, 6, 7], ""),
        ([0, 0, 1, 1], [2, 3, 4, 5], ""),
        ([10, 10, 4, 4], [11, 12, 7, 11.5], "run 01 began after run 03 by the clock"),
        (
            [0, 0, 0, -2],
            [9, 10, 11, 9.5],
            "run 01 began after run 03 by the clock, and before it by the time since boot",
        ),
        ([0, -90, 0, -90], [1, 2, 3, 4], "run 02 began after run 01 by the clock"),
        ([0] * 4, [1, 2, 2, 2], "2 runs began at the same time as another one"),
    ],
)
def test_a_clock_that_jumped_is_told(boot_h: list[int], start_h: list[float], said: str) -> None:
    runs = [
        replace(run(n), booted_ns=DAY + boot * HOUR, started_ns=DAY + int(start * HOUR))
        for n, (boot, start) in enumerate(zip(boot_h, start_h, strict=True))
    ]
    found = analyse_history(runs)
    assert [said in one for one in found.order] == [True] * bool(said), found.order
    assert not analyse_history(runs, by_name=True).order


def test_a_step_within_the_margin_is_no_change() -> None:
    """Values without noise, so that any step is more than chance: x1.00 is no change, and x1.04 is none."""
    for ratio, changes in ((1.000001, 0), (1.04, 0), (1.049, 0), (1.06, 1), (1.5, 1)):
        series = [0.0] * 20 + [math.log(ratio)] * 20
        assert len(mean_changes(series, margin=math.log1p(MARGIN))) == changes, ratio


def test_the_correlation_is_known_roughly_also_across_a_step() -> None:
    for phi in (0.0, 0.6, 0.8):
        for step in (0.0, 3.0, 20.0):
            shifted = [np.array(one) + step * (np.arange(80) >= 33) for one in histories(phi)]
            found = np.mean([neighbour_correlation(one.tolist()) for one in shifted])
            assert abs(found - phi) < 0.2, (phi, step)


def test_a_change_is_found_with_its_ratio_and_the_fact_that_changed_with_it() -> None:
    (sequence,) = analyse_history(stepped()).sequences
    (place,) = sequence.places
    assert abs(place.at - 25) <= 1
    keys = {found.metric for found in place.found}
    assert {"p50", "p99", "p99.9", "second_maxima"} <= keys
    (middle,) = (found for found in place.found if found.metric == "p50")
    assert middle.ratio == pytest.approx(1.5, rel=0.1)
    assert middle.runs == (0, 40)
    assert [(fact.key, fact.before, fact.after, fact.at) for fact in place.facts] == [
        ("kernel release", "6.1", "6.12", 25)
    ]
    assert place.facts[0].steady


def test_the_order_is_that_of_the_start_and_not_of_the_names() -> None:
    runs = stepped()
    mixed = random.Random(1).sample(runs, len(runs))
    assert analyse_history(mixed) == analyse_history(runs)
    assert [place.at for place in analyse_history(mixed, by_name=True).sequences[0].places] != [25]


def test_without_a_change_it_says_what_could_be_seen() -> None:
    (sequence,) = analyse_history([run(n) for n in range(30)]).sequences
    assert sequence.places == ()
    assert sequence.judged
    (middle,) = (metric for metric in sequence.metrics if metric.key == "p50")
    assert middle.noise is not None
    assert middle.visible == pytest.approx(math.exp(middle.margin + visible_step(30) * middle.noise))
    assert 1.01 < (middle.run_factor or 0) < 1.1


def test_fewer_runs_than_needed_are_not_judged() -> None:
    (sequence,) = analyse_history(stepped(count=FEWEST - 1, at=9, factor=5)).sequences
    assert not sequence.judged
    assert all(f"{FEWEST} are needed" in metric.why for metric in sequence.metrics)
    assert sequence.places == ()
    assert all(ln is not None for ln in sequence.metrics[0].values)


def test_metric_that_some_runs_lack_is_judged_on_the_others() -> None:
    runs = stepped()
    runs[3] = run(3, values=500)
    (sequence,) = analyse_history(runs).sequences
    (tail,) = (metric for metric in sequence.metrics if metric.key == "p99.9")
    assert tail.values[3] is None
    assert 3 not in tail.places
    assert any(found.metric == "p99.9" and abs(found.at - 25) <= 1 for found in sequence.places[0].found)


def test_runs_that_measured_nothing_or_twice_are_left_out_and_named() -> None:
    runs = stepped()
    given = [*runs, invalid(run(90)), runs[7], replace(run(91), started_ns=None), run(92, values=0)]
    found = analyse_history(given)
    assert found.runs == 40
    why = {one.run: one.why for one in found.left_out}
    assert why["run 90"] == "INVALID: the load was dead"
    assert "same run as run 07" in why["run 07"]
    assert "when it was measured" in why["run 91"]
    assert "no value" in why["run 92"]


def test_runs_whose_clock_was_not_set_are_left_out_and_told_in_one_sentence() -> None:
    unset = [replace(run(90 + n), started_ns=None, unclear=(NO_CLOCK,)) for n in range(6)]
    found = analyse_history([*stepped(), *unset])
    assert found.runs == 40
    (told,) = comparison_page.left_out_rows([("", one.run, one.why) for one in found.left_out], ())
    assert isinstance(told, Text)
    assert told.paragraphs == (f"Left out: run 90, run 91, run 92 and 3 more runs: {NO_CLOCK}{BY_NAME}",)
    assert analyse_history([*stepped(), *unset], by_name=True).runs == 46


def test_runs_that_measured_otherwise_are_a_sequence_of_their_own() -> None:
    """Every other run has another period, which is no change."""
    runs = [run(n, facts={"period": "1ms"}) if n % 2 else run(n, 3.0, facts={"period": "2ms"}) for n in range(60)]
    found = analyse_history(runs)
    assert {one.name for one in found.sequences} == {"period 1ms", "period 2ms"}
    assert [len(one.runs) for one in found.sequences] == [30, 30]
    assert [one.places for one in found.sequences] == [(), ()]


def test_changes_apart_are_places_apart() -> None:
    runs = [run(n, 1.0 if n < 15 else 2.0 if n < 30 else 1.0) for n in range(45)]
    (sequence,) = analyse_history(runs).sequences
    assert [abs(place.at - true) <= 1 for place, true in zip(sequence.places, (15, 30), strict=True)] == [True, True]
    assert sequence.places[1].facts == ()


def test_runs_in_virtual_time_have_no_change_by_chance() -> None:
    real = stepped()
    assert analyse_history(real).sequences[0].places
    virtual = [replace(each, facts={**each.facts, "virtual time": "QEMU"}) for each in real]
    (found,) = analyse_history(virtual).sequences
    assert found.places == ()
    assert all(metric.changes == () and metric.noise is None for metric in found.metrics)
    assert all("the runs are deterministic (virtual time)" in metric.why for metric in found.metrics)
    assert [metric.values for metric in found.metrics] == [
        metric.values for metric in analyse_history(real).sequences[0].metrics
    ]


def test_a_fact_that_a_run_does_not_tell_is_no_change() -> None:
    letters = {"governor": "aa--abb-", "/sys/class/thermal/zone0/temp": "12345678"}
    some = [
        run(n, values=10, facts={key: told[n] for key, told in letters.items() if told[n] != "-"}) for n in range(8)
    ]
    assert condition_changes(some) == (FactChange("governor", "a", "b", 5),)


def test_what_a_reader_asks_for_first_comes_first() -> None:
    one = {"priority": "1", "kernel release": "6.1", "policy": "fifo", "firmware version": "1.0"}
    other = {"priority": "2", "kernel release": "6.2", "policy": "other", "firmware version": "1.1"}
    found = condition_changes([run(0, values=10, facts=one), run(1, values=10, facts=other)])
    assert [change.key for change in found] == ["policy", "kernel release", "firmware version", "priority"]


def runs(**texts: str) -> list[RunFigures]:
    """Ten runs; each fact has a letter for each of them."""
    return [
        run(n, values=10, facts={key.replace("_", " "): letters[n] for key, letters in texts.items()})
        for n in range(10)
    ]


def found(at: int, since: int = 0, until: int = 10, **texts: str) -> list[tuple[str, str, str, int, bool]]:
    changes = fact_changes(runs(**texts), since, at, until)
    return [(one.key, one.before, one.after, one.at, one.steady) for one in changes]


def test_a_fact_that_changes_nearby_is_told_and_what_is_known_to_matter_comes_first() -> None:
    assert found(5, governor="aaaaaabbbb") == [("governor", "a", "b", 6, True)]
    assert found(5, governor="abbbbbbbbb", machine="xxxxxxxxxx") == [], "far away, or never"
    assert found(5, since=4, governor="aaabbbbbbb") == [], "in another stretch"
    order = found(5, unheard_of="aaaaabbbbb", kernel_release="aaaaabbbbb", preemption_model="aaaaabbbbb")
    assert [each[0] for each in order] == ["preemption model", "kernel release", "unheard of"]


@pytest.mark.parametrize("runs", [20, 40, 80, 150])
def test_a_step_of_that_size_is_found_about_nine_times_of_ten(runs: int) -> None:
    generator = np.random.default_rng(runs)
    found = 0
    for _ in range(200):
        series = generator.standard_normal(runs)
        series[runs // 2 :] += visible_step(runs)
        found += bool(mean_changes(list(series)))
    assert 0.82 <= found / 200 <= 0.98, "200 histories have a standard error of 0.02"


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
    ((at, _),) = mean_changes(values)
    assert at == max(pairs)[1]


def test_several_steps_in_several_windows() -> None:
    series = noise(2, 200)
    series[30:] += 3
    series[110:] -= 4
    series[170:] += 3
    places = [at for at, _ in mean_changes(list(series))]
    assert len(places) == 3
    assert all(abs(place - true) <= 2 for place, true in zip(places, (30, 110, 170), strict=True))


def test_noise_has_no_change() -> None:
    assert sum(bool(mean_changes(list(noise(seed)))) for seed in range(60)) <= 2


def test_one_run_that_is_off_is_no_change_wherever_it_is() -> None:
    for at in (0, 1, 40, 78, 79):
        series = noise(4)
        series[at] += 6
        assert mean_changes(list(series)) == ()


def test_sequences_without_noise_or_of_a_few_runs() -> None:
    assert mean_changes([1.0] * 40) == ()
    ((at, p),) = mean_changes([1.0] * 20 + [2.0] * 20)
    assert at == 20
    assert p < 1e-99
    assert mean_changes([]) == mean_changes([1.0]) == mean_changes([1.0, 2.0, 1.0, 2.0, 1.0]) == ()


def test_what_a_window_takes_for_a_change_is_weighed_on_the_whole() -> None:
    """A change that only just passes in a window goes where the sides of the whole sequence do not differ enough."""
    series = noise(6, 40)
    series[20:] += 1.2
    weak, strict = mean_changes(list(series), p=1e-2), mean_changes(list(series), p=1e-7)
    assert weak
    assert strict == ()
