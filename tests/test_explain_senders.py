# SPDX-License-Identifier: Apache-2.0
"""Who sent an interrupt or woke the stopper thread, where the events of another CPU prove it."""

import struct
from dataclasses import replace

import pytest
from explain_cases import DUE_NS, HOG, LITTLE, MEANING, NAMES, OTHER, PAIRED, URGENT, Cpu, begun, budget_of

from rtproof.explain.causes import advice_on
from rtproof.explain.trace_events import HARDIRQ, EventDecoder
from rtproof.summary.trace_text import event_format

SINGLE, MANY, RESCHEDULE = "call_function_single", "call_function", "reschedule"
VECTORS = replace(MEANING, paired=PAIRED | {f"irq_vectors/{name}" for name in (SINGLE, MANY, RESCHEDULE)})
STOPPER = 26
NAMES[STOPPER] = "migration/1"
CSD, HOLDS, CALLS = 0x77, 0x30, 0x40


def taken(vector: str, served: tuple[int, ...] = (), begin_ns: int = 0) -> Cpu:
    """CPU 1 takes an interrupt for 100 us, and then the timer's that wakes the victim."""
    cpu = begun(1).hard(begin_ns, f"irq_vectors/{vector}_entry")
    for at, csd in enumerate(served):
        cpu.hard(begin_ns + 1_000 + at, "csd_function_entry", csd=csd)
    cpu.hard(begin_ns + 100_000, f"irq_vectors/{vector}_exit")
    return cpu.timer(begin_ns + 101_000).to_victim(begin_ns + 106_000)


def sender(*sent: tuple[int, str, dict[str, int]], task: int = OTHER) -> Cpu:
    """CPU 0, whose thread sends."""
    cpu = Cpu(0, HOG).switch(-400_000, task)
    for time_ns, event, values in sent:
        cpu.add(time_ns, event, **values)
    return cpu


def first(*cpus: Cpu) -> str:
    return budget_of(120_000, *cpus, meaning=VECTORS).first.words()


def queue(time_ns: int, csd: int = CSD, cpu: int = 1, func: int = HOLDS) -> tuple[int, str, dict[str, int]]:
    return time_ns, "csd_queue_cpu", {"cpu": cpu, "csd": csd, "func": func}


def resched(time_ns: int, cpu: int = 1, callback: int = 0) -> tuple[int, str, dict[str, int]]:
    return time_ns, "ipi_send_cpu", {"cpu": cpu, "callsite": CALLS, "callback": callback}


@pytest.mark.parametrize("vector", [SINGLE, MANY])
def test_a_function_that_another_cpu_queued_is_named_with_who_queued_it(vector: str) -> None:
    words = f"interrupt {vector} (sent by other/{OTHER} on CPU 0: holds())"
    assert first(taken(vector, (CSD,)), sender(queue(-3_000))) == words


@pytest.mark.parametrize(
    "sent",
    [queue(-3_000, csd=CSD + 1), queue(-3_000, cpu=2), queue(5_000), resched(-3_000), resched(-3_000, callback=9)],
)
def test_what_no_event_ties_to_the_interrupt_is_not_named(sent: tuple[int, str, dict[str, int]]) -> None:
    assert first(taken(SINGLE, (CSD,)), sender(sent)) == f"interrupt {SINGLE}"


def test_the_newest_of_two_that_used_the_same_place_is_the_sender() -> None:
    some = sender(queue(-9_000, func=CALLS), queue(-3_000))
    assert first(taken(SINGLE, (CSD,)), some) == f"interrupt {SINGLE} (sent by other/{OTHER} on CPU 0: holds())"


def test_all_functions_of_one_interrupt_have_their_senders() -> None:
    some = sender(queue(-9_000, csd=1, func=CALLS), queue(-3_000, csd=2), queue(-2_000, csd=3, func=0x99))
    words = f"sent by other/{OTHER} on CPU 0: calls() and other/{OTHER} on CPU 0: holds() and 1 more"
    assert first(taken(SINGLE, (1, 2, 3)), some) == f"interrupt {SINGLE} ({words})"


def test_a_reschedule_interrupt_is_named_with_who_sent_it_since_the_one_before() -> None:
    words = f"interrupt {RESCHEDULE} (sent by other/{OTHER} on CPU 0: calls())"
    assert first(taken(RESCHEDULE), sender(resched(-3_000))) == words
    earlier = begun(1).hard(-90_000, f"irq_vectors/{RESCHEDULE}_entry").hard(-89_000, f"irq_vectors/{RESCHEDULE}_exit")
    late = taken(RESCHEDULE)
    earlier.events += late.events[1:]
    assert first(earlier, sender(resched(-95_000))) == f"interrupt {RESCHEDULE}", "that one was taken before"


def test_an_interrupt_that_sends_is_the_sender() -> None:
    cpu = sender().hard(-5_000, "irq_vectors/local_timer_entry")
    cpu.add(-3_000, "csd_queue_cpu", HARDIRQ, cpu=1, csd=CSD, func=HOLDS).hard(-2_000, "irq_vectors/local_timer_exit")
    assert first(taken(SINGLE, (CSD,)), cpu) == f"interrupt {SINGLE} (sent by interrupt local_timer on CPU 0: holds())"


def test_on_arm_interrupt_and_sender_have_the_same_reason() -> None:
    def ipi(reason: int) -> Cpu:
        cpu = begun(1).hard(0, "ipi_entry", reason=reason).hard(100_000, "ipi_exit")
        return cpu.timer(101_000).to_victim(106_000)

    some = sender((-3_000, "ipi_raise", {"target_cpus": 0b1010, "reason": 7}))
    assert first(ipi(7), some) == f"interrupt IPI (sent by other/{OTHER} on CPU 0)"
    assert first(ipi(8), some) == "interrupt IPI"
    elsewhere = sender((-3_000, "ipi_raise", {"target_cpus": 0b1000, "reason": 7}))
    assert first(ipi(7), elsewhere) == "interrupt IPI"


def stopped(*wakes: int) -> Cpu:
    """The stopper thread has CPU 1 for 100 us."""
    cpu = begun(1).timer(1_000).switch(6_000, STOPPER, URGENT)
    return cpu.switch(106_000, HOG, state=1).to_victim(107_000)


def test_the_stopper_thread_is_named_with_who_woke_it() -> None:
    waker = sender().wakes(5_000, STOPPER)
    words = f"thread migration/1/{STOPPER} (woken by other/{OTHER} on CPU 0) of priority 97, above 80"
    assert first(stopped(), waker) == words
    assert first(stopped(), sender().wakes(7_000, STOPPER)).startswith(f"thread migration/1/{STOPPER} of priority 97")
    assert first(stopped(), sender()).startswith(f"thread migration/1/{STOPPER} of priority 97")


def test_the_advice_does_not_change_with_the_sender() -> None:
    with_sender = budget_of(120_000, taken(SINGLE, (CSD,)), sender(queue(-3_000)), meaning=VECTORS).first
    without = budget_of(120_000, taken(SINGLE, (CSD,)), sender(), meaning=VECTORS).first
    assert with_sender != without
    assert advice_on(with_sender) == advice_on(without)


def test_the_cpus_of_a_set_are_read_from_the_words_behind_the_fields() -> None:
    lines = [
        ("unsigned short common_type", 0, 2), ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1), ("int common_pid", 4, 4),
        ("__data_loc unsigned long[] target_cpus", 8, 4), ("const char * reason", 16, 8),
    ]  # fmt: skip
    text = "".join(f"\tfield:{field};\toffset:{at};\tsize:{size};\tsigned:0;\n" for field, at, size in lines)
    known = event_format("ipi/ipi_raise", f"name: ipi_raise\nID: 9\nformat:\n{text}")
    assert known
    decoder = EventDecoder([known], LITTLE)
    content = struct.pack("<HBBiI4xQ2Q", 9, 0, 0, 5, 16 << 16 | 24, 7, 1 << 63, 1)
    event = decoder.event(0, DUE_NS, memoryview(content))
    assert event
    assert event.values == {"target_cpus": 1 << 63 | 1 << 64, "reason": 7}
