# SPDX-License-Identifier: Apache-2.0
"""The part ``truth`` of ``make bench-explain``, without a guest: what it compares, and what it counts of it."""

from typing import Any

import explain_truth as truth
import numpy as np
import pytest
from charging_error import (
    ChargedInterrupt,
    ExecutedInterrupt,
    charged_interrupts,
    charged_switches,
    executed_interrupts,
    innermost_context,
    scheduler_begins,
)
from explain_parts import Figure

from rtproof.explain.cpu_contexts import Context, Layer, Stretch
from rtproof.lab.executed_code import CalledFunction, ExecutedBlocks, FunctionSpan
from rtproof.lab.latency_phases import (
    AFTER_SCHEDULER,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    BEFORE_WAKE_UP,
    IN_INTERRUPT,
)

TIMER = "asm_sysvec_apic_timer_interrupt"


def spans(*steps: tuple[int, str]) -> list[FunctionSpan]:
    """Spans by their lengths and their stacks, which are joined by blanks. The last function begins with a star."""
    found, at_ns = [], 0
    for length_ns, stack in steps:
        call: CalledFunction | None = None
        for name in stack.split():
            call = CalledFunction(name.removesuffix("*"), call)
        assert call
        found.append(FunctionSpan(at_ns, at_ns + length_ns, call, stack.endswith("*")))
        at_ns += length_ns
    return found


def stretch(from_ns: int, to_ns: int, interrupt: str = "") -> Stretch:
    top = Context(Layer.INTERRUPT, interrupt, 0, from_ns) if interrupt else None
    return Stretch(from_ns, to_ns, top, None, 0, None, None, "", -1, None)


HIT = spans(
    (100, "user"), (30, f"user {TIMER}*"), (300, f"user {TIMER} hrtimer_interrupt*"), (40, f"user {TIMER}"),
    (200, f"user {TIMER} schedule __schedule*"), (50, "other"),
)  # fmt: skip


def test_an_interrupt_lasts_from_its_first_instruction_to_the_scheduler_that_ends_it() -> None:
    assert list(executed_interrupts(HIT)) == [ExecutedInterrupt(TIMER, 100, 470)]
    assert scheduler_begins(HIT) == [470]
    nested = spans(
        (10, "a"),
        (10, f"a {TIMER}*"),
        (10, f"a {TIMER} __do_softirq*"),
        (5, f"a {TIMER} __do_softirq {TIMER}*"),
        (9, "a"),
    )
    assert list(executed_interrupts(nested)) == [ExecutedInterrupt(TIMER, 10, 35)], "the outermost one only"


@pytest.mark.parametrize("cut", [HIT[2:], HIT[:3]])
def test_an_interrupt_of_which_an_end_is_missing_is_not_measured(cut: list[FunctionSpan]) -> None:
    assert list(executed_interrupts(cut)) == []


def test_a_fault_is_the_threads_own_and_an_interrupt_below_the_scheduler_is_none_any_more() -> None:
    assert innermost_context(("user", "asm_exc_page_fault", "handle_mm_fault")) is None
    assert innermost_context(("user", TIMER, "hrtimer_interrupt")) == 1
    assert innermost_context(("user", TIMER, "schedule", "__schedule.part.0", "pick_next_task")) is None
    assert innermost_context(("user", "schedule", "__schedule", TIMER)) == 3, "it came within the scheduler"


def test_what_the_trace_charges_to_the_thread_of_an_interrupt() -> None:
    """It begins 30 ns before its event and goes on 70 ns behind it, and a softirq of it has events of its own."""
    trace = [
        stretch(0, 130, ""),
        stretch(130, 300, "timer"),
        stretch(300, 320),
        stretch(320, 400, "RCU"),
        stretch(400, 500),
    ]
    found = list(charged_interrupts([ExecutedInterrupt(TIMER, 100, 450)], trace))
    assert found == [ChargedInterrupt(TIMER, 30, 30 + 20 + 50)]
    assert list(charged_interrupts([ExecutedInterrupt("asm_sysvec_unknown", 10, 90)], trace)) == [], "it has no event"


def test_the_scheduler_begins_before_the_event_of_a_switch() -> None:
    assert list(charged_switches([100, 900], [50, 1_000, 1_500])) == [100, 600]


@pytest.mark.parametrize(
    ("phase", "stack", "kind"),
    [
        (BEFORE_INTERRUPT, ("user",), "no interrupt"),
        (BEFORE_INTERRUPT, (TIMER, "__do_softirq", "rcu_core_si"), "no interrupt"),
        (BEFORE_INTERRUPT, ("user", "asm_common_interrupt"), "another interrupt"),
        (IN_INTERRUPT, ("user", TIMER), "the timer's interrupt"),
        (BEFORE_SCHEDULER, ("user", "ksys_read"), "another thread"),
        (BEFORE_SCHEDULER, (TIMER, "__do_softirq", "rcu_core_si"), "softirq RCU"),
        (BEFORE_SCHEDULER, (TIMER, "hrtimer_interrupt"), "the timer's interrupt"),
        (BEFORE_WAKE_UP, ("hrtimer_interrupt", "__hrtimer_run_queues"), "the timer's interrupt"),
        (AFTER_SCHEDULER, ("user", TIMER, "irqentry_exit", "schedule", "__schedule"), "the switch"),
        (AFTER_SCHEDULER, ("user", "schedule"), "the switch"),
    ],
)
def test_what_a_function_did_by_the_words_of_the_trace(phase: str, stack: tuple[str, ...], kind: str) -> None:
    assert truth.kind_of_span(phase, stack) == kind


def test_activations_are_chosen_by_their_latency_and_never_twice() -> None:
    values = np.random.default_rng(1).permutation(np.arange(1, 2_001) * 50)  # up to 100 us, 400 of them up to 20 us
    found = truth.chosen_places(values)
    assert found == sorted(set(found)) == truth.chosen_places(values)
    assert len(found) == truth.LARGEST + truth.LATE + truth.OTHERS
    largest = set(np.argsort(-values)[: truth.LARGEST].tolist())
    assert len(largest - set(found) - {0, 1}) == 0
    assert sum(values[found] <= truth.LATE_NS) == truth.OTHERS
    few = np.array([9_000, 30_000, 25_000, 8_000, 10_000])
    assert truth.chosen_places(few) == [2, 3, 4], "nothing was recorded before the first two"


def test_blocks_are_cut_to_those_that_end_after_a_time() -> None:
    blocks = ExecutedBlocks(np.arange(4, dtype=np.uint64), np.array([0, 10, 20, 30]), 40, 2)
    cut = truth.from_on(blocks, 15)
    assert (cut.address.tolist(), cut.start_ns.tolist(), cut.end_ns, cut.dropped) == ([1, 2, 3], [10, 20, 30], 40, 3)
    assert truth.from_on(blocks, -5).address.tolist() == [0, 1, 2, 3]


def row(latency_ns: int, code: str, *trace: str) -> dict[str, Any]:
    by_trace = [(kind, 9_000 - at) for at, kind in enumerate(trace)]
    interrupts = [{"name": TIMER, "before_ns": 400, "in_all_ns": 800}]
    return {
        "latency_ns": latency_ns,
        "by_trace": by_trace,
        "by_code": (code, 8_500),
        "interrupts": interrupts,
        "switches_ns": [1_700],
    }


def test_what_the_trace_leaves_open_is_counted_apart_and_what_it_does_not_hold_too() -> None:
    rows = [
        row(30_000, "a", "a"),
        row(30_000, "a", "b"),
        row(9_000, "b", "a", "b"),
        row(9_000, "a", "a"),
        row(9_000, "a"),
    ]
    found = {figure.words: figure for figure in truth.figures({"dd": {"activations": rows}}) if not figure.of}

    def told(words: str) -> tuple[float | None, int, bool | None]:
        figure: Figure = found[words]
        return figure.value, figure.n, figure.holds

    share, *others = told("same first cause")
    assert share == pytest.approx(200 / 3)
    assert others == [3, False]
    assert told("the same above 20 us") == (50, 2, False)
    assert told("left open") == (20, 5, None)
    assert told("left open above 20 us") == (0, 2, None)
    assert told("the truth is among those left open") == (100, 1, None)
    assert told("not in the trace") == (20, 5, None)
    assert told("the lengths apart, median") == (0.5, 2, None)
    assert told("charged to the thread of an interrupt, in all, median") == (0.8, 5, None)
    assert told("charged to the thread before a switch, largest") == (1.7, 5, None)
