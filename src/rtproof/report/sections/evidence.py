# SPDX-License-Identifier: Apache-2.0
"""Evidence: what was asked of the run and of each thread, what was in force, and what happened inside the loop."""

from rtproof import units
from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import value
from rtproof.record import WHOLE_RUN, Moment, Record
from rtproof.report import figures
from rtproof.report.blocks import Block, Table
from rtproof.report.words import whole_number

EFFECTIVE = ("policy", "priority", "affinity", "cpu", "timer_slack_ns")
INSIDE = (
    *("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "migrations", "io_calls"),
    "cpu_time_ns",
)
MOMENTS = (Moment.START, Moment.DURING, Moment.END)
WORDS = {("phase_ns", "-1"): "even: spread over a period", ("samples", "0"): "no limit"}
NOT_HERE = ("args",)
MEASURED_TIMES = ("cpu_time_ns", "clock_read_ns", "timer_slack_ns")
"""Shown to a few digits; all other times were given by somebody and are shown as exactly as they were given."""


def render(analysis: Analysis) -> list[Block]:
    record = analysis.record
    threads = analysis.pooled.threads
    blocks: list[Block] = []
    if any(fact.thread != WHOLE_RUN for fact in record.facts):
        blocks += [_effective(record, threads), _inside(record, threads)]
    return [*blocks, *_run_facts(record), *_events(record)]


def _effective(record: Record, threads: tuple[int, ...]) -> Table:
    rows = tuple((f"thread {thread}", *(_over_time(record, key, thread) for key in EFFECTIVE)) for thread in threads)
    header = ("thread", *(_asked_heading(record, key) for key in EFFECTIVE))
    return Table("What each thread really ran as; a change is shown as start > end", header, rows)


def _asked_heading(record: Record, key: str) -> str:
    asked = record.fact(key)
    return _name(key) if asked is None else f"{_name(key)} (asked: {_shown(key, asked)})"


def _over_time(record: Record, key: str, thread: int) -> str:
    readings = _readings(record, key, thread)
    changes = [reading for at, reading in enumerate(readings) if at == 0 or reading != readings[at - 1]]
    return " > ".join(_shown(key, reading) for reading in changes) or figures.UNKNOWN


def _readings(record: Record, key: str, thread: int) -> list[str]:
    return [reading for moment in MOMENTS if (reading := record.fact(key, moment, thread)) is not None]


def _inside(record: Record, threads: tuple[int, ...]) -> Table:
    rows = tuple(
        (f"thread {thread}", *(_shown(key, record.fact(key, Moment.END, thread)) for key in INSIDE))
        for thread in threads
    )
    numeric = tuple(range(1, len(INSIDE) + 1))
    return Table("Counted inside the measured loop", ("thread", *map(_name, INSIDE)), rows, numeric)


def _run_facts(record: Record) -> list[Table]:
    keys = list(dict.fromkeys(fact.key for fact in record.facts if _belongs_here(fact.thread, fact.key)))
    asked = tuple((_name(key), _shown(key, record.fact(key))) for key in keys if record.fact(key) is not None)
    in_force = tuple(
        (_name(key), _over_time(record, key, WHOLE_RUN)) for key in keys if _readings(record, key, WHOLE_RUN)
    )
    tables = (("Asked of the whole run", asked), ("In force during the run", in_force))
    return [Table(caption, ("fact", "value"), rows) for caption, rows in tables if rows]


def _belongs_here(thread: int, key: str) -> bool:
    return thread == WHOLE_RUN and key not in NOT_HERE and not key.startswith("host.")


def _events(record: Record) -> list[Table]:
    if not record.events:
        return []
    rows = tuple(
        (f"{event.time_ns / figures.NS_PER_S:,.3f}", _thread(event.thread), event.kind, event.text)
        for event in record.events
    )
    return [Table("What happened during the run", ("at [s]", "thread", "kind", "text"), rows, (0,), row_headers=False)]


def _thread(thread: int) -> str:
    return "whole run" if thread == WHOLE_RUN else f"thread {thread}"


def _name(key: str) -> str:
    return key.removesuffix("_ns").replace("_", " ").replace("cpu", "CPU").replace("io calls", "reads and writes")


def _shown(key: str, reading: str | None) -> str:
    """Times with their unit, counts in groups; everything else as the target said it."""
    if reading is None:
        return figures.UNKNOWN
    if (key, reading) in WORDS:
        return WORDS[key, reading]
    number = whole_number(reading)
    if number is None:
        return reading
    if key in MEASURED_TIMES:
        return value(number)
    return units.format_duration(number) if key.endswith("_ns") else figures.count(number)
