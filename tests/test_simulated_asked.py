# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof.core.errors import UserError
from rtproof.simulation.events import KnownTail
from rtproof.simulation.simulated_thread import (
    PROCESS_OPTIONS,
    SimulatedProcess,
    SimulationRequest,
    check_together,
    parse_process,
    parse_request,
    rate_per_s,
)

RUN = ("-o", "x", "--duration", "10s")


def test_the_usual_process_is_the_one_that_the_help_tells_of() -> None:
    assert parse_process({}) == SimulatedProcess()
    assert all("(" in text for text in PROCESS_OPTIONS.values())


def test_a_process_is_what_its_options_say() -> None:
    options = {"seed": "7", "kind": "storm2", "episodes": "2/h", "above": "1ms", "scale": "5us", "shape": "0.2"}
    expected = SimulatedProcess(7, "storm2", 2 / 3600, KnownTail(1_000_000, 5_000, 0.2), 60)
    assert parse_process({**options, "step": "1min"}) == expected


@pytest.mark.parametrize(
    ("text", "rate"), [("2/h", 2 / 3600), ("0.5/min", 0.5 / 60), ("1/12h", 1 / 43_200), ("0/d", 0)]
)
def test_rates(text: str, rate: float) -> None:
    assert rate_per_s(text) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("seed", "-1", "not a whole number"),
        ("seed", "seven", "not a whole number"),
        ("kind", "flood", "there are: poisson, burst5"),
        ("episodes", "2", "write how many per time"),
        ("episodes", "x/h", "not a number from 0"),
        ("episodes", "2/0h", "period of 0"),
        ("episodes", "nan/h", "not a number"),
        ("above", "100", "above: "),
        ("scale", "0us", "scale: "),
        ("shape", "2", "not a number from -0.5 to 0.9"),
        ("step", "1500ms", "not a number of whole seconds"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(option: str, value: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_process({option: value})


def test_the_words_of_an_agent() -> None:
    words = (*RUN, "--period", "3ms", "--cpus", "2-3", "--limit", "50us", "--limit", "1ms", "--progress", "500ms")
    assert parse_request((*words, "--stop-on-eof", "--record", "samples")) == SimulationRequest(
        "x", 10_000_000_000, 3_000_000, (2, 3), (50_000, 1_000_000), True, 0, True, True
    )


@pytest.mark.parametrize(
    ("words", "cpus"),
    [((), (0,)), (("--threads", "3"), (0, 1, 2)), (("--cpus", "5,7", "--threads", "3"), (5, 7, 5))],
)
def test_threads_and_cpus(words: tuple[str, ...], cpus: tuple[int, ...]) -> None:
    assert parse_request((*RUN, *words)).cpus == cpus


def test_a_number_of_samples_is_a_length_in_whole_seconds() -> None:
    assert parse_request(("-o", "x", "--samples", "1500")).duration_ns == 2_000_000_000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*RUN, "--load", "sched"), "no use for --load"),
        ((*RUN, "--policy", "fifo"), "no use for --policy"),
        ((*RUN, "--threads"), "--threads needs a value"),
        ((*RUN, "--threads", "1000"), "whole number from 1 to 256"),
        ((*RUN, "--cpus", "0-300"), "at most 256 threads"),
        (("-o", "x"), "needs a file to write and a length"),
        (("-o", "x", "--duration", "10000d"), "too long"),
        (("-o", "x", "--duration", "30d", "--record", "samples"), "too many to simulate one by one"),
    ],
)
def test_what_an_agent_would_do_and_a_simulation_cant(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_request(words)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"above": "1ms"}, "less than a period late"), ({"episodes": "900000/s"}, "too many to simulate")],
)
def test_a_process_that_does_not_fit_into_the_run(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_together(parse_request(("-o", "x", "--duration", "1h")), parse_process(options))
