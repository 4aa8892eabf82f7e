# SPDX-License-Identifier: Apache-2.0
"""Judge clocks: what tells the time, what raises the timer's interrupt, and who adjusts them."""

import re
from collections.abc import Mapping

from rtproof.audit import conditions, readings
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading, State, parse_cpu_mask
from rtproof.core.printable import clean
from rtproof.record.contents import Moment

FOLDER = "/sys/devices/system/clocksource/clocksource0"
CURRENT, AVAILABLE = f"{FOLDER}/current_clocksource", f"{FOLDER}/available_clocksource"


def clock_source(facts: Facts, check: Check) -> Judgement:
    """The clock source is quick to read, and stayed the same."""
    current = facts.read(CURRENT)
    if not current.here:
        return readings.missing(check, [current])
    end = facts.read(CURRENT, Moment.END)
    if end.here and end.word != current.word:
        sentence = f"The kernel left the clock source {current.word} for {end.word} while the facts were collected."
        return readings.finding(clean(sentence), [current, end])
    if current.word in check.meaning:
        available = facts.read(check.read[1])
        faster = [word for word in available.text.split() if word in check.names["fast"]]
        sentence = f"The time is read from {current.word}: {check.meaning[current.word]}. "
        no_faster = "The kernel offers no faster one." if available.here else "The other clock sources are not known."
        sentence += f"{clean(faster[0])} is there as well." if faster else no_faster
        return readings.finding(sentence, [current, available], None, faster[:1])
    if current.word in check.names["fast"]:
        return readings.unknown([end]) if end.state is State.UNREADABLE else readings.good("", [current])
    sentence = f"Nobody here knows how long it takes to read the clock source {clean(current.word)}."
    return readings.judgement(Outcome.UNKNOWN, sentence, [current], Severity.LOW)


_OF_HOST = ("kvm-clock", "xen", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr")


def time_stamp_counter(facts: Facts, check: Check) -> Judgement:
    """The counter of the CPU runs at one rate, also while it sleeps, and the kernel trusts it."""
    current, cpu = facts.read(CURRENT), facts.read("/proc/cpuinfo")
    if current.word in _OF_HOST:
        sentence = f"The time comes from the host, as {clean(current.word)}."
        return readings.not_applicable(sentence, [current])
    log = facts.read("kernel-log")
    lines = [line for line in log.text.splitlines() if re.search(r"(?i)\btsc\b.*unstable", line)]
    if lines:
        return _distrust(current, re.sub(r"^(<\d+>)?\[[ \d.]+\] *", "", lines[-1]).rstrip("."))
    if not current.here or not cpu.here:
        return readings.unknown([current, cpu])
    if current.word not in ("tsc", "tsc-early"):
        if readings.hidden([log]):
            return readings.unknown([log])
        sentence = f"The time does not come from the TSC, but from {clean(current.word)}."
        return readings.not_applicable(sentence, [current])
    return _promised(current, cpu)


def _promised(current: Reading, cpu: Reading) -> Judgement:
    flags = re.findall(r"(?m)^flags\s*:(.*)$", cpu.text)
    if not flags:
        return readings.unknown([cpu], "/proc/cpuinfo names no flags of the CPUs.")
    lacking = [flag for flag in ("constant_tsc", "nonstop_tsc") if any(flag not in row.split() for row in flags)]
    if lacking:
        read = Reading("flags in /proc/cpuinfo", State.HERE, flags[0])
        return readings.finding(f"The CPU does not promise {' and '.join(lacking)}.", [read])
    return readings.good("", [current])


def _distrust(current: Reading, line: str) -> Judgement:
    found = [current, Reading("kernel-log", State.HERE, line)]
    if current.word in ("tsc", "tsc-early"):
        sentence = f"The time comes from the TSC, and the kernel's log says not to trust it: {clean(line)}."
        return readings.judgement(Outcome.CONFLICTING, sentence, found)
    return readings.finding(f"The kernel does not trust the TSC: {clean(line)}.", found)


_CPU_TIMERS = re.compile(
    r"lapic(-deadline)?|arch_sys_timer|arch_mem_timer|mct_tick\d+|riscv_timer_clockevent|decrementer|Constant"
    r"|local_timer|twd|xen|Hyper-V clockevent|hv-clockevent|comparator|mips|sh_tmu.*|kvm-clockevent"
)
_SLOW_TIMERS = re.compile(r"pit|hpet\d*|tc_clkevt|at91_tick|jiffies|dummy_timer|<NULL>|bc_hrtimer")
_DEVICE = re.compile(r"^(Broadcast device|Per CPU device: (\d{1,6}))\s*\n\s*Clock Event Device:\s*(.*)$", re.MULTILINE)
_BROADCAST = re.compile(r"^tick_broadcast_mask:\s*([0-9a-f,]{1,4096})$", re.MULTILINE)


def timer_devices(facts: Facts, check: Check) -> Judgement:
    """Each CPU that matters has a timer of its own, and needs no other device while it sleeps."""
    both = [facts.read(source) for source in check.read]
    found = next((one for one in both if one.here), None)
    if found is None:
        return readings.missing(check, [one for one in both if one.state is not State.NOT_COLLECTED] or both)
    timers = {int(cpu): name.strip() for _, cpu, name in _DEVICE.findall(found.text) if cpu}
    if not timers:
        return readings.unknown([found], f"{found.path} names no timer of a CPU.")
    isolated = conditions.isolated_cpus(facts)
    timers = {cpu: name for cpu, name in timers.items() if not isolated or cpu in isolated}
    broadcast = _BROADCAST.search(found.text)
    waiting = (parse_cpu_mask(broadcast[1]) if broadcast else None) or frozenset()
    return _judge_timers(found, timers, waiting)


def _judge_timers(found: Reading, timers: Mapping[int, str], waiting: frozenset[int]) -> Judgement:
    slow = [cpu for cpu, name in timers.items() if _SLOW_TIMERS.fullmatch(name)]
    broadcast = sorted(cpu for cpu in timers if cpu in waiting)
    strange = [cpu for cpu, name in timers.items() if not _CPU_TIMERS.fullmatch(name)]
    shown = [Reading(found.path, found.state, f"CPU {cpu}: {name}") for cpu, name in list(timers.items())[:4]]
    if slow:
        sentence = f"The timer of CPU {slow[0]} is {clean(timers[slow[0]])}, which is slow to program or shared."
        return readings.finding(sentence, shown)
    if broadcast:
        sentence = f"The timer of CPU {broadcast[0]} stops in deep idle states; another CPU must wake it up then."
        return readings.finding(sentence, shown)
    if strange:
        sentence = f"Nobody here knows how fast the timer {clean(timers[strange[0]])} of CPU {strange[0]} is."
        return readings.judgement(Outcome.UNKNOWN, sentence, shown, Severity.LOW)
    if not timers:
        return readings.unknown([found], f"{found.path} does not name the timers of the isolated CPUs.")
    return readings.good("", shown)


_LEAST_SLEEP_NS = 10_000_000
"""A change of boot time against monotonic time below this is the rounding of two readings."""
_ROW = re.compile(r"^(offset_ns|frequency_ppb|slept_ns) (-?\d{1,19})$", re.MULTILINE)


def adjustments(facts: Facts, check: Check) -> Judgement:
    """Nothing adjusted the clock and nothing suspended the machine between the two moments."""
    moments = readings.two_moments(facts, check.read[0])
    if not moments.pairs:
        return readings.missing(check, moments.missing)
    start, end = moments.pairs[0]
    before, after = (dict(_ROW.findall(one.text)) for one in (start, end))
    if any(key not in values for values in (before, after) for key in ("slept_ns", "frequency_ppb", "offset_ns")):
        return readings.unknown([start, end], f"{start.path} holds what this version does not understand.")
    slept = int(after["slept_ns"]) - int(before["slept_ns"])
    if slept < -_LEAST_SLEEP_NS:
        return readings.unknown([start, end], readings.COUNT_FELL)
    if slept > _LEAST_SLEEP_NS:
        sentence = f"The machine was suspended for {slept / 1e9:.1f} s between the two moments."
        return readings.finding(sentence, [start, end], Severity.HIGH)
    if before["frequency_ppb"] != after["frequency_ppb"] or int(after["offset_ns"]):
        sentence = f"A time service adjusts the clock: its rate was {before['frequency_ppb']} and then "
        sentence += f"{after['frequency_ppb']} ppb, with {after['offset_ns']} ns still to correct."
        return readings.finding(sentence, [start, end])
    return readings.good("", [start, end])
