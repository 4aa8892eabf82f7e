# SPDX-License-Identifier: Apache-2.0
"""Check that the live watch of a rate per second errs as seldom as claimed, and says what the record says."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from acceptance import Row, Simulation, at_least, at_most
from rtproof.judge.analysis_model import State
from rtproof.judge.claim import LateStretches, decide
from rtproof.judge.watch import Watch
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS

ASKED = Requirement(100_000, SECOND_NS)
ALPHA = 1 - ASKED.confidence
LENGTH_S = 60
FIRST_DUE_NS = 1_000_000
STOPS_NS = SECOND_NS // 2
"""The record goes on for this long after the watch has ended the run."""


def live_and_record(rate: float, generator: np.random.Generator) -> tuple[State, State]:
    """What the watch says when it ends the run, and the record of that run. rate: late activations per second."""
    due = np.sort(generator.integers(FIRST_DUE_NS, LENGTH_S * SECOND_NS, generator.poisson(rate * LENGTH_S)))
    end = due + generator.integers(1_000, 200_000, due.size)
    watch = Watch([ASKED])
    watch.progress(0, 0, first_due_ns=FIRST_DUE_NS)
    stop_ns = LENGTH_S * SECOND_NS
    for second in range(LENGTH_S):
        for place in np.flatnonzero(due // SECOND_NS == second):
            stretch = int(due[place]), int(end[place]), 1
            watch.over(0, ASKED.limit_ns, second, ASKED.limit_ns + stretch[1] - stretch[0], stretch)
        if watch.progress(0, (second + 1) * SECOND_NS, first_due_ns=FIRST_DUE_NS):
            stop_ns = min((second + 1) * SECOND_NS + STOPS_NS, stop_ns)
            break
    here = due < stop_ns
    late = LateStretches.exact(due[here] - FIRST_DUE_NS, end[here] - FIRST_DUE_NS)
    return watch.standings[0].decision.state, decide(ASKED, late, stop_ns - FIRST_DUE_NS, ALPHA).state


def live_rate(short: bool) -> Iterator[Row]:
    """At the claimed rate exactly, both errors; at a fifth of it and at four times it, how often it decides."""
    runs, generator = (60 if short else 3000), np.random.default_rng(1)
    found = {rate: [live_and_record(rate, generator) for _ in range(runs)] for rate in (0.2, 1.0, 4.0)}
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / runs) ** 0.5
    for rate, state, row in (
        (1.0, State.PROVEN, partial(at_most, most=most)),
        (1.0, State.REFUTED, partial(at_most, most=most)),
        (0.2, State.PROVEN, partial(at_least, least=0.9)),
        (4.0, State.REFUTED, partial(at_least, least=0.99)),
    ):
        yield row(
            f"{rate:g} times the claimed rate: {state.value}", sum(live is state for live, _ in found[rate]) / runs
        )
    pairs = [pair for each in found.values() for pair in each]
    yield at_most(
        "the record disagrees", sum(live is not end and live is not State.UNDECIDED for live, end in pairs), 0
    )


SIMULATIONS = (Simulation("m4_live_rate", "the watch decides a rate per second as the record does", live_rate),)
