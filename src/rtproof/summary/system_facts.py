# SPDX-License-Identifier: Apache-2.0
"""What the target said about itself before the run, as a row of words for each fact. Nothing here judges."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rtproof.core.phrases import quantity
from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.measured_kernel import LOG

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "ncpfs", "fuse.sshfs")
"""Types of file systems that are on other machines."""
TROUBLE = re.compile(
    r"scheduling while atomic|sleeping function called|RT throttling|interrupt took|took too long|unstable"
    r"|detected stall|soft lockup|DL replenish"
)
"""Lines of the kernel's log that tell of late tasks before the run."""
_OVERCOMMIT = {"0": "as far as it seems possible", "1": "always", "2": "never"}
_GUEST = re.compile(r"Hypervisor detected: (.+)|Booting paravirtualized kernel on (?!bare hardware)(.+)")


@dataclass(frozen=True)
class SystemFact:
    """A fact about the target.

    what: what the fact is about. says: the fact in words, or why it is not known. source: the file or fact of the
    record.
    """

    what: str
    says: str
    source: str


def system_facts(record: Record) -> tuple[SystemFact, ...]:
    """The facts, in the order in which a reader asks for them; empty if the record has no files of the target."""
    return tuple(ask(record) for ask in _FACTS) if record.files else ()


def troubles(record: Record) -> tuple[str, ...]:
    """The lines of the kernel's log before the run that tell of late tasks."""
    lines = (recorded_facts.file_text(record, LOG) or "").splitlines()
    return tuple(line for line in lines if TROUBLE.search(line))


def _timers(record: Record) -> SystemFact:
    path = "/proc/timer_list"
    active = re.findall(r"\.hres_active\s*:\s*(\d)", recorded_facts.file_text(record, path) or "")
    if active:
        return SystemFact("high-resolution timers", "active" if "1" in active else "not active", path)
    resolution = record.fact("clock_resolution_ns", Moment.START)
    if resolution:
        return SystemFact("high-resolution timers", f"the clock's resolution is {resolution} ns", "clock_resolution_ns")
    return SystemFact("high-resolution timers", _unknown(record, path), path)


def _clock(record: Record) -> SystemFact:
    folder = "/sys/devices/system/clocksource/clocksource0"
    path = f"{folder}/current_clocksource"
    others = recorded_facts.file_line(record, f"{folder}/available_clocksource")
    says = recorded_facts.file_line(record, path) or _unknown(record, path)
    return SystemFact("clock source", f"{says} (of: {others})" if others else says, path)


def _printk(record: Record) -> SystemFact:
    path = "/proc/sys/kernel/printk"
    levels = (recorded_facts.file_line(record, path) or "").split()
    says = f"messages below level {levels[0]} go to the console" if levels else _unknown(record, path)
    return SystemFact("console", says, path)


def _overcommit(record: Record) -> SystemFact:
    path = "/proc/sys/vm/overcommit_memory"
    mode = recorded_facts.file_line(record, path)
    says = f"{mode}: memory is promised {_OVERCOMMIT.get(mode, 'in a way not known here')}" if mode else None
    return SystemFact("overcommit", says or _unknown(record, path), path)


def _memory(record: Record) -> SystemFact:
    path = "/proc/meminfo"
    sizes = dict(re.findall(r"(?m)^(\w+):\s+(\d{1,20}) kB", recorded_facts.file_text(record, path) or ""))
    parts = [f"{int(sizes[key]):,} kB {name}" for key, name in _MEMORY.items() if key in sizes]
    return SystemFact("memory", ", ".join(parts) or _unknown(record, path), path)


def _frequencies(record: Record) -> SystemFact:
    """The frequency setting of all CPUs. CPUs with the same setting are named together."""
    path = "frequencies"
    rows = [
        words for row in (recorded_facts.file_text(record, path) or "").splitlines() if len(words := row.split()) == 5
    ]
    alike = Counter(f"{governor}, {low} to {high} kHz" for _, governor, low, high, _ in rows)
    says = "; ".join(f"{setting} ({quantity(n, 'CPU')})" if len(alike) > 1 else setting for setting, n in alike.items())
    file = recorded_facts.find_file(record, path)
    if file and file.errno:
        says = "no CPU has a governor"
    return SystemFact("CPU frequency", says or _unknown(record, path), path)


def _display(record: Record) -> SystemFact:
    """The active drivers of displays, and the modules of graphics processors beside them."""
    buffers, drm = "/proc/fb", "/sys/class/drm/version"
    there = [
        f"framebuffer {line}" for line in (recorded_facts.file_text(record, buffers) or "").splitlines() if line.strip()
    ]
    there += ["DRM"] if recorded_facts.file_is_there(record, drm) else []
    modules = (recorded_facts.file_text(record, "/proc/modules") or "").splitlines()
    there += [f"module {name}" for name in _GRAPHICS if any(row.startswith(f"{name} ") for row in modules)]
    if there:
        return SystemFact("display drivers", ", ".join(there), f"{buffers}, {drm}, /proc/modules")
    unseen = [path for path in (buffers, drm) if recorded_facts.file_is_there(record, path) is None]
    says = _unknown(record, unseen[0]) if unseen else "none: no framebuffer and no DRM"
    return SystemFact("display drivers", says, f"{buffers}, {drm}")


def _root(record: Record) -> SystemFact:
    """The root's file system and those on the network. The last file system mounted on the root covers those before."""
    path = "/proc/mounts"
    mounts = [
        words for row in (recorded_facts.file_text(record, path) or "").splitlines() if len(words := row.split()) > 2
    ]
    roots = [f"{kind} ({device})" for device, place, kind, *_ in mounts if place == "/"]
    remote = [f"{place} is {kind}" for _, place, kind, *_ in mounts if kind in NETWORK]
    root = f"root is {roots[-1]}" if roots else ""
    says = "; ".join(filter(None, (root, "; ".join(remote) or "none is on the network"))) if mounts else ""
    return SystemFact("file systems", says or _unknown(record, path), path)


def guest_fact(record: Record) -> SystemFact:
    """Whether the target is a guest, by the CPU's flag, the kernel's log, or the name of a hypervisor."""
    told = _GUEST.search(recorded_facts.file_text(record, LOG) or "")
    kind = recorded_facts.file_line(record, "/sys/hypervisor/type")
    flags = re.search(r"(?m)^flags\s*:.*\bhypervisor\b", recorded_facts.file_text(record, "/proc/cpuinfo") or "")
    if told:
        return SystemFact("virtual machine", f"a guest of {told[1] or told[2]}", LOG)
    if kind:
        return SystemFact("virtual machine", f"a guest of {kind}", "/sys/hypervisor/type")
    if flags:
        return SystemFact("virtual machine", "a guest: the CPU has the flag hypervisor", "/proc/cpuinfo")
    return SystemFact("virtual machine", _NO_GUEST, f"{LOG}, /proc/cpuinfo")


_NO_GUEST = "nothing says that it is a guest"


def is_guest(record: Record) -> bool:
    """Whether something in the record says that the target is a guest of a hypervisor."""
    return guest_fact(record).says != _NO_GUEST


def _hardware(record: Record) -> SystemFact:
    paths = ("/proc/device-tree/model", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
    names = [(path, name) for path in paths if (name := recorded_facts.file_line(record, path))]
    says = " ".join(name for _, name in names) or _unknown(record, paths[0])
    return SystemFact("hardware", says, ", ".join(path for path, _ in names) or paths[0])


def _trouble(record: Record) -> SystemFact:
    found, atomic = troubles(record), "scheduling while atomic"
    if recorded_facts.file_text(record, LOG) is None:
        return SystemFact("kernel's log before the run", _unknown(record, LOG), LOG)
    said = sum(atomic in line for line in found)
    counts = f'"{atomic}": {quantity(said, "line")}; of late tasks in all: {quantity(len(found), "line")}'
    return SystemFact("kernel's log before the run", counts, LOG)


def _unknown(record: Record, path: str) -> str:
    return f"not known: {recorded_facts.why_no_file(record, path)}"


_MEMORY = {"MemTotal": "in all", "MemAvailable": "available", "SwapTotal": "of swap"}
_GRAPHICS = ("galcore", "mali", "mali_kbase", "pvrsrvkm", "nvidia")
_FACTS: tuple[Callable[[Record], SystemFact], ...] = (
    *(_hardware, guest_fact, _timers, _clock, _frequencies),
    *(_memory, _overcommit, _printk, _display, _root, _trouble),
)
