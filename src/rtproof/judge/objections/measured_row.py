# SPDX-License-Identifier: Apache-2.0
"""A measured run as a claim."""

from collections.abc import Iterator

import numpy as np

from rtproof.judge.analysis_model import Analysis
from rtproof.judge.checks.case import UNAVAILABLE
from rtproof.judge.objections.result_row import Figures, ResultClaim, RowKind, RowThread, Span, exact_span
from rtproof.record.contents import EndReason, Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.counts import Counts
from rtproof.summary.recorded_facts import fact_number, requested_duration_ns
from rtproof.summary.summary_model import Summary

LOADAVG = "/proc/loadavg"
ONLINE = "/sys/devices/system/cpu/online"
LOAD = "load."
FEWEST = 20
"""Different values that make a lattice: by chance as few have no common step."""


def claim_of(analysis: Analysis, name: str, group: str = "", *, said_idle: bool = False) -> ResultClaim:
    """The run as a row with this name. group: rows with the same one are compared with each other.

    said_idle: whoever wanted the run says that nothing shall disturb it.
    """
    record = analysis.record
    online = recorded_facts.file_line(record, ONLINE)
    return ResultClaim(
        name,
        (*(_figures(summary) for summary in analysis.summaries), *_cycles(analysis)),
        measured=True,
        group=group,
        span=_span(analysis),
        loadavg=_loadavg(record, Moment.END),
        loadavg_before=_loadavg(record, Moment.START),
        said_idle=said_idle and not any(counter.name.startswith(LOAD) for counter in record.counters),
        loads=dict(_loads(record)),
        threads=tuple(_thread(record, summary) for summary in analysis.summaries),
        cpu_count=_cpu_count(record.fact("cpus") or online),
        online_count=_cpu_count(online),
        kernel_lines=tuple(event.text for event in record.events if event.kind == "kernel"),
        doubts=analysis.doubts,
    )


def lattice_ns(counts: Counts) -> int | None:
    """The step of the lattice on which all values lie, to a nanosecond; None if they lie on none coarser than that."""
    if not counts.exact or counts.n.size < FEWEST:
        return None
    gaps = np.diff(counts.lo)
    rough = int(gaps.min())
    steps = np.rint(gaps / rough)
    step = float(gaps.sum() / steps.sum())
    on_it = rough > 1 and bool(np.all(np.abs(gaps - steps * step) <= 1))
    return round(step) if on_it else None


def _figures(summary: Summary) -> Figures:
    observed = summary.observed
    known = observed.count > 0
    return Figures(
        f"thread {summary.series.thread}",
        period_ns=summary.series.period_ns if summary.series.on_grid else None,
        count=summary.obtained,
        min_ns=observed.min if known else None,
        mean_ns=observed.mean,
        max_ns=observed.max if known else None,
        deviation_ns=observed.deviation,
        in_bins=summary.observed_counts.total + summary.lost,
        lattice_ns=lattice_ns(summary.observed_counts),
    )


def _cycles(analysis: Analysis) -> Iterator[Figures]:
    found = analysis.cycles
    if found is not None and found.counted:
        yield Figures(
            "cycles",
            RowKind.LENGTH,
            period_ns=found.period_ns,
            count=found.counted,
            min_ns=found.min_ns,
            max_ns=found.max_ns,
            # In virtual time none is to come: the same run counts the same, so that no bound is missing.
            out_of_band=None if found.deterministic else found.out_of_band,
        )


def _span(analysis: Analysis) -> Span | None:
    """What was asked for where the run had it, else what was measured; off a grid nobody knows how many were due."""
    record, summaries = analysis.record, analysis.summaries
    if not summaries or any(summary.series.external for summary in summaries):
        return None
    asked = requested_duration_ns(record)
    ended = record.end is not None and record.end.reason is EndReason.AS_ASKED
    length = asked if asked and ended else analysis.pooled.span_ns
    return exact_span(length)


def _loadavg(record: Record, moment: Moment) -> tuple[float, ...]:
    """The three averages."""
    words = (recorded_facts.file_text(record, LOADAVG, moment) or "").split()[:3]
    try:
        return tuple(map(float, words))
    except ValueError:
        return ()


def _loads(record: Record) -> Iterator[tuple[str, float | None]]:
    """Work per second of each load between its first and last reading."""
    for counter in record.counters:
        if counter.name.startswith(LOAD):
            seconds = (int(counter.time_ns[-1]) - int(counter.time_ns[0])) / 1e9 if counter.time_ns.size > 1 else 0
            done = int(counter.value[-1]) - int(counter.value[0]) if seconds else 0
            yield counter.name.removeprefix(LOAD), done / seconds if seconds else None


def _thread(record: Record, summary: Summary) -> RowThread:
    thread = summary.series.thread
    faults = [fact_number(record, key, Moment.END, thread) for key in ("minor_faults", "major_faults")]
    bound = summary.series.cpu >= 0
    return RowThread(
        f"thread {thread}",
        policy_asked=record.fact("policy"),
        policy=_known(record.fact("policy", Moment.END, thread)),
        priority_asked=fact_number(record, "priority") if record.fact("policy") in ("fifo", "rr") else None,
        priority=fact_number(record, "priority", Moment.END, thread),
        cpu=fact_number(record, "cpu", Moment.END, thread) if bound else None,
        faults=sum(each for each in faults if each is not None),
    )


def _known(fact: str | None) -> str | None:
    return None if fact is None or fact.startswith(UNAVAILABLE) else fact


def _cpu_count(told: str | None) -> int | None:
    """Of a list such as 0-3,5."""
    words = (told or "").split(",")
    try:
        ends = [list(map(int, word.split("-"))) for word in words]
    except ValueError:
        return None
    return sum(each[-1] - each[0] + 1 for each in ends)
