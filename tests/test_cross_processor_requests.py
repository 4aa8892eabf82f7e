# SPDX-License-Identifier: Apache-2.0
"""Who asked a processor to do something else, by what all processors of a guest executed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.cross_processor_requests import OutsideRequest, cross_processor_requests
from rtproof.lab.executed_code import MODULE, CalledFunction, FunctionSpan, Symbols
from rtproof.lab.latency_phases import AFTER_SCHEDULER, BEFORE_INTERRUPT, ExecutedPhase
from rtproof.report.pages.cell_explanation_page import explanation_dict, explanation_sections, first_cause

Ran = tuple[int, int, str]
"""A processor, for how long, and its functions from the outermost inwards; with a dot behind the last, again."""
CALLS = "write vfs_write smp_call_function_single generic_exec_single native_send_call_func_single_ipi"
HANDLER = "user asm_sysvec_call_function_single __flush_smp_call_function_queue"
RESCHEDULED = "user asm_sysvec_reschedule_ipi"
TRAPPED = "__schedule asm_exc_int3 poke_int3_handler"
STOPPED = "smpboot_thread_fn cpu_stopper_thread multi_cpu_stop"
PATCHES = "static_key_enable_cpuslocked __jump_label_update text_poke_bp_batch on_each_cpu_cond_mask"


def spans(*steps: Ran) -> list[FunctionSpan]:
    return list(_spans(steps))


def _spans(steps: Sequence[Ran]) -> Iterator[FunctionSpan]:
    open_calls: dict[int, list[CalledFunction]] = {}
    at_ns = 0
    for cpu, length_ns, words in steps:
        names = words.removesuffix(".").split()
        stack = open_calls.get(cpu, [])
        same = 0
        while same < min(len(stack), len(names)) and stack[same].name == names[same]:
            same += 1
        if same == len(names) and not words.endswith("."):
            same -= 1
        stack = stack[:same]
        for name in names[same:]:
            stack.append(CalledFunction(name, stack[-1] if stack else None))
        open_calls[cpu] = stack
        yield FunctionSpan(at_ns, at_ns + length_ns, stack[-1], not words.endswith("."), cpu)
        at_ns += length_ns


def requests(*steps: Ran, due_ns: int = 0, cpu: int = 1, expected: Sequence[int] = ()) -> tuple[OutsideRequest, ...]:
    found = spans(*steps)
    return cross_processor_requests(found, [(due_ns, found[-1].end_ns, cpu)], due_ns, expected)


def senders(request: OutsideRequest) -> list[tuple[int, str]]:
    return [(sender.cpu, " ".join(sender.stack)) for sender in request.senders]


@pytest.mark.parametrize(
    ("sends", "serves", "words"),
    [
        (CALLS, HANDLER, "1 interrupt to call a function"),
        ("try_to_wake_up resched_curr native_smp_send_reschedule", RESCHEDULED, "1 interrupt to reschedule"),
        ("vfs_write arch_send_call_function_ipi_mask", "el1_interrupt do_handle_IPI", "1 interrupt"),
        ("stop_machine queue_stop_cpus_work cpu_stop_queue_work", STOPPED, "1 run of the stopper thread"),
    ],
)
def test_a_request_has_the_functions_of_its_sender(sends: str, serves: str, words: str) -> None:
    (found,) = requests((1, 5, "user"), (0, 7, sends), (1, 9, serves), (0, 4, "spins"), (1, 2, f"{serves}."))
    assert (found.words, found.cpu, found.start_ns, found.own_ns, found.length_ns) == (words, 1, 12, 11, 15)
    assert senders(found) == [(0, sends)]


def test_who_patches_code_is_named_for_the_breakpoint_that_another_processor_hit() -> None:
    steps = [(0, 7, PATCHES), (1, 9, TRAPPED), (1, 2, "__schedule"), (0, 1, f"{PATCHES}."), (1, 6, TRAPPED)]
    (found,) = requests(*steps)
    assert (found.words, found.own_ns) == ("2 breakpoints in code that was being patched", 15)
    assert senders(found) == [(0, "static_key_enable_cpuslocked __jump_label_update text_poke_bp_batch")]
    (unknown,) = requests((0, 7, "vfs_write"), (1, 9, TRAPPED))
    assert senders(unknown) == []


def test_a_request_of_before_the_due_time_counts_from_the_due_time_on() -> None:
    (found,) = requests((0, 7, CALLS), (1, 9, HANDLER), due_ns=10)
    assert (found.start_ns, found.own_ns, senders(found)) == (0, 6, [(0, CALLS)])


def test_the_interrupt_of_the_wake_up_itself_is_no_request() -> None:
    steps = [(0, 7, CALLS), (1, 9, HANDLER)]
    assert requests(*steps, expected=[7]) == ()
    assert len(requests(*steps, expected=[6])) == 1


def test_what_runs_on_the_way_back_from_an_interrupt_serves_nobody() -> None:
    back = [f"{HANDLER.rpartition(' ')[0]} irq_exit __do_softirq net_rx_action", f"{RESCHEDULED} schedule __schedule"]
    (found, other) = requests((0, 7, CALLS), (1, 9, HANDLER), (1, 50, back[0]), (1, 5, RESCHEDULED), (1, 40, back[1]))
    assert (found.own_ns, other.own_ns) == (9, 5)
    assert senders(other) == [], "nobody sent it in this recording"


def test_of_three_processors_each_that_sent_meanwhile_may_be_the_sender() -> None:
    other = CALLS.replace("write", "munmap")
    (found,) = requests((0, 7, CALLS), (2, 5, other), (1, 9, HANDLER))
    assert senders(found) == [(0, CALLS), (2, other)]
    one, two = requests((0, 7, CALLS), (1, 9, HANDLER), (1, 1, "user"), (2, 5, other), (1, 8, HANDLER))
    assert [senders(one), senders(two)] == [[(0, CALLS)], [(2, other)]], "the first was served before"


def test_a_processor_may_wake_its_own_stopper_but_sends_itself_no_interrupt() -> None:
    (found,) = requests((1, 7, "stop_one_cpu cpu_stop_queue_work"), (1, 9, STOPPED))
    assert senders(found) == [(1, "stop_one_cpu cpu_stop_queue_work")]
    (found,) = requests((1, 7, CALLS), (1, 9, HANDLER))
    assert senders(found) == []


def explained(*steps: Ran) -> CellExplanation:
    found = spans(*steps)
    half = found[-1].end_ns // 2
    phases = (
        ExecutedPhase(BEFORE_INTERRUPT, 0, half + 1, ("user",), (), 1, half),
        ExecutedPhase(AFTER_SCHEDULER, half + 1, found[-1].end_ns - half - 1, ("__schedule",), (), 1, 0),
    )
    parts = [(phase.start_ns, phase.start_ns + phase.length_ns, 1) for phase in phases]
    whole = CellExplanation("rt, idle", found[-1].end_ns, 1, 9, phases, None, (), 8, False, 2, 1, None, True)
    return replace(whole, requests=cross_processor_requests(found, parts, 0))


def test_the_first_sentence_names_the_sender() -> None:
    told = explained((0, 10, f"do_syscall_64 __x64_sys_{CALLS}"), (1, 900, HANDLER), (1, 700, "__schedule"))
    cause = "1 interrupt to call a function, caused by CPU 0: vfs_write, in write()"
    assert first_cause(told) == cause
    section = str(explanation_sections(told))
    assert "50.1 % of it until the timer's interrupt, on CPU 1. 1 interrupt to call a function, caused by" in section
    (request,) = explanation_dict(told)["requests"]
    assert request["senders"][0]["words"] == "CPU 0: vfs_write, in write()"
    assert request["senders"][0]["functions"][-1] == "native_send_call_func_single_ipi"


def test_a_short_request_stands_behind_the_first_cause() -> None:
    told = explained((0, 800, f"kthread {PATCHES}"), (1, 90, TRAPPED), (1, 700, "__schedule"))
    assert "caused by" not in first_cause(told)
    sentence = "CPU 1 spent 90 ns of it on 1 breakpoint in code that was being patched, caused by CPU 0: text_poke"
    assert sentence in str(explanation_sections(told))


def test_code_far_behind_all_functions_is_that_of_an_unknown_module() -> None:
    symbols = Symbols((0x1000, 0x2000), ("first", "last"), 0x1000)
    assert symbols.at(0x2000 + (1 << 20)) == (MODULE, False)
    assert symbols.at(0x2000 + (1 << 20) - 1) == ("last", False)
