# SPDX-License-Identifier: Apache-2.0
"""Checks of the user's own application, whose number stands in the record."""

import re
from collections import defaultdict

from rtproof.audit import readings
from rtproof.audit.answers import cpu_words, first_names, no_threads, only
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check, Severity
from rtproof.audit.conditions import isolated_cpus
from rtproof.audit.facts import Facts, Reading, parse_cpu_list
from rtproof.audit.readings import finding, good, not_applicable, not_understood, unknown
from rtproof.audit.system_threads import AuditedThread, application_threads
from rtproof.core.units import whole_number
from rtproof.record.contents import Moment

LITTLE_SLACK_NS = 1000
_GROUP_LINE = re.compile(
    r"(?m)^(/.*/)(cpu\.max|cpu\.cfs_quota_us|cpuset\.cpus\.effective|cpuset\.effective_cpus|cpu\.stat)"
    r" (.*)$"
)
_MAPPING = re.compile(r"(?m)^.+ (heap|anonymous|stack|file) \d{1,15} (\d{1,15}) (\d{1,15}|-)$")


def policy(facts: Facts, check: Check) -> Judgement:
    """Whether any thread of the application has a real-time policy."""
    found = application_threads(facts)
    if not found.threads:
        return no_threads(check, found)
    shown = _threads_shown(found.reading, found.threads)
    real_time = sum(one.real_time for one in found.threads)
    if real_time:
        return good(f"{real_time} of its {len(found.threads)} threads have a real-time policy.", (shown,))
    text = f"None of the application's threads ({len(found.threads)}) has a real-time policy."
    return finding(text, (shown,), None, [one.tid for one in found.threads])


def _threads_shown(reading: Reading, threads: tuple[AuditedThread, ...]) -> Reading:
    text = first_names(f"{one.label} {one.policy} {one.priority or '-'}" for one in threads)
    return only(reading, text)


def _judged_threads(threads: tuple[AuditedThread, ...]) -> tuple[AuditedThread, ...]:
    """The threads with a real-time policy; all if none has one."""
    return tuple(one for one in threads if one.real_time) or threads


def affinity(facts: Facts, check: Check) -> Judgement:
    """Whether the application's threads stay on the isolated CPUs, or at least each on one."""
    found, wanted = application_threads(facts), isolated_cpus(facts)
    if not found.threads:
        return no_threads(check, found)
    judged = _judged_threads(found.threads)
    if any(one.cpus is None for one in judged):
        return unknown((found.reading,), "It is not known where the threads of the application may run.")
    if wanted is None:
        return unknown((found.reading,), "It is not known which CPUs shall be isolated; name them with --cpus.")
    bad = (
        [one for one in judged if not (one.cpus or frozenset()) <= wanted]
        if wanted
        else [one for one in judged if len(one.cpus or ()) > 1]
    )
    worst = bad[0] if bad else judged[0]
    shown = only(found.reading, f"{worst.label} on {cpu_words(worst.cpus or ())}")
    if not bad:
        return good("Its threads stay where they belong.", (shown,))
    named = [one.tid for one in bad]
    if wanted:
        others = (worst.cpus or frozenset()) - wanted
        text = (
            f"{worst.label} may run on {cpu_words(others)}, which {'is' if len(others) == 1 else 'are'} not isolated."
        )
        return finding(text, (shown,), None, named)
    text = f"{worst.label} may run on {cpu_words(worst.cpus or ())}, and the kernel moves it between them."
    return finding(text, (shown,), Severity.LOW, named)


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
        return finding(
            f"The application has locked only {sizes['VmLck']} kB of its {sizes['VmRSS']} kB of memory.", (shown,)
        )
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
    found = application_threads(facts)
    for reading in (first, again):
        if not reading.here:
            return readings.missing(check, [reading])
    before, after = _fault_counts(first), _fault_counts(again)
    if not before or not after:
        return not_understood(again if before else first)
    judged = {one.tid for one in _judged_threads(found.threads or ())} or set(before)
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


def slack(facts: Facts, check: Check) -> Judgement:
    """The timer slack of an application without a real-time policy."""
    found = application_threads(facts)
    if not found.threads:
        return no_threads(check, found)
    if any(one.real_time for one in found.threads):
        shown = _threads_shown(found.reading, found.threads)
        return good("Timers of its threads with a real-time policy have no slack.", (shown,))
    if any(one.slack_ns is None for one in found.threads):
        return unknown((found.reading,), "The timer slack of its threads is not known.")
    most = max(found.threads, key=lambda one: one.slack_ns or 0)
    shown = only(found.reading, f"{most.label}: {most.slack_ns} ns")
    if (most.slack_ns or 0) <= LITTLE_SLACK_NS:
        return good("Its timers have next to no slack.", (shown,))
    return finding(f"Timers of {most.label} may be late: up to {(most.slack_ns or 0) / 1000:g} us.", (shown,))


def quota(facts: Facts, check: Check) -> Judgement:
    """Limits of the application's control group, and of those above it."""
    files = facts.read("process/cgroup-files")
    if not files.here:
        return readings.missing(check, [files])
    lines = _group_files(files)
    if any(not re.match(r"/\S.* \S", line) for line in files.word.splitlines()):
        return not_understood(files)
    quotas = lines["cpu.max"] + lines["cpu.cfs_quota_us"]
    if not quotas and not lines["cpuset.cpus.effective"] + lines["cpuset.effective_cpus"]:
        return not_applicable("No control group limits the CPUs of the application.", (files,))
    if any(not re.match(r"(max|-1|\d+)( \d+)?$", value) for _, value in quotas):
        return not_understood(files)
    limits = [f"{path} {value}" for path, value in quotas if value[0].isdigit()]
    throttled = [f"{path} {value}" for path, value in lines["cpu.stat"] if (_last_number(value) or 0) > 0]
    shown = only(files, first_names(limits + throttled) or "no quota")
    if limits:
        more = " It was throttled." if throttled else ""
        groups = [path.removesuffix("/cpu.max") for path, value in lines["cpu.max"] if value[0].isdigit()]
        text = f"A quota limits the CPU time of its control group: {first_names(limits)}.{more}"
        return finding(text, (shown,), None, groups)
    return _allowed(facts, lines["cpuset.cpus.effective"] + lines["cpuset.effective_cpus"], shown)


def _allowed(facts: Facts, lists: list[tuple[str, str]], shown: Reading) -> Judgement:
    """Whether the control groups allow the isolated CPUs."""
    wanted = isolated_cpus(facts)
    for path, value in lists:
        cpus = parse_cpu_list(value)
        if wanted and cpus and not wanted & cpus:
            text = f"{path} allows only {cpu_words(cpus)}, and {cpu_words(wanted)} shall be isolated for it."
            return finding(text, (only(shown, f"{path} {value}"),))
    return good("No control group limits its CPU time.", (shown,))


def _last_number(text: str) -> int | None:
    words = text.split()
    return whole_number(words[-1]) if words else None


def _group_files(files: Reading) -> dict[str, list[tuple[str, str]]]:
    """Path and value of each file, by the file's name."""
    found = defaultdict(list)
    for folder, name, value in _GROUP_LINE.findall(files.text):
        found[name].append((f"{folder}{name}", value.strip()))
    return found
