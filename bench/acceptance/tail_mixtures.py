# SPDX-License-Identifier: Apache-2.0
"""A rare second mechanism: a forecast is refused if the run has some of its events; otherwise it is called possible.

Checked to fail: without the test of the fit next to nothing is refused. A verdict that accepts no events in three times
the mean time between them as a proof would be PROVEN, although the run was too short to see the mechanism.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tail_truths import Lognormal, Normal, Truth, level_ahead, repeated, with_mode

from acceptance import Row, Simulation, at_least, at_most
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Begin, End, EndReason, Series
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter

AHEAD = 10
MS = 1_000_000
SERIES = Series(0, 0, 0, True, True, MS, 0, "timer", "clock_nanosleep", "latency", "ns")
BODY = Lognormal(0.3, 30e3)
"""A share of 1e-8 exceeds 161 us."""
MODES: dict[str, Truth] = {"at 300 us": Normal(300e3, 10e3), "around 300 us": Lognormal(0.2, 300e3)}
SEEN = ((1e-7, 10**8), (1e-6, 10**8))
RARE, SHORT_RUN = 1e-7, 10**6
LIMIT_NS = 250_000
"""Exceeded by what the second mechanism does only."""
ASKED = Requirement(LIMIT_NS, at_most_ns=10**9 * MS)
"""Once in 1e9 activations of a millisecond."""


def _refused(mode: Truth, share: float, n: int, seed: int) -> list[float]:
    counts = with_mode(BODY, mode, share, n, np.random.default_rng([8, n, seed]))
    return [float(level_ahead(counts, n, AHEAD * n) is None)]


def _said(mode: Truth, activations: int, seed: int) -> list[float]:
    """Whether a run with 0.1 of the mode's events is PROVEN to exceed the limit in less than 1e-9, and lacks UNSEEN."""
    generator = np.random.default_rng([8, seed])
    values = BODY.median_ns * np.exp(BODY.sigma * generator.standard_normal(activations))
    rare = generator.random(activations) < RARE
    values[rare] = mode(generator.random(int(rare.sum())))
    with TemporaryDirectory() as folder:
        place = Path(folder) / "run.rtrec"
        with RecordWriter(place) as writer:
            writer.begin(Begin(1, 0, bytes(16), 0, 0, "bench", "x86_64", "6.12.0-rt", "#1 SMP PREEMPT_RT"))
            writer.series(SERIES)
            feed = SeriesWriter(writer, SERIES, limits_ns=(LIMIT_NS,))
            feed.add(values.astype(np.int64))
            writer.end(End(values.size * MS, EndReason.AS_ASKED, "as asked", (feed.finish(),)))
        verdict = analyse(open_record(place), ASKED, workers=1).verdict
    unseen = any(label == "UNSEEN" for label, _ in verdict.sentences)
    return [float(verdict.state is State.PROVEN), float(unseen), float(verdict.state is State.UNDECIDED)]


def _08(short: bool) -> Iterator[Row]:
    """Short: 10 and 1 repetitions; of 10 tails that are refused in 99 %, 9 are but in 4e-3."""
    runs, said = (10, 1) if short else (240, 60)
    for name, mode in MODES.items():
        for share, n in SEEN:
            refused = repeated(partial(_refused, mode, share, n), runs, short).mean()
            yield at_least(f"{share:.0e} {name}, n = {n:.0e}: refused", refused, 0.85 if short else 0.9)
    proven, unseen, undecided = repeated(partial(_said, MODES["at 300 us"], SHORT_RUN), said, short).mean(axis=0)
    yield at_most("1e-07, n = 1e+06: PROVEN", proven, 0)
    yield at_least("1e-07, n = 1e+06: UNSEEN said", unseen, 1)
    yield Row("1e-07, n = 1e+06: UNDECIDED", float(undecided))


SIMULATIONS = (Simulation("08_mixtures", "a rare second mechanism is refused, or said to be possible", _08),)
