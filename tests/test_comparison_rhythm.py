# SPDX-License-Identifier: Apache-2.0
"""A disturbance that comes every few runs makes no winner, and neither do copies of a run."""

from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import DAY_NS, FIRST_DAY, VALUES, latencies, run_of, side
from numpy.typing import NDArray

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding
from rtproof.compare.likeness import SeenRuns, drawn_order, is_interleaved, repeated_part
from rtproof.compare.run_metrics import RunFigures, figures_of_histogram
from rtproof.record.contents import Seconds
from rtproof.summary.counts import counts_of_values


@pytest.mark.parametrize("times", [2, 3, 5, 12])
def test_a_seed_draws_one_order_by_turns_that_does_not_repeat(times: int) -> None:
    orders = [drawn_order(times, seed) for seed in range(40)]
    assert orders == [drawn_order(times, seed) for seed in range(40)]
    assert all(is_interleaved(order) and not repeated_part(order) for order in orders)
    assert all(order.count("A") == order.count("B") == times for order in orders)
    assert len(set(orders)) >= (2 if times == 2 else 4)


@pytest.mark.parametrize(
    ("order", "part"), [("ABABAB", "AB"), ("ABBAABBAAB", "ABBA"), ("ABBA", ""), ("ABBABAAB", ""), ("AB", "")]
)
def test_the_part_that_an_order_repeats(order: str, part: str) -> None:
    assert repeated_part(order) == part


def measured(order: str, period: int, factor: float, b: float = 1.0, seed: int | None = None) -> Comparison:
    """Runs of B are slower by b, and every ``period``-th run of the series, from the first on, by a factor."""
    random = np.random.default_rng(5)
    sides: dict[str, list[RunFigures]] = {"A": [], "B": []}
    for at, name in enumerate(order):
        own = (b if name == "B" else 1) * (factor if at % period == 0 else 1) * np.exp(random.normal(0, 0.1))
        run = run_of(latencies(random, VALUES, own), f"run {at}")
        sides[name].append(replace(run, started_ns=(FIRST_DAY + at) * DAY_NS, order_seed=seed))
    return compare_sides(sides["A"], sides["B"])


def texts(said: Comparison) -> str:
    return "\n".join(text for _, text in said.sentences)


def test_a_rhythm_that_meets_one_side_alone_leaves_an_undrawn_order_open() -> None:
    said = measured("ABBA" * 7, 4, 3.0)
    assert said.finding is ComparisonFinding.OPEN
    assert all(effect.finding is not ComparisonFinding.B_BETTER for effect in said.effects)
    assert "open: every 4th run, from run 1 on, is slower than the other runs of its side, by a factor of" in texts(
        said
    )
    assert said.turns.rhythm.endswith(" 2.99 (50 %)")
    assert "measure again (rtproof run --abba draws the order)" in texts(said)


def test_a_rhythm_is_a_doubt_if_chance_drew_the_order() -> None:
    """The same runs: only the seed says that chance, and no rule, put the disturbed ones on one side."""
    said = measured("ABBA" * 7, 4, 3.0, seed=1)
    assert said.finding is ComparisonFinding.B_BETTER
    assert "\nevery 4th run, from run 1 on, is slower than the other runs of its side" in texts(said)
    assert "open:" not in texts(said)
    assert "in an order drawn from seed 1;" in texts(said)


def test_a_difference_that_no_rhythm_makes_stays() -> None:
    said = measured("ABBA" * 5, 4, 1.0, b=2.0)
    assert said.finding is ComparisonFinding.A_BETTER
    assert (said.turns.rhythm, said.turns.unseen) == ("", "")


def test_an_order_that_hides_a_rhythm_is_told() -> None:
    """In A B A B, a disturbance of every second run meets B alone, and no test can see that."""
    said = measured("AB" * 10, 4, 1.0, b=2.0)
    assert said.finding is ComparisonFinding.A_BETTER
    assert "the order A B repeats, and these runs cannot tell a disturbance of every 2nd run from" in texts(said)
    assert measured("AB" * 10, 4, 1.0, b=2.0, seed=3).turns.unseen == ""


def copied(runs: list[RunFigures]) -> list[RunFigures]:
    """As many runs as are given, each with the values of the first."""
    return [replace(run, counts=runs[0].counts, largest=runs[0].largest, seconds=runs[0].seconds) for run in runs]


def test_copies_of_a_run_are_one_run() -> None:
    said = compare_sides(copied(side(1, 5)), side(2, 5, factor=3))
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert (len(said.a.runs), len(said.b.runs), len(said.left_out)) == (1, 5, 4)
    assert "4 runs left out: the values are those of another run" in texts(said)
    assert "run 1.4 of A: it has the same values as run 1.0, so it is no further run" in texts(said)


def test_a_copy_on_the_other_side_is_told() -> None:
    a, b = side(1, 5), side(2, 5, factor=3)
    said = compare_sides(a, [*b, replace(copied([a[2], b[0]])[1], name="b copy")])
    assert [(one.side, one.run, one.why) for one in said.left_out] == [
        ("B", "b copy", "it has the same values as run 1.2, so it is no further run")
    ]


def seconds_of(values: NDArray[np.int64]) -> Seconds:
    each = np.full_like(values, 1_000)
    return Seconds(np.arange(values.size), each, np.zeros_like(each), values)


@pytest.mark.parametrize(("levels", "n", "per_s"), [(2, 3_000, 100), (4, 10_000, 100), (2, 1_000, 1_000)])
def test_short_runs_of_a_coarse_clock_are_no_copies(levels: int, n: int, per_s: int) -> None:
    """Of 20 independent runs of whole microseconds, up to 16 were left out."""
    rng = np.random.default_rng(n)
    every = list(rng.binomial(levels, 0.05 if per_s < n else 0.3, (20, n)) * 1_000 + 3_000)
    runs = [
        replace(each, counts=counts_of_values(values), seconds=seconds_of(values.reshape(-1, per_s).max(1)))
        for each, values in zip(side(1, 20), every, strict=True)
    ]
    assert [one.why for one in compare_sides(runs[:10], runs[10:]).left_out] == []


def test_runs_in_virtual_time_are_alike_by_design() -> None:
    virtual = [replace(run, facts={**run.facts, "virtual time": "QEMU"}) for run in (*side(1, 5), *side(2, 5))]
    said = compare_sides(copied(virtual[:5]), copied(virtual[5:]))
    assert (len(said.a.runs), len(said.b.runs), said.left_out) == (5, 5, ())
    assert "not judged: the runs are deterministic" in texts(said)


def test_runs_without_any_scatter_are_not_judged() -> None:
    """They are no copies, as each has some more values. Yet every figure is the same in all runs of a side."""
    sides = []
    for seed, value in enumerate((10_000, 30_000)):
        every = [np.repeat([value, 2 * value], [980 + more, 20]) for more in range(5)]
        runs = [figures_of_histogram(f"{value} {at}", counts_of_values(one), {}) for at, one in enumerate(every)]
        sides.append([replace(run, started_ns=(FIRST_DAY + at) * DAY_NS + seed) for at, run in enumerate(runs)])
    said = compare_sides(sides[0], sides[1])
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert "not judged: the runs of each side do not differ at all" in texts(said)


@pytest.mark.filterwarnings("error")
def test_runs_beyond_the_end_of_their_histogram_are_no_copies() -> None:
    """They have no counts that could differ."""
    none = counts_of_values(np.zeros(0, np.int64))
    beyond = [replace(each, counts=none, overflow=100, largest=None, seconds=None) for each in side(1, 2)]
    known = SeenRuns()
    assert [known.copied_by(run) for run in beyond] == ["", ""]
