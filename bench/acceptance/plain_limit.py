# SPDX-License-Identifier: Apache-2.0
"""Measure how often the rate that HELD states is too good at some moment, by process; compare with docs/verdict.md.

The statement at time t is false if the true rate is above -ln(alpha) / t. It is made while nothing was late. So it is
false at some moment if the first late time comes later than -ln(alpha) / rate, whenever somebody looks.
"""

import re
from functools import partial
from pathlib import Path

import numpy as np
from claim_processes import Process, Span, geometric, poisson, regimes, regular, runs, weibull

from acceptance import Benchmark, Result
from rtproof.judge.planning import shown_by_ns
from rtproof.judge.requirement import Requirement

AT_MOST_S = 3600.0
LENGTH = 40
"""How many T a run is long: some processes are quiet for so long."""
SECOND_NS = 1_000_000_000
PAGE = Path(__file__).parent.parent.parent / "docs" / "verdict.md"
BUNCH = 5.0
# Each with its words in the page's table, and how many late times come per T.
PROCESSES = (
    ("independently (Poisson)", Process("", poisson), 1.0),
    ("regularly, every T", Process("", regular), 1.0),
    ("more evenly than by chance (Weibull 2)", Process("", partial(weibull, 2)), 1.0),
    ("in bunches of 5, counted as bunches", Process("", partial(geometric, BUNCH, 1.0)), 1.0),
    ("in bunches of 5, counted singly", Process("", partial(geometric, BUNCH, 1.0)), 1 / BUNCH),
    ("more unevenly than by chance (Weibull 0.5)", Process("", partial(weibull, 0.5)), 1.0),
    ("at two rates 10 times apart that change every 4 T", Process("", partial(regimes, 10, 4)), 1.0),
    ("at two rates 10 times apart that change every 20 T", Process("", partial(regimes, 10, 20)), 1.0),
)


def too_good(process: Process, rate: float, count: int, seed: int) -> float:
    """Percent of runs in which HELD states a rate below 1 / T at some moment. rate: of what is drawn, per T."""
    span = Span(LENGTH * AT_MOST_S, AT_MOST_S)
    firsts = [
        float(late.begin_s[0]) if late.begin_s.size else span.length_s
        for late in runs(process, rate / AT_MOST_S, span, count, (seed,))
    ]
    shown_s = np.array([shown_by_ns(Requirement(1), round(first * SECOND_NS)) for first in firsts]) / SECOND_NS
    return round(100 * float(np.mean(shown_s > AT_MOST_S)), 1)


def plain(short: bool) -> Result:
    count, slack = (2_000, 4.0) if short else (50_000, 1.0)
    told = dict(re.findall(r"^\| (.+?) \| ([\d.]+) % \|$", PAGE.read_text(), re.MULTILINE))
    found = {words: too_good(process, rate, count, at) for at, (words, process, rate) in enumerate(PROCESSES)}
    holds = all(abs(share - float(told[words])) <= slack for words, share in found.items())
    return Result({**found}, f"within {slack:g} of the page's percentages, in {count:,} runs each", holds)


BENCHMARKS = (
    Benchmark("01j_plain", "how often the rate that HELD states is too good, as the page's table says", plain),
)
