# SPDX-License-Identifier: Apache-2.0
"""Sections on the evidence: settings asked and in force, loads, interrupts, and how to repeat the run."""

import shlex
from dataclasses import replace
from itertools import groupby
from pathlib import PurePath

import numpy as np

from rtproof.core import units
from rtproof.core.phrases import instant, value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import WHOLE_RUN, Counter, Moment, Record
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import NS_PER_S, UNKNOWN, count_text, number_text, table_of
from rtproof.report.section_list import NOT_EVIDENCE
from rtproof.summary.recorded_facts import WHOLE_MACHINE, CpuCounts, count_rises

EFFECTIVE = ("policy", "priority", "affinity", "cpu", "timer_slack_ns")
INSIDE = (
    *("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "migrations", "io_calls"),
    "cpu_time_ns",
)
MOMENTS = (Moment.START, Moment.DURING, Moment.END)
WORDS = {("samples", "0"): "no limit", ("phase_ns", "-1"): "even"}
MEASURED_TIMES = ("cpu_time_ns", "clock_read_ns", "timer_slack_ns", "link_cpu_ns")
"""Times that are rounded. All other times are settings, so the report shows them exactly as they were given."""


def evidence_section(analysis: Analysis) -> list[Block]:
    """What was asked of the run and of each thread, what was in force, and what happened inside the loop."""
    record = analysis.record
    threads = analysis.pooled.threads
    blocks: list[Block] = []
    if any(fact.thread != WHOLE_RUN for fact in record.facts):
        blocks += [_effective(record, threads), _inside(record, threads)]
    return [*blocks, *_run_facts(record), *_events(record)]


def _effective(record: Record, threads: tuple[int, ...]) -> Table:
    asked = [(key, record.fact(key)) for key in EFFECTIVE]
    headings = [f"{_name(key)} (asked: {_shown(key, text)})" if text else _name(key) for key, text in asked]
    rows = [(f"thread {thread}", *(_over_time(record, key, thread) for key in EFFECTIVE)) for thread in threads]
    caption = "Settings in force, per thread (start > end if they changed)"
    return Table(caption, ("thread", *headings), tuple(rows))


def _over_time(record: Record, key: str, thread: int) -> str:
    """The readings at start, during and end that differ from the one before."""
    readings = [reading for moment in MOMENTS if (reading := record.fact(key, moment, thread)) is not None]
    return " > ".join(_shown(key, reading) for reading, _ in groupby(readings)) or UNKNOWN


def _inside(record: Record, threads: tuple[int, ...]) -> Table:
    rows = tuple(
        (f"thread {thread}", *(_shown(key, record.fact(key, Moment.END, thread)) for key in INSIDE))
        for thread in threads
    )
    header = ("thread", *map(_name, INSIDE))
    return Table("What each thread did inside the measured loop", header, rows, tuple(range(1, len(header))))


def _run_facts(record: Record) -> list[Table]:
    own = [fact.key for fact in record.facts if fact.thread == WHOLE_RUN and not fact.key.startswith("host.")]
    keys = [key for key in dict.fromkeys(own) if key not in NOT_EVIDENCE]
    asked = [(_name(key), _shown(key, reading)) for key in keys if (reading := record.fact(key)) is not None]
    readings = [(_name(key), _over_time(record, key, WHOLE_RUN)) for key in keys]
    in_force = [(name, shown) for name, shown in readings if shown != UNKNOWN]
    tables = (("Asked of the whole run", asked), ("In force during the run", in_force))
    return [Table(caption, ("fact", "value"), tuple(rows)) for caption, rows in tables if rows]


def _events(record: Record) -> list[Table]:
    told = table_of(
        "What happened during the run",
        record.events,
        ("at [s]", lambda event: f"{event.time_ns / NS_PER_S:,.3f}"),
        ("thread", lambda event: "whole run" if event.thread == WHOLE_RUN else f"thread {event.thread}"),
        ("kind", lambda event: event.kind),
        ("text", lambda event: event.text),
        numeric=(0,),
    )
    return [replace(told, row_headers=False)] if record.events else []


def _name(key: str) -> str:
    return key.removesuffix("_ns").replace("_", " ").replace("cpu", "CPU").replace("io calls", "reads and writes")


def _shown(key: str, reading: str | None) -> str:
    """A reading as the report prints it: times with a unit, counts in groups of digits, all else unchanged."""
    if reading is None:
        return UNKNOWN
    if (key, reading) in WORDS:
        return WORDS[key, reading]
    number = units.whole_number(reading)
    if number is None:
        return reading
    if key in MEASURED_TIMES:
        return value(number)
    return units.format_duration(number) if key.endswith("_ns") else count_text(number)


SHORTEST_S = 0.5
"""The shortest time that gives a rate. The reading at the end may come only a moment after the one before."""


def loads_section(analysis: Analysis) -> list[Block]:
    """How much work the loads did, and what temperature and frequency did meanwhile."""
    counters = [counter for counter in analysis.record.counters if counter.time_ns.size]
    growing = [counter for counter in counters if counter.grows and counter.name.startswith("load.")]
    gauges = [counter for counter in counters if not counter.grows]
    blocks: list[Block] = [] if growing else [Text(("rtproof ran no load.",))]
    if growing:
        header = ("counter", "unit", "work done", "per second", "slowest second", "quickest second")
        caption = "Work of the loads"
        blocks.append(Table(caption, header, tuple(map(_work, growing)), (2, 3, 4, 5)))
    for counter in growing:  # How a load runs on this machine, and what it lacks there.
        said = [analysis.record.fact(f"{counter.name}.{what}", Moment.START) for what in ("note", "lack")]
        blocks += [Text((f"{counter.name}: {text}.",)) for text in said if text]
    if gauges:
        told = table_of(
            "Readings, one a second",
            gauges,
            ("gauge", lambda each: each.name),
            ("unit", lambda each: each.unit),
            ("readings", lambda each: each.value.size),
            ("smallest", lambda each: number_text(float(each.value.min()))),
            ("mean", lambda each: number_text(float(each.value.mean()))),
            ("largest", lambda each: number_text(float(each.value.max()))),
            words=2,
        )
        blocks.append(told)
    return blocks


def _work(counter: Counter) -> tuple[str, ...]:
    """The row of a load: its work between the readings and its rates. With one reading, both are unknown."""
    done, seconds = np.diff(counter.value), np.diff(counter.time_ns) / NS_PER_S
    rates = done[seconds >= SHORTEST_S] / seconds[seconds >= SHORTEST_S]
    shown = (done.sum() / seconds.sum(), rates.min(), rates.max()) if rates.size else ()
    work = count_text(int(done.sum()) if done.size else None)
    speeds = [number_text(float(each)) for each in shown] or [UNKNOWN] * 3
    return counter.name, counter.unit, work, *speeds


def repeat_section(analysis: Analysis) -> list[Block]:
    """The record behind the report: whether it is complete, how to read it, and the command that measures again."""
    record, begin = analysis.record, analysis.record.begin
    began = f"{instant(begin.origin_realtime_ns, 0)} UTC by the target's clock"
    ended = "cut off; everything before the cut was used"
    if end := record.end:
        why = end.reason.name.lower().replace("_", " ") + (f" ({end.text})" if end.text else "")
        ended = f"{why}, {end.time_ns / NS_PER_S:,.3f} s after measuring began"
    rows = (
        ("file", f"{PurePath(record.path).name or 'none'}, {record.size:,} bytes"),
        ("run", begin.run_id.hex()),
        ("measuring began", began if begin.origin_realtime_ns else "not told"),
        ("agent", f"version {begin.agent_version}" if begin.agent_version else "none: another tool measured"),
        ("ended", ended),
        *(("damage", damage.sentence) for damage in record.damage),
    )
    command, args = record.fact("host.command"), record.fact("args")
    run = shlex.quote(record.path) if record.path else "RUN"
    commands = (
        ("To repeat the run:", [command] if command else []),
        ("The agent's command line on the target:", [f"rtproof-agent {args}"] if args else []),
        ("To read the record again:", [f"rtproof show {run}", f"rtproof report {run}", f"rtproof export {run} --help"]),
    )
    told = [text for words, lines in commands if lines for text in (Text((words,)), Text(tuple(lines), "code"))]
    return [Table("The record", ("what", "value"), rows), *told]


SHOWN = 15
FILES = {"/proc/interrupts": "Interrupts", "/proc/softirqs": "Softirqs"}


def interrupts_section(analysis: Analysis) -> list[Block]:
    """Which interrupts and softirqs came during the run, and how many of them on the measured CPUs."""
    return [_block(analysis, path, what) for path, what in FILES.items()]


def _block(analysis: Analysis, path: str, what: str) -> Block:
    rises = count_rises(analysis.record, path)
    if rises is None:
        return Text((f"{what}: {path} was not recorded at both start and end.",))
    if not rises:
        return Text((f"{what}: none rose between start and end.",))
    left_out = f", the {SHOWN} most frequent of {len(rises)}" if len(rises) > SHOWN else ""
    seconds = analysis.pooled.span_ns / NS_PER_S
    bound = {summary.series.cpu for summary in analysis.summaries}

    def on_measured(rise: CpuCounts) -> int | None:
        """Unknown if the kernel does not count per CPU, or if the measuring threads were not bound to CPUs."""
        unknown = WHOLE_MACHINE in rise.per_cpu or min(bound, default=-1) < 0
        return None if unknown else sum(n for cpu, n in rise.per_cpu.items() if cpu in bound)

    return table_of(
        f"{what} that rose between start and end ({path}){left_out}",
        rises[:SHOWN],
        ("name", lambda rise: rise.label),
        ("during the run", lambda rise: rise.total),
        ("per second", lambda rise: number_text(rise.total / seconds, 3) if seconds else UNKNOWN),
        ("on measured CPUs", on_measured),
        ("what", lambda rise: rise.words),
        numeric=(1, 2, 3),
    )
