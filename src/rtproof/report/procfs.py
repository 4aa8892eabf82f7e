# SPDX-License-Identifier: Apache-2.0
"""Counts per CPU as /proc/interrupts and /proc/softirqs show them, and what rose between two readings."""

from dataclasses import dataclass
from itertools import takewhile

from rtproof.analysis import systemfiles
from rtproof.record import Moment, Record
from rtproof.report.words import whole_number

WHOLE_MACHINE = -1
"""CPU of a count that is not kept per CPU."""


@dataclass(frozen=True)
class Row:
    """One line: the interrupt's label, its count on each CPU of ``cpus``, and the words behind them."""

    label: str
    counts: dict[int, int]
    words: str


@dataclass(frozen=True)
class Rise:
    """How much one line rose on each CPU during the run."""

    label: str
    per_cpu: dict[int, int]
    words: str

    @property
    def total(self) -> int:
        return sum(self.per_cpu.values())


def per_cpu_counts(text: str) -> dict[str, Row]:
    """Lines by label. The first line names the CPUs; a line with fewer numbers counts for the WHOLE_MACHINE."""
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    cpus = [cpu for name in names if (cpu := whole_number(name.removeprefix("CPU"))) is not None]
    rows = {}
    for line in lines[1:]:
        label, colon, rest = line.partition(":")
        if colon:
            row = _row(label.strip(), rest, cpus)
            rows[row.label] = row
    return rows


def _row(label: str, rest: str, cpus: list[int]) -> Row:
    fields = rest.split()
    numbers = [whole_number(field) for field in fields[: len(cpus)]]
    counts = list(takewhile(lambda number: number is not None, numbers))
    names = cpus if len(counts) == len(cpus) else [WHOLE_MACHINE]
    per_cpu = {cpu: number for cpu, number in zip(names, counts, strict=False) if number is not None}
    return Row(label, per_cpu, " ".join(fields[len(counts) :]))


def rises(record: Record, path: str) -> list[Rise] | None:
    """What rose between start and end, the most first; None where the record lacks one of the two readings."""
    start, end = (systemfiles.text(record, path, moment) for moment in (Moment.START, Moment.END))
    if start is None or end is None:
        return None
    before = per_cpu_counts(start)
    found = [_rise(before.get(label), row) for label, row in per_cpu_counts(end).items()]
    return sorted((rise for rise in found if rise.total > 0), key=lambda rise: (-rise.total, rise.label))


def _rise(before: Row | None, after: Row) -> Rise:
    """A counter of 32 bits may have gone round once."""
    earlier = before.counts if before else {}
    return Rise(after.label, {cpu: (n - earlier.get(cpu, 0)) % 2**32 for cpu, n in after.counts.items()}, after.words)
