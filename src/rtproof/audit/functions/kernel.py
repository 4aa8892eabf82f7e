# SPDX-License-Identifier: Apache-2.0
"""Judgements of how the kernel was built, and of what it says about itself."""

import re
from collections.abc import Callable, Sequence

from rtproof.audit import conditions, kernel_bugs
from rtproof.audit.audit_model import Judgement, Outcome, ReadValue
from rtproof.audit.boot_lists import read_cpu_word
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, KernelVersion, Reading, State, parse_cpu_mask
from rtproof.audit.readings import finding, good, hidden, missing, not_applicable, read_source, read_values, unknown
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.core.units import format_cpus
from rtproof.record.contents import Moment
from rtproof.summary import measured_kernel
from rtproof.summary.measured_kernel import Confidence, PreemptionStatement

ROOT = re.compile(r"(?m)^Uid:\s*\d+\s+0\s")


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


def idle_tick(facts: Facts, check: Check) -> Judgement:
    """Whether the tick stops on an idle CPU."""
    asked, full = facts.parameter("nohz"), facts.read("/sys/devices/system/cpu/nohz_full")
    if facts.cpus(full.path):
        sentence = "Some CPUs run without a tick on purpose (nohz_full), which needs a tick that can stop."
        return not_applicable(sentence, (full,))
    if asked.here and asked.word == "off":
        return good("The command line keeps the tick on.", (asked,))
    stops = [facts.option(name) for name in ("NO_HZ_IDLE", "NO_HZ_FULL", "NO_HZ")]
    periodic = facts.option("HZ_PERIODIC")
    on = [option for option in stops if option.here]
    if periodic.here and not on:
        return good("", (periodic,))
    if not on:
        return unknown(hidden(stops)) if hidden(stops) else good("The kernel never stops its tick.", stops)
    if not asked.here and not asked.absent:
        return unknown((asked,))
    sentence = "The tick does not run on idle CPUs, and restarting it delays each wake-up from idle."
    return finding(sentence, (on[0], asked))


# Real-time groups, threads of interrupts, RCU


def real_time_groups(facts: Facts, check: Check) -> Judgement:
    """Whether control groups divide the time of real-time threads."""
    built, off = facts.option("RT_GROUP_SCHED"), facts.option("RT_GROUP_SCHED_DEFAULT_DISABLED")
    asked, group = facts.parameter("rt_group_sched"), facts.read("rt-group")
    if built.absent:
        return good("", (built,))
    if not built.here:
        shows = group.here and group.word
        sentence = "The control group has a budget for real-time threads, so the kernel has RT_GROUP_SCHED."
        return finding(sentence, (group,)) if shows else unknown((built,))
    ignored = not _knows_group_parameter(facts)
    if not (ignored and facts.kernel) and (hidden((asked,)) or (asked.absent and hidden((off,)))):
        return unknown(hidden((asked, off)))
    if asked.here and ignored:
        return finding("RT_GROUP_SCHED is on, and this kernel does not know rt_group_sched.", (built, asked))
    if asked.word.lower() in ("0", "off", "n", "no", "false") if asked.here else off.here:
        return good("It is built in, and turned off at boot.", (built, asked, off))
    return finding("RT_GROUP_SCHED is on: groups divide real-time threads' time.", (built, asked))


def _knows_group_parameter(facts: Facts) -> bool:
    """Kernels since 6.16 know rt_group_sched, and earlier ones whose configuration names its default."""
    named = facts.config is not None and "RT_GROUP_SCHED_DEFAULT_DISABLED" in facts.config.options
    return named or (facts.kernel is not None and not facts.kernel.is_before(KernelVersion(6, 16)))


def interrupt_threads(facts: Facts, check: Check) -> Judgement:
    """Whether a kernel without PREEMPT_RT runs interrupt handlers in threads."""
    asked, can = facts.parameter("threadirqs"), facts.option("IRQ_FORCED_THREADING")
    if hidden((asked,)):
        return unknown((asked,))
    if asked.absent:
        hint = " This kernel cannot do it, either." if can.absent else ""
        return finding(f"Interrupt handlers do not run in threads: threadirqs is not given.{hint}", (asked, can))
    if can.absent:
        return finding("threadirqs is given, but the kernel is built without IRQ_FORCED_THREADING.", (asked, can))
    return good("", (asked, can)) if can.here else unknown((can,))


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
    sentence = f"RCU runs callbacks on {quantity(len(left), 'isolated CPU')}: {_listed(left)}."
    return finding(sentence, (built, *asked))


def _kernel_list(facts: Facts, name: str, text: str) -> frozenset[int] | None:
    return read_cpu_word(name, text, facts.cpus("/sys/devices/system/cpu/possible"), facts.kernel).cpus


def _listed(cpus: frozenset[int]) -> str:
    return format_cpus(tuple(cpus))


def boosted_readers(facts: Facts, check: Check) -> Judgement:
    """Whether RCU raises the priority of readers that hold up its grace periods."""
    built, priority = facts.option("RCU_BOOST"), facts.read("/sys/module/rcutree/parameters/kthread_prio")
    if not built.here:
        return missing(check, (built,))
    if priority.here and priority.number() == 0:
        return finding("RCU_BOOST is built in, but RCU's threads have no real-time priority.", (built, priority))
    return good("", (built, priority))


def lazy_callbacks(facts: Facts, check: Check) -> Judgement:
    """Whether RCU collects callbacks for seconds."""
    built, now = facts.option("RCU_LAZY"), facts.read("/sys/module/rcutree/parameters/enable_rcu_lazy")
    asked, off = facts.parameter("rcutree.enable_rcu_lazy"), facts.option("RCU_LAZY_DEFAULT_OFF")
    if built.absent:
        return good("", (built,))
    if not built.here:
        return unknown((built,))
    if now.here and now.word in ("Y", "N", "1", "0"):
        on = now.word in ("Y", "1")
    elif hidden((asked, off)):
        return unknown(hidden((asked, off)))
    else:
        on = asked.word.lower() in ("1", "y", "on") if asked.here else off.absent
    return finding("RCU may hold callbacks back for seconds, and then run many at once.", (built, now)) if on else good(
        "It is built in, and off.", (built, now)
    )  # fmt: skip


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


_ALWAYS_IN_DEBUGFS = frozenset({"bdi", "clear_warn_once", "extfrag", "sched", "sched_features", "tracing"})
"""Names of which every kernel has some in debugfs. A list without any of them is no list of debugfs."""


def leak_detector(facts: Facts, check: Check) -> Judgement:
    """Whether kmemleak scans memory."""
    built, off = facts.option("DEBUG_KMEMLEAK"), facts.option("DEBUG_KMEMLEAK_DEFAULT_OFF")
    asked, folder = facts.parameter("kmemleak"), facts.read("/sys/kernel/debug/")
    names = frozenset(folder.text.split())
    if built.absent:
        return good("", (built,))
    if names & _ALWAYS_IN_DEBUGFS and "kmemleak" not in names and facts.config is None:
        return good("debugfs has no kmemleak.", (_shown(folder, "kmemleak", "none"),))
    if hidden((built, asked)):
        return unknown(hidden((built, asked)))
    if asked.word == "off" or (asked.absent and off.here):
        return good("It is built in, and off since the boot.", (built, asked))
    if asked.absent and not off.absent:
        return unknown((off,))
    return finding("The kernel looks for leaked memory with kmemleak.", (built, asked))


def slab_debugging(facts: Facts, check: Check) -> Judgement:
    """Whether each object of the kernel's allocator is checked."""
    always, counts, able = (facts.option(name) for name in ("SLUB_DEBUG_ON", "SLUB_STATS", "SLUB_DEBUG"))
    asked = [facts.parameter(name) for name in ("slub_debug", "slab_debug")]
    given = [reading for reading in asked if reading.here]
    if any(reading.word != "-" for reading in given):
        return finding("The command line has the allocator's objects checked.", given)
    if always.here and not given:
        return finding("The allocator checks each object.", (always,))
    if counts.here:
        return finding("The allocator counts what it does.", (counts,))
    if hidden((always, counts, *asked)):
        return unknown(hidden((always, counts, *asked)))
    if able.here:
        return good("SLUB_DEBUG is built in and not active.", (able,))
    return good("", (always, counts, able)) if able.absent else unknown((able,))


def scheduler_statistics(facts: Facts, check: Check) -> Judgement:
    """Whether the scheduler counts at each switch."""
    latency, built = facts.option("LATENCYTOP"), facts.option("SCHEDSTATS")
    now = facts.read("/proc/sys/kernel/sched_schedstats")
    if now.here and now.number() not in (0, 1):
        return unknown((now,), f"{now.path} holds what this version does not understand.")
    if now.here and now.number() == 1:
        return finding("The scheduler keeps statistics at each switch.", (now,))
    if latency.here:
        return finding("The kernel is built with LATENCYTOP.", (latency,))
    if hidden((latency,)) or (not now.here and hidden((now, built))):
        return unknown(hidden((latency, now, built)))
    if now.absent and built.here:
        return finding("The kernel is built with SCHEDSTATS, and has no switch for it.", (built, now))
    return good("", (now if now.here else built, latency))


TRACERS = ("/sys/kernel/tracing/available_tracers", "/sys/kernel/debug/tracing/available_tracers")


def _tracers(facts: Facts) -> Reading:
    found = [facts.read(path) for path in TRACERS]
    return next((reading for reading in found if reading.here), found[0])


def irqs_off_tracers(facts: Facts, check: Check) -> Judgement:
    """Whether tracers are built in that cost time even when they are not used."""
    options, tracers = [facts.option(name) for name in ("IRQSOFF_TRACER", "PREEMPT_TRACER")], _tracers(facts)
    there = {"irqsoff", "preemptoff", "preemptirqsoff"} & set(tracers.text.split())
    on = [option for option in options if option.here]
    if on or there:
        return finding("Costly tracers are built in: of disabled interrupts or preemption.", on or (tracers,))
    if tracers.here and "nop" in tracers.text.split():
        return good("", (tracers,))
    return unknown(hidden(options)) if hidden(options) else good("", options)


def tracers_for_diagnosis(facts: Facts, check: Check) -> Judgement:
    """Whether the tracers are there that explain a latency."""
    wanted, tracers = ("hwlat", "osnoise", "timerlat"), _tracers(facts)
    options = [facts.option(f"{name.upper()}_TRACER") for name in wanted]
    if tracers.here:
        gone = [name for name in wanted if name not in tracers.text.split()]
        read: Sequence[Reading] = (tracers,)
    elif hidden(options):
        return unknown([tracers, *hidden(options)])
    else:
        gone = [name for name, option in zip(wanted, options, strict=True) if not option.here]
        read = options
    return finding(f"The kernel lacks tracers that explain latencies: {', '.join(gone)}.", read) if gone else good(
        "", read
    )  # fmt: skip


# Firmware, displays, frequency


def firmware_calls(facts: Facts, check: Check) -> Judgement:
    """Whether the kernel may call the firmware on any CPU."""
    folder, asked = facts.read("/sys/firmware/efi/"), facts.parameter("efi")
    built_off = facts.option("EFI_DISABLE_RUNTIME")
    if folder.absent:
        return not_applicable("The machine was not started by EFI.", (folder,))
    if hidden((folder, asked)):
        return unknown(hidden((folder, asked)))
    words = asked.word.split(",")
    if "noruntime" in words or ((built_off.here or _does_without_firmware(facts)) and "runtime" not in words):
        return good("The kernel does not call the firmware.", (folder, asked, built_off))
    mask = facts.read("/sys/devices/virtual/workqueue/efi_runtime/cpumask")
    cpus, isolated = parse_cpu_mask(mask.word) if mask.here else None, conditions.isolated_cpus(facts)
    if cpus and isolated and not cpus & isolated:
        return good("The kernel calls the firmware on housekeeping CPUs only.", (mask,))
    if hidden((built_off,)) and "runtime" not in words:
        return unknown((built_off,))
    where = ", on isolated CPUs too" if isolated else ""
    return finding(f"The kernel may call the firmware{where}.", (asked, built_off, mask))


_EFI_OPTION = KernelVersion(5, 18)


def _does_without_firmware(facts: Facts) -> bool:
    """PREEMPT_RT forbade it from 5.15 on, and since 5.18 an option decides."""
    rt = facts.preemption.built.value == measured_kernel.RT
    kernel = facts.kernel
    return rt and kernel is not None and not kernel.is_before(KernelVersion(5, 15)) and kernel.is_before(_EFI_OPTION)


def default_governor(facts: Facts, check: Check) -> Judgement:
    """Whether frequencies are fixed from the boot on."""
    folder, able = facts.read("/sys/devices/system/cpu/cpufreq/"), facts.option("CPU_FREQ")
    if folder.here and not re.search(r"(?m)^policy\d+$", folder.text):
        return not_applicable("The kernel changes the frequency of no CPU here.", (folder,))
    if able.absent:
        return not_applicable("The kernel is built without CPU_FREQ, so it changes no frequency.", (able,))
    asked = facts.parameter("cpufreq.default_governor")
    if asked.here:
        sentence = f"The command line chooses the governor {clean(asked.word)}."
        return good("", (asked,)) if asked.word == "performance" else finding(sentence, (asked,))
    return _built_in_governor(facts, asked, folder)


def _built_in_governor(facts: Facts, asked: Reading, folder: Reading) -> Judgement:
    fixed = facts.option("CPU_FREQ_DEFAULT_GOV_PERFORMANCE")
    if hidden((asked, fixed)):
        return unknown(hidden((asked, fixed)))
    if fixed.here:
        return good("", (fixed,))
    if hidden((folder,)):
        return unknown((folder,))
    return finding("The default governor changes the frequency.", (fixed, asked))


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


def lockdown(facts: Facts, check: Check) -> Judgement:
    """Whether the kernel forbids even root to read and change its scheduler."""
    file, asked = facts.read("/sys/kernel/security/lockdown"), facts.parameter("lockdown")
    chosen = re.search(r"\[(\w+)\]", file.text)
    if chosen:
        sentence = f"The kernel is locked down: {chosen[1]}."
        return good("", (file,)) if chosen[1] == "none" else finding(sentence, (file,))
    line = next((line for line in facts.log.text.splitlines() if conditions.LOCKED_DOWN.search(line)), "")
    if line:
        return finding("The kernel's log says that it is locked down.", (_shown(facts.log, "Lockdown", line),))
    refused = facts.read("/sys/kernel/debug/sched/preempt")
    root = ROOT.search(facts.read("/proc/self/status").text)
    if root and "(EPERM)" in refused.reason:
        return finding("Root may not read files of debugfs, as in a kernel that is locked down.", (refused,))
    if asked.here and asked.word in ("integrity", "confidentiality"):
        return finding("The command line locks the kernel down.", (asked,))
    if file.absent:
        return good("This kernel has no lockdown.", (file,))
    return unknown((file,))


_TAINTS = {
    0: ("a proprietary module", Severity.MEDIUM), 1: ("a module was loaded by force", Severity.MEDIUM),
    2: ("a CPU out of its specification", Severity.MEDIUM), 3: ("a module was unloaded by force", Severity.MEDIUM),
    4: ("a machine check", Severity.HIGH), 5: ("a bad page", Severity.HIGH),
    6: ("a program set it", Severity.LOW), 7: ("the kernel died or had a bug", Severity.HIGH),
    8: ("an ACPI table was replaced", Severity.LOW), 9: ("a warning", Severity.MEDIUM),
    10: ("a staging driver", Severity.MEDIUM), 11: ("a bug of the firmware is worked around", Severity.LOW),
    12: ("a module from outside the kernel's sources", Severity.MEDIUM),
    13: ("a module without a signature", Severity.LOW),
    14: ("a soft lockup", Severity.HIGH), 15: ("the kernel was patched live", Severity.MEDIUM),
    16: ("the distribution set it", Severity.INFO), 17: ("the layout of structures is random", Severity.INFO),
    18: ("a test of the kernel ran", Severity.MEDIUM),
}  # fmt: skip


def taint(facts: Facts, check: Check) -> Judgement:
    """Which reasons the kernel has not to trust itself."""
    file = facts.read("/proc/sys/kernel/tainted")
    bits = file.number()
    if bits is None or bits < 0:
        sentence = f"{file.path} holds what this version does not understand." if file.here else ""
        return unknown((file,), sentence)
    if not bits:
        return good("", (file,))
    reasons = [_TAINTS.get(bit, (f"bit {bit}", Severity.LOW)) for bit in range(bits.bit_length()) if bits >> bit & 1]
    modules = [one.path.split("/")[3] for one in facts.match("/sys/module/*/taint") if one.here and one.word]
    names = f" Modules: {', '.join(map(clean, modules))}." if modules else ""
    worst = min((severity for _, severity in reasons), key=lambda severity: severity.rank)
    return finding(f"The kernel is tainted: {', '.join(text for text, _ in reasons)}.{names}", (file,), worst, modules)


_EVENTS = (
    (r"scheduling while atomic|sleeping function called", Severity.HIGH),
    (r"soft lockup|detected (?:expedited )?stalls?|blocked for more than", Severity.HIGH),
    (r"DL replenish lagged", Severity.HIGH),
    (r"hrtimer: interrupt took|NMI handler .*took too long", Severity.MEDIUM),
    (r"clocksource .*unstable|hogged CPU", Severity.MEDIUM),
    (r"perf: interrupt took too long", Severity.LOW),
)


def _message(line: str) -> str:
    """A line of the log without the level in front."""
    return re.sub(r"^<\d+>", "", line.strip()).rstrip(":.")


def logged_events(facts: Facts, check: Check) -> Judgement:
    """Whether the kernel's log has messages of late tasks."""
    if not facts.log.here:
        return missing(check, (facts.log,))
    lines = [
        (line, severity)
        for line in facts.log.text.splitlines()
        for severity in [next((severity for word, severity in _EVENTS if re.search(word, line, re.IGNORECASE)), None)]
        if severity
    ]
    if lines:
        lines.sort(key=lambda found: found[1].rank)
        worst, severity = lines[0]
        more = f" Such lines: {len(lines)}." if len(lines) > 1 else ""
        sentence = f"The kernel's log says: {clean(_message(worst))}.{more}"
        return finding(sentence, [_shown(facts.log, "a line", _message(line)) for line, _ in lines[:5]], severity)
    if facts.log_is_whole:
        return good("There is no such message since the boot.", (_shown(facts.log, "messages", "none"),))
    return unknown((facts.log,), "What is left of the log has no such message, but it does not reach back to the boot.")


_PROTECTION = re.compile(r"Not affected|Mitigation|[Vv]ulnerable|Unknown|[Mm]itigated|Processor|Retpoline|No microcode")


def mitigations(facts: Facts, check: Check) -> Judgement:
    """Which protections against flaws of the CPU are on. They cost time, and are no fault."""
    files = facts.match("/sys/devices/system/cpu/vulnerabilities/*")
    here = [file for file in files if file.here]
    if not here:
        return missing(check, files)
    strange = [file for file in here if not _PROTECTION.search(file.text)]
    if strange:
        return unknown(strange, f"{clean(strange[0].path)} holds what this version does not understand.")
    active = [file.path.rpartition("/")[2] for file in here if "Mitigation" in file.word]
    if active:
        return good(f"{quantity(len(active), 'protection')} of the CPU: {', '.join(active)}.", here[:3])
    return unknown(hidden(files)) if hidden(files) else good("No protection costs time.", here[:3])
