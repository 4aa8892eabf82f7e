# SPDX-License-Identifier: Apache-2.0
"""Did the measuring threads run as asked: policy, priority, CPU, memory, timers?

Other tools leave the policy to be guessed from the command line, where no priority means SCHED_OTHER without a word.
"""

from collections.abc import Iterator

from rtproof.analysis.checks.case import INVALID, REAL_TIME, WARNING, Case, Check, sentence_list, thread_name
from rtproof.analysis.checks.conditions import noted_elsewhere
from rtproof.analysis.model import Doubt
from rtproof.analysis.phrases import value
from rtproof.record import Moment

RUNNING = (Moment.START, Moment.DURING, Moment.END)


def policy(case: Case) -> Iterator[Doubt]:
    """Asked for real time and got none is the most common way to publish a wrong number."""
    asked = case.fact("policy")
    wrong = [
        f"thread {thread} {moment.name.lower()}: {got}"
        for thread, moment, got in _effective(case, "policy")
        if got != asked
    ]
    if asked and wrong and not _unprivileged(case):
        what = f"policy {asked} was asked for, but effective was: {sentence_list(wrong)}"
        yield Doubt("policy", INVALID, what, "run with the privilege for real time, and let nothing change the threads")


def unprivileged(case: Case) -> Iterator[Doubt]:
    """The user allowed this beforehand, so it is a fault only where a requirement is judged."""
    if _unprivileged(case):
        what = f"policy {case.fact('policy')} was asked for, but the threads ran as other for want of the privilege"
        refused = case.fact("policy_refused", Moment.START)
        what += f" ({refused})" if refused else ""
        remedy = "run as root, with CAP_SYS_NICE, or with an RTPRIO limit (ulimit -r)"
        yield Doubt("unprivileged", INVALID if case.requirements else WARNING, what, remedy)


def priority(case: Case) -> Iterator[Doubt]:
    """Only where the policy has priorities and is the one asked for; else ``policy`` says it."""
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


def policy_changed(case: Case) -> Iterator[Doubt]:
    changed = [f"{thread_name(e.thread)} became {e.text}" for e in case.events("policy_changed")]
    if changed:
        what = f"the policy of measuring threads was changed during the run: {sentence_list(changed)}"
        yield Doubt(
            "policy-changed", INVALID, what, "find what changes it (rtkit, a throttling daemon, tuned) and stop it"
        )


def nice(case: Case) -> Iterator[Doubt]:
    """Without a real-time policy the nice value decides how long others run first; with one it says nothing."""
    told = {summary.series.thread: _nice_values(case, summary.series.thread) for summary in case.summaries}
    changed = [f"{thread_name(thread)} had {', '.join(values)}" for thread, values in told.items() if len(values) > 1]
    if changed:
        what = f"somebody changed the nice value of measuring threads during the run: {sentence_list(changed)}"
        yield Doubt(
            "nice-changed", INVALID, what, "let nothing change the nice value of the threads while they measure"
        )
    other = sorted({int(values[0]) for values in told.values() if len(values) == 1 and values[0] != "0"})
    if other:
        what = f"the measuring threads ran with nice {', '.join(map(str, other))}, so other threads had another share"
        yield Doubt("nice", WARNING, what, "start rtproof with nice 0, or measure with a real-time policy")


def cpu(case: Case) -> Iterator[Doubt]:
    for summary in case.summaries:
        series = summary.series
        got = {case.number("cpu", moment, series.thread) for moment in RUNNING} - {None, -1, series.cpu}
        if series.cpu >= 0 and got and not noted_elsewhere(case, series.thread):
            others = ", ".join(map(str, sorted(got, key=str)))
            what = f"thread {series.thread} was bound to CPU {series.cpu} and ran on CPU {others}"
            yield Doubt(
                "cpu", INVALID, what, "let nothing change the affinity of the threads (cpusets, irqbalance, tuned)"
            )


def timer_slack(case: Case) -> Iterator[Doubt]:
    """The kernel may put off the timers of a SCHED_OTHER thread by its slack, 50 us unless told otherwise."""
    slack = {
        thread: int(got)
        for thread, moment, got in _effective(case, "timer_slack_ns")
        if got.isdigit() and int(got) and case.fact("policy", moment, thread) == "other"
    }
    if slack:
        threads = thread_name(*slack) if len(slack) == 1 else f"{len(slack)} threads"
        what = f"the kernel may put off the timers of {threads} by {value(max(slack.values()))} (timer slack)"
        yield Doubt("timer-slack", WARNING, what, "measure with a real-time policy, which has no slack")


def memory_unlocked(case: Case) -> Iterator[Doubt]:
    locked = case.fact("memory_locked", Moment.START)
    if locked is not None and locked != "yes":
        what = f"the memory of the measuring threads was not locked ({locked.removeprefix('no: ')})"
        yield Doubt(
            "memory-unlocked", WARNING, what, "leave locking on, and raise the MEMLOCK limit (ulimit -l) if it fails"
        )


def page_faults(case: Case) -> Iterator[Doubt]:
    """With locked memory the loop cannot fault; where it does, the locking did not work. Unlocked, a fault is a cause
    of lateness like any other, which the user chose to have, and worth a warning."""
    for summary in case.summaries:
        thread = summary.series.thread
        minor, major = (case.number(key, Moment.END, thread) or 0 for key in ("minor_faults", "major_faults"))
        if minor or major:
            asked = case.fact("lock_memory") == "yes"
            what = f"thread {thread} had {minor} minor and {major} major page faults inside the measured loop"
            remedy = "see why the memory is not locked" if asked else "measure with locked memory"
            yield Doubt("page-faults", INVALID if asked else WARNING, what, remedy)


def dma_latency(case: Case) -> Iterator[Doubt]:
    held = case.fact("dma_latency", Moment.START) or ""
    if held.startswith("unavailable"):
        what = f"the limit on the latency of idle states could not be set ({held.removeprefix('unavailable: ')})"
        yield Doubt("dma-latency", WARNING, what, "give access to /dev/cpu_dma_latency, or leave --dma-latency out")


def calls(case: Case) -> Iterator[Doubt]:
    """A loop that only sleeps neither reads nor writes; where it does, each call is in what is measured."""
    for summary in case.summaries:
        thread, series = summary.series.thread, summary.series
        made = case.number("io_calls", Moment.END, thread) or 0
        if made and (series.probe == "cycle" or (series.probe == "timer" and series.method != "timerfd")):
            what = f"thread {thread} made {made:,} calls to read or write, and its loop needs none"
            yield Doubt("io-calls", WARNING, what, "see what is attached to the agent: a preloaded library, a tracer")


def _effective(case: Case, key: str) -> Iterator[tuple[int, Moment, str]]:
    """Thread, moment and value of every fact about a running thread."""
    for summary in case.summaries:
        for moment in RUNNING:
            got = case.fact(key, moment, summary.series.thread)
            if got is not None:
                yield summary.series.thread, moment, got


def _nice_values(case: Case, thread: int) -> list[str]:
    """In the order that they were seen in; none of a thread with a real-time policy."""
    if (case.fact("policy", Moment.START, thread) or case.fact("policy")) != "other":
        return []
    facts = case.record.facts
    return [f.value for f in facts if (f.key, f.moment, f.thread) == ("nice", Moment.DURING, thread)]


def _unprivileged(case: Case) -> bool:
    """Whether all threads ran as other although real time was asked for, as the user had allowed."""
    got = {policy for _, moment, policy in _effective(case, "policy") if moment is not Moment.DURING}
    got = got or {policy for _, _, policy in _effective(case, "policy")}
    asked = case.fact("policy") in REAL_TIME and case.fact("allow_unprivileged") == "yes"
    return asked and got == {"other"}


CHECKS: tuple[Check, ...] = (
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
