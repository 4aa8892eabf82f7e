# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.compare.comparison_model import DifferenceWeight
from rtproof.compare.likeness import OTHER_QUANTITY, comparison_refusal, fact_differences, fact_variations
from rtproof.compare.run_metrics import RunFigures
from rtproof.summary.counts import counts_of_values

USUAL = {"probe": "timer", "load": "sched", "period": "1ms", "policy": "fifo", "CPUs": "0-3", "view": "observed"}
NAMES = ("old", "new")


def run(**facts: str) -> RunFigures:
    return RunFigures("r", USUAL | facts, counts_of_values(np.array([1])))


def side(n: int = 3, /, **facts: str) -> list[RunFigures]:
    return [run(**facts) for _ in range(n)]


def test_alike_there_is_nothing_to_say() -> None:
    assert fact_differences(side(), side()) == ()
    assert fact_variations(side()) == ()
    assert comparison_refusal(side(), side(), NAMES) is None


@pytest.mark.parametrize("key", OTHER_QUANTITY)
def test_two_quantities_are_never_compared(key: str) -> None:
    said = comparison_refusal(side(**{key: "one"}), side(**{key: "another"}), NAMES, {key})
    assert said is not None
    assert f"{key} is 'one' in old and 'another' in new" in said
    assert "what remains is the report of each run" in said


@pytest.mark.parametrize("key", ["load", "period", "policy", "method", "CPUs"])
def test_what_must_agree_is_refused_unless_the_user_says_so(key: str) -> None:
    a, b = side(**{key: "one"}), side(**{key: "another"})
    said = comparison_refusal(a, b, NAMES)
    assert said is not None
    assert f"--although '{key}'" in said
    assert comparison_refusal(a, b, NAMES, {key}) is None
    (found,) = fact_differences(a, b, {key})
    assert (found.weight, found.said) == (DifferenceWeight.UNLIKE, True)


def test_what_is_not_known_of_one_side_is_told_and_not_refused() -> None:
    a, b = side(), [RunFigures("h", {"probe": "timer", "view": "observed"}, counts_of_values(np.array([1])))]
    assert comparison_refusal(a, b, NAMES) is None
    found = {one.key: one for one in fact_differences(a, b)}
    assert found["load"].weight is DifferenceWeight.TOLD
    assert (found["load"].a, found["load"].b) == ("sched", "not known")
    assert "nobody can say" in found["load"].why


def test_differences_are_ranked() -> None:
    a = side(**{"governor": "performance", "preemption model": "rt", "config SND": "y", "cmdline quiet": "set"})
    b = side(**{"governor": "powersave", "preemption model": "none", "config USB": "y", "cmdline isolcpus": "1"})
    found = fact_differences(a, b)
    assert [one.key for one in found] == [
        "preemption model",
        "governor",
        "cmdline isolcpus",
        "cmdline quiet",
        "config SND",
        "config USB",
    ]
    assert (found[2].a, found[2].b) == ("not there", "1")
    assert found[4].b == "not set"
    assert all(one.why and one.source for one in found[:3])


def test_of_an_unknown_configuration_nothing_is_said() -> None:
    assert fact_differences(side(**{"config SND": "y"}), side()) == ()
    assert fact_differences(side(**{"cmdline quiet": "set"}), side()) == ()


def test_runs_of_a_side_that_vary() -> None:
    a = [*side(2, governor="performance"), *side(1, governor="powersave")]
    (found,) = fact_variations(a)
    assert (found.key, found.texts) == ("governor", (("performance", 2), ("powersave", 1)))
    (told,) = fact_differences(a, side(governor="performance"))
    assert (told.a, told.b) == ("performance (2 runs); powersave (1 run)", "performance")
    assert comparison_refusal(a, side(governor="performance"), NAMES) is None


def test_runs_of_a_side_that_must_not_vary() -> None:
    said = comparison_refusal([*side(2), *side(1, load="none of ours")], side(), NAMES)
    assert said is not None
    assert said.startswith("the runs of old are not alike (load: sched (2 runs); none of ours (1 run))")
