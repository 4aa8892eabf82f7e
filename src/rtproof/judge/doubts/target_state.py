# SPDX-License-Identifier: Apache-2.0
"""Check the target: clock, throttling, guest, kernel log, a co-kernel beside Linux, and the link of a streamed run."""

import re
from collections.abc import Iterator, Sequence

from rtproof.core.phrases import duration, instant, percent, quantity
from rtproof.core.units import whole_number
from rtproof.judge.doubts.case import INVALID, UNAVAILABLE, WARNING, Check, CheckedRun, sentence_list, thread_name
from rtproof.record.contents import EndReason, Moment
from rtproof.summary.measured_kernel import core_beside, kernel_config, mode_switches, process_in_name
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.recorded_facts import (
    IMPORTED_EVENT,
    SIMULATED_SENTENCE,
    is_simulated,
    long_turns_clause,
    online_processors,
    turns_of_processors,
    virtual_time_clock,
)
from rtproof.summary.streaming import dropped_samples, link_work, times_away
from rtproof.summary.summary_model import Doubt
from rtproof.summary.target_threads import FOREIGN, own_threads

CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
TRUSTED_CLOCKS = ("tsc", "arch_sys_counter", "riscv_clocksource", "timebase")
"""Counters of the CPU itself, read in user space. Other clocks cost a microsecond per reading, or tick coarsely."""
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
NEAR_LIMIT = 0.5
"""If a thread uses more than this share of the kernel's budget for real-time threads, throttling is near."""
_STEAL_FIELD = 8
_TICKS_PER_SECOND = 100
"""USER_HZ, the same on every Linux."""
_THROTTLED = re.compile(r"RT throttling activated|throttled|temperature above threshold", re.IGNORECASE)
_CLOCK_FAULT = re.compile(r"clocksource.*(unstable|skew)|switched to clocksource", re.IGNORECASE)


def clock_changed(case: CheckedRun) -> Iterator[Doubt]:
    start, end = (case.file(CLOCK_SOURCE, moment) for moment in (Moment.START, Moment.END))
    lines = [e.text for e in case.events("kernel") if _CLOCK_FAULT.search(e.text)]
    if start and end and start != end:
        lines.insert(0, f"{start} at the start, {end} at the end")
    if lines:
        what = "the clock source changed during the run"
        yield Doubt("clock-changed", INVALID, what, "see the kernel's log", sentence_list(lines))


def clock_source(case: CheckedRun) -> Iterator[Doubt]:
    source = case.file(CLOCK_SOURCE, Moment.START)
    if source and source not in TRUSTED_CLOCKS:
        cost = case.number("clock_read_ns", Moment.START)
        reading = f"a reading costs {cost} ns; " if cost else ""
        detail = f"{reading}counters of a CPU are {', '.join(TRUSTED_CLOCKS)}; some CPUs have none"
        remedy = "boot with clocksource=, if the CPU has a counter"
        yield Doubt("clock-source", WARNING, f"the clock is {source}", remedy, detail)


def clock_stepped(case: CheckedRun) -> Iterator[Doubt]:
    if case.events("clock_stepped"):
        what, detail = "the wall clock was set during the run", "times of day may be wrong, latencies are not"
        yield Doubt("clock-stepped", WARNING, what, "set it before the run", detail)


def throttled(case: CheckedRun) -> Iterator[Doubt]:
    lines = [e.text for e in case.events("kernel") if _THROTTLED.search(e.text)]
    if lines:
        budget = [line for line in lines if "RT throttling" in line]
        # The kernel says "RT throttling activated" only once per boot, so a count would be no number of stops.
        what = "the kernel throttled real-time threads" if budget else "the kernel throttled a CPU"
        heat = len(lines) > len(budget)
        remedy = " and ".join(["raise sched_rt_runtime_us"] * bool(budget) + ["cool the CPU"] * heat)
        yield Doubt("throttled", INVALID, what, remedy, sentence_list(lines))


def rt_budget(case: CheckedRun) -> Iterator[Doubt]:
    """A thread near the kernel's budget. The kernel stops real-time threads that used up their share of a second."""
    runtime, period = (case.file(path, Moment.START) or "" for path in (RT_RUNTIME, RT_PERIOD))
    runs_us = whole_number(runtime)
    if runs_us is None or case.fact("policy") not in ("fifo", "rr"):
        return
    budget = runs_us / (whole_number(period) or 1_000_000)
    for summary in case.summaries:
        used_ns = case.number("cpu_time_ns", Moment.END, summary.series.thread)
        if used_ns and summary.span_ns and used_ns / summary.span_ns > NEAR_LIMIT * budget:
            share = percent(round(used_ns / summary.span_ns, 3))
            what = f"thread {summary.series.thread} used {share} of its CPU"
            detail = f"the kernel throttles at {percent(budget)}; the thread leaves the system no room"
            yield Doubt("rt-budget", WARNING, what, "take a longer period", detail)


def guard(case: CheckedRun) -> Iterator[Doubt]:
    """The agent's guard ended the run: it took the real-time policy away to keep the machine alive."""
    end = case.record.end
    texts = [f"{thread_name(e.thread)} {e.text}" for e in case.events("budget")]
    if texts or (end and end.reason is EndReason.GUARD):
        detail = sentence_list(texts) or (end.text if end else "")
        yield Doubt(
            "guard", INVALID, "the agent's guard ended the run", "take a longer period or fewer threads", detail
        )


def steal(case: CheckedRun) -> Iterator[Doubt]:
    lines = (
        (case.file("/proc/stat", moment) or "").partition("\n")[0].split() for moment in (Moment.START, Moment.END)
    )
    start, end = (whole_number(fields[_STEAL_FIELD]) if len(fields) > _STEAL_FIELD else None for fields in lines)
    if start is not None and end is not None and end > start:
        stolen = duration((end - start) * SECOND_NS // _TICKS_PER_SECOND)
        detail = "this is steal time, which the guest cannot limit"
        yield Doubt("steal", WARNING, f"the host took {stolen} of CPU time", "measure on bare metal", detail)


def counts_instructions(case: CheckedRun) -> Iterator[Doubt]:
    if made_by := virtual_time_clock(case.record):
        detail = f"virtual time counts instructions ({made_by})"
        yield Doubt("virtual-time", WARNING, "the figures are of virtual time", "measure on bare metal", detail)


LONGEST_TURN_US = 100
"""Longer turns hide what a kernel does. The largest latency of 6.1 with PREEMPT_RT under mmap was 21 us with turns of
4 us, 53 us with 100 us, and 346 us with 1,000 us."""


def takes_turns(case: CheckedRun) -> Iterator[Doubt]:
    """Several processors in virtual time. Time passes for all while one runs.

    With short turns and with every processor busy, their speeds are constant, and latencies rank systems. Without, a
    latency is mostly the turn of another processor.
    """
    count, turns = online_processors(case.record), turns_of_processors(case.record)
    if not virtual_time_clock(case.record) or (count == 1 and not turns.turn_us):
        return
    remedy = "measure with cpus=1"
    if count == 1:
        what = "the guest ran only 1 of its processors"
        detail = "boot arguments limit its kernel, it was built without SMP, or the others were taken off line"
        yield Doubt("virtual-smp", INVALID, what, remedy, detail)
    elif not 0 < turns.turn_us <= LONGEST_TURN_US or turns.soakers_count != count or not all(turns.shares):
        what = f"{count} processors share one stream of instructions"
        detail = (
            f"short turns and a soaker for each have to keep their speeds constant ({turns.turn_us} us, "
            f"{turns.soakers_count} of {count} soakers), so a latency may be the time that other processors ran"
        )
        yield Doubt("virtual-smp", INVALID, what, remedy, detail)
    else:
        parts = ", ".join(
            f"CPU {cpu} {'' if cpu else 'has '}{percent(share)}" for cpu, share in enumerate(turns.shares)
        )
        of_each = f" ({parts} of the instructions)" if len(turns.shares) == count else ""
        detail = (
            f"in virtual time each has a part of the speed of one{of_each}: the figures rank systems and show missing "
            "isolation; they are not those of parallel hardware"
        )
        what, long = f"{count} processors take turns of {turns.turn_us} us", long_turns_clause(turns.turn_us)
        detail += f"; {long}" if long else ""
        yield Doubt("virtual-turns", WARNING, what, "compare each CPU only with itself", detail)


def no_machine(case: CheckedRun) -> Iterator[Doubt]:
    if process := is_simulated(case.record):
        yield Doubt("simulated", WARNING, SIMULATED_SENTENCE, "measure a machine", process)


def guest(case: CheckedRun) -> Iterator[Doubt]:
    """A run in a virtual machine. With virtual time other doubts say more, so this one does not come."""
    flags = re.search(r"^flags\s*:(.*)$", case.file("/proc/cpuinfo", Moment.START) or "", re.MULTILINE)
    if flags and "hypervisor" in flags[1].split() and not virtual_time_clock(case.record):
        detail = "nothing measured in it bounds what the hardware or the next host does"
        yield Doubt("guest", WARNING, "this is a virtual machine", "measure on bare metal", detail)


def kernel_log(case: CheckedRun) -> Iterator[Doubt]:
    log = case.fact("kmsg", Moment.START) or ""
    if log.startswith(UNAVAILABLE):
        why = log.partition(":")[2].strip() or "no reason is known"
        detail = (
            f"{why}; throttling and kernel errors would not be seen; root may read it, with kernel.dmesg_restrict=0 "
            "everybody"
        )
        yield Doubt("no-kernel-log", WARNING, "the kernel's log is unread", "allow reading /dev/kmsg", detail)


TELLING = re.compile(
    r"scheduling while atomic|sleeping function called from invalid context|soft lockup|hard LOCKUP|rcu.*stall"
    r"|NETDEV WATCHDOG|blocked for more than|^BUG:|\bBUG: |Oops",
    re.IGNORECASE,
)


def kernel_faults(case: CheckedRun) -> Iterator[Doubt]:
    """What the kernel logged during the run: a part of it broke the kernel's own rules, or stood still."""
    lines = list(dict.fromkeys(event.text for event in case.events("kernel") if TELLING.search(event.text)))
    if lines:
        what = f"the kernel logged {quantity(len(lines), 'fault')} during the run"
        yield Doubt("kernel-log", WARNING, what, "mend what it reports", sentence_list(lines))


def another_tool(case: CheckedRun) -> Iterator[Doubt]:
    """The samples are those of another tool, which notes less than our agent does."""
    events = case.events(IMPORTED_EVENT)
    from_trace = case.record.fact("probe") == FOREIGN and not case.record.begin.agent_version
    if events or from_trace:
        tool = case.summaries[0].series.probe if case.summaries else "another tool"
        what = "policy, priority, faults, clock and load are unchecked"
        detail = f"{'a trace of another tool' if from_trace else tool} does not note them"
        yield Doubt("not-checked", WARNING, what, "use rtproof run", detail)
    yield from format_doubt([event.text for event in events])


def format_doubt(notes: Sequence[str]) -> Iterator[Doubt]:
    """What the format of another tool's file cannot tell; nothing without notes."""
    if notes:
        what = "the file format does not tell everything"
        yield Doubt("format", WARNING, what, "mind that when you compare", "; ".join(notes))


SYSTEM_CHECKS: tuple[Check, ...] = (
    another_tool, no_machine, clock_changed, clock_source, clock_stepped, throttled, rt_budget, guard, steal,
    counts_instructions, takes_turns, guest, kernel_log, kernel_faults,
)  # fmt: skip


def in_band(case: CheckedRun) -> Iterator[Doubt]:
    """A co-kernel runs beside Linux. Its tasks do not wait for Linux, and rtproof measures only threads of Linux."""
    if core := core_beside(case.record):
        detail = (
            f"the measured threads are of Linux; the tasks of {core} run before them, and were not measured; "
            "its own tool measures them (Xenomai: latency; EVL: latmus; RTAI: latency)"
        )
        yield Doubt("in-band", WARNING, f"in-band: {core} runs beside Linux", "use its own tool", detail)


def core_unseen(case: CheckedRun) -> Iterator[Doubt]:
    """A kernel that was built with a co-kernel, which the agent does not see. It may be switched off or hidden."""
    config = kernel_config(case.record)
    built = next((name for name in ("XENOMAI", "EVL") if config and config.has(name)), None)
    if config and built and not core_beside(case.record):
        what = "a co-kernel is built in and not to be seen"
        detail = (
            f"CONFIG_{built} in {config.path}, but neither /proc nor /sys shows whether it runs beside Linux; the boot "
            "options xenomai.state or evl.state may tell"
        )
        yield Doubt("core-unseen", WARNING, what, "mount /proc and /sys", detail)


def mode_switching(case: CheckedRun) -> Iterator[Doubt]:
    """Measured threads that left the co-kernel for Linux. They then wait for Linux, so they measure neither kernel."""
    own = own_threads(case.record)
    rises = [
        f"{thread} by {end - start:,}"
        for thread, (start, end) in mode_switches(case.record).items()
        if start is not None and end is not None and end > start and process_in_name(thread) in own
    ]
    if rises:
        what = f"{quantity(len(rises), 'thread')} left the co-kernel for Linux"
        detail = f"mode switches rose for {sentence_list(rises)}"
        yield Doubt("mode-switches", INVALID, what, "find the call of Linux", detail)


COKERNEL_CHECKS: tuple[Check, ...] = (in_band, core_unseen, mode_switching)


_SLIGHT = 0.01
"""From this share of one CPU on, the link matters wherever it ran: caches, memory and the bus are shared."""


def link_load(case: CheckedRun) -> Iterator[Doubt]:
    """The link worked on a measured CPU, or took much time on another one."""
    found = link_work(case.record)
    span_ns = max((summary.span_ns for summary in case.summaries), default=0)
    if found is None or not span_ns:
        return
    busy, cpu_ns, work = found
    measured = {summary.series.cpu for summary in case.summaries}
    on = sorted(busy if min(measured, default=-1) < 0 else busy & measured)  # Bound to none, it may run on any.
    of_a_cpu = cpu_ns / span_ns
    if on or of_a_cpu >= _SLIGHT:
        took = f"{100 * of_a_cpu:.2f} %"
        what = f"streaming took {took} of a CPU"
        if on:
            what = f"streaming used {quantity(len(on), 'measured CPU')} ({took})"
        where = f"on CPU {', '.join(map(str, on))}; " if on else ""
        yield Doubt("link-load", WARNING, what, "compare without --stream", f"{where}{took} of a CPU, {work}")


def samples_dropped(case: CheckedRun) -> Iterator[Doubt]:
    """The link was away or too slow for longer than the board's buffer lasts. Only single samples are lost by that."""
    stretches = dropped_samples(case.record)
    if not stretches:
        return
    first, last = (duration(max(ns, 0)) for ns in (stretches[0][2], max(to_ns for *_, to_ns in stretches)))
    away = [
        f"{_clock(case, since)} to {'the end' if until is None else _clock(case, until)}"
        for since, until in times_away(case.record)
    ]
    detail = (
        f"between {first} and {last}: the link was {f'away ({sentence_list(away)} UTC)' if away else 'too slow'}; the "
        "largest value and the counts of each second, the histogram and what is above the limits are whole, so the run "
        "is judged as with --record summary"
    )
    what = f"the link lost {quantity(sum(samples for _, samples, *_ in stretches), 'sample')}"
    yield Doubt("samples-dropped", WARNING, what, "mend it, or raise its buffer (stream=)", detail)


def _clock(case: CheckedRun, offset_ns: int) -> str:
    """Such as 12:00:05. The date is that of the run."""
    at = instant(case.record.begin.origin_realtime_ns, offset_ns)
    return at.partition(" ")[2].partition(".")[0] or "unknown"


LINK_CHECKS: tuple[Check, ...] = (samples_dropped, link_load)
