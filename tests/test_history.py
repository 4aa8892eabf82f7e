# SPDX-License-Identifier: Apache-2.0

import math
import random
from dataclasses import replace

import pytest
from history_cases import invalid, run, stepped

from rtproof.compare.change_points import visible_step
from rtproof.compare.history import FEWEST, analyse_history


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
    assert middle.visible == pytest.approx(math.exp(visible_step(30) * middle.noise))
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


def test_metric_that_too_few_runs_have_says_which_and_why() -> None:
    runs = [run(n, values=500 if n < 15 else 4_000) for n in range(30)]
    (sequence,) = analyse_history(runs).sequences
    (tail,) = (metric for metric in sequence.metrics if metric.key == "p99.9")
    assert "15 of 30 runs" in tail.why
    assert "500 values do not reach" in tail.why


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


def test_runs_without_an_id_are_not_taken_for_one() -> None:
    assert analyse_history([replace(run(n), run_id="0" * 32) for n in range(3)]).runs == 3


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


def test_no_runs() -> None:
    assert analyse_history([]).sequences == ()


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
