# SPDX-License-Identifier: Apache-2.0
"""Judge a histogram without time order: what its counts show, and what they cannot show.

The claim is the same as for a run: episodes come at most once per T, and none lasts longer than D.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rtproof.core.notebook import Sentences
from rtproof.core.phrases import duration, limit_value, percent, quantity, value
from rtproof.judge import plain_limit, planning, timed_lines, verdict_sentences
from rtproof.judge.analysis_model import DECIDED, Analysis, CountAbove, State, Verdict
from rtproof.judge.claim import RefutingRule
from rtproof.judge.doubts.registry import contradicted, doubts_about_file
from rtproof.judge.doubts.target_state import format_doubt
from rtproof.judge.evidence import HIGH_SHARE
from rtproof.judge.verdict import deciding_verdict
from rtproof.judge.worst_first import worst_first
from rtproof.record.requirement import Requirement, rated
from rtproof.statistics import rate_upper, refuted_until_ns, share_lower, share_upper, tau_needed
from rtproof.summary.imported_histogram import (
    LARGER_ELSEWHERE,
    LINES_UNREAD,
    ImportedHistogram,
    record_of_histogram,
    scale_end_ns,
    summaries_of_threads,
    summary_of_histogram,
    with_overflow,
)
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.quantiles import quantiles
from rtproof.summary.summary_model import Doubt, Severity

MARGIN_NS = 1_000_000_000
"""The possible error of a duration that a file states in whole seconds."""
SLACK_NS = 3_000_000_000
"""This much of a run may lack samples: threads start, the program ends, and the duration may be wrong by the margin.

The slack is never longer than an episode may last, because the last activation may not have come back.
"""


@dataclass(frozen=True)
class CountedExceedances:
    """How many samples exceed the limit, at least and at most (None: unknown)."""

    least: int
    most: int | None


@dataclass(frozen=True)
class CountedFinding:
    """A state and its reason, which is a sentence without a full stop. kind: the rule that REFUTED."""

    state: State
    reason: str
    kind: RefutingRule | None = None


def judge_counts(
    imported: ImportedHistogram, asked: Requirement, found: CountedExceedances, alpha: float
) -> CountedFinding:
    """Decide only what holds for every order of the samples. alpha: the limit's share of the probability of error."""
    if found.least:
        too_long = _by_duration(imported, asked, found.least) or timed_lines.too_long(imported.lines, asked)
        if too_long:
            return CountedFinding(State.REFUTED, too_long, RefutingRule.DURATION)
        too_often = _by_rate(imported, asked, found.least, alpha)
        too_often = too_often or timed_lines.too_often(imported.lines, asked, alpha)
        if too_often:
            return CountedFinding(State.REFUTED, too_often, RefutingRule.RATE)
    if found.most != 0:
        return CountedFinding(State.UNDECIDED, _undecided(imported, asked, found, alpha))
    lack = _lack(imported, asked)
    if lack:
        return CountedFinding(State.UNDECIDED, f"{NO_EXCEEDANCE}, but {lack}, so it proves nothing")
    return _without_exceedance(imported, asked, alpha)


def fewest_episodes(imported: ImportedHistogram, asked: Requirement, exceeding: int) -> int:
    """The smallest possible number of episodes with so many exceedances, if none lasted longer than D."""
    period_ns = imported.shortest_period_ns
    if not exceeding or not period_ns:
        return min(exceeding, 1)
    return -(-exceeding // _held(imported, asked, period_ns))


def counted_ns(imported: ImportedHistogram) -> int | None:
    """The time in nanoseconds in which every activation of every thread is counted; None if the file lacks figures.

    Threads may begin and end one after another. Then the time that they share is shorter than that of any thread.
    """
    period_ns, told_ns = imported.shortest_period_ns, imported.duration_ns
    counts = _counts(imported)
    if not period_ns or told_ns is None or not counts:
        return None
    lengths = [count * period for count, period in counts]
    if len(lengths) == 1:
        return max(min(lengths[0], told_ns - MARGIN_NS), 0)
    return max(told_ns - MARGIN_NS - 2 * max(told_ns + MARGIN_NS - min(lengths), 0), 0)


def _counts(imported: ImportedHistogram) -> list[tuple[int, int]]:
    """Samples and period of each thread; empty if the file lacks a number of samples."""
    shortest = imported.shortest_period_ns or 0
    if not imported.parts:
        return [(imported.count, shortest)] if imported.count is not None else []
    found = [(part.count, part.period_ns or shortest) for part in imported.parts]
    return (
        [(count, period) for count, period in found if count is not None]
        if all(n is not None for n, _ in found)
        else []
    )


def _threads(imported: ImportedHistogram) -> int:
    return max(len(imported.parts), 1)


def _held(imported: ImportedHistogram, asked: Requirement, period_ns: int) -> int:
    """The largest number of exceedances in one episode that is no longer than allowed."""
    return _threads(imported) * (asked.longest_ns // period_ns + 1)


def _by_duration(imported: ImportedHistogram, asked: Requirement, exceeding: int) -> str | None:
    longest = duration(asked.longest_ns)
    if imported.max_ns is not None and imported.exceeds(asked.limit_ns + asked.longest_ns):
        late = duration(imported.max_ns - asked.limit_ns)
        return f"one activation alone was late for {late}, and an episode may last {longest} at most"
    period_ns = imported.shortest_period_ns
    if not period_ns or imported.count is None or imported.lossy:
        return None
    in_a_gap = (asked.gap_ns - asked.limit_ns) // max(_periods(imported, period_ns)) - 1
    if in_a_gap < 1:
        return None
    # A period that passed without an activation of its own is part of a pause too.
    gaps = (imported.count + imported.left_out + (imported.overruns or 0) - exceeding) // in_a_gap
    if exceeding <= (gaps + 1) * _held(imported, asked, period_ns):
        return None
    return (
        f"{exceeding:,} of {quantity(imported.count, 'sample')} exceeded the limit, and the others are too few for the "
        f"pauses of {duration(asked.gap_ns)} that would part them: an episode lasted longer than {longest}, in "
        "any order"
    )


def _periods(imported: ImportedHistogram, shortest_ns: int) -> list[int]:
    return [part.period_ns or shortest_ns for part in imported.parts] or [shortest_ns]


def _by_rate(imported: ImportedHistogram, asked: Requirement, exceeding: int, alpha: float) -> str | None:
    if imported.duration_ns is None:
        return None
    episodes, by_ns = fewest_episodes(imported, asked, exceeding), imported.duration_ns + MARGIN_NS
    if by_ns > refuted_until_ns(episodes, asked.at_most_ns, alpha):
        return None
    most = duration(imported.duration_ns) if imported.duration_ns else f"less than {duration(MARGIN_NS)}"
    if episodes == 1:
        return f"{_at_least(exceeding)} exceeded the limit: one episode in {most} is too many, whenever it came"
    return (
        f"{_at_least(exceeding)} exceeded the limit, which takes at least {episodes:,} episodes of "
        f"{duration(asked.longest_ns)}: in {most} that is too many, whenever they came (with fewer, one of them lasted "
        "longer)"
    )


def _at_least(exceeding: int) -> str:
    return f"at least {quantity(exceeding, 'sample')}"


NO_EXCEEDANCE = "no sample exceeded the limit"
UNORDERED = (
    "samples exceeded the limit, but the file does not tell when: they may all belong to one episode, which does "
    "not refute the claim, or each to its own"
)
LINED = (
    "{0} of its {1} exceeded the limit, which shows {2} at least; there may be more in a line, so this neither proves "
    "nor refutes the claim"
)
UNKNOWN = "its bins do not tell whether a sample exceeded the limit"


def _undecided(imported: ImportedHistogram, asked: Requirement, found: CountedExceedances, alpha: float) -> str:
    """Why a histogram decides nothing; also that some order of its samples would prove the claim, if one would."""
    reason = (_lined(imported, asked) or UNORDERED) if found.least else UNKNOWN
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


def _lined(imported: ImportedHistogram, asked: Requirement) -> str | None:
    """How many of its lines exceeded the limit; None if it has none that do."""
    late = timed_lines.late_stretches(imported.lines, asked.limit_ns)
    if not late:
        return None
    lines = sum(each.most_ns.size for each in imported.lines)
    firsts = timed_lines.separate_episodes(imported.lines, asked, late)
    return LINED.format(f"{len(late):,}", quantity(lines, "line"), quantity(len(firsts), "episode"))


def live_at_least_ns(imported: ImportedHistogram, asked: Requirement, most: int) -> int | None:
    """The quiet time in nanoseconds if each of so many exceedances was an episode of its own; None if unknown.

    Each exceedance costs the time above the limit and the gap after it. The result is also None if the exceedances
    could form one episode that is longer than allowed.
    """
    whole_ns = imported.duration_ns
    if whole_ns is None or imported.largest_ns is None:
        return None
    lateness = most * max(imported.largest_ns - asked.limit_ns, 0)
    if (most - 1) * asked.gap_ns + lateness > asked.longest_ns:
        return None
    return max(whole_ns - MARGIN_NS - most * asked.gap_ns - lateness, 0)


def _lack(imported: ImportedHistogram, asked: Requirement, *, exceeding: bool = False) -> str | None:
    """Why the file does not show that every due activation ran, for one limit; None if it does.

    exceeding: the limit is exceeded, so activations that were skipped after a late one are no reason.
    """
    if exceeding:
        return _unknown(imported, skipped=True)
    return _unread(imported) or _unknown(imported) or _uncounted(imported, min(_slack_ns(imported), asked.longest_ns))


def _slack_ns(imported: ImportedHistogram) -> int:
    """How much time may lack samples of a thread. A clock that was set may differ by a thousandth."""
    return SLACK_NS + (imported.duration_ns or 0) // 1000


def _unknown(imported: ImportedHistogram, *, skipped: bool = False) -> str | None:
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


MAY_BE_LARGER = (LINES_UNREAD, LARGER_ELSEWHERE)


def _unread(imported: ImportedHistogram) -> str | None:
    """Why a figure of the file may be missing, the largest too; None if each was read."""
    return next((doubt.what for doubt in imported.doubts if doubt.code in MAY_BE_LARGER), None)


def _uncounted(imported: ImportedHistogram, slack_ns: int) -> str | None:
    """A sentence on the first thread with more or fewer samples than were due; None if there is none."""
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


def _without_exceedance(imported: ImportedHistogram, asked: Requirement, alpha: float) -> CountedFinding:
    live_ns = counted_ns(imported) or 0
    tau = tau_needed(0, alpha)
    needed_ns = math.ceil(tau * asked.bunches * asked.at_most_ns)
    seen = f"{NO_EXCEEDANCE} in {duration(live_ns)}, in which every due activation is counted"
    if needed_ns > live_ns:
        lack = f"too short: PROVEN takes {duration(needed_ns, up=True)} without one"
        return CountedFinding(State.UNDECIDED, f"{seen}; {lack}")
    rarest = duration(live_ns / tau)
    bunches = live_ns / (tau * asked.at_most_ns)
    shown = f"; no episode tells of bunches; the proof would hold for bunches of up to {bunches:.1f} on average"
    told = (
        f"{seen}: episodes come less often than once per {rarest} ({percent(asked.confidence)}); once per "
        f"{duration(asked.at_most_ns)} was asked{shown if bunches >= SHOWN_FROM else ''}"
    )
    return CountedFinding(State.PROVEN, told)


SHOWN_FROM = 1.1
"""From this size of bunches on, the reason says for which bunches the proof would hold."""


NOT_CHECKED = "policy, priority, CPU, clock and load were not checked, because the file does not carry what shows them"
BUNCHES_NOT_TESTED = (
    "it was not tested whether episodes come in bunches, because the file does not have the time of each value"
)
"""The report shows this beside every decision on such a file."""


# What a histogram shows without time order, and what it cannot show with any number of values.
#
# It shows everything about single values: how many exceed a limit, quantiles, the maximum. It cannot show what needs
# the time of a value: episodes and their rate, whether the run stayed the same throughout, a forecast.


def analyse_histogram(
    imported: ImportedHistogram,
    requirements: Sequence[Requirement] = (),
    shares: tuple[float, ...] = (),
    invalid: Sequence[str] = (),
    limits: int = 0,
) -> Analysis:
    """Judge and summarise a histogram. What needs time is absent. With several limits, each has its share of alpha.

    shares: the quantiles wanted besides the usual ones. REFUTED means that no order of the samples meets the claim.
    invalid: sentences from outside of the file on why it did not measure what was asked. limits: how many limits share
    the probability of error, if more than those given do.
    """
    figures = doubts_about_file(imported)
    imported = contradicted(imported, figures)
    together = limits or max(len(rated(requirements)), 1)
    verdicts = tuple(_judged(imported, each, together, tuple(invalid)) for each in requirements or (None,))
    return Analysis(
        record_of_histogram(imported),
        summaries_of_threads(imported),
        summary_of_histogram(imported),
        _doubts(imported, figures, [verdict.state for verdict in verdicts]),
        deciding_verdict(verdicts),
        shares,
        verdicts=verdicts,
        imported=imported,
    )


def _doubts(imported: ImportedHistogram, figures: Sequence[Doubt], states: Sequence[State]) -> tuple[Doubt, ...]:
    """Where the file contradicts itself, what its bins lack, what a decision does not rest on, and the user's word."""
    return worst_first(
        (
            *_contradictions(imported.faults),
            *(doubt for doubt in figures if doubt.severity is not Severity.INVALID),
            *imported.troubles,
            *_beyond_scale(imported),
            *(_not_checked(states) if set(states) & set(DECIDED) else ()),
            *(_stated(word) for word in imported.stated),
            *format_doubt(imported.notes),
        )
    )


def _stated(word: str) -> Doubt:
    if word.startswith("the user states"):
        return Doubt("stated", Severity.WARNING, word, "make sure of it", "the file does not tell it")
    return Doubt("stated", Severity.WARNING, word, "leave it out", "the file itself tells it")


def _contradictions(faults: Sequence[str]) -> Iterator[Doubt]:
    if faults:
        what = "the file contradicts itself"
        yield Doubt("contradiction", Severity.INVALID, what, "measure again", "; ".join(faults))


def _not_checked(states: Sequence[State]) -> Iterator[Doubt]:
    tests = f"; {BUNCHES_NOT_TESTED}" if set(states) & {State.PROVEN, State.REFUTED} else ""
    what, detail = "policy, CPU, clock and load are unchecked", "the file does not carry what shows them"
    yield Doubt("not-checked", Severity.WARNING, what, "measure with rtproof run", f"{detail}{tests}")


def _beyond_scale(imported: ImportedHistogram) -> Iterator[Doubt]:
    end, remedy = value(scale_end_ns(imported)), "choose a longer histogram"
    if imported.overflow:
        what = f"{quantity(imported.overflow, 'sample')} beyond the histogram's end"
        of = f"{imported.overflow:,} of {quantity(imported.count or 0, 'sample')}"
        detail = f"it ends at {end}; of {of} only the largest is known"
        yield Doubt("beyond-scale", Severity.WARNING, what, remedy, detail)
    elif imported.overflow is None and imported.histogram is not None:
        what = "samples beyond the histogram's end are not counted"
        yield Doubt("beyond-scale", Severity.WARNING, what, remedy, f"the histogram ends at {end}")


def count_above(imported: ImportedHistogram, requirement: Requirement) -> CountAbove | None:
    """How many samples exceed the limit; None if the number of samples is unknown, or smaller than its bins say."""
    n = imported.count
    if not n:
        return None
    least, most = _exceeding(imported, requirement.limit_ns, n)
    if max(least, most or 0) > n:
        return None
    confidence = requirement.confidence
    high = None if most is None else share_upper(most, n, confidence)
    return CountAbove(n, least, most, share_lower(least, n, confidence), high)


def _exceeding(imported: ImportedHistogram, limit_ns: int, n: int) -> tuple[int, int | None]:
    largest, smallest = imported.largest_ns, imported.min_ns
    if largest is not None and largest <= limit_ns:
        return 0, 0
    seen = int(imported.exceeds(limit_ns))
    if imported.histogram is None:
        return (n if smallest is not None and smallest > limit_ns else seen), n
    counts = with_overflow(imported)
    least, most = counts.exceedances(limit_ns)
    return max(least, seen), None if imported.overflow is None else max(most, least, seen)


def _judged(
    imported: ImportedHistogram, requirement: Requirement | None, limits: int, invalid: tuple[str, ...] = ()
) -> Verdict:
    if requirement and requirement.plain:
        return _judged_plain(imported, requirement, (*invalid, *imported.faults))
    faults = (*invalid, *imported.faults)
    above = count_above(imported, requirement) if requirement else None
    alpha = (1 - requirement.confidence) / limits if requirement else None
    found = _finding(imported, requirement, above, alpha, faults)
    fact = _fact(imported, requirement)
    reasons = (faults[0], fact, *faults[1:]) if faults else (fact, found.reason)
    verdict = Verdict(
        state=found.state,
        requirement=requirement,
        reasons=reasons,
        sentences=(),
        episodes=(),
        measured_ns=imported.duration_ns or None,
        exceedances_observed=above.least if above and above.least == above.most else None,
        exceedances_schedule=None,
        alpha=alpha,
        kind=found.kind.value if found.kind else None,
        untimed=True,
        above=above,
    )
    assumed = verdict_sentences.assumption_of_verdict(verdict)
    complete = replace(verdict, reasons=(*verdict.reasons, assumed)) if assumed else verdict
    return replace(complete, sentences=_sentences(imported, complete))


def _judged_plain(imported: ImportedHistogram, requirement: Requirement, faults: tuple[str, ...]) -> Verdict:
    """The verdict on a plain limit: the count above it decides, or the maximum."""
    above = count_above(imported, requirement)
    found = _exceedances(imported, requirement, above) if above else _by_maximum(imported, requirement)
    state, more = _plain_state(imported, requirement, found)
    fact = _fact(imported, requirement)
    state, reasons = (State.INVALID, (faults[0], fact, *faults[1:])) if faults else (state, (fact, *more))
    measured_ns = counted_ns(imported) if state is State.HELD and _lack(imported, requirement) is None else None
    needed = planning.held_after_ns(requirement) if measured_ns else None
    shown = plain_limit.shown_sentences(requirement, measured_ns) if measured_ns else ()
    reasons = (*reasons, *shown)
    lines = verdict_sentences.verdict_lines(state, reasons)
    lines.append(("LIMIT", verdict_sentences.requested_limit_sentence(requirement)))
    lines += [line for line in _largest(imported) if line[0] in ("MAX", "VALID FOR")]
    return Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=tuple(lines),
        episodes=(),
        measured_ns=imported.duration_ns or None,
        exceedances_observed=found.least if found.least == found.most else None,
        exceedances_schedule=None,
        alpha=1 - requirement.confidence,
        untimed=True,
        above=above,
        largest_ns=imported.max_ns,
        shown_rate_per_s=SECOND_NS / planning.shown_by_ns(requirement, measured_ns) if measured_ns else None,
        needed_ns=needed,
        more_ns=max(needed - measured_ns, 0) if needed and measured_ns else None,
    )


def _by_maximum(imported: ImportedHistogram, requirement: Requirement) -> CountedExceedances:
    """What the maximum, and that of each line, show of the number of exceedances."""
    if imported.exceeds(requirement.limit_ns):
        lines = len(timed_lines.late_stretches(imported.lines, requirement.limit_ns))
        return CountedExceedances(max(lines, 1), None)
    largest = imported.largest_ns
    return CountedExceedances(0, 0 if largest is not None and largest <= requirement.limit_ns else None)


def _fact(imported: ImportedHistogram, requirement: Requirement | None) -> str:
    """The first sentence: how many samples were above the limit, and the largest."""
    n = quantity(imported.count, "sample") if imported.count else ""
    if requirement is None:
        return _largest_of_file(imported, n)
    above, limit = count_above(imported, requirement), limit_value(requirement.limit_ns)
    found = _exceedances(imported, requirement, above) if above else _by_maximum(imported, requirement)
    if not found.least and found.most != 0:
        return f"The file does not show whether a sample was above {limit}"
    largest = imported.max_ns
    told = f"; the largest was {value(largest, requirement.limit_ns)}" if largest is not None else ""
    if not found.least:
        whose = "its only sample" if imported.count == 1 else f"any of {n}" if n else "any sample"
        return f"{limit} was not exceeded by {whose}{told}"
    count = f"{'' if found.least == found.most else 'at least '}{found.least:,}"
    told = told if largest is not None and largest > requirement.limit_ns else ""
    return f"{limit} was exceeded by {count}{f' of {n}' if n else ' sample' if found.least == 1 else ' samples'}{told}"


def _largest_of_file(imported: ImportedHistogram, n: str) -> str:
    """Without a limit: the largest latency, the 99.9 %, and the number of samples."""
    largest_ns, bins = imported.max_ns, imported.histogram
    if imported.count == 0:
        return "It has no value" + (f" in {duration(imported.duration_ns)}" if imported.duration_ns else "")
    if largest_ns is None and bins is not None and bins.n.size:
        highest = value(int(bins.lo[-1]))
        return f"The largest latency in the histogram was {highest}, and larger ones are not counted; n = {n}"
    if largest_ns is None:
        return f"The file does not tell the largest latency{f'; n = {n}' if n else ''}"
    high_ns = quantiles(summary_of_histogram(imported), shares=(HIGH_SHARE,))[0].value
    beyond = imported.overflow != 0 and high_ns is not None and high_ns >= scale_end_ns(imported)
    high = "" if high_ns is None or beyond else f"; 99.9 % were at most {value(min(high_ns, largest_ns), largest_ns)}"
    return f"The largest latency was {value(largest_ns)}{high}{f'; n = {n}' if n else ''}"


def _plain_state(
    imported: ImportedHistogram, requirement: Requirement, found: CountedExceedances
) -> tuple[State, tuple[str, ...]]:
    """The state, and what to know besides the fact."""
    if found.least:
        return State.EXCEEDED, ()
    if found.most != 0:
        return State.UNDECIDED, (HIDDEN_MAXIMUM,)
    if loss := _loss(imported):
        return State.UNDECIDED, (f"It shows no more, because {loss}",)
    return State.HELD, () if _lack(imported, requirement) is None else (NO_LENGTH_OF_FILE,)


HIDDEN_MAXIMUM = "Its largest value lies beyond its scale, or in a bin that holds the limit"
NO_LENGTH_OF_FILE = "The file does not show that each due activation was measured, so it shows no rate"


def _loss(imported: ImportedHistogram) -> str | None:
    """Why activations are surely missing from the file, or figures; None if none are known to be."""
    if unread := _unread(imported):
        return unread
    if imported.overruns:
        return f"the tool counted {quantity(imported.overruns, 'overrun')}, which are activations without a sample"
    if imported.duration_ns is None or not imported.shortest_period_ns or not _counts(imported):
        return None
    return _uncounted(imported, _slack_ns(imported))


def _finding(
    imported: ImportedHistogram,
    requirement: Requirement | None,
    above: CountAbove | None,
    alpha: float | None,
    faults: Sequence[str],
) -> CountedFinding:
    if faults:
        return CountedFinding(State.INVALID, faults[0])
    if requirement is None or alpha is None:
        return CountedFinding(State.NOT_ASKED, verdict_sentences.NO_LIMIT)
    if above is None:
        # Without their number, the printed maximum still shows that the limit was exceeded.
        seen = imported.count is None and imported.exceeds(requirement.limit_ns)
        found = judge_counts(imported, requirement, CountedExceedances(1, None), alpha) if seen else None
        return found if found and found.state is State.REFUTED else CountedFinding(State.UNDECIDED, NOTHING)
    return judge_counts(imported, requirement, _exceedances(imported, requirement, above), alpha)


def _exceedances(imported: ImportedHistogram, requirement: Requirement, found: CountAbove) -> CountedExceedances:
    """How many samples exceed the limit, if bins may hold smaller values than they say.

    Then only the printed maximum shows that the limit was exceeded, or that no sample exceeded it.
    """
    if not imported.unsure:
        return CountedExceedances(found.least, found.most)
    seen = imported.exceeds(requirement.limit_ns)
    return CountedExceedances(int(seen), 0 if imported.largest_ns is not None and not seen else None)


NOTHING = "the file does not say how many samples were taken"


def _sentences(imported: ImportedHistogram, verdict: Verdict) -> Sentences:
    """Label and text of each line, as of a run's verdict."""
    requirement, above = verdict.requirement, verdict.above
    lines = verdict_sentences.verdict_lines(verdict.state, verdict.reasons)
    if requirement:
        asked = verdict_sentences.limit_sentence(requirement)
        lines += [("LIMIT", asked), ("", verdict_sentences.episode_sentence(requirement))]
    if requirement and above:
        sure = percent(requirement.confidence)
        lines.append(("ABOVE", exceeding_text(above, requirement.limit_ns)))
        lines += [] if imported.stop else [("", _share(above, sure))]
        measured_ns = imported.duration_ns
        if above.most == 0 and measured_ns:
            rarest = duration(1 / rate_upper(0, measured_ns, 1 - requirement.confidence))
            lines.append(("", f"{IF_WHOLE.format(duration(measured_ns))} less often than once per {rarest} ({sure})"))
    return (*lines, *_largest(imported))


CONFIDENCE = 0.95
IF_WHOLE = "only if it measured without a gap for the {0} that it tells, episodes come"
SAMPLES = "per sample, if samples were independent"


def exceeding_text(above: CountAbove, limit_ns: int) -> str:
    """Return how many of n samples exceed the limit."""
    if above.most is None:
        amount = f"at least {above.least:,}" if above.least else "an unknown number"
    else:
        amount = f"{above.least:,}" if above.least == above.most else f"between {above.least:,} and {above.most:,}"
    return f"{amount} of {quantity(above.n, 'sample')} above {limit_value(limit_ns)}"


def _share(above: CountAbove, sure: str) -> str:
    if above.share_high is None and not above.least:
        return (
            "no bound of their share: none of them is in a bin above it, and how many lay beyond the scale is unknown"
        )
    if above.share_high is None:
        return (
            f"a share of at least {above.share_low:.3g} ({sure}, {SAMPLES}); how many lay beyond the scale is unknown"
        )
    low = f"at least {above.share_low:.3g} and " if above.least else ""
    each = f"{sure} each, not both together" if low else sure
    return f"a share of {low}at most {above.share_high:.3g} ({each}, {SAMPLES}, n fixed before the run)"


def _largest(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    """Yield the maximum, how soon a larger value comes, and which events the run may have missed."""
    n, most = imported.count, imported.max_ns
    if not n or most is None:
        return
    width = imported.resolution_ns or 1
    resolution = f" (rounded {_way(imported)} to {value(width)})" if width > 1 else ""
    first = f"{value(most)}{resolution}, the largest of {quantity(n, 'sample')}"
    if imported.faults:
        yield "MAX", f"{first}; the file contradicts itself, so that nothing follows from it"
        return
    yield "MAX", first
    if imported.stop:
        yield "", f"{imported.stop}: no bound follows from the number of its values"
        yield "VALID FOR", _conditions(imported)
        return
    yield (
        "",
        f"a second run of n samples exceeds it with a probability of at most 50 %, one of m samples with m / (n + m): "
        f"5 % for m = {n // 19:,}, if it is alike (an equal maximum does not exceed it)",
    )
    bound = share_upper(0, n, CONFIDENCE)
    yield "", f"> {value(imported.largest_ns or most)}: less than {bound:.3g} of the samples (95 %, n fixed beforehand)"
    yield "UNSEEN", f"anything rarer than one sample in {1 / bound:,.0f} may be missing from this run (95 %)"
    yield "VALID FOR", _conditions(imported)


def _way(imported: ImportedHistogram) -> str:
    """In which way its values were rounded."""
    return "up" if imported.rounded_up else "down"


def _conditions(imported: ImportedHistogram) -> str:
    if imported.recorded:
        return "this kernel, boot, load and temperature"
    facts = dict(imported.facts)
    kernel = f" ({facts['release']} {facts.get('version', '')})".replace(" )", ")") if "release" in facts else ""
    return f"the kernel{kernel}, boot, load and temperature of that run only; what these were is not in the file"


def impossible_figures(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    """Each figure that a run of rtproof has and this file lacks, with the reason."""
    if imported.lines:
        yield "the number of episodes", f"{NO_VALUES}: there may be more"
    else:
        yield "episodes and their rate", f"{NO_ORDER}, so exceedances cannot be put together to episodes or apart"
    # Why the file does not show that every due activation ran, for any limit; None if it does show this.
    lack = _unread(imported) or _unknown(imported) or _uncounted(imported, _slack_ns(imported))
    if lack:
        yield "PROVEN", lack
    else:
        early = f"{NO_ORDER}: an early episode would refute the claim"
        yield "PROVEN of a limit that is exceeded", NO_VALUES if imported.lines else early
    yield from _conditions_untold(imported)
    if imported.overruns is None:
        yield "missed activations", "a histogram counts what ran; what was skipped behind a late one is in no bin"
    if not imported.lines:
        yield "whether the run was the same throughout", f"{NO_ORDER}, so no drift, no period and no change can be seen"
    seconds = f"{NO_ORDER}: it needs the largest value of each second, and order unknown means none"
    yield "a forecast", NO_VALUES if imported.lines else seconds
    yield from _beyond_the_scale(imported)


def _beyond_the_scale(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    if imported.overflow:
        yield "quantiles beyond the scale", f"{_saturated(imported)}; of these only the largest is known"
    if imported.overflow is None and imported.histogram is not None:
        yield "how much lies beyond the scale", "the file does not count it, so a quantile may be too small"
    if with_overflow(imported).total and imported.overflow != 0:
        yield "a picture of the histogram and of its tail", "it would seem to end where the scale ends"
    if imported.histogram is None:
        yield "quantiles and shares", "there is no histogram in it, only its ends"
    if imported.resolution_ns and imported.resolution_ns > 1:
        rounded = f"values are rounded {_way(imported)} to {imported.resolution_ns:,} ns"
        yield "differences below its resolution", rounded


def _conditions_untold(imported: ImportedHistogram) -> list[tuple[str, str]]:
    return [] if imported.recorded else [("the conditions of the run", NOT_CHECKED)]


NO_ORDER = "the file has no time order"
NO_VALUES = "the file has lines, and not each value"


def _saturated(imported: ImportedHistogram) -> str:
    return f"{imported.overflow:,} values lie beyond the scale, which ends at {scale_end_ns(imported):,} ns"
