# SPDX-License-Identifier: Apache-2.0
"""Sections on the evidence: settings asked and in force, loads, interrupts, and how to repeat the run."""

import shlex
from pathlib import PurePath

import numpy as np

from rtproof.core import units
from rtproof.core.phrases import instant, value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import WHOLE_RUN, Counter, EndReason, Moment, Record
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.summary.cpu_counts import WHOLE_MACHINE, CpuCounts, count_rises

EFFECTIVE = ("policy", "priority", "affinity", "cpu", "timer_slack_ns")
INSIDE = (
    *("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "migrations", "io_calls"),
    "cpu_time_ns",
)
MOMENTS = (Moment.START, Moment.DURING, Moment.END)
WORDS = {("samples", "0"): "no limit"}
EVEN_PHASE = ("phase_ns", "-1")
NOT_HERE = ("args", "claims")
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
    rows = tuple((f"thread {thread}", *(_over_time(record, key, thread) for key in EFFECTIVE)) for thread in threads)
    header = ("thread", *(_asked_heading(record, key) for key in EFFECTIVE))
    return Table("Settings in force, per thread (start > end if they changed)", header, rows)


def _asked_heading(record: Record, key: str) -> str:
    asked = record.fact(key)
    return _name(key) if asked is None else f"{_name(key)} (asked: {_shown(key, asked)})"


def _over_time(record: Record, key: str, thread: int) -> str:
    readings = _readings(record, key, thread)
    changes = [reading for at, reading in enumerate(readings) if at == 0 or reading != readings[at - 1]]
    return " > ".join(_shown(key, reading) for reading in changes) or number_format.UNKNOWN


def _readings(record: Record, key: str, thread: int) -> list[str]:
    return [reading for moment in MOMENTS if (reading := record.fact(key, moment, thread)) is not None]


def _inside(record: Record, threads: tuple[int, ...]) -> Table:
    rows = tuple(
        (f"thread {thread}", *(_shown(key, record.fact(key, Moment.END, thread)) for key in INSIDE))
        for thread in threads
    )
    numeric = tuple(range(1, len(INSIDE) + 1))
    return Table("What each thread did inside the measured loop", ("thread", *map(_name, INSIDE)), rows, numeric)


def _run_facts(record: Record) -> list[Table]:
    keys = list(dict.fromkeys(fact.key for fact in record.facts if _belongs_here(fact.thread, fact.key)))
    asked = tuple(
        (_name(key), _asked(record, key, reading)) for key in keys if (reading := record.fact(key)) is not None
    )
    in_force = tuple(
        (_name(key), _over_time(record, key, WHOLE_RUN)) for key in keys if _readings(record, key, WHOLE_RUN)
    )
    tables = (("Asked of the whole run", asked), ("In force during the run", in_force))
    return [Table(caption, ("fact", "value"), rows) for caption, rows in tables if rows]


def _asked(record: Record, key: str, reading: str) -> str:
    return _even_phase(record) if (key, reading) == EVEN_PHASE else _shown(key, reading)


def _even_phase(record: Record) -> str:
    """What became of the due times that the agent was to spread: they stay apart only on one grid."""
    if len({series.thread for series in record.series}) < 2:
        return "even: one thread has nothing to spread"
    if len({series.period_ns for series in record.series}) > 1 or not all(each.on_grid for each in record.series):
        return "even: only the first due times are spread over a period"
    return "even: spread over a period"


def _belongs_here(thread: int, key: str) -> bool:
    return thread == WHOLE_RUN and key not in NOT_HERE and not key.startswith("host.")


def _events(record: Record) -> list[Table]:
    if not record.events:
        return []
    rows = tuple(
        (f"{event.time_ns / number_format.NS_PER_S:,.3f}", _thread(event.thread), event.kind, event.text)
        for event in record.events
    )
    return [Table("What happened during the run", ("at [s]", "thread", "kind", "text"), rows, (0,), row_headers=False)]


def _thread(thread: int) -> str:
    return "whole run" if thread == WHOLE_RUN else f"thread {thread}"


def _name(key: str) -> str:
    return key.removesuffix("_ns").replace("_", " ").replace("cpu", "CPU").replace("io calls", "reads and writes")


def _shown(key: str, reading: str | None) -> str:
    """A reading as the report prints it: times with a unit, counts in groups of digits, all else unchanged."""
    if reading is None:
        return number_format.UNKNOWN
    if (key, reading) in WORDS:
        return WORDS[key, reading]
    number = units.whole_number(reading)
    if number is None:
        return reading
    if key in MEASURED_TIMES:
        return value(number)
    return units.format_duration(number) if key.endswith("_ns") else number_format.count_text(number)


SHORTEST_S = 0.5
"""The shortest time that gives a rate. The reading at the end may come only a moment after the one before."""

NONE = "rtproof ran no load."


def loads_section(analysis: Analysis) -> list[Block]:
    """How much work the loads did, and what temperature and frequency did meanwhile."""
    counters = [counter for counter in analysis.record.counters if counter.time_ns.size]
    growing = [counter for counter in counters if counter.grows and counter.name.startswith("load.")]
    gauges = [counter for counter in counters if not counter.grows]
    blocks: list[Block] = [] if any(counter.name.startswith("load.") for counter in growing) else [Text((NONE,))]
    if growing:
        header = ("counter", "unit", "work done", "per second", "slowest second", "quickest second")
        caption = "Work of the loads"
        blocks.append(Table(caption, header, tuple(map(_work, growing)), (2, 3, 4, 5)))
    blocks += [Text((note,)) for note in _notes(analysis, growing)]
    if gauges:
        header = ("gauge", "unit", "readings", "smallest", "mean", "largest")
        blocks.append(Table("Readings, one a second", header, tuple(map(_load_readings, gauges)), (2, 3, 4, 5)))
    return blocks


def _notes(analysis: Analysis, counters: list[Counter]) -> list[str]:
    """Sentences of the loads on how they run on this machine and what they lack there."""
    keys = [(counter.name, f"{counter.name}.{what}") for counter in counters for what in ("note", "lack")]
    said = [(name, analysis.record.fact(key, Moment.START)) for name, key in keys]
    return [f"{name}: {text}." for name, text in said if text]


def _work(counter: Counter) -> tuple[str, ...]:
    """The row of a load: its work between the readings and its rates. With one reading, both are unknown."""
    if counter.time_ns.size < 2:
        return counter.name, counter.unit, *[number_format.UNKNOWN] * 4
    done = np.diff(counter.value)
    seconds = np.diff(counter.time_ns) / number_format.NS_PER_S
    whole = seconds >= SHORTEST_S
    rates = done[whole] / seconds[whole]
    if not rates.size:
        return counter.name, counter.unit, number_format.count_text(int(done.sum())), *[number_format.UNKNOWN] * 3
    shown = (done.sum() / seconds.sum(), rates.min(), rates.max())
    return (
        counter.name,
        counter.unit,
        number_format.count_text(int(done.sum())),
        *(number_format.number_text(float(each)) for each in shown),
    )


def _load_readings(counter: Counter) -> tuple[str, ...]:
    values = counter.value
    shown = (float(values.min()), float(values.mean()), float(values.max()))
    return counter.name, counter.unit, number_format.count_text(values.size), *map(number_format.number_text, shown)


REASONS = {
    EndReason.AS_ASKED: "as asked",
    EndReason.INTERRUPTED: "interrupted by the user",
    EndReason.NO_SPACE: "no space left",
    EndReason.HOST_GONE: "the host went away",
    EndReason.LOAD_DIED: "a load died",
    EndReason.GUARD: "ended by the agent's guard",
    EndReason.ERROR: "an error",
}


def repeat_section(analysis: Analysis) -> list[Block]:
    """The record behind the report: whether it is complete, how to read it, and the command that measures again."""
    record = analysis.record
    return [Table("The record", ("what", "value"), tuple(_record(record))), *_repeat(record), *_read(record)]


def _record(record: Record) -> list[tuple[str, str]]:
    begin = record.begin
    return [
        ("file", f"{PurePath(record.path).name or 'none'}, {number_format.count_text(record.size)} bytes"),
        ("run", begin.run_id.hex()),
        ("measuring began", _began(begin.origin_realtime_ns)),
        ("agent", f"version {begin.agent_version}" if begin.agent_version else "none: another tool measured"),
        ("ended", _ended(record)),
        *(("damage", damage.sentence) for damage in record.damage),
    ]


def _began(origin_ns: int) -> str:
    return f"{instant(origin_ns, 0)} UTC by the target's clock" if origin_ns else "not told"


def _ended(record: Record) -> str:
    if record.end is None:
        return "cut off; everything before the cut was used"
    text = f" ({record.end.text})" if record.end.text else ""
    return (
        f"{REASONS[record.end.reason]}{text}, {record.end.time_ns / number_format.NS_PER_S:,.3f} s "
        "after measuring began"
    )


def _repeat(record: Record) -> list[Text]:
    command, args = record.fact("host.command"), record.fact("args")
    blocks = []
    if command:
        blocks += [Text(("To repeat the run:",)), Text((command,), "code")]
    if args:
        blocks += [Text(("The agent's command line on the target:",)), Text((f"rtproof-agent {args}",), "code")]
    return blocks


def _read(record: Record) -> list[Text]:
    run = shlex.quote(record.path) if record.path else "RUN"
    commands = (f"rtproof show {run}", f"rtproof report {run}", f"rtproof export {run} --help")
    return [Text(("To read the record again:",)), Text(commands, "code")]


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
    header = ("name", "during the run", "per second", "on measured CPUs", "what")
    rows = tuple(_row(analysis, rise) for rise in rises[:SHOWN])
    left_out = f", the {SHOWN} most frequent of {len(rises)}" if len(rises) > SHOWN else ""
    return Table(f"{what} that rose between start and end ({path}){left_out}", header, rows, (1, 2, 3))


def _row(analysis: Analysis, rise: CpuCounts) -> tuple[str, ...]:
    seconds = analysis.pooled.span_ns / number_format.NS_PER_S
    rate = number_format.number_text(rise.total / seconds, 3) if seconds else number_format.UNKNOWN
    return rise.label, number_format.count_text(rise.total), rate, _on_measured(analysis, rise), rise.words


def _on_measured(analysis: Analysis, rise: CpuCounts) -> str:
    """The rise on the measured CPUs.

    It is unknown if the kernel does not count per CPU, or if the measuring threads were not bound to CPUs.
    """
    bound = {summary.series.cpu for summary in analysis.summaries}
    if WHOLE_MACHINE in rise.per_cpu or min(bound, default=-1) < 0:
        return number_format.UNKNOWN
    return number_format.count_text(sum(n for cpu, n in rise.per_cpu.items() if cpu in bound))
