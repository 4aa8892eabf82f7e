# SPDX-License-Identifier: Apache-2.0
"""The claim "episodes come at most once per T, none longer than D" judged from counts that have no time order.

Whatever is said here holds for every order in which the samples may have come:

* REFUTED by duration, where one activation alone was late for longer than D, or where too few samples lie below the
  limit to make the gaps that so many exceedances need.
* REFUTED by rate, with the fewest episodes that can hold K exceedances: none longer than D holds more than
  threads x (floor(D / period) + 1) of them. The last of them began at the end of the run at the latest.
* PROVEN only without an exceedance, with the time in which every activation is counted. With exceedances there always
  is an order that is REFUTED: one in the first 0.0035 T is enough. It is told if all others would be PROVEN.

The bunch test needs times and is not made. K has bounds where a bin holds the limit, or values lie beyond the scale;
each rule takes the one that claims less. PROVEN also needs that the file shows that every due activation ran.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rtproof.analysis.imported import Imported
from rtproof.analysis.model import Requirement, State
from rtproof.analysis.phrases import duration, error, percent, quantity, value
from rtproof.analysis.sequential import refuted_until_ns, tau_needed

MARGIN_NS = 1_000_000_000
"""By how much a duration that is told in seconds may be wrong."""
SLACK_NS = 3_000_000_000
"""So much of a run may have no sample: threads begin, the program ends, and the duration may be wrong by the margin.

Never more than an episode may last: the last activation may not have come back.
"""


@dataclass(frozen=True)
class Exceeding:
    """How many samples exceed the limit, at least and at most (None: not told)."""

    least: int
    most: int | None


@dataclass(frozen=True)
class Finding:
    """A state and the reason for it, a sentence without a full stop."""

    state: State
    reason: str


def judged(imported: Imported, asked: Requirement, found: Exceeding, alpha: float) -> Finding:
    """What holds for every order of the samples. alpha: the limit's share of the probability of error."""
    if found.least:
        refuted = _by_duration(imported, asked, found.least) or _by_rate(imported, asked, found.least, alpha)
        if refuted:
            return Finding(State.REFUTED, refuted)
    if found.most != 0:
        return Finding(State.UNDECIDED, _undecided(imported, asked, found, alpha))
    lack = _lack(imported, asked)
    if lack:
        return Finding(State.UNDECIDED, f"{NONE}, but {lack}, so it proves nothing")
    return _without_exceedance(imported, asked, alpha)


def fewest_episodes(imported: Imported, asked: Requirement, exceeding: int) -> int:
    """So many episodes there were at least, if none lasted longer than D."""
    period_ns = imported.shortest_period_ns
    if not exceeding or not period_ns:
        return min(exceeding, 1)
    return -(-exceeding // _held(imported, asked, period_ns))


def counted_ns(imported: Imported) -> int | None:
    """The time in which every activation of every thread is counted; None where the file does not tell.

    Threads that began one after another and ended so have less in common than the shortest of them.
    """
    period_ns, told_ns = imported.shortest_period_ns, imported.duration_ns
    counts = _counts(imported)
    if not period_ns or told_ns is None or not counts:
        return None
    lengths = [count * period for count, period in counts]
    if len(lengths) == 1:
        return max(min(lengths[0], told_ns - MARGIN_NS), 0)
    return max(told_ns - MARGIN_NS - 2 * max(told_ns + MARGIN_NS - min(lengths), 0), 0)


def _counts(imported: Imported) -> list[tuple[int, int]]:
    """Samples and period of each thread, none if one is not told."""
    shortest = imported.shortest_period_ns or 0
    if not imported.parts:
        return [(imported.count, shortest)] if imported.count is not None else []
    found = [(part.count, part.period_ns or shortest) for part in imported.parts]
    return (
        [(count, period) for count, period in found if count is not None]
        if all(n is not None for n, _ in found)
        else []
    )


def _threads(imported: Imported) -> int:
    return max(len(imported.parts), 1)


def _held(imported: Imported, asked: Requirement, period_ns: int) -> int:
    """The most exceedances that one episode holds which is not too long."""
    return _threads(imported) * (asked.longest_ns // period_ns + 1)


def _by_duration(imported: Imported, asked: Requirement, exceeding: int) -> str | None:
    longest = duration(asked.longest_ns)
    if imported.max_ns is not None and imported.max_ns - asked.limit_ns > asked.longest_ns:
        late = duration(imported.max_ns - asked.limit_ns)
        return f"one activation alone was late for {late}, and an episode may last {longest} at most"
    period_ns = imported.shortest_period_ns
    if not period_ns or imported.count is None:
        return None
    in_a_gap = (asked.gap_ns - asked.limit_ns) // max(_periods(imported, period_ns)) - 1
    if in_a_gap < 1:
        return None
    gaps = (imported.count + imported.left_out - exceeding) // in_a_gap
    if exceeding <= (gaps + 1) * _held(imported, asked, period_ns):
        return None
    return (
        f"{exceeding:,} of {quantity(imported.count, 'sample')} exceeded the limit, and the others are too few for the "
        f"pauses of {duration(asked.gap_ns)} that would part them: an episode lasted longer than {longest}, in "
        "any order"
    )


def _periods(imported: Imported, shortest_ns: int) -> list[int]:
    return [part.period_ns or shortest_ns for part in imported.parts] or [shortest_ns]


def _by_rate(imported: Imported, asked: Requirement, exceeding: int, alpha: float) -> str | None:
    if imported.duration_ns is None:
        return None
    episodes, by_ns = fewest_episodes(imported, asked, exceeding), imported.duration_ns + MARGIN_NS
    if by_ns > refuted_until_ns(episodes, asked.at_most_ns, alpha):
        return None
    most = duration(imported.duration_ns) if imported.duration_ns else f"less than {duration(MARGIN_NS)}"
    if episodes == 1:
        too_many = f"{_at_least(exceeding)} exceeded the limit: one episode in {most} is too many, whenever it came"
        return f"{too_many}; {assumption(alpha)}"
    return (
        f"{_at_least(exceeding)} exceeded the limit, which takes at least {episodes:,} episodes of "
        f"{duration(asked.longest_ns)}: in {most} that is too many, whenever they came (with fewer, one of them lasted "
        f"longer); {assumption(alpha)}"
    )


def _at_least(exceeding: int) -> str:
    return f"at least {quantity(exceeding, 'sample')}"


NONE = "no sample exceeded the limit"
UNORDERED = (
    "samples exceeded the limit, but a histogram does not tell when: they may all belong to one episode, which does "
    "not refute the claim, or each to its own"
)
UNKNOWN = "its bins do not tell whether a sample exceeded the limit"


def _undecided(imported: Imported, asked: Requirement, found: Exceeding, alpha: float) -> str:
    """With the order that would prove the claim, where there is one."""
    reason = UNORDERED if found.least else UNKNOWN
    if not found.most or _lack(imported, asked, exceeding=True):
        return reason
    live_ns = live_at_least_ns(imported, asked, found.most)
    if live_ns is None or tau_needed(found.most, alpha) * asked.bunches * asked.at_most_ns > live_ns:
        return reason
    early = duration(refuted_until_ns(1, asked.at_most_ns, alpha))
    return (
        f"{reason}; even as {quantity(found.most, 'episode')} they would be few enough for PROVEN, but one in the "
        f"first {early} would refute the claim, and nothing tells when they came"
    )


def live_at_least_ns(imported: Imported, asked: Requirement, most: int) -> int | None:
    """The quiet time that is left if each of so many exceedances was an episode of its own; None: not told.

    Each takes its lateness and the gap behind it.
    """
    whole_ns = imported.duration_ns
    if whole_ns is None or imported.largest_ns is None:
        return None
    lateness = most * max(imported.largest_ns - asked.limit_ns, 0)
    if (most - 1) * asked.gap_ns + lateness > asked.longest_ns:
        return None
    return max(whole_ns - MARGIN_NS - most * asked.gap_ns - lateness, 0)


def lack(imported: Imported) -> str | None:
    """Why the file does not show that every due activation ran, whatever the limit; None if it does."""
    return _unknown(imported) or _uncounted(imported, _slack_ns(imported))


def _lack(imported: Imported, asked: Requirement, *, exceeding: bool = False) -> str | None:
    """The same for a limit; exceeding: without the activations that were skipped behind a late one."""
    if exceeding:
        return _unknown(imported, skipped=True)
    return _unknown(imported) or _uncounted(imported, min(_slack_ns(imported), asked.longest_ns))


def _slack_ns(imported: Imported) -> int:
    """What may be missing of a thread's activations; a clock that was set may differ by a thousandth."""
    return SLACK_NS + (imported.duration_ns or 0) // 1000


def _unknown(imported: Imported, *, skipped: bool = False) -> str | None:
    period_ns, largest_ns = imported.shortest_period_ns, imported.largest_ns
    if imported.duration_ns is None:
        return "the file does not tell how long it measured"
    if not period_ns:
        return "the file does not tell the period, so the number of due activations is unknown"
    if not _counts(imported):
        return "the file does not tell how many activations each thread ran"
    if imported.overruns:
        return f"the tool counted {quantity(imported.overruns, 'overrun')}, which are activations without a sample"
    if imported.overruns is None and not skipped and (largest_ns is None or largest_ns >= period_ns):
        return "its largest value is as long as the period, and behind it the tool may have skipped activations"
    return None


def _uncounted(imported: Imported, slack_ns: int) -> str | None:
    """Which thread has more or fewer samples than were due."""
    told_ns = imported.duration_ns or 0
    for number, (count, period) in enumerate(_counts(imported)):
        if count * period > told_ns + MARGIN_NS + period:
            return (
                f"thread {number} has {count:,} samples, more than fit into {duration(told_ns)} at its period of "
                f"{value(period)}"
            )
        if told_ns + MARGIN_NS - count * period > slack_ns:
            return (
                f"thread {number} has {count:,} samples where {told_ns // period:,} were due, and nothing tells what "
                "became of the others"
            )
    return None


def _without_exceedance(imported: Imported, asked: Requirement, alpha: float) -> Finding:
    live_ns = counted_ns(imported) or 0
    tau = tau_needed(0, alpha)
    needed_ns = math.ceil(tau * asked.bunches * asked.at_most_ns)
    seen = f"{NONE} in {duration(live_ns)}, in which every due activation is counted"
    if needed_ns > live_ns:
        lack = f"too short: PROVEN takes {duration(needed_ns, up=True)} without one"
        return Finding(State.UNDECIDED, f"{seen}; {lack}")
    rarest = duration(live_ns / tau)
    bunches = live_ns / (tau * asked.at_most_ns)
    shown = f"; no episode tells of bunches; the proof would hold for bunches of up to {bunches:.1f} on average"
    told = (
        f"{seen}: episodes come less often than once per {rarest} ({percent(asked.confidence)}); once per "
        f"{duration(asked.at_most_ns)} was asked{shown if bunches >= SHOWN_FROM else ''}; {assumption(alpha)}"
    )
    return Finding(State.PROVEN, told)


SHOWN_FROM = 1.1
"""Bunches of fewer episodes are not worth a word."""


def assumption(alpha: float) -> str:
    """What PROVEN and REFUTED by rate rest on."""
    return (
        f"wrong in at most {error(alpha)} of runs, if episodes come independently of one another and at a steady rate"
    )


NOT_CHECKED = (
    "policy, priority, CPU, clock and load were not checked, because the file does not carry what shows them; nor was "
    "it tested whether episodes come in bunches, because the file has no times"
)
"""Beside every verdict on such a file."""


def doubts(imported: Imported, states: Sequence[State]) -> tuple[str, ...]:
    """What to read a decision with; none where nothing was decided."""
    decided = any(state in (State.PROVEN, State.REFUTED) for state in states)
    return (*((NOT_CHECKED,) if decided else ()), *imported.stated)
