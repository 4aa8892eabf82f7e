# SPDX-License-Identifier: Apache-2.0
"""Judgements of how the kernel was built, and of what it says about itself."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from rtproof.audit import conditions
from rtproof.audit.check import Check, Judgement, Outcome, Severity
from rtproof.audit.facts import Facts, Reading, State
from rtproof.audit.readings import finding, good, hidden, read_source, unknown
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.core.toml import parse_toml
from rtproof.core.units import format_cpus
from rtproof.record.contents import Moment
from rtproof.summary import measured_kernel
from rtproof.summary.measured_kernel import Confidence, PreemptionStatement

# The preemption model


def _evidence(statement: PreemptionStatement) -> tuple[Reading, ...]:
    pairs = (clean(line).partition(": ") for line in statement.evidence)
    return tuple(Reading(path, State.HERE, value or "(said so)") for path, _, value in pairs)


def _contradicted(facts: Facts, statement: PreemptionStatement) -> Judgement | None:
    """CONFLICTING for contradictions that touch the statement, not for a configuration on which it does not rest."""
    other = measured_kernel.kernel_config(facts.record)
    rests = other is not None and any(line.startswith(other.path) for line in statement.evidence)
    sure = statement.confidence is Confidence.CERTAIN
    doubts = [
        doubt
        for doubt in facts.preemption.disagreements
        if not (other and doubt.startswith(f"{other.path} is for") and (sure or not rests))
    ]
    sentence = f"The evidence contradicts itself: {clean('; '.join(doubts))}."
    return Judgement(Outcome.CONFLICTING, sentence, _evidence(statement)) if doubts else None


def preemption_built(facts: Facts, _: Check) -> Judgement:
    """Whether the kernel is PREEMPT_RT."""
    built = facts.preemption.built
    read = _evidence(built)
    if contradicted := _contradicted(facts, built):
        return contradicted
    if built.value == measured_kernel.RT:
        return Judgement(Outcome.GOOD, "", read)
    if core := conditions.co_kernel(facts):
        sentence = f"{core} runs real-time threads beside Linux. The model of Linux counts for all other threads."
        return Judgement(Outcome.NOT_APPLICABLE, sentence, read)
    option, version = facts.option("PREEMPT_RT"), facts.record.begin.kernel_version
    if built.value or option.absent:
        instead = f"as {built.value}, not as" if built.value else "without"
        read = read if built.value else (option,)
        return Judgement(Outcome.FINDING, f"The kernel is built {instead} PREEMPT_RT.", read)
    if version and len(version) < measured_kernel.VERSION_MOST:
        told = (Reading("uname -v", State.HERE, version),)
        return Judgement(Outcome.FINDING, "The kernel does not say that it is built with PREEMPT_RT.", told)
    return Judgement(Outcome.UNKNOWN, "Nothing says for which preemption model the kernel is built.", read)


def preemption_mode(facts: Facts, _: Check) -> Judgement:
    """The model that is in force, where the kernel can change it."""
    built, mode = facts.preemption.built, facts.preemption.effective
    read = _evidence(mode)
    if built.value is not None and built.value != measured_kernel.DYNAMIC and "(" not in (mode.value or ""):
        sentence = f"The model {built.value} is built in; this kernel cannot change it."
        return Judgement(Outcome.NOT_APPLICABLE, sentence, read)
    if contradicted := _contradicted(facts, mode):
        return contradicted
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
    text = facts.begin_of(timers.path)
    active = re.findall(r"\.hres_active\s*:\s*(\d)", text)
    clock_ns = facts.record.fact("clock_resolution_ns", Moment.START) or ""
    if active:
        shown = (_shown(timers, "hres_active", min(active)),)
        off = "0" in active
        return finding("High-resolution timers are not active on every CPU.", shown) if off else good("", shown)
    told_ns = [*re.findall(r"(?m)^\s*\.resolution:\s*(\d{1,12}) nsecs", text), clock_ns]
    coarse_ns = max((int(ns) for ns in told_ns if re.fullmatch(r"\d{7,12}", ns)), default=0)
    if coarse_ns:
        return finding(f"Timers have a resolution of {coarse_ns / 1e6:g} ms only, that of the tick.", (timers,))
    if option.absent:
        return finding("The kernel is built without high-resolution timers.", (option,))
    if asked.here and asked.word == "off":
        return finding("The command line turns high-resolution timers off.", (asked,))
    if clock_ns == "1":
        return good("The clock has a resolution of 1 ns.", (_shown(timers, "clock_resolution_ns", "1"),))
    sentence = "Nothing shows whether high-resolution timers are active, even if they are built in."
    return unknown((timers, option), sentence)


def _shown(reading: Reading, key: str, text: str) -> Reading:
    return Reading(f"{key} in {reading.path}", State.HERE, text)


# Real-time groups, threads of interrupts, RCU


def offloaded_callbacks(facts: Facts, check: Check) -> Judgement:
    """Whether the callbacks of RCU are kept away from the isolated CPUs."""
    isolated = facts.isolated or frozenset()
    built, every = facts.option("RCU_NOCB_CPU"), facts.option("RCU_NOCB_CPU_DEFAULT_ALL")
    names = ("rcu_nocbs", "nohz_full")
    asked = [facts.parameter(name) for name in names]
    if built.absent:
        return finding("The kernel is built without RCU_NOCB_CPU, so no callback can be moved away.", (built,))
    if hidden((built, *asked)):
        return unknown(hidden((built, *asked)))
    lists = [facts.cpus_at_boot(name) for name, reading in zip(names, asked, strict=True) if reading.here]
    now = facts.cpus("/sys/devices/system/cpu/nohz_full") or frozenset()
    left = isolated - now.union(*(cpus for cpus in lists if cpus))
    if left and None in lists:
        return unknown([reading for reading in asked if reading.here], "A list of CPUs on the line is not understood.")
    if not left or (every.here and asked[0].absent):
        return good("", (built, *asked))
    sentence = f"RCU runs callbacks on {quantity(len(left), 'isolated CPU')}: {format_cpus(left)}."
    return finding(sentence, (built, *asked))


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
        tags = facts.option("KASAN_HW_TAGS").here
        costs = ("KASAN_HW_TAGS" if name == "KASAN" and tags else name for name, _ in on)
        names = ", ".join(name or clean(reading.path) for name, reading in on)
        worst = _worst(_SEVERITIES.get(name, check.severity) for name in costs)
        return finding(f"The kernel is built with what costs time: {names}.", [one for _, one in on], worst)
    if hidden(read):
        return unknown(hidden(read))
    off = [name for name, reading in named if reading.here]
    return good(f"Built in, but off: {', '.join(off)}." if off else "", read[:3])


def _worst(severities: Iterable[Severity]) -> Severity:
    return min(severities, key=lambda severity: severity.rank)


def lock_checks(facts: Facts, check: Check) -> Judgement:
    """Whether locks are checked. Every option that does so brings a file, whose absence shows that none does."""
    file = facts.read("/proc/lockdep_stats")
    if file.absent and all(facts.option(name).absent or facts.config is None for name in ("PROVE_LOCKING", "LOCKDEP")):
        return good("", (file,))
    return costly_options(facts, check)


# What the kernel says about itself


MAY_BE_FIXED = (
    "The sources of this version had a bug whose fix may have been brought back into it; a distribution's third number "
    "does not tell that."
)
Version = tuple[int, int, int | None]
"""Of the sources. The third number is None where a distribution counts in its own way."""


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bug of ``kernel_bugs.toml``. fix: the commit. stable: versions of stable branches that have the fix."""

    id: str
    effect: str
    introduced: str
    fixed: str
    fix: str
    severity: Severity
    source: str
    stable: tuple[str, ...] = ()


@cache
def known_bugs() -> tuple[Bug, ...]:
    """All bugs of the list."""
    text = (Path(__file__).parents[1] / "kernel_bugs.toml").read_bytes()
    return parse_toml(text, dict[Literal["bug"], tuple[Bug, ...]], "kernel_bugs.toml")["bug"]


def has_bug(bug: Bug, version: Version) -> bool | None:
    """Whether a version has a bug; None if its branch had the bug, and may have the fix."""
    introduced, fixed, *stable = (tuple(map(int, text.split("."))) for text in (bug.introduced, bug.fixed, *bug.stable))
    if not introduced[:2] <= version[:2] < fixed[:2]:
        return False
    fix = next((found[2] for found in stable if found[:2] == version[:2]), None)
    if version[2] == 0:
        return True
    return None if version[2] is None or fix is None else version[2] < fix


def exact_version(release: str, version: str) -> Version | None:
    """The version of the sources; None if the release does not begin with numbers.

    Debian names the version of the sources in ``uname -v``. Where a number of the distribution follows the third
    number, as in 5.14.0-427, the third number is that of the distribution.
    """
    found = re.match(r"(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?(-\d)?", release)
    if not found:
        return None
    major, minor = int(found[1]), int(found[2])
    of_debian = re.search(rf"Debian {major}\.{minor}\.(\d{{1,4}})", version)
    if of_debian:
        return major, minor, int(of_debian[1])
    return major, minor, None if found[4] else int(found[3] or 0)


def open_bugs(facts: Facts, check: Check) -> Judgement:
    """Whether the kernel's version has a bug that delays real-time threads."""
    begin = facts.record.begin
    version = exact_version(begin.kernel_release, begin.kernel_version)
    read = (Reading("uname -rv", State.HERE, f"{begin.kernel_release} {begin.kernel_version}"),)
    if version is None:
        return unknown(read, "The version of the kernel is not known.")
    states = [(bug, has_bug(bug, version)) for bug in known_bugs()]
    has, maybe = ([bug for bug, state in states if state is wanted] for wanted in (True, None))
    if has:
        worst = _worst(bug.severity for bug in has)
        return finding(" ".join(f"{bug.effect} ({bug.fix})" for bug in has), read, worst)
    if maybe:
        sentence = f"{MAY_BE_FIXED} {' '.join(bug.effect for bug in maybe)}"
        return Judgement(Outcome.UNKNOWN, sentence, read, _worst(bug.severity for bug in maybe))
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
    listed = {bit: Severity(severity) for severity, bits in check.names.items() for bit in bits}
    worst = _worst(listed.get(bit, check.severity) if bit in check.meaning else Severity.LOW for bit in on)
    reasons = ", ".join(check.meaning.get(bit, f"bit {bit}") for bit in on)
    return finding(f"The kernel is tainted: {reasons}.{names}", (file,), worst, modules)
