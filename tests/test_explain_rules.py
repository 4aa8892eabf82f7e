# SPDX-License-Identifier: Apache-2.0
"""Causes of people's own applications: what a thread does, what withholds the CPU, slack, moves and new names."""

from dataclasses import replace

import pytest
from analysis_records import record
from explain_cases import (
    DUE_NS,
    ENTRY,
    HOG,
    HOG_PRIORITY,
    MEANING,
    OTHER,
    OTHER_TIMER,
    OWN_TIMER,
    PLAIN,
    URGENT,
    VICTIM,
    Cpu,
    begun,
    budget_of,
    shown,
    told,
    traced_run,
)

from rtproof.experiment.explained_runs import exceeded_causes
from rtproof.explain.budget import System, TimeBudget
from rtproof.explain.causes import Cause, NamedCause, advice_on
from rtproof.explain.cpu_contexts import IDLE_LEAVES
from rtproof.explain.explanation import explain
from rtproof.explain.thread_modes import call_namer, signal_name
from rtproof.explain.throttling import NO_LIMITS, Limits, recorded_limits
from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, SOFTIRQ
from rtproof.explain.trace_timelines import Meaning
from rtproof.record.contents import Moment, SystemFile

UNCLEAR = "own-code-or-kernel"
NUMBERS = replace(MEANING, call=call_namer("x86_64"))
READ, WRITE, NANOSLEEP = 0, 1, 230
MS = 1_000_000


def running(*, calls: bool = True) -> Cpu:
    """A CPU on which the victim has run since before its begin mark. calls: whether an event began a call of it."""
    cpu = Cpu(0, HOG).to_victim(-50_000)
    return cpu.add(-9_000, "sys_enter", id=WRITE).add(-8_000, "sys_exit", id=WRITE) if calls else cpu


def of_marks(
    length_ns: int, *cpus: Cpu, system: System = PLAIN, meaning: Meaning = NUMBERS
) -> list[tuple[str, str, int]]:
    """Cause, name and length of the parts between two marks."""
    found = budget_of(length_ns, *cpus, system=system, meaning=meaning, marked=True)
    return [(cause, name, length) for _, cause, name, length in shown(found)]


# What a running thread does.


FAULT_OR_OWN = "own-code-or-kernel the thread's own code, or a page fault"
RUNNING = {
    "a page that is touched before 3 ms of computing is not charged with these": (
        "100 page_fault_user 109 mmap_lock_released 3000.01 sys_enter=1",
        "own-code 100; page-fault 9; own-code 2891",
    ),
    "the last event of a page fault counts: Linux 6.2 counts pages, of which a copy has two": (
        "100 page_fault_user 104 rss_stat 106 rss_stat 200 !rss_stat 3000.01 sys_enter=1",
        "own-code 100; page-fault 6; own-code 2894",
    ),
    "page faults that follow each other at once are one time": (
        "100 page_fault_user 100.9 rss_stat 101.7 page_fault_user 102.6 rss_stat 103.4 page_fault_user 104.3 rss_stat "
        "107 page_fault_user 107.9 rss_stat 107.95 sys_enter=0",
        "own-code 100; page-fault 4.3; own-code 2.7; page-fault 0.9; own-code 0.05; system-call read 2892.05",
    ),
    "what nothing bounds may be own code": ("100 page_fault_user", f"own-code 100; {FAULT_OR_OWN} 2900"),
    "another page fault bounds none": (
        "100 page_fault_user 2000 page_fault_user",
        f"own-code 100; {FAULT_OR_OWN} 2900",
    ),
    "an event of a page fault says nothing where calls are not traced: it may be one of munmap": (
        "uncalled 100 page_fault_user 2900 rss_stat",
        f"own-code 100; {FAULT_OR_OWN} 2900",
    ),
    "probes tell where a page fault begins and ends, as on arm64": (
        "100 fault_begin 150 fault_end 200 sys_enter=0 210 fault_begin 230 fault_end 300 sys_exit=0",
        "own-code 100; page-fault 50; own-code 50; system-call read 10; page-fault 20; system-call read 70; "
        "own-code 2700",
    ),
    "a page fault whose end the kernel missed may be own code": (
        "100 page_fault_user 400 sys_enter=0 600 sys_exit=0 700 fault_end",
        f"own-code 100; {FAULT_OR_OWN} 300; system-call read 200; own-code 2400",
    ),
    "a page that a system call reads for itself is of the call, as with mlock": (
        "100 sys_enter=0 300 fault_end 500 fault_end 900 sys_exit=0",
        "own-code 100; system-call read 800; own-code 2100",
    ),
    "a long system call is named by its number": (
        "100 page_fault_user 110 rss_stat 120 sys_enter=0 150 page_fault_kernel 160 rss_stat 2900 sys_exit=0",
        "own-code 100; page-fault 10; own-code 10; system-call read 30; page-fault 10; system-call read 2740; "
        "own-code 100",
    ),
    "behind close the kernel may release the file, until another call begins": (
        "100 sys_enter=3 110 sys_exit=3 500 sys_enter=0 510 sys_exit=0 3000.01 sys_enter=1",
        "own-code 100; system-call close 10; "
        "own-code-or-kernel the thread's own code, or a file's release behind system call close 390; "
        "system-call read 10; own-code 2490",
    ),
    "a system call whose begin has no event may be own code": (
        "uncalled -8 sys_exit=1 100 page_fault_user 2900 sys_exit=0",
        f"own-code 100; {FAULT_OR_OWN}, or system call read 2800; own-code 100",
    ),
    "a handler of a signal is named and ends with its call": (
        "100 signal_deliver=14 200 sys_enter=1 210 sys_exit=1 900 sys_enter=15 901 sys_exit=15",
        "own-code 100; signal-handler SIGALRM 100; system-call write 10; signal-handler SIGALRM 690; "
        "system-call rt_sigreturn 1; own-code 2099",
    ),
    "a handler whose end cannot be seen may be own code": (
        "uncalled 100 signal_deliver=14",
        "own-code 100; own-code-or-kernel the thread's own code, or the handler of SIGALRM 2900",
    ),
    "a signal that is ignored has no handler": ("100 signal_deliver=17", "own-code 3000"),
}


@pytest.mark.parametrize(("events", "parts"), RUNNING.values(), ids=RUNNING.keys())
def test_what_a_thread_does_while_it_runs_is_told(events: str, parts: str) -> None:
    """events: microseconds behind the begin, and a name with the number of the call or of the signal."""
    *_, listed = events.rpartition("uncalled ")
    cpu, words = running(calls=listed == events), listed.split()
    for at_us, event in zip(words[::2], words[1::2], strict=True):
        name, _, number = event.removeprefix("!").partition("=")
        values = (
            {"id": int(number), "sig": int(number), "sa_handler": 1 if number == "17" else 0x1000} if number else {}
        )
        cpu.add(round(float(at_us) * 1_000), name, HARDIRQ if event.startswith("!") else 0, **values)
    assert told(of_marks(3 * MS, cpu)) == parts


@pytest.mark.parametrize(
    ("fault_ns", "gap_ns", "first"),
    [(3_000, 2_900, "page-fault"), (9_000, 10_000, UNCLEAR), (3_000, 6_100, "own-code")],
)
def test_on_a_slow_cpu_the_end_of_a_page_fault_may_be_as_long_as_its_beginning(
    fault_ns: int, gap_ns: int, first: str
) -> None:
    cpu, both_ns = running(), fault_ns + gap_ns
    for begin_ns in range(0, 100 * both_ns, both_ns):
        cpu.add(begin_ns, "page_fault_user").add(begin_ns + fault_ns, "rss_stat")
    lengths = dict.fromkeys(("page-fault", "own-code", UNCLEAR), 0)
    for cause, _, length_ns in of_marks(100 * both_ns, cpu.add(100 * both_ns + 10, "sys_enter", id=READ)):
        lengths[cause] += length_ns
    assert max(lengths, key=lambda cause: lengths[cause]) == first
    assert lengths["own-code"] == gap_ns * (100 if first == "own-code" else 1), "behind the last one nothing follows"


@pytest.mark.parametrize(
    ("state", "end", "before"), [(2, False, "page-fault"), (2, True, "page-fault"), (0, True, UNCLEAR)]
)
def test_a_page_fault_ends_behind_the_sleep_or_the_preemption_in_it(state: int, end: bool, before: str) -> None:
    """A thread that sleeps outside of a system call sleeps in its page fault. end: whether a probe tells its end."""
    cpu = running().add(100_000, "page_fault_user").switch(130_000, HOG, state=state)
    cpu.waking(900_000, HARDIRQ).to_victim(910_000)
    parts = of_marks(MS, cpu.add(920_000, "fault_end").add(MS + 10, "sys_enter", id=WRITE) if end else cpu)
    assert parts[1][::2] == (before, 30_000)
    behind = [("page-fault", "", 10_000), ("own-code", "", 80_000)] if end else [("page-fault", "", 90_000)]
    assert parts[-len(behind) :] == behind


@pytest.mark.parametrize("preempted", [False, True])
@pytest.mark.parametrize(
    ("begin", "end", "last"),
    [("fault_begin", "fault_end", "a page fault"), ("sys_enter", "sys_exit", "system call write")],
)
def test_a_thread_that_the_kernel_lets_sleep_at_the_end_of_a_call_or_a_fault_is_throttled(
    begin: str, end: str, last: str, preempted: bool
) -> None:
    """As above memory.high. One that is stopped there is not; without events of page faults it may sleep in one."""

    def last_run_and_sleep(state: int, meaning: Meaning = NUMBERS) -> list[tuple[str, str, int]]:
        cpu = running().add(100_000, begin, id=WRITE).add(150_000, end, id=WRITE)
        if preempted:
            cpu.switch(200_000, OTHER, URGENT).to_victim(250_000)
        cpu.switch(350_000, HOG, state=state).add(890_000, "softirq_entry", SOFTIRQ, vec=1).waking(900_000, SOFTIRQ)
        cpu.add(901_000, "softirq_exit", SOFTIRQ, vec=1).to_victim(910_000)
        return of_marks(MS, cpu, meaning=meaning)[-5:-3]

    ran_ns, at_end = 100_000 if preempted else 200_000, f"the kernel at the end of {last}"
    assert last_run_and_sleep(2) == [
        (UNCLEAR, f"the thread's own code, or {at_end}", ran_ns),
        ("throttled", f"memory.high of its control group, or another limit of {at_end}", 550_000),
    ]
    not_told = [("own-code", "", ran_ns), ("interrupt-wait", "softirq TIMER", 550_000)]
    assert last_run_and_sleep(4) == not_told
    assert last_run_and_sleep(2, replace(NUMBERS, faults=False)) == not_told


def test_a_stack_of_own_code_ends_a_page_fault() -> None:
    cpu = running().add(100_000, "page_fault_user")
    cpu.hard(900_000, "irq_vectors/local_timer_entry").hard(900_500, "kernel_stack", caller=(ENTRY,))
    cpu.hard(902_000, "irq_vectors/local_timer_exit")
    assert told(of_marks(2 * MS, cpu)[1:]) == f"{FAULT_OR_OWN} 800; timer 2; own-code 1098"


def test_own_code_may_be_a_system_call_where_none_has_events() -> None:
    parts = of_marks(MS, running(calls=False), system=System(sees_calls=False))
    assert parts == [(UNCLEAR, "the thread's own code, or a system call", MS)]


def test_a_system_call_goes_on_behind_a_preemption() -> None:
    cpu = running().add(100_000, "sys_enter", id=READ).switch(200_000, OTHER, URGENT).to_victim(300_000)
    assert of_marks(400_000, cpu)[-1] == ("system-call", "read", 100_000)


def test_what_a_thread_does_behind_its_return_goes_on_behind_a_preemption() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).add(9_000, "sys_exit", id=NANOSLEEP).add(20_000, "sys_enter", id=WRITE)
    cpu.switch(40_000, OTHER, URGENT).to_victim(60_000).switch(70_000, OTHER, URGENT).to_victim(80_000)
    assert shown(budget_of(90_000, cpu, meaning=NUMBERS))[-1] == ("C", "system-call", "write", 10_000)


def test_the_call_in_which_an_activation_slept_is_its_return_and_a_later_one_is_not() -> None:
    cpu = Cpu(0, VICTIM).add(-600_000, "sys_enter", id=NANOSLEEP).switch(-500_000, HOG, state=1)
    cpu.timer(1_000).to_victim(7_000).add(9_000, "sys_exit", id=NANOSLEEP).add(20_000, "sys_enter", id=WRITE)
    assert (
        told(shown(budget_of(90_000, cpu, meaning=NUMBERS))[-3:]) == "C return 2; C own-code 11; C system-call write 70"
    )


def test_numbers_have_the_names_of_their_architecture() -> None:
    machines = ("x86_64", "aarch64", "riscv64", "i686", "vax")
    assert [call_namer(machine)(3) for machine in machines] == ["close", "io_cancel", "io_cancel", "read", "number 3"]
    assert call_namer("x86_64")(100_000) == "number 100000"
    assert (signal_name(10), signal_name(4_000)) == ("SIGUSR1", "signal 4000")


# What withholds the CPU.


def idle_beside(until_ns: int, *, out: bool = True) -> Cpu:
    """The victim is ready from 20 us on, and its CPU goes idle and stays so. out: because it was switched out."""
    if out:
        return begun().timer(1_000).to_victim(7_000).switch(20_000, 0).add(22_000, "cpu_idle", IRQS_OFF, state=1)
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, state=1)
    cpu.timer(1_000).add(9_000, "cpu_idle", IRQS_OFF, state=IDLE_LEAVES)
    return cpu.add(80_000, "cpu_idle", IRQS_OFF, state=1).add(until_ns, "hrtimer_start")


CLASSES = [(-1, "its DEADLINE budget"), (19, "sched_rt_runtime_us or"), (120, "cpu.max of a control group")]


@pytest.mark.parametrize(("priority", "limit"), CLASSES)
def test_a_thread_that_is_ready_beside_an_idle_cpu_is_throttled_by_the_limit_of_its_class(
    priority: int, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explain_cases.VICTIM_PRIORITY", priority)
    found = budget_of(36 * MS, idle_beside(0).to_victim(30 * MS))
    cause = found.first
    assert cause.cause is Cause.THROTTLED
    assert cause.name.startswith(limit)
    assert found.by_cause[cause] == 29_980_000
    assert f"throttled by {limit}" in cause.words()
    rule = advice_on(cause)
    assert rule is not None
    assert rule.short != "look for a limit of CPU time"


def test_a_throttled_thread_exceeds_what_may_be_throttled() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).switch(20_000, 0).to_victim(30 * MS).add(40 * MS, "hrtimer_start")
    found = explain(traced_run([36 * MS], cpu), 1)
    assert exceeded_causes(found, {Cause.THROTTLED: 0}) == ["1 late activation had throttled first, and 0 may"]
    assert exceeded_causes(found, {Cause.SCHEDULER: 0}) == []


def test_who_allows_no_page_fault_allows_none_that_may_be_one() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).add(9_000, "sys_exit").add(12_000, "page_fault_user")
    assert Cause.PAGE_FAULT in Cause.OWN_CODE_OR_KERNEL.may_be
    assert budget_of(2 * MS, cpu).first.cause is Cause.OWN_CODE_OR_KERNEL


def test_a_cpu_that_goes_idle_behind_the_waking_shows_a_limit_too() -> None:
    found = budget_of(900_000, idle_beside(700_000, out=False).to_victim(800_000))
    assert found.first.cause is Cause.THROTTLED


@pytest.mark.parametrize(
    ("priority", "function", "cause"),
    [
        (-1, "dl_task_timer", Cause.THROTTLED),
        (-1, "wakes", Cause.SCHEDULER),
        (19, "dl_task_timer", Cause.SCHEDULER),
        (19, "sched_rt_period_timer", Cause.THROTTLED),
        (120, "sched_cfs_period_timer", Cause.THROTTLED),
    ],
)
def test_a_timer_of_the_scheduler_for_its_class_shows_the_limit_however_short(
    priority: int, function: str, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explain_cases.VICTIM_PRIORITY", priority)
    names = replace(MEANING, symbol=lambda address: function)
    cpu = begun().timer(1_000).switch(8_000, 0)
    cpu.hard(150_000, "hrtimer_expire_entry", hrtimer=7, function=1).hard(151_000, "hrtimer_expire_exit")
    assert budget_of(200_000, cpu.to_victim(155_000), meaning=names).first.cause is cause


def waited_beside_hog(
    expires_ns: int, runs_ns: int, function: str = "sched_cfs_period_timer", limits: Limits = NO_LIMITS
) -> TimeBudget:
    """Another thread of the same priority has the CPU from 20 us on. A timer expires before the victim runs again."""
    names = replace(MEANING, symbol=lambda address: function)
    cpu = begun().timer(1_000).to_victim(7_000).switch(20_000, HOG, 120)
    cpu.hard(expires_ns, "hrtimer_expire_entry", hrtimer=7, function=1).hard(expires_ns + 1_000, "hrtimer_expire_exit")
    return budget_of(runs_ns + 5_000, cpu.to_victim(runs_ns), meaning=names, system=System(limits=limits))


def test_a_long_wait_beside_others_that_ends_behind_a_limits_timer_may_be_throttling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("explain_cases.VICTIM_PRIORITY", 120)
    found = waited_beside_hog(18 * MS, 19 * MS)
    assert found.first.words() == "throttled by cpu.max of a control group, or it was the turn of hog"
    assert found.by_cause[found.first] == 18 * MS - 20_000
    assert waited_beside_hog(18 * MS, 19 * MS, "hrtimer_wakeup").first.cause is Cause.THREAD
    assert waited_beside_hog(8 * MS, 9 * MS).first.cause is Cause.THREAD, "the other's turn takes so long"
    assert waited_beside_hog(18 * MS, 40 * MS).first.cause is Cause.THREAD, "long behind the timer"
    unlimited = replace(NO_LIMITS, of_group=False)
    assert waited_beside_hog(18 * MS, 19 * MS, limits=unlimited).first.cause is Cause.THREAD, (
        "the limit of another group"
    )


@pytest.mark.parametrize("cause", [Cause.THREAD, Cause.THROTTLED])
def test_a_limit_on_either_of_two_possible_causes_counts_both(cause: Cause, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explain_cases.VICTIM_PRIORITY", 120)
    run = explain(traced_run([5_000], begun().timer(1_000).to_victim(7_000)), 1)
    found = replace(run, budgets=(waited_beside_hog(18 * MS, 19 * MS),))
    first = found.budgets[0].first
    assert first.cause is Cause.THROTTLED_OR_THREAD
    assert exceeded_causes(found, {cause: 0}) == [
        f"1 late activation had, or may have had, {cause.value} first, and 0 may"
    ]
    assert exceeded_causes(found, {Cause.MACHINE: 0}) == []
    rule = advice_on(first)
    assert rule is not None
    assert "cpu.max" in rule.short


def test_a_limit_of_ordinary_threads_withholds_nothing_from_others() -> None:
    assert waited_beside_hog(18 * MS, 19 * MS).first.cause is not Cause.THROTTLED


def test_a_cpu_that_takes_long_to_leave_its_idle_state_throttles_nobody() -> None:
    other = Cpu(1, OTHER).add(-9_000, "hrtimer_start").waking(2_000, HARDIRQ, target=0)
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, state=2)
    for until_ns, cause in ((100_000, Cause.SCHEDULER), (800_000, Cause.IDLE_EXIT)):
        events = Cpu(0, 0, list(cpu.events)).to_victim(until_ns)
        assert budget_of(until_ns + 5_000, events, replace_events(other)).first.cause is cause


@pytest.mark.parametrize(("again", "cause"), [(True, Cause.THROTTLED), (False, Cause.IDLE_EXIT)])
def test_an_idle_time_before_one_that_a_limit_makes_has_the_same_cause(again: bool, cause: Cause) -> None:
    """The CPU is idle when the victim becomes ready. Another thread runs, and then the CPU may be idle again."""
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, state=1).timer(1_000)
    cpu.add(699_000, "cpu_idle", IRQS_OFF, state=IDLE_LEAVES).switch(700_000, OTHER, URGENT)
    if again:
        cpu.switch(720_000, 0).add(722_000, "cpu_idle", IRQS_OFF, state=1)
    found = budget_of(4 * MS, cpu.to_victim(3 * MS if again else 720_000))
    idle = [part.cause.cause for part in found.parts if part.phase.name == "B" and part.to_ns == DUE_NS + 700_000]
    assert idle == [cause]


def replace_events(cpu: Cpu) -> Cpu:
    return Cpu(cpu.number, cpu.pid, list(cpu.events))


def test_a_guest_that_shows_nothing_for_long_may_have_been_stopped() -> None:
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, state=2)
    other = Cpu(1, OTHER).add(-9_000, "hrtimer_start").waking(2_000, HARDIRQ, target=0)
    found = budget_of(10 * MS, cpu.to_victim(9 * MS), other, system=System(can_be_gone=True)).first
    assert found.cause is Cause.THROTTLED_OR_MACHINE
    assert found.words().endswith(", or the host stopped the CPU")


def file(path: str, text: str) -> SystemFile:
    return SystemFile(0, Moment.START, path, 0, False, text.encode())


RUNTIME, GROUP, CGROUPS = "/proc/sys/kernel/sched_rt_runtime_us", "rt-group", "process/cgroup-files"
UNKNOWN = "a limit that the run does not show"


@pytest.mark.parametrize(
    ("release", "files", "limits"),
    [
        ("6.1.0", (), Limits(Limits.fair, "sched_rt_runtime_us", "sched_rt_runtime_us")),
        ("6.1.0", ((RUNTIME, "-1\n"),), Limits(Limits.fair, UNKNOWN, UNKNOWN)),
        ("6.12.5", (), Limits(Limits.fair, UNKNOWN, "the kernel's fair server")),
        (
            "6.12.5",
            ((GROUP, "/a 1 2"), (CGROUPS, "/g/cpu.max max 100000\n/sys/g/cpu.max 40000 100000\n")),
            Limits(
                "/sys/g/cpu.max (40000 us of 100000 us)",
                "cpu.rt_runtime_us of a group",
                "the kernel's fair server or cpu.rt_runtime_us of a group",
                of_group=True,
            ),
        ),
        (
            "6.1.0",
            ((RUNTIME, "-1"), (CGROUPS, "/c/g/cpu.cfs_quota_us 5000\n/c/g/cpu.cfs_period_us 20000\n")),
            Limits("/c/g/cpu.cfs_quota_us (5000 us of 20000 us)", UNKNOWN, UNKNOWN, of_group=True),
        ),
        (
            "6.1.0",
            (
                (RUNTIME, "-1"),
                (CGROUPS, "/g/cpu.max max 100000\n/c/cpu.cfs_quota_us -1\n/c/cpu.cfs_period_us 100000\n"),
            ),
            Limits(Limits.fair, UNKNOWN, UNKNOWN, of_group=False),
        ),
    ],
)
def test_the_run_tells_which_limits_there_are(release: str, files: tuple[tuple[str, str], ...], limits: Limits) -> None:
    run = record([], files=tuple(file(*each) for each in files))
    assert recorded_limits(replace(run, begin=replace(run.begin, kernel_release=release))) == limits


# The slack of its timer.


def slept(slack_ns: int, until_ns: int, flags: int = HARDIRQ, set_late_ns: int = 0) -> TimeBudget:
    """The victim sleeps by its own timer on an idle CPU, and is woken so long behind the due time.

    set_late_ns: so much later than the due time is the time for which it set the timer.
    """
    base = 5 * MS  # the timer's clock is not that of the events
    soft = base + set_late_ns
    cpu = Cpu(0, VICTIM).add(-600_000, "hrtimer_start", hrtimer=OWN_TIMER, softexpires=soft, expires=soft + slack_ns)
    cpu.switch(-500_000, 0, state=1).add(until_ns - 1_000, "irq_vectors/local_timer_entry", IRQS_OFF | HARDIRQ)
    cpu.add(until_ns, "hrtimer_expire_entry", flags, hrtimer=OWN_TIMER, function=1, now=base + until_ns)
    cpu.waking(until_ns + 1_000, flags).add(until_ns + 2_000, "hrtimer_expire_exit", flags, hrtimer=OWN_TIMER)
    cpu.hard(until_ns + 3_000, "irq_vectors/local_timer_exit")
    return budget_of(until_ns + 10_000, cpu.to_victim(until_ns + 6_000))


def test_what_comes_behind_the_slack_is_charged_as_ever() -> None:
    found = slept(50_000, 300_000)
    assert shown(found)[:2] == [("A", "timer-slack", "50 us", 50_000), ("A", "idle-exit", "", 249_000)]
    assert slept(50_000, 30_000).by_cause[NamedCause(Cause.TIMER_SLACK, "50 us")] == 30_000
    assert all(part.cause.cause is not Cause.TIMER_SLACK for part in slept(50, 300_000).parts)


def test_a_timer_that_is_set_for_later_than_the_due_time_is_no_late_machine() -> None:
    found = slept(0, 300_000, set_late_ns=290_000)
    # The interrupt came 1 us before its timer expired, and the kernel may have read the clock then.
    assert shown(found)[:2] == [("A", "sleep", "", 289_000), ("A", "idle-exit", "", 10_000)]
    assert found.first.words() == "the thread's own sleep"
    rule = advice_on(found.first)
    assert rule is not None
    assert "TIMER_ABSTIME" in rule.sentence
    assert told(shown(slept(50_000, 300_000, set_late_ns=290_000))[:2]) == "A sleep 289; A timer-slack 50 us 11"


def test_the_entry_of_an_interrupt_that_no_event_begins_is_no_sleep() -> None:
    """The timer's clock is that of the trace, and the first event of the interrupt comes 5 us after its reading."""
    cpu = Cpu(0, VICTIM)
    cpu.add(-600_000, "hrtimer_start", hrtimer=OWN_TIMER, softexpires=0, expires=0).switch(-500_000, 0, state=1)
    cpu.add(5_000, "hrtimer_expire_entry", IRQS_OFF | HARDIRQ, hrtimer=OWN_TIMER, function=1, now=100)
    cpu.waking(6_000, IRQS_OFF | HARDIRQ).add(7_000, "hrtimer_expire_exit", IRQS_OFF | HARDIRQ, hrtimer=OWN_TIMER)
    found = budget_of(20_000, cpu.to_victim(12_000))
    assert all(part.cause.cause is not Cause.SLEEP for part in found.parts)


def test_a_timer_that_was_due_in_time_shows_no_sleep() -> None:
    for set_late_ns in (-100_000, 0, 900):
        assert all(part.cause.cause is not Cause.SLEEP for part in slept(0, 300_000, set_late_ns=set_late_ns).parts)


# A softirq in which timers expire.


def test_a_timer_that_expires_in_the_softirq_is_in_no_interrupt() -> None:
    cpu = begun().timer(1_000).add(6_000, "softirq_entry", SOFTIRQ, vec=8)
    cpu.add(7_000, "hrtimer_expire_entry", SOFTIRQ, hrtimer=OTHER_TIMER, function=7)
    cpu.add(97_000, "hrtimer_expire_exit", SOFTIRQ, hrtimer=OTHER_TIMER).add(98_000, "softirq_exit", SOFTIRQ, vec=8)
    found = budget_of(105_000, cpu.to_victim(100_000))
    assert found.first == NamedCause(Cause.SOFTIRQ, "HRTIMER", function="function 0x7")
    assert found.first.words() == "softirq HRTIMER: function 0x7"


# A thread that is moved.


def moved(pid: int, flags: int = IRQS_OFF) -> tuple[Cpu, Cpu]:
    """FIFO 80 preempts the victim on CPU 0, which goes to CPU 1, whose interrupt comes 40 us later."""
    first = begun().timer(1_000).to_victim(7_000).switch(100_000, OTHER, URGENT)
    first.pid = pid
    first.add(101_000, "sched_migrate_task", flags, 2, pid=VICTIM, orig_cpu=0, dest_cpu=1)
    first.pid = OTHER
    second = Cpu(1, 0).switch(-50_000, HOG)
    second.hard(141_000, "irq_vectors/reschedule_entry", depth=1).hard(142_000, "irq_vectors/reschedule_exit", depth=1)
    return first, second


def test_a_thread_that_another_pushes_away_waits_for_the_interrupt_of_its_new_cpu() -> None:
    first, second = moved(OTHER)
    meaning = replace(MEANING, paired=MEANING.paired | {"irq_vectors/reschedule"})
    found = budget_of(200_000, first, second.to_victim(190_000), meaning=meaning)
    parts = [part for part in shown(found) if part[1] not in ("return", "timer")]
    assert told(parts[-4:]) == (
        "C thread other/300 1; C migration pushed away by other 40; C hardirq reschedule 1; C preemptoff hog/200 48"
    )
    assert all(part.cause.cause is not Cause.THROTTLED for part in found.parts)


def test_a_migration_has_its_reason() -> None:
    reasons = {}
    for flags in (IRQS_OFF, IRQS_OFF | SOFTIRQ, IRQS_OFF | HARDIRQ):
        first, second = moved(OTHER, flags)
        found = budget_of(150_000, first, second.to_victim(135_000))
        reasons[flags] = next(part.cause.words() for part in found.parts if part.cause.cause is Cause.MIGRATION)
    assert list(reasons.values()) == [
        "migration to another CPU, pushed away by other",
        "migration to another CPU, by load balancing",
        "migration to another CPU, pushed by an interrupt",
    ]


def test_a_waking_may_choose_another_cpu() -> None:
    first = begun().add(1_000, "sched_waking", IRQS_OFF | HARDIRQ, pid=VICTIM, prio=19, target_cpu=0)
    first.add(2_000, "sched_migrate_task", IRQS_OFF | HARDIRQ, pid=VICTIM, orig_cpu=0, dest_cpu=1)
    second = Cpu(1, HOG).add(-9_000, "hrtimer_start").switch(-5_000, 0).to_victim(9_000)
    assert ("B", "migration", "chosen at its waking", 7_000) in shown(budget_of(15_000, first, second))


# Names and priorities over time.


def switched_out(cpu: Cpu, at_ns: int, priority: int, name: str) -> Cpu:
    """The victim gets the CPU from a thread that has a priority and a name by now."""
    cpu.add(
        at_ns, "sched_switch", IRQS_OFF, 1, prev_pid=cpu.pid, prev_comm=name, prev_prio=priority, prev_state=0,
        next_pid=VICTIM, next_comm="victim", next_prio=19,
    )  # fmt: skip
    cpu.pid = VICTIM
    return cpu


def test_a_thread_that_became_urgent_while_it_ran_is_never_a_missing_preemption_point() -> None:
    cpu = switched_out(begun().timer(1_000), 901_000, 9, "chrt")
    assert ("B", "thread", "chrt/200", 896_000) in shown(budget_of(905_000, cpu))


def test_a_thread_that_gives_its_priority_up_kept_the_cpu_by_the_old_one() -> None:
    cpu = Cpu(0, VICTIM).switch(-500_000, HOG, 9, state=1).timer(1_000)
    assert ("B", "thread", "hog/200", 896_000) in shown(budget_of(905_000, switched_out(cpu, 901_000, 120, "hog")))


def test_a_thread_has_its_new_name_from_exec_on() -> None:
    cpu = begun().timer(1_000).add(400_000, "task_rename", pid=HOG, oldcomm="hog", newcomm="app")
    parts = shown(budget_of(905_000, switched_out(cpu, 901_000, HOG_PRIORITY, "app")))
    assert [part[1:] for part in parts if part[2].endswith("/200") and part[0] == "B"] == [
        ("no-preemption-point", "hog/200", 395_000),
        ("no-preemption-point", "app/200", 501_000),
    ]


def test_the_list_of_real_time_threads_counts_where_no_switch_tells() -> None:
    known = replace(MEANING, urgent={HOG: 9})
    cpu = begun().timer(1_000)
    assert ("B", "no-preemption-point", "hog/200", 895_000) in shown(budget_of(900_000, replace_events(cpu)))
    assert ("B", "thread", "hog/200", 895_000) in shown(budget_of(900_000, replace_events(cpu), meaning=known))
    told = switched_out(cpu, 901_000, HOG_PRIORITY, "hog")
    assert ("B", "no-preemption-point", "hog/200", 896_000) in shown(budget_of(905_000, told, meaning=known))
