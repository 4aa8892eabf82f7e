# SPDX-License-Identifier: Apache-2.0
"""Why a run was late: one sentence, one table of causes, and the budgets of the latest activations."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from rtproof.core.errors import UserError
from rtproof.core.phrases import capitalised, limit_value, quantity, value
from rtproof.explain.budget import BudgetPart, Phase, TimeBudget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.coincidence import COINCIDENCE_LEVEL, COINCIDENCE_METHOD, Coincidences, coincidences
from rtproof.explain.explanation import CauseRow, Explanation, TraceWindows, explain
from rtproof.explain.foreign_records import DEFINITION_EVENT
from rtproof.explain.machine_gone_counts import Counted, MachineCounts
from rtproof.explain.trace_source import WORTH_TELLING_NS
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report import number_format
from rtproof.report.blocks import BarPart, Bars, Block, Table, Text
from rtproof.summary.kernel_trace import RecorderWindows, has_trace, trace_refused
from rtproof.summary.tracing_effect import observer_line

MOST_ROWS = 18
MOST_PARTS = 40
SHOWN_BUDGETS = 8
PATH_SHOWN, STACK_SHOWN, STACKS_SHOWN = 4, 8, 4
FIRST_ROWS = 4
SMALL = 0.001
"""A cause with a smaller share of the late time is no row of its own."""
LEAST_ON_SCREEN = 0.01
LEAST_FOR_ADVICE = 0.05
MOST_ADVICE, MOST_KINDS = 4, 3
Time = tuple[str, Callable[[CauseRow], float | None]]
TIMES: tuple[Time, ...] = (
    ("median", attrgetter("median_ns")),
    ("largest", attrgetter("largest_ns")),
    ("typical", attrgetter("typical_ns")),
)


def explained_section(analysis: Analysis) -> list[Block]:
    """Why the latest activations were late, if the run was traced; else what coincides with them."""
    try:
        if not has_trace(analysis.record):
            return coincidence_blocks(coincidences_of(analysis), trace_refused(analysis.record))
        found = explanation_of(analysis)
    except UserError as problem:
        return [Text((f"{capitalised(str(problem))}.",), "doubt")]
    first, *rest = explained_blocks(found, analysis.record)
    if not found.budgets:
        return [first, *rest]
    budgets = budget_blocks(found, SHOWN_BUDGETS, folded=True)
    rows = [row for row in found.rows if row.share >= LEAST_ON_SCREEN or row is found.rows[0]][:FIRST_ROWS]
    caption = f"Why {quantity(len(found.budgets), 'activation')} came late, by share of their time"
    return [first, _causes_table(found, rows, caption), *rest, bars_of(found), *budgets]


def coincidences_of(analysis: Analysis) -> Coincidences:
    """What coincides with activations above the deciding limit."""
    requirement = analysis.verdict.requirement
    return coincidences(analysis.record, requirement.limit_ns if requirement else None)


@lru_cache(maxsize=1)
def _explain_once(record: Record, limit_ns: int | None) -> Explanation:
    return explain(record, limit_ns)


def explanation_of(analysis: Analysis) -> Explanation:
    """Why activations above the deciding limit were late. UserError where nobody can tell.

    The last one is kept, because several sections have it.
    """
    requirement = analysis.verdict.requirement
    return _explain_once(analysis.record, requirement.limit_ns if requirement else None)


def why_in_short(analysis: Analysis) -> tuple[str, ...]:
    """Of a run with --explain, for the first screen: its first causes, or why there are none."""
    try:
        if trace_refused(analysis.record):
            return (coincidence_in_short(coincidences_of(analysis)),)
        found = explanation_of(analysis)
    except UserError as problem:
        return (capitalised(str(problem)),)
    if not found.budgets:
        return (_why(found),)
    first, *others = _kinds(found)
    return first.replace(" %: ", " % of the late time: ", 1), *others


def explained_blocks(found: Explanation, record: Record) -> list[Block]:
    """The sentence, what to know about it, all causes, and what to do."""
    tracing = (*_windows(found.recorder), f"{capitalised(observer_line(record))}.")
    meant = tuple(f"{event.text}." for event in record.events if event.kind == DEFINITION_EVENT)
    blocks: list[Block] = [Text((_why(found), " ".join(tracing), *meant), foremost=not found.budgets)]
    doubts = tuple(_doubts(found))
    blocks += [Text(doubts, "doubt")] if doubts else []
    if found.budgets:
        usual = quantity(len(found.ordinary), "ordinary activation")
        note = (
            "Main cause of N: in N activations it took the most time. Median and largest: over the activations that "
            f"have it. {f'Typical: the median of the same kind of cause in {usual}. ' if found.ordinary else ''}"
            "The shares add up to 100 %."
        )
        advice = (row.advice for row in found.rows if row.share >= LEAST_FOR_ADVICE)
        rules = list(dict.fromkeys(rule for rule in advice if rule))[:MOST_ADVICE]
        told = (f"{capitalised(rule.short)}. {rule.sentence} Source: {rule.source}." for rule in rules)
        blocks += [_causes(found), Text((*_where(found), *_waited_in(found), note, *told))]
    return blocks


def _causes_table(found: Explanation, rows: Sequence[CauseRow], caption: str, times: Sequence[Time] = ()) -> Table:
    """These causes, and a row for all others together. times: further columns."""
    rest = [row for row in found.rows if row not in rows]
    cells = [
        (_name(row, found), _percent(row.share), f"{row.first_in:,}", *(_us(read(row) or 0) for _, read in times))
        for row in rows
    ]
    if rest:
        share, first_in = sum(row.share for row in rest), sum(row.first_in for row in rest)
        cells.append((quantity(len(rest), "other cause"), _percent(share), f"{first_in:,}", *("" for _ in times)))
    header = ("cause", "share", "main cause of", *(f"{name} [us]" for name, _ in times))
    return Table(caption, header, tuple(cells), tuple(range(1, len(header))), foremost=not times)


def _causes(found: Explanation) -> Table:
    """The largest causes, and what is unexplained whatever its share."""
    large = [row for row in found.rows if row.share >= SMALL][:MOST_ROWS]
    shown = [*large, *(row for row in found.rows if row.cause.cause is Cause.UNEXPLAINED and row not in large)]
    caption = f"Where the time of {quantity(len(found.budgets), 'late activation')} went"
    return _causes_table(found, shown, caption, TIMES if found.ordinary else TIMES[:2])


def _which(found: Explanation | Coincidences) -> str:
    if found.limit_ns:
        return f"{quantity(found.late, 'activation')} above {limit_value(found.limit_ns)}"
    return f"the {found.late:,} largest latencies" if found.late != 1 else "the largest latency"


def _why(found: Explanation) -> str:
    which = _which(found)
    if not found.late:
        return f"No activation was above {value(found.limit_ns or 0)}."
    if not found.budgets:
        return f"The cause is unknown: the trace holds none of {which}."
    first, *others = _kinds(found)
    return f"{'; '.join([first.replace(':', f' of the time of {which}:', 1), *others])}."


def _windows(windows: RecorderWindows | None) -> tuple[str, ...]:
    """What the flight recorder lost, how many and why; nothing if it lost none."""
    if windows is None or windows.kept >= windows.above:
        return ()
    above = quantity(windows.above, "activation")
    why = [f"{n:,} {_LOSSES[reason]}" for reason, n in (*windows.lost.items(), ("untold", windows.untold)) if n]
    return (f"The flight recorder kept {windows.kept:,} of {above} above its threshold. Lost: {', '.join(why)}.",)


_LOSSES = {
    "before": "before the trace began",
    "queue": "while too many waited to be written",
    "memory": "because larger ones filled its memory",
    "gone": "because newer events overwrote theirs",
    "record": "because the record was full (record_kib=)",
    "untold": "for an unknown reason",
}


def _kinds(found: Explanation) -> list[str]:
    """The largest kinds of causes in words, each with the share of the kind and its largest name."""
    shares = {cause: found.share_of(cause) for cause in {row.cause.cause for row in found.rows}}
    largest = sorted(shares, key=lambda cause: (-shares[cause], cause.value))[:MOST_KINDS]
    told = [cause for cause in largest if shares[cause] >= LEAST_FOR_ADVICE] or largest[:1]
    return [_kind_words(found, cause) for cause in told]


def _kind_words(found: Explanation, cause: Cause) -> str:
    """The first of a kind with its share; together with others of the kind where they are worth a mention."""
    first, share = next(row for row in found.rows if row.cause.cause is cause), found.share_of(cause)
    if share - first.share < LEAST_FOR_ADVICE:
        return f"{_percent(first.share)}: {first.words(found.blind)}"
    words = f"{first.words(found.blind)}, and others" if first.waits_for else first.cause.and_others.words(found.blind)
    return f"{_percent(share)}: {words}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _not_whole(windows: TraceWindows) -> str:
    """For how many late moments the trace lacks events, and why; "" if it lacks none."""
    cpus = ", ".join(f"CPU {cpu}: {n:,}" for cpu, n in windows.missing_on.items())
    reasons = (
        (windows.missing, f"a thread switch is missing ({cpus})"),
        (windows.untraced, f"a turn without tracing ({windows.untraced:,})"),
        (windows.lost, f"events were lost ({windows.lost:,})"),
    )
    why = ", ".join(words for count, words in reasons if count)
    torn, count = windows.count - windows.whole, quantity(windows.count, "window")
    return f"Events are missing in {torn:,} of {count} of the trace: {why}." if why else ""


def _doubts(found: Explanation) -> Iterator[str]:
    """Which late activations have no budget, and why a budget may be wrong."""
    late, explained = quantity(found.late, "late activation"), len(found.budgets)
    torn, gone = sum(not each.whole for each in found.budgets), found.share_of(Cause.IRQ_OFF_OR_GONE)
    unexplained = _percent(found.share_of(Cause.UNEXPLAINED))
    untraced = quantity(found.untraced, "more late activation")
    told = (
        (found.outside, f"{found.outside:,} of {late} are not in the trace."),
        (found.untraced, f"{untraced} came while tracing was off to measure its cost."),
        (found.left_out, f"{found.left_out:,} of {late} are too many to explain."),
        (True, _not_whole(found.windows)),
        (torn, f"{unexplained} of the time is unexplained, in {torn} of {explained} activations."),
        (
            found.open_count,
            f"In {found.open_count:,} of {quantity(explained, 'activation')} the main cause is not certain: "
            "the trace shows the beginning of an interrupt or of a switch up to 2 us late.",
        ),
        (
            gone >= SMALL,
            f"In {_percent(gone)} of the time, interrupts off look the same as a host or an SMI that stops the CPU.",
        ),
        *((True, sentence) for sentence in counted_sentences(found.machine)),
        (
            not found.counts_preemption,
            "This kernel does not record preemption off, so it looks the same as a missing preemption point.",
        ),
        (
            found.clock_error_ns > WORTH_TELLING_NS,
            f"The trace's clock differs from the record's: its times are exact to {value(found.clock_error_ns)}.",
        ),
        (
            found.blind,
            f"A cause may be {' or '.join(each.value for each in found.blind)}, which this trace does not show.",
        ),
    )
    return (sentence for holds, sentence in told if holds and sentence)


def counted_sentences(machine: MachineCounts) -> list[str]:
    """What stolen time and SMIs tell of activations in which the machine may have been gone; [] if there are none."""
    told = machine.tally
    if not told:
        return []
    silent = quantity(told.total(), "late activation")
    parts = [f"In {silent} the host or an SMI may have stopped the CPU."]
    parts += [f"In {told[each]:,} {_COUNTED[each]}." for each in Counted if told[each]]
    parts += ["Stolen time is counted in steps of 10 ms, and a host need not count it."] if machine.steal_read else []
    parts += [f"SMIs were not counted: {machine.smi_why}."] if machine.smi_why else []
    return [" ".join(parts)]


_COUNTED = {
    Counted.HOST: "the host took the CPU",
    Counted.FIRMWARE: "the firmware took the CPU (SMI)",
    Counted.ROSE: "stolen time or SMIs rose, but also at other times or by another amount, so the cause is unclear",
    Counted.NOT_RISEN: "what was counted did not rise, but a host or an SMI may still be the cause",
    Counted.NOT_READ: "neither stolen time nor SMIs were read at that time",
}


def _us(ns: float) -> str:
    return f"{ns / 1_000:,.1f}"


def _name(row: CauseRow, found: Explanation) -> str:
    several = f" ({row.threads} threads)" if row.threads > 1 else ""
    return f"{row.words(found.blind)}{several}"


def _where(found: Explanation) -> tuple[str, ...]:
    """In which functions of the kernel the largest causes were found."""
    rows = [row for row in found.rows if row.path and row.path.functions and row.share >= LEAST_FOR_ADVICE]
    return tuple(
        f"{capitalised(row.cause.words())}: {_percent(row.path.share)} in "
        f"{' > '.join(row.path.functions[-PATH_SHOWN:])} ({quantity(row.path.stacks, 'stack')})."
        for row in rows[:MOST_ADVICE]
        if row.path
    )


def _waited_in(found: Explanation) -> Iterator[str]:
    """In which functions of their program late threads slept, those that took most time first."""
    lengths_ns: Counter[tuple[str, ...]] = Counter()
    met: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for at, part in ((at, part) for at, each in enumerate(found.budgets) for part in each.parts if part.waits_in):
        lengths_ns[part.waits_in] += part.length_ns
        met[part.waits_in].add(at)
    for functions, length_ns in lengths_ns.most_common(MOST_ADVICE):
        if length_ns >= LEAST_FOR_ADVICE * found.total_ns:
            path = " > ".join(functions[PATH_SHOWN - 1 :: -1])
            share, late = _percent(length_ns / found.total_ns), quantity(len(met[functions]), "late activation")
            yield f"{share} of the time the late thread slept in {path} ({late})."


MOST_BARS = 24
MOST_COLOURS = 11
"""A page has 12 colours, of which the other causes take one."""


def bars_of(found: Explanation) -> Bars:
    """A bar for each of the latest activations, from its due time to its end."""
    shown = found.budgets[:MOST_BARS]
    largest = [row for row in found.rows if row.share >= SMALL][:MOST_COLOURS]
    names = {replace(row.cause, tid=None): _name(row, found) for row in largest}
    rest = (quantity(len(found.rows) - len(largest), "other cause"),) if len(largest) < len(found.rows) else ()
    parts = (tuple(_part(each, part, found, names, *rest) for part in each.parts) for each in shown)
    several = _several_threads(found)
    labels = [
        f"{number_format.S(each.activation.due_ns)}{f', thread {each.activation.thread}' if several else ''}"
        for each in shown
    ]
    bars = tuple(zip(labels, parts, strict=True))
    end = max((each.activation.latency_ns for each in shown), default=0) / 1_000
    says = f"{quantity(len(shown), 'activation')} with the largest latencies; each colour is a cause."
    kinds = (*names.values(), *rest)
    return Bars("Where the time of each went", says, "us after the due time", kinds, bars, end)


def _several_threads(found: Explanation) -> bool:
    return len({each.activation.thread for each in (*found.budgets, *found.ordinary)}) > 1


def _part(
    of: TimeBudget, part: BudgetPart, found: Explanation, names: Mapping[NamedCause, str], rest: str = ""
) -> BarPart:
    begin_ns, end_ns = part.from_ns - of.activation.due_ns, part.to_ns - of.activation.due_ns
    words = f"{capitalised(part.words(found.blind))}: {_us(part.length_ns)} us, {part.phase.value}"
    return BarPart(names.get(replace(part.cause, tid=None), rest), begin_ns / 1_000, end_ns / 1_000, words)


def budget_blocks(found: Explanation, most: int, *, folded: bool = False) -> list[Block]:
    """The budgets of the latest activations as tables."""
    shown = found.budgets[:most]
    header = ("activation", *number_format.unit_headings(number_format.US, "from"), "functions, innermost first")
    tables = (
        Table(caption, header, rows, (0, 1), folded=folded)
        for caption, stack_of in STACKS.items()
        if (rows := tuple(row for each in shown for row in _stack_rows(each, stack_of)))
    )
    return [*(_budget(each, found, folded) for each in shown), *tables]


STACKS: Mapping[str, Callable[[BudgetPart], tuple[str, ...]]] = {
    "Where in the kernel the cause was running": attrgetter("stack"),
    "Where in its program the late thread slept": attrgetter("waits_in"),
}


def _stack_rows(of: TimeBudget, stack_of: Callable[[BudgetPart], tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    longest = sorted(filter(stack_of, of.parts), key=lambda part: -part.length_ns)[:STACKS_SHOWN]
    for part in longest:
        stack = stack_of(part)
        rest = " < .." if len(stack) > STACK_SHOWN else ""
        from_us = _us(part.from_ns - of.activation.due_ns)
        yield f"{of.activation.index:,}", from_us, " < ".join(stack[:STACK_SHOWN]) + rest


def _budget(of: TimeBudget, found: Explanation, folded: bool) -> Table:
    activation = of.activation
    of_thread = f" of thread {activation.thread}" if _several_threads(found) else ""
    large = sorted(of.parts, key=lambda part: -part.length_ns)[:MOST_PARTS]
    kept = [part for part in of.parts if part in large and part.length_ns >= SMALL * activation.latency_ns]
    rows = [
        (
            phase.value if at == 0 else "",
            _us(first.from_ns - activation.due_ns),
            _us(length_ns),
            _percent(length_ns / activation.latency_ns),
            words,
        )
        for phase in Phase
        for at, (first, length_ns, words) in enumerate(_of_phase(kept, phase, found))
    ]
    rest = len(of.parts) - len(kept)
    if rest:
        shorter_ns = activation.latency_ns - sum(part.length_ns for part in kept)
        share = _percent(shorter_ns / activation.latency_ns)
        rows.append(("", "", _us(shorter_ns), share, quantity(rest, "shorter part")))
    caption = (
        f"Activation {activation.index:,}{of_thread}, due at {number_format.S(activation.due_ns)}: "
        f"{value(activation.latency_ns)}{_too_close(of, found)}"
    )
    us = number_format.US
    header = ("phase", *number_format.unit_headings(us, "from", "length"), "share", "cause")
    return Table(caption, header, tuple(rows), (1, 2, 3), folded=folded)


def _too_close(of: TimeBudget, found: Explanation) -> str:
    """The causes that are too close to each other to tell which took the most; nothing if one clearly did."""
    causes = of.possible_firsts
    if len(causes) == 1:
        return ""
    named = (f"{cause.words(found.blind)} ({_us(of.by_cause[cause])} us)" for cause in causes)
    return f". Too close to tell which took the most: {'; '.join(named)}"


def _of_phase(parts: list[BudgetPart], phase: Phase, found: Explanation) -> Iterator[tuple[BudgetPart, int, str]]:
    """Neighbours with the same words as one: the first of them, their whole length, and the words."""
    of_phase = (part for part in parts if part.phase is phase)
    for words, group in groupby(of_phase, key=lambda part: part.words(found.blind)):
        together = list(group)
        yield together[0], sum(part.length_ns for part in together), words


# What coincides with late activations where there is no trace: never a budget, and called what it is.


MOST_MOVED = 12
SHORT_MOVED = 2


def coincidence_blocks(found: Coincidences, why_no_trace: str) -> list[Block]:
    """The sentences and the table of what coincides. why_no_trace: the agent's reason, or ""."""
    reason = f": {why_no_trace}" if why_no_trace else ""
    seconds = f"{found.late_seconds:,} of {quantity(found.seconds, 'second')}"
    share, late_ns = found.waited_share, sum(each.late_ns for each in found.waited)
    # Waiting is known for whole seconds only, so this is a bound.
    waited = (
        f"The threads waited for a CPU for at most {100 * (share or 0):.1f} % of the late time of {value(late_ns)}."
    )
    first = (
        f"{capitalised(_which(found))}, in {seconds}. Their cause is unknown without a trace of the kernel's "
        f"events{reason}. What coincided with them may be a cause or not."
    )
    blocks: list[Block] = [Text((first,) if share is None else (first, waited))]
    if not found.moved:
        return [*blocks, Text((f"{capitalised(_nothing(found))}.",))]
    shown = found.moved[:MOST_MOVED]
    more = len(found.moved) - len(shown)
    left = f" {quantity(more, 'more count')} coincided too." if more else ""
    header = ("what rose", "unit", "in a late second", "in an ordinary one", "by chance")
    caption = f"What rose more in {quantity(found.late_seconds, 'late second')} than in the others (medians)"
    rows = tuple(
        (each.words, each.unit, f"{each.late:,.1f}", f"{each.ordinary:,.1f}", _chance(each.chance)) for each in shown
    )
    how = (
        f"By chance: the probability (p) that a count rises as much in seconds that were not late, corrected for all "
        f"{quantity(found.looked_at, 'count')}. Rows above {100 * COINCIDENCE_LEVEL:.0f} % are left out. "
        f"Method: {COINCIDENCE_METHOD}."
    )
    return [*blocks, Table(caption, header, rows, (2, 3, 4)), Text((f"{how}{left}",))]


def coincidence_in_short(found: Coincidences) -> str:
    """One sentence for the screen."""
    if not found.late:
        return f"no activation was above {value(found.limit_ns or 0)}"
    told = "; ".join(f"{each.words} ({_chance(each.chance)} by chance)" for each in found.moved[:SHORT_MOVED])
    more = len(found.moved) - SHORT_MOVED
    others = f"; and {more} more" if more > 0 else ""
    what = f"coincided: {told}{others}" if found.moved else _nothing(found)
    share = found.waited_share
    waited = "" if share is None else f"; at most {100 * share:.0f} % of the late time was waiting for a CPU"
    return f"cause unknown without a trace; {what}{waited}"


def _nothing(found: Coincidences) -> str:
    if found.too_few:
        return f"no coincidence can be told from chance: {found.too_few}"
    return f"nothing coincided, of {quantity(found.looked_at, 'count')} that changed"


def _chance(chance: float) -> str:
    return f"{100 * chance:.2g} %"
