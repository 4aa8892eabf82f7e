# SPDX-License-Identifier: Apache-2.0
"""What the CPUs did around late activations, and the budget of each, for Perfetto and other viewers of Chrome's JSON.

There is a track for each CPU and one for each late activation, and below it one for the threads that it waited for. An
arrow leads from the largest part of a budget to what ran then. Times are microseconds from the origin of the record.

Source: the Trace Event Format of Chrome's tracing.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from rtproof.core import units
from rtproof.core.phrases import quantity, value
from rtproof.explain.budget import BudgetPart, TimeBudget
from rtproof.explain.explanation import DEFAULT_TOP, Explanation, explain
from rtproof.explain.trace_timelines import CpuTimeline, Stretch
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis

SUFFIX = ".perfetto.json"
OPTIONS = {
    "limit": "explain activations above this latency, such as 200us (default: as rtproof explain)",
    "top": f"how many of the largest where there is no limit (default {DEFAULT_TOP})",
}
NEEDS = "a trace (rtproof run --trace)"
CPUS, BUDGETS = 1, 2
"""The numbers of the two groups of tracks; the format calls them processes."""

Event = dict[str, Any]


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the tracks."""
    record = analysis.record
    limit_ns = units.parse_length(options["limit"]) if "limit" in options else None
    found = explain(record, limit_ns, _columns.whole_number(options, "top", DEFAULT_TOP))
    told = {"displayTimeUnit": "ns", "otherData": _columns.marks(record), "traceEvents": list(trace_events(found))}
    with _columns.new_file(path) as file:
        json.dump(told, file, separators=(",", ":"), allow_nan=False)
    late = quantity(len(found.budgets), "late activation")
    outside = f"; {found.outside} are not in the trace" if found.outside else ""
    return (
        f"{path}: {late} and {quantity(len(found.timelines), 'CPU')} around them{outside}{_columns.mark_note(analysis)}"
    )


def trace_events(found: Explanation) -> Iterator[Event]:
    """The events of all tracks: names of the tracks, slices, and arrows."""
    yield _named("process_name", CPUS, 0, "CPUs")
    yield _named("process_name", BUDGETS, 0, "Late activations")
    for timeline in found.timelines:
        yield _named("thread_name", CPUS, timeline.cpu, f"CPU {timeline.cpu}")
        yield from _cpu_slices(timeline)
    for number, each in enumerate(found.budgets):
        activation = each.activation
        name = f"{value(activation.latency_ns)}, thread {activation.thread}, activation {activation.index}"
        track = 1 + 2 * number
        yield _named("thread_name", BUDGETS, track, name)
        for part in each.parts:
            more = {"phase": f"{part.phase.name}: {part.phase.value}", "cause": part.cause.cause.value}
            yield _slice(BUDGETS, track, (part.from_ns, part.to_ns), part.words(found.blind), more)
        yield from _arrow(track, each)
        yield from _waits(track + 1, each)


def _named(what: str, group: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": group, "tid": track, "args": {"name": name}}


def _slice(group: int, track: int, times_ns: tuple[int, int], name: str, more: dict[str, str]) -> Event:
    begin_ns, end_ns = times_ns
    return {
        "ph": "X",
        "name": name,
        "pid": group,
        "tid": track,
        "ts": begin_ns / 1_000,
        "dur": (end_ns - begin_ns) / 1_000,
        "args": more,
    }


def _cpu_slices(timeline: CpuTimeline) -> Iterator[Event]:
    """What ran, each time as one slice, however many events it had."""
    for name, group in groupby(timeline.stretches, key=_ran):
        same = list(group)
        begin_ns = same[0].from_ns
        for before, after in zip(same, [*same[1:], None], strict=True):
            if after is None or after.from_ns != before.to_ns:
                yield _slice(CPUS, timeline.cpu, (begin_ns, before.to_ns), name, {})
                begin_ns = after.from_ns if after else begin_ns


def _ran(stretch: Stretch) -> str:
    if stretch.top:
        return f"{stretch.top.layer.value} {stretch.top.name}"
    if stretch.task is None:
        return "unknown"
    return "idle" if stretch.task.idle else f"{stretch.task.name}/{stretch.task.tid}"


def _waits(track: int, each: TimeBudget) -> Iterator[Event]:
    """A track of the threads that were waited for; none if the thread waited for none."""
    if each.waits:
        yield _named("thread_name", BUDGETS, track, f"activation {each.activation.index} waited for")
    for from_ns, to_ns, threads in each.waits:
        yield _slice(BUDGETS, track, (from_ns, to_ns), ", which waited for ".join(threads), {})


def _arrow(track: int, each: TimeBudget) -> Iterator[Event]:
    """From the longest part of the first cause to the CPU on which it ran."""
    parts = [part for part in each.parts if part.cause == each.first and part.cpu >= 0]
    longest: BudgetPart | None = max(parts, key=lambda part: part.length_ns, default=None)
    if longest is None:
        return
    middle_us = (longest.from_ns + longest.to_ns) / 2_000
    both = {"name": "ran", "cat": "cause", "id": track, "ts": middle_us}
    yield {**both, "ph": "s", "pid": BUDGETS, "tid": track}
    yield {**both, "ph": "f", "bp": "e", "pid": CPUS, "tid": longest.cpu}
