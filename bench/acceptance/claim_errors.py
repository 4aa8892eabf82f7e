# SPDX-License-Identifier: Apache-2.0
"""How often a verdict is false if episodes come once per T, by process, and the rate that HELD states, by process.

Each run is judged at every instant, and its first decision counts. If episodes come independently and at a steady rate,
the goals are the errors that the verdict's sentence states. The other processes break that condition. Their figures are
compared with those of docs/verdict.md.

The rate of HELD at time t is false if the true rate is above -ln(alpha) / t. It is stated while nothing was late. So it
is false at some moment if the first late time comes later than -ln(alpha) / rate, whenever somebody looks.
"""

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
from claim_judges import HOUR_S, MINUTE_S, NAMES, Claim, Runs, Told, episode_rate, judged, named
from claim_processes import PROCESSES, Draw, Process, Span, geometric, poisson, regimes, regular, runs, weibull
from part import ROOT

from acceptance import Row, Simulation, around, at_most, slack, spread
from rtproof.judge.planning import shown_by_ns
from rtproof.record.requirement import Requirement

TIMES_S = tuple(NAMES)
BUNCHES = (2.0, 5.0)
COLUMNS = (*NAMES.values(), *(f"1 h, m = {m:g}" for m in BUNCHES))
"""Of the page's table: each T, and at 1 h with each mean size of bunches."""
PAGE = (ROOT / "docs" / "verdict.md").read_text()
DRIFT = 5.0
"""Points by which a figure of the page may differ from what is measured: 3.2 standard errors of two of 2,000 runs."""
MOST = {
    "Poisson": (5.7, 3.5),
    "regular, every T": (1.0, 1.0),
    "Weibull 2": (1.0, 1.0),
    "storms of 60 s": (6.0, 5.0),
}
"""Percent PROVEN and REFUTED at most."""
STATES = ("PROVEN", "REFUTED")
IN_SHORT = ("Poisson", "Weibull 2", "Hawkes .8, 1 h", "storms of 60 s")


def measured(process: Process, claim: Claim, exactly: bool, count: int, seed: tuple[int, ...]) -> list[Told]:
    """What is said of so many runs. exactly: the process's own rate is 1 / T, not scaled to episodes at that rate."""
    rate = 1 / claim.at_most_s if exactly else episode_rate(process, claim, (0, *seed))
    return judged(process, rate, claim, Runs(count, (1, *seed)))


def percents(found: list[Told]) -> list[float]:
    """Of the runs, PROVEN and REFUTED first."""
    states = [one.state for one in found]
    return [100 * states.count(state) / len(states) for state in STATES]


def is_counted(process: Process, at_most_s: float) -> bool:
    """Storms of 60 s are longer than D where T is a minute: each of them refutes, and nothing is to be counted."""
    return process.name != "storms of 60 s" or Claim.usual(at_most_s).longest_s >= MINUTE_S


def errors(short: bool) -> Iterator[Row]:
    count = 400 if short else 2000
    cells = [
        (named(name), Claim.usual(at_most_s), name == "Poisson", count)
        for name in MOST
        for at_most_s in (TIMES_S[:2] if short else TIMES_S)
        if is_counted(named(name), at_most_s)
    ]
    found = spread(measured, [(*cell, (1, number)) for number, cell in enumerate(cells)])
    for (process, claim, *_), told in zip(cells, found, strict=True):
        where = f"{process.name}, {NAMES[claim.at_most_s]}"
        for state, percent, most in zip(STATES, percents(told), MOST[process.name], strict=True):
            yield at_most(f"{where}: % {state}", percent, most + slack(most, count, short))
        yield at_most(f"{where}: REFUTED by length", sum(one.by_length for one in told), 0)


def table(short: bool) -> Iterator[Row]:
    """Every process, measured anew, beside the page. Short: four of them."""
    count = 250 if short else 2000
    allowed = DRIFT + (8.0 if short else 0.0)
    rows = re.findall(r"^\| ([^|]+?) \| (.+ / .+) \|$", PAGE, re.MULTILINE)
    page = {name: dict(zip(COLUMNS, cells.split(" | "), strict=True)) for name, cells in rows}
    cells = {
        (process, column): (process, Claim.usual(at_most_s, bunches), False, count, (2, number))
        for number, process in enumerate(PROCESSES)
        for column, at_most_s, bunches in (
            *((NAMES[at_most_s], at_most_s, 1.0) for at_most_s in (TIMES_S[:2] if short else TIMES_S)),
            *((f"1 h, m = {m:g}", HOUR_S, m) for m in BUNCHES),
        )
        if is_counted(process, at_most_s) and (not short or process.name in IN_SHORT)
    }
    for (process, column), told in zip(cells, spread(measured, cells.values()), strict=True):
        written = page[process.name][column].split(" / ")
        for state, percent, on_page in zip(STATES, percents(told), written, strict=True):
            yield around(f"{process.name}, {column}: % {state}", percent, float(on_page), allowed)


PLAIN_LENGTH = 40
"""How many T a run is long: some processes are quiet for so long."""
PLAIN: dict[str, tuple[Draw, float]] = {
    "independently (Poisson)": (poisson, 1.0),
    "regularly, every T": (regular, 1.0),
    "more evenly than by chance (Weibull 2)": (partial(weibull, 2), 1.0),
    "in bunches of 5, counted as bunches": (partial(geometric, 5.0, 1.0), 1.0),
    "in bunches of 5, counted singly": (partial(geometric, 5.0, 1.0), 1 / 5.0),
    "more unevenly than by chance (Weibull 0.5)": (partial(weibull, 0.5), 1.0),
    "at two rates 10 times apart that change every 4 T": (partial(regimes, 10, 4), 1.0),
    "at two rates 10 times apart that change every 20 T": (partial(regimes, 10, 20), 1.0),
}
"""The processes in the words of the page's table, with how many late times come per T."""


def too_good(process: Process, rate: float, count: int, seed: int) -> float:
    """Percent of runs in which HELD states a rate below 1 / T at some moment. rate: of what is drawn, per T."""
    span = Span(PLAIN_LENGTH * HOUR_S, HOUR_S)
    firsts = [
        float(late.begin_s[0]) if late.begin_s.size else span.length_s
        for late in runs(process, rate / HOUR_S, span, count, (seed,))
    ]
    shown_s = np.array([shown_by_ns(Requirement(1), round(first * 1e9)) for first in firsts]) / 1e9
    return 100 * float(np.mean(shown_s > HOUR_S))


def plain(short: bool) -> Iterator[Row]:
    count, allowed = (2_000, 4.0) if short else (50_000, 1.0)
    page = dict(re.findall(r"^\| (.+?) \| ([\d.]+) % \|$", PAGE, re.MULTILINE))
    for seed, (words, (draw, rate)) in enumerate(PLAIN.items()):
        yield around(words, too_good(Process("", draw), rate, count, seed), float(page[words]), allowed)


SIMULATIONS = (
    Simulation("01a_errors", "a verdict is false as seldom as its sentence promises", errors),
    Simulation("01b_processes", "the table of docs/verdict.md, where episodes are not independent", table),
    Simulation("01j_plain", "how often the rate that HELD states is too good, as docs/verdict.md says", plain),
)
