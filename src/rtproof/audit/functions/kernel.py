# SPDX-License-Identifier: Apache-2.0
"""Judgements of how the kernel was built, and of what it says about itself."""

import re
from collections.abc import Callable, Sequence

from rtproof.audit import conditions, kernel_bugs
from rtproof.audit.audit_model import Judgement, Outcome, ReadValue
from rtproof.audit.boot_lists import read_cpu_word
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading, State
from rtproof.audit.readings import finding, good, hidden, read_source, read_values, unknown
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus
from rtproof.record.contents import Moment
from rtproof.summary import measured_kernel
from rtproof.summary.measured_kernel import Confidence, PreemptionStatement

# The preemption model


def _evidence(statement: PreemptionStatement) -> tuple[ReadValue, ...]:
    pairs = (clean(line).partition(": ") for line in statement.evidence)
    return tuple(ReadValue(path, value or "(said so)") for path, _, value in pairs)


def _doubts(facts: Facts, statement: PreemptionStatement) -> list[str]:
    """The contradictions that touch the statement: not that of a configuration on which it does not rest."""
    other = measured_kernel.kernel_config(facts.record)
    rests = other is not None and any(line.startswith(other.path) for line in statement.evidence)
    sure = statement.confidence is Confidence.CERTAIN
    return [
        doubt
        for doubt in facts.preemption.disagreements
        if not (other and doubt.startswith(f"{other.path} is for") and (sure or not rests))
    ]


def _conflict(doubts: Sequence[str], read: tuple[ReadValue, ...]) -> Judgement:
    return Judgement(Outcome.CONFLICTING, f"The evidence contradicts itself: {clean('; '.join(doubts))}.", read)


def preemption_built(facts: Facts, _: Check) -> Judgement:
    """Whether the kernel is PREEMPT_RT."""
    built = facts.preemption.built
    read = _evidence(built)
    doubts = _doubts(facts, built)
    if doubts:
        return _conflict(doubts, read)
    if built.value == measured_kernel.RT:
        return Judgement(Outcome.GOOD, "", read)
    core = conditions.co_kernel(facts)
    if core:
        sentence = f"{core} runs real-time threads beside Linux. The model of Linux counts for all other threads."
        return Judgement(Outcome.NOT_APPLICABLE, sentence, read)
    option = facts.option("PREEMPT_RT")
    if built.value or option.absent:
        instead = f"as {built.value}, not as" if built.value else "without"
        read = read if built.value else read_values((option,))
        return Judgement(Outcome.FINDING, f"The kernel is built {instead} PREEMPT_RT.", read)
    version = facts.record.begin.kernel_version
    if version and len(version) < measured_kernel.VERSION_MOST:
        value = ReadValue("uname -v", clean(version))
        return Judgement(Outcome.FINDING, "The kernel does not say that it is built with PREEMPT_RT.", (value,))
    return Judgement(Outcome.UNKNOWN, "Nothing says for which preemption model the kernel is built.", read)


def preemption_mode(facts: Facts, _: Check) -> Judgement:
    """The model that is in force, where the kernel can change it."""
    built, mode = facts.preemption.built, facts.preemption.effective
    read = _evidence(mode)
    if built.value is not None and built.value != measured_kernel.DYNAMIC and "(" not in (mode.value or ""):
        sentence = f"The model {built.value} is built in; this kernel cannot change it."
        return Judgement(Outcome.NOT_APPLICABLE, sentence, read)
    doubts = _doubts(facts, mode)
    if doubts:
        return _conflict(doubts, read)
    if mode.value is None:
        return Judgement(Outcome.UNKNOWN, "Nothing says which preemption model is in force.", read)
    at_boot = "" if mode.confidence is Confidence.CERTAIN else " That is what was chosen at boot."
    if mode.value == measured_kernel.FULL or mode.value.startswith(measured_kernel.RT):
        return Judgement(Outcome.GOOD, at_boot.strip(), read)
    if mode.value == measured_kernel.LAZY:
        # kernel/Kconfig.preempt: "less eager to preempt SCHED_NORMAL tasks". No other class switches lazily.
        sentence = f"With lazy only threads of ordinary priority wait, until the next tick.{at_boot}"
        return Judgement(Outcome.GOOD, sentence, read)
    return Judgement(Outcome.FINDING, f"The preemption model in force is {mode.value}.{at_boot}", read)


# Timers


def high_resolution(facts: Facts, check: Check) -> Judgement:
    """Whether timers of high resolution are built in and active."""
    timers, option, asked = facts.read("/proc/timer_list"), facts.option("HIGH_RES_TIMERS"), facts.parameter("highres")
    active = re.findall(r"\.hres_active\s*:\s*(\d)", facts.begin_of(timers.path))
    resolution = facts.record.fact("clock_resolution_ns", Moment.START)
    if active:
        return _active_everywhere(timers, active)
    coarse = _coarse_resolution(facts)
    if coarse:
        return finding(f"Timers have a resolution of {coarse / 1e6:g} ms only, that of the tick.", (timers,))
    if option.absent:
        return finding("The kernel is built without high-resolution timers.", (option,))
    if asked.here and asked.word == "off":
        return finding("The command line turns high-resolution timers off.", (asked,))
    if resolution == "1":
        return good("The clock has a resolution of 1 ns.", (_shown(timers, "clock_resolution_ns", "1"),))
    return unknown(
        (timers, option), "Nothing shows whether high-resolution timers are active, even if they are built in."
    )


def _active_everywhere(timers: Reading, active: Sequence[str]) -> Judgement:
    if "0" in active:
        return finding("High-resolution timers are not active on every CPU.", (_shown(timers, "hres_active", "0"),))
    return good("", (_shown(timers, "hres_active", "1"),))


def _coarse_resolution(facts: Facts) -> int:
    """The resolution of the timers in ns if it is that of a tick, else 0."""
    told = re.findall(r"(?m)^\s*\.resolution:\s*(\d{1,12}) nsecs", facts.begin_of("/proc/timer_list"))
    told.append(facts.record.fact("clock_resolution_ns", Moment.START) or "")
    return max((int(ns) for ns in told if re.fullmatch(r"\d{7,12}", ns)), default=0)


def _shown(reading: Reading, key: str, text: str) -> Reading:
    return Reading(f"{key} in {reading.path}", State.HERE, text)


# Real-time groups, threads of interrupts, RCU


def offloaded_callbacks(facts: Facts, check: Check) -> Judgement:
    """Whether the callbacks of RCU are kept away from the isolated CPUs."""
    isolated = conditions.isolated_cpus(facts) or frozenset()
    built, every = facts.option("RCU_NOCB_CPU"), facts.option("RCU_NOCB_CPU_DEFAULT_ALL")
    names = ("rcu_nocbs", "nohz_full")
    asked = [facts.parameter(name) for name in names]
    if built.absent:
        return finding("The kernel is built without RCU_NOCB_CPU, so no callback can be moved away.", (built,))
    if hidden((built, *asked)):
        return unknown(hidden((built, *asked)))
    lists = [
        _kernel_list(facts, name, reading.word) for name, reading in zip(names, asked, strict=True) if reading.here
    ]
    now = facts.cpus("/sys/devices/system/cpu/nohz_full") or frozenset()
    left = isolated - now.union(*(cpus for cpus in lists if cpus))
    if left and None in lists:
        return unknown([reading for reading in asked if reading.here], "A list of CPUs on the line is not understood.")
    if not left or (every.here and asked[0].absent):
        return good("", (built, *asked))
    sentence = f"RCU runs callbacks on {quantity(len(left), 'isolated CPU')}: {format_cpus(left)}."
    return finding(sentence, (built, *asked))


def _kernel_list(facts: Facts, name: str, text: str) -> frozenset[int] | None:
    return read_cpu_word(name, text, facts.cpus("/sys/devices/system/cpu/possible"), facts.kernel).cpus


# Watchdogs and what was built in to find bugs


_OFF: dict[str, Callable[[Facts], bool]] = {
    "KFENCE": lambda facts: (
        facts.read("/sys/module/kfence/parameters/sample_interval").number() == 0
        or facts.parameter("kfence.sample_interval").word == "0"
        or facts.option("KFENCE_SAMPLE_INTERVAL").word == "0"
    ),
    "DEBUG_PAGEALLOC": lambda facts: (
        facts.parameter("debug_pagealloc").word == "off"
        or (facts.option("DEBUG_PAGEALLOC_ENABLE_DEFAULT").absent and facts.parameter("debug_pagealloc").absent)
    ),
    "DEBUG_OBJECTS": lambda facts: facts.parameter("no_debug_objects").here,
}
"""Options whose work the command line or another option can turn off, and whether it is off."""
_SEVERITIES = {
    **dict.fromkeys(("KFENCE", "UBSAN", "DEBUG_VM", "KASAN_HW_TAGS"), Severity.LOW),
    **dict.fromkeys(("LOCK_STAT", "DEBUG_RT_MUTEXES"), Severity.MEDIUM),
}
"""Options that cost less than the others of their check."""


def costly_options(facts: Facts, check: Check) -> Judgement:
    """Whether options that cost time are built in. A file among what is read shows by being there that one is."""
    named = [(source.partition(":")[2], reading) for source in check.read for reading in read_source(facts, source)]
    on = [(name, reading) for name, reading in named if reading.here and not (name in _OFF and _OFF[name](facts))]
    read = [reading for _, reading in named]
    if on:
        severities = [_severity_of(facts, name, check) for name, _ in on]
        names = ", ".join(name or clean(reading.path) for name, reading in on)
        worst = min(severities, key=lambda severity: severity.rank)
        return finding(f"The kernel is built with what costs time: {names}.", [one for _, one in on], worst)
    if hidden(read):
        return unknown(hidden(read))
    off = [name for name, reading in named if reading.here]
    return good(f"Built in, but off: {', '.join(off)}." if off else "", read[:3])


def _severity_of(facts: Facts, name: str, check: Check) -> Severity:
    of_tags = name == "KASAN" and facts.option("KASAN_HW_TAGS").here
    return _SEVERITIES.get("KASAN_HW_TAGS" if of_tags else name, check.severity)


def lock_checks(facts: Facts, check: Check) -> Judgement:
    """Whether locks are checked. Every option that does so brings a file, whose absence shows that none does."""
    file = facts.read("/proc/lockdep_stats")
    if file.absent and all(facts.option(name).absent or facts.config is None for name in ("PROVE_LOCKING", "LOCKDEP")):
        return good("", (file,))
    return costly_options(facts, check)


# Firmware, displays, frequency


# What the kernel says about itself


def _worst(bugs: Sequence[kernel_bugs.Bug]) -> Severity:
    return min((bug.severity for bug in bugs), key=lambda severity: severity.rank)


def open_bugs(facts: Facts, check: Check) -> Judgement:
    """Whether the kernel's version has a bug that delays real-time threads."""
    begin = facts.record.begin
    version = kernel_bugs.exact_version(begin.kernel_release, begin.kernel_version)
    read = (Reading("uname -rv", State.HERE, f"{begin.kernel_release} {begin.kernel_version}"),)
    if version is None:
        return unknown(read, "The version of the kernel is not known.")
    states = [(bug, bug.state_in(version)) for bug in kernel_bugs.known_bugs()]
    has = [bug for bug, state in states if state is kernel_bugs.BugState.OPEN]
    if has:
        return finding(" ".join(f"{bug.effect} ({bug.fix})" for bug in has), read, _worst(has))
    maybe = [bug for bug, state in states if state is kernel_bugs.BugState.UNKNOWN]
    if maybe:
        sentence = f"{kernel_bugs.MAY_BE_FIXED} {' '.join(bug.effect for bug in maybe)}"
        return Judgement(Outcome.UNKNOWN, sentence, read_values(read), _worst(maybe))
    return good("No bug of the list is in this version.", read)


def taint(facts: Facts, check: Check) -> Judgement:
    """Which reasons the kernel has not to trust itself."""
    file = facts.read("/proc/sys/kernel/tainted")
    bits = file.number()
    if bits is None or bits < 0:
        sentence = f"{file.path} holds what this version does not understand." if file.here else ""
        return unknown((file,), sentence)
    if not bits:
        return good("", (file,))
    on = [str(bit) for bit in range(bits.bit_length()) if bits >> bit & 1]
    modules = [one.path.split("/")[3] for one in facts.match("/sys/module/*/taint") if one.here and one.word]
    names = f" Modules: {', '.join(map(clean, modules))}." if modules else ""
    worst = min((_severity_of_bit(check, bit) for bit in on), key=lambda severity: severity.rank)
    reasons = ", ".join(check.meaning.get(bit, f"bit {bit}") for bit in on)
    return finding(f"The kernel is tainted: {reasons}.{names}", (file,), worst, modules)


def _severity_of_bit(check: Check, bit: str) -> Severity:
    if bit not in check.meaning:
        return Severity.LOW
    return next((Severity(severity) for severity, bits in check.names.items() if bit in bits), check.severity)
