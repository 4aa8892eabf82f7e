# SPDX-License-Identifier: Apache-2.0
"""Was the target in a state in which a latency means something: clock, throttling, guest, kernel log?"""

import re
from collections.abc import Iterator

from rtproof.analysis.checks.case import INVALID, UNAVAILABLE, WARNING, Case, Check, sentence_list, thread_name
from rtproof.analysis.model import Doubt
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import duration, percent
from rtproof.analysis.simulated import WORDS, simulated
from rtproof.analysis.virtual_time import processors, virtual_time
from rtproof.record import EndReason, Moment

CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
TRUSTED_CLOCKS = ("tsc", "arch_sys_counter", "riscv_clocksource", "timebase")
"""Counters of the CPU itself, read in user space. Others cost a microsecond per reading, or tick coarsely."""
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
NEAR_LIMIT = 0.5
"""Share of the kernel's budget for real-time threads from which throttling is near."""
_STEAL_FIELD = 8
_TICKS_PER_SECOND = 100
"""USER_HZ, the same on every Linux."""
_THROTTLED = re.compile(r"RT throttling activated|throttled|temperature above threshold", re.IGNORECASE)
_CLOCK_FAULT = re.compile(r"clocksource.*(unstable|skew)|switched to clocksource", re.IGNORECASE)


def clock_changed(case: Case) -> Iterator[Doubt]:
    start, end = (case.file(CLOCK_SOURCE, moment) for moment in (Moment.START, Moment.END))
    lines = [e.text for e in case.events("kernel") if _CLOCK_FAULT.search(e.text)]
    if start and end and start != end:
        lines.insert(0, f"{start} at the start, {end} at the end")
    if lines:
        what = f"the clock source changed during the run: {sentence_list(lines)}"
        yield Doubt("clock-changed", INVALID, what, "find out why the kernel gave up its clock, and measure again")


def clock_source(case: Case) -> Iterator[Doubt]:
    source = case.file(CLOCK_SOURCE, Moment.START)
    if source and source not in TRUSTED_CLOCKS:
        cost = case.number("clock_read_ns", Moment.START)
        reading = f" (a reading costs {cost} ns)" if cost else ""
        what = f"the clock is {source}, not a counter of the CPU{reading}"
        yield Doubt(
            "clock-source", WARNING, what, f"where there is a choice, boot with one of {', '.join(TRUSTED_CLOCKS)}"
        )


def clock_stepped(case: Case) -> Iterator[Doubt]:
    if case.events("clock_stepped"):
        what = "the wall clock was set during the run: times of day may be wrong, latencies are not"
        yield Doubt("clock-stepped", WARNING, what, "let the target set its clock before the run")


def throttled(case: Case) -> Iterator[Doubt]:
    lines = [e.text for e in case.events("kernel") if _THROTTLED.search(e.text)]
    if lines:
        what = f"the kernel throttled during the run: {sentence_list(lines)}"
        yield Doubt("throttled", INVALID, what, "give real-time threads enough budget, and the CPU enough cooling")


def rt_budget(case: Case) -> Iterator[Doubt]:
    """The kernel stops all real-time threads of a CPU that have used up their share of each second."""
    runtime, period = (case.file(path, Moment.START) or "" for path in (RT_RUNTIME, RT_PERIOD))
    if not runtime.isdigit() or case.fact("policy") not in ("fifo", "rr"):
        return
    budget = int(runtime) / (int(period) if period.isdigit() and int(period) else 1_000_000)
    for summary in case.summaries:
        used_ns = case.number("cpu_time_ns", Moment.END, summary.series.thread)
        if used_ns and summary.span_ns and used_ns / summary.span_ns > NEAR_LIMIT * budget:
            share = percent(round(used_ns / summary.span_ns, 3))
            what = f"thread {summary.series.thread} used {share} of a CPU; the kernel throttles at {percent(budget)}"
            yield Doubt("rt-budget", WARNING, what, "take a longer period; the thread leaves the system no room")


def guard(case: Case) -> Iterator[Doubt]:
    """The agent's own guard took the real-time policy away, to keep the machine alive."""
    end = case.record.end
    texts = [f"{thread_name(e.thread)} {e.text}" for e in case.events("budget")]
    if texts or (end and end.reason is EndReason.GUARD):
        what = f"the guard ended the run: {sentence_list(texts) or (end.text if end else '')}"
        yield Doubt("guard", INVALID, what, "take a longer period or fewer threads")


def steal(case: Case) -> Iterator[Doubt]:
    start, end = (_steal_ticks(case, moment) for moment in (Moment.START, Moment.END))
    if start is not None and end is not None and end > start:
        stolen = duration((end - start) * SECOND_NS // _TICKS_PER_SECOND)
        what = (
            f"the hypervisor took {stolen} of CPU time from this guest during the run, and can take any time it likes"
        )
        yield Doubt("steal", WARNING, what, "measure on the hardware, or on a host that leaves the CPUs alone")


def counts_instructions(case: Case) -> Iterator[Doubt]:
    made_by = virtual_time(case.record)
    if made_by:
        what = f"the figures are of virtual time, which counts instructions ({made_by})"
        yield Doubt("virtual-time", WARNING, what, "measure on the hardware that will be used")


def takes_turns(case: Case) -> Iterator[Doubt]:
    """Virtual time passes for all processors while one of them runs, so that a latency is mostly the others' turns."""
    if virtual_time(case.record) and (count := processors(case.record)) > 1:
        what = (
            f"in virtual time {count} processors share one stream of instructions and take turns: each stands still "
            "while another runs, and that is in the latencies"
        )
        yield Doubt("virtual-smp", INVALID, what, "measure in virtual time with one processor (cpus=1)")


def no_machine(case: Case) -> Iterator[Doubt]:
    process = simulated(case.record)
    if process:
        what = f"{WORDS} ({process})"
        yield Doubt("simulated", WARNING, what, "measure a machine; this only shows what is said of a run")


def guest(case: Case) -> Iterator[Doubt]:
    """Not of one with virtual time, of which more is said."""
    if virtual_time(case.record):
        return
    text = case.file("/proc/cpuinfo", Moment.START) or ""
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    if flags and "hypervisor" in flags[1].split():
        what = "this is a virtual machine: nothing measured in it bounds what the hardware or the next host does"
        yield Doubt("guest", WARNING, what, "measure on the hardware that will be used")


def kernel_log(case: Case) -> Iterator[Doubt]:
    log = case.fact("kmsg", Moment.START) or ""
    if log.startswith(UNAVAILABLE):
        what = f"the kernel's log could not be read ({_reason(log)}), so throttling and kernel errors would not be seen"
        yield Doubt("no-kernel-log", WARNING, what, "allow reading /dev/kmsg (root, or kernel.dmesg_restrict=0)")


def _steal_ticks(case: Case, moment: Moment) -> int | None:
    fields = (case.file("/proc/stat", moment) or "").partition("\n")[0].split()
    return int(fields[_STEAL_FIELD]) if len(fields) > _STEAL_FIELD and fields[_STEAL_FIELD].isdigit() else None


def _reason(text: str) -> str:
    return text.partition(":")[2].strip() or "no reason is known"


CHECKS: tuple[Check, ...] = (
    no_machine,
    clock_changed,
    clock_source,
    clock_stepped,
    throttled,
    rt_budget,
    guard,
    steal,
    counts_instructions,
    takes_turns,
    guest,
    kernel_log,
)
