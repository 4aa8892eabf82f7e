# SPDX-License-Identifier: Apache-2.0
"""Loops of a periodic application, as article 3 tells them: work, loop time and timing error, and what was to spare."""

from rtproof.analysis import app
from rtproof.analysis.app import App
from rtproof.analysis.model import NO_MOMENTS, Analysis, Moments
from rtproof.analysis.phrases import duration, quantity, value
from rtproof.record import Record
from rtproof.report import figures, looptimes
from rtproof.report.blocks import Block, Table, Text

THREADS = 4
COLUMNS = figures.headings(figures.US, "work duration", "overall loop time", "top of loop timing error")
JUDGED = (
    "A limit judges the field end, from the target until the work is done. By that reading of the clock the loop "
    "decides whether to sleep until its next target: what is left is its slack."
)
MOVED = (
    "Targets kept to no grid: one that was missed moved to the moment in which that was seen, which leaves a slack of "
    "0, or delays were told to grow."
)
SUMMARY = (
    "The run kept a summary instead of every sample, so of single loops nothing is known: neither their times and "
    "slack, nor how many did not sleep. The average of the work is the difference of two averages."
)


def render(analysis: Analysis) -> list[Block]:
    record = analysis.record
    if not app.is_app(record) or not analysis.pooled.observed.count:
        return []
    if not app.has_samples(record):
        return [
            _table(NO_MOMENTS, NO_MOMENTS, analysis.stages[0].observed, _mean_work(analysis)),
            _lateness(analysis.stages[0].observed),
            Text((SUMMARY, JUDGED)),
        ]
    threads = app.of_threads(record)
    moved = MOVED if any(series.external for series in record.series) else ""
    whole = app.together(threads.values())
    return [
        _table(whole.work, whole.loop, whole.error),
        _lateness(whole.error),
        Text(tuple(filter(None, (_parts(whole) if not moved else "", _slept(whole), moved, JUDGED)))),
        _each(threads),
        *_broken(threads),
        *_plot(record, threads),
    ]


def _table(work: Moments, loop: Moments, error: Moments, mean_work: float | None = None) -> Table:
    rows = []
    for name, number in app.STATISTICS:
        numbers = [number(work), number(loop), number(error)]
        if name == "average" and mean_work is not None:
            numbers[0] = mean_work
        rows.append((name, *map(figures.US.show, numbers)))
    caption = f"What loops took: from top to top, and how late the top was (n = {error.count:,} loops)"
    return Table(caption, ("", *COLUMNS), tuple(rows), (1, 2, 3))


def _mean_work(analysis: Analysis) -> float | None:
    """Sums are exact, so that the difference of two averages is the average of the differences, if none is missing."""
    _, start, end = (stage.observed for stage in analysis.stages)
    return (end.sum - start.sum) / end.count if end.count == start.count else None


def _slept(whole: App) -> str:
    if not whole.slack.count:
        return "Only one loop is known, so nothing can be said about sleep and slack."
    awake, loops = figures.count(whole.no_sleep), quantity(whole.slack.count, "loop")
    return f"{awake} of {loops} with another behind did not sleep; the smallest slack was {value(whole.slack.min)}."


def _lateness(error: Moments) -> Table:
    least, most = (error.min, error.max) if error.count else (None, None)
    parts = app.lateness(least, error.mean, most, error.deviation)
    rows = tuple((name, figures.US.show(ns)) for name, ns in parts)
    return Table("How late the top was: what all loops share, and what varies", ("", COLUMNS[2]), rows, (1,))


def _parts(whole: App) -> str:
    """What is the same for all loops does less harm than what varies."""
    if whole.error.count < 2:
        return ""
    varies = value(whole.error.max - whole.error.min)
    return (
        "What all tops share is in no loop time. What varies is, but with targets one period apart it makes no loop "
        f"differ from the period by more than {varies}."
    )


def _each(threads: dict[int, App]) -> Table:
    us = figures.headings(figures.US, "smallest slack", "sum of loop times", "first to last top", "difference")
    rows = tuple(
        (f"thread {thread}", *map(figures.count, (each.work.count, each.no_sleep)), *map(figures.US.show, _sums(each)))
        for thread, each in threads.items()
    )
    return Table("Sleep, slack and the sum of the loops", ("", "loops", "without sleep", *us), rows, (1, 2, 3, 4, 5, 6))


def _sums(each: App) -> tuple[int | None, ...]:
    slack = each.slack.min if each.slack.count else None
    return slack, each.loop.sum, each.elapsed_ns, each.loop.sum - each.elapsed_ns


def _broken(threads: dict[int, App]) -> list[Block]:
    """Sums that cannot be."""
    said = [
        f"Loop times of thread {thread} add up to {duration(each.loop.sum)}, but from its first top to its last "
        f"{duration(each.elapsed_ns)} passed: {quantity(each.apart, 'hole')} in the record."
        for thread, each in threads.items()
        if not app.relation_holds(each.loop.count, each.loop.sum, each.elapsed_ns)
    ]
    return [Text(tuple(said), "doubt")] if said else []


def _plot(record: Record, threads: dict[int, App]) -> list[Block]:
    lengths = {thread: each.length for thread, each in list(threads.items())[:THREADS]}
    named = [(f"thread {thread}", each) for thread, each in looptimes.drawn(record, lengths).items()]
    more = f"Of {len(threads)} threads the first {THREADS} are drawn." if len(threads) > THREADS else ""
    found = looptimes.plot(named, more=more)
    return [found] if found else []
