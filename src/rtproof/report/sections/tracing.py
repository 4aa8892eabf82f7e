# SPDX-License-Identifier: Apache-2.0
"""Sections on the kernel's own trace of the run, and on what tracing adds to the latency."""

from rtproof.core.phrases import duration, quantity
from rtproof.judge.analysis_model import Analysis
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.summary.kernel_trace import TraceSummary, has_trace, trace_summary
from rtproof.summary.tracing_effect import EFFECT_METHOD, TracingEffect, TracingEffects, tracing_effects


def observer_section(analysis: Analysis) -> list[Block]:
    """What tracing itself adds to the latency: the same run measured with and without tracing by turns."""
    found = tracing_effects(analysis.record)
    if found is None:
        return []
    if found.refused:
        return [Text((f"No comparison: {found.refused}.",), "doubt")]
    return [_table(found), Text((*_says(found), _how(found)))]


def _table(found: TracingEffects) -> Table:
    several = len(found.fields) > 1
    rows = tuple(
        (f"{field.field}, {effect.statistic}" if several else effect.statistic, *_numbers(effect))
        for field in found.fields
        for effect in field.effects
    )
    header = number_format.unit_headings(
        number_format.US, "without", "with tracing", "tracing adds", "at least", "at most"
    )
    return Table("Latency of a block, without tracing and with it", ("per block", *header), rows, (1, 2, 3, 4, 5))


def _numbers(effect: TracingEffect) -> tuple[str, ...]:
    return tuple(
        number_format.US.show(value)
        for value in (effect.without, effect.with_trace, effect.difference, effect.low, effect.high)
    )


def _how(found: TracingEffects) -> str:
    return (
        f"{found.sets} sets of four blocks of {duration(found.block_ns)}, without the first "
        f"{duration(found.left_out_ns)} of each. {EFFECT_METHOD}. Both columns include what tracing "
        "costs while it is switched off."
    )


def _says(found: TracingEffects) -> tuple[str, ...]:
    """Sentences on the effect of tracing on the field that a limit judges."""
    judged = found.fields[-1]
    return tuple(_sentence(effect) for effect in judged.effects if effect.statistic in ("median", "maximum"))


def _sentence(effect: TracingEffect) -> str:
    if effect.low <= 0 <= effect.high:
        most = max(-effect.low, effect.high)
        return f"Tracing changes the {effect.statistic} by less than {number_format.US(most)}, if at all."
    way = "higher" if effect.difference > 0 else "lower"
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return f"Tracing makes the {effect.statistic} {way} by {number_format.US(low)} to {number_format.US(high)}."


LOOK = "Read trace.txt, or open trace.dat in KernelShark. Both are beside the record; rtproof export writes them anew."


def trace_section(analysis: Analysis) -> list[Block]:
    """The kernel's trace in short: what was traced, how much of it is left, and how to look at it."""
    if not has_trace(analysis.record):
        return []
    found = trace_summary(analysis.record)
    rows = tuple((name, number_format.count_text(n)) for name, n in found.kinds.items())
    return [
        Text((_recorded(found), *_cut(found), _window(found), *_missing(found), LOOK)),
        Table("Events in the trace", ("event", "how many"), rows, (1,)),
    ]


def _recorded(found: TraceSummary) -> str:
    """A sentence on the events that the trace holds and on those that were lost."""
    gone = [
        f"{number_format.count_text(n)} {'was' if n == 1 else 'were'} {how}"
        for n, how in ((found.overrun, "overwritten by later ones"), (found.dropped, "dropped"))
        if n
    ]
    lost = f"; {' and '.join(gone)}" if gone else ", and none was lost"
    enough = f" About buffer_kib={found.enough_kib} would have held all." if found.enough_kib else ""
    return f"{quantity(found.entries, 'event')} by the clock {found.clock or 'of an unknown name'}{lost}.{enough}"


def _cut(found: TraceSummary) -> tuple[str, ...]:
    """A sentence if the trace's text has fewer events than the buffers had; else ().

    The text has a limit of its own, and a full disk can cut both.
    """
    in_text = sum(found.kinds.values())
    if in_text == found.entries:
        return ()
    return (f"trace.txt has {quantity(in_text, 'event')}, and the table counts these.",)


def _window(found: TraceSummary) -> str:
    seconds = [None if ns is None else number_format.S(ns) for ns in (found.on_ns, found.off_ns, found.whole_from_ns)]
    began, ended, whole = seconds
    text = f"Recorded from {began or 'an unknown time'} to {ended or 'the end'} of the run's time"
    return f"{text}; complete from {whole} on." if whole else f"{text}."


def _missing(found: TraceSummary) -> tuple[str, ...]:
    return (f"This kernel has no events {', '.join(found.missing)}.",) if found.missing else ()
