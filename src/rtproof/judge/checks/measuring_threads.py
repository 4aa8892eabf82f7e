# SPDX-License-Identifier: Apache-2.0
"""Check the measuring threads: policy, priority, CPU, memory and timers, at both ends of the run and in between."""

from collections.abc import Iterator

import numpy as np

from rtproof.core.phrases import duration, percent, value
from rtproof.core.units import whole_number
from rtproof.judge.checks.case import (
    INVALID,
    REAL_TIME,
    WARNING,
    Check,
    CheckedRun,
    sentence_list,
    severity_of,
    thread_name,
)
from rtproof.record.contents import Condition, Conditions, Counter, Moment
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Summary

RAW_CLOCK = "clock.raw"
NTP_PPM = 500
"""NTP never slews a clock by more than this (adjtimex(2))."""
CORRECTED_PPM = 200
"""A crystal is hardly further off. If a clock is slewed by more than this, it is still being set."""
MUCH_DELAY = 0.05
"""If a real-time thread waited for a CPU for more than this share of the time, something else ran before it."""
STOP_NS = 5_000_000
"""A stop this short is no longer than other delays."""
NOTICED_NS = SECOND_NS
"""On a busy machine the agent may notice this much later than its threads that it goes on after a stop."""
STAY = "let nothing change the affinity of the threads (cpusets, irqbalance, tuned) or take their CPU off line"
"""The remedy if a thread ran, or might have run, on another CPU."""
_MILLION = 1_000_000


def noted_elsewhere(case: CheckedRun, thread: int) -> bool:
    """Whether the thread itself noted activations on a CPU other than its own."""
    found = case.record.conditions.get(thread)
    return bool(found is not None and found.elsewhere.sum())


def cpu_between(case: CheckedRun) -> Iterator[Doubt]:
    """A thread that ran on another CPU than its own. A bound thread never leaves its CPU by itself."""
    for summary, found in _noted(case):
        elsewhere, noted = int(found.elsewhere.sum()), int(found.noted.sum())
        if not elsewhere:
            continue
        own, others = summary.series.cpu, _seen(found, Condition.CPU)
        length = f"about {duration(elsewhere / noted * summary.span_ns)} of {duration(summary.span_ns)}"
        every = case.fact("cpu_checks", Moment.START, found.thread) != "random activations"
        of = f"{elsewhere:,} of {noted:,} {'activations' if every else 'checks'}"
        what = f"thread {found.thread} ran on CPU {others} instead of CPU {own} for {length} ({of})"
        yield Doubt("cpu", INVALID, what, STAY)


def moved_between(case: CheckedRun) -> Iterator[Doubt]:
    """A bound thread that the kernel moved between CPUs. Only somebody who changes the affinity makes it do that.

    Threads that read their CPU at random activations only may miss a short stay elsewhere; the kernel counts each move.
    """
    for summary, found in _noted(case):
        moves = case.number("migrations", Moment.END, found.thread) or 0
        if moves > 0 and summary.series.cpu >= 0 and not noted_elsewhere(case, found.thread):
            own, times = summary.series.cpu, f"{moves:,} time{'s' if moves > 1 else ''}"
            moved = f"the kernel moved thread {found.thread} between CPUs {times} (warm-up included)"
            what = f"{moved}, although it is bound to CPU {own}"
            yield Doubt("moved", WARNING, what, STAY)


def affinity_between(case: CheckedRun) -> Iterator[Doubt]:
    """A changed affinity. It is harmless as long as the thread stays on its CPU; ``cpu_between`` says if it did not."""
    for summary, found in _noted(case):
        looks = int(found.other_affinity.sum())
        others = _seen(found, Condition.AFFINITY)
        last = case.fact("affinity", Moment.END, found.thread)
        if not looks and summary.series.cpu >= 0 and last is not None and last != str(summary.series.cpu):
            looks, others = 1, last
        if looks:
            seen = f"{looks} time{'s' if looks > 1 else ''} in looks once a second"
            what = f"thread {found.thread} was allowed on CPUs {others}, although nobody had asked for that ({seen})"
            yield Doubt("affinity", WARNING, what, STAY)


def policy_between(case: CheckedRun) -> Iterator[Doubt]:
    """Another policy during the run. Only random checks see a change that lasts less than a second."""
    wrong = [
        _share(found, found.other_policy, Condition.POLICY) for _, found in _noted(case) if found.other_policy.any()
    ]
    if wrong:
        what = f"policy {case.fact('policy')} was asked for, but random checks found another: {sentence_list(wrong)}"
        remedy = "find what changes it (rtkit, a throttling daemon, a co-kernel) and stop it"
        yield Doubt("policy-between", INVALID, what, remedy)


def priority_between(case: CheckedRun) -> Iterator[Doubt]:
    """Another priority during the run, found by random checks."""
    wrong = [
        _share(found, found.other_priority, Condition.PRIORITY)
        for _, found in _noted(case)
        if found.other_priority.any()
    ]
    if wrong:
        asked = case.fact("priority")
        what = f"priority {asked} was asked for, but random checks found another: {sentence_list(wrong)}"
        remedy = "let nothing change the priority of the threads while they measure"
        yield Doubt("priority-between", INVALID, what, remedy)


def run_delay(case: CheckedRun) -> Iterator[Doubt]:
    """A real-time thread that waited long for a CPU. It waits only while something else comes before it."""
    if case.fact("policy") not in ("fifo", "rr", "deadline"):
        return
    for summary, found in _noted(case):
        waited_ns = int(found.run_delay_ns.sum())
        if not summary.span_ns or case.fact("policy", Moment.START, found.thread) == "other":
            continue
        if waited_ns > MUCH_DELAY * summary.span_ns:
            switches = f"{int(found.involuntary_switches.sum()):,} involuntary switches"
            share = percent(round(waited_ns / summary.span_ns, 3))
            what = f"thread {found.thread} was ready to run and waited for a CPU {share} of the time ({switches})"
            remedy = "see what ran before it: threads of higher priority, throttling, a fair server, a busy hypervisor"
            yield Doubt("run-delay", WARNING, what, remedy)


def traced(case: CheckedRun) -> Iterator[Doubt]:
    """A tracer was attached. It stops a thread at every signal, and usually at every system call."""
    threads = {summary.series.thread for summary in case.summaries}
    who = {
        (fact.thread, fact.value.strip())
        for fact in case.record.facts
        if fact.key == "tracer" and fact.thread in threads and fact.value[:1].isdigit()
    }
    if who:
        names = [f"thread {thread} by process {name}" for thread, name in sorted(who)]
        what = f"a debugger or tracer was attached: {sentence_list(names)}"
        yield Doubt("traced", INVALID, what, "measure without strace, gdb or another tracer on the agent")


def stopped(case: CheckedRun) -> Iterator[Doubt]:
    """Somebody stopped the agent and let it go on. This causes a delay that the system itself does not have.

    SIGCONT alone is no stop: systemd sends it after SIGTERM. So a long delay must have ended near the signal.
    """
    asked_to_end = [event.time_ns - NOTICED_NS for event in case.events("interrupted", "host_gone")]
    continued = [event for event in case.events("continued") if event.time_ns < min(asked_to_end, default=1 << 63)]
    for summary in case.summaries:
        due_ns, value_ns = summary.top.due_ns, summary.top.value
        end_ns = due_ns + value_ns
        for event in continued:
            near = (value_ns >= STOP_NS) & (due_ns < event.time_ns) & (np.abs(end_ns - event.time_ns) <= NOTICED_NS)
            if near.any():
                thread, length = summary.series.thread, duration(int(value_ns[near].max()))
                at = duration(event.time_ns)
                why = f"somebody had stopped the agent and let it go on (SIGCONT at {at})"
                what = f"thread {thread} was {length} late because {why}"
                yield Doubt("stopped", INVALID, what, "let nobody stop the agent while it measures (SIGSTOP, Ctrl-Z)")
                break


def clock_slewed(case: CheckedRun) -> Iterator[Doubt]:
    """A clock that ran too fast or too slow. It makes each latency longer or shorter by the same share."""
    counter = next((one for one in case.record.counters if one.name == RAW_CLOCK and not one.grows), None)
    if counter is None or counter.time_ns.size < 2:
        return
    passed_ns, slewed = _slew_ppm(counter)
    beyond_ns = int(passed_ns[np.abs(slewed) > NTP_PPM].sum())
    most = slewed[np.argmax(np.abs(slewed))]
    direction = "fast" if most > 0 else "slow"
    way = f"CLOCK_MONOTONIC ran up to {abs(most):,.0f} ppm too {direction} against the hardware's clock"
    if beyond_ns:
        what = f"{way}, beyond the {NTP_PPM} ppm of NTP for {duration(beyond_ns)} of {duration(int(passed_ns.sum()))}"
        remedy = "find what set the tick or frequency of the clock (adjtimex, chrony's maxslewrate), and measure again"
        yield Doubt("clock-slewed", severity_of(beyond_ns, int(passed_ns.sum())), what, remedy)
    elif abs(most) > CORRECTED_PPM:
        what = f"{way}: the clock is being corrected, so every time is wrong by that share"
        yield Doubt("clock-slewed", WARNING, what, "let the target set its clock before the run")


def _slew_ppm(
    counter: Counter,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The time between readings in nanoseconds, and how much faster the clock ran than the raw clock, in ppm.

    Readings are at least half a second apart, unless the whole run is shorter.
    """
    kept = [0]
    for at in range(1, counter.time_ns.size):
        if counter.time_ns[at] - counter.time_ns[kept[-1]] >= SECOND_NS // 2:
            kept.append(at)
    if len(kept) < 2:
        kept = [0, counter.time_ns.size - 1]
    passed_ns = np.diff(counter.time_ns[kept])
    slewed = -np.diff(counter.value[kept]) * _MILLION / np.maximum(passed_ns, 1)
    return passed_ns, slewed


def _noted(case: CheckedRun) -> Iterator[tuple[Summary, Conditions]]:
    """The conditions that each thread noted, with the summary of its judged field."""
    for summary in case.summaries:
        found = case.record.conditions.get(summary.series.thread)
        if found is not None:
            yield summary, found


def _seen(found: Conditions, kind: Condition) -> str:
    """The values of one kind of condition that were seen, the most frequent first."""
    some = sorted((one for one in found.deviations if one.kind is kind), key=lambda one: -one.count)
    return ", ".join(one.seen for one in some) or "unknown"


def _share(found: Conditions, wrong: np.ndarray[tuple[int, ...], np.dtype[np.int64]], kind: Condition) -> str:
    checks, n = int(found.checks.sum()), int(wrong.sum())
    return f"thread {found.thread} had {_seen(found, kind)} at {n:,} of {checks:,} ({percent(round(n / checks, 3))})"


CONDITION_CHECKS: tuple[Check, ...] = (
    cpu_between, moved_between, affinity_between, policy_between, priority_between, run_delay, traced, stopped,
    clock_slewed,
)  # fmt: skip


# Did the measuring threads run as asked: policy, priority, CPU, memory, timers?
#
# Other tools do not print the policy. The user has to know that a command line without a priority means SCHED_OTHER.


RUNNING = (Moment.START, Moment.DURING, Moment.END)


def policy(case: CheckedRun) -> Iterator[Doubt]:
    """Threads with another policy than asked. This is the most common cause of wrong published numbers."""
    asked = case.fact("policy")
    wrong = [
        f"thread {thread} {moment.name.lower()}: {got}"
        for thread, moment, got in _effective(case, "policy")
        if got != asked
    ]
    if asked and wrong and not _unprivileged(case):
        what = f"policy {asked} was asked for, but effective was: {sentence_list(wrong)}"
        yield Doubt("policy", INVALID, what, "run with the privilege for real time, and let nothing change the threads")


def unprivileged(case: CheckedRun) -> Iterator[Doubt]:
    """Threads without real time, as the user allowed before the run. Only with a requirement is this INVALID."""
    if _unprivileged(case):
        what = f"policy {case.fact('policy')} was asked for, but the threads ran as other: the privilege was missing"
        refused = case.fact("policy_refused", Moment.START)
        what += f" ({refused})" if refused else ""
        remedy = "run as root, with CAP_SYS_NICE, or with an RTPRIO limit (ulimit -r); or measure --policy other"
        yield Doubt("unprivileged", INVALID if case.requirements else WARNING, what, remedy)


def priority(case: CheckedRun) -> Iterator[Doubt]:
    """Threads with another priority than asked. If the policy itself is wrong, ``policy`` says so instead."""
    asked = case.fact("priority")
    if case.fact("policy") not in ("fifo", "rr") or _unprivileged(case):
        return
    wrong = [
        f"thread {thread} {moment.name.lower()}: {got}"
        for thread, moment, got in _effective(case, "priority")
        if got != asked
    ]
    if wrong:
        what = f"priority {asked} was asked for, but effective was: {sentence_list(wrong)}"
        yield Doubt("priority", INVALID, what, "let nothing change the priority of the threads while they measure")


def policy_changed(case: CheckedRun) -> Iterator[Doubt]:
    changed = [f"{thread_name(e.thread)} became {e.text}" for e in case.events("policy_changed")]
    if changed:
        what = f"the policy of measuring threads was changed during the run: {sentence_list(changed)}"
        yield Doubt(
            "policy-changed", INVALID, what, "find what changes it (rtkit, a throttling daemon, tuned) and stop it"
        )


def nice(case: CheckedRun) -> Iterator[Doubt]:
    """Nice values that changed or are not 0. Without a real-time policy they decide how long others run first."""
    told = {summary.series.thread: _nice_values(case, summary.series.thread) for summary in case.summaries}
    changed = [f"{thread_name(thread)} had {', '.join(values)}" for thread, values in told.items() if len(values) > 1]
    if changed:
        what = f"somebody changed the nice value of measuring threads during the run: {sentence_list(changed)}"
        yield Doubt(
            "nice-changed", INVALID, what, "let nothing change the nice value of the threads while they measure"
        )
    other = sorted({int(values[0]) for values in told.values() if len(values) == 1 and values[0] != "0"})
    if other:
        found = ", ".join(map(str, other))
        what = f"the measuring threads ran with nice {found} instead of 0, so the scheduler gave them another share"
        yield Doubt("nice", WARNING, what, "start rtproof with nice 0, or measure with a real-time policy")


def cpu(case: CheckedRun) -> Iterator[Doubt]:
    """A bound thread on another CPU, by the facts that the agent read. ``cpu_between`` covers what threads noted."""
    for summary in case.summaries:
        series = summary.series
        got = {case.number("cpu", moment, series.thread) for moment in RUNNING} - {None, -1, series.cpu}
        if series.cpu >= 0 and got and not noted_elsewhere(case, series.thread):
            others = ", ".join(map(str, sorted(got, key=str)))
            what = f"thread {series.thread} was bound to CPU {series.cpu} and ran on CPU {others}"
            yield Doubt(
                "cpu", INVALID, what, "let nothing change the affinity of the threads (cpusets, irqbalance, tuned)"
            )


def timer_slack(case: CheckedRun) -> Iterator[Doubt]:
    """The kernel may delay the timers of a SCHED_OTHER thread by its slack, by default 50 us."""
    slack = {
        thread: slack_ns
        for thread, moment, got in _effective(case, "timer_slack_ns")
        if (slack_ns := whole_number(got)) and case.fact("policy", moment, thread) == "other"
    }
    if slack:
        threads = thread_name(*slack) if len(slack) == 1 else f"{len(slack)} threads"
        what = f"the kernel may put off the timers of {threads} by {value(max(slack.values()))} (timer slack)"
        yield Doubt("timer-slack", WARNING, what, "measure with a real-time policy, which has no slack")


def memory_unlocked(case: CheckedRun) -> Iterator[Doubt]:
    locked = case.fact("memory_locked", Moment.START)
    if locked is not None and locked != "yes":
        what = f"the memory of the measuring threads was not locked ({locked.removeprefix('no: ')})"
        yield Doubt(
            "memory-unlocked", WARNING, what, "leave locking on, and raise the MEMLOCK limit (ulimit -l) if it fails"
        )


def page_faults(case: CheckedRun) -> Iterator[Doubt]:
    """Page faults in the measured loop. With locked memory a fault shows that the locking did not work.

    With unlocked memory a fault is a cause of latency like any other. The user chose it, so it is only a warning.
    """
    for summary in case.summaries:
        thread = summary.series.thread
        minor, major = (case.number(key, Moment.END, thread) or 0 for key in ("minor_faults", "major_faults"))
        if minor or major:
            asked = case.fact("lock_memory") == "yes"
            what = f"thread {thread} had {minor} minor and {major} major page faults inside the measured loop"
            remedy = "see why the memory is not locked" if asked else "measure with locked memory"
            yield Doubt("page-faults", INVALID if asked else WARNING, what, remedy)


def dma_latency(case: CheckedRun) -> Iterator[Doubt]:
    held = case.fact("dma_latency", Moment.START) or ""
    if held.startswith("unavailable"):
        what = f"the limit on the latency of idle states could not be set ({held.removeprefix('unavailable: ')})"
        yield Doubt("dma-latency", WARNING, what, "give access to /dev/cpu_dma_latency, or leave --dma-latency out")


def calls(case: CheckedRun) -> Iterator[Doubt]:
    """Calls to read or write in a loop that only sleeps. The latencies include the time of each call."""
    for summary in case.summaries:
        thread, series = summary.series.thread, summary.series
        made = case.number("io_calls", Moment.END, thread) or 0
        if made and (series.probe == "cycle" or (series.probe == "timer" and series.method != "timerfd")):
            what = f"thread {thread} made {made:,} calls to read or write, and its loop needs none"
            yield Doubt("io-calls", WARNING, what, "see what is attached to the agent: a preloaded library, a tracer")


def _effective(case: CheckedRun, key: str) -> Iterator[tuple[int, Moment, str]]:
    """Thread, moment and value of each fact with this key about a running thread."""
    for summary in case.summaries:
        for moment in RUNNING:
            got = case.fact(key, moment, summary.series.thread)
            if got is not None:
                yield summary.series.thread, moment, got


def _nice_values(case: CheckedRun, thread: int) -> list[str]:
    """The nice values of a thread in the order seen; empty for a thread with a real-time policy."""
    if (case.fact("policy", Moment.START, thread) or case.fact("policy")) != "other":
        return []
    facts = case.record.facts
    return [f.value for f in facts if (f.key, f.moment, f.thread) == ("nice", Moment.DURING, thread)]


def _unprivileged(case: CheckedRun) -> bool:
    """Whether all threads ran as SCHED_OTHER although real time was asked for, and the user had allowed this."""
    got = {policy for _, moment, policy in _effective(case, "policy") if moment is not Moment.DURING}
    got = got or {policy for _, _, policy in _effective(case, "policy")}
    asked = case.fact("policy") in REAL_TIME and case.fact("allow_unprivileged") == "yes"
    return asked and got == {"other"}


SCHEDULING_CHECKS: tuple[Check, ...] = (
    policy,
    unprivileged,
    priority,
    policy_changed,
    nice,
    cpu,
    timer_slack,
    memory_unlocked,
    page_faults,
    dma_latency,
    calls,
)
