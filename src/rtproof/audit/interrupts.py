# SPDX-License-Identifier: Apache-2.0
"""The interrupts of the audited system: each by its number, its actions, and the CPUs that serve it."""

import re
from dataclasses import dataclass

from rtproof.audit.facts import Facts, Reading, State, parse_cpu_list, parse_cpu_mask
from rtproof.audit.readings import cpu_words
from rtproof.audit.system_threads import YES, application_cpus
from rtproof.core.units import format_cpus, whole_number
from rtproof.record.contents import Moment

TABLE, SOFTIRQS = "/proc/interrupts", "/proc/softirqs"
WANTED, EFFECTIVE = "/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list"
_PER_CPU = re.compile(
    r"arch_timer|arch_mem_timer|(kvm|vgic|kvm guest)\b.*|arm-pmu|riscv-(timer|pmu).*|sbi-timer|local_timer|twd"
    r"|mct_tick\d+|IPI.*|ipi.*|xen-percpu.*|timer\d+|cpu-timer"
)
"""Actions of interrupts of which each CPU has one of its own."""
_MANAGED = re.compile(
    r"nvme\d+q[1-9]\d*|virtio\d+-(req|requests)\.\d+|megasas\d*-msix\d+|mpt\dsas\d+-msix\d+|hisi_sas.*cq.*"
)
"""Actions of drivers that let the kernel spread their interrupts over all CPUs."""
_NO_ACTION = re.compile(r"\S*-(edge|level|fasteoi)|Edge|Level|\d+|None")


@dataclass(frozen=True)
class Interrupt:
    """An interrupt. wanted: the CPUs that may serve it. serving: those that do, as far as the kernel tells.

    Both are None if they are not known. Old kernels, and some chips, only tell which CPUs may serve it. per_cpu: each
    CPU has its own, so that nobody can move it. managed: the kernel alone places it. reading: what tells serving.
    """

    number: int
    actions: tuple[str, ...]
    wanted: frozenset[int] | None
    serving: frozenset[int] | None
    per_cpu: bool
    managed: bool
    reading: Reading

    @property
    def label(self) -> str:
        return f"{self.number} ({', '.join(self.actions) or 'no name'})"

    def is_bound_within(self, cpus: frozenset[int]) -> bool:
        """Whether somebody bound it to CPUs, as one does with the interrupt of the application's device."""
        return bool(self.wanted) and (self.wanted or frozenset()) <= cpus


def read_interrupts(facts: Facts) -> tuple[tuple[Interrupt, ...], tuple[Reading, ...]]:
    """The interrupts that have a handler, in the order of their numbers; and what was read, or why nothing was."""
    lists, masks = (_by_number(facts, f"/proc/irq/*/smp_affinity{kind}") for kind in ("_list", ""))
    effective, details = (_by_number(facts, pattern) for pattern in (EFFECTIVE, "/sys/kernel/debug/irq/irqs/*"))
    actions = _actions(facts)
    numbers = sorted(lists.keys() | masks.keys())
    if not numbers:
        return (), facts.match(WANTED)
    found, read = [], []
    for number in numbers:
        listed, masked, told = lists.get(number), masks.get(number), effective.get(number)
        read.append(told if told and told.here else listed or masks[number])
        # The kernel has the list since 2.6.38, and the mask always.
        wanted = parse_cpu_mask(masked.word) if masked and masked.here else None
        wanted = parse_cpu_list(listed.word) if listed and listed.here else wanted
        serving = wanted
        if told and not told.absent:
            cpus = parse_cpu_list(told.word) if told.here else None
            serving = wanted if cpus is not None and not cpus else cpus
        if handlers := actions.get(number, ()) if actions is not None else ("",):
            own = tuple(filter(None, handlers))
            flags = details[number].text if number in details else ""
            per_cpu = "IRQD_PER_CPU" in flags or (bool(own) and all(map(_PER_CPU.fullmatch, own)))
            managed = "IRQD_AFFINITY_MANAGED" in flags or (not flags and any(map(_MANAGED.fullmatch, own)))
            found.append(Interrupt(number, own, wanted, serving, per_cpu, managed, read[-1]))
    return tuple(found), tuple(read)


def names_of_handlers(facts: Facts) -> Reading:
    """One of the files with the names of handlers."""
    files = facts.match("/sys/kernel/irq/*/actions")
    return next((reading for reading in files if reading.here), facts.read(TABLE))


def left_out(facts: Facts) -> tuple[Reading, ...]:
    """Why there may be more interrupts than were read; empty if all were read."""
    patterns = (
        reading for pattern in (WANTED, EFFECTIVE) for reading in facts.match(pattern) if reading.path == pattern
    )
    return tuple(reading for reading in patterns if reading.state is State.UNREADABLE)


def _by_number(facts: Facts, pattern: str) -> dict[int, Reading]:
    """The files of a pattern by the number of the interrupt in its path."""
    found = {}
    for reading in facts.match(pattern):
        number = re.search(r"/(?:irq|irqs)/(\d{1,6})(?:/|$)", reading.path)
        if number and reading.path != pattern:
            found[int(number[1])] = reading
    return found


def _actions(facts: Facts) -> dict[int, tuple[str, ...]] | None:
    """The names of the handlers of each interrupt that has any; None if nothing tells."""
    files = _by_number(facts, "/sys/kernel/irq/*/actions")
    if any(reading.here for reading in files.values()):
        named = {number: tuple(filter(None, reading.word.split(","))) for number, reading in files.items()}
        return {number: names for number, names in named.items() if names}
    table = read_table(facts.read(TABLE))
    return None if table is None else table[1]


Counts = dict[str, dict[int, int]]
"""Of a table, by the row's name and CPU."""


def read_table(reading: Reading) -> tuple[Counts, dict[int, tuple[str, ...]]] | None:
    """The counts of /proc/interrupts or /proc/softirqs, and the handlers of numbered rows; None if it is none."""
    lines = reading.text.splitlines() if reading.here else []
    cpus = re.findall(r"CPU(\d{1,5})", lines[0]) if lines else []
    if not cpus:
        return None
    counts: Counts = {}
    actions: dict[int, tuple[str, ...]] = {}
    for line in lines[1:]:
        name, colon, rest = line.strip().partition(":")
        if not colon:
            continue
        words = rest.split(maxsplit=len(cpus))
        numbers = [whole_number(word) for word in words[: len(cpus)]]
        counts[name] = {int(cpu): number for cpu, number in zip(cpus, numbers, strict=False) if number is not None}
        number = whole_number(name)
        if number is not None and len(words) > len(cpus):
            names = re.split(r"\s{2,}", words[-1].strip())[-1]
            if not _NO_ACTION.fullmatch(names):
                actions[number] = tuple(names.split(", "))
    return counts, actions


def counted(facts: Facts, path: str) -> Counts | Reading:
    """How much each row of a table grew on each CPU between the two looks; or the reading that is missing."""
    tables = []
    for moment in (Moment.START, Moment.END):
        reading = facts.read(path, moment)
        table = read_table(reading)
        if table is None:
            return reading
        tables.append(table[0])
    start, end = tables
    return {
        name: {cpu: number - start.get(name, {}).get(cpu, 0) for cpu, number in row.items()}
        for name, row in end.items()
    }


NO_HANDLER = "no interrupt has a handler, as far as was read, and no system is like that"


def interrupt_rows(facts: Facts) -> tuple[Reading, ...]:
    """The interrupts with a handler as rows of a table; the rows of none at all are what was read in place of them."""
    interrupts, read = read_interrupts(facts)
    if not any(one.here for one in read):
        return read
    own = application_cpus(facts)
    rows = []
    for one in interrupts:
        lists = {"cpus": one.serving, "wanted": one.wanted}
        flags = {"per-cpu": one.per_cpu, "managed": one.managed, "own": one.is_bound_within(own)}
        fields = {
            "irq": str(one.number),
            "label": one.label,
            "served": f"{one.label} on {cpu_words(one.serving or ())}",
            "handlers": str(len(one.actions)),
            **{name: format_cpus(cpus) for name, cpus in lists.items() if cpus is not None},
            **{name: YES[flag] for name, flag in flags.items()},
        }
        rows.append(Reading(one.reading.path, State.HERE, one.reading.word or one.label, fields=fields))
    if not rows:
        return (Reading(names_of_handlers(facts).path, State.UNREADABLE, "", NO_HANDLER),)
    return (*rows, *left_out(facts))
