# SPDX-License-Identifier: Apache-2.0
"""A trace.dat of trace-cmd: both versions, both byte orders, cut short, damaged; and the activations found in it."""

import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from explain_cases import HOG, LITTLE, VICTIM, Cpu, begun
from trace_cases import trace_cmd
from trace_dat_cases import BIG, PERIOD_NS, RAN_NS, RETURNED_NS, SLEPT_NS, sleep, sleeping, traced, version_6, version_7

from rtproof.core.errors import UserError
from rtproof.experiment.explained_runs import explain_run
from rtproof.experiment.stored_runs import open_trace, read_run
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation
from rtproof.explain.foreign_records import ALL_REAL_TIME, DEFINITION_EVENT, WantedThreads
from rtproof.explain.thread_activations import LONGEST_NS, Start, Waking, WatchedThread, activations_of
from rtproof.record.contents import Record
from rtproof.summary.recorded_facts import IMPORTED_EVENT

TIMES = ("softexpires", "expires", "now")
LATES_NS = (0, 0, 300_000, 0, 0, 1_000)


def opened(folder: Path, content: bytes, wanted: WantedThreads = ALL_REAL_TIME) -> Record:
    path = folder / "trace.dat"
    path.write_bytes(content)
    return open_trace(path, wanted)


def values_of(record: Record, series: int = 0) -> list[int]:
    return [int(value) for block in record.blocks(series) for value in block.values]


def notes(record: Record, kind: str = DEFINITION_EVENT) -> str:
    return "; ".join(event.text for event in record.events if event.kind == kind)


@pytest.mark.parametrize("layout", [LITTLE, BIG], ids=["little", "big"])
@pytest.mark.parametrize(
    "write", [version_6, version_7, lambda record: version_7(record, "zlib")], ids=["6", "7", "zlib"]
)
def test_every_version_and_byte_order_tells_the_same(tmp_path: Path, write, layout) -> None:  # type: ignore[no-untyped-def]
    found = opened(tmp_path, write(traced(sleeping(LATES_NS), layout=layout)))
    assert values_of(found) == [RETURNED_NS + late for late in LATES_NS]
    (series,) = found.series
    assert (series.external, series.period_ns, series.probe, series.method) == (True, PERIOD_NS, "foreign", "timer")
    assert "due when its timer was set to expire (hrtimer_wakeup)" in notes(found)
    assert "its period is 1 ms" in notes(found)
    assert f"median {SLEPT_NS // 1000} us, largest {SLEPT_NS // 1000} us, n = {len(LATES_NS)}" in notes(found)
    assert not notes(found, IMPORTED_EVENT)


def test_the_budget_of_a_trace_names_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "trace.dat"
    path.write_bytes(version_7(traced(sleeping(LATES_NS))))
    _, found, _ = explain_run(path, 100_000, 8, {}, ALL_REAL_TIME)
    assert isinstance(found, Explanation)
    (late,) = found.budgets
    assert late.activation.latency_ns == 300_000 + RETURNED_NS
    assert late.first.cause is Cause.IRQ_OFF_OR_GONE
    assert sum(late.by_cause.values()) == late.activation.latency_ns
    assert read_run(path).analysis.every[0].obtained == len(LATES_NS)
    with pytest.raises(UserError, match="not a run folder"):
        explain_run(tmp_path, 100_000, 8, {}, WantedThreads(("victim",)))


def test_without_system_calls_the_switch_is_the_end(tmp_path: Path) -> None:
    cpu = sleeping(LATES_NS)
    cpu.events = [event for event in cpu.events if event.name != "sys_exit"]
    found = opened(tmp_path, version_6(traced(cpu)))
    assert values_of(found) == [RAN_NS + late for late in LATES_NS]
    assert "ends when it got the CPU" in notes(found)


def test_a_switch_without_an_event_counts_from_the_threads_own_event(tmp_path: Path) -> None:
    cpu = sleeping(LATES_NS)
    cpu.events = [event for event in cpu.events if event.values.get("next_pid") != VICTIM]
    assert values_of(opened(tmp_path, version_6(traced(cpu)))) == [RETURNED_NS + late for late in LATES_NS]


def test_a_missed_due_time_is_counted_on_the_grid(tmp_path: Path) -> None:
    cpu = begun()
    for number in (1, 2, 3, 6, 7):
        sleep(cpu, number * PERIOD_NS)
    found = opened(tmp_path, version_6(traced(cpu)))
    assert [(int(b.gap_position[0]), int(b.gap_missed[0])) for b in found.blocks(0)] == [(2, 2)]
    assert found.end is not None
    assert found.end.totals[0].missed == 2


def test_a_timer_that_starts_itself_again_is_due_a_period_later(tmp_path: Path) -> None:
    cpu = begun()
    for number in (1, 2, 3):
        sleep(cpu, number * PERIOD_NS, function=0x6000)
    for number in (4, 5):
        cpu.switch(number * PERIOD_NS - 800_000, HOG, state=1)
        sleep(cpu, number * PERIOD_NS, function=0x6000, on=False, late_ns=3_000 * (number - 4))
    found = opened(tmp_path, version_6(traced(cpu)))
    assert values_of(found) == [RETURNED_NS] * 4 + [RETURNED_NS + 3_000]
    assert "timerfd_tmrproc" in notes(found)


def _by_interrupt(cpu: Cpu, at_ns: int) -> None:
    cpu.hard(at_ns, "irq_handler_entry", irq=9, name="eth0")
    cpu.waking(at_ns + 2_000, 8)
    cpu.hard(at_ns + 3_000, "irq_handler_exit", irq=9)
    cpu.to_victim(at_ns + 9_000)
    cpu.switch(at_ns + 20_000, HOG, state=1)


def test_what_an_interrupt_wakes_is_due_at_its_entry(tmp_path: Path) -> None:
    cpu = begun()
    for at_ns in (100_000, 700_000, 900_000, 2_500_000):
        _by_interrupt(cpu, at_ns)
    found = opened(tmp_path, version_6(traced(cpu)))
    assert values_of(found) == [9_000] * 4
    blocks = [(block.first_due_ns, block.values.size) for block in found.blocks(0)]
    assert blocks == [(0, 2), (800_000, 1), (2_400_000, 1)], "600 us after the last, an activation follows in its block"
    assert "its interrupt was entered (eth0)" in notes(found)
    assert "largest 20 us, n = 4" in notes(found)
    assert read_run(tmp_path / "trace.dat").analysis.every[0].obtained == 4


def test_what_another_thread_wakes_is_due_at_the_waking(tmp_path: Path) -> None:
    cpu = begun()
    for at_ns in (0, 500_000, 900_000):
        cpu.waking(at_ns)
        cpu.to_victim(at_ns + 4_000)
        cpu.switch(at_ns + 6_000, HOG, state=1)
    found = opened(tmp_path, version_6(traced(cpu)))
    assert values_of(found) == [4_000] * 3
    assert found.series[0].method == "waking"


def test_a_lock_within_the_sleep_is_no_activation(tmp_path: Path) -> None:
    cpu = begun()
    for number in (1, 2, 3):
        sleep(cpu, number * PERIOD_NS)
    late = cpu.events.pop()
    cpu.switch(3 * PERIOD_NS + RAN_NS + 1_000, HOG, state=2)
    cpu.waking(3 * PERIOD_NS + 60_000)
    cpu.to_victim(3 * PERIOD_NS + 64_000)
    cpu.events.append(late._replace(time_ns=late.time_ns + 60_000))
    assert values_of(opened(tmp_path, version_6(traced(cpu)))) == [RETURNED_NS, RETURNED_NS, RETURNED_NS + 60_000]


def woken(due_ns: int, *, late_ns: int = 50, returns: bool = True) -> Waking:
    at_ns = due_ns + late_ns
    return Waking(at_ns, Start.TIMER, 5, due_ns, at_ns + 10, at_ns + 20 if returns else None)


def test_where_no_sleep_by_the_timer_returned_the_switch_is_the_end() -> None:
    others = [Waking(at, Start.WAKING, "", at, at + 5, at + 10) for at in range(10)]
    timers = [woken(due, returns=False) for due in (100, 200, 300)]
    found = activations_of(WatchedThread(7, wakings=[*others, *timers], returns=len(others)), hex)
    assert found
    assert found.latency_ns == (60, 60, 60)
    assert found.sentences[0].endswith("and ends when it got the CPU")
    assert found.sentences[-1].endswith("not counted: 10 wakings by something else")


def test_due_times_that_go_back_or_are_far_off_are_left_out_and_counted() -> None:
    dues = [1_000, 2_000, 500, 700, 3_000]
    early = woken(LONGEST_NS, late_ns=-LONGEST_NS)
    found = activations_of(WatchedThread(7, wakings=[early, *map(woken, dues)], returns=6), hex)
    assert found
    assert found.due_ns == (1_000, 2_000, 3_000)
    assert found.sentences[-1].endswith("not counted: 3 wakings by a timer without a due time in the trace")


def test_threads_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    content = version_6(traced(sleeping(LATES_NS)))
    assert len(values_of(opened(tmp_path, content, WantedThreads(("victim",))))) == len(LATES_NS)
    assert len(values_of(opened(tmp_path, content, WantedThreads((), (VICTIM,))))) == len(LATES_NS)
    with pytest.raises(
        UserError, match=r"the trace has no thread 'nobody' and no thread 7; most often it woke victim/100"
    ):
        opened(tmp_path, content, WantedThreads(("nobody",), (7,)))


def test_lost_events_are_told_and_end_what_went_on(tmp_path: Path) -> None:
    cpu = sleeping(LATES_NS)
    pages = traced(cpu)
    content = version_6(pages)
    at = len(content) - 2 * 4096 + 8
    lost = (
        content[:at]
        + (int.from_bytes(content[at : at + 8], "little") | 1 << 31).to_bytes(8, "little")
        + content[at + 8 :]
    )
    found = opened(tmp_path, lost)
    assert "events are missing at 1 place of the trace" in notes(found, IMPORTED_EVENT)
    assert 0 < len(values_of(found)) <= len(LATES_NS)


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    whole = version_7(traced(sleeping(LATES_NS)))
    for content, words in (
        (version_7(traced(sleeping(LATES_NS)), "zlib").replace(b"zlib\0", b"zstd\0"), "compressed with zstd"),
        (whole.replace(b"tracing7", b"tracing9"), "version '9'"),
        (whole.replace(b"\0mono\0", b"\0counter\0"), "does not count nanoseconds|cut short"),
        (whole[:60], "does not say how its events are laid out"),
        (version_6(traced(Cpu())), "holds no events"),
    ):
        with pytest.raises(UserError, match=words):
            opened(tmp_path, content)


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_cpus_that_share_their_events_are_refused(tmp_path: Path, compression: str) -> None:
    """Otherwise a small file asks for a time and a memory without bound."""
    record = traced(sleeping(LATES_NS))
    for copies, words in ((4000, "the events of its CPUs are more than the file"), (5000, "a trace of 5,001 CPUs")):
        with pytest.raises(UserError, match=words):
            opened(tmp_path, version_7(record, compression, copies=copies))


def test_a_file_that_was_cut_short_gives_what_is_left(tmp_path: Path) -> None:
    whole = version_6(traced(sleeping(LATES_NS * 4)))
    found = opened(tmp_path, whole[: -5 * 4096])
    assert 3 <= len(values_of(found)) < 4 * len(LATES_NS)
    assert "bytes of the events of CPU 0" in notes(found, IMPORTED_EVENT)


def test_another_clock_is_aligned_by_the_timers(tmp_path: Path) -> None:
    cpu = sleeping(LATES_NS)
    moved = [event._replace(time_ns=event.time_ns + 77_000_000_000) for event in cpu.events]
    shifted = Cpu(0, HOG, moved)
    found = opened(tmp_path, version_6(traced(shifted, trace_clock="[local] mono\n")))
    assert np.allclose(values_of(found), [RETURNED_NS + late for late in LATES_NS], atol=600)


def test_a_real_clock_of_a_timer_is_brought_to_the_others(tmp_path: Path) -> None:
    apart = 1_700_000_000_000_000_000
    cpu = sleeping(LATES_NS)
    for at, event in enumerate(cpu.events):
        moved = {key: value + apart for key, value in event.values.items() if key in TIMES and isinstance(value, int)}
        cpu.events[at] = event._replace(values={**event.values, **moved})
    found = opened(tmp_path, version_6(traced(cpu)))
    assert np.allclose(values_of(found), [RETURNED_NS + late for late in LATES_NS], atol=1_000)


def test_trace_cmd_and_rtproof_read_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "6.dat").write_bytes(version_6(traced(sleeping(LATES_NS))))
    trace_cmd("convert", "--compression", "none", "-i", str(tmp_path / "6.dat"), "-o", str(tmp_path / "7.dat"))
    found = open_trace(tmp_path / "7.dat", ALL_REAL_TIME)
    assert values_of(found) == [RETURNED_NS + late for late in LATES_NS]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_end_in_a_sentence(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    whole = (version_6, version_7)[seed % 2](traced(sleeping(LATES_NS)))
    said = []
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 3, 20))):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        with suppress(UserError):
            said.append(opened(tmp_path, bytes(damaged[: dice.choice((len(damaged), dice.randrange(len(damaged))))])))
    assert 0 < len(said) < 40
