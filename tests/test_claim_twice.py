# SPDX-License-Identifier: Apache-2.0
"""The product and a judge of the claim that was written apart from it say the same, at the same nanosecond."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from claim_processes import Floats
from claim_rules import Claim, Rounded, Told, reference

from rtproof.judge.analysis_model import Requirement
from rtproof.judge.claim import LateStretches, RefutingRule, decide
from rtproof.summary.per_second import SECOND_NS

ALPHA = 0.05
EACH = 400


@dataclass(frozen=True)
class Case:
    """Nanoseconds throughout; the reference takes them as its unit, so that nothing is rounded."""

    late: LateStretches
    length_ns: int
    requirement: Requirement


def drawn(generator: np.random.Generator) -> Case:
    """Anything from nothing to a storm without end, with exact and rounded times of several threads, in any order."""
    at_most_ns = int(np.exp(generator.uniform(np.log(20), np.log(20_000))) * SECOND_NS)
    usual = Requirement(0, at_most_ns)
    gap_ns = int(usual.gap_ns * np.exp(generator.normal(0, 0.5))) if generator.random() < 0.3 else usual.gap_ns
    gap_ns = max(gap_ns, SECOND_NS)
    longest_ns = int(gap_ns * np.exp(generator.uniform(0, np.log(200))))
    length_ns = int(at_most_ns * np.exp(generator.uniform(np.log(0.01), np.log(60))))
    waits = _waits(generator, gap_ns, at_most_ns, length_ns)
    if waits.sum() > 10 * at_most_ns:
        length_ns = int(waits.sum() * generator.uniform(0.7, 1.5))
    count = waits.size
    begin = np.cumsum(waits).astype(np.int64)
    begin -= begin[0] if count and generator.random() < 0.2 else 0
    begin = np.sort(begin[begin <= length_ns])
    lengths = generator.exponential(generator.choice([1, gap_ns / 3, longest_ns]), begin.size)
    lengths *= generator.random(begin.size) < generator.random()
    end = np.minimum(begin + lengths.astype(np.int64), length_ns)
    kind = generator.integers(3)
    coarse = generator.random(begin.size) < (0, 1, 0.5)[kind]
    order = generator.permutation(begin.size)
    begin, end, coarse = begin[order], end[order], coarse[order]
    first, last = begin // SECOND_NS * SECOND_NS, end // SECOND_NS * SECOND_NS
    late = LateStretches(
        np.where(coarse, first, begin),
        np.where(coarse, np.minimum(first + SECOND_NS, length_ns), begin),
        np.where(coarse, last, end),
        np.where(coarse, last + SECOND_NS, end),
    )
    m = float(generator.choice([1.0, 1.5, 4.0]))
    return Case(late, length_ns, Requirement(0, at_most_ns, gap_ns=gap_ns, longest_ns=longest_ns, bunches=m))


def _waits(generator: np.random.Generator, gap_ns: int, at_most_ns: int, length_ns: int) -> Floats:
    """Of any spread; or about as long as the gap, where rounding decides; or those of bunches in a long run."""
    count = int(np.exp(generator.uniform(0, np.log(100)))) - 1
    kind = generator.integers(3)
    if kind == 0:
        middle = generator.uniform(-1, 1) + np.log(generator.choice([gap_ns, at_most_ns, length_ns / (count + 1)]))
        return generator.lognormal(middle, generator.uniform(0.1, 3), count)
    if kind == 1:
        waits = gap_ns + SECOND_NS * generator.uniform(-2.5, 2.5, count)
        return np.where(generator.random(count) < 0.3, generator.exponential(at_most_ns, count), waits)
    return generator.uniform(0.9 * gap_ns, 4 * gap_ns, count)


def in_bunches(generator: np.random.Generator) -> Case:
    """A few bunches in a long run, for which the bunch test withholds a proof, with exact times or seconds."""
    asked = Requirement(0, int(generator.uniform(0.3, 6) * 3600) * SECOND_NS)
    begins = np.cumsum(generator.uniform((0.7, 10, 10), (3, 60, 60))) * asked.at_most_ns
    members = np.repeat(begins, generator.integers(1, 6, 3))
    begin = np.sort(members + generator.uniform(0, 1, members.size) * asked.at_most_ns * generator.uniform(0.03, 1))
    length_ns = int(generator.uniform(10, 130) * asked.at_most_ns)
    due = begin[begin < length_ns].astype(np.int64)
    late = (
        LateStretches.exact(due, due)
        if generator.random() < 0.5
        else LateStretches.of_seconds(due // SECOND_NS * SECOND_NS)
    )
    return Case(late, length_ns, asked)


def by_the_reference(case: Case) -> Told:
    asked, late = case.requirement, case.late
    claim = Claim(asked.at_most_ns, asked.gap_ns, asked.longest_ns, asked.bunches)
    bounds = Rounded(*(each.astype(np.float64) for each in (late.begin_lo, late.begin_hi, late.end_lo, late.end_hi)))
    return reference(bounds, case.length_ns, claim)


def near(one: float | None, other: float | None) -> bool:
    """Critical times are rounded up to the nanosecond by one of the two."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 2


EVERY = {"PROVEN", "REFUTED", ""}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("draw", "states"), [(drawn, {*EVERY, "by length"}), (in_bunches, {"PROVEN", "", "withheld"})])
def test_both_say_the_same_at_the_same_time(
    draw: Callable[[np.random.Generator], Case], states: set[str], seed: int
) -> None:
    generator = np.random.default_rng((11, seed))
    seen: set[str] = set()
    for number in range(EACH):
        case = draw(generator)
        told, found = by_the_reference(case), decide(case.requirement, case.late, case.length_ns, ALPHA)
        where = f"case {number}: {case}\n{told}\n{found}"
        assert near(found.refuted_at_ns, told.refuted_s), where
        first = told.proven_s if told.refuted_s is None or (told.proven_s or 0.0) < told.refuted_s else None
        assert near(found.proven_at_ns, first), where
        assert found.proven_at_ns is None or found.proven_with == told.episodes, where
        if found.kind is not None and told.refuted_s is not None:
            assert (found.kind is RefutingRule.DURATION) == told.by_length, where
        seen |= {told.state, "withheld" * told.withheld, "by length" * told.by_length}
    assert states <= seen
