# SPDX-License-Identifier: Apache-2.0
"""Judge the scheduler, limits and privileges, the user's own application, and the isolation of CPUs."""

import re
from collections import defaultdict
from itertools import pairwise

from rtproof.audit import readings
from rtproof.audit.check import Check, Judgement, Severity
from rtproof.audit.facts import ISOLATED, ONLINE, PARTITIONED, Facts, Reading, parse_cpu_list
from rtproof.audit.readings import (
    cpu_words,
    finding,
    first_names,
    good,
    hidden,
    not_applicable,
    not_understood,
    only,
    unknown,
)
from rtproof.audit.system_tables import (
    PATH,
    SOFTIRQS,
    TABLE,
    AuditedThread,
    all_threads,
    application_cpus,
    application_threads,
    counted,
    measuring_processes,
    read_interrupts,
    why_hidden,
)
from rtproof.core.units import whole_number
from rtproof.record.contents import Moment

CAP_SYS_NICE = 23
_BUDGETS = "rt-group"
_OF_THE_KERNEL = re.compile(
    r"(irq/\d+-|irq/\d+-s-|ktimers/|ktimersoftd/|ksoftirqd/|rcuc/|rcuop?/|rcuob/|rcub/|rcuog/).*"
)


def permitted(facts: Facts, check: Check) -> Judgement:
    """Whether the user of the audit may have a real-time policy, and what refuses it."""
    tried = facts.read("rt-permitted")
    if not tried.here:
        return readings.missing(check, [tried])
    if tried.word == "yes":
        return good("A thread that asked for SCHED_FIFO got it.", (tried,))
    if not tried.word.startswith("no"):
        return not_understood(tried)
    causes = _why_refused(facts)
    why = " ".join(causes) if causes else "Neither a capability, a limit nor a control group explains it."
    return finding(f"SCHED_FIFO was refused: {tried.word.removeprefix('no: ')}. {why}", (tried,))


def _why_refused(facts: Facts) -> list[str]:
    """The causes, the one that is to be removed first before the others."""
    causes = []
    status, limits = facts.read("/proc/self/status").text, facts.read("/proc/self/limits").text
    capabilities = re.search(r"(?m)^CapEff:\s+([0-9a-fA-F]{1,32})$", status)
    may = capabilities is None or int(capabilities[1], 16) >> CAP_SYS_NICE & 1
    if not may and re.search(r"(?m)^Max realtime priority\s+0{1,20}\s", limits):
        causes.append("The user has neither CAP_SYS_NICE nor a limit RTPRIO above 0.")
    budget = facts.read(_BUDGETS)
    first = budget.word.splitlines()[0].rsplit(maxsplit=2) if budget.here and budget.word else []
    if len(first) == 3 and first[1] == "0":
        causes.append(f"The control group {first[0]} has no budget for real-time threads: cpu.rt_runtime_us is 0.")
    if facts.read("/proc/sys/kernel/sched_rt_runtime_us").number() == 0:
        causes.append("sched_rt_runtime_us is 0, which forbids real-time threads.")
    if not causes and re.search(r"(?m)^Seccomp:\s+2$", status):
        causes.append("A seccomp filter, as containers have it, may refuse the call.")
    return causes


def interrupt_priorities(facts: Facts, check: Check) -> Judgement:
    """The kernel's threads that come before the application's real-time threads."""
    table, threads = facts.read(PATH), all_threads(facts)
    if threads is None:
        return not_understood(table) if table.here else readings.missing(check, [table])
    kernel = [one for one in threads if one.of_kernel and one.real_time and _OF_THE_KERNEL.fullmatch(one.name)]
    none_before = only(table, "0 threads of interrupts before the application")
    if not kernel:
        sentence = "No interrupt of this kernel has a thread with a real-time policy."
        hidden = why_hidden(facts)
        lacking = f"Not every thread is known: {hidden}."
        return unknown((none_before,), lacking) if hidden else not_applicable(sentence, (none_before,))
    own = _real_time_threads(facts, threads)
    if own is None:
        return unknown((facts.read("process/threads"),), "The threads of the application are not known.")
    if not own:
        sentence = "There is no real-time thread to compare the interrupts' threads with."
        return not_applicable(sentence, (table,))
    lowest = min(own, key=lambda one: one.priority)
    cpus = None if any(one.cpus is None for one in own) else frozenset[int]().union(*(one.cpus or () for one in own))
    names = [
        f"{one.name} ({one.priority})"
        for one in kernel
        if one.priority >= lowest.priority and (cpus is None or one.cpus is None or one.cpus & cpus)
    ]
    if names:
        text = f"{lowest.label} has the priority {lowest.priority}, and these threads of the kernel are not below it: "
        return finding(f"{text}{first_names(names)}.", (only(table, first_names(names)),))
    return good(f"All {len(kernel)} threads come after {lowest.label} of priority {lowest.priority}.", (none_before,))


def _real_time_threads(facts: Facts, threads: tuple[AuditedThread, ...]) -> list[AuditedThread] | None:
    """Those of the application, or else of all programs; without SCHED_DEADLINE. None if not known."""
    if facts.record.fact("pid") is not None:
        found = application_threads(facts)
        return None if found is None else [one for one in found if one.priority]
    own = measuring_processes(facts)
    return [one for one in threads if one.priority and not one.of_kernel and one.pid not in own]


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


_NOISY_SOFTIRQS = ("NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "BLOCK_IOPOLL", "TASKLET", "HI")
_CGROUP = "/sys/fs/cgroup"


def _wanted(facts: Facts) -> frozenset[int]:
    """The CPUs that shall be isolated. The condition isolated-cpus of the checks says that there are some."""
    return facts.isolated or frozenset()


def partition(facts: Facts, check: Check) -> Judgement:
    """Whether the scheduler leaves the CPUs alone: by isolcpus=, or by a valid partition of control groups."""
    wanted = _wanted(facts)
    patterns = [f"{_CGROUP}{depth}/cpuset.cpus.partition" for depth in ("/*", "/*/*", "/unified/*")]
    partitions = [reading for pattern in patterns for reading in facts.match(pattern)]
    invalid = [reading for reading in partitions if reading.here and "invalid" in reading.word]
    if invalid:
        return finding(f"A partition of control groups is not valid: {invalid[0].word}.", invalid)
    isolated, partitioned = facts.read(ISOLATED), facts.read(PARTITIONED)
    valid = [facts.read(one.path.replace("partition", "effective")) for one in partitions if one.word == "isolated"]
    here = [reading for reading in (isolated, partitioned, *valid) if reading.here]
    known = [parse_cpu_list(reading.word) for reading in here]
    free = wanted - frozenset[int]().union(*(cpus for cpus in known if cpus is not None))
    if not free:
        return good("The scheduler moves no thread to or from these CPUs.", here)
    hidden = next(iter(readings.hidden([isolated, *partitions, partitioned, *valid])), None)
    if None in known or hidden:
        why = f"{hidden.path} could not be read: {hidden.reason}." if hidden else "A list of CPUs is not understood."
        return unknown((isolated, partitioned), f"It is not known whether {cpu_words(free)} are isolated. {why}")
    balanced = facts.read(f"{_CGROUP}/cpuset/cpuset.sched_load_balance")
    if balanced.word == "0":
        return unknown([balanced], "A control group of version 1 may isolate the CPUs: its root balances no load.")
    return finding(f"The scheduler moves threads to {cpu_words(free)} as to all others.", (isolated, partitioned))


def flood(facts: Facts, check: Check) -> Judgement:
    """What isolated CPUs served between the two looks: interrupts of devices, and work that is put off to softirqs."""
    wanted, hard, soft = _wanted(facts), counted(facts, TABLE), counted(facts, SOFTIRQS)
    for missing in (hard, soft):
        if isinstance(missing, Reading):
            return not_understood(missing) if missing.here else readings.missing(check, [missing])
    assert isinstance(hard, dict)
    assert isinstance(soft, dict)
    known = {str(one.number): one for one in read_interrupts(facts)[0]}
    own = application_cpus(facts)
    apart = {name for name, one in known.items() if one.per_cpu or one.is_bound_within(own)}
    by_number = {name: count for name, count in _on(hard, wanted).items() if name.isdigit() and name not in apart}
    served = {f"interrupt {known[name].label if name in known else name}": count for name, count in by_number.items()}
    put_off = {f"softirq {name}": count for name, count in _on(soft, wanted).items() if name in _NOISY_SOFTIRQS}
    found = {name: count for name, count in (served | put_off).items() if count > 0}
    table = facts.read(TABLE, Moment.END)
    if min((served | put_off).values(), default=0) < 0:
        return unknown([facts.read(TABLE), table], readings.COUNT_FELL)
    if not found:
        return good(f"{cpu_words(wanted)} served none of a device between the two looks.", (only(table, "0"),))
    names = first_names(f"{name} {count} times" for name, count in sorted(found.items(), key=lambda item: -item[1]))
    severity = None if any(count > 0 for count in served.values()) else Severity.MEDIUM
    text = f"{cpu_words(wanted)} served between the two looks: {names}."
    return finding(text, (only(table, names),), severity, [name for name, count in by_number.items() if count > 0])


def names_alike(facts: Facts, check: Check) -> Judgement:
    """Interrupts whose names begin alike, so that a tool that looks for a name hits several."""
    interrupts, read = read_interrupts(facts)
    if not any(reading.here for reading in read):
        return readings.missing(check, read)
    table = facts.read(TABLE)
    names = sorted({name for one in interrupts for name in one.actions})
    if not names:
        return unknown([table], "The names of the interrupts' handlers are not known.")
    pairs = [f"{a} and {b}" for a, b in pairwise(names) if b.startswith(a) and b[len(a)].isdigit()]
    if pairs:
        return finding(f"Names of interrupts begin alike: {first_names(pairs)}.", (only(table, pairs[0]),))
    if hidden(read):
        return unknown(hidden(read))
    return good("No name of an interrupt is the beginning of another.", (only(table, f"{len(names)} names"),))


def _on(counts: dict[str, dict[int, int]], cpus: frozenset[int]) -> dict[str, int]:
    return {name: sum(count for cpu, count in row.items() if cpu in cpus) for name, row in counts.items()}


def siblings(facts: Facts, check: Check) -> Judgement:
    """Whether another hardware thread shares the core of an isolated CPU."""
    wanted, online = _wanted(facts), facts.cpus(ONLINE)
    active = facts.read("/sys/devices/system/cpu/smt/active")
    if active.word == "0":
        return good("No core runs more than one hardware thread.", (active,))
    found = []
    for cpu in sorted(wanted & online if online else wanted):
        reading = facts.read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cpus = parse_cpu_list(reading.word) if reading.here else None
        if cpus is None:
            return not_understood(reading) if reading.here else readings.missing(check, [reading])
        found.append((cpu, cpus - {cpu}, reading))
    if not found:
        return unknown((facts.read(ONLINE),), f"{cpu_words(wanted)}: not on line, so that nothing shows their cores.")
    busy = [(cpu, others, reading) for cpu, others, reading in found if others & (online or others)]
    if not busy:
        return good("Each isolated CPU has its core for itself.", [reading for _, _, reading in found])
    cpu, others, _ = busy[0]
    severity = Severity.LOW if all(others <= wanted for _, others, _ in busy) else None
    text = f"CPU {cpu} shares its core with {cpu_words(others)}."
    spare = sorted(frozenset[int]().union(*(others for _, others, _ in busy)) - wanted)
    return finding(text, [reading for _, _, reading in busy], severity, spare)


def numa(facts: Facts, check: Check) -> Judgement:
    """Whether the isolated CPUs, and the memory of the application, are in one node."""
    lists = facts.match("/sys/devices/system/node/node*/cpulist")
    here = [reading for reading in lists if reading.here]
    if not here:
        return readings.missing(check, list(lists))
    wrong = next((reading for reading in lists if not reading.here or parse_cpu_list(reading.word) is None), None)
    if wrong:
        return not_understood(wrong) if wrong.here else readings.unknown([wrong])
    sets = [cpus for cpus in (parse_cpu_list(reading.word) for reading in here) if cpus]
    # Nodes with the same CPUs, as a Raspberry Pi 5 makes of one memory.
    divided = len(set(sets)) < len(sets) or len(sets) > len(frozenset[int]().union(*sets))
    if len(here) == 1 or divided:
        one = "All memory is in one node."
        return not_applicable(one if len(here) == 1 else "The nodes only divide one memory, as with numa=fake.", here)
    wanted = _wanted(facts)
    near = [reading for reading in here if (parse_cpu_list(reading.word) or frozenset()) & wanted]
    if len(near) > 1:
        return finding(f"{cpu_words(wanted)} are in {len(near)} nodes, and memory is near to only one of them.", near)
    if not near:
        return unknown(here, f"It is not known in which node {cpu_words(wanted)} are.")
    return _memory_of_application(facts, near[0])


def _memory_of_application(facts: Facts, near: Reading) -> Judgement:
    maps = facts.read("process/numa_maps")
    pages = [(node, int(count)) for node, count in re.findall(r"\bN(\d{1,4})=(\d{1,15})\b", maps.text)]
    node = re.sub(r"\D", "", near.path.split("/")[-2])
    far, total = sum(count for name, count in pages if name != node), sum(count for _, count in pages)
    if facts.request.pid is not None and not pages:
        why = maps.reason or "no pages"
        return unknown((near, maps), f"The nodes of the application's memory are not known: {why}.")
    if far * 10 > total:
        text = f"{far} of the {total} pages of the application are not in node {node}, where its CPUs are."
        return finding(text, (near, only(maps, f"{far} of {total} pages")), None, [node])
    return good(f"The isolated CPUs are all in node {node}.", (near,))
