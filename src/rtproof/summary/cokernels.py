# SPDX-License-Identifier: Apache-2.0
"""How the target's kernel was configured, and whether a real-time kernel ran beside Linux: Xenomai, EVL or RTAI.

Under such a co-kernel, a latency of Linux says little about the co-kernel's own tasks.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts

COMPRESSED_CONFIG = "/proc/config.gz"
LARGEST_CONFIG = 8 * 1024 * 1024
"""Bytes that are taken out of a compressed configuration; real ones have 0.3 MB at most."""
NAMED_CONFIG = (
    *("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC", "PREEMPT_RT"),
    *("PREEMPT_RT_FULL", "HIGH_RES_TIMERS", "HZ", "NO_HZ_FULL", "CPU_FREQ", "CPU_IDLE", "SMP", "IRQ_FORCED_THREADING"),
    *("RT_GROUP_SCHED", "XENOMAI", "XENO_DRIVERS_TIMERBENCH", "XENO_HW_UNLOCKED_SWITCH", "IPIPE", "DOVETAIL", "EVL"),
    *("ARM_FCSE_GUARANTEED", "ATMEL_TCLIB", "ATMEL_TCB_CLKSRC", "FB", "DRM", "DEBUG_PREEMPT", "LOCKDEP"),
)
"""Options that articles on real-time Linux tell to look at, in the order in which they are shown."""
_GZIP = 16 + zlib.MAX_WBITS
_PLACES = re.compile(r"/boot/config-.*|/lib/modules/.*config")
_SET = re.compile(r"CONFIG_(\w+)=(.*)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")
_RELEASE = re.compile(r"# Linux/\S+ (\S+) Kernel Configuration")


@dataclass(frozen=True)
class KernelConfig:
    """``options`` by name without CONFIG_; "n" for those that are left out, "" for those that it does not name.

    ``path``: where it was found. ``release``: of the kernel that it says it is for, "" if it does not say.
    """

    path: str
    release: str
    options: Mapping[str, str]

    def named(self) -> dict[str, str]:
        """Those of NAMED that this configuration names, with what they are set to."""
        return {option: self.options[option] for option in NAMED_CONFIG if option in self.options}

    def has(self, option: str) -> bool:
        """Whether it is built in or a module."""
        return self.options.get(option) in ("y", "m")


def kernel_config(record: Record) -> KernelConfig | None:
    """The running kernel's own copy, or the file that belongs to its release; None without either."""
    paths = [COMPRESSED_CONFIG, *(file.path for file in record.files if _PLACES.fullmatch(file.path))]
    for path in paths:
        file = recorded_facts.find_file(record, path)
        content = file.content if file and file.errno == 0 else b""
        text = _inflate(content) if path == COMPRESSED_CONFIG else content.decode(errors="replace")
        if text:
            return parse_kernel_config(path, text)
    return None


def parse_kernel_config(path: str, text: str) -> KernelConfig:
    """Whatever is no option is passed over."""
    options = {match[1]: "n" for match in _UNSET.finditer(text)}
    options |= {match[1]: match[2].strip('"') for match in _SET.finditer(text)}
    release = _RELEASE.search(text)
    return KernelConfig(path, release[1] if release else "", options)


def _inflate(content: bytes) -> str | None:
    try:
        return zlib.decompressobj(_GZIP).decompress(content, LARGEST_CONFIG).decode(errors="replace")
    except zlib.error:
        return None


XENOMAI_STATISTICS = ("/proc/xenomai/sched/stat", "/proc/xenomai/stat")
"""Of version 3 and 2."""
XENOMAI, EVL, RTAI = "/proc/xenomai", "/sys/class/evl", "/proc/rtai"
LINUX = "linux"
"""The name of no co-kernel."""
IN_BAND = "in-band"
"""What a co-kernel calls Linux's own threads: the co-kernel's tasks run before them."""
SCHEDULES = ("/proc/xenomai/sched/threads", "/proc/xenomai/sched")
"""Threads of Xenomai with their priorities, of version 3 and 2."""
_EVL_THREAD = re.compile(r"/sys/devices/virtual/thread/(.+)/stats")
_EVL_SCHEDULE = re.compile(r"/sys/devices/virtual/thread/(.+)/sched")
_PART_TIME = ("idle", "weak")
"""Scheduling classes of a co-kernel whose threads do not run before Linux: its place holder, and part-time members."""
_COBALT = re.compile(r"Cobalt v?(\S+)")


@dataclass(frozen=True)
class Cokernel:
    """``name`` with its version; "linux" for none, None where the record does not tell. ``evidence``: what says so."""

    name: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class ModeSwitches:
    """How often a thread left the co-kernel for Linux, at the start and at the end of the run; None: not there."""

    thread: str
    start: int | None
    end: int | None

    @property
    def process(self) -> int:
        """The process number in the name: "817 sampling" of Xenomai, "sampling:817" of EVL; 0 where there is none."""
        first, last = self.thread.partition(" ")[0], self.thread.rpartition(":")[2]
        return next((int(word) for word in (first, last) if word.isdecimal()), 0)


@dataclass(frozen=True)
class CoreThread:
    """A thread that the co-kernel schedules. ``process``: its number as the target has it, 0 for one without."""

    process: int
    name: str
    cpu: int
    priority: int
    scheduling: str

    @property
    def before_linux(self) -> bool:
        """Whether it runs before every thread of Linux, whatever the priority of that one is."""
        return self.scheduling not in _PART_TIME and self.priority >= 0


def core_beside(record: Record) -> str | None:
    """Name and version of the co-kernel that runs beside Linux; None where none was found."""
    name = cokernel_of(record, None, recorded_facts.file_text(record, "kernel-log") or "").name
    return None if name == LINUX else name


def core_threads(record: Record) -> tuple[CoreThread, ...]:
    """All threads that the co-kernel named at the start or at the end of the run, each once."""
    found: dict[tuple[int, str], CoreThread] = {}
    for moment in (Moment.START, Moment.END):
        for path in SCHEDULES:
            for thread in _of_xenomai(recorded_facts.file_text(record, path, moment) or ""):
                found.setdefault((thread.process, thread.name), thread)
    for file in record.files:
        match = _EVL_SCHEDULE.fullmatch(file.path)
        scheduled = _of_evl(match[1], file.content.decode(errors="replace")) if match and not file.errno else None
        if scheduled:
            found.setdefault((scheduled.process, scheduled.name), scheduled)
    return tuple(found.values())


def _of_xenomai(text: str) -> list[CoreThread]:
    """By the names of the columns, which differ between versions; lines that are no thread are passed over."""
    header, *lines = text.splitlines() or [""]
    names = header.split()
    if not {"CPU", "PID", "CLASS", "PRI"} <= set(names):
        return []
    split = [line.split(None, len(names) - 1) for line in lines]
    rows = [dict(zip(names, words, strict=True)) for words in split if len(words) == len(names)]
    return [
        CoreThread(int(row["PID"]), words[-1].strip(), int(row["CPU"]), int(row["PRI"]), row["CLASS"])
        for row, words in zip(rows, (words for words in split if len(words) == len(names)), strict=True)
        if row["PID"].isdecimal() and row["CPU"].isdecimal() and re.fullmatch(r"-?\d{1,9}", row["PRI"])
    ]


def _of_evl(name: str, text: str) -> CoreThread | None:
    """CPU, base priority, current priority, and the name of the scheduling class; NAME:PID names the thread."""
    words = text.split()
    if len(words) < 4 or not words[0].isdecimal() or not re.fullmatch(r"-?\d{1,9}", words[2]):
        return None
    label, _, process = name.rpartition(":")
    number = int(process) if process.isdecimal() else 0
    return CoreThread(number, label or name, int(words[0]), int(words[2]), words[3])


def cokernel_of(record: Record, config: KernelConfig | None, log: str) -> Cokernel:
    """What runs beside Linux."""
    found = _xenomai(record, log) or _evl(record) or _rtai(record)
    if found:
        return found
    seen = [recorded_facts.file_is_there(record, path) for path in (XENOMAI, EVL, RTAI)]
    if config and (config.has("XENOMAI") or config.has("EVL")):
        return Cokernel(None, (f"{config.path}: CONFIG_XENOMAI or CONFIG_EVL, which does not show in /proc or /sys",))
    if None in seen:
        return Cokernel(None, ())
    return Cokernel(LINUX, (f"there is no {XENOMAI}, {EVL} or {RTAI}",))


def interrupt_pipeline(record: Record, config: KernelConfig | None) -> str | None:
    """What delivers interrupts to a co-kernel first, where the kernel has such a thing."""
    version = recorded_facts.file_line(record, "/proc/ipipe/version")
    if version is not None:
        return f"I-pipe {version}".strip()
    names = {"DOVETAIL": "Dovetail", "IRQ_PIPELINE": "IRQ pipeline", "IPIPE": "I-pipe"}
    return next((name for option, name in names.items() if config and config.has(option)), None)


def mode_switches(record: Record) -> tuple[ModeSwitches, ...]:
    """Of each thread that Xenomai counts, or EVL, where they are called in-band switches; empty without either."""
    for path in XENOMAI_STATISTICS:
        texts = [recorded_facts.file_text(record, path, moment) for moment in (Moment.START, Moment.END)]
        if any(texts):
            start, end = (counts_mode_switches(text or "") for text in texts)
            return tuple(ModeSwitches(name, start.get(name), end.get(name)) for name in {**start, **end})
    paths = dict.fromkeys(file.path for file in record.files if _EVL_THREAD.fullmatch(file.path))
    return tuple(_in_band(record, path) for path in paths)


def _in_band(record: Record, path: str) -> ModeSwitches:
    """The first number of a thread's statistics; the ones behind it differ between versions."""
    words = [(recorded_facts.file_line(record, path, moment) or "").split() for moment in (Moment.START, Moment.END)]
    start, end = (int(first[0]) if first and first[0].isdecimal() else None for first in words)
    return ModeSwitches(_EVL_THREAD.sub(r"\1", path), start, end)


def counts_mode_switches(text: str) -> dict[str, int]:
    """The column MSW of Xenomai's statistics, by process number and name; the columns differ between versions."""
    header, *lines = text.splitlines() or [""]
    names = header.split()
    if "MSW" not in names or "PID" not in names:
        return {}
    found = {}
    for line in lines:
        words = line.split(None, len(names) - 1)
        if len(words) == len(names) and (switches := words[names.index("MSW")]).isdecimal():
            found[f"{words[names.index('PID')]} {words[-1].strip()}"] = int(switches)
    return found


def _xenomai(record: Record, log: str) -> Cokernel | None:
    version = recorded_facts.file_line(record, f"{XENOMAI}/version")
    cobalt = _COBALT.search(log)
    if version is None and not recorded_facts.file_is_there(record, XENOMAI) and not cobalt:
        return None
    number = version or (cobalt[1] if cobalt else "")
    evidence = [f"{XENOMAI}/version: {version}"] if version is not None else []
    evidence += [f"{XENOMAI} is there"] if recorded_facts.file_is_there(record, XENOMAI) else []
    evidence += [f"kernel's log: {cobalt[0]}"] if cobalt else []
    core = "nucleus" if number.startswith("2.") else "Cobalt"
    return Cokernel(f"Xenomai {number} ({core})" if number else "Xenomai", tuple(evidence))


def _evl(record: Record) -> Cokernel | None:
    return Cokernel("EVL (Xenomai 4)", (f"{EVL} is there",)) if recorded_facts.file_is_there(record, EVL) else None


def _rtai(record: Record) -> Cokernel | None:
    return Cokernel("RTAI", (f"{RTAI} is there",)) if recorded_facts.file_is_there(record, RTAI) else None
