# SPDX-License-Identifier: Apache-2.0
"""The kernel's own trace of the run, in short: what was traced, how much of it is left, and how to look at it."""

from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import quantity
from rtproof.analysis.tracefile import has_trace
from rtproof.analysis.tracing import TraceSummary, summary
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

LOOK = (
    "rtproof run leaves trace.txt and trace.dat beside the record; rtproof export writes both anew, as trace-txt and "
    "trace-dat. trace-cmd report and KernelShark read trace.dat."
)


def render(analysis: Analysis) -> list[Block]:
    if not has_trace(analysis.record):
        return []
    found = summary(analysis.record)
    rows = tuple((name, figures.count(n)) for name, n in found.kinds.items())
    return [
        Text((_recorded(found), *_cut(found), _window(found), *_missing(found), LOOK)),
        Table("Events in the trace", ("event", "how many"), rows, (1,)),
    ]


def _recorded(found: TraceSummary) -> str:
    """How many events there are and how many there were."""
    gone = [
        f"{figures.count(n)} {'was' if n == 1 else 'were'} {how}"
        for n, how in ((found.overrun, "overwritten by later ones"), (found.dropped, "dropped"))
        if n
    ]
    lost = f"; {' and '.join(gone)}" if gone else ", and none was lost"
    enough = f" About buffer_kib={found.enough_kib} would have held all." if found.enough_kib else ""
    return f"{quantity(found.entries, 'event')} by the clock {found.clock or 'of an unknown name'}{lost}.{enough}"


def _cut(found: TraceSummary) -> tuple[str, ...]:
    """The text has its own limit, and a full disk ends either."""
    in_text = sum(found.kinds.values())
    if in_text == found.entries:
        return ()
    what = "the table below and trace.txt count what the text has; trace.dat has its own pages"
    return (f"The text has {quantity(in_text, 'event')}, which is not what the buffers had: {what}.",)


def _window(found: TraceSummary) -> str:
    seconds = [None if ns is None else figures.S(ns) for ns in (found.on_ns, found.off_ns, found.whole_from_ns)]
    began, ended, whole = seconds
    text = f"Recorded from {began or 'an unknown time'} to {ended or 'the end'} of the run's time"
    return f"{text}; what is left is without gaps from {whole} on." if whole else f"{text}."


def _missing(found: TraceSummary) -> tuple[str, ...]:
    return (f"This kernel has no events {', '.join(found.missing)}.",) if found.missing else ()
