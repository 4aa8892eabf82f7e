# SPDX-License-Identifier: Apache-2.0
"""Doubts about the system and the threads: each planted fault has its doubt, and no other."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from analysis_records import MS, SECOND, end, fact
from doubt_cases import BLOCKS, CLOCK, Changes, N, clean, facts, files, said_of, with_facts, with_files

from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import claim_of
from rtproof.record.contents import WHOLE_RUN, Begin, EndReason, Event, Moment, Record
from rtproof.summary.streaming import dropped_samples, link_work, times_away
from rtproof.summary.summary_model import Doubt, Severity

ASKED, START, DURING, END = Moment
INVALID, WARNING = Severity.INVALID, Severity.WARNING
OTHER: Changes = {("policy", moment): "other" for moment in Moment}
OTHER_MEASURED: Changes = {
    **{("policy", moment): "other" for moment in (START, DURING, END)},
    **{("priority", moment): "0" for moment in (START, DURING, END)},
    ("allow_unprivileged", ASKED): "yes",
    ("timer_slack_ns", START): "0",
}


def event(kind: str, text: str = "", thread: int = WHOLE_RUN) -> dict[str, Doubt]:
    return said_of(clean(events=(Event(5, thread, kind, text),)))


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({("cpu_time_ns", END): str(N * MS // 2)}, "rt-budget", WARNING),
        ({("kmsg", START): "unavailable: Operation not permitted"}, "no-kernel-log", WARNING),
        ({("simulated", ASKED): "seed=7 kind=poisson"}, "simulated", WARNING),
        ({("policy", START): "rr"}, "policy", INVALID),
        ({("policy", DURING): "rr"}, "policy", INVALID),
        ({("policy", END): "rr"}, "policy", INVALID),
        ({("allow_unprivileged", ASKED): "yes", ("policy", END): "other"}, "policy", INVALID),
        ({("priority", START): "2"}, "priority", INVALID),
        ({**OTHER, ("timer_slack_ns", START): "0", ("priority", ASKED): "0"}, None, None),
        ({**OTHER, ("timer_slack_ns", START): "1", ("priority", ASKED): "0"}, None, None),
        (OTHER_MEASURED, "unprivileged", INVALID),
        ({("cpu", END): "1"}, "cpu", INVALID),
        ({**OTHER, ("priority", ASKED): "0"}, "timer-slack", WARNING),
        ({("memory_locked", START): "no: Cannot allocate memory"}, "memory-unlocked", WARNING),
        ({("minor_faults", END): "3", ("lock_memory", ASKED): "yes"}, "page-faults", INVALID),
        ({("major_faults", END): "3", ("lock_memory", ASKED): "no"}, "page-faults", WARNING),
        ({("dma_latency", START): "unavailable: Permission denied"}, "dma-latency", WARNING),
    ],
)
def test_a_fact_that_is_wrong(changes: Changes, code: str | None, severity: Severity | None) -> None:
    assert {each.code: each.severity for each in with_facts(changes).values()} == ({code: severity} if code else {})


@pytest.mark.parametrize(
    ("key", "value", "moment", "codes"),
    [
        ("io_calls", 0, END, set()),
        ("io_calls", 12, END, {"io-calls"}),
        ("warmup_activations", 0, START, {"warm-up"}),
        ("warmup_activations", 1, START, set()),
    ],
)
def test_a_fact_of_a_thread(key: str, value: int, moment: Moment, codes: set[str]) -> None:
    assert set(said_of(clean(facts=(*facts({}), fact(key, value, moment, 0))))) == codes


@pytest.mark.parametrize(
    ("path", "moment", "content", "code", "severity"),
    [
        (CLOCK, END, "hpet\n", "clock-changed", INVALID),
        ("/proc/cpuinfo", START, "model name\t: x\nflags\t\t: fpu tsc hypervisor lahf_lm\n", "guest", WARNING),
        ("/proc/stat", END, "cpu  9 0 9 99 0 0 0 47 0 0\n", "steal", WARNING),
        ("/proc/stat", END, "cpu  9 0 9 99\n", None, None),
    ],
)
def test_a_file_that_is_wrong(
    path: str, moment: Moment, content: str, code: str | None, severity: Severity | None
) -> None:
    found = with_files({(path, moment): content})
    assert {each.code: each.severity for each in found.values()} == ({code: severity} if code else {})
    if code == "steal":
        assert "420 ms" in found[code].whole


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable", "clock-changed"),
        ("clocksource: Switched to clocksource hpet", "clock-changed"),
        ("sched: RT throttling activated", "throttled"),
        ("CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)", "throttled"),
        ("usb 1-1: new high-speed USB device number 2", None),
    ],
)
def test_a_line_of_the_kernel(line: str, code: str | None) -> None:
    assert {each.code: each.severity for each in event("kernel", line).values()} == ({code: INVALID} if code else {})


def test_events_of_the_agent() -> None:
    assert set(event("clock_stepped")) == {"clock-stepped"}
    assert event("policy_changed", "other", 0)["policy-changed"].severity is INVALID
    assert "thread 0: 574 in 508 activations" in event("stops", "574 in 508 activations", 0)["traced"].whole
    used = Event(5, 0, "budget", "used 900 ms of CPU time in 1000 ms; its real-time policy was taken away")
    found = said_of(clean(events=(used,), end=end(BLOCKS, EndReason.GUARD)))
    assert (set(found), found["guard"].severity) == ({"guard"}, INVALID)
    assert set(said_of(clean(end=end(BLOCKS, EndReason.GUARD, "too much")))) == {"guard"}


def test_a_clock_that_is_no_counter_of_the_cpu() -> None:
    found = with_files({(CLOCK, START): "hpet", (CLOCK, END): "hpet"})
    assert found["clock-source"].severity is WARNING


def test_without_throttling_there_is_no_budget() -> None:
    busy = facts({("cpu_time_ns", END): str(N * MS)})
    unlimited = tuple(f for f in clean().files if f.path != "/proc/sys/kernel/sched_rt_runtime_us")
    assert said_of(clean(facts=busy, files=unlimited)) == {}


def test_an_unprivileged_run_without_a_limit_is_only_warned_of() -> None:
    found = said_of(clean(facts=facts(OTHER_MEASURED)), limit_ns=None)
    assert found["unprivileged"].severity is WARNING


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("BUG: scheduling while atomic: kworker/0:1/23/0x00000002", True),
        ("sched: RT throttling activated", False),
        ("rcu: INFO: rcu_preempt self-detected stall on CPU", True),
        ("BUG: sleeping function called from invalid context at kernel/locking/rtmutex.c:968", True),
        ("eth0: link up, 100Mbps", False),
    ],
)
def test_what_the_kernel_logged_counts_where_it_tells_of_a_fault(line: str, found: bool) -> None:
    doubt = said_of(clean(events=(Event(5, WHOLE_RUN, "kernel", line), Event(6, WHOLE_RUN, "kernel", line)))).get(
        "kernel-log"
    )
    assert (doubt is not None) is found
    assert doubt is None or doubt.detail.count(line) == 1


# A streamed run: its own link on a measured CPU, and samples that the link did not bring away.


LINK = {
    "link_bytes": "30000",
    "link_wakeups": "12",
    "link_cpu_ns": "2000000",
    "link_cpus": "0-1",
    "link_device": "eth0,virtio1,24",
}
INTERRUPTS = """       CPU0  CPU1  CPU2
  24: {} 0 0 GIC 24 Level other
  25: 1 {} 0 GIC eth0-rx-0
  26: {} 0 0 PCI virtio1-input.0
  27: 0 0 {} PCI eth01
"""
BEFORE, AFTER = INTERRUPTS.format(5, 0, 1, 0), INTERRUPTS.format(6, 9, 3, 7)


def streamed(changes: Mapping[str, str]) -> Record:
    told = {(key, Moment.END): text for key, text in {**LINK, **changes}.items()}
    read = {("/proc/interrupts", Moment.START): BEFORE, ("/proc/interrupts", Moment.END): AFTER}
    return clean(facts=facts(told), files=files(read))


def test_without_a_link_or_with_one_on_other_cpus_there_is_no_doubt() -> None:
    assert link_work(clean()) is None
    assert not {"link-load", "samples-dropped"} & set(said_of(clean()))
    assert "link-load" not in said_of(streamed({}))


def test_the_interrupts_are_those_of_the_device() -> None:
    """The line of eth01 is another device's, and a number is one only as the label of its line."""
    work = "30,000 bytes sent, 12 wake-ups, 12 interrupts of eth0 (whoever caused them)"
    assert link_work(streamed({})) == ({0, 1}, 2_000_000, work)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"link_cpus": "2"}, "12 wake-ups, 12 interrupts of eth0"),
        ({"link_device": "eth0,25,27"}, "CPU 2"),
        ({"link_cpu_ns": str(N * 20_000)}, ""),
        ({"link_cpus": "2", "link_device": "veth0"}, "interrupts unknown"),
        ({"link_cpus": "2", "link_device": "unavailable: no"}, "interrupts unknown"),
    ],
)
def test_a_link_that_matters_is_doubted(changes: dict[str, str], words: str) -> None:
    made = streamed(changes)
    assert words in said_of(made)["link-load"].whole
    assert "link-load" in {doubt.code for doubt in doubts_about_rows([claim_of(analyse(made), "run")])}


def dropped(first: int, samples: int, from_s: int, to_s: int) -> Event:
    text = f"series=0 first_index={first} samples={samples} from_ns={from_s * SECOND} to_ns={to_s * SECOND}"
    return told((to_s + 1) * SECOND, "samples_dropped", text)


def told(time_ns: int, kind: str, text: str) -> Event:
    return Event(time_ns, WHOLE_RUN, kind, text)


def test_dropped_samples_are_told_with_the_time_away_and_by_the_second() -> None:
    events = (
        told(70 * SECOND, "link_behind", f"heard_ns={5 * SECOND}"),
        dropped(65_000, 40_999, 65, 105),
        told(108 * SECOND, "link_caught_up", f"heard_ns={67 * SECOND}"),
        told(300 * SECOND, "link_behind", f"heard_ns={250 * SECOND}"),
        dropped(9, 1, 309, 309),
        told(311 * SECOND, "samples_dropped", "nonsense"),
    )  # fmt: skip
    made = clean(events=events)
    noon = 12 * 3600 * SECOND
    made = replace(made, begin=replace(made.begin, origin_realtime_ns=noon))
    assert isinstance(made.begin, Begin)
    assert list(times_away(made)) == [(5 * SECOND, 67 * SECOND), (250 * SECOND, None)]
    assert dropped_samples(made)[0] == (0, 40_999, 65 * SECOND, 105 * SECOND)
    what = said_of(made)["samples-dropped"].whole
    assert "away (12:00:05 to 12:01:07; 12:04:10 to the end UTC)" in what
    assert "41,000 samples; between 1 min 05 s and 5 min 09 s" in what
