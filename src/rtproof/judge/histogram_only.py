# SPDX-License-Identifier: Apache-2.0
"""Judge what another tool printed: counts without the order of time. What is decided holds for every order of them.

The claim is the same as for a run: episodes come at most once per T, and none lasts longer than D. A plain limit is
never to be exceeded. A histogram shows everything about single values: how many exceed a limit, quantiles, the maximum.
It cannot show what needs the time of a value: episodes and their rate, whether the run stayed the same throughout.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtproof.core.notebook import Sentences
from rtproof.core.phrases import duration, limit_value, percent, quantity, value
from rtproof.judge import timed_lines, verdict_sentences
from rtproof.judge.analysis_model import DECIDED, Analysis, CountAbove, State, Verdict
from rtproof.judge.claim import RefutingRule
from rtproof.judge.doubts.registry import contradicted, doubts_about_file
from rtproof.judge.doubts.target_state import format_doubt
from rtproof.judge.evidence import HIGH_SHARE
from rtproof.judge.verdict import deciding_verdict, shown_sentences, with_shown_rate
from rtproof.judge.worst_first import worst_first
from rtproof.record.requirement import Requirement, rated
from rtproof.statistics import refuted_until_ns, share_lower, share_upper, tau_needed
from rtproof.summary.imported_histogram import LARGER_ELSEWHERE, LINES_UNREAD, ImportedHistogram
from rtproof.summary.quantiles import quantiles
from rtproof.summary.summary_model import Doubt, Severity

MARGIN_NS = 1_000_000_000
"""The possible error of a duration that a file states in whole seconds."""
SLACK_NS = 3_000_000_000
"""This much of a run may lack samples: threads start, the program ends, and the duration may be wrong by the margin.

The slack is never longer than an episode may last, because the last activation may not have come back.
"""
CONFIDENCE = 0.95
MAY_BE_LARGER = (LINES_UNREAD, LARGER_ELSEWHERE)
"""Doubts that say that a figure is missing from the file, maybe the largest."""

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
NOTHING = "the file does not say how many samples were taken"
HIDDEN_MAXIMUM = "Its largest value lies beyond its scale, or in a bin that holds the limit"
NO_LENGTH_OF_FILE = "The file does not show that each due activation was measured, so it shows no rate"
NOT_CHECKED = "policy, priority, CPU, clock and load were not checked, because the file does not carry what shows them"
BUNCHES_NOT_TESTED = (
    "it was not tested whether episodes come in bunches, because the file does not have the time of each value"
)


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
    faults = (*invalid, *imported.faults)
    verdicts = tuple(_judged(imported, each, together, faults) for each in requirements or (None,))
    return Analysis(
        None,
        imported.summaries,
        imported.summary,
        worst_first(_doubts(imported, figures, [verdict.state for verdict in verdicts])),
        deciding_verdict(verdicts),
        shares,
        verdicts=verdicts,
        imported=imported,
    )


def _doubts(imported: ImportedHistogram, figures: Sequence[Doubt], states: Sequence[State]) -> Iterator[Doubt]:
    """Where the file contradicts itself, what its bins lack, what a decision does not rest on, and the user's word."""
    if imported.faults:
        what = "the file contradicts itself"
        yield Doubt("contradiction", Severity.INVALID, what, "measure again", "; ".join(imported.faults))
    yield from (doubt for doubt in figures if doubt.severity is not Severity.INVALID)
    yield from imported.troubles
    end, remedy = value(imported.scale_end_ns), "choose a longer histogram"
    if imported.overflow:
        what = f"{quantity(imported.overflow, 'sample')} beyond the histogram's end"
        of = f"{imported.overflow:,} of {quantity(imported.count or 0, 'sample')}"
        detail = f"it ends at {end}; of {of} only the largest is known"
        yield Doubt("beyond-scale", Severity.WARNING, what, remedy, detail)
    elif imported.overflow is None and imported.histogram is not None:
        what = "samples beyond the histogram's end are not counted"
        yield Doubt("beyond-scale", Severity.WARNING, what, remedy, f"the histogram ends at {end}")
    if set(states) & set(DECIDED):
        tests = f"; {BUNCHES_NOT_TESTED}" if set(states) & {State.PROVEN, State.REFUTED} else ""
        what, detail = "policy, CPU, clock and load are unchecked", "the file does not carry what shows them"
        yield Doubt("not-checked", Severity.WARNING, what, "measure with rtproof run", f"{detail}{tests}")
    for word in imported.stated:
        needed = word.startswith("the user states")
        remedy, detail = ("make sure of it", "does not tell it") if needed else ("leave it out", "itself tells it")
        yield Doubt("stated", Severity.WARNING, word, remedy, f"the file {detail}")
    yield from format_doubt(imported.notes)


def count_above(imported: ImportedHistogram, requirement: Requirement) -> CountAbove:
    """How many samples exceed the limit. No more than the number of samples, also of a file that contradicts itself."""
    n, confidence = imported.count, requirement.confidence
    least, most = _above(imported, requirement.limit_ns)
    if n:
        least, most = min(least, n), None if most is None else min(most, n)
    low = share_lower(least, n, confidence) if n else 0.0
    high = share_upper(most, n, confidence) if n and most is not None else None
    return CountAbove(n, least, most, low, high)


def _above(imported: ImportedHistogram, limit_ns: int) -> tuple[int, int | None]:
    """At least and at most so many samples. A value of an unsure bin may have been smaller than the bin says."""
    if imported.count == 0:
        return 0, None
    if imported.largest_ns is not None and imported.largest_ns <= limit_ns:
        return 0, 0
    seen = max(int(imported.exceeds(limit_ns)), len(timed_lines.late_stretches(imported.lines, limit_ns)))
    if imported.count is None or imported.unsure:
        return seen, None
    if imported.histogram is None:
        all_above = imported.min_ns is not None and imported.min_ns > limit_ns
        return (imported.count if all_above else seen), imported.count
    least, most = imported.counts_of(imported).exceedances(limit_ns)
    return max(least, seen), None if imported.overflow is None else max(most, least, seen)


def _judged(
    imported: ImportedHistogram, requirement: Requirement | None, limits: int, faults: tuple[str, ...]
) -> Verdict:
    above, plain = count_above(imported, requirement) if requirement else None, requirement is None or requirement.plain
    alpha = None if requirement is None else (1 - requirement.confidence) / (1 if plain else limits)
    state, kind, shown = _state(imported, requirement, above, alpha or 0)
    fact = _fact(imported, requirement, above)
    state, reasons = (State.INVALID, (faults[0], fact, *faults[1:])) if faults else (state, (fact, *shown))
    kind = None if faults else kind
    verdict = Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=(),
        episodes=(),
        measured_ns=imported.duration_ns or None,
        exceedances_observed=above.least if above and above.least == above.most else None,
        exceedances_schedule=None,
        alpha=alpha,
        kind=kind.value if kind else None,
        untimed=True,
        above=above,
        largest_ns=imported.max_ns if requirement and plain else None,
    )
    if requirement and state is State.HELD and (measured_ns := _complete_ns(imported, requirement)):
        verdict = with_shown_rate(verdict, requirement, measured_ns)
    assumed = verdict_sentences.assumption_of_verdict(verdict)
    complete = replace(verdict, reasons=(*reasons, assumed)) if assumed else verdict
    return replace(complete, sentences=_sentences(imported, complete))


Found = tuple[State, RefutingRule | None, tuple[str, ...]]
"""A state, the rule that REFUTED, and what it shows or why it is not decided."""


def _state(imported: ImportedHistogram, asked: Requirement | None, above: CountAbove | None, alpha: float) -> Found:
    if asked is None or above is None:
        return State.NOT_ASKED, None, (verdict_sentences.NO_LIMIT,)
    if not asked.plain:
        return _state_of_rate(imported, asked, above, alpha)
    if above.least:
        return State.EXCEEDED, None, ()
    if above.most != 0:
        return State.UNDECIDED, None, (HIDDEN_MAXIMUM,)
    if loss := _loss(imported, _slack_ns(imported)):
        return State.UNDECIDED, None, (f"It shows no more, because {loss}",)
    measured_ns = _complete_ns(imported, asked)
    return State.HELD, None, shown_sentences(asked, measured_ns) if measured_ns else (NO_LENGTH_OF_FILE,)


def _state_of_rate(imported: ImportedHistogram, asked: Requirement, above: CountAbove, alpha: float) -> Found:
    """Decide only what holds for every order of the samples. alpha: the limit's share of the probability of error."""
    if above.least:
        if too_long := _by_duration(imported, asked, above.least) or timed_lines.too_long(imported.lines, asked):
            return State.REFUTED, RefutingRule.DURATION, (too_long,)
        too_often = _by_rate(imported, asked, above.least, alpha) or timed_lines.too_often(imported.lines, asked, alpha)
        if too_often:
            return State.REFUTED, RefutingRule.RATE, (too_often,)
    if above.most != 0:
        unknown = UNKNOWN if imported.count else NOTHING
        return State.UNDECIDED, None, (_lined(imported, asked) or (UNORDERED if above.least else unknown),)
    if lack := _lack(imported, min(_slack_ns(imported), asked.longest_ns)):
        return State.UNDECIDED, None, (f"{NO_EXCEEDANCE}, but {lack}, so it proves nothing",)
    return _without_exceedance(imported, asked, alpha)


def _without_exceedance(imported: ImportedHistogram, asked: Requirement, alpha: float) -> Found:
    live_ns, tau = counted_ns(imported), tau_needed(0, alpha)
    needed_ns = math.ceil(tau * asked.bunches * asked.at_most_ns)
    seen = f"{NO_EXCEEDANCE} in {duration(live_ns)}, in which every due activation is counted"
    if needed_ns > live_ns:
        lack = f"too short: PROVEN takes {duration(needed_ns, up=True)} without one"
        return State.UNDECIDED, None, (f"{seen}; {lack}",)
    rarest, wanted = duration(live_ns / tau), duration(asked.at_most_ns)
    less = f"episodes come less often than once per {rarest} ({percent(asked.confidence)})"
    return State.PROVEN, None, (f"{seen}: {less}; once per {wanted} was asked",)


def _lined(imported: ImportedHistogram, asked: Requirement) -> str | None:
    """How many of its lines exceeded the limit; None if it has none that do."""
    late = timed_lines.late_stretches(imported.lines, asked.limit_ns)
    if not late:
        return None
    lines = sum(each.most_ns.size for each in imported.lines)
    firsts = timed_lines.separate_episodes(imported.lines, asked, late)
    return LINED.format(f"{len(late):,}", quantity(lines, "line"), quantity(len(firsts), "episode"))


# What samples above the limit refute in any order.


def fewest_episodes(imported: ImportedHistogram, asked: Requirement, exceeding: int) -> int:
    """The smallest possible number of episodes with so many exceedances, if none lasted longer than D."""
    period_ns = imported.shortest_period_ns
    return -(-exceeding // _held(imported, asked, period_ns)) if period_ns else min(exceeding, 1)


def _held(imported: ImportedHistogram, asked: Requirement, period_ns: int) -> int:
    """The largest number of exceedances in one episode that is no longer than allowed."""
    return len(imported.threads) * (asked.longest_ns // period_ns + 1)


def _by_duration(imported: ImportedHistogram, asked: Requirement, exceeding: int) -> str | None:
    longest = duration(asked.longest_ns)
    if imported.max_ns is not None and imported.exceeds(asked.limit_ns + asked.longest_ns):
        late = duration(imported.max_ns - asked.limit_ns)
        return f"one activation alone was late for {late}, and an episode may last {longest} at most"
    period_ns = imported.shortest_period_ns
    if not period_ns or imported.count is None or imported.lossy:
        return None
    longest_period_ns = max(imported.period_of(each) or period_ns for each in imported.threads)
    in_a_gap = (asked.gap_ns - asked.limit_ns) // longest_period_ns - 1
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


def _by_rate(imported: ImportedHistogram, asked: Requirement, exceeding: int, alpha: float) -> str | None:
    if imported.duration_ns is None:
        return None
    episodes, by_ns = fewest_episodes(imported, asked, exceeding), imported.duration_ns + MARGIN_NS
    if by_ns > refuted_until_ns(episodes, asked.at_most_ns, alpha):
        return None
    most = duration(imported.duration_ns) if imported.duration_ns else f"less than {duration(MARGIN_NS)}"
    exceeded = f"at least {quantity(exceeding, 'sample')} exceeded the limit"
    if episodes == 1:
        return f"{exceeded}: one episode in {most} is too many, whenever it came"
    return (
        f"{exceeded}, which takes at least {episodes:,} episodes of {duration(asked.longest_ns)}: in {most} that is "
        "too many, whenever they came (with fewer, one of them lasted longer)"
    )


# Whether every due activation is counted.


def counted_ns(imported: ImportedHistogram) -> int:
    """The time in nanoseconds in which every activation of every thread is counted; 0 if the file lacks figures.

    Threads may begin and end one after another. Then the time that they share is shorter than that of any thread.
    """
    told_ns, lengths = imported.duration_ns, [count * period for count, period in _counts(imported)]
    if told_ns is None or not imported.shortest_period_ns or not lengths:
        return 0
    if len(lengths) == 1:
        return max(min(lengths[0], told_ns - MARGIN_NS), 0)
    return max(told_ns - MARGIN_NS - 2 * max(told_ns + MARGIN_NS - min(lengths), 0), 0)


def _counts(imported: ImportedHistogram) -> list[tuple[int, int]]:
    """Samples and period of each thread; empty if the file lacks a number of samples."""
    found = [(each.count, imported.period_of(each) or 0) for each in imported.threads if each.count is not None]
    return found if len(found) == len(imported.threads) else []


def _complete_ns(imported: ImportedHistogram, asked: Requirement) -> int:
    """The counted time of a file that shows that every due activation ran; else 0. For a plain limit."""
    return 0 if not asked.plain or _lack(imported, _slack_ns(imported)) else counted_ns(imported)


def _slack_ns(imported: ImportedHistogram) -> int:
    """How much time may lack samples of a thread. A clock that was set may differ by a thousandth."""
    return SLACK_NS + (imported.duration_ns or 0) // 1000


def _lack(imported: ImportedHistogram, slack_ns: int) -> str | None:
    """Why the file does not show that every due activation ran; None if it does."""
    if loss := _loss(imported, slack_ns):
        return loss
    period_ns, largest_ns = imported.shortest_period_ns, imported.largest_ns
    if imported.duration_ns is None:
        return "the file does not tell how long it measured"
    if not period_ns:
        return "the file does not tell the period, so the number of due activations is unknown"
    if not _counts(imported):
        return "the file does not tell how many activations each thread ran"
    if imported.overruns is None and (largest_ns is None or largest_ns >= period_ns):
        return "its largest value is as long as the period, and behind it the tool may have skipped activations"
    return None


def _loss(imported: ImportedHistogram, slack_ns: int) -> str | None:
    """Why activations are surely missing from the file, or figures; None if none are known to be."""
    unread = [doubt.what for doubt in imported.doubts if doubt.code in MAY_BE_LARGER]
    told_ns = imported.duration_ns
    if unread or imported.overruns or told_ns is None or not imported.shortest_period_ns:
        overruns = (
            f"the tool counted {quantity(imported.overruns or 0, 'overrun')}, which are activations without a sample"
        )
        return unread[0] if unread else overruns if imported.overruns else None
    for number, (count, period) in enumerate(_counts(imported)):
        if told_ns + MARGIN_NS - count * period > slack_ns:
            due = f"{told_ns // period:,} were due, and nothing tells what became of the others"
            return f"thread {number} has {count:,} samples where {due}"
    return None


# The sentences.


def _fact(imported: ImportedHistogram, requirement: Requirement | None, above: CountAbove | None) -> str:
    """The first sentence: how many samples were above the limit, and the largest."""
    n = quantity(imported.count, "sample") if imported.count else ""
    if requirement is None or above is None:
        return _largest_of_file(imported, n)
    limit, largest = limit_value(requirement.limit_ns), imported.max_ns
    if not above.least and above.most != 0:
        return f"The file does not show whether a sample was above {limit}"
    told = f"; the largest was {value(largest, requirement.limit_ns)}" if largest is not None else ""
    if not above.least:
        whose = "its only sample" if imported.count == 1 else f"any of {n}" if n else "any sample"
        return f"{limit} was not exceeded by {whose}{told}"
    count = f"{'' if above.least == above.most else 'at least '}{above.least:,}"
    told = told if largest is not None and largest > requirement.limit_ns else ""
    return f"{limit} was exceeded by {count}{f' of {n}' if n else ' sample' if above.least == 1 else ' samples'}{told}"


def _largest_of_file(imported: ImportedHistogram, n: str) -> str:
    """Without a limit: the largest latency, the 99.9 %, and the number of samples."""
    largest_ns, bins = imported.max_ns, imported.histogram
    if imported.count == 0:
        return "It has no value" + (f" in {duration(imported.duration_ns)}" if imported.duration_ns else "")
    high, number = "", f"; n = {n}" if n else ""
    if largest_ns is None:
        if bins is None or not bins.n.size:
            return f"The file does not tell the largest latency{number}"
        highest = f"The largest latency in the histogram was {value(int(bins.lo[-1]))}"
        return f"{highest}, and larger ones are not counted{number}"
    high_ns = quantiles(imported.summary, shares=(HIGH_SHARE,))[0].value
    if high_ns is not None and (imported.overflow == 0 or high_ns < imported.scale_end_ns):
        high = f"; 99.9 % were at most {value(min(high_ns, largest_ns), largest_ns)}"
    return f"The largest latency was {value(largest_ns)}{high}{number}"


def _sentences(imported: ImportedHistogram, verdict: Verdict) -> Sentences:
    """Label and text of each line, as of a run's verdict."""
    asked, above = verdict.requirement, verdict.above
    lines = verdict_sentences.verdict_lines(verdict.state, verdict.reasons)
    if asked:
        lines.append(("LIMIT", verdict_sentences.limit_sentence(asked)))
    if asked and above and not asked.plain:
        lines += [("", verdict_sentences.episode_sentence(asked)), ("ABOVE", exceeding_text(above, asked.limit_ns))]
    return (*lines, *_largest(imported, plain=asked is not None and asked.plain))


def exceeding_text(above: CountAbove, limit_ns: int) -> str:
    """How many of n samples exceed the limit."""
    n = f"of {quantity(above.n, 'sample')} " if above.n else ""
    of = f"{n}above {limit_value(limit_ns)}"
    if above.most is None:
        return f"at least {above.least:,} {of}" if above.least else f"an unknown number {of}"
    return f"{above.least:,} {of}" if above.least == above.most else f"between {above.least:,} and {above.most:,} {of}"


def _largest(imported: ImportedHistogram, *, plain: bool) -> Iterator[tuple[str, str]]:
    """Yield the maximum, how soon a larger value comes, and which events the run may have missed."""
    n, most = imported.count, imported.max_ns
    if not n or most is None:
        return
    width = imported.resolution_ns or 1
    resolution = f" (rounded {'up' if imported.rounded_up else 'down'} to {value(width)})" if width > 1 else ""
    faulty = "; the file contradicts itself, so that nothing follows from it" if imported.faults else ""
    yield "MAX", f"{value(most)}{resolution}, the largest of {quantity(n, 'sample')}{faulty}"
    if imported.faults:
        return
    if imported.stop and not plain:
        yield "", f"{imported.stop}: no bound follows from the number of its values"
    elif not plain:
        yield "", verdict_sentences.AGAIN
        rarest = 1 / share_upper(0, n, CONFIDENCE)
        yield "UNSEEN", f"anything rarer than one sample in {rarest:,.0f} may be missing from this run (95 %)"
    kernel = " ".join(dict(imported.facts).get(key, "") for key in ("release", "version")).strip()
    told = f"the kernel{f' ({kernel})' if kernel else ''}, boot, load and temperature of that run only"
    own = "this kernel, boot, load and temperature"
    yield "VALID FOR", own if imported.recorded else f"{told}; what these were is not in the file"


def impossible_figures(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    """Each figure that a run of rtproof has and this file lacks, with the reason. Its doubts tell of its scale."""
    lack, why = _lack(imported, _slack_ns(imported)), "the file has no time order of its values"
    table = (
        (
            imported.lines,
            "the number of episodes",
            "the file has lines, and not each value: there may be more in a line",
        ),
        (not imported.lines, "episodes, their rate, and whether the run was the same throughout", why),
        (lack, "PROVEN", lack),
        (not imported.recorded, "the conditions of the run", NOT_CHECKED),
        (imported.overruns is None, "missed activations", "a histogram counts what ran"),
        (True, "a forecast", "it needs the largest value of each second"),
        (imported.histogram is None, "quantiles and shares", "there is no histogram in it, only its ends"),
    )
    return ((figure, str(reason)) for holds, figure, reason in table if holds)
