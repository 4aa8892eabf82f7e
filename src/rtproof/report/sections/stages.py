# SPDX-License-Identifier: Apache-2.0
"""Sections on the stages of an activation: where time goes, context switches, and who woke whom."""

from rtproof.judge.analysis_model import Analysis, several_stages
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.stage_tables import ENDS, HEADINGS, is_response, stage_ends, stage_numbers
from rtproof.summary.counts import DominantBin, dominant_bin
from rtproof.summary.recorded_facts import SourceCount, account_number, probe_accounts, source_counts
from rtproof.summary.summary_model import Summary, Switch

MEANINGS = {
    "irq": "in the interrupt handler",
    "task": "in the task of the kernel",
    "thread": "in the woken thread, inside the kernel",
    "user": "in the task of user space",
    "top": "at the top of the loop",
    "start": "before its work",
    "end": "behind its work",
}
NO_SAMPLES = "The run kept a summary instead of every sample, so the time from stage to stage is not known."


def stages_section(analysis: Analysis) -> list[Block]:
    """Where the time goes: the lateness of each stage, and the time from stage to stage of the same activation."""
    stages = several_stages(analysis)
    if not stages or is_response(analysis):
        return []
    rows = [
        (
            stage.series.field,
            MEANINGS.get(stage.series.field, ""),
            *stage_numbers(stage.observed_counts, stage.observed),
        )
        for stage in stages
    ]
    caption = "Lateness of each stage: from the due time until the clock was read; the last one is judged"
    blocks: list[Block] = [_table(caption, ("stage", "clock read"), rows)]
    return [*blocks, *_durations(analysis, stages[0]), *_sources(source_counts(analysis.record))]


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    header = (*names, *HEADINGS)
    return Table(caption, header, tuple(rows), tuple(range(len(names), len(header))))


DURATIONS = "Duration of each stage of the same activation, of all activations"
DUE = "due time"
PARTS = {
    (DUE, "irq"): "interrupt latency",
    ("irq", "task"): "rest of the handler, scheduler",
    ("irq", "thread"): "rest of the handler, scheduler",
    ("irq", "user"): "rest of the handler, scheduler, way to user space",
    ("thread", "user"): "way to user space",
    (DUE, "top"): "until the loop begins",
    ("top", "start"): "until its work begins",
    ("start", "end"): "its work",
}
"""What is in the time from one clock reading to the next."""


def _durations(analysis: Analysis, first: Summary) -> list[Block]:
    """How long each stage took. The first one begins at the due time, so its duration is its lateness."""
    if not analysis.switches:
        return [Text((NO_SAMPLES,))]
    stages = [(DUE, first.series.field, first.observed_counts, first.observed)]
    stages += [(each.earlier, each.later, each.counts, each.moments) for each in analysis.switches]
    rows = [(_named(earlier, later), *stage_numbers(counts, moments)) for earlier, later, counts, moments in stages]
    return [_table(DURATIONS, ("from, to",), rows)]


def _named(earlier: str, later: str) -> str:
    what = PARTS.get((earlier, later))
    return f"{earlier} to {later}: {what}" if what else f"{earlier} to {later}"


def _sources(found: tuple[SourceCount, ...]) -> list[Block]:
    if not found:
        return []
    header = (
        "thread",
        "stage",
        "counted",
        "missed",
        "lost",
        *number_format.unit_headings(number_format.US, "min", "max"),
    )
    rows = tuple((f"thread {each.thread}", each.field, *_counted(each)) for each in found)
    caption = "Counted in the kernel, lost values included"
    return [Table(caption, header, rows, tuple(range(2, len(header))))]


def _counted(each: SourceCount) -> tuple[str, ...]:
    ends = (each.min, each.max) if each.count else (None, None)
    return (*map(number_format.count_text, (each.count, each.missed, each.lost)), *map(number_format.US.show, ends))


# The next functions show the context switch between the interrupt and the task of the same event, as in article 5. The
# article takes the difference of the two bins that hold most samples. The table adds the exact difference of each
# event, which the article cannot have.


FIRST = "irq"
INTERRUPT_BIN_NS, TASK_BIN_NS = 500, 2_000
"""Article 5's widths of bins. It has 2,000 bins for the interrupt and 2,500 for the task."""


def preemption_section(analysis: Analysis) -> list[Block]:
    """The context switch between the interrupt and the task of the same event, as in article 5."""
    stages = several_stages(analysis)
    if not stages or stages[0].series.field != FIRST:
        return []
    return _context_switch(analysis, stages[0], stages[-1])


def _context_switch(analysis: Analysis, interrupt: Summary, preemption: Summary) -> list[Block]:
    first = dominant_bin(interrupt.observed_counts, INTERRUPT_BIN_NS)
    last = dominant_bin(preemption.observed_counts, TASK_BIN_NS)
    if first is None or last is None:
        return []
    apart = f"{_us(max(last.start - first.end, 0))} to {_us(last.end - first.start)}"
    rows = (
        ("interrupt latency", *_bin(first), *stage_ends(interrupt.observed)[1:]),
        ("preemption latency", *_bin(last), *stage_ends(preemption.observed)[1:]),
        ("from one bin to the other", apart, *[""] * 4),
        *(_each_event(switch) for switch in analysis.switches),
    )
    header = ("context switch", "dominant bin [us]", "share of samples", *ENDS[1:])
    caption = (
        f"Context switch from the bins that most samples lie in, {_us(INTERRUPT_BIN_NS)} us wide for the interrupt and "
        f"{_us(TASK_BIN_NS)} us for the task, and exactly, event by event"
    )
    return [Table(caption, header, rows, tuple(range(1, len(header))))]


def _each_event(switch: Switch) -> tuple[str, ...]:
    found = dominant_bin(switch.counts, TASK_BIN_NS)
    shown = _bin(found) if found else (number_format.UNKNOWN, number_format.UNKNOWN)
    return (f"each event, {switch.earlier} to {switch.later}", *shown, *stage_ends(switch.moments)[1:])


def _bin(found: DominantBin) -> tuple[str, str]:
    return f"{_us(found.start)} to {_us(found.end)}", number_format.share_text(found.n, found.total)


def _us(ns: int) -> str:
    return f"{ns / number_format.US.ns:g}"


COUNTS = ("posts", "answered", "skipped")
SAME = (
    "If both threads share a CPU, each value includes the sender's way to sleep, as in rt-tests. sender=other avoids "
    "that, but includes the other CPU's way out of idle."
)
LATENESS = (
    "A value counts from just before the post. A sender that was a period late skipped the post, and this value is "
    "lost. Counts include the warm-up."
)


def ipc_section(analysis: Analysis) -> list[Block]:
    """Who woke each measuring thread, by the probe's own account: on which CPU, how late, and how many posts."""
    told = probe_accounts(analysis.record, "ipc")
    if not told:
        return []
    cpus = {series.thread: series.cpu for series in analysis.record.series}
    header = (
        "",
        "CPU woken",
        "CPU of the sender",
        "policy",
        "priority",
        *COUNTS,
        *number_format.unit_headings(number_format.US, "latest post"),
    )
    rows = tuple((f"thread {thread}", str(cpus[thread]), *_sender(account)) for thread, account in told.items())
    caption = "The threads that posted, one for each measuring thread"
    return [Table(caption, header, rows, (1, 2, *range(4, 9))), Text((SAME, LATENESS))]


def _sender(account: dict[str, str]) -> tuple[str, ...]:
    who = (account.get(f"sender_{word}", number_format.UNKNOWN) for word in ("cpu", "policy", "priority"))
    counts = (number_format.count_text(account_number(account, word)) for word in COUNTS)
    return (*who, *counts, number_format.US.show(account_number(account, "sender_latest_ns")))
