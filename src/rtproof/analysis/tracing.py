# SPDX-License-Identifier: Apache-2.0
"""What the kernel's trace of a run holds: events by name, what was lost, and the time for which it has everything."""

from dataclasses import dataclass
from math import ceil

from rtproof.analysis import tracefile
from rtproof.record import Record

RECORDS_CLOCK = "mono"
"""The trace's name of the clock that the record uses."""


@dataclass(frozen=True)
class TraceSummary:
    """Numbers of a trace. Times count from the origin of the record, and are None where the clocks differ.

    missing: patterns of events that the kernel does not have. entries: left in the buffers; overrun: overwritten by
    later ones; dropped: not written at all. on_ns, off_ns: when recording began and ended. oldest_ns, newest_ns: of the
    events that are left. whole_from_ns: from here on no CPU's buffer lacks anything that was overwritten. enough_kib:
    of a CPU, about what would have held all that the busiest one wrote; None if nothing was overwritten.
    """

    clock: str
    kinds: dict[str, int]
    missing: tuple[str, ...]
    entries: int
    overrun: int
    dropped: int
    on_ns: int | None
    off_ns: int | None
    oldest_ns: int | None
    newest_ns: int | None
    whole_from_ns: int | None
    enough_kib: int | None


def gone(record: Record) -> tuple[int, int]:
    """How many events were overwritten by later ones, and how many were not written at all; cheap to ask for."""
    stats = {cpu: tracefile.stats(record, cpu) for cpu in tracefile.cpus(record)}
    return _total(stats, "overrun"), _total(stats, "dropped events") + _total(stats, "commit overrun")


def summary(record: Record) -> TraceSummary:
    """The numbers of a record that has a trace."""
    lines = tracefile.lines(record)
    stats = {cpu: tracefile.stats(record, cpu) for cpu in tracefile.cpus(record)}
    overrun, dropped = gone(record)
    clock = tracefile.clock(record)
    in_record = [line for line in lines if clock == RECORDS_CLOCK]
    times_ns = [line.time_ns - record.begin.origin_monotonic_ns for line in in_record]
    return TraceSummary(
        clock=clock,
        kinds=tracefile.kinds(lines),
        missing=tuple(tracefile.about(record).get("missing", "").split()),
        entries=_total(stats, "entries"),
        overrun=overrun,
        dropped=dropped,
        on_ns=_switched(record, "loop=begins"),
        off_ns=_switched(record, "loop=ends"),
        oldest_ns=min(times_ns, default=None),
        newest_ns=max(times_ns, default=None),
        whole_from_ns=_whole_from(record, in_record, stats),
        enough_kib=_enough(record, stats),
    )


def _enough(record: Record, stats: dict[int, dict[str, str]]) -> int | None:
    """As many events as there were take as many times more room than those that are left."""
    told = tracefile.about(record).get("buffer_kib", "")
    counted = [(_total({cpu: of}, "entries"), _total({cpu: of}, "overrun")) for cpu, of in stats.items()]
    parts = [(left + gone) / left for left, gone in counted if left and gone]
    return ceil(int(told) * max(parts)) if parts and told.isdecimal() else None


def _total(stats: dict[int, dict[str, str]], key: str) -> int:
    numbers = (values.get(key, "") for values in stats.values())
    return sum(int(number) for number in numbers if number.isdecimal())


def _switched(record: Record, what: str) -> int | None:
    return next((event.time_ns for event in record.events if event.text.startswith(f"{what};")), None)


def _whole_from(record: Record, lines: list[tracefile.TraceLine], stats: dict[int, dict[str, str]]) -> int | None:
    """When the oldest event of the CPU happened that forgot most; None if no CPU forgot any."""
    forgetful = {cpu for cpu, values in stats.items() if values.get("overrun", "0") != "0"}
    oldest: dict[int, int] = {}
    for line in lines:
        if line.cpu in forgetful:
            oldest.setdefault(line.cpu, line.time_ns)
    return max(oldest.values()) - record.begin.origin_monotonic_ns if oldest else None
