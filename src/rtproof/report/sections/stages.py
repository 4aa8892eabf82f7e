# SPDX-License-Identifier: Apache-2.0
"""Sections on the stages of an activation, on its loops and cycles, and on what the probe counted."""

from collections.abc import Iterator
from dataclasses import replace

from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.analysis_model import Analysis, several_stages
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import MS, NS_PER_S, UNKNOWN, US, in_unit, share_text, table_of, unit_headings
from rtproof.report.stage_tables import (
    ENDS,
    HEADINGS,
    bin_text,
    context_switch,
    cycle_plot,
    exact_us,
    loop_plots,
    loop_points,
    stage_ends,
    stage_numbers,
)
from rtproof.summary import loops
from rtproof.summary.counts import DominantBin, dominant_bin
from rtproof.summary.loops import ApplicationLoops, cycle_sentences
from rtproof.summary.recorded_facts import probe_accounts
from rtproof.summary.summary_model import NO_MOMENTS, Cycles, Moments, Stall, Summary

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


THREADS = 4
COLUMNS = unit_headings(US, "work duration", "overall loop time", "top of loop timing error")
JUDGED = "A limit judges the end of the work, counted from the target. Slack is the time from there to the next target."
MOVED = (
    "After a miss, the next target was set to the moment when the miss was noticed (a slack of 0), or the delays were "
    "set to grow."
)
SUMMARY = "The run kept a summary instead of every sample, so the times and the slack of single loops are unknown."


def app_section(analysis: Analysis) -> list[Block]:
    """The loops of the probe app, as in article 3: work, loop time, timing error and slack."""
    record = analysis.record
    if not loops.has_samples(record):
        top, start, end = (stage.observed for stage in analysis.stages)
        # The sums are exact, so the difference of the two averages is the average of the differences.
        mean_work = (end.sum - start.sum) / end.count if end.count == start.count else None
        return [_loop_table(NO_MOMENTS, NO_MOMENTS, top, mean_work), _lateness(top), Text((SUMMARY, JUDGED))]
    threads = loops.loops_of_threads(record)
    moved = any(series.external for series in record.series)
    whole = loops.loops_of_all_threads(threads.values())
    lengths = {thread: each.length for thread, each in list(threads.items())[:THREADS]}
    named = [(f"thread {thread}", each) for thread, each in loop_points(record, lengths).items()]
    return [
        _loop_table(whole.work, whole.loop, whole.error),
        _lateness(whole.error),
        Text(tuple(_sentences(whole, moved))),
        _each(threads),
        *([Text(broken, "doubt")] if (broken := tuple(_broken(threads))) else []),
        *loop_plots(
            named, more=f"Of {len(threads)} threads the first {THREADS} are drawn." if len(threads) > THREADS else ""
        ),
    ]


def _loop_table(work: Moments, loop: Moments, error: Moments, mean_work: float | None = None) -> Table:
    """What loops took. mean_work: known where nothing else of the work is."""
    caption = f"What loops took: from top to top, and how late the top was (n = {error.count:,} loops)"
    known = {name: number(work) for name, number in loops.LOOP_STATISTICS}
    known |= {} if mean_work is None else {"average": mean_work}
    rows = tuple(
        (name, *map(US.show, (known[name], number(loop), number(error)))) for name, number in loops.LOOP_STATISTICS
    )
    return Table(caption, ("", *COLUMNS), rows, (1, 2, 3))


def _lateness(error: Moments) -> Table:
    parts = loops.loop_lateness(error.smallest, error.mean, error.largest, error.deviation)
    rows = tuple((name, US.show(ns)) for name, ns in parts)
    return Table("How late the top was: the constant part, and the part that varies", ("", COLUMNS[2]), rows, (1,))


def _sentences(whole: ApplicationLoops, moved: bool) -> Iterator[str]:
    """Sentences on the two parts of the lateness, on the sleep, and on what a limit judges."""
    if not moved and whole.error.count > 1:
        varies = value(whole.error.max - whole.error.min)
        constant = "A constant lateness does not change the loop time."
        yield f"{constant} Only its variation does, by at most {varies} per loop."
    if whole.slack.count:
        of_all = f"{whole.no_sleep:,} of {quantity(whole.slack.count, 'loop')} did not sleep"
        yield f"{of_all}; the smallest slack was {value(whole.slack.min)}."
    else:
        yield "Sleep and slack are unknown, because the run has only one loop."
    yield from (MOVED, JUDGED) if moved else (JUDGED,)


def _each(threads: dict[int, ApplicationLoops]) -> Table:
    return table_of(
        "Sleep and slack of each thread",
        threads.items(),
        ("", lambda row: f"thread {row[0]}"),
        ("loops", lambda row: row[1].work.count),
        ("without sleep", lambda row: row[1].no_sleep),
        in_unit(US, "smallest slack", lambda row: row[1].slack.smallest),
    )


def _broken(threads: dict[int, ApplicationLoops]) -> Iterator[str]:
    """A note on each thread whose loop times do not add up to the time that passed."""
    for thread, each in threads.items():
        if not loops.relation_holds(each.loop.count, each.loop.sum, each.elapsed_ns):
            yield (
                f"Loop times of thread {thread} add up to {duration(each.loop.sum)}, but from its first top to its "
                f"last {duration(each.elapsed_ns)} passed: {quantity(each.apart, 'hole')} in the record."
            )


COUNTED = {
    "loops": "loops",
    "slept": "slept first",
    "shifted": "targets moved",
    "pulses_work": "pulses: work",
    "pulses_sleep": "pulses: sleep",
    "pulses_no_sleep": "pulses: no sleep",
    "primes": "primes found",
    "sensed": "last reading",
    "sender_cpu": "CPU of the sender",
    "sender_policy": "policy",
    "sender_priority": "priority",
    "posts": "posts",
    "answered": "answered",
    "skipped": "skipped",
    "sender_latest_ns": "latest post [ns]",
}
"""The column names for the words of a probe's account. Words that are 0 or empty in all threads get no column."""
OF_POSTS = (
    "If both threads share a CPU, each value includes the sender's way to sleep, as in rt-tests. sender=other avoids "
    "that, but includes the other CPU's way out of idle. A value counts from just before the post. A sender that was a "
    "period late skipped the post, and this value is lost."
)


def account_section(analysis: Analysis) -> list[Block]:
    """What the probes app and ipc counted in each thread: outputs, sensor and primes; who woke it, and how often."""
    accounts = [probe_accounts(analysis.record, probe) for probe in ("app", "ipc")]
    told = next((each for each in accounts if each), {})
    did = [word for word in COUNTED if any(each.get(word, "0") not in ("", "0") for each in told.values())]
    rows = tuple((f"thread {thread}", *(each.get(word, "") for word in did)) for thread, each in told.items())
    header = ("", *(COUNTED[word] for word in did))
    table = Table("Counted by the probe, warm-up included", header, rows, tuple(range(1, len(header))))
    return [table, Text((OF_POSTS,))] if accounts[1] else [table]


def cycles_section(analysis: Analysis) -> list[Block]:
    """The lengths of the cycles of a periodic loop against a band around the period, and whether it stood still."""
    found = analysis.cycles
    if found is None:
        return []
    proxy = analysis.record.fact("proxy_of")
    points = list(loops.cycle_points(analysis.record).items())[:THREADS]
    return [
        *map(_stalled, found.stalls),
        *([Text((f"A proxy of {proxy}.",))] if proxy else []),
        _cycles_table(found),
        Text((cycle_sentences(found), signature(found))),
        *([cycle_plot([(f"thread {thread}", each) for thread, each in points], found)] if points else []),
    ]


def _stalled(stall: Stall) -> Text:
    how = "then it went on" if stall.over else "until the end"
    where = f"thread {stall.thread}, from {stall.since_ns / NS_PER_S:,.3f} s after measuring began, {how}"
    return Text((f"The loop stood still for {duration(stall.duration_ns)}: {where}.",), "bad", "STALLED")


def _cycles_table(found: Cycles) -> Table:
    several = f"the first of each thread, {found.ignored:,} in all,"
    first = several if found.loops > 1 else f"the first {found.ignored:,}"
    table = table_of(
        f"Cycles of {duration(found.period_ns)}, from one run of the loop to the next; {first} are not counted",
        [found],
        ("cycles", lambda each: each.counted),
        (f"shorter than {duration(found.low_ns)}", lambda each: each.short),
        (f"longer than {duration(found.high_ns)}", lambda each: each.long),
        in_unit(MS, "max", lambda each: each.max_ns),
        in_unit(MS, "min", lambda each: each.min_ns),
        ("catch-up pairs", lambda each: each.catch_up_pairs),
        words=0,
    )
    return replace(table, row_headers=False)


def signature(found: Cycles) -> str:
    """Sentences on how a loop catches up: a long cycle with a short one directly after it is the sign."""
    pairs = f"{quantity(found.catch_up_pairs, 'long cycle')} had a short one directly behind it."
    if found.correlation is None:
        return pairs
    return (
        f"{pairs} Neighbouring cycles correlate by {found.correlation:.2f}; a loop that makes up for each delay in its "
        "next cycle shows -0.5."
    )
