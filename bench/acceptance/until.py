# SPDX-License-Identifier: Apache-2.0
"""Check that ``run --until-decided`` on a simulated source ends when the bets are won.

The check uses nothing of the program's own test: it integrates both mixtures over the rates numerically, and joins the
episodes from the seed's own events. A mixing exponent of 0.25 instead of 0.3 and a gap of 60 s make it fail, also in
the short form.
"""

import contextlib
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from part import Bound

from acceptance import Row, Simulation, at_least, at_most
from rtproof.cli.main import main
from rtproof.simulation import simulated_thread
from rtproof.simulation.events import EVENT_KINDS, KnownTail
from rtproof.simulation.simulated_thread import SECOND_NS, SimulatedProcess

LIMIT_NS, AT_MOST_S, GAP_S, LONGEST_S, ALPHA = 100_000, 600, 30, 150, 0.05
MIXING = 0.3
LN_EPISODES = np.log([3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 100, 400])
MOST_SQUARES = (2.72, 2.85, 2.88, 2.92, 2.96, 2.91, 2.87, 2.83, 2.71, 2.53, 2.42, 2.21)
MOST_LOGS = (1.361, 1.278, 1.233, 1.198, 1.129, 1.070, 0.985, 0.932, 0.875, 0.790, 0.735, 0.656)
LOG_BETS = np.linspace(0.0, 100.0, 16_001)
"""ln of how many times faster or slower than claimed episodes are bet to come; Simpson's rule over them."""
WEIGHTS = np.full(LOG_BETS.size, 2.0)
WEIGHTS[1::2] = 4.0
WEIGHTS[[0, -1]] = 1.0
WEIGHTS *= LOG_BETS[1] / 3
ROUNDED_S = 2
"""The run is watched to the second, so that each episode takes up to two seconds more out of its quiet time."""
LENGTH_S = 12_000
LATE_S = 5
"""The agent is stopped over a pipe: it plays a step or two until it hears of it."""


def log_bets_won(episodes: int, tau: float, sign: int) -> float:
    """ln of the mean of b^N e^(tau (1 - b)) over b, with density a b^(a-1) below 1 (sign -1) or a b^(-a-1) above."""
    exponent = episodes * sign * LOG_BETS - MIXING * LOG_BETS + tau * -np.expm1(sign * LOG_BETS)
    top = float(exponent.max())
    return top + math.log(MIXING * float(WEIGHTS @ np.exp(exponent - top)))


def first_second(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The first nanosecond in (low, high] from which on something holds that stays so."""
    if not holds(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def won(episodes: int, time_ns: int, sign: int) -> bool:
    return log_bets_won(episodes, time_ns / (AT_MOST_S * SECOND_NS), sign) >= -math.log(ALPHA)


def episodes_ns(process: SimulatedProcess, length_s: int) -> list[tuple[int, int, int | None]]:
    """Episodes by their first and last late time, and when each was seen to last too long, or None.

    An event hits the next activation, a millisecond apart. Between two late times nobody knows whether the episode is
    over, so that one is too long from the first late time on that lies so far behind its begin.
    """
    time_s, latency = simulated_thread.system_events(process, length_s)
    due = np.ceil(time_s[latency > LIMIT_NS] * 1000).astype(np.int64) * 1_000_000
    end = due + latency[latency > LIMIT_NS] - LIMIT_NS
    order = np.argsort(due, kind="stable")
    found: list[tuple[int, int, int | None]] = []
    for begin, last in zip(due[order].tolist(), end[order].tolist(), strict=True):
        joined = found and begin - found[-1][1] <= GAP_S * SECOND_NS
        first, before, too_long = found.pop() if joined else (begin, last, None)
        at = first + LONGEST_S * SECOND_NS
        found.append((first, max(before, last), max(begin, at) if too_long is None and last > at else too_long))
    return found


def bunched(starts: NDArray[np.float64], now: float) -> bool:
    """Whether 3 or more starts, in quiet time, are too unequal or too close. now: all quiet time."""
    n = starts.size
    if n < 3:
        return False
    shares = np.maximum(np.diff(np.r_[0.0, starts, now]) / now, 1e-9)
    squares, logs = (n + 1) * float(np.sum(shares**2)), -float(np.mean(np.log((n + 1) * shares)))
    at = math.log(n)
    return bool(squares > np.interp(at, LN_EPISODES, MOST_SQUARES) or logs > np.interp(at, LN_EPISODES, MOST_LOGS))


def expected(process: SimulatedProcess, length_s: int) -> tuple[str, int | None, int]:
    """The first verdict, its nanosecond and the episodes by then, from one quiet stretch to the next."""
    length_ns, begin, live = length_s * SECOND_NS, 0, 0
    starts: list[float] = []
    found = [one for one in episodes_ns(process, length_s) if one[0] < length_ns]
    for first, last, too_long in [*found, (length_ns, length_ns, None)]:
        quiet, n = max(first - begin, 0), len(starts)
        proven = first_second(lambda t, n=n: won(n, t, -1), live, live + quiet)  # type: ignore[misc]
        for look in (proven, live + quiet) if proven is not None else ():
            if not bunched(np.array(starts), look):
                return "PROVEN", begin + look - live, n
        live += quiet
        starts.append(live)
        if first < length_ns and won(n + 1, first, 1):
            return "REFUTED", first, n + 1
        if too_long is not None:
            return "REFUTED", too_long, n + 1
        begin = min(last + GAP_S * SECOND_NS, length_ns)
    return "UNDECIDED", None, len(found)


def measured(process: SimulatedProcess, length_s: int) -> tuple[str, int | None, float]:
    """What the program says of such a run: state, the nanosecond of the decision, and the second of the end."""
    options = {
        "seed": process.seed,
        "kind": process.kind,
        "episodes": f"{process.clusters_per_s * 3600!r}/h",
        "above": f"{LIMIT_NS}ns",
    }
    words = [word for key, value in options.items() for word in ("--target-option", f"{key}={value}")]
    asked = ("--limit", f"{LIMIT_NS}ns", "--at-most", f"1/{AT_MOST_S}s", "--max-duration", f"{length_s}s")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        out = io.TextIOWrapper(io.BytesIO())
        place = ("--output", str(Path(folder) / "run"), "--no-report", "--json", "--until-decided")
        with contextlib.redirect_stdout(out):
            main(["run", "--target", "simulated", *words, *asked, *place])
    out.seek(0)
    verdict = json.loads(out.read())["verdict"]
    return verdict["state"], verdict["decided_at_ns"], verdict["measured_ns"] / SECOND_NS


def until_decided(short: bool) -> Iterator[Row]:
    """Rates per claimed rate: 0 and 0.1 are mostly proven, 1 mostly not decided, 5 refuted."""
    kinds = ("burst5",) if short else tuple(kind for kind in EVENT_KINDS if kind != "drift")
    rates, seeds = ((0.0, 0.2, 5.0), (1,)) if short else ((0.0, 0.2, 1.0, 5.0), (1, 2, 3, 4))
    told, wrong, latest = [], 0, 0.0
    for kind, rate, seed in product(kinds, rates, seeds):
        process = SimulatedProcess(seed, kind, rate / AT_MOST_S, KnownTail(LIMIT_NS, 20_000))
        state, at_ns, episodes = expected(process, LENGTH_S)
        said, said_ns, end_s = measured(process, LENGTH_S)
        if said != state or (said_ns is None) != (at_ns is None) or abs((said_ns or 0) - (at_ns or 0)) >= 1000:
            wrong += 1
            print(f"    {kind} {rate} seed {seed}: {said} at {said_ns}, expected {state} at {at_ns}")
        latest = max(latest, end_s - (said_ns or LENGTH_S * SECOND_NS) / SECOND_NS - ROUNDED_S * episodes)
        told.append(state)
    yield at_most("runs not decided at the microsecond that integration gives", wrong, 0)
    yield Row("the latest end behind it in s", latest, Bound(0, LATE_S))
    for state in ("PROVEN", "REFUTED"):
        yield at_least(f"runs that are {state}", told.count(state), 1)
    yield Row("runs that are UNDECIDED", told.count("UNDECIDED"))


SIMULATIONS = (Simulation("m4_until_decided", "--until-decided stops at the e-process's own times", until_decided),)
