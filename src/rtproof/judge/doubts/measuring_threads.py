# SPDX-License-Identifier: Apache-2.0
"""Check the measuring threads: policy, priority, CPU, memory and timers, at both ends of the run and in between."""

from collections.abc import Iterator

import numpy as np

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.core.units import whole_number
from rtproof.judge.doubts.case import (
    INVALID,
    REAL_TIME,
    UNAVAILABLE,
    WARNING,
    Check,
    CheckedRun,
    cpu_count,
    sentence_list,
    severity_of,
    thread_name,
)
from rtproof.record.contents import Condition, Conditions, Moment
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Summary

ONLINE = "/sys/devices/system/cpu/online"
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
STAY = "find what moves it"
"""The remedy if a thread ran, or might have run, on another CPU."""
MOVERS = "cpusets, tuned or a CPU that went off line change the affinity"


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
        length = f"{duration(elsewhere / noted * summary.span_ns)} of {duration(summary.span_ns)}"
        every = case.fact("cpu_checks", Moment.START, found.thread) != "random activations"
        of = f"{elsewhere:,} of {noted:,} {'activations' if every else 'checks'}"
        what = f"thread {found.thread} ran on other CPUs {percent(round(elsewhere / noted, 3))} of the time"
        yield Doubt(
            "cpu", INVALID, what, STAY, f"on CPU {others} instead of CPU {own} for about {length} ({of}); {MOVERS}"
        )


def affinity_between(case: CheckedRun) -> Iterator[Doubt]:
    """A changed affinity, maybe for a short time. It is harmless as long as the thread stays on its CPU."""
    for summary, found in _noted(case):
        thread, cpu, looks = found.thread, summary.series.cpu, int(found.other_affinity.sum())
        last, moves = case.fact("affinity", Moment.END, thread), case.number("migrations", Moment.END, thread) or 0
        detail = ""
        if looks:
            seen = f"{quantity(looks, 'time')}, looking once a second"
            detail = f"CPUs {_seen(found, Condition.AFFINITY)} ({seen})"
        elif cpu >= 0 and last not in (None, str(cpu)):
            detail = f"CPUs {last} at the end"
        elif cpu >= 0 and moves > 0 and not noted_elsewhere(case, thread):
            detail = f"the kernel moved it {quantity(moves, 'time')}, warm-up included"
        if detail:
            what = f"thread {thread} was allowed on other CPUs"
            yield Doubt("affinity", WARNING, what, "find what changes it", f"{detail}; {MOVERS}")


def scheduling_between(case: CheckedRun) -> Iterator[Doubt]:
    """Another policy or priority during the run. Only random checks see a change that lasts less than a second."""
    noted, remedy = [found for _, found in _noted(case)], "find what changes it"
    may = "rtkit, a throttling daemon or a co-kernel may change it"
    if seen := _checked([(each, int(each.other_policy.sum())) for each in noted], Condition.POLICY):
        what = f"{quantity(len(seen), 'thread')} lost policy {case.fact('policy')} at times"
        yield Doubt("policy-between", INVALID, what, remedy, f"random checks: {sentence_list(seen)}; {may}")
    if seen := _checked([(each, int(each.other_priority.sum())) for each in noted], Condition.PRIORITY):
        what = f"{quantity(len(seen), 'thread')} lost priority {case.fact('priority')} at times"
        yield Doubt("priority-between", INVALID, what, remedy, f"random checks: {sentence_list(seen)}; {may}")


def _checked(counts: list[tuple[Conditions, int]], kind: Condition) -> list[str]:
    """What random checks saw of each thread that was not as asked, and how often."""
    return [
        f"thread {found.thread} had {_seen(found, kind)} at {wrong:,} of {int(found.checks.sum()):,} "
        f"({percent(round(wrong / int(found.checks.sum()), 3))})"
        for found, wrong in counts
        if wrong
    ]


def run_delay(case: CheckedRun) -> Iterator[Doubt]:
    """A real-time thread that waited long for a CPU. It waits only while something else comes before it."""
    if case.fact("policy") not in REAL_TIME:
        return
    for summary, found in _noted(case):
        waited_ns = int(found.run_delay_ns.sum())
        if not summary.span_ns or case.fact("policy", Moment.START, found.thread) == "other":
            continue
        if waited_ns > MUCH_DELAY * summary.span_ns:
            share = percent(round(waited_ns / summary.span_ns, 3))
            what = f"thread {found.thread} waited {share} of the time for a CPU"
            detail = (
                f"{int(found.involuntary_switches.sum()):,} involuntary switches; threads of higher priority, "
                "throttling, a fair server or a busy hypervisor may have come before it"
            )
            yield Doubt("run-delay", WARNING, what, "see what ran before it", detail)


def traced(case: CheckedRun) -> Iterator[Doubt]:
    """A tracer was attached. It stops a thread at every signal, and usually at every system call."""
    remedy, threads = "measure without strace or gdb", {summary.series.thread for summary in case.summaries}
    facts = [fact for fact in case.record.facts if fact.key == "tracer" and fact.value[:1].isdigit()]
    who = sorted({(fact.thread, fact.value.strip()) for fact in facts if fact.thread in threads})
    stops = [f"thread {event.thread}: {event.text} until {duration(event.time_ns)}" for event in case.events("stops")]
    if who:
        what = f"a debugger was attached to {quantity(len({thread for thread, _ in who}), 'thread')}"
        names = sentence_list(f"thread {thread} by process {name}" for thread, name in who)
        yield Doubt("traced", INVALID, what, remedy, names)
    elif stops:
        detail = f"they slept more often than once for an activation, within a second: {sentence_list(stops)}"
        yield Doubt("traced", INVALID, "threads were stopped as by a tracer", remedy, detail)


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
                what = f"thread {thread} was {length} late, as the agent was stopped"
                at = duration(event.time_ns)
                detail = f"SIGSTOP or Ctrl-Z stopped it, and SIGCONT at {at} let it go on"
                yield Doubt("stopped", INVALID, what, "let the agent run", detail)
                break


def clock_slewed(case: CheckedRun) -> Iterator[Doubt]:
    """A clock that ran too fast or too slow. It makes each latency longer or shorter by the same share."""
    counter = next((one for one in case.record.counters if one.name == RAW_CLOCK and not one.grows), None)
    if counter is None or counter.time_ns.size < 2:
        return
    kept = [0]  # Readings at least half a second apart, unless the whole run is shorter.
    for at in range(1, counter.time_ns.size):
        if counter.time_ns[at] - counter.time_ns[kept[-1]] >= SECOND_NS // 2:
            kept.append(at)
    kept = kept if len(kept) > 1 else [0, counter.time_ns.size - 1]
    passed_ns = np.diff(counter.time_ns[kept])
    slewed_ppm = -np.diff(counter.value[kept]) * 1_000_000 / np.maximum(passed_ns, 1)
    beyond_ns, whole_ns = int(passed_ns[np.abs(slewed_ppm) > NTP_PPM].sum()), int(passed_ns.sum())
    most = slewed_ppm[np.argmax(np.abs(slewed_ppm))]
    if abs(most) > CORRECTED_PPM:
        what = f"CLOCK_MONOTONIC ran {abs(most):,.0f} ppm too {'fast' if most > 0 else 'slow'}"
        off = f"off by more than NTP's {NTP_PPM} ppm for {duration(beyond_ns)} of {duration(whole_ns)}"
        detail = f"CLOCK_MONOTONIC_RAW shows its rate, which was {off}; every time is wrong by that share"
        severity = severity_of(beyond_ns, whole_ns)
        yield Doubt("clock-slewed", severity, what, "set the clock before the run", detail)


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


CONDITION_CHECKS: tuple[Check, ...] = (
    cpu_between, affinity_between, scheduling_between, run_delay, traced, stopped,
    clock_slewed,
)  # fmt: skip


RUNNING = (Moment.START, Moment.DURING, Moment.END)


def policy(case: CheckedRun) -> Iterator[Doubt]:
    """Threads with another policy than asked. This is the most common cause of wrong published numbers."""
    asked = case.fact("policy")
    threads, wrong = _other_than(case, "policy", asked)
    if asked and wrong and not _unprivileged(case):
        what = f"{threads} did not run as {asked}"
        yield Doubt("policy", INVALID, what, "run with real-time privilege", wrong)


def unprivileged(case: CheckedRun) -> Iterator[Doubt]:
    """Threads without real time, as the user allowed before the run. Only with a requirement is this INVALID."""
    if _unprivileged(case):
        what = f"threads ran as other, not {case.fact('policy')}"
        refused = case.fact("policy_refused", Moment.START)
        detail = "an RTPRIO limit (ulimit -r) is enough, and --policy other needs no privilege"
        severity = INVALID if case.requirements else WARNING
        detail = f"{refused}; {detail}" if refused else detail
        yield Doubt("unprivileged", severity, what, "run as root or with CAP_SYS_NICE", detail)


def priority(case: CheckedRun) -> Iterator[Doubt]:
    """Threads with another priority than asked. If the policy itself is wrong, ``policy`` says so instead."""
    asked = case.fact("priority")
    if case.fact("policy") not in ("fifo", "rr") or _unprivileged(case):
        return
    threads, wrong = _other_than(case, "priority", asked)
    if wrong:
        yield Doubt("priority", INVALID, f"{threads} did not have priority {asked}", "find what changes it", wrong)


def policy_changed(case: CheckedRun) -> Iterator[Doubt]:
    changed = [f"{thread_name(e.thread)} became {e.text}" for e in case.events("policy_changed")]
    if changed:
        what = f"the policy of threads changed {quantity(len(changed), 'time')}"
        detail = f"{sentence_list(changed)}; rtkit, a throttling daemon or tuned may do that"
        yield Doubt("policy-changed", INVALID, what, "find what changes it", detail)


def nice(case: CheckedRun) -> Iterator[Doubt]:
    """Nice values that changed or are not 0. Without a real-time policy they decide how long others run first."""
    threads = [summary.series.thread for summary in case.summaries]
    ordinary = [n for n in threads if (case.fact("policy", Moment.START, n) or case.fact("policy")) == "other"]
    facts = [f for f in case.record.facts if (f.key, f.moment) == ("nice", Moment.DURING)]
    told = {thread: [fact.value for fact in facts if fact.thread == thread] for thread in ordinary}
    changed = [f"{thread_name(thread)} had {', '.join(values)}" for thread, values in told.items() if len(values) > 1]
    if changed:
        what = f"the nice value of {quantity(len(changed), 'thread')} changed"
        detail = f"{sentence_list(changed)}; without a real-time policy it decides how much CPU time a thread gets"
        yield Doubt("nice-changed", INVALID, what, "find what changes it", detail)
    other = sorted({int(values[0]) for values in told.values() if len(values) == 1 and values[0] != "0"})
    if other:
        what = f"the threads ran with nice {other[0]}" + (f" to {other[-1]}" if len(other) > 1 else "")
        detail = "the scheduler gave them another share than with nice 0; a real-time policy has no nice value"
        yield Doubt("nice", WARNING, what, "start rtproof with nice 0", detail)


def cpu(case: CheckedRun) -> Iterator[Doubt]:
    """A bound thread on another CPU, by the facts that the agent read. ``cpu_between`` covers what threads noted."""
    for summary in case.summaries:
        series = summary.series
        got = {case.number("cpu", moment, series.thread) for moment in RUNNING} - {None, -1, series.cpu}
        if series.cpu >= 0 and got and not noted_elsewhere(case, series.thread):
            others = " and ".join(map(str, sorted(got, key=str)))
            what = f"thread {series.thread} ran on CPU {others}, not on CPU {series.cpu}"
            yield Doubt("cpu", INVALID, what, STAY, MOVERS)


def placement(case: CheckedRun) -> Iterator[Doubt]:
    """Threads that shared a CPU although another one was free. They measure how they disturb each other."""
    places = [summary.series.cpu for summary in case.summaries if summary.series.cpu >= 0]
    used = set(places)
    shared = sorted(cpu for cpu in used if places.count(cpu) > 1)
    given = cpu_count(case.fact("cpus") or case.file(ONLINE, Moment.START))
    if shared and given is not None and len(used) < given:
        what = f"{sum(map(places.count, shared))} threads shared {quantity(len(shared), 'CPU')}"
        detail = f"CPU {', '.join(map(str, shared))}; {given - len(used)} of {given} had none"
        yield Doubt("placement", WARNING, what, "give each its own CPU", detail)


NO_SLACK_NS = 1
"""The least that PR_SET_TIMERSLACK sets."""


def timer_slack(case: CheckedRun) -> Iterator[Doubt]:
    """The kernel may delay the timers of a SCHED_OTHER thread by its slack, by default 50 us."""
    slack = {
        thread: slack_ns
        for thread, moment, got in _effective(case, "timer_slack_ns")
        if (slack_ns := whole_number(got) or 0) > NO_SLACK_NS and case.fact("policy", moment, thread) == "other"
    }
    if slack:
        threads = thread_name(*slack) if len(slack) == 1 else f"{len(slack)} threads"
        what = f"timer slack delays by up to {value(max(slack.values()))}"
        detail = f"the kernel may put off the timers of {threads} by so much; a real-time policy has no slack"
        yield Doubt("timer-slack", WARNING, what, "take a real-time policy", detail)


def memory_unlocked(case: CheckedRun) -> Iterator[Doubt]:
    locked = case.fact("memory_locked", Moment.START)
    if locked is not None and locked != "yes":
        asked = case.fact("lock_memory") == "yes"
        remedy = "raise the MEMLOCK limit (ulimit -l)" if asked else "leave locking on"
        yield Doubt("memory-unlocked", WARNING, "the memory was not locked", remedy, locked.removeprefix("no: "))


def page_faults(case: CheckedRun) -> Iterator[Doubt]:
    """Page faults in the measured loop. With locked memory a fault shows that the locking did not work."""
    for summary in case.summaries:
        thread = summary.series.thread
        minor, major = (case.number(key, Moment.END, thread) or 0 for key in ("minor_faults", "major_faults"))
        if minor or major:
            asked = case.fact("lock_memory") == "yes"
            what = f"thread {thread} had {quantity(minor + major, 'page fault')}"
            remedy = "see why the memory is not locked" if asked else "lock the memory"
            detail = f"inside the measured loop: {minor:,} minor, {major:,} major"
            yield Doubt("page-faults", INVALID if asked else WARNING, what, remedy, detail)


def dma_latency(case: CheckedRun) -> Iterator[Doubt]:
    held = case.fact("dma_latency", Moment.START) or ""
    if held.startswith(UNAVAILABLE):
        what, remedy = "idle states could not be limited", "give access to /dev/cpu_dma_latency"
        detail = f"{held.removeprefix('unavailable: ')}; or leave --dma-latency out"
        yield Doubt("dma-latency", WARNING, what, remedy, detail)


def calls(case: CheckedRun) -> Iterator[Doubt]:
    """Calls to read or write in a loop that only sleeps. The latencies include the time of each call."""
    for summary in case.summaries:
        thread, series = summary.series.thread, summary.series
        made = case.number("io_calls", Moment.END, thread) or 0
        if made and (series.probe == "cycle" or (series.probe == "timer" and series.method != "timerfd")):
            what = f"thread {thread} called read or write {quantity(made, 'time')}"
            detail = "its loop needs none of these calls; a preloaded library or a tracer makes them"
            yield Doubt("io-calls", WARNING, what, "see what is attached", detail)


def _effective(case: CheckedRun, key: str) -> Iterator[tuple[int, Moment, str]]:
    """Thread, moment and value of each fact with this key about a running thread."""
    for thread in (summary.series.thread for summary in case.summaries):
        found = [(moment, case.fact(key, moment, thread)) for moment in RUNNING]
        yield from ((thread, moment, got) for moment, got in found if got is not None)


def _other_than(case: CheckedRun, key: str, asked: str | None) -> tuple[str, str]:
    """How many threads had something else than was asked for, and what each had when; "" if none had."""
    other = [(thread, moment, got) for thread, moment, got in _effective(case, key) if got != asked]
    threads = quantity(len({thread for thread, _, _ in other}), "thread")
    return threads, sentence_list(f"thread {thread} {moment.name.lower()}: {got}" for thread, moment, got in other)


def _unprivileged(case: CheckedRun) -> bool:
    """Whether all threads ran as SCHED_OTHER although real time was asked for, and the user had allowed this."""
    got = {policy for _, moment, policy in _effective(case, "policy") if moment is not Moment.DURING}
    got = got or {policy for _, _, policy in _effective(case, "policy")}
    asked = case.fact("policy") in REAL_TIME and case.fact("allow_unprivileged") == "yes"
    return asked and got == {"other"}


SCHEDULING_CHECKS: tuple[Check, ...] = (
    policy, unprivileged, priority, policy_changed, nice, cpu, placement, timer_slack, memory_unlocked, page_faults,
    dma_latency, calls,
)  # fmt: skip
