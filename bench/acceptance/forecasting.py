# SPDX-License-Identifier: Apache-2.0
"""Benchmarks 10 and 15: check that an uneven run is noticed, and that forecasts for this machine are refused."""

import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from acceptance import Benchmark, Result, Value
from rtproof.core.phrases import value as in_words
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.claim import episode_course
from rtproof.judge.episodes import MeasuredWindow, late_times
from rtproof.judge.evidence import end_ns
from rtproof.judge.requirement import Requirement
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.record.run_folder import open_run
from rtproof.simulation.events import KnownTail, second_maxima
from rtproof.statistics import mean_upper
from rtproof.summary.summary_model import Summary
from rtproof.tail.forecast import UNEVEN_P, USUAL_FACTOR, forecast, largest_units, shape_refusals, with_top_test
from rtproof.tail.forecast_model import tail_units
from rtproof.tail.stationarity import stationarity
from rtproof.tail.thresholds import tail_limit

SEED = 20_261_121
HOURS, SHORT_HOURS = (6, 54), (24,)
RATE_PER_S = 0.03
RUNS, SHORT_RUNS = 300, 25
EVEN = "poisson"
UNEVEN = ("storm", "storm2", "drift")
MOST_EVEN, LEAST_UNEVEN = 0.05, 0.95
SHORT_SLACK = 0.05
"""For 25 runs. Checked to fail: with the trend alone no storm is flagged, with slots of 30 s half of them, at a level
that half of the seconds exceed hardly any, and with the other tail of chi-squared half of the even runs."""

BUILD = Path(__file__).parents[2] / "build"
SECONDS, SHORT_SECONDS = 600, 30
MEASURED = ("--period", "250us", "--priority", "90")
LOADS = {"idle": (), "loaded": ("sched", "mmap")}
REQUIREMENTS = (Requirement(20_000_000), Requirement(1_000_000))


def flagged(seconds: int, kind: str, number: int) -> bool:
    """Whether one run is said to be uneven."""
    generator = np.random.default_rng([SEED, seconds, sum(kind.encode()), number])
    largest = second_maxima(kind, RATE_PER_S, seconds, KnownTail(), generator)
    found = stationarity(np.arange(seconds), largest)
    assert found.dispersion_p is not None
    assert found.trend_p is not None
    return min(found.dispersion_p, found.trend_p) < UNEVEN_P


def uneven_runs(short: bool) -> Result:
    """Benchmark 10."""
    runs = SHORT_RUNS if short else RUNS
    rates = {
        f"{kind} {hours} h": rate
        for hours in (SHORT_HOURS if short else HOURS)
        for kind, rate in _rates(hours * 3600, runs, 1 if short else 4)
    }
    slack = SHORT_SLACK if short else 0.0
    holds = all(
        rate <= MOST_EVEN + slack if name.startswith(EVEN) else rate >= LEAST_UNEVEN - slack
        for name, rate in rates.items()
        if name.split()[0] in (EVEN, *UNEVEN)
    )
    goal = f"of runs at a constant rate at most {MOST_EVEN} are flagged; of {', '.join(UNEVEN)} at least {LEAST_UNEVEN}"
    return Result({name: round(rate, 3) for name, rate in rates.items()}, goal, holds)


def _rates(seconds: int, runs: int, processes: int) -> Iterator[tuple[str, float]]:
    """The share of runs that is flagged, for each kind; bursts of some seconds are shown, but have no goal."""
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for kind in (EVEN, *UNEVEN, "burst5"):
            yield kind, float(np.mean(pool.map(partial(flagged, seconds, kind), range(runs))))


def this_machine(short: bool) -> Result:
    """Benchmark 15: ten minutes of this machine, idle and loaded, are recorded unless they are there already.

    A run of ten minutes is refused as FEW by rule, so each thread is also looked at as if it were long enough: the tail
    of its single latencies, of which there are millions. None may look like one smooth tail.
    """
    seconds = SHORT_SECONDS if short else SECONDS
    told = {name: _told(name, loads, seconds) for name, loads in LOADS.items()}
    value: dict[str, Value] = {name: one.value for name, one in told.items()}
    says = tuple(f"{name}: {line}" for name, one in told.items() for line in one.says)
    goal = "refused for all threads and for each; for each also by the shape of its tail, were it long enough"
    return Result(value, goal, all(one.holds for one in told.values()), says)


def _told(name: str, loads: tuple[str, ...], seconds: int) -> Result:
    """What is said of one recording."""
    analysis = analyse(open_run(_recorded(name, loads, seconds)).record, REQUIREMENTS)
    assert analysis.forecast is not None
    threads = [_of_thread(analysis, summary) for summary in analysis.summaries]
    refused = [each.code for each in analysis.forecast.refusals]
    value: dict[str, Value] = {"all threads": list(refused), **{f"cpu {one.cpu}": one.value for one in threads}}
    says = texts_under_labels(analysis.verdict.sentences, "VERDICT", "MAX", "FORECAST")
    holds = bool(refused) and all(one.refused for one in threads)
    return Result(value, "", holds, (*says, *(line for one in threads for line in one.says)))


@dataclass(frozen=True)
class Thread:
    """What is said of one thread by itself; refused: for the shape of its tail."""

    cpu: int
    value: dict[str, Value]
    refused: bool
    says: tuple[str, ...]


def _of_thread(analysis: Analysis, summary: Summary) -> Thread:
    """Its refusals, those of its single latencies, and how often it exceeds each limit."""
    of_seconds = forecast(analysis.record, summary, analysis.doubts)
    counts, cpu = summary.observed_counts, summary.series.cpu
    tail = with_top_test(tail_limit(counts, counts.total, USUAL_FACTOR * counts.total))
    told = shape_refusals(tail, tail_units(summary), largest_units(analysis.record, summary))
    assert of_seconds is not None
    value: dict[str, Value] = {
        "seconds": [each.code for each in of_seconds.refusals],
        "latencies": [each.code for each in told],
        "anderson_darling_p": [round(rung.p, 4) for rung in tail.ladder.rungs],
        "shapes": [round(rung.fit.xi, 2) for rung in tail.ladder.rungs],
    }
    for requirement in REQUIREMENTS:
        value |= _episodes(analysis, summary, requirement)
    says = tuple(f"cpu {cpu}, single latencies: {each.code}: {each.message}" for each in told)
    return Thread(cpu, value, bool(of_seconds.refusals and told), says)


def _episodes(analysis: Analysis, summary: Summary, requirement: Requirement) -> dict[str, Value]:
    """How many, and the mean time between them that is exceeded at 95 %, for a length fixed before the run."""
    own = tuple(event for event in analysis.record.events if event.thread in summary.threads)
    window = MeasuredWindow(summary.first_due_ns or 0, summary.span_ns, end_ns(analysis.record, summary))
    late = late_times(replace(analysis.record, events=own), (summary,), requirement, window).late
    found = episode_course(late, summary.span_ns, requirement.gap_ns).episodes
    minutes = summary.span_ns / 60e9 / mean_upper(found, requirement.confidence)
    words = in_words(requirement.limit_ns)
    return {
        f"episodes above {words}": found,
        f"mean time between these is above [min], {words}": round(minutes, 2),
    }


def _recorded(name: str, loads: tuple[str, ...], seconds: int) -> Path:
    """The run folder, measured now if there is none of this length."""
    folder = BUILD / f"forecast-{name}-{seconds}s"
    if not folder.exists():
        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        draft.parent.mkdir(exist_ok=True)
        disturb = [word for load in loads for word in ("--load", load)]
        limits = [word for each in REQUIREMENTS for word in ("--limit", f"{each.limit_ns}ns")]
        command = [sys.executable, "-m", "rtproof", "run", "--no-report", "--output", str(draft), *MEASURED]
        subprocess.run([*command, "--duration", f"{seconds}s", *limits, *disturb], capture_output=True, check=False)
        draft.rename(folder)
    return folder


BENCHMARKS = (
    Benchmark("10_dispersion", "A run whose rate changes is noticed", uneven_runs),
    Benchmark("15_this_machine", "Ten minutes of this machine are refused", this_machine, in_tests=False),
)
