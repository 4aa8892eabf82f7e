# SPDX-License-Identifier: Apache-2.0
"""Sections on the stages of an activation: where time goes, context switches, answers to edges, and who woke whom."""

import numpy as np

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis, several_stages
from rtproof.report import number_format
from rtproof.report.blocks import Block, Curve, Plot, Table, Text
from rtproof.report.stage_tables import ENDS, HEADINGS, is_response, stage_ends, stage_numbers
from rtproof.summary.counts import DominantBin, dominant_bin
from rtproof.summary.recorded_facts import SourceCount, account_number, probe_accounts, source_counts
from rtproof.summary.summary_model import Moments, Summary, Switch

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
    return [*blocks, *_switches(analysis), *_sources(source_counts(analysis.record))]


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    header = (*names, *HEADINGS)
    return Table(caption, header, tuple(rows), tuple(range(len(names), len(header))))


def _switches(analysis: Analysis) -> list[Block]:
    if not analysis.switches:
        return [Text((NO_SAMPLES,))]
    rows = [
        (f"{each.earlier} to {each.later}", *stage_numbers(each.counts, each.moments)) for each in analysis.switches
    ]
    return [_table("From stage to stage of the same activation", ("from, to",), rows)]


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


# The next functions show the answers to edges on an input: how many came in time, how long they took, and how that time
# splits at the task. If the next edge came before the answer, the value is not missing: the answer took longer than the
# time between the edges.


_ORIGINS = {"respond_sysfs": "task", "wire": "output", "wire_sysfs": "output"}
"""Where a method's time begins if not at the edge: the method does not know the edge's time, or drives it itself."""


def response_section(analysis: Analysis) -> list[Block]:
    """The answers to edges: how many came in time, and how long they took; [] for other measurements."""
    if not is_response(analysis) or not analysis.stages:
        return []
    whole = analysis.pooled
    answered = ("edges", "answered", "unanswered", "unanswered of all", "lost")
    counts = (whole.due, whole.obtained, whole.never_ran)
    row = (
        *map(number_format.count_text, counts),
        number_format.share_text(whole.never_ran, whole.due),
        number_format.count_text(whole.lost),
    )
    caption = "Edges (unanswered if the next edge came first)"
    table = Table(caption, answered, (row,), tuple(range(5)), row_headers=False)
    return [table, *_answers_laid_over(analysis), _times(analysis), *_latmon(analysis)]


MOST_ANSWERS = 50


def _answers_laid_over(analysis: Analysis) -> list[Block]:
    """Some answers laid over each other, as an oscilloscope with persistence shows them; [] of fewer than two."""
    counts, unit = analysis.pooled.observed_counts, number_format.latency_unit(analysis)
    if counts.total < 2:
        return []
    ranks = sorted({round(float(rank)) for rank in np.linspace(1, counts.total, MOST_ANSWERS)})
    delays = [counts.value_at_rank(rank)[1] for rank in ranks]
    origin = _ORIGINS.get(analysis.pooled.series.method, "edge")
    end = unit.scale(delays[-1] + max(delays[-1] // 20, 1))
    name, level = quantity(len(ranks), "answer"), (0.0, 100.0, 100.0)
    curves = [Curve(name, (0.0, unit.scale(ns), end), level, group=0) for ns in delays]
    latest = Curve("the latest", (0.0, unit.scale(delays[-1]), end), level, "whole", 0)
    says = (
        f"The output after each of {len(ranks)} of {quantity(counts.total, 'answer')}, evenly taken from the fastest, "
        f"{value(delays[0])}, to the latest, {value(delays[-1])}."
    )
    return [
        Plot(
            "Answers laid over each other",
            says,
            f"time since the {origin} [{unit.name}]",
            "level of the output [%]",
            (*curves, latest),
            number_format.limit_marker(analysis, "x", unit),
            style="step",
            y_ends=(-10.0, 110.0),
        )
    ]


def _times(analysis: Analysis) -> Table:
    """A table of the times from the edge to each stage, and of the differences between stages of the same edge."""
    origin = _ORIGINS.get(analysis.pooled.series.method, "edge")
    *before, last = [(f"{origin} to {stage.series.field}", stage.observed) for stage in analysis.stages]
    between = [(f"{each.earlier} to {each.later}", each.moments) for each in analysis.switches]
    rows = [(name, *stage_ends(moments)) for name, moments in (*before, *between, last)]
    unanswered = analysis.pooled.missed
    if unanswered:
        rows.append(("edge to answer, unanswered", number_format.count_text(unanswered), "", "", _more_than(analysis)))
    return Table("How long answers took", ("what", *ENDS), tuple(rows), (1, 2, 3, 4))


def _more_than(analysis: Analysis) -> str:
    """The time that an unanswered edge took at least, as a cell."""
    period = analysis.pooled.series.period_ns
    return f"> {number_format.US.show(period)}" if period else "> the time between edges"


def _latmon(analysis: Analysis) -> list[Block]:
    """The figures that latmon's protocol carried, beside those of the record; [] for runs without this protocol."""
    blocks: list[Block] = []
    for told in probe_accounts(analysis.record, "latmon").values():
        ours, theirs = analysis.pooled.observed, _told_moments(told)
        asked = told.get("role") == "latmus"
        rows: list[tuple[str, ...]] = [
            ("this run", *stage_ends(ours)),
            (f"latmon at {told.get('address', '')}", *stage_ends(theirs)),
        ]
        if asked and ours.mean is not None and theirs.mean is not None:
            apart = (theirs.min - ours.min, theirs.mean - ours.mean, theirs.max - ours.max)
            rows.append(("difference", "", *map(number_format.US.show, apart)))
        caption = "Edge to answer, here and as the board with latmon measured it" if asked else LATMON_SENT
        blocks += [Table(caption, ("measured by", *ENDS), tuple(rows), (1, 2, 3, 4)), Text(_latmon_says(told))]
    return blocks


LATMON_SENT = "Edge to answer, in the record and as it was sent by latmon's protocol"
_LATMON_COUNTS = (
    ("overruns", "periods passed before an answer, or edges had none (overruns)"),
    ("refused", "clients were sent away"),
    ("dropped", "answers had no room on their way to the client, which does not know them"),
    ("strange", "of latmon's parts contradict themselves"),
)


def _told_moments(told: dict[str, str]) -> Moments:
    count, least, most, total = (account_number(told, word) or 0 for word in ("samples", "min_ns", "max_ns", "sum_ns"))
    return Moments(count, least, most, total)


def _latmon_says(told: dict[str, str]) -> tuple[str, ...]:
    counts = [(account_number(told, word) or 0, what) for word, what in _LATMON_COUNTS]
    sent = account_number(told, "sent")
    unsent = (
        []
        if told.get("role") == "latmus"
        else [((account_number(told, "samples") or 0) - (sent or 0), "were not sent")]
    )
    return (
        f"How it ended: {told.get('outcome', number_format.UNKNOWN)}.",
        *(f"{number_format.count_text(n)} {what}." for n, what in (*counts, *unsent) if n),
    )


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
