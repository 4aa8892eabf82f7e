# SPDX-License-Identifier: Apache-2.0
"""Random small records, judged by the program and once more by ``slow_verdict``, have the same verdicts."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
import slow_verdict
from analysis_records import SERIES, block, record
from slow_verdict import TICK_NS

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, Verdict
from rtproof.record.contents import Block, End, EndReason, Record, Series

PERIOD_NS = TICK_NS
LIMITS_NS = (50_000_000, 120_000_000, 700_000_000, 2_500_000_000)


@dataclass(frozen=True)
class Case:
    """A record, what was late in it as pairs of due time and latency, and what it must say of its length."""

    record: Record
    late: list[tuple[int, int]]
    first_due_ns: int
    measured_ns: int
    whole: bool


def made(rng: np.random.Generator) -> Case:
    """One to three threads that begin at times of their own, with late activations, long ones and bursts."""
    seconds, first_tick = int(rng.integers(1, 150)), int(rng.integers(0, 9))
    lost = bool(rng.random() < 0.15 and seconds > 4)
    rate = rng.choice([0.0, 0.002, 0.01, 0.05])
    series, blocks = [], []
    late: list[tuple[int, int]] = []
    for thread in range(int(rng.integers(1, 4))):
        one = replace(
            SERIES, id=thread, thread=thread, period_ns=PERIOD_NS, first_due_ns=(first_tick + thread) * TICK_NS
        )
        of_it, found = _thread(rng, one, 4 * seconds - thread, rate, lost=lost and thread == 0)
        series.append(one)
        blocks += of_it
        late += found
    end_ns = (first_tick + 4 * seconds) * TICK_NS
    whole = record(blocks, tuple(series))
    assert whole.end is not None
    whole = replace(whole, end=End(end_ns, EndReason.AS_ASKED, "", whole.end.totals))
    return Case(whole, late, first_tick * TICK_NS, 4 * seconds * TICK_NS, not lost)


def _thread(
    rng: np.random.Generator, series: Series, ticks: int, rate: float, *, lost: bool
) -> tuple[list[Block], list[tuple[int, int]]]:
    """The activations of one thread; lost: one in the middle has left no value."""
    values: list[int] = []
    gaps: dict[int, int] = {}
    late: list[tuple[int, int]] = []
    blocks: list[Block] = []
    index = begun = 0
    while index < ticks:
        value = int(rng.integers(1_000, 40_000_000))
        if rng.random() < rate and index < ticks - 40:
            value = int(rng.exponential(600_000_000)) + 50_000_000
        missed = min(value // PERIOD_NS, ticks - index - 2) if value >= PERIOD_NS else 0
        late.append((series.first_due_ns + index * PERIOD_NS, value))
        if missed:
            gaps[len(values)] = missed
        values.append(value)
        index += 1 + missed
        if lost and not blocks and index > ticks // 2 and index < ticks - 3 and not missed:
            blocks.append(block(values, gaps, begun, series))
            values, gaps, index = [], {}, index + 1
            begun = index
    return [*blocks, block(values, gaps, begun, series)], late


def asked(rng: np.random.Generator) -> tuple[Requirement, ...]:
    """One to three limits; confidence and bunches are common, gap and longest length go with T."""
    confidence, bunches = float(rng.choice([0.5, 0.8, 0.95, 0.99])), float(rng.choice([1.0, 1.0, 1.5]))
    limits = rng.choice(LIMITS_NS, size=int(rng.integers(1, 4)), replace=False)
    times = rng.integers(1_000, 60_000, size=limits.size) * 1_000_000
    return tuple(
        Requirement(int(limit), int(at_most), confidence, int(at_most) // int(rng.integers(10, 30)), bunches=bunches)
        for limit, at_most in zip(limits, times, strict=True)
    )


def agrees(case: Case, requirement: Requirement, limits: int, verdict: Verdict) -> str:
    """Asserts that a verdict is what the slow one says; the state."""
    wanted = slow_verdict.Asked(
        requirement.limit_ns,
        requirement.at_most_ns,
        requirement.gap_ns,
        requirement.longest_ns,
        requirement.bunches,
        (1 - requirement.confidence) / limits,
    )
    spans = [
        (begin - case.first_due_ns, end - case.first_due_ns)
        for begin, end in slow_verdict.late_spans(case.late, requirement.limit_ns)
    ]
    found = slow_verdict.decided(spans, case.measured_ns, wanted, whole=case.whole)
    groups = slow_verdict.episodes(spans, requirement.gap_ns)
    told = [(each.begin_ns - case.first_due_ns, each.end_ns - case.first_due_ns) for each in verdict.episodes]
    assert told == [(group[0][0], max(end for _, end in group)) for group in groups]
    assert verdict.measured_ns == case.measured_ns
    assert verdict.state.value in ((found.state,) if case.whole else (found.state, "INVALID"))
    if verdict.state.value == "INVALID":  # which tells nothing of the test
        assert (verdict.kind, verdict.decided_at_ns, verdict.proven_at_ns) == (None, None, None)
        return "INVALID"
    assert verdict.kind == (found.why or None)
    near = pytest.approx(found.at_ns, abs=1e-6 * requirement.at_most_ns) if found.at_ns is not None else None
    assert verdict.decided_at_ns == near
    if near is not None:
        assert verdict.decided_with == found.episodes
    assert (verdict.proven_at_ns is None) == (found.proven_ns is None)
    return f"{found.state} {found.why}"


@pytest.mark.parametrize("part", range(3))
def test_every_verdict_is_the_slow_one(part: int) -> None:
    """Checked to fail: with a mixing of 0.29, with the gap counted as quiet, and with all time for a proof."""
    rng = np.random.default_rng((12, part))
    states: Counter[str] = Counter()
    for _ in range(30):
        case, wanted = made(rng), asked(rng)
        for requirement, verdict in zip(wanted, analyse(case.record, wanted, 1).verdicts, strict=True):
            states[agrees(case, requirement, len(wanted), verdict)] += 1
    assert min(states[state] for state in ("PROVEN ", "REFUTED rate", "REFUTED duration", "UNDECIDED ")) >= 1
