# SPDX-License-Identifier: Apache-2.0
"""Sections on the kernel's own trace of the run, and on what tracing adds to the latency."""

from rtproof.core.phrases import duration, quantity
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import US, S, in_unit, table_of
from rtproof.summary.kernel_trace import TraceSummary, trace_summary
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
    effects = [(f"{field.field}, " if several else "", effect) for field in found.fields for effect in field.effects]
    return table_of(
        "Latency of a block, without tracing and with it",
        effects,
        ("per block", lambda row: f"{row[0]}{row[1].statistic}"),
        in_unit(US, "without", lambda row: row[1].without),
        in_unit(US, "with tracing", lambda row: row[1].with_trace),
        in_unit(US, "tracing adds", lambda row: row[1].difference),
        in_unit(US, "at least", lambda row: row[1].low),
        in_unit(US, "at most", lambda row: row[1].high),
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
        return f"Tracing changes the {effect.statistic} by less than {US(most)}, if at all."
    way = "higher" if effect.difference > 0 else "lower"
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return f"Tracing makes the {effect.statistic} {way} by {US(low)} to {US(high)}."


LOOK = "Read trace.txt, or open trace.dat in KernelShark. Both are beside the record; rtproof export writes them anew."


def trace_section(analysis: Analysis) -> list[Block]:
    """The kernel's trace in short: what was traced, how much of it is left, and how to look at it."""
    found = trace_summary(analysis.record)
    missing = (f"This kernel has no events {', '.join(found.missing)}.",) if found.missing else ()
    rows = tuple((name, f"{n:,}") for name, n in found.kinds.items())
    return [
        Text((_recorded(found), *_cut(found), _window(found), *missing, LOOK)),
        Table("Events in the trace", ("event", "how many"), rows, (1,)),
    ]


def _recorded(found: TraceSummary) -> str:
    """A sentence on the events that the trace holds and on those that were lost."""
    gone = [
        f"{n:,} {'was' if n == 1 else 'were'} {how}"
        for n, how in ((found.overrun, "overwritten by later ones"), (found.dropped, "dropped"))
        if n
    ]
    lost = f"; {' and '.join(gone)}" if gone else ", and none was lost"
    enough = f" About buffer_kib={found.enough_kib} would have held all." if found.enough_kib else ""
    return f"{quantity(found.entries, 'event')} by the clock {found.clock or 'of an unknown name'}{lost}.{enough}"


def _cut(found: TraceSummary) -> tuple[str, ...]:
    """A sentence if the trace's text, which has a limit of its own, has fewer events than the buffers had."""
    in_text = quantity(sum(found.kinds.values()), "event")
    cut = sum(found.kinds.values()) != found.entries
    return (f"trace.txt has {in_text}, and the table counts these.",) if cut else ()


def _window(found: TraceSummary) -> str:
    began, ended, whole = (None if ns is None else S(ns) for ns in (found.on_ns, found.off_ns, found.whole_from_ns))
    text = f"Recorded from {began or 'an unknown time'} to {ended or 'the end'} of the run's time"
    return f"{text}; complete from {whole} on." if whole else f"{text}."
