# SPDX-License-Identifier: Apache-2.0
"""Judge clocks: what tells the time, what raises the timer's interrupt, and who adjusts them."""

import re
from collections.abc import Mapping

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading, State, parse_cpu_mask
from rtproof.core.printable import clean

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
    isolated = facts.isolated
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
