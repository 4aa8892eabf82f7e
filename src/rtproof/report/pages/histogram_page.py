# SPDX-License-Identifier: Apache-2.0
"""The report on a histogram of another tool, and the tables of a plan."""

from collections.abc import Iterator, Sequence

from rtproof.core.phrases import duration, percent, quantity, sure, value
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.histogram_only import CountAbove, HistogramOnly, JudgedHistogram, impossible_figures, scale_end_ns
from rtproof.judge.planning import DecisionChance, LengthPlan, NeededLength
from rtproof.report import number_format
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.sections.verdict import KINDS, MEANINGS
from rtproof.statistics import rate_upper, share_upper
from rtproof.summary.imported_histogram import DURATION_STATED, ImportedHistogram
from rtproof.summary.summary_model import Quantile

CONFIDENCE = 0.95
AS_FAR_AS = "the requirement holds at the confidence asked, for what this file shows of the run."
"""What PROVEN means for a file that does not hold the conditions of its run."""
IF_WHOLE = "only if it measured without a gap for the {0} that it tells, episodes come"
SAMPLES = "per sample, if samples were independent"


def histogram_title(said: HistogramOnly) -> str:
    what = " ".join(filter(None, (said.imported.tool, said.imported.title)))
    return f"rtproof: {said.state.value} - {what[:120]}"


def histogram_sections(said: HistogramOnly) -> list[Section]:
    """Return all sections of the report, in order."""
    parts = [
        Section("verdict", "Verdict", tuple(_verdict(said))),
        Section("remains", "What remains", tuple(_remains(said))),
        Section("impossible", "What this file cannot say", tuple(_impossible(said))),
    ]
    return [part for part in parts if part.blocks]


def _verdict(said: HistogramOnly) -> Iterator[Block]:
    meaning = AS_FAR_AS if said.state is State.PROVEN else MEANINGS[said.state].removeprefix(f"{said.state.value}: ")
    reasons = said.imported.faults or tuple(one.reason for one in said.judged)
    told = (f"{meaning[:1].upper()}{meaning[1:]}", *dict.fromkeys(reasons))
    yield Text(told, KINDS[said.state], said.state.value)
    if said.doubts:
        yield Text(said.doubts, "doubt", "What the decision does not rest on")
    gone = tuple(_gone(said.imported))
    if gone:
        yield Text(gone, "doubt", "What the file lacks: read all figures with this in mind")
    rows = tuple(line for one in said.judged for line in histogram_limit_lines(one, said.imported.duration_ns))
    rows += tuple(largest_text(said.imported))
    if rows:
        yield Table("What it rests on", ("line", "what it says"), rows)


def _gone(imported: ImportedHistogram) -> Iterator[str]:
    """Yield which values no bin holds, and what the format cannot tell."""
    if imported.overflow:
        end = value(scale_end_ns(imported))
        yield (
            f"{imported.overflow:,} of {quantity(imported.count or 0, 'sample')} lie beyond its scale, which ends at "
            f"{end}: of these only the largest is known"
        )
    elif imported.overflow is None and imported.histogram is not None:
        yield f"how many samples lie beyond its scale, which ends at {value(scale_end_ns(imported))}, is not told"
    yield from imported.notes


def histogram_limit_lines(one: JudgedHistogram, measured_ns: int | None = None) -> list[tuple[str, str]]:
    """Return what is said of one limit: the claim, the number of samples that exceed it, and the bound of their share.

    measured_ns: the length of the run, as the file states it.
    """
    asked = one.requirement
    claim = (
        f"{value(asked.limit_ns)}, at most once per {duration(asked.at_most_ns)}, confidence "
        f"{percent(asked.confidence)}: {one.state.value}"
    )
    if one.above is None:
        return [("LIMIT", claim)]
    sure = percent(asked.confidence)
    lines = [("LIMIT", claim), ("ABOVE", exceeding_text(one.above, asked.limit_ns)), ("", _share(one.above, sure))]
    if one.above.most == 0 and measured_ns and one.state is not State.PROVEN:
        rarest = duration(1 / rate_upper(0, measured_ns, 1 - asked.confidence))
        lines.append(("", f"{IF_WHOLE.format(duration(measured_ns))} less often than once per {rarest} ({sure})"))
    return lines


def exceeding_text(above: CountAbove, limit_ns: int) -> str:
    """Return how many of n samples exceed the limit."""
    if above.most is None:
        amount = f"at least {above.least:,}" if above.least else "an unknown number"
    else:
        amount = f"{above.least:,}" if above.least == above.most else f"between {above.least:,} and {above.most:,}"
    return f"{amount} of {quantity(above.n, 'sample')} above {value(limit_ns)}"


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


def largest_text(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    """Yield the maximum, how soon a larger value comes, and which events the run may have missed."""
    n, most = imported.count, imported.max_ns
    if not n or most is None:
        return
    width = imported.resolution_ns or 1
    resolution = f" (rounded down to {value(width)})" if width > 1 else ""
    first = f"{value(most)}{resolution}, the largest of {quantity(n, 'sample')}"
    if imported.faults:
        yield "MAX", f"{first}; the file contradicts itself, so that nothing follows from it"
        return
    yield "MAX", first
    yield (
        "",
        f"a second run of n samples exceeds it with a probability of at most 50 %, one of m samples with m / (n + m): "
        f"5 % for m = {n // 19:,}, if it is alike (an equal maximum does not exceed it)",
    )
    bound = share_upper(0, n, CONFIDENCE)
    yield "", f"> {value(imported.largest_ns or most)}: less than {bound:.3g} of the samples (95 %, n fixed beforehand)"
    yield "UNSEEN", f"anything rarer than one sample in {1 / bound:,.0f} may be missing from this run (95 %)"
    yield "VALID FOR", _conditions(imported)


def _conditions(imported: ImportedHistogram) -> str:
    facts = dict(imported.facts)
    kernel = f" ({facts['release']} {facts.get('version', '')})".replace(" )", ")") if "release" in facts else ""
    return f"the kernel{kernel}, boot, load and temperature of that run only; what these were is not in the file"


def _remains(said: HistogramOnly) -> Iterator[Block]:
    imported = said.imported
    unit = number_format.unit_for((imported.min_ns, imported.mean_ns, imported.max_ns))
    if said.quantiles:
        yield _quantiles(said, unit)
    if imported.parts:
        yield _threads(imported, unit)
    rows = tuple((name, words) for name, words in _told(imported) if words)
    yield Table("What the tool tells", ("what", "value"), (*rows, *imported.facts))


def _told(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    yield "samples", number_format.count_text(imported.count)
    yield "beyond the scale", number_format.count_text(imported.overflow)
    ends = (("smallest", imported.min_ns), ("mean", imported.mean_ns), ("largest", imported.max_ns))
    yield from ((name, "" if ns is None else number_format.US(ns)) for name, ns in ends)
    yield "period", duration(imported.period_ns) if imported.period_ns else ""
    yield "priority", "" if imported.priority is None else str(imported.priority)
    whose = "as the user states" if DURATION_STATED in imported.stated else "by its own account"
    yield f"measured, {whose}", duration(imported.duration_ns) if imported.duration_ns else ""
    yield "asked for", duration(imported.asked_duration_ns) if imported.asked_duration_ns else ""
    yield "overruns", "" if imported.overruns is None else number_format.count_text(imported.overruns)
    switches = imported.mode_switches
    yield "mode switches (msw)", "" if switches is None else number_format.count_text(switches)


def _quantiles(said: HistogramOnly, unit: number_format.PrintedUnit) -> Table:
    rows = tuple(_quantile(q, said, unit) for q in said.quantiles)
    n = said.quantiles[0].n
    caption = f"Latency not exceeded by this share of the samples (n = {n:,}; interval if their order does not matter)"
    return Table(caption, ("share", *number_format.unit_headings(unit, "value", "95 % interval")), rows, (1, 2))


def _quantile(q: Quantile, said: HistogramOnly, unit: number_format.PrintedUnit) -> tuple[str, str, str]:
    end = scale_end_ns(said.imported) if said.beyond is not None else None

    def shown(ns: int | None) -> str:
        return f"at least {unit.show(end)}" if end is not None and ns is not None and ns >= end else unit.show(ns)

    return percent(q.p), shown(q.value), f"{shown(q.low)} to {shown(q.high)}"


def _threads(imported: ImportedHistogram, unit: number_format.PrintedUnit) -> Table:
    rows = tuple(
        (
            f"thread {part.number}",
            "unknown" if part.cpu is None else str(part.cpu),
            number_format.count_text(part.count),
            number_format.count_text(part.overflow),
            *(unit.show(ns) for ns in (part.min_ns, part.mean_ns, part.max_ns)),
        )
        for part in imported.parts
    )
    header = ("thread", "CPU", "n", "beyond the scale", *number_format.unit_headings(unit, "min", "mean", "max"))
    return Table("Threads", header, rows, tuple(range(1, len(header))))


def _impossible(said: HistogramOnly) -> Iterator[Block]:
    yield Table("Statements that need more than a histogram", ("statement", "why not"), tuple(impossible_figures(said)))
    if said.state is State.UNDECIDED:
        yield Text(("rtproof run measures with time order, so that it can prove and refute.",))


NEEDS = ("episodes", "PROVEN after", "from now", "REFUTED if they come within")
CHANCES = ("true rate", "PROVEN", "REFUTED", "undecided", "mean time to the verdict", "9 of 10 by")
NONE = "-"


def plan_sections(plans: Sequence[LengthPlan]) -> list[Section]:
    """Return one section for each limit, in the order of the limits."""
    return [_section(number, plan) for number, plan in enumerate(plans, 1)]


def _section(number: int, plan: LengthPlan) -> Section:
    requirement = plan.requirement
    needs = tuple(_need(each, plan) for each in plan.needs)
    chances = tuple(_chance(each, plan) for each in plan.chances)
    caption = f"Measured time that a verdict needs, at {sure(plan.alpha)}"
    rates = f"Verdicts at some true rates, up to {duration(plan.horizon_ns, up=True)} of measured time"
    blocks: list[Block] = [
        *([Text((_so_far(plan),))] if plan.measured_ns else []),
        *([Table(caption, NEEDS, needs, (0,)), Table(rates, CHANCES, chances)] if _open(plan) else []),
        Text(_explained(plan)),
    ]
    return Section(f"plan-{number}", verdict_sentences.limit_sentence(requirement), tuple(blocks))


def _open(plan: LengthPlan) -> bool:
    return plan.already is State.UNDECIDED


def _so_far(plan: LengthPlan) -> str:
    seen = f"{quantity(plan.episodes, 'episode')} in {duration(plan.measured_ns)} so far"
    stands = ", and later episodes do not change that (if no earlier time decided otherwise)"
    return f"{seen}: {plan.already.value}" + ("" if _open(plan) else stands)


def _need(need: NeededLength, plan: LengthPlan) -> tuple[str, ...]:
    refuted = duration(need.refuted_until_ns) if need.refuted_until_ns > plan.measured_ns else NONE
    return str(need.episodes), duration(need.proven_after_ns, up=True), duration(need.more_ns, up=True), refuted


def _chance(each: DecisionChance, plan: LengthPlan) -> tuple[str, ...]:
    rate = f"once per {duration(plan.requirement.at_most_ns / each.rate)}" if each.rate else "never"
    shares = (_percent(share) for share in (each.proven, each.refuted, each.undecided))
    return rate, *shares, *(duration(ns, up=True) if ns is not None else NONE for ns in (each.mean_ns, each.late_ns))


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _explained(plan: LengthPlan) -> tuple[str, ...]:
    requirement = plan.requirement
    episode = verdict_sentences.episode_sentence(requirement)
    several = verdict_sentences.shared_error_sentence(plan.limits, plan.alpha, requirement)
    return (
        f"{verdict_sentences.answer_sentences((episode,))} You may look at the test and end the run at any time. "
        "Give the limit to rtproof run before it starts.",
        f"One episode that lasts longer than {duration(requirement.longest_ns)} refutes the claim at once.",
        "The measured times are for short episodes. Time inside an episode and the gap after it do not count.",
        *((_bunches(requirement),) if requirement.bunches > 1 else ()),
        *((verdict_sentences.answer_sentences((several,)),) if plan.limits > 1 else ()),
        "The chances assume that episodes come independently at a constant rate. The true rate is not known "
        "beforehand. The last two columns give quiet time, over the runs that are decided.",
        "The chances leave out the test for bunches. It withholds a few proofs of such episodes too, so PROVEN "
        "may take longer.",
    )


def _bunches(requirement: Requirement) -> str:
    return (
        f"Episodes may come in bunches of {requirement.bunches:.3g} on average, so PROVEN takes "
        f"{requirement.bunches:.3g} times as long as for single episodes."
    )
