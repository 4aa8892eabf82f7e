# SPDX-License-Identifier: Apache-2.0
"""Checks of the isolation of CPUs, and of where interrupts are served.

The CPUs that shall be isolated are those that the user names, or else those that the kernel isolates.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rtproof.audit import readings
from rtproof.audit.answers import cpu_words, first_missing, first_names, good_of_all, no_threads, only
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check, Severity
from rtproof.audit.conditions import ISOLATED, PARTITIONED, isolated_cpus, kernel_isolated_cpus
from rtproof.audit.facts import Facts, Reading, parse_cpu_list, parse_cpu_mask
from rtproof.audit.interrupts import SOFTIRQS, TABLE, Interrupt, counted, read_interrupts
from rtproof.audit.readings import finding, good, not_applicable, not_understood, unknown
from rtproof.audit.system_threads import (
    all_threads,
    application_threads,
)
from rtproof.record.contents import Moment

ONLINE, PRESENT = "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/present"
_NOISY_SOFTIRQS = ("NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "BLOCK_IOPOLL", "TASKLET", "HI")
_CGROUP = "/sys/fs/cgroup"


def _wanted(facts: Facts) -> frozenset[int]:
    """The CPUs that shall be isolated. The condition isolated-cpus of the checks says that there are some."""
    return isolated_cpus(facts) or frozenset()


def declared(facts: Facts, check: Check) -> Judgement:
    """Whether CPUs shall be isolated, and the named ones exist and leave some for the rest."""
    online = facts.read(ONLINE)
    cpus, wanted = facts.cpus(ONLINE), isolated_cpus(facts)
    if cpus is None or not cpus:
        return readings.missing(check, [online]) if not online.here else not_understood(online)
    if wanted is None:
        return unknown((facts.read(ISOLATED),), "It is not known which CPUs are isolated; name them with --cpus.")
    return _declared(facts, wanted, cpus, online)


def _declared(facts: Facts, wanted: frozenset[int], online: frozenset[int], shown: Reading) -> Judgement:
    present = facts.cpus(PRESENT) or online
    if wanted - present:
        return finding(f"There is no {_singular(wanted - present)}.", (shown,), Severity.MEDIUM)
    if wanted - online:
        on_purpose = facts.request.cpus is None and wanted & online  # as second hardware threads may be
        severity = Severity.LOW if on_purpose else Severity.MEDIUM
        return finding(f"{cpu_words(wanted - online)}: not on line.", (shown,), severity)
    if wanted >= online and len(online) > 1:
        text = "All CPUs shall be isolated: none is left for the rest of the system."
        return finding(text, (shown,), Severity.MEDIUM)
    if not wanted:
        return finding("No CPU is isolated, and none was named with --cpus.", (shown,))
    return good(f"Isolated: {cpu_words(wanted)}; for the rest of the system: {cpu_words(online - wanted)}.", (shown,))


def _singular(cpus: frozenset[int]) -> str:
    return cpu_words(cpus) if len(cpus) == 1 else f"CPU of {cpu_words(cpus).removeprefix('CPUs ')}"


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
    hidden = first_missing([isolated, *partitions, partitioned, *valid])
    if None in known or hidden:
        why = f"{hidden.path} could not be read: {hidden.reason}." if hidden else "A list of CPUs is not understood."
        return unknown((isolated, partitioned), f"It is not known whether {cpu_words(free)} are isolated. {why}")
    balanced = facts.read(f"{_CGROUP}/cpuset/cpuset.sched_load_balance")
    if balanced.word == "0":
        return unknown([balanced], "A control group of version 1 may isolate the CPUs: its root balances no load.")
    return finding(f"The scheduler moves threads to {cpu_words(free)} as to all others.", (isolated, partitioned))


def _application_cpus(facts: Facts) -> frozenset[int]:
    """The isolated CPUs to which the application is bound; none if it is bound to none."""
    threads = application_threads(facts).threads or ()
    bound = [one.cpus for one in threads if one.cpus and one.cpus <= _wanted(facts)]
    return frozenset[int]().union(*bound)


def _is_its_own(interrupt: Interrupt, cpus: frozenset[int]) -> bool:
    """Whether somebody bound the interrupt to the application's CPUs, as one does with that of its device."""
    return bool(interrupt.wanted) and (interrupt.wanted or frozenset()) <= cpus


def alike(facts: Facts, check: Check) -> Judgement:
    """Interrupts whose names begin alike, so that a tool that looks for a name hits several."""
    found = read_interrupts(facts)
    if not any(reading.here for reading in found.readings):
        return readings.missing(check, list(found.readings))
    names = sorted({name for one in found.interrupts for name in one.actions})
    if not names:
        return unknown((facts.read(TABLE),), "The names of the interrupts' handlers are not known.")
    pairs = [f"{a} and {b}" for a, b in pairwise(names) if b.startswith(a) and b[len(a)].isdigit()]
    if pairs:
        return finding(f"Names of interrupts begin alike: {first_names(pairs)}.", (only(found.names, pairs[0]),))
    if found.left_out:
        return unknown(found.left_out)
    return good("No name of an interrupt is the beginning of another.", (only(found.names, f"{len(names)} names"),))


def flood(facts: Facts, check: Check) -> Judgement:
    """What isolated CPUs served between the two looks: interrupts of devices, and work that is put off to softirqs."""
    wanted, hard, soft = _wanted(facts), counted(facts, TABLE), counted(facts, SOFTIRQS)
    for missing in (hard, soft):
        if isinstance(missing, Reading):
            return not_understood(missing) if missing.here else readings.missing(check, [missing])
    assert isinstance(hard, dict)
    assert isinstance(soft, dict)
    known = {str(one.number): one for one in read_interrupts(facts).interrupts}
    own = _application_cpus(facts)
    by_number = {
        name: count
        for name, count in _on(hard, wanted).items()
        if name.isdigit() and not (name in known and (known[name].per_cpu or _is_its_own(known[name], own)))
    }
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


def balancer(facts: Facts, check: Check) -> Judgement:
    """Whether irqbalance moves interrupts, and to which CPUs."""
    found = all_threads(facts)
    if found.threads is None:
        return no_threads(check, found)
    if not any(one.name == "irqbalance" and not one.of_kernel for one in found.threads):
        return good_of_all(found, "irqbalance does not run.", only(found.reading, "no irqbalance"))
    wanted, seen = isolated_cpus(facts), only(found.reading, "irqbalance")
    if not wanted:
        return finding("irqbalance runs, and moves interrupts at any time.", (seen,), Severity.LOW)
    files = [facts.read(path) for path in check.read[1:]]
    banned, where = _banned(files)
    if banned is None and where is None:
        banned = kernel_isolated_cpus(facts)
    shown = [seen, where] if where else [seen]
    if banned is not None and wanted <= banned:
        text = f"irqbalance runs, and leaves out {cpu_words(wanted)}; still it moves interrupts that you place."
        return finding(text, shown, Severity.LOW)
    return finding(f"irqbalance runs, and may move interrupts to {cpu_words(wanted)}.", shown)


def _banned(files: Iterable[Reading]) -> tuple[frozenset[int] | None, Reading | None]:
    """The CPUs that the configuration of irqbalance leaves out, and the file that says so."""
    for reading in files:
        found = re.findall(r'(?m)^\s*(?:export )?IRQBALANCE_BANNED_CPU(LIST|S)="?([0-9a-fA-F,\-]+)"?\s*$', reading.text)
        if found:
            kind, value = found[-1]
            return (parse_cpu_list if kind == "LIST" else parse_cpu_mask)(value), only(reading, value)
    return None, None


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


def _cpu_of(path: str) -> int | None:
    number = re.search(r"/(?:cpu|machinecheck)(\d{1,6})/", path)
    return int(number[1]) if number else None


def numa(facts: Facts, check: Check) -> Judgement:
    """Whether the isolated CPUs, and the memory of the application, are in one node."""
    lists = facts.match("/sys/devices/system/node/node*/cpulist")
    here = [reading for reading in lists if reading.here]
    if not here:
        return readings.missing(check, list(lists))
    wrong = next((reading for reading in lists if not reading.here or parse_cpu_list(reading.word) is None), None)
    if wrong:
        return not_understood(wrong) if wrong.here else readings.unknown([wrong])
    if len(here) == 1 or _divided_memory(here):
        text = (
            "All memory is in one node." if len(here) == 1 else "The nodes only divide one memory, as with numa=fake."
        )
        return not_applicable(text, here)
    wanted = _wanted(facts)
    near = [reading for reading in here if (parse_cpu_list(reading.word) or frozenset()) & wanted]
    if len(near) > 1:
        return finding(f"{cpu_words(wanted)} are in {len(near)} nodes, and memory is near to only one of them.", near)
    if not near:
        return unknown(here, f"It is not known in which node {cpu_words(wanted)} are.")
    return _memory_of_application(facts, near[0])


def _divided_memory(lists: Sequence[Reading]) -> bool:
    """Whether nodes have the same CPUs, as with the nodes that a Raspberry Pi 5 makes of one memory."""
    sets = [cpus for cpus in (parse_cpu_list(reading.word) for reading in lists) if cpus]
    return len(sets) > len(frozenset[int]().union(*sets)) or len(set(sets)) < len(sets)


def _memory_of_application(facts: Facts, near: Reading) -> Judgement:
    maps = facts.read("process/numa_maps")
    pages: dict[str, int] = {}
    for node, count in re.findall(r"\bN(\d{1,4})=(\d{1,15})\b", maps.text):
        pages[node] = pages.get(node, 0) + int(count)
    node = re.sub(r"\D", "", near.path.split("/")[-2])
    far, total = sum(count for name, count in pages.items() if name != node), sum(pages.values())
    if facts.request.pid is not None and not pages:
        why = maps.reason or "no pages"
        return unknown((near, maps), f"The nodes of the application's memory are not known: {why}.")
    if far * 10 > total:
        text = f"{far} of the {total} pages of the application are not in node {node}, where its CPUs are."
        return finding(text, (near, only(maps, f"{far} of {total} pages")), None, [node])
    return good(f"The isolated CPUs are all in node {node}.", (near,))


def hybrid(facts: Facts, check: Check) -> Judgement:
    """Whether CPUs of different strength shall do the same work."""
    wanted = _wanted(facts)
    kinds = [facts.read(f"/sys/devices/cpu_{kind}/cpus") for kind in ("core", "atom")]
    capacities = [one for one in facts.match("/sys/devices/system/cpu/cpu*/cpu_capacity") if one.here]
    mixed = [one for one in kinds if one.here and (parse_cpu_list(one.word) or frozenset()) & wanted]
    if len(mixed) > 1:
        return finding(f"{cpu_words(wanted)} are cores of both kinds of this processor.", mixed)
    strange = next((one for one in capacities if one.number() is None), None)
    if strange:
        return not_understood(strange)
    strengths = {one.word: one for one in capacities if _cpu_of(one.path) in wanted}
    if len(strengths) > 1:
        text = f"{cpu_words(wanted)} have different capacities: {', '.join(sorted(strengths))}."
        return finding(text, list(strengths.values()))
    weighed = {_cpu_of(one.path) for one in capacities}
    if wanted <= weighed or any(wanted <= (parse_cpu_list(one.word) or frozenset()) for one in mixed):
        return good("The isolated CPUs are all of one kind.", (*mixed, *strengths.values()))
    hidden = first_missing([*kinds, *facts.match("/sys/devices/system/cpu/cpu*/cpu_capacity")])
    if hidden:
        return readings.unknown([hidden])
    return not_applicable("The kernel knows no kinds of CPUs on this machine.", (kinds[0],))
