# SPDX-License-Identifier: Apache-2.0
"""What a guest's processors executed in turns: which instructions are of which, and who woke the measured thread."""

import struct
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.core.errors import UserError
from rtproof.lab.cell_explanation import (
    AFTER_SCHEDULER,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    BEFORE_WAKE_UP,
    IN_INTERRUPT,
    SOAKER_NOPS,
    UNTIL_SCHEDULER,
    ExecutedPhase,
    LargestActivation,
    clock_reading,
    count_error_ns,
    divide_latency,
    largest_activation,
    passes_before,
    refuse_moved_thread,
    soaker_loop,
)
from rtproof.lab.executed_code import (
    SOAKER,
    USER,
    ExecutedBlocks,
    FunctionSpan,
    Symbols,
    function_spans,
    length_ns,
    of_cpu,
    parse_blocks,
    within,
)
from rtproof.record.contents import Record

KERNEL, STEP = 0xFFFF_0000, 0x100
NAMES = (
    "entry_SYSCALL_64",
    "asm_sysvec_apic_timer_interrupt",
    "hrtimer_interrupt",
    "try_to_wake_up",
    "enqueue_task_rt",
    "resched_curr",
    "native_smp_send_reschedule",
    "asm_sysvec_reschedule_ipi",
    "__schedule",
    "__switch_to_asm",
    "__x64_sys_munmap",
    "release_pages",
    "__x64_sys_futex",
    "asm_sysvec_call_function_single",
    "native_send_call_func_single_ipi",
    "ttwu_queue_wakelist",
    "sched_ttwu_pending",
)
AGENT, LOOP, PAGE = (0x1000, 0x2000), (0x3000, 0x3010), 0x7FFF_0000
SYMBOLS = Symbols(
    tuple(KERNEL + at * STEP for at in range(len(NAMES))),
    NAMES,
    KERNEL,
    (KERNEL, KERNEL + STEP),
    "__switch_to_asm",
    LOOP,
)
Step = tuple[int, str, int]


def address(name: str) -> int:
    """Of a function's beginning; with a dot behind its name, of its middle."""
    outside = {"user": AGENT[0], "soaker": LOOP[0], "page": PAGE}
    if name in outside:
        return outside[name]
    return KERNEL + NAMES.index(name.removesuffix(".")) * STEP + (8 if name.endswith(".") else 0)


def blocks(*steps: Step, end_cpu: int = 1) -> ExecutedBlocks:
    """Blocks of code: the processor of each, its function, and its length in ns."""
    starts = np.cumsum([0, *(length for _, _, length in steps)])
    rows = np.array([address(name) for _, name, _ in steps], np.uint64)
    cpus = np.array([cpu for cpu, _, _ in steps], np.uint8)
    return ExecutedBlocks(rows, starts[:-1].astype(np.int64), int(starts[-1]), 0, cpus, end_cpu)


def spans(*steps: Step) -> list[FunctionSpan]:
    return function_spans(blocks(*steps), SYMBOLS)


def on(cpu: int, *steps: tuple[str, int]) -> list[Step]:
    return [(cpu, name, length) for name, length in steps]


def test_each_processor_has_calls_of_its_own_and_a_turn_of_another_one_cuts_them() -> None:
    found = spans(
        (1, "user", 5), (1, "release_pages", 10), (0, "hrtimer_interrupt", 3), (0, "resched_curr", 2),
        (1, "release_pages.", 4), (1, "user", 1), (0, "hrtimer_interrupt.", 7),
    )  # fmt: skip
    assert [(span.cpu, span.start_ns, span.end_ns, span.name, span.began) for span in found] == [
        (1, 0, 5, USER, False),
        (1, 5, 15, "release_pages", True),
        (0, 15, 18, "hrtimer_interrupt", True),
        (0, 18, 20, "resched_curr", True),
        (1, 20, 24, "release_pages", False),
        (1, 24, 25, USER, False),
        (0, 25, 32, "hrtimer_interrupt", False),
    ]
    assert found[4].call is found[1].call
    assert found[3].call.stack() == ("hrtimer_interrupt", "resched_curr")
    assert found[5].call.stack() == (USER,)


def test_a_task_that_goes_on_on_another_processor_has_the_callers_that_it_had() -> None:
    away = on(0, ("user", 1), ("__x64_sys_munmap", 1), ("release_pages", 1), ("__schedule", 1), ("__switch_to_asm", 1))
    back = on(1, ("__switch_to_asm", 1), ("__schedule.", 1), ("release_pages.", 1), ("__x64_sys_munmap.", 1))
    found = spans(*away, *back, (1, "resched_curr", 1))
    assert found[-1].call.stack() == (USER, "__x64_sys_munmap", "resched_curr")


LOCAL = [
    *on(1, ("soaker", 100)),
    *on(0, ("soaker", 30)),
    *on(1, ("soaker", 20), ("asm_sysvec_apic_timer_interrupt", 5), ("hrtimer_interrupt", 10)),
    *on(0, ("soaker", 40)),
    *on(1, ("hrtimer_interrupt.", 5), ("try_to_wake_up", 2), ("enqueue_task_rt", 3), ("resched_curr", 4)),
    *on(1, ("hrtimer_interrupt.", 6)),
    *on(0, ("release_pages", 50)),
    *on(1, ("asm_sysvec_apic_timer_interrupt.", 7), ("__schedule", 8), ("__switch_to_asm", 9)),
    *on(0, ("release_pages.", 60)),
    *on(1, ("__switch_to_asm.", 1), ("__schedule.", 2), ("user", 3)),
]


def divided(steps: list[Step], due_ns: int = 100) -> tuple[ExecutedPhase, ...]:
    found = spans(*steps)
    inside = within(found, due_ns, found[-1].end_ns)
    phases, _, _ = divide_latency(inside, SYMBOLS, due_ns, 1)
    assert sum(phase.length_ns for phase in phases) == found[-1].end_ns - due_ns
    assert all(phase.own_ns == length_ns(of_cpu(part_of(inside, due_ns, phase), 1)) for phase in phases)
    return phases


def part_of(inside: list[FunctionSpan], due_ns: int, phase: ExecutedPhase) -> list[FunctionSpan]:
    return within(inside, due_ns + phase.start_ns, due_ns + phase.start_ns + phase.length_ns)


def figures(phases: tuple[ExecutedPhase, ...]) -> list[tuple[str, int, int]]:
    return [(phase.name, phase.own_ns, phase.others_ns) for phase in phases]


def test_a_latency_is_the_instructions_of_the_measured_processor_and_the_turns_of_others() -> None:
    phases = divided(LOCAL)
    assert figures(phases) == [
        (BEFORE_INTERRUPT, 20, 30),
        (IN_INTERRUPT, 5 + 10 + 5 + 2, 40),
        (BEFORE_SCHEDULER, 3 + 4 + 6 + 7, 50),
        (AFTER_SCHEDULER, 8 + 9 + 1 + 2 + 3, 60),
    ]
    assert phases[0].path == (SOAKER,)
    assert phases[0].functions == ((SOAKER, 20),)
    assert "release_pages" not in dict(phases[2].functions), "another processor ran it"


SENDER = on(
    0,
    ("asm_sysvec_apic_timer_interrupt", 5),
    ("hrtimer_interrupt", 10),
    ("try_to_wake_up", 4),
    ("enqueue_task_rt", 6),
    ("resched_curr", 2),
    ("native_smp_send_reschedule", 8),
    ("resched_curr.", 1),
    ("hrtimer_interrupt.", 9),
)
SWITCH = on(1, ("__schedule", 11), ("__switch_to_asm", 2), ("__schedule.", 3), ("user", 4))
REMOTE = [
    *on(1, ("soaker", 100)),
    *on(0, ("soaker", 30)),
    *SENDER,
    *on(1, ("release_pages", 20), ("asm_sysvec_reschedule_ipi", 7)),
    *on(0, ("soaker", 20), ("resched_curr", 25), ("soaker", 5)),
    *on(1, ("asm_sysvec_reschedule_ipi.", 13), *[(name, length) for _, name, length in SWITCH]),
]


def test_of_a_thread_that_another_processor_woke_only_the_scheduler_is_known() -> None:
    phases = divided(REMOTE)
    assert figures(phases) == [
        (UNTIL_SCHEDULER, 20 + 7 + 13, 30 + 45 + 50),
        (AFTER_SCHEDULER, 11 + 2 + 3 + 4, 0),
    ]
    found = spans(*REMOTE)
    _, marked_ns, by = divide_latency(within(found, 100, found[-1].end_ns), SYMBOLS, 100, 1)
    assert marked_ns is None
    assert by[-1] == "asm_sysvec_reschedule_ipi"


def test_a_wake_up_in_an_interrupt_of_another_processor_is_no_timers() -> None:
    steps = [
        *on(1, ("soaker", 100)),
        *on(0, ("__x64_sys_futex", 3), ("try_to_wake_up", 4), ("native_send_call_func_single_ipi", 6)),
        *on(1, ("soaker", 8), ("asm_sysvec_call_function_single", 9), ("sched_ttwu_pending", 10)),
        *on(1, ("enqueue_task_rt", 12), ("asm_sysvec_call_function_single.", 13)),
        *SWITCH,
    ]
    assert figures(divided(steps)) == [
        (BEFORE_WAKE_UP, 8 + 9 + 10, 3 + 4 + 6),
        (BEFORE_SCHEDULER, 12 + 13, 0),
        (AFTER_SCHEDULER, 11 + 2 + 3 + 4, 0),
    ]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["user", "soaker", *NAMES, *(f"{name}." for name in NAMES)]),
        st.integers(0, 50),
    ),
    min_size=1,
)


@given(STEPS, st.data())
def test_the_phases_of_any_latency_add_up_to_it(steps: list[Step], data: st.DataObject) -> None:
    found = spans(*steps)
    assert [found[0].start_ns, found[-1].end_ns] == [0, sum(length for _, _, length in steps)]
    assert all(one.end_ns == other.start_ns for one, other in pairwise(found))
    due_ns = data.draw(st.integers(0, found[-1].end_ns))
    inside = within(found, due_ns, found[-1].end_ns)
    if not inside:
        return
    phases, marked_ns, _ = divide_latency(inside, SYMBOLS, due_ns, 1)
    assert sum(phase.length_ns for phase in phases) == found[-1].end_ns - due_ns
    assert all(phase.own_ns >= 0 and phase.others_ns >= 0 for phase in phases)
    assert [phase.start_ns for phase in phases] == [sum(p.length_ns for p in phases[:at]) for at in range(len(phases))]
    assert marked_ns is None or 0 <= marked_ns <= found[-1].end_ns - due_ns


def recording(*rows: tuple[int, int, int], end: tuple[int, int]) -> bytes:
    packed = b"".join(struct.pack("=QQ", address, cpu << 56 | ns) for address, cpu, ns in rows)
    return struct.pack("=4sIQQ", b"RTPB", 2, 0, end[0] << 56 | end[1]) + packed


def test_a_recording_names_the_processor_of_each_block_and_of_its_end() -> None:
    found = parse_blocks(recording((16, 0, 1), (32, 3, 5), end=(2, 9)))
    assert (found.cpu.tolist(), found.start_ns.tolist(), found.end_cpu, found.end_ns) == ([0, 3], [1, 5], 2, 9)
    assert found.on_cpu(3).tolist() == [False, True]
    before = found.until(1)
    assert (before.cpu.tolist(), before.end_cpu, before.end_ns) == ([0], 3, 5)


def test_a_recording_of_one_processor_has_no_processors() -> None:
    found = parse_blocks(recording((16, 0, 1), end=(0, 9)))
    assert (found.cpu.tolist(), found.end_cpu, found.on_cpu(0).tolist()) == ([], 0, [True])


def test_the_clock_is_read_on_the_measured_processor() -> None:
    steps = [(1, "release_pages", 50), (1, "user", 10), (1, "page", 20), (0, "page", 7), (0, "release_pages", 9)]
    assert clock_reading(blocks(*steps, (1, "user", 5)), KERNEL, *AGENT) == (80, 20)


def test_a_turn_while_the_clock_is_read_leaves_open_on_which_side_it_was_read() -> None:
    steps = [(1, "page", 40), (1, "user", 10), (1, "page", 20), (0, "soaker", 700), (1, "page", 8), (1, "user", 5)]
    assert clock_reading(blocks(*steps), KERNEL, *AGENT) == (778, 708)


MARKS = {"conditions_note": AGENT[0] + 16, "from": AGENT[0], "to": AGENT[1]}


def of_activations(*values: int, thread: int = 0, counted_cpu: int | None = None) -> LargestActivation:
    return LargestActivation(len(values) - 1, np.array(values), thread, 1_000, counted_cpu)


def two_activations(second_ns: int) -> ExecutedBlocks:
    found = blocks((1, "page", 20), (1, "user", 5), (0, "soaker", second_ns - 25), (1, "page", 20), (1, "user", 5))
    found.address[1] = MARKS["conditions_note"]
    return found


@pytest.mark.parametrize(("second_ns", "error_ns"), [(1_000, -30), (1_030, 0), (2_037, 7)])
def test_the_error_of_the_count_is_told_by_the_activation_before(second_ns: int, error_ns: int) -> None:
    assert count_error_ns(two_activations(second_ns), KERNEL, MARKS, of_activations(70, 100)) == error_ns


def test_a_recording_of_one_activation_tells_no_error() -> None:
    found = blocks((1, "page", 20), (1, "user", 5))
    assert count_error_ns(found, KERNEL, MARKS, of_activations(70, 100)) is None
    outside = LargestActivation(1, np.array([70, 100]), 0, 1_000, None, on_grid=False)
    assert count_error_ns(two_activations(1_030), KERNEL, MARKS, outside) is None


def record(
    *threads: tuple[int, list[int]], elsewhere: int = 0, noted: int | None = None, checks: int = 0, warmed_up: int = 20
) -> Record:
    """A record with a series for each thread: its processor and its values."""
    same = {"period_ns": 1_000, "on_grid": True}
    series = [SimpleNamespace(id=at, thread=at, cpu=cpu, **same) for at, (cpu, _) in enumerate(threads)]
    values = [np.array(each, np.int64) for _, each in threads]
    seen = {
        at: SimpleNamespace(
            thread=at,
            noted=np.array([len(each) if noted is None else noted]),
            elsewhere=np.array([elsewhere]),
            checks=np.array([checks]),
        )
        for at, each in enumerate(values)
    }

    def blocks_of(series: int) -> Iterator[Any]:
        if len(values[series]):
            yield SimpleNamespace(values=values[series])

    facts = {"warmup_ns": "20000", "warmup_activations": f"{warmed_up}"}
    return cast(
        Record, SimpleNamespace(series=series, blocks=blocks_of, conditions=seen, fact=lambda key, *_: facts.get(key))
    )


def test_the_largest_activation_of_all_threads_is_explained() -> None:
    found = largest_activation(record((0, [5, 9]), (1, [7, 30, 8])))
    assert (found.thread, found.place, found.latency_ns, found.count, found.counted_cpu) == (1, 1, 30, 3, 1)


def test_the_only_thread_may_be_on_any_processor() -> None:
    assert largest_activation(record((-1, [5, 9]), elsewhere=4)).counted_cpu is None


@pytest.mark.parametrize(
    "wrong", [record((0, [5]), (0, [7])), record((0, [5]), (-1, [7])), record((0, [5]), (1, [7]), elsewhere=1)]
)
def test_threads_that_share_processors_are_refused(wrong: Record) -> None:
    with pytest.raises(UserError, match="nothing tells which processor read the clock: measure on one of them"):
        largest_activation(wrong)


def test_only_the_passes_of_the_thread_are_counted() -> None:
    two = record((0, [5] * 10), (1, [7] * 20))
    assert passes_before(two, 3, 1) == 3
    with pytest.raises(UserError, match="passed the mark 9 times in 20 activations"):
        passes_before(record((0, [5] * 9), (1, [7] * 20), noted=9), 3, 1)


def test_a_thread_that_reads_its_processor_at_checks_only_does_not_count_its_passes() -> None:
    """As on ARM: one activation that the warm-up left over does not pass it, and the record does not tell of it."""
    of_arm = record((0, [5] * 20), noted=3, checks=3, warmed_up=19)
    with pytest.raises(UserError, match="measure with another --warmup"):
        passes_before(of_arm, 7)
    assert passes_before(of_arm, 0) == 0
    assert passes_before(record((0, [5] * 20), noted=3, checks=3), 7) == 7, "the warm-up left nothing over"
    assert passes_before(record((0, [5] * 20), noted=19, checks=3), 7) == 6


def test_a_thread_that_moved_around_its_largest_latency_is_refused() -> None:
    found = blocks((0, "user", 5), (1, "soaker", 9), end_cpu=1)
    with pytest.raises(UserError, match="the measured thread moved from CPU 0 to CPU 1 around its largest latency"):
        refuse_moved_thread("rt, idle", found, AGENT[0], of_activations(1, 2))
    refuse_moved_thread("rt, idle", found, AGENT[0], of_activations(1, 2, counted_cpu=1))
    refuse_moved_thread("rt, idle", blocks((1, "user", 5)), AGENT[0], of_activations(1, 2))


def elf(machine: int, code: bytes, *, is_64: bool = True) -> bytes:
    """A program with one part, which is loaded at 0x10000 from byte 0x100 on."""
    if is_64:
        head = struct.pack("<16s2HI3QI6H", b"\x7fELF\2", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        part = struct.pack("<2I6Q", 1, 5, 0x100, 0x10000, 0, len(code), len(code), 0)
    else:
        head = struct.pack("<16s2HI3II6H", b"\x7fELF\1", 2, machine, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        part = struct.pack("<8I", 1, 0x100, 0x10000, 0, len(code), len(code), 5, 0)
    return (head + part).ljust(0x100, b"\0") + code


@pytest.mark.parametrize(
    ("machine", "nop", "is_64"),
    [(62, b"\x90", True), (183, b"\x1f\x20\x03\xd5", True), (40, b"\x00\xf0\x20\xe3", False), (40, b"\x00\xbf", False)],
)
def test_the_loop_of_the_soaker_is_found_in_its_program(machine: int, nop: bytes, is_64: bool) -> None:
    program = elf(machine, b"\xcc\xcc\xcc\xcc" + nop * SOAKER_NOPS + b"\xeb\xee", is_64=is_64)
    assert soaker_loop(program) == (0x10004, 0x10004 + len(nop) * SOAKER_NOPS + 5)


@pytest.mark.parametrize("program", [b"", b"#!/bin/sh\n" * 9, elf(62, b"\x90" * 8), elf(8, b"\x90" * 64)])
def test_a_program_without_that_loop_has_none(program: bytes) -> None:
    assert soaker_loop(program) == (0, 0)
