# SPDX-License-Identifier: Apache-2.0
"""Check that statements beside a verdict err as seldom as they claim: rates and chances."""

import math
from multiprocessing import Pool

import numpy as np
from numpy.typing import NDArray

from acceptance import Benchmark, Result, Value
from rtproof import articles, statistics
from rtproof.judge import planning, verdict_sentences
from rtproof.judge.claim import EpisodeCourse, LateStretches, episode_course
from rtproof.report.pages import campaign_page
from rtproof.simulation.events import SecondsArray, event_times

HOUR_S = 3600
NS = 10**9
GAP_NS = 60 * NS
ALPHA = 0.05


def rate_bound(short: bool) -> Result:
    """Checked to fail: with a gap of 0 s the least share of the short form is 0.58."""
    runs, least = (400, 0.92 - 3 * math.sqrt(0.05 * 0.95 / 400)) if short else (4000, 0.92)
    cells = [
        (kind, hours, events)
        for kind in ("poisson", "burst5", "storm", "storm2")
        for hours in (6, 54)
        for events in (3, 10, 40)
    ]
    with Pool() as pool:
        found = pool.starmap(_coverage, [(number, *cell, runs) for number, cell in enumerate(cells)])
    covered: dict[str, Value] = {
        f"{kind} {hours} h {events}": one[0] for (kind, hours, events), one in zip(cells, found, strict=True)
    }
    fixed, anytime = min(one[0] for one in found), min(one[1] for one in found)
    return Result(
        {"least_fixed": fixed, "least_anytime": anytime, "fixed": covered},
        f"both upper limits cover the true rate in >= {least:.3f} of the runs, in each of {len(cells)} cells",
        fixed >= least and anytime >= least,
    )


def prediction(short: bool) -> Result:
    """Checked to fail: a rule of m/n instead of m/(n+m) is off by 0.5 at n = m. Values of a run share a scale.

    Whole numbers with ties exceed it less often; "at most" is what holds of them too.
    """
    runs = 4000 if short else 40_000
    rng = np.random.default_rng(5)
    measured = {f"{n}:{m}": _exceeded(n, m, runs, rng) for n, m in ((20, 20), (20, 60), (190, 10))}
    expected = {"20:20": 0.5, "20:60": 0.75, "190:10": 0.05}
    said = verdict_sentences.largest_value_sentences(1_106_000, 54 * HOUR_S * NS)
    tied = _exceeded(20, 20, runs, rng, whole=True)
    off = max(abs(measured[key] - planning.chance_exceeded(*map(int, key.split(":")))) for key in measured)
    rule = all(planning.chance_exceeded(*map(int, key.split(":"))) == chance for key, chance in expected.items())
    until = planning.predicted_until(19.0)
    told = "with a probability of at most 50 %" in said[0] and "the next 2 h 50 min" in said[1]
    return Result(
        {"measured": {**measured}, "largest_difference": off, "20:20_with_ties": tied, "T_19": until},
        "the measured shares are m/(n+m) within 4 standard errors, with ties less; T/19 for 5 %; all is said in words",
        off <= 2 / math.sqrt(runs) and tied < 0.45 and rule and math.isclose(until, 1) and told,
        said,
    )


def published(_short: bool) -> Result:
    """Checked to fail: each figure is looked for in the sentences of its row."""
    said = {
        "bootlin": _said("bootlin", "54 h 29 min"),
        "toradex": _said("toradex", "30 min"),
        "akamina": _said("akamina"),
    }
    bootlin, toradex, akamina = ("\n".join(said[name]) for name in said)
    wanted = {
        "> 1,106 us: less often than once per 18 h 11 min (95 %, fixed-time)": bootlin,
        "run under the same conditions exceeds this with a probability of at most 50 %": bootlin,
        "the next 2 h 52 min under the same conditions exceed it with a probability of at most 5 %": bootlin,
        "events rarer than once per 18 h 11 min may be missing": bootlin,
        "> 166 us: less often than once per 10 min": toradex,
        "a run of 30 min can miss what happens once a day": toradex,
        "between 5.6e-06 and 1.65e-05": akamina,
        "the 9th largest value": akamina,
    }
    missing = [text for text, where in wanted.items() if text not in where]
    lines = tuple(f"{name}: {line}" for name, each in said.items() for line in each)
    return Result({"missing": list(missing), "sentences": len(lines)}, "every figure is said", not missing, lines)


def _said(name: str, length: str = "") -> tuple[str, ...]:
    """The lines on an article's page about its rows of this length, as printed; "": about all of them together."""
    article = articles.load(name)
    rows = {row.label for row in article.rows if length in [told.text for told in (row.asked, row.duration) if told]}
    chosen = rows or {campaign_page.EVIDENCE_OF_ALL_ROWS}
    return tuple(
        f"{row}{of and f', {of}'}: {text}"
        for row, of, text in campaign_page.article_evidence_rows(article)
        if row in chosen
    )


def _late(times: SecondsArray) -> LateStretches:
    at = np.asarray(times * NS, np.int64)
    return LateStretches.exact(at, at)


def _course(times: SecondsArray, length_ns: int) -> EpisodeCourse:
    """By the code that joins those of a record."""
    return episode_course(_late(times), length_ns, GAP_NS)


def _coverage(seed: int, kind: str, hours: int, events: int, runs: int) -> tuple[float, float]:
    """Share of runs whose upper limit is not below the rate in quiet time of a run of 3000 times the length."""
    rng = np.random.default_rng((3, seed))
    length_s = hours * HOUR_S
    rate = events / length_s
    long = _course(event_times(kind, rate, 3000 * length_s, rng), 3000 * length_s * NS)
    truth = long.episodes / long.live_ns
    found = [_course(event_times(kind, rate, length_s, rng), length_s * NS) for _ in range(runs)]
    counted = [(one.episodes, truth * one.live_ns) for one in found]
    fixed = sum(statistics.mean_upper(n, 1 - ALPHA) >= mean for n, mean in counted) / runs
    return fixed, sum(statistics.tau_needed(n, ALPHA) >= mean for n, mean in counted) / runs


def _exceeded(n: int, m: int, runs: int, rng: np.random.Generator, *, whole: bool = False) -> float:
    if whole:
        values: NDArray[np.float64] = rng.poisson(5, size=(runs, n + m)).astype(float)
    else:
        values = rng.lognormal(size=(runs, n + m)) * rng.lognormal(size=(runs, 1))
    return float(np.mean(values[:, n:].max(axis=1) > values[:, :n].max(axis=1)))


BENCHMARKS = (
    Benchmark("03_rate_bound", "the upper limit of the rate of episodes covers the truth", rate_bound),
    Benchmark("05_next_run", "the chance that the next run exceeds the maximum", prediction),
    Benchmark("m2_published_runs", "what the published runs of two articles are worth, in words", published),
)
