# SPDX-License-Identifier: Apache-2.0
"""How often each interrupt and softirq came during a run, by CPU: what the target's files of both ends say."""

from dataclasses import dataclass
from itertools import takewhile

from rtproof.core import units
from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts

WHOLE_MACHINE = -1
"""Stands for the CPU of a count that the kernel does not keep for each CPU."""


@dataclass(frozen=True)
class CpuCounts:
    """The counts of a line of /proc/interrupts or /proc/softirqs by CPU, or how much they rose during the run.

    words: what stands behind the counts.
    """

    label: str
    per_cpu: dict[int, int]
    words: str

    @property
    def total(self) -> int:
        return sum(self.per_cpu.values())


def per_cpu_counts(text: str) -> dict[str, CpuCounts]:
    """The lines of the file by label.

    The first line names the CPUs. A line with fewer numbers than CPUs has one count for the WHOLE_MACHINE.
    """
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    cpus = [cpu for name in names if (cpu := units.whole_number(name.removeprefix("CPU"))) is not None]
    rows = {}
    for line in lines[1:]:
        label, colon, rest = line.partition(":")
        if colon:
            row = _count_row(label.strip(), rest, cpus)
            rows[row.label] = row
    return rows


def _count_row(label: str, rest: str, cpus: list[int]) -> CpuCounts:
    fields = rest.split()
    numbers = [units.whole_number(field) for field in fields[: len(cpus)]]
    counts = list(takewhile(lambda number: number is not None, numbers))
    names = cpus if len(counts) == len(cpus) else [WHOLE_MACHINE]
    per_cpu = {cpu: number for cpu, number in zip(names, counts, strict=False) if number is not None}
    return CpuCounts(label, per_cpu, " ".join(fields[len(counts) :]))


def count_rises(record: Record, path: str) -> list[CpuCounts] | None:
    """The lines that rose between start and end, largest rise first; None if the record lacks one of the readings."""
    start, end = (recorded_facts.file_text(record, path, moment) for moment in (Moment.START, Moment.END))
    if start is None or end is None:
        return None
    before = per_cpu_counts(start)
    found = [_rise(before.get(label), row) for label, row in per_cpu_counts(end).items()]
    return sorted((rise for rise in found if rise.total > 0), key=lambda rise: (-rise.total, rise.label))


def _rise(before: CpuCounts | None, after: CpuCounts) -> CpuCounts:
    """The rise of a line. It allows for a counter of 32 bits that overflowed once."""
    earlier = before.per_cpu if before else {}
    return CpuCounts(
        after.label, {cpu: (n - earlier.get(cpu, 0)) % 2**32 for cpu, n in after.per_cpu.items()}, after.words
    )
