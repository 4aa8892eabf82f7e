# SPDX-License-Identifier: Apache-2.0
"""Is a forecast refused if something varies more slowly than the run can show?

For each process this measures in how many runs a forecast is given, and in how many of these it holds. It measures the
same runs again without the test of slow changes. A forecast holds if its limit is not below the level that is exceeded
once, on average, in the ten times as long time after the run. ``meeting``, the turns of ``daily-tail`` and ``unseen``
leave no trace in most runs. Their forecasts are wrong, as docs/forecast.md says, and there is no goal for them.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from part import Bound
from slow_runs import slow_run
from tail_truths import repeated, share_of

from acceptance import Row, Simulation, at_most
from rtproof.summary.per_second import SECOND_NS
from rtproof.tail.forecast import USUAL_FACTOR, Forecast, TailUnits, fitted_forecast

SEED = 20_261_122
HOUR_S = 3_600
CASES = (
    *(("even", 1), ("even", 2), ("even", 8), ("beat", 8), ("meeting", 8), ("daily", 1), ("daily", 4)),
    *(("daily-tail", 1), ("daily-tail", 4), ("regimes", 2), ("unseen", 1), ("unseen", 2), ("warming", 1)),
)
SHORT = (("even", 2), ("beat", 8), ("daily", 4), ("warming", 1))
MOST_EVEN = 0.03
"""Of even runs that the test of slow changes alone may refuse: it has an error of 1 %."""
LEAST = {"beat 8 h": 0.95, "daily 1 h": 0.6, "daily 4 h": 0.95, "warming 1 h": 0.95}
"""Of these runs are refused."""


def _run(kind: str, hours: int, seed: int) -> list[float]:
    """Whether a forecast is given, whether its limit holds, and whether it would be given without this test."""
    run = slow_run(kind, hours * HOUR_S, np.random.default_rng([SEED, hours, sum(kind.encode()), seed]))
    span_ns = run.largest_ns.size * SECOND_NS
    units = TailUnits(np.arange(run.largest_ns.size), run.largest_ns, span_ns)
    begun = Forecast(None, USUAL_FACTOR * span_ns, (), span_ns, units.count, units.unit_ns)
    found = fitted_forecast(begun, units, "a time that is not told")
    before = all(each.code == "SLOW" for each in found.refusals)
    return [float(found.limit_ns is not None), float((found.envelope_ns or 0) >= run.level_ns), float(before)]


def slow_changes(short: bool) -> Iterator[Row]:
    """Short: 10 runs of four processes; of even ones at most two, and of the others at least eight, are refused."""
    runs, slack = (10, 0.15) if short else (200, 0.0)
    for kind, hours in SHORT if short else CASES:
        rows = repeated(partial(_run, kind, hours), runs, short)
        given, right, before = rows.T > 0
        name = f"{kind} {hours} h"
        yield Row(f"{name}: refused", float((~given).mean()), Bound(LEAST[name] - slack) if name in LEAST else None)
        yield Row(f"{name}: right of those given", share_of(right, given))
        yield Row(f"{name}: right of those given without the test", share_of(right, before))
        if kind == "even":
            yield at_most(f"{name}: refused by this test alone", (before & ~given).mean(), 0.2 if short else MOST_EVEN)


SIMULATIONS = (Simulation("10b_slow_changes", "what varies more slowly than the run shows is refused", slow_changes),)
