# SPDX-License-Identifier: Apache-2.0
"""Checks of the isolation of CPUs, and of where interrupts are served.

The CPUs that shall be isolated are those that the user names, or else those that the kernel isolates.
"""

import re
from itertools import pairwise

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import ISOLATED, ONLINE, PARTITIONED, Facts, Reading, parse_cpu_list
from rtproof.audit.interrupts import SOFTIRQS, TABLE, counted, left_out, names_of_handlers, read_interrupts
from rtproof.audit.readings import cpu_words, finding, first_names, good, not_applicable, not_understood, only, unknown
from rtproof.audit.system_threads import application_cpus
from rtproof.record.contents import Moment

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


def alike(facts: Facts, check: Check) -> Judgement:
    """Interrupts whose names begin alike, so that a tool that looks for a name hits several."""
    interrupts, read = read_interrupts(facts)
    if not any(reading.here for reading in read):
        return readings.missing(check, list(read))
    names = sorted({name for one in interrupts for name in one.actions})
    if not names:
        return unknown((facts.read(TABLE),), "The names of the interrupts' handlers are not known.")
    table = names_of_handlers(facts)
    pairs = [f"{a} and {b}" for a, b in pairwise(names) if b.startswith(a) and b[len(a)].isdigit()]
    if pairs:
        return finding(f"Names of interrupts begin alike: {first_names(pairs)}.", (only(table, pairs[0]),))
    if lost := left_out(facts):
        return unknown(lost)
    return good("No name of an interrupt is the beginning of another.", (only(table, f"{len(names)} names"),))


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
