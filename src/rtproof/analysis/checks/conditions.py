# SPDX-License-Identifier: Apache-2.0
"""Did a thread run all the time as it did at both ends of the run? What it noted about itself while it measured.

The facts of both ends, and looks from outside once a second, do not see what changes and is changed back in between.
"""

from collections.abc import Iterator

import numpy as np

from rtproof.analysis.checks.case import INVALID, WARNING, Case, Check, sentence_list, severity_of
from rtproof.analysis.model import Doubt, Summary
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import duration, percent
from rtproof.record import Condition, Conditions, Counter, Moment

RAW_CLOCK = "clock.raw"
NTP_PPM = 500
"""NTP never slews a clock by more (adjtimex(2))."""
CORRECTED_PPM = 200
"""A crystal is hardly further off; a clock slewed by more is still being set."""
MUCH_DELAY = 0.05
"""Share of the time that a real-time thread waited for a CPU, from which something else must have come first."""
STOP_NS = 5_000_000
"""A stop this short is no longer than other delays."""
NOTICED_NS = SECOND_NS
"""How much later than the threads the agent may notice that it goes on, on a busy machine."""
STAY = "let nothing change the affinity of the threads (cpusets, irqbalance, tuned) or take their CPU off line"
"""What to do where a thread ran, or might have run, on another CPU."""
_MILLION = 1_000_000


def noted_elsewhere(case: Case, thread: int) -> bool:
    """Whether the thread itself noted activations on another CPU than its own."""
    found = case.record.conditions.get(thread)
    return bool(found is not None and found.elsewhere.sum())


def cpu(case: Case) -> Iterator[Doubt]:
    """A thread that is bound to a CPU never leaves it by itself."""
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


def affinity(case: Case) -> Iterator[Doubt]:
    """Another affinity is harmless as long as the thread stays where it is; ``cpu`` says when it did not."""
    for summary, found in _noted(case):
        looks = int(found.other_affinity.sum())
        others = _seen(found, Condition.AFFINITY)
        last = case.fact("affinity", Moment.END, found.thread)
        if not looks and summary.series.cpu >= 0 and last is not None and last != str(summary.series.cpu):
            looks, others = 1, last
        if looks:
            seen = f"{looks} time{'s' if looks > 1 else ''} in looks once a second"
            what = f"thread {found.thread} was allowed on CPUs {others} during the run, which nobody asked for ({seen})"
            yield Doubt("affinity", WARNING, what, STAY)


def policy_between(case: Case) -> Iterator[Doubt]:
    """A change that lasts less than a second is seen at random checks only."""
    wrong = [
        _share(found, found.other_policy, Condition.POLICY) for _, found in _noted(case) if found.other_policy.any()
    ]
    if wrong:
        what = f"policy {case.fact('policy')} was asked for, but random checks found another: {sentence_list(wrong)}"
        remedy = "find what changes it (rtkit, a throttling daemon, a co-kernel) and stop it"
        yield Doubt("policy-between", INVALID, what, remedy)


def priority_between(case: Case) -> Iterator[Doubt]:
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


def run_delay(case: Case) -> Iterator[Doubt]:
    """A real-time thread waits for a CPU only while something comes before it."""
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


def traced(case: Case) -> Iterator[Doubt]:
    """A tracer stops the thread at every signal, and mostly at every system call."""
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


def stopped(case: Case) -> Iterator[Doubt]:
    """Who stops the agent makes a delay that no system has. SIGCONT alone is none: systemd sends it behind SIGTERM."""
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
                what = f"thread {thread} was {length} late as somebody let the stopped agent go on (SIGCONT at {at})"
                yield Doubt("stopped", INVALID, what, "let nobody stop the agent while it measures (SIGSTOP, Ctrl-Z)")
                break


def clock_slewed(case: Case) -> Iterator[Doubt]:
    """A clock that runs too fast or too slow makes each latency that much longer or shorter."""
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
        what = f"{way}: it is being corrected, and times are wrong by that share"
        yield Doubt("clock-slewed", WARNING, what, "let the target set its clock before the run")


def _slew_ppm(
    counter: Counter,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Time between readings at least half a second apart, and how much faster than the raw clock the other one ran."""
    kept = [0]
    for at in range(1, counter.time_ns.size):
        if counter.time_ns[at] - counter.time_ns[kept[-1]] >= SECOND_NS // 2:
            kept.append(at)
    if len(kept) < 2:
        kept = [0, counter.time_ns.size - 1]
    passed_ns = np.diff(counter.time_ns[kept])
    slewed = -np.diff(counter.value[kept]) * _MILLION / np.maximum(passed_ns, 1)
    return passed_ns, slewed


def _noted(case: Case) -> Iterator[tuple[Summary, Conditions]]:
    """Threads that noted anything, each with the summary of the field that is judged."""
    for summary in case.summaries:
        found = case.record.conditions.get(summary.series.thread)
        if found is not None:
            yield summary, found


def _seen(found: Conditions, kind: Condition) -> str:
    """What was seen of a kind, most often first."""
    some = sorted((one for one in found.deviations if one.kind is kind), key=lambda one: -one.count)
    return ", ".join(one.seen for one in some) or "unknown"


def _share(found: Conditions, wrong: np.ndarray[tuple[int, ...], np.dtype[np.int64]], kind: Condition) -> str:
    checks, n = int(found.checks.sum()), int(wrong.sum())
    return f"thread {found.thread} had {_seen(found, kind)} at {n:,} of {checks:,} ({percent(round(n / checks, 3))})"


CHECKS: tuple[Check, ...] = (
    cpu, affinity, policy_between, priority_between, run_delay, traced, stopped, clock_slewed,
)  # fmt: skip
