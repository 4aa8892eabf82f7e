# SPDX-License-Identifier: Apache-2.0

import pytest
from analysis_records import MS, end
from doubt_cases import BLOCKS, CLOCK, N, clean, facts, said_of, with_facts, with_files

from rtproof.record.contents import WHOLE_RUN, EndReason, Event, Moment
from rtproof.summary.summary_model import Doubt, Severity

ASKED, START, DURING, END = Moment


def kernel_says(text: str) -> dict[str, Doubt]:
    return said_of(clean(events=(Event(5, WHOLE_RUN, "kernel", text),)))


def test_another_clock_source_at_the_end() -> None:
    doubt = with_files({(CLOCK, END): "hpet\n"})["clock-changed"]
    assert doubt.severity is Severity.INVALID
    assert doubt.what == "the clock source changed during the run: tsc at the start, hpet at the end"


@pytest.mark.parametrize(
    "line",
    [
        "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable",
        "clocksource: Switched to clocksource hpet",
    ],
)
def test_the_kernel_gives_up_its_clock(line: str) -> None:
    assert kernel_says(line)["clock-changed"].severity is Severity.INVALID


def test_a_clock_that_is_no_counter_of_the_cpu() -> None:
    found = with_files({(CLOCK, START): "hpet", (CLOCK, END): "hpet"})
    assert found["clock-source"].what == "the clock is hpet, not a counter of the CPU (a reading costs 25 ns)"
    assert found["clock-source"].severity is Severity.WARNING


def test_the_wall_clock_was_set() -> None:
    assert set(said_of(clean(events=(Event(5, WHOLE_RUN, "clock_stepped", ""),)))) == {"clock-stepped"}


@pytest.mark.parametrize(
    "line",
    [
        "sched: RT throttling activated",
        "CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)",
    ],
)
def test_the_kernel_throttles(line: str) -> None:
    found = kernel_says(line)
    assert (set(found), found["throttled"].severity) == ({"throttled"}, Severity.INVALID)
    assert line in found["throttled"].what


def test_other_lines_of_the_kernel_are_none_of_our_business() -> None:
    assert kernel_says("usb 1-1: new high-speed USB device number 2") == {}


def test_a_thread_near_the_kernels_budget() -> None:
    found = with_facts({("cpu_time_ns", END): str(N * MS // 2)})
    assert (set(found), found["rt-budget"].severity) == ({"rt-budget"}, Severity.WARNING)
    assert found["rt-budget"].what == "thread 0 used 50 % of a CPU; the kernel throttles at 95 %"


def test_without_throttling_there_is_no_budget() -> None:
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    busy = facts({("cpu_time_ns", END): str(N * MS)})
    unlimited = tuple(f for f in clean().files if f.path != path)
    assert said_of(clean(facts=busy, files=unlimited)) == {}


def test_the_guard_steps_in() -> None:
    event = Event(5, 0, "budget", "used 900 ms of CPU time in 1000 ms; its real-time policy was taken away")
    found = said_of(clean(events=(event,), end=end(BLOCKS, EndReason.GUARD)))
    assert (set(found), found["guard"].severity) == ({"guard"}, Severity.INVALID)
    assert "thread 0 used 900 ms" in found["guard"].what
    assert set(said_of(clean(end=end(BLOCKS, EndReason.GUARD, "too much")))) == {"guard"}


def test_stolen_time() -> None:
    found = with_files({("/proc/stat", END): "cpu  9 0 9 99 0 0 0 47 0 0\n"})
    assert found["steal"].what.startswith("the hypervisor took 420 ms of CPU time")
    assert set(with_files({("/proc/stat", END): "cpu  9 0 9 99\n"})) == set()


def test_a_guest() -> None:
    flags = "model name\t: x\nflags\t\t: fpu tsc hypervisor lahf_lm\n"
    assert set(with_files({("/proc/cpuinfo", START): flags})) == {"guest"}


def test_no_kernel_log() -> None:
    found = with_facts({("kmsg", START): "unavailable: Operation not permitted"})
    assert "(Operation not permitted)" in found["no-kernel-log"].what


def test_a_simulated_run_is_of_no_machine() -> None:
    doubt = with_facts({("simulated", ASKED): "seed=7 kind=poisson"})["simulated"]
    assert doubt.severity is Severity.WARNING
    assert doubt.what == "simulated: no figure is of any machine (seed=7 kind=poisson)"


@pytest.mark.parametrize("moment", [START, DURING, END])
def test_another_policy_than_asked(moment: Moment) -> None:
    doubt = with_facts({("policy", moment): "rr"})["policy"]
    assert doubt.severity is Severity.INVALID
    assert doubt.what == f"policy fifo was asked for, but effective was: thread 0 {moment.name.lower()}: rr"


def test_another_priority_than_asked() -> None:
    found = with_facts({("priority", START): "2"})
    assert set(found) == {"priority"}
    assert found["priority"].what.startswith("priority 80 was asked for, but effective was: thread 0 start: 2")


def test_other_has_no_priority() -> None:
    other = {("policy", moment): "other" for moment in Moment} | {("timer_slack_ns", START): "0"}
    assert with_facts({**other, ("priority", ASKED): "0"}) == {}


def test_other_instead_of_fifo_as_the_user_allowed() -> None:
    changes = {("policy", moment): "other" for moment in (START, DURING, END)}
    changes |= {("priority", moment): "0" for moment in (START, DURING, END)}
    changes |= {("allow_unprivileged", ASKED): "yes", ("timer_slack_ns", START): "0"}
    found = with_facts(changes)
    assert set(found) == {"unprivileged"}
    assert found["unprivileged"].severity is Severity.INVALID
    found = said_of(clean(facts=facts(changes)), limit_ns=None)
    assert found["unprivileged"].severity is Severity.WARNING


def test_losing_the_policy_in_mid_run_is_not_what_the_user_allowed() -> None:
    found = with_facts({("allow_unprivileged", ASKED): "yes", ("policy", END): "other"})
    assert found["policy"].severity is Severity.INVALID


def test_a_policy_that_somebody_changed() -> None:
    found = said_of(clean(events=(Event(5, 0, "policy_changed", "other"),)))
    assert found["policy-changed"].what.endswith("thread 0 became other")


def test_another_cpu_than_its_own() -> None:
    found = with_facts({("cpu", END): "1"})
    assert found["cpu"].severity is Severity.INVALID
    assert found["cpu"].what == "thread 0 was bound to CPU 2 and ran on CPU 1"


def test_timer_slack_counts_without_real_time_only() -> None:
    changes = {("policy", moment): "other" for moment in Moment}
    assert (
        with_facts(changes)["timer-slack"].what
        == "the kernel may put off the timers of thread 0 by 50 us (timer slack)"
    )
    assert "timer-slack" not in with_facts({})


def test_memory_that_was_not_locked() -> None:
    found = with_facts({("memory_locked", START): "no: Cannot allocate memory"})
    assert found["memory-unlocked"].severity is Severity.WARNING
    assert "(Cannot allocate memory)" in found["memory-unlocked"].what


@pytest.mark.parametrize(("asked", "severity"), [("yes", Severity.INVALID), ("no", Severity.WARNING)])
@pytest.mark.parametrize("kind", ["minor_faults", "major_faults"])
def test_page_faults_in_the_loop(kind: str, asked: str, severity: Severity) -> None:
    found = with_facts({(kind, END): "3", ("lock_memory", ASKED): asked})
    assert found["page-faults"].severity is severity
    assert "3 m" in found["page-faults"].what


def test_idle_states_that_could_not_be_limited() -> None:
    found = with_facts({("dma_latency", START): "unavailable: Permission denied"})
    assert "(Permission denied)" in found["dma-latency"].what
