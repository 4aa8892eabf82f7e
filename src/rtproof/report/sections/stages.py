# SPDX-License-Identifier: Apache-2.0
"""Sections on the stages of an activation: where time goes, context switches, and who woke whom."""

from rtproof.judge.analysis_model import Analysis, several_stages
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import UNKNOWN, US, in_unit, share_text, table_of
from rtproof.report.stage_tables import ENDS, HEADINGS, bin_text, context_switch, exact_us, stage_ends, stage_numbers
from rtproof.summary.counts import DominantBin, dominant_bin
from rtproof.summary.recorded_facts import account_number, probe_accounts
from rtproof.summary.summary_model import Summary

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
    return [*blocks, _durations(analysis, stages[0])]


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    header = (*names, *HEADINGS)
    return Table(caption, header, tuple(rows), tuple(range(len(names), len(header))))


DURATIONS = "Duration of each stage of the same activation, of all activations"
DUE = "due time"
PARTS = {
    (DUE, "irq"): ": interrupt latency",
    ("irq", "task"): ": rest of the handler, scheduler",
    ("irq", "thread"): ": rest of the handler, scheduler",
    ("irq", "user"): ": rest of the handler, scheduler, way to user space",
    ("thread", "user"): ": way to user space",
    (DUE, "top"): ": until the loop begins",
    ("top", "start"): ": until its work begins",
    ("start", "end"): ": its work",
}
"""What is in the time from one clock reading to the next."""


def _durations(analysis: Analysis, first: Summary) -> Block:
    """How long each stage took. The first one begins at the due time, so its duration is its lateness."""
    if not analysis.switches:
        return Text((NO_SAMPLES,))
    stages = [(DUE, first.series.field, first.observed_counts, first.observed)]
    stages += [(each.earlier, each.later, each.counts, each.moments) for each in analysis.switches]
    rows = [
        (f"{earlier} to {later}{PARTS.get((earlier, later), '')}", *stage_numbers(counts, moments))
        for earlier, later, counts, moments in stages
    ]
    return _table(DURATIONS, ("from, to",), rows)


# Article 5 takes the difference of the two bins that hold most samples. The table adds the exact difference of each
# event, which the article cannot have.


INTERRUPT_BIN_NS, TASK_BIN_NS = 500, 2_000
"""Article 5's widths of bins. It has 2,000 bins for the interrupt and 2,500 for the task."""


def preemption_section(analysis: Analysis) -> list[Block]:
    """The context switch between the interrupt and the task of the same event, as in article 5."""
    interrupt, *_, preemption = several_stages(analysis)
    found = context_switch(interrupt, preemption, INTERRUPT_BIN_NS, TASK_BIN_NS)
    if found is None:
        return []
    rows = (
        ("interrupt latency", *_bin(found.interrupt), *stage_ends(interrupt.observed)[1:]),
        ("preemption latency", *_bin(found.task), *stage_ends(preemption.observed)[1:]),
        ("from one bin to the other", found.range_us, *[""] * 4),
        *(
            (
                f"each event, {switch.earlier} to {switch.later}",
                *_bin(dominant_bin(switch.counts, TASK_BIN_NS)),
                *stage_ends(switch.moments)[1:],
            )
            for switch in analysis.switches
        ),
    )
    header = ("context switch", "dominant bin [us]", "share of samples", *ENDS[1:])
    caption = (
        f"Context switch from the bins that most samples lie in, {exact_us(INTERRUPT_BIN_NS)} us wide for the "
        f"interrupt and {exact_us(TASK_BIN_NS)} us for the task, and exactly, event by event"
    )
    return [Table(caption, header, rows, tuple(range(1, len(header))))]


def _bin(found: DominantBin | None) -> tuple[str, str]:
    return (bin_text(found), share_text(found.n, found.total)) if found else (UNKNOWN, UNKNOWN)


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
    cpus = {series.thread: series.cpu for series in analysis.record.series}
    found = table_of(
        "The threads that posted, one for each measuring thread",
        told.items(),
        ("", lambda each: f"thread {each[0]}"),
        ("CPU woken", lambda each: str(cpus[each[0]])),
        ("CPU of the sender", lambda each: each[1].get("sender_cpu", UNKNOWN)),
        ("policy", lambda each: each[1].get("sender_policy", UNKNOWN)),
        ("priority", lambda each: each[1].get("sender_priority", UNKNOWN)),
        ("posts", lambda each: account_number(each[1], "posts")),
        ("answered", lambda each: account_number(each[1], "answered")),
        ("skipped", lambda each: account_number(each[1], "skipped")),
        in_unit(US, "latest post", lambda each: account_number(each[1], "sender_latest_ns")),
        numeric=(1, 2, *range(4, 9)),
    )
    return [found, Text((SAME, LATENESS))]
