# SPDX-License-Identifier: Apache-2.0
"""Sections on the kernel's own trace of the run, and on what tracing adds to the latency."""

from rtproof.core.phrases import duration, quantity
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import US, S, in_unit, table_of
from rtproof.summary.kernel_trace import trace_summary
from rtproof.summary.tracing_effect import EFFECT_METHOD, TracingEffect, tracing_effects


def observer_section(analysis: Analysis) -> list[Block]:
    """What tracing itself adds to the latency: the same run measured with and without tracing by turns."""
    found = tracing_effects(analysis.record)
    if found is None:
        return []
    if found.refused:
        return [Text((f"No comparison: {found.refused}.",), "doubt")]
    how = (
        f"{found.sets} sets of four blocks of {duration(found.block_ns)}, without the first "
        f"{duration(found.left_out_ns)} of each. {EFFECT_METHOD}. Both columns include what tracing "
        "costs while it is switched off."
    )
    says = [_sentence(effect) for effect in found.effects if effect.statistic in ("median", "maximum")]
    table = table_of(
        "Latency of a block, without tracing and with it",
        found.effects,
        ("per block", lambda effect: effect.statistic),
        in_unit(US, "without", lambda effect: effect.without),
        in_unit(US, "with tracing", lambda effect: effect.with_trace),
        in_unit(US, "tracing adds", lambda effect: effect.difference),
        in_unit(US, "at least", lambda effect: effect.low),
        in_unit(US, "at most", lambda effect: effect.high),
    )
    return [table, Text((*says, how))]


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
    lost = ((found.overrun, "overwritten by later ones"), (found.dropped, "dropped"))
    gone = " and ".join(f"{n:,} {'was' if n == 1 else 'were'} {how}" for n, how in lost if n) or "none was lost"
    in_text = sum(found.kinds.values())  # The trace's text has a limit of its own.
    said = (
        f"{quantity(found.entries, 'event')} by the clock {found.clock or 'of an unknown name'}; {gone}.",
        f"About buffer_kib={found.enough_kib} would have held all." if found.enough_kib else "",
        "" if in_text == found.entries else f"trace.txt has {quantity(in_text, 'event')}, and the table counts these.",
        "" if found.whole_from_ns is None else f"It is complete from {S(found.whole_from_ns)} of the run's time on.",
        f"This kernel has no events {', '.join(found.missing)}." if found.missing else "",
        LOOK,
    )
    rows = tuple((name, f"{n:,}") for name, n in found.kinds.items())
    return [Text(tuple(filter(None, said))), Table("Events in the trace", ("event", "how many"), rows, (1,))]
