# SPDX-License-Identifier: Apache-2.0
"""The fact that stands first in every output: how often a limit was exceeded, and the largest latency.

It was seen, so it needs no confidence and no assumption. Its latencies have the unit of the limit.
"""

from rtproof.core.phrases import duration, how_often, limit_value, quantity, value
from rtproof.judge.evidence import Evidence, LimitTest
from rtproof.record.requirement import Requirement
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Severity

NOTHING = "Nothing was measured"


def exceeded_count(requirement: Requirement, evidence: Evidence) -> int:
    """How many due activations exceeded the limit, at least. A thread that stood may have left only an event."""
    stood = evidence.times.late.size > 0 or evidence.seen_stall_ns > requirement.limit_ns
    return max(evidence.exceedances_schedule or 0, int(stood))


def seen(requirement: Requirement | None, evidence: Evidence, episodes: str = "") -> str:
    """What was seen of the limit, or of the largest latency without one. episodes: what ``episodes_phrase`` says."""
    nothing = evidence.measured_ns <= 0 and evidence.obtained <= evidence.lost
    if nothing and not (requirement and exceeded_count(requirement, evidence)):
        return NOTHING
    if requirement is None:
        return _largest_of_run(evidence)
    largest = largest_latency(requirement, evidence)
    if not exceeded_count(requirement, evidence):
        return f"{limit_value(requirement.limit_ns)} was not exceeded{_measured(evidence)}; {largest}"
    return "; ".join(part for part in (f"{_exceeded(requirement, evidence)}{episodes}", largest) if part)


def invalid_reasons(requirement: Requirement | None, evidence: Evidence) -> tuple[str, ...]:
    """What makes the run INVALID, with what was seen behind the first reason; () if nothing does."""
    invalid = tuple(doubt.what for doubt in evidence.doubts if doubt.severity is Severity.INVALID)
    return (invalid[0], seen(requirement, evidence), *invalid[1:]) if invalid else ()


def episodes_phrase(tested: LimitTest, *, refuting: bool = False) -> str:
    """The number of episodes in brackets; "" without one. refuting: count them as a refutation does."""
    n, course = tested.episodes_refuting if refuting else tested.episodes, tested.course
    if not n:
        return ""
    lasting = f" of {duration(course.longest_ns)}" if n == 1 and course.longest_ns >= SECOND_NS else ""
    open_now = ", not over" if n == 1 else ", the last one not over"
    return f" ({quantity(n, 'episode')}{lasting}{open_now if course.open_for_ns >= SECOND_NS else ''})"


def in_band_phrase(evidence: Evidence) -> str:
    """A phrase that names the measured threads as Linux's, if a co-kernel runs beside Linux; else empty."""
    return f", {IN_BAND} beside {evidence.core}" if evidence.core else ""


def largest_latency(requirement: Requirement, evidence: Evidence) -> str:
    """The largest latency, and where it was if it exceeded the limit. A thread that stood has only a lower bound."""
    limit_ns, worst = requirement.limit_ns, evidence.worst
    largest_ns = max(evidence.largest_ns or 0, evidence.seen_stall_ns)
    ran = f"of {quantity(evidence.obtained - evidence.lost, evidence.noun)}{' that ran' if evidence.missed else ''}"
    if largest_ns <= limit_ns:
        known = worst is not None and evidence.largest_ns is not None
        return f"the largest {ran} was {value(evidence.largest_ns or 0, limit_ns)}" if known else f"n = {ran[3:]}"
    if evidence.stalled_ns >= largest_ns:
        return f"thread {evidence.stalled_thread} stood for the last {value(evidence.stalled_ns)} of the run"
    if evidence.seen_stall_ns >= largest_ns:
        return f"a thread stood for at least {value(largest_ns)}"
    if worst is None or worst.value_ns < largest_ns:
        of = ", of an activation that never ran" if evidence.missed else ""
        return f"the largest was {value(largest_ns, limit_ns)}{of}"
    return f"the largest was {value(worst.value_ns, limit_ns)}, {_place(evidence)}"


def _place(evidence: Evidence) -> str:
    assert evidence.worst
    after_ns = max(evidence.worst.due_ns - evidence.first_due_ns, 0)
    at = f"at {duration(after_ns)}" if after_ns else "at the start"
    return f"{at} on {f'CPU {evidence.worst.cpu}' if evidence.worst.cpu >= 0 else f'thread {evidence.worst.thread}'}"


def _measured(evidence: Evidence) -> str:
    virtual = " of virtual time" if evidence.virtual_time else ""
    span = f" in {duration(evidence.measured_ns)}{virtual}" if evidence.measured_ns > 0 else ""
    return f"{span}{in_band_phrase(evidence)}"


def _exceeded(requirement: Requirement, evidence: Evidence) -> str:
    limit, count, due = limit_value(requirement.limit_ns), exceeded_count(requirement, evidence), evidence.counted
    if count >= due > 1:
        return f"All {due:,} {evidence.noun}s{_measured(evidence)} were above {limit}"
    many = f"by {count:,} of {due:,} {evidence.noun}s" if 2 * count > due > 1 else how_often(count)
    late, ran = evidence.exceedances_schedule or 0, evidence.exceedances_observed
    # Tools that count only those that ran have fewer.
    missed = f" ({ran:,} ran late, {late - ran:,} never ran)" if ran is not None and late > ran else ""
    return f"{limit} was exceeded {many}{missed}{_measured(evidence)}"


def _largest_of_run(evidence: Evidence) -> str:
    """Of a run without a limit: the largest latency, the 99.9 %, and how many activations there were."""
    span = f" in {duration(evidence.measured_ns)}" if evidence.measured_ns > 0 else ""
    n = f"n = {evidence.obtained - evidence.lost:,}{span}"
    if evidence.worst is None and evidence.largest_ns is None:
        return f"The record has no latency{in_band_phrase(evidence)}; {n}"
    largest_ns = evidence.worst.value_ns if evidence.worst else evidence.largest_ns or 0
    where = f", {_place(evidence)}" if evidence.worst else ""
    largest = f"The largest latency was {value(largest_ns)}{where}"
    if evidence.stalled_ns > largest_ns:
        largest = f"Thread {evidence.stalled_thread} stood for the last {value(evidence.stalled_ns)} of the run"
    high_ns = evidence.high_ns
    high = f"; 99.9 % were at most {value(high_ns, largest_ns)}" if high_ns is not None else ""
    return f"{largest}{in_band_phrase(evidence)}{high}; {n}"
