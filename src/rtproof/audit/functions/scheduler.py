# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, of limits and of privileges."""

import re

from rtproof.audit import readings
from rtproof.audit.answers import cpu_words, first_names, good_of_all, no_threads, only
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.conditions import isolated_cpus, nohz_full_cpus
from rtproof.audit.facts import Facts, KernelVersion, Reading
from rtproof.audit.readings import finding, good, judgement, not_applicable, not_understood, unknown
from rtproof.audit.system_threads import AuditedThread, all_threads, application_threads, measuring_processes
from rtproof.summary import measured_kernel

FAIR_SERVER_SINCE = KernelVersion(6, 12)
SHARE_OFF_SINCE = KernelVersion(5, 10)
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
HIGHEST_PRIORITY = 99
_BUDGETS = "rt-group"
_OF_THE_KERNEL = re.compile(
    r"(irq/\d+-|irq/\d+-s-|ktimers/|ktimersoftd/|ksoftirqd/|rcuc/|rcuop?/|rcuob/|rcub/|rcuog/).*"
)


def throttling(facts: Facts, check: Check) -> Judgement:
    """How much time of each CPU real-time threads may use at most."""
    runtime, period = (facts.read(f"/proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period"))
    if not (runtime.here and period.here):
        return readings.missing(check, [runtime, period])
    amount, length = runtime.number(), period.number()
    if amount is None or length is None or length <= 0:
        return not_understood(runtime if amount is None else period)
    if amount == -1 or amount >= length:
        return good("Real-time threads are never throttled, so nothing stops one that never sleeps.", (runtime, period))
    return _who_is_not_throttled(facts, runtime) or _lost_time(facts, (amount, length), runtime, period)


def _who_is_not_throttled(facts: Facts, runtime: Reading) -> Judgement | None:
    """GOOD or UNKNOWN, if the limit means nothing in this kernel or it is not known whether it does."""
    if facts.kernel is None:
        return unknown(
            (runtime,), "The version of the kernel is not known, and the meaning of the limit depends on it."
        )
    groups, server = group_scheduling(facts), facts.read("fair-server")
    brought_back = server.here and bool(server.word)
    if groups or (facts.kernel.is_before(FAIR_SERVER_SINCE) and not brought_back):
        return None
    if groups is None:
        text = "It is not known whether the kernel has RT_GROUP_SCHED, without which it throttles nobody."
        return unknown((runtime,), text)
    return good("Since 6.12 it only limits what SCHED_DEADLINE may reserve.", (runtime,))


def _lost_time(facts: Facts, budget: tuple[int, int], *shown: Reading) -> Judgement:
    amount, length = budget
    text = (
        f"Real-time threads that use all of a CPU are stopped for up to {(length - amount) / 1000:g} ms "
        f"of each {length / 1000:g} ms."
    )
    log = facts.read(measured_kernel.LOG)
    line = next((line for line in log.text.splitlines() if "RT throttling activated" in line), None)
    if line:
        return finding(
            f"{text} The kernel's log says that it stopped one since the boot.",
            (*shown, only(log, line)),
            Severity.HIGH,
        )
    return finding(text, shown, Severity.LOW if amount * 10 >= length * 9 else Severity.HIGH)


def group_scheduling(facts: Facts) -> bool | None:
    """Whether control groups have a budget for real-time threads; None if not known."""
    if facts.read(_BUDGETS).here:
        return True
    option = facts.option("RT_GROUP_SCHED")
    if option.absent:
        return False
    if not option.here:
        return None
    word = facts.parameter("rt_group_sched")
    if word.here:
        return word.word not in ("0", "n", "N", "off")
    disabled = facts.option("RT_GROUP_SCHED_DEFAULT_DISABLED").here
    return not disabled if word.absent else None


def sharing(facts: Facts, check: Check) -> Judgement:
    """Whether a CPU may borrow time for real-time threads from others."""
    runtime = facts.read("/proc/sys/kernel/sched_rt_runtime_us")
    if runtime.number() == -1:
        return not_applicable("Real-time threads are never throttled, so there is nothing to borrow.", (runtime,))
    if facts.kernel and not facts.kernel.is_before(FAIR_SERVER_SINCE) and group_scheduling(facts) is False:
        return not_applicable("Since 6.12, real-time threads are only throttled with RT_GROUP_SCHED.", ())
    files = [facts.read(f"/sys/kernel/debug/{path}") for path in ("sched/features", "sched_features")]
    found = next((reading for reading in files if reading.here), None)
    if found is None:
        return _unseen_sharing(facts, check, files)
    words = found.word.split()
    if "NO_RT_RUNTIME_SHARE" in words:
        return good("", (only(found, "NO_RT_RUNTIME_SHARE"),))
    if "RT_RUNTIME_SHARE" in words:
        return finding(
            "A CPU may borrow the time of others for its real-time threads.", (only(found, "RT_RUNTIME_SHARE"),)
        )
    return not_applicable("This kernel has no RT_RUNTIME_SHARE.", (only(found, "(no RT_RUNTIME_SHARE)"),))


def _unseen_sharing(facts: Facts, check: Check, files: list[Reading]) -> Judgement:
    found = readings.missing(check, files)
    if facts.kernel is None:
        return found
    default = "on" if facts.kernel.is_before(SHARE_OFF_SINCE) else "off"
    return Judgement(found.outcome, f"{found.sentence} By default it is {default} in {facts.kernel}.", found.read)


def fair_server(facts: Facts, check: Check) -> Judgement:
    """The time that ordinary threads get ahead of real-time threads once they starve."""
    runtimes = facts.match("/sys/kernel/debug/sched/fair_server/cpu*/runtime")
    here = [reading for reading in runtimes if reading.here]
    if not here:
        return _unseen_fair_server(facts, check, runtimes)
    wanted = isolated_cpus(facts)
    judged = [reading for reading in here if not wanted or _cpu_of(reading.path) in wanted] or here
    wrong = next((reading for reading in judged if reading.number() is None), None)
    if wrong:
        return not_understood(wrong)
    bad = [reading for reading in judged if reading.number()]
    if not bad:
        hidden = [reading for reading in runtimes if not reading.here]
        return readings.unknown(hidden) if hidden else good("Ordinary threads may starve for ever.", judged)
    period = facts.read(bad[0].path.replace("runtime", "period")).number()
    each = f"each {period / 1e6:g} ms" if period else "each period"
    cpus = [_cpu_of(reading.path) for reading in bad]
    text = (
        f"Ordinary threads that starve come before SCHED_FIFO: {(bad[0].number() or 0) / 1e6:g} ms of {each} on "
        f"{cpu_words(cpus)}."
    )
    return finding(text, bad, named=cpus)


def _cpu_of(path: str) -> int:
    number = re.search(r"/cpu(\d{1,6})/", path)
    return int(number[1]) if number else -1


def _unseen_fair_server(facts: Facts, check: Check, runtimes: tuple[Reading, ...]) -> Judgement:
    if facts.kernel is None:
        return unknown(runtimes, "The version of the kernel is not known.")
    if facts.kernel.is_before(FAIR_SERVER_SINCE):
        return not_applicable(f"The kernel has the fair server since 6.12, and this one is {facts.kernel}.", runtimes)
    found = readings.missing(check, list(runtimes))
    more = " By default, starved threads get 50 ms of each second on every CPU."
    return unknown(runtimes, f"{found.sentence}{more}")


def timers(facts: Facts, check: Check) -> Judgement:
    """Whether isolated CPUs may serve timers of others, or have their own served."""
    setting = facts.read("/proc/sys/kernel/timer_migration")
    if not setting.here:
        return readings.missing(check, [setting])
    if setting.word not in ("0", "1"):
        return not_understood(setting)
    if setting.word == "0":
        return good("Timers stay on their CPUs.", (setting,))
    file, full = nohz_full_cpus(facts)
    if full and (isolated_cpus(facts) or frozenset()) <= full:
        text = (
            "Timers are never moved to CPUs of nohz_full, and those set there are moved away. Opinions on that differ."
        )
        return judgement(Outcome.FINDING, text, (setting, file), Severity.INFO)
    return finding("Timers of idle CPUs may be moved to busy ones, also to isolated ones.", (setting,))


def permitted(facts: Facts, check: Check) -> Judgement:
    """Whether the user of the audit may have a real-time policy, and what refuses it."""
    tried = facts.read("rt-permitted")
    if not tried.here:
        return readings.missing(check, [tried])
    if tried.word == "yes":
        return good("A thread that asked for SCHED_FIFO got it.", (tried,))
    if not tried.word.startswith("no"):
        return not_understood(tried)
    causes = _why_refused(facts)
    why = " ".join(causes) if causes else "Neither a capability, a limit nor a control group explains it."
    return finding(f"SCHED_FIFO was refused: {tried.word.removeprefix('no: ')}. {why}", (tried,))


def _why_refused(facts: Facts) -> list[str]:
    """The causes, the one that is to be removed first before the others."""
    causes = []
    limit = limit_of(facts.read("/proc/self/limits"), "Max realtime priority")
    if has_capability(facts, CAP_SYS_NICE) is False and limit == 0:
        causes.append("The user has neither CAP_SYS_NICE nor a limit RTPRIO above 0.")
    budget = facts.read(_BUDGETS)
    first = budget.word.splitlines()[0].rsplit(maxsplit=2) if budget.here and budget.word else []
    if len(first) == 3 and first[1] == "0":
        causes.append(f"The control group {first[0]} has no budget for real-time threads: cpu.rt_runtime_us is 0.")
    if facts.read("/proc/sys/kernel/sched_rt_runtime_us").number() == 0:
        causes.append("sched_rt_runtime_us is 0, which forbids real-time threads.")
    if not causes and re.search(r"(?m)^Seccomp:\s+2$", facts.read("/proc/self/status").text):
        causes.append("A seccomp filter, as containers have it, may refuse the call.")
    return causes


def has_capability(facts: Facts, number: int) -> bool | None:
    """Whether the user of the audit has a capability; None if not known."""
    found = re.search(r"(?m)^CapEff:\s+([0-9a-fA-F]{1,32})$", facts.read("/proc/self/status").text)
    return bool(int(found[1], 16) >> number & 1) if found else None


def limit_of(reading: Reading, name: str) -> int | None:
    """The soft limit of this name; -1 for unlimited, None if not known."""
    found = re.search(rf"(?m)^{name}\s+(unlimited|\d{{1,20}})\s", reading.text)
    return None if not found else -1 if found[1] == "unlimited" else int(found[1])


def highest_priority(facts: Facts, check: Check) -> Judgement:
    """Threads of programs that are not below the application, or else those of the priority 99."""
    found = all_threads(facts)
    if found.threads is None:
        return no_threads(check, found)
    application = [one for one in application_threads(facts).seen if one.priority]
    lowest = min((one.priority for one in application), default=HIGHEST_PRIORITY)
    own = {*measuring_processes(facts), *(one.pid for one in application)}
    high = [one for one in found.threads if one.priority >= lowest and not one.of_kernel and one.pid not in own]
    shown = only(found.reading, ", ".join(one.label for one in high) or f"{len(found.threads)} threads, none of them")
    where = f"the application's lowest priority, {lowest}, or more" if application else f"the priority {lowest}"
    if not high:
        return good_of_all(found, f"No other program has {where}.", shown)
    services = [f"{name} {check.meaning[name]}." for name in sorted({one.name for one in high} & check.meaning.keys())]
    text = " ".join((f"These threads have {where}: {first_names(one.label for one in high)}.", *services))
    return finding(text, (shown,), None, [one.tid for one in high])


def interrupt_priorities(facts: Facts, check: Check) -> Judgement:
    """The kernel's threads that come before the application's real-time threads."""
    system = all_threads(facts)
    if system.threads is None:
        return no_threads(check, system)
    kernel = [one for one in system.threads if one.of_kernel and one.real_time and _OF_THE_KERNEL.fullmatch(one.name)]
    if not kernel:
        sentence = "No interrupt of this kernel has a thread with a real-time policy."
        shown = _count(system.reading, 0)
        hidden = f"Not every thread is known: {system.hidden}."
        return unknown((shown,), hidden) if system.hidden else not_applicable(sentence, (shown,))
    own = _real_time_threads(facts, system.threads)
    if own is None:
        return unknown((facts.read("process/threads"),), "The threads of the application are not known.")
    if not own:
        return not_applicable(
            "There is no real-time thread to compare the interrupts' threads with.", (system.reading,)
        )
    lowest = min(own, key=lambda one: one.priority)
    before = [one for one in kernel if one.priority >= lowest.priority and _may_meet(one, own)]
    if not before:
        return good(
            f"All {len(kernel)} threads come after {lowest.label} of priority {lowest.priority}.",
            (_count(system.reading, 0),),
        )
    names = first_names(f"{one.name} ({one.priority})" for one in before)
    text = (
        f"{lowest.label} has the priority {lowest.priority}, and these threads of the kernel are not below it: {names}."
    )
    return finding(text, (only(system.reading, names),))


def _count(reading: Reading, number: int) -> Reading:
    return only(reading, f"{number} threads of interrupts before the application")


def _real_time_threads(facts: Facts, threads: tuple[AuditedThread, ...]) -> list[AuditedThread] | None:
    """Those of the application, or else of all programs; without SCHED_DEADLINE. None if not known."""
    if facts.record.fact("pid") is not None:
        found = application_threads(facts).threads
        return None if found is None else [one for one in found if one.priority]
    own = measuring_processes(facts)
    return [one for one in threads if one.priority and not one.of_kernel and one.pid not in own]


def _may_meet(thread: AuditedThread, own: list[AuditedThread]) -> bool:
    """Whether a thread may run on a CPU of the application."""
    if thread.cpus is None or any(one.cpus is None for one in own):
        return True
    return any(thread.cpus & (one.cpus or frozenset()) for one in own)


def deadline_threads(facts: Facts, check: Check) -> Judgement:
    """Threads with SCHED_DEADLINE, which come before all others."""
    found = all_threads(facts)
    if found.threads is None:
        return no_threads(check, found)
    threads = [one for one in found.threads if one.policy == "DLN" and one.pid != facts.request.pid]
    others = [one for one in threads if not (one.of_kernel and one.name.startswith("sugov"))]
    if not others:
        more = " The kernel's own sugov threads set the frequency." if threads else ""
        sentence = f"No other program uses SCHED_DEADLINE.{more}"
        return good_of_all(found, sentence, only(found.reading, f"{len(threads)} threads"))
    names = first_names(one.label for one in others)
    return finding(f"These threads come before all with SCHED_FIFO: {names}.", (only(found.reading, names),))
