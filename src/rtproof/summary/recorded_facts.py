# SPDX-License-Identifier: Apache-2.0
"""What a record says besides latencies: options, files of the target, counts, and whether its time is real."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from errno import EISDIR, ENOENT
from fractions import Fraction
from itertools import takewhile

from rtproof.core.errors import UserError
from rtproof.core.units import LONGEST_NS, UNITS_NS, parse_cpus, whole_number
from rtproof.record.contents import WHOLE_RUN, Event, Moment, Record, SystemFile

_TIME = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([a-z]+)")


def fact_number(record: Record, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> int | None:
    """A fact that is a whole number; None if the record lacks it, or holds a reason why it could not be read."""
    return signed_number(record.fact(key, moment, thread))


def signed_number(text: str | None) -> int | None:
    """The whole number in a text, which may be negative; None if it has none."""
    digits = (text or "").removeprefix("-")
    number = whole_number(digits)
    return -number if number and digits != text else number


def agent_time_ns(text: str | None) -> int | None:
    """The nanoseconds of a time in one of the forms that the agent accepts; None if the text is no time."""
    match = _TIME.fullmatch(text or "")
    unit = UNITS_NS.get(match[2].replace("day", "d")) if match else None
    return int(Fraction(match[1]) * unit) if match and unit else None


def probe_options(record: Record) -> dict[str, str]:
    """The options of the probe, by name, as the user gave them."""
    pairs = (record.fact("probe_options") or "").split(",")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def requested_duration_ns(record: Record) -> int | None:
    """How long the run was requested to be, in ns; None if a number of samples was to end it, or nothing."""
    return fact_number(record, "duration_ns") or None


def requested_limits_ns(record: Record) -> tuple[int, ...]:
    """The limits in ns that the agent got before the run, in order and each once."""
    found = map(whole_number, (record.fact("limits_ns") or "").split(","))
    return tuple(dict.fromkeys(limit for limit in found if limit and limit <= LONGEST_NS))


REQUESTS = "requests"
"""The unit of a load that another host makes: what arrives here is counted."""


def loads_with_rates(record: Record) -> str:
    """The names of the loads, and behind them how much arrived each second of those that another host made."""
    told = [record.fact("loads") or ""]
    for counter in record.counters:
        length_ns = (
            int(counter.time_ns[-1] - counter.time_ns[0]) if counter.unit == REQUESTS and counter.time_ns.size else 0
        )
        if length_ns:
            rate = int(counter.value[-1] - counter.value[0]) / (length_ns / 1e9)
            note = record.fact(f"{counter.name}.note", Moment.START) or "from outside"
            told.append(f"{counter.name.removeprefix('load.')} {note} at {rate:,.0f} {REQUESTS}/s")
    return "; ".join(filter(None, told))


def ends_when_decided(record: Record) -> bool:
    """Whether the run was to end as soon as its limits were decided."""
    return record.fact("until_decided") == "yes"


def find_file(record: Record, path: str, moment: Moment = Moment.START) -> SystemFile | None:
    """The file of this path and moment, with its content or the error; None if the agent did not try to read it."""
    for file in record.files:
        if file.path == path and file.moment is moment:
            return file
    return None


def file_text(record: Record, path: str, moment: Moment = Moment.START) -> str | None:
    """The content of a file; None if it could not be read."""
    file = find_file(record, path, moment)
    return file.content.decode(errors="replace") if file and file.errno == 0 else None


def file_line(record: Record, path: str, moment: Moment = Moment.START) -> str | None:
    """The content of a file without white space and zero bytes at its ends; None if it could not be read."""
    found = file_text(record, path, moment)
    return None if found is None else found.strip(" \t\n\0")


def file_is_there(record: Record, path: str) -> bool | None:
    """Whether the target has a file or folder of that path; None if nobody looked, or access was denied."""
    file = find_file(record, path)
    if file is None:
        return None
    return {0: True, EISDIR: True, ENOENT: False}.get(file.errno)


def why_no_file(record: Record, path: str) -> str:
    """Why a file has no text, in words."""
    file = find_file(record, path)
    if file is None:
        return "not in the record"
    return os.strerror(file.errno) if file.errno else "it was empty"


VIRTUAL_TIME_SENTENCE = (
    "virtual time: the figures count instructions, not a board's microseconds. They rank kernels and find regressions; "
    "they do not sign off hardware"
)


_ONLINE = "/sys/devices/system/cpu/online"
_CPUINFO = "/proc/cpuinfo"


def virtual_time_clock(record: Record) -> str | None:
    """What made the clock count instructions, in the words of the record; None for a clock that shows time."""
    return record.fact("virtual_time", Moment.START) or None


@dataclass(frozen=True)
class ProcessorTurns:
    """How several processors in virtual time share the instructions, as far as the record tells.

    turn_us: the longest turn of a processor; 0: nothing ends the turns. soakers_count: how many processors are kept
    busy. shares: the part of the instructions of each processor, in the order of their numbers; empty if not told.
    """

    turn_us: int
    soakers_count: int
    shares: tuple[float, ...]


SHORT_TURN_US = 10
"""Up to this pace in us the maxima do not grow with it (judge/doubts/target_state.py has figures of longer ones)."""


def long_turns_clause(turn_us: int) -> str:
    """What longer turns than usual do to latencies, as a part of a sentence; "" for short ones."""
    if turn_us <= SHORT_TURN_US:
        return ""
    return f"turns of more than {SHORT_TURN_US} us make the largest latencies longer, so take a shorter pace"


def turns_of_processors(record: Record) -> ProcessorTurns:
    """How several processors share the instructions. A text that is no number counts as not told."""
    turn_us, soakers_count = (
        whole_number(record.fact(name, Moment.START) or "") or 0 for name in ("turn_us", "soakers")
    )
    texts = (record.fact("cpu_shares", Moment.START) or "").split()
    told = all(map(_SHARE.fullmatch, texts))
    return ProcessorTurns(turn_us, soakers_count, tuple(map(float, texts)) if told else ())


_SHARE = re.compile(r"0\.[0-9]{3}|1\.000")


def online_processors(record: Record) -> int:
    """The number of CPUs on line, at the start or at the end, whichever is larger; 1 if the target did not tell."""
    most = 1
    for moment in (Moment.START, Moment.END):
        described = re.findall(r"^processor\s*:", file_text(record, _CPUINFO, moment) or "", re.MULTILINE)
        online = len(described)
        with suppress(UserError):
            online = len(parse_cpus(file_line(record, _ONLINE, moment) or ""))
        most = max(most, online)
    return most


_COUNTS_PATH = re.compile(r"rtproof\.ko/thread(\d{1,5})/([^/]+)")
_COUNTS_LINE = re.compile(r"([a-z_]+) (-?\d{1,40})")


def source_counts(record: Record) -> dict[tuple[int, str], dict[str, int]]:
    """What the kernel module counted of each thread and field: count, missed, lost, min and max. Without a count: none.

    lost: how many of the counted values the record lacks.
    """
    found = {}
    for file in record.files:
        path = _COUNTS_PATH.fullmatch(file.path)
        if path and file.moment is Moment.END and file.errno == 0:
            lines = file.content.decode("utf-8", "replace").splitlines()
            said = {match[1]: int(match[2]) for match in map(_COUNTS_LINE.fullmatch, lines) if match}
            if "count" in said:
                found[int(path[1]), path[2]] = dict.fromkeys(("missed", "lost", "min", "max"), 0) | said
    return found


def probe_accounts(record: Record, probe: str) -> dict[int, dict[str, str]]:
    """What the probe recorded about itself at the end, by thread: the first word of each line, and the rest."""
    threads = sorted({series.thread for series in record.series})
    told = {thread: file_text(record, f"{probe}/thread{thread}", Moment.END) for thread in threads}
    return {
        thread: dict(line.partition(" ")[::2] for line in text.splitlines() if line)
        for thread, text in told.items()
        if text
    }


def account_number(account: dict[str, str], word: str) -> int | None:
    """A whole number of a probe's account; None if the account has none under this word."""
    return signed_number(account.get(word))


IMPORTED_EVENT = "imported"
"""The kind of an event that is a sentence on what the other tool does not tell."""
SIMULATED_PROBE = "simulated"
"""The name of the probe in a simulated record."""
SIMULATED_SENTENCE = "simulated: no figure is of any machine"
NO_MACHINE = "no machine: a seeded process was played, and nothing was measured"


COLLECTED_MARK = "/proc/self/status"
"""Only an agent that collects what an audit needs reads this file."""


def is_collected(record: Record) -> bool:
    """Whether the record has the facts that an audit needs."""
    return any(file.path == COLLECTED_MARK for file in record.files)


def block_length_ns(record: Record) -> int:
    """The length of the blocks in which tracing was on or off by turns; 0 in a run without them."""
    return whole_number(record.fact("trace_blocks_ns") or "") or 0


def is_simulated(record: Record) -> str | None:
    """The process that was simulated, in the words of the record; None if a machine was measured."""
    return record.fact("simulated") or None


def stalled_since_ns(event: Event) -> int | None:
    """The time in ns since which the thread of a ``stalled`` event has not run; None for other events."""
    match = _SINCE.search(event.text) if event.kind == "stalled" else None
    return int(match[1]) if match else None


_SINCE = re.compile(r"\bsince_ns=(-?\d{1,20})")


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
    """The lines of the file by label. One with fewer numbers than CPUs has one count for the WHOLE_MACHINE."""
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    cpus = [cpu for name in names if (cpu := whole_number(name.removeprefix("CPU"))) is not None]
    rows = {}
    for line in lines[1:]:
        label, colon, rest = line.partition(":")
        if colon:
            words = rest.split()
            counts = list(takewhile(lambda number: number is not None, map(whole_number, words[: len(cpus)])))
            of_cpus = cpus if len(counts) == len(cpus) else [WHOLE_MACHINE]
            per_cpu = {cpu: number for cpu, number in zip(of_cpus, counts, strict=False) if number is not None}
            rows[label.strip()] = CpuCounts(label.strip(), per_cpu, " ".join(words[len(counts) :]))
    return rows


def count_rises(record: Record, path: str) -> list[CpuCounts] | None:
    """The lines that rose between start and end, largest rise first; None if the record lacks one of the readings."""
    start, end = (file_text(record, path, moment) for moment in (Moment.START, Moment.END))
    if start is None or end is None:
        return None
    before, found = per_cpu_counts(start), []
    for label, after in per_cpu_counts(end).items():
        earlier = before[label].per_cpu if label in before else {}
        # A counter of 32 bits may have overflowed once.
        rises = {cpu: (n - earlier.get(cpu, 0)) % 2**32 for cpu, n in after.per_cpu.items()}
        found.append(CpuCounts(label, rises, after.words))
    return sorted((rise for rise in found if rise.total > 0), key=lambda rise: (-rise.total, rise.label))
