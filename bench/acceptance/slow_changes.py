# SPDX-License-Identifier: Apache-2.0
"""Benchmark 10b: is a forecast refused if something varies more slowly than the run can show?

For each process this measures in how many runs a forecast is given, and in how many of these it holds. It measures the
same runs again without the test of slow changes. A forecast holds if its limit is not below the level that is exceeded
once, on average, in the ten times as long time after the run. ``meeting``, the turns of ``daily-tail`` and ``unseen``
leave no trace in most runs. Their forecasts are wrong, as docs/forecast.md says, and there is no goal for them.
"""

from functools import partial

import numpy as np
from slow_runs import slow_run
from tail_truths import repeated

from acceptance import Benchmark, Result, Value
from rtproof.summary.per_second import SECOND_NS
from rtproof.tail.forecast import USUAL_FACTOR, LargestUnits, fitted_forecast
from rtproof.tail.forecast_model import Forecast, TailUnits

SEED = 20_261_122
HOUR_S = 3_600
CASES = (
    *(("even", 1), ("even", 2), ("even", 8), ("beat", 8), ("meeting", 8), ("daily", 1), ("daily", 4)),
    *(("daily-tail", 1), ("daily-tail", 4), ("regimes", 2), ("unseen", 1), ("unseen", 2), ("warming", 1)),
)
SHORT = (("even", 2), ("beat", 8), ("daily", 4), ("warming", 1))
RUNS, SHORT_RUNS = 200, 10
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
    found = fitted_forecast(begun, units, LargestUnits(int(run.largest_ns.max()), "a time that is not told"))
    before = all(each.code == "SLOW" for each in found.refusals)
    return [float(found.limit_ns is not None), float((found.envelope_ns or 0) >= run.level_ns), float(before)]


def slow_changes(short: bool) -> Result:
    """Short: 10 runs of four processes; of even ones at most two, and of the others at least eight, are refused."""
    value: dict[str, Value] = {}
    holds = True
    for kind, hours in SHORT if short else CASES:
        rows = repeated(partial(_run, kind, hours), SHORT_RUNS if short else RUNS, short)
        given, right, before = rows.T > 0
        name = f"{kind} {hours} h"
        value[name] = {
            "given": round(float(given.mean()), 3),
            "of these right": f"{int((given & right).sum())} of {int(given.sum())}",
            "given without the test": round(float(before.mean()), 3),
            "of those right": f"{int((before & right).sum())} of {int(before.sum())}",
        }
        if kind == "even":
            holds &= bool((before & ~given).mean() <= (0.2 if short else MOST_EVEN))
        holds &= bool((~given).mean() >= LEAST.get(name, 0) - (0.15 if short else 0))
    refused = ", ".join(f"{name} {share:g}" for name, share in LEAST.items())
    goal = f"even runs refused by this test at most {MOST_EVEN}; refused at least: {refused}"
    return Result(value, goal, holds)


BENCHMARKS = (Benchmark("10b_slow_changes", "what varies more slowly than the run shows", slow_changes),)
