# SPDX-License-Identifier: Apache-2.0
"""Checks of the user's own application, whose number stands in the record."""

import re
from collections import defaultdict

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading, parse_cpu_list
from rtproof.audit.readings import cpu_words, finding, first_names, good, not_applicable, not_understood, only, unknown
from rtproof.audit.system_threads import application_threads
from rtproof.core.units import whole_number
from rtproof.record.contents import Moment

_GROUP_LINE = re.compile(
    r"(?m)^(/.*/)(cpu\.max|cpu\.cfs_quota_us|cpuset\.cpus\.effective|cpuset\.effective_cpus|cpu\.stat)"
    r" (.*)$"
)
_MAPPING = re.compile(r"(?m)^.+ (heap|anonymous|stack|file) \d{1,15} (\d{1,15}) (\d{1,15}|-)$")


def locked(facts: Facts, check: Check) -> Judgement:
    """Whether the application has locked its memory; the heap has a check of its own."""
    status = facts.read("process/status")
    if not status.here:
        return readings.missing(check, [status])
    sizes = {key: int(value) for key, value in re.findall(r"(?m)^(VmLck|VmRSS):\s+(\d{1,15}) kB$", status.text)}
    if len(sizes) < 2:
        return not_understood(status)
    shown = only(status, f"VmLck {sizes['VmLck']} kB, VmRSS {sizes['VmRSS']} kB")
    if not sizes["VmLck"]:
        return finding(f"The application has locked none of its {sizes['VmRSS']} kB of memory.", (shown,))
    heap = _heap(facts.read("process/maps"))
    without = heap[0] - heap[1] if heap else 0
    if sizes["VmLck"] < (sizes["VmRSS"] - max(without, 0)) * 9 // 10:
        text = f"The application has locked only {sizes['VmLck']} kB of its {sizes['VmRSS']} kB of memory."
        return finding(text, (shown,))
    return good("It has locked its memory.", (shown,))


def _heap(maps: Reading) -> tuple[int, int] | None:
    """How many kB of the heap are in memory, and how many of them are locked; None if not known."""
    rows = [(resident, held) for kind, resident, held in _MAPPING.findall(maps.text) if kind in ("heap", "anonymous")]
    if not rows or any(held == "-" for _, held in rows):
        return None
    return sum(int(resident) for resident, _ in rows), sum(int(held) for _, held in rows)


def heap(facts: Facts, check: Check) -> Judgement:
    """Whether the heap and other memory from malloc() is locked."""
    maps = facts.read("process/maps")
    if not maps.here:
        return readings.missing(check, [maps])
    sizes, rows = _heap(maps), _MAPPING.findall(maps.text)
    if sizes is None:
        if rows and all(kind in ("stack", "file") for kind, *_ in rows):
            return not_applicable("It has no heap.", (only(maps, "no heap"),))
        if rows:
            return unknown((only(maps, "-"),), "This kernel does not tell which memory is locked.")
        return not_understood(maps)
    resident, held = sizes
    shown = only(maps, f"heap: {resident} kB in memory, {held} kB locked")
    if held * 10 < resident * 9:
        return finding(f"{resident - held} of the {resident} kB of the application's heap are not locked.", (shown,))
    return good("Its heap is locked.", (shown,))


def faults(facts: Facts, check: Check) -> Judgement:
    """The page faults of the application's threads between the two looks."""
    first, again = (facts.read("process/faults", moment) for moment in (Moment.START, Moment.END))
    threads = application_threads(facts) or ()
    for reading in (first, again):
        if not reading.here:
            return readings.missing(check, [reading])
    before, after = _fault_counts(first), _fault_counts(again)
    if not before or not after:
        return not_understood(again if before else first)
    # The threads with a real-time policy; all if none has one.
    judged = {one.tid for one in threads if one.real_time} or {one.tid for one in threads} or set(before)
    kept = judged & before.keys() & after.keys()
    if not kept:
        return unknown((again,), "No thread of the first look was there at the second.")
    minor, major = (sum(after[tid][kind] - before[tid][kind] for tid in kept) for kind in (0, 1))
    shown = only(again, f"{minor} minor and {major} major faults")
    if min(minor, major) < 0:
        return unknown([first, again], readings.COUNT_FELL)
    if not minor and not major:
        return good(f"None of its {len(kept)} threads had a page fault between the two looks.", (shown,))
    text = f"Its threads had page faults: {minor} minor and {major} major between the two looks."
    return finding(text, (shown,), Severity.HIGH if major > 0 else Severity.MEDIUM)


def _fault_counts(reading: Reading) -> dict[int, tuple[int, int]]:
    rows = re.findall(r"(?m)^(\d{1,10}) (\d{1,20}) (\d{1,20})$", reading.text)
    return {int(tid): (int(minor), int(major)) for tid, minor, major in rows}


def quota(facts: Facts, check: Check) -> Judgement:
    """Limits of the application's control group, and of those above it."""
    files = facts.read("process/cgroup-files")
    if not files.here:
        return readings.missing(check, [files])
    lines = defaultdict(list)  # path and value of each file, by the file's name
    for folder, name, value in _GROUP_LINE.findall(files.text):
        lines[name].append((f"{folder}{name}", value.strip()))
    if any(not re.match(r"/\S.* \S", line) for line in files.word.splitlines()):
        return not_understood(files)
    quotas = lines["cpu.max"] + lines["cpu.cfs_quota_us"]
    if not quotas and not lines["cpuset.cpus.effective"] + lines["cpuset.effective_cpus"]:
        return not_applicable("No control group limits the CPUs of the application.", (files,))
    if any(not re.match(r"(max|-1|\d+)( \d+)?$", value) for _, value in quotas):
        return not_understood(files)
    limits = [f"{path} {value}" for path, value in quotas if value[0].isdigit()]
    throttled = [f"{path} {value}" for path, value in lines["cpu.stat"] if whole_number(value.rpartition(" ")[2])]
    shown = only(files, first_names(limits + throttled) or "no quota")
    if limits:
        more = " It was throttled." if throttled else ""
        groups = [path.removesuffix("/cpu.max") for path, value in lines["cpu.max"] if value[0].isdigit()]
        text = f"A quota limits the CPU time of its control group: {first_names(limits)}.{more}"
        return finding(text, (shown,), None, groups)
    return _allowed(facts, lines["cpuset.cpus.effective"] + lines["cpuset.effective_cpus"], shown)


def _allowed(facts: Facts, lists: list[tuple[str, str]], shown: Reading) -> Judgement:
    """Whether the control groups allow the isolated CPUs."""
    wanted = facts.isolated
    for path, value in lists:
        cpus = parse_cpu_list(value)
        if wanted and cpus and not wanted & cpus:
            text = f"{path} allows only {cpu_words(cpus)}, and {cpu_words(wanted)} shall be isolated for it."
            return finding(text, (only(shown, f"{path} {value}"),))
    return good("No control group limits its CPU time.", (shown,))
