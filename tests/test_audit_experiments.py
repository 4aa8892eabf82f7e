# SPDX-License-Identifier: Apache-2.0
"""What the user's own runs say of the advice of a check."""

from collections.abc import Mapping
from dataclasses import replace

import compared_runs
import pytest
from audit_checks import COUNT, LOUD, SPEED, THP, audited, few_checks
from report_cases import whole_record

from rtproof.audit.audit_model import OwnExperiment
from rtproof.audit.setup_changes import Setup, setup_of
from rtproof.compare.advice_experiments import own_experiments
from rtproof.compare.run_metrics import RunFigures

__all__ = ["few_checks"]
pytestmark = pytest.mark.usefixtures("few_checks")
BASE = whole_record(1, 30)
SLOW = SPEED.replace("*", "0")


def setup(**files: str) -> Setup:
    paths = {"thp": THP, "slow": SLOW, "loud": LOUD, "count": COUNT}
    return setup_of(audited(BASE, {paths[name]: f"{text}\n" for name, text in files.items()}))


def side(first: int, found: Setup, factor: float = 1.0, n: int = 5) -> list[RunFigures]:
    return [replace(run, setup=found) for run in compared_runs.side(first, n, factor, load="idle")]


def saying(runs: list[RunFigures], key: str, text: str) -> list[RunFigures]:
    """The runs with another text of a fact."""
    return [replace(run, facts={**run.facts, key: text}) for run in runs]


def only(found: Mapping[str, tuple[OwnExperiment, ...]], check: str = "memory.thp") -> OwnExperiment:
    assert list(found) == [check]
    (one,) = found[check]
    return one


def test_runs_that_are_better_with_the_advice_agree() -> None:
    told = only(own_experiments([*side(0, setup()), *side(5, setup(thp="always"), 2.0)]))
    assert not told.contradicts
    assert told.sentence.startswith("Your own runs agree: ")
    assert "0.5" in told.sentence
    assert "times as large (95 % interval 0." in told.sentence
    assert "5 runs with the advice, 5 without it" in told.sentence


def test_too_few_runs_do_not_decide() -> None:
    told = only(own_experiments([*side(0, setup(), n=3), *side(5, setup(thp="always"), 2.0, n=3)]))
    assert told.sentence.startswith("Your own runs do not decide it: 5 runs of each are needed (3 runs with")


def test_runs_that_were_not_taken_by_turns_do_not_decide() -> None:
    later = [replace(run, started_ns=(run.started_ns or 0) * 2) for run in side(5, setup(thp="always"), 2.0)]
    told = only(own_experiments([*side(0, setup()), *later]))
    assert "not taken by turns" in told.sentence
    assert not told.contradicts


@pytest.mark.parametrize(
    ("factors", "said", "contradicts"),
    [((1.0, 3.0), "agree", False), ((3.0, 1.0), "contradict this", True), ((1.0, 1.0), "show no clear effect", False)],
)
def test_runs_in_virtual_time_are_compared_by_their_ranges(
    factors: tuple[float, float], said: str, contradicts: bool
) -> None:
    runs = [*side(0, setup(), factors[0], n=4), *side(5, setup(thp="always"), factors[1], n=4)]
    told = only(own_experiments(saying(runs, "virtual time", "QEMU")))
    assert told.sentence.startswith(f"Your own runs in virtual time {said}: the largest latency is ")
    assert "there is no interval" in told.sentence
    assert told.contradicts is contradicts
    few = only(own_experiments(saying([*runs[:3], *runs[4:]], "virtual time", "QEMU")))
    assert "show no clear effect" in few.sentence


def test_runs_that_differ_in_two_checks_are_no_experiment() -> None:
    assert own_experiments([*side(0, setup()), *side(5, setup(thp="always", slow="slow"), 2.0)]) == {}


def test_a_setting_that_differs_as_well_is_named() -> None:
    """With transparent huge pages the kernel keeps more memory free, for example."""
    told = only(own_experiments([*side(0, setup(loud="4")), *side(5, setup(thp="always", loud="7"), 2.0)]))
    assert told.sentence.startswith("Your own runs agree")
    assert told.sentence.endswith(f" Besides, {LOUD} differs.")


def test_of_three_groups_only_the_pairs_that_differ_in_one_check_count() -> None:
    runs = [
        *side(0, setup()),
        *side(5, setup(thp="always"), 2.0),
        *side(10, setup(thp="always", slow="slow"), 2.0),
    ]
    found = own_experiments(runs)
    assert set(found) == {"memory.thp", "power.speed"}
    assert found["memory.thp"][0].sentence.startswith("Your own runs agree")
    assert found["power.speed"][0].sentence.startswith("Your own runs show no clear effect")


def test_a_setting_that_leaves_the_outcome_as_it_is_says_nothing_of_the_advice() -> None:
    assert own_experiments([*side(0, setup(loud="4")), *side(5, setup(loud="7"), 2.0)]) == {}


def test_runs_that_measured_something_else_are_not_compared() -> None:
    calm, loud = side(0, setup()), side(5, setup(thp="always"), 2.0)
    assert own_experiments([*calm, *loud]) != {}
    assert own_experiments([*calm, *saying(loud, "load", "dd")]) == {}
    assert own_experiments([*calm, *saying(loud, "kernel release", "6.12")]) == {}


def test_a_count_that_is_another_one_in_each_run_does_not_part_the_runs() -> None:
    calm = [replace(run, setup=setup(count=str(at))) for at, run in enumerate(side(0, setup()), 1)]
    loud = [replace(run, setup=setup(thp="always", count=str(at))) for at, run in enumerate(side(5, setup(), 2.0), 9)]
    assert only(own_experiments([*calm, *loud])).sentence.startswith("Your own runs agree")


def test_invalid_runs_and_runs_without_facts_are_left_out() -> None:
    runs = [*side(0, setup()), *side(5, setup(thp="always"), 2.0)]
    assert own_experiments([replace(run, setup={}) for run in runs]) == {}
    assert own_experiments([replace(run, invalid=("the load was dead",)) for run in runs]) == {}
