# SPDX-License-Identifier: Apache-2.0
"""What a guest executed, as a tree of functions: calls, returns, interrupts and switches of tasks."""

import struct
from collections.abc import Sequence
from itertools import pairwise

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
    UNTIL_SCHEDULER,
    WITHOUT_SWITCH,
    CellExplanation,
    ExecutedPhase,
    clock_reading,
    divide_latency,
)
from rtproof.lab.executed_code import (
    ENTRY,
    IDLE,
    IDLE_ADDRESS,
    USER,
    ExecutedBlocks,
    FunctionSpan,
    Symbols,
    function_spans,
    main_path,
    parse_blocks,
    parse_kallsyms,
    time_by_function,
    within,
)
from rtproof.report.pages.cell_explanation_page import first_cause

KERNEL = 0xFFFF_0000
STEP = 0x100
NAMES = (
    "entry_SYSCALL_64",
    "asm_sysvec_apic_timer_interrupt",
    "__x64_sys_munmap",
    "release_pages",
    "hrtimer_interrupt",
    "timerfd_tmrproc",
    "hrtimer_wakeup",
    "enqueue_task_rt",
    "resched_curr",
    "__cond_resched",
    "__schedule",
    "__switch_to_asm",
    "__x64_sys_clock_nanosleep",
    "__x86_indirect_thunk_rax",
)
KALLSYMS = "\n".join(
    [
        f"{KERNEL:x} T __entry_text_start",
        *(f"{KERNEL + at * STEP:x} t {name}" for at, name in enumerate(NAMES)),
        f"{KERNEL + 2 * STEP:x} T __entry_text_end",
        f"{KERNEL + 3 * STEP:x} t also_release_pages",
        "0000000000000010 A fixed_percpu_data",
    ]
)
AGENT = (0x1000, 0x2000)
PAGE = 0x7FFF_0000


def symbols() -> Symbols:
    found = parse_kallsyms(KALLSYMS)
    return Symbols(found.addresses, found.names, found.kernel, (KERNEL, KERNEL + STEP), found.task_switch)


def address(name: str) -> int:
    """Of a function's beginning; with a dot behind its name, of its middle."""
    if name in (USER, IDLE):
        return {USER: AGENT[0], IDLE: IDLE_ADDRESS}[name]
    if name == "page":
        return PAGE
    return KERNEL + NAMES.index(name.removesuffix(".")) * STEP + (8 if name.endswith(".") else 0)


def blocks(*steps: tuple[str, int]) -> ExecutedBlocks:
    """Blocks of code by the names of their functions, each with its length in ns."""
    starts = np.cumsum([0, *(length for _, length in steps)])
    rows = np.array([address(name) for name, _ in steps], np.uint64)
    return ExecutedBlocks(rows, starts[:-1].astype(np.int64), int(starts[-1]), 0)


def spans(*steps: tuple[str, int]) -> list[FunctionSpan]:
    return function_spans(blocks(*steps), symbols())


def stacks(*names: str) -> list[tuple[str, ...]]:
    return [span.call.stack() for span in spans(*((name, 10) for name in names))]


def test_a_function_that_begins_is_called_and_one_in_its_middle_is_returned_to() -> None:
    found = stacks(USER, "entry_SYSCALL_64", "__x64_sys_munmap", "release_pages", "__x64_sys_munmap.", USER)
    assert found == [
        (USER,),
        (USER, ENTRY),
        (USER, ENTRY, "__x64_sys_munmap"),
        (USER, ENTRY, "__x64_sys_munmap", "release_pages"),
        (USER, ENTRY, "__x64_sys_munmap"),
        (USER,),
    ]


def test_a_caller_that_was_there_before_is_known_once_it_is_returned_to() -> None:
    assert stacks("release_pages.", "__x64_sys_munmap.") == [
        ("__x64_sys_munmap", "release_pages"),
        ("__x64_sys_munmap",),
    ]


def test_an_interrupt_lies_on_the_stack_of_whom_it_hit() -> None:
    found = stacks(USER, "asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt", USER)
    assert found[2] == (USER, "asm_sysvec_apic_timer_interrupt", "hrtimer_interrupt")
    assert found[3] == (USER,)


VECTORS = KERNEL + 0x8000
OF_ARM = parse_kallsyms(
    "\n".join(
        f"{VECTORS + at:x} t {name}"
        for at, name in (
            (-0x100, "__entry_text_start"),
            (0, "vectors"),
            (0x800, "el1h_64_irq"),
            (0x900, "__entry_text_end"),
            (0xA00, "release_pages"),
            (0xB00, "el1h_64_irq_handler"),
            (0xC00, "cpu_switch_to"),
            (0xD00, "__arm64_sys_munmap"),
            (0xE00, "enqueue_task_rt"),
            (0xF00, "__schedule"),
        )
    )
)


def of_arm(*steps: tuple[int, int]) -> list[FunctionSpan]:
    """Spans of 64-bit ARM from offsets to the table of exceptions, each with its length in ns; user code is below 0."""
    starts = np.cumsum([0, *(length for _, length in steps)])
    rows = np.array([VECTORS + at if at >= 0 else AGENT[0] for at, _ in steps], np.uint64)
    return function_spans(ExecutedBlocks(rows, starts[:-1].astype(np.int64), int(starts[-1]), 0), OF_ARM)


IN_MUNMAP = ((-1, 5), (0x400, 5), (0xD00, 5), (0xA00, 9))
INTERRUPTED = (*IN_MUNMAP, (0x280, 7), (0x800, 8), (0xB00, 6), (0xE00, 3), (0xB10, 2), (0x810, 2), (0xA10, 700))


def test_an_exception_of_64_bit_arm_in_the_kernel_is_no_return_to_how_the_kernel_was_entered() -> None:
    assert [span.call.stack() for span in of_arm(*INTERRUPTED)][4:7] == [
        (USER, ENTRY, "__arm64_sys_munmap", "release_pages", ENTRY),
        (USER, ENTRY, "__arm64_sys_munmap", "release_pages", ENTRY, "el1h_64_irq"),
        (USER, ENTRY, "__arm64_sys_munmap", "release_pages", ENTRY, "el1h_64_irq", "el1h_64_irq_handler"),
    ]
    assert of_arm(*INTERRUPTED)[-1].call.stack() == (USER, ENTRY, "__arm64_sys_munmap", "release_pages")


def test_the_interrupt_of_64_bit_arm_begins_where_it_enters_the_kernel() -> None:
    found = of_arm(*INTERRUPTED, (0xF00, 4), (0xC00, 2), (-1, 9))
    due_ns = sum(length for _, length in IN_MUNMAP) - 4
    phases, _, by = divide_latency(within(found, due_ns, found[-1].end_ns), OF_ARM, due_ns)
    assert [(phase.name, phase.start_ns, phase.length_ns) for phase in phases] == [
        (BEFORE_INTERRUPT, 0, 4 + 7),
        (IN_INTERRUPT, 4 + 7, 8 + 6),
        (BEFORE_SCHEDULER, 25, 3 + 2 + 2 + 700),
        (AFTER_SCHEDULER, 732, 4 + 2 + 9),
    ]
    assert by == (USER, ENTRY, "__arm64_sys_munmap", "release_pages")


def test_a_switch_of_tasks_begins_another_stack() -> None:
    found = stacks(USER, "__schedule", "__switch_to_asm", "__schedule.", "__x64_sys_clock_nanosleep.", USER)
    assert found[2] == (USER, "__schedule", "__switch_to_asm")
    assert found[3] == (USER, "__x64_sys_clock_nanosleep", "__schedule"), "another task, and its callers came out later"


BLOCKED = (USER, "entry_SYSCALL_64", "__x64_sys_munmap", "release_pages", "__cond_resched", "__schedule")
RESUMED = ("__schedule.", "__cond_resched.", "release_pages.")


def test_a_task_that_goes_on_has_the_callers_that_it_had_when_it_was_switched_out() -> None:
    found = stacks(*BLOCKED, "__switch_to_asm", *RESUMED, "resched_curr")
    assert found[-1] == (USER, ENTRY, "__x64_sys_munmap", "release_pages", "resched_curr")
    assert found[-4] == (*found[-1][:-1], "__cond_resched", "__schedule"), "also while this was not known yet"


def test_a_task_that_returns_to_others_was_not_the_one_that_was_switched_out() -> None:
    found = stacks(*BLOCKED, "__switch_to_asm", *RESUMED, "__x64_sys_clock_nanosleep.", "resched_curr")
    assert found[-1] == ("__x64_sys_clock_nanosleep", "resched_curr")
    assert found[-3] == ("__x64_sys_clock_nanosleep", "release_pages")


def test_two_tasks_that_wait_in_the_same_function_are_not_told_apart_by_it() -> None:
    other = ("entry_SYSCALL_64", "__x64_sys_clock_nanosleep", "release_pages", "__cond_resched", "__schedule")
    found = stacks(*BLOCKED, "__switch_to_asm", *other, "__switch_to_asm", *RESUMED, "resched_curr")
    assert found[-1] == ("release_pages", "resched_curr")


def test_a_jump_into_a_function_whose_callers_are_all_known_is_no_return() -> None:
    assert stacks(USER, "release_pages.")[1] == (USER, "release_pages")


def test_thunks_are_left_out_of_stacks_and_times() -> None:
    found = spans((USER, 5), ("__x86_indirect_thunk_rax", 7), ("release_pages", 11))
    assert found[2].call.stack() == (USER, "release_pages")
    assert time_by_function(found) == {"release_pages": 11, USER: 5}


def test_a_waiting_processor_is_a_function_of_its_own() -> None:
    assert stacks("__schedule.", IDLE, "asm_sysvec_apic_timer_interrupt")[2][-2:] == (
        IDLE,
        "asm_sysvec_apic_timer_interrupt",
    )


def test_the_main_path_ends_where_no_callee_has_half_of_the_time() -> None:
    found = spans(
        (USER, 10), ("__x64_sys_munmap", 10), ("release_pages", 40), ("__x64_sys_munmap.", 1), ("resched_curr", 39)
    )
    assert main_path(found) == (USER, "__x64_sys_munmap")
    assert main_path(found, least_share=0.4) == (USER, "__x64_sys_munmap", "release_pages")
    assert main_path([]) == ()


STEPS = st.lists(
    st.tuples(st.sampled_from([USER, IDLE, *NAMES, *(f"{name}." for name in NAMES)]), st.integers(0, 50)), min_size=1
)


@given(STEPS)
def test_every_nanosecond_belongs_to_one_span(steps: list[tuple[str, int]]) -> None:
    found = spans(*steps)
    end_ns = sum(length for _, length in steps)
    assert [found[0].start_ns, found[-1].end_ns] == [0, end_ns]
    assert all(one.end_ns == other.start_ns for one, other in pairwise(found))
    assert all(span.end_ns >= span.start_ns and span.call.stack()[-1:] for span in found if span.name != NAMES[-1])


@given(STEPS, st.data())
def test_the_phases_of_any_latency_add_up_to_it(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    found = spans(*steps)
    due_ns = data.draw(st.integers(0, found[-1].end_ns))
    inside = within(found, due_ns, found[-1].end_ns)
    if not inside:
        return
    phases, marked_ns, _ = divide_latency(inside, symbols(), due_ns)
    assert sum(phase.length_ns for phase in phases) == found[-1].end_ns - due_ns
    assert all(phase.length_ns >= 0 for phase in phases)
    assert [phase.start_ns for phase in phases] == [sum(p.length_ns for p in phases[:at]) for at in range(len(phases))]
    assert marked_ns is None or 0 <= marked_ns <= found[-1].end_ns - due_ns


LATE = (
    (USER, 100),
    ("entry_SYSCALL_64", 10),
    ("__x64_sys_munmap", 20),
    ("release_pages", 30),
    ("asm_sysvec_apic_timer_interrupt", 5),
    ("hrtimer_interrupt", 5),
    ("timerfd_tmrproc", 40),
    ("hrtimer_interrupt.", 1),
    ("hrtimer_wakeup", 4),
    ("enqueue_task_rt", 3),
    ("resched_curr", 2),
    ("hrtimer_interrupt.", 5),
    ("release_pages.", 700),
    ("__x64_sys_munmap.", 6),
    ("__cond_resched", 4),
    ("__schedule", 9),
    ("__switch_to_asm", 8),
    ("__schedule.", 7),
    ("__x64_sys_clock_nanosleep.", 6),
    (USER, 3),
)


def late(due_ns: int = 140) -> tuple[tuple[ExecutedPhase, ...], int | None, tuple[str, ...]]:
    found = spans(*LATE)
    return divide_latency(within(found, due_ns, found[-1].end_ns), symbols(), due_ns)


def test_a_latency_has_four_phases() -> None:
    phases, marked_ns, by = late()
    assert [(phase.name, phase.start_ns, phase.length_ns) for phase in phases] == [
        (BEFORE_INTERRUPT, 0, 20),
        (IN_INTERRUPT, 20, 55),
        (BEFORE_SCHEDULER, 75, 3 + 2 + 5 + 700 + 6 + 4),
        (AFTER_SCHEDULER, 795, 9 + 8 + 7 + 6 + 3),
    ]
    assert marked_ns == 78
    assert by == (USER, ENTRY, "__x64_sys_munmap", "__cond_resched")
    assert phases[2].path == (USER, ENTRY, "__x64_sys_munmap", "release_pages")
    assert phases[2].functions[0] == ("release_pages", 700)


def explained(*phases: ExecutedPhase, idle: bool = False) -> CellExplanation:
    length_ns = sum(phase.length_ns for phase in phases)
    return CellExplanation("plain, mmap", length_ns, 3, 10, phases, 78, ("__cond_resched",), 8, idle)


def phase(name: str, *path: str, function: str = "release_pages") -> ExecutedPhase:
    return ExecutedPhase(name, 0, 100, path, ((function, 60),))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (phase(BEFORE_SCHEDULER, USER, ENTRY, "__x64_sys_munmap"), "no switch: munmap(), release_pages"),
        (
            phase(BEFORE_INTERRUPT, "kthread", "smpboot_thread_fn", "run_ksoftirqd", "__do_softirq", "rcu_core_si"),
            "interrupts off: run_ksoftirqd, softirq rcu_core_si, release_pages",
        ),
        (
            phase(BEFORE_INTERRUPT, "asm_common_interrupt", "handle_irq"),
            "another interrupt first: release_pages",
        ),
        (
            phase(IN_INTERRUPT, USER, ENTRY, "__x64_sys_munmap", "asm_sysvec_apic_timer_interrupt"),
            "other work in the timer's interrupt: asm_sysvec_apic_timer_interrupt, release_pages",
        ),
        (phase(AFTER_SCHEDULER, USER, "asm_exc_page_fault", "__schedule"), "switch and return: release_pages"),
        (
            phase(AFTER_SCHEDULER, USER, "__schedule", "finish_task_switch", "asm_sysvec_apic_timer_interrupt"),
            "an interrupt after the switch: asm_sysvec_apic_timer_interrupt, release_pages",
        ),
        (phase(WITHOUT_SWITCH, USER), "without a switch of tasks: release_pages"),
    ],
)
def test_the_first_cause_is_the_longest_phase_in_words(one: ExecutedPhase, words: str) -> None:
    assert first_cause(explained(one, ExecutedPhase(BEFORE_WAKE_UP, 100, 1, (), ()))) == words


def test_a_latency_without_an_interrupt_or_a_wake_up_has_fewer_phases() -> None:
    woken = spans((USER, 5), ("enqueue_task_rt", 5), ("__schedule", 5), ("__switch_to_asm", 5), (USER, 5))
    assert [each.name for each in divide_latency(woken, symbols(), 0)[0]] == [
        BEFORE_WAKE_UP,
        BEFORE_SCHEDULER,
        AFTER_SCHEDULER,
    ]
    running = spans((USER, 5), ("release_pages", 5), (USER, 5))
    assert [each.name for each in divide_latency(running, symbols(), 0)[0]] == [WITHOUT_SWITCH]
    missing = spans((USER, 5), ("__schedule", 5), ("__switch_to_asm", 5), (USER, 5))
    assert [each.name for each in divide_latency(missing, symbols(), 0)[0]] == [UNTIL_SCHEDULER, AFTER_SCHEDULER]


def test_the_clock_is_read_in_the_kernels_page_or_before_the_return_to_the_agent() -> None:
    through_page = blocks(("release_pages", 50), (USER, 10), ("page", 20), (USER, 30))
    assert clock_reading(through_page, KERNEL, *AGENT) == (80, 20)
    through_call = blocks(("release_pages", 50), (USER, 30))
    assert clock_reading(through_call, KERNEL, *AGENT) == (50, 30)
    older_page = blocks((USER, 5), ("page", 5), ("release_pages", 50), (USER, 30))
    assert clock_reading(older_page, KERNEL, *AGENT) == (60, 30)


def recording(rows: Sequence[tuple[int, int]], magic: bytes = b"RTPB", version: int = 2) -> bytes:
    head = struct.pack("=4sIQQ", magic, version, 3, 99)
    return head + b"".join(struct.pack("=QQ", *row) for row in rows)


def test_a_recording_is_read() -> None:
    found = parse_blocks(recording([(16, 1), (IDLE_ADDRESS, 5)]))
    assert (found.address.tolist(), found.start_ns.tolist(), found.end_ns, found.dropped) == (
        [16, IDLE_ADDRESS],
        [1, 5],
        99,
        3,
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not whole"),
        (recording([(1, 2)])[:-3], "is not whole"),
        (recording([], magic=b"ELF\0"), "no recording of executed code"),
        (recording([], version=1), "of this version"),
    ],
)
def test_what_is_no_recording_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_blocks(data)


def test_the_first_name_of_an_address_counts_and_data_do_not() -> None:
    found = parse_kallsyms(KALLSYMS)
    assert found.at(KERNEL + 3 * STEP) == ("release_pages", True)
    assert found.at(KERNEL + 3 * STEP + 1) == ("release_pages", False)
    assert found.at(KERNEL - 1) == (USER, False)
    assert found.kernel == KERNEL
    assert found.task_switch == "__switch_to_asm"
