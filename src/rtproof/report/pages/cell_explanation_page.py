# SPDX-License-Identifier: Apache-2.0
"""Why the largest latency of a cell was so large: a sentence, a table of the phases, and the functions that ran."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from rtproof.core.phrases import quantity, value
from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.cross_processor_requests import OutsideRequest, RequestSender
from rtproof.lab.executed_code import ENTRY, IDLE, SOAKER, USER
from rtproof.lab.kernel_comparison import VIRTUAL_TIME
from rtproof.lab.latency_phases import (
    AFTER_SCHEDULER,
    AFTER_TAKING,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    BEFORE_SENDING,
    BEFORE_TAKING,
    IN_INTERRUPT,
    IN_SENT_INTERRUPT,
    SCHEDULER,
    ExecutedPhase,
)
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.summary.trace_text import is_interrupt

EXPLANATION_SCHEMA = "rtproof.lab.explanation"
EXPLANATION_SCHEMA_VERSION = 1
MOST_PATH = 7
_SYSTEM_CALL = re.compile(r"^__(?:x64|arm64|ia32|se|do)_(?:compat_)?sys_(\w+)$|^sys_(\w+)$")
_SOFTIRQ = ("__do_softirq", "handle_softirqs", "do_softirq")
_THREADS = ("kthread", "smpboot_thread_fn", "worker_thread", "process_one_work", "ret_from_fork")
"""Functions that every kernel thread passes through."""
_WAYS_IN = (
    *(USER, ENTRY, "do_syscall_64", "x64_sys_call", "el0_svc", "el0t_64_sync", "el0t_64_sync_handler"),
    *("do_el0_svc", "el0_svc_common.constprop.0", "el0_svc_common", "invoke_syscall"),
)


def first_cause(found: CellExplanation) -> str:
    """The longest phase in words: who asked for most of it, or the part of the kernel in which it was spent."""
    phase = found.longest
    request = _first_request(found)
    if request is not None:
        return _request_words(request)
    words = _words_of(phase)
    functions = () if _is_of_others(phase) else phase.functions[:1]
    places = [*_places(phase), *(name for name, _ in functions)]
    return f"{words}: {', '.join(dict.fromkeys(places))}" if places else words


_LEAST_REQUESTED = 0.5
"""A request that took this share of the longest phase is its cause."""


def _first_request(found: CellExplanation) -> OutsideRequest | None:
    place = found.phases.index(found.longest)
    longest = max(found.requests, key=lambda request: request.lengths_ns[place], default=None)
    took = longest is not None and longest.lengths_ns[place] >= _LEAST_REQUESTED * found.longest.length_ns
    return longest if took else None


_SENDS_FOR_OTHERS = re.compile(
    r"(native_|arch_)?(smp_)?send_\w+|generic_exec_single|__smp_call_single_queue|smp_call_function\w*|on_each_cpu\w*"
    r"|_*resched_curr|(wakeup|check)_preempt\w*|ttwu_\w+|try_to_wake_up|wake_up_(q|process)|_*cpu_stop_queue\w+"
    r"|queue_stop_cpus_work"
)
"""Functions that send whatever their callers ask for (kernel/smp.c, kernel/sched/core.c, kernel/stop_machine.c)."""
_PATCHES_FOR_OTHERS = re.compile(r"text_poke_finish|arch_jump_label_\w+|_*jump_label_update|\w+_cpuslocked")
MOST_SENDERS = 5


def _request_words(request: OutsideRequest) -> str:
    senders = ", or ".join(map(sender_words, request.senders)) or "an unknown CPU"
    return f"{request.words}, caused by {senders}"


def sender_words(sender: RequestSender) -> str:
    """A sender's processor and functions, the innermost first, and the system call or thread that called them."""
    bare = [name.partition(".")[0] for name in sender.stack if name not in _WAYS_IN]
    while len(bare) > 1 and _SENDS_FOR_OTHERS.fullmatch(bare[-1]):
        bare.pop()
    places = _places_of(sender.stack)
    calls = [name for name in reversed(bare) if not _PATCHES_FOR_OTHERS.fullmatch(name)]
    calls = [name for name in calls if name not in (SOAKER, *_THREADS) and not _SYSTEM_CALL.match(name)]
    where = f", in {places[-1]}" if places and places[-1] not in calls[:MOST_SENDERS] else ""
    return f"CPU {sender.cpu}: {' < '.join(calls[:MOST_SENDERS])}{where}"


def _own_path(phase: ExecutedPhase) -> tuple[str, ...]:
    """The stack of a phase; behind the scheduler without what the switch found there."""
    if phase.name != AFTER_SCHEDULER or SCHEDULER not in phase.path:
        return phase.path
    return phase.path[phase.path.index(SCHEDULER) + 1 :]


def _words_of(phase: ExecutedPhase) -> str:
    if _is_of_others(phase):
        return f"turns of other processors {phase.name}"
    if phase.others_ns and _is_in_program(phase):
        return "no interrupt yet"
    interrupted = any(map(is_interrupt, _own_path(phase)))
    if phase.name in (BEFORE_INTERRUPT, BEFORE_TAKING):
        return "another interrupt first" if interrupted else "interrupts off"
    if phase.name == AFTER_SCHEDULER:
        return "an interrupt after the switch" if interrupted else "switch and return"
    return _WORDS.get(phase.name, phase.name)


_WORDS = {
    IN_INTERRUPT: "other work in the timer's interrupt",
    IN_SENT_INTERRUPT: "other work in the other processor's interrupt",
    BEFORE_SENDING: "the wake-up on the other processor",
    BEFORE_SCHEDULER: "no switch",
    AFTER_TAKING: "no switch",
}
_MOST_OWN_SHARE = 0.1
"""A phase with a smaller share of instructions of its own processor is not explained by those instructions."""


def _is_of_others(phase: ExecutedPhase) -> bool:
    """Whether a phase was spent in turns of other processors."""
    least_own_ns = phase.others_ns if _is_in_program(phase) else _MOST_OWN_SHARE * phase.length_ns
    return phase.others_ns > 0 and phase.own_ns < least_own_ns


def _is_in_program(phase: ExecutedPhase) -> bool:
    """Whether an interrupt had not come while a program ran, which cannot keep it away."""
    return phase.name in (BEFORE_INTERRUPT, BEFORE_TAKING) and phase.path[-1:] in ((USER,), (SOAKER,), ())


def _places(phase: ExecutedPhase) -> list[str]:
    """Where in the kernel a phase was spent: a system call, a softirq, a kernel thread, or an interrupt."""
    path = _own_path(phase)
    if _is_of_others(phase):
        return []
    if phase.name in (IN_INTERRUPT, IN_SENT_INTERRUPT, AFTER_SCHEDULER):
        return [name for name in path if is_interrupt(name)][-1:]
    return _places_of(path)


def _places_of(path: Sequence[str]) -> list[str]:
    calls = [f"{match[1] or match[2]}()" for match in map(_SYSTEM_CALL.match, path) if match]
    softirqs = [f"softirq {name}" for name in _called_by(_SOFTIRQ, path)]
    return [*(calls or _called_by(_THREADS, path))[-1:], *softirqs[-1:]]


def _called_by(callers: Collection[str], path: Sequence[str]) -> list[str]:
    return [name for before, name in pairwise(path) if before in callers]


def explanation_sections(found: CellExplanation) -> list[Section]:
    """The whole answer for one cell, the sentence first."""
    tables = [_phase_table(found)] if found.cpus_count == 1 else _tables_of_turns(found)
    blocks: list[Block] = [Text(tuple(_notes(found)), headline=first_sentence(found)), *tables]
    blocks.append(_function_table(found.longest))
    return [Section("explanation", f"Why {found.cell} was late", tuple(blocks))]


def first_sentence(found: CellExplanation) -> str:
    """The longest phase and the first cause; of several processors, also the longest request that is not that cause."""
    phase = found.longest
    share = f"{100 * phase.length_ns / found.latency_ns:.1f} %" if found.latency_ns else "all"
    cause = first_cause(found)
    where = f", on CPU {phase.cpu}" if found.cpus_count > 1 else ""
    sentence = f"{value(found.latency_ns)}: {share} of it {phase.name}{where}. {cause[0].upper()}{cause[1:]}."
    if found.requests and _first_request(found) is None:
        return f"{sentence} {_request_sentence(found.requests[0])}"
    return sentence


def _request_sentence(request: OutsideRequest) -> str:
    return f"CPU {request.cpu} spent {value(request.length_ns)} of it on {_request_words(request)}."


def _notes(found: CellExplanation) -> list[str]:
    place = f"activation {found.activation + 1:,} of {found.activations_count:,} that ran"
    where = f" on CPU {found.cpu}" if found.cpus_count > 1 else ""
    notes = [f"This is the largest latency of the cell: {place}{where}. {VIRTUAL_TIME}", *_notes_of_turns(found)]
    if found.replaced_ns:
        before = ", ".join(map(value, found.replaced_ns))
        notes.append(
            "The cell was measured again, because no run with the plugin gave the record that was there. Its largest "
            f"latency was {before}."
        )
    if found.scheduled_by:
        marked = "" if found.marked_ns is None else f" was asked for {value(found.marked_ns)} after the due time, and"
        notes.append(f"The switch to the measuring thread{marked} came through {_path(found.scheduled_by)}.")
    notes.append(f"Accuracy of the phases: {_certainty(found)}.")
    if found.idle:
        notes.append("The processor waited, so the instructions do not account for all of the time.")
    return notes


def _certainty(found: CellExplanation) -> str:
    reading = quantity(found.reading_ns, "instruction")
    if found.count_error_ns is None or not found.soaked:
        return reading
    differing = f"differ by {value(abs(found.count_error_ns))}"
    return f"{reading}, and the instructions since the activation before and their time in the record {differing}"


def _notes_of_turns(found: CellExplanation) -> Iterator[str]:
    """What only a guest with several processors needs to be told."""
    if found.cpus_count == 1:
        return
    yield (
        f"{value(found.own_ns)} were instructions of the processor that each phase names. The other "
        f"{value(found.others_ns)} were turns of other processors, which take no time on real hardware."
    )
    if found.woken_from is not None:
        yield f"The thread was woken from CPU {found.woken_from}, which sent CPU {found.cpu} an interrupt for it."
    if any(name == SOAKER for phase in found.phases for name, _ in phase.functions):
        yield f"{SOAKER[0].upper()}{SOAKER[1:]} runs where nothing else does. It stands for an idle processor."
    if not found.soaked:
        yield "While all processors waited, time passed without instructions."
    for request in found.requests:
        yield _request_sentence(request)
    if found.requests:
        yield "The sender is the last one before. Its thread is not known, nor to which CPU it sent an interrupt."
    yield (
        "What another processor did after it had woken the thread is not shown, unless it sent this one an interrupt. "
        "If this one waited for a lock, the wait is shown, but not what the lock's holder did."
    )


def _tables_of_turns(found: CellExplanation) -> list[Table]:
    """The phases with their instructions and turns, and where each was spent: one table would be too wide."""
    rows = tuple(
        (
            phase.name,
            f"{phase.cpu}",
            f"{phase.start_ns:,}",
            f"{phase.length_ns:,}",
            f"{100 * phase.length_ns / max(found.latency_ns, 1):.1f}",
            f"{phase.own_ns:,}",
            f"{phase.others_ns:,}",
        )
        for phase in found.phases
    )
    whole = f"{found.latency_ns:,}", "100.0", f"{found.own_ns:,}", f"{found.others_ns:,}"
    header = ("phase", "CPU", "from [ns]", "length [ns]", "share [%]", "this CPU [ns]", "turns of others [ns]")
    caption = "From the due time to the reading of the clock"
    places = tuple((phase.name, f"{phase.cpu}", _path(_from_interrupt(phase))) for phase in found.phases)
    return [
        Table(caption, header, (*rows, ("whole latency", "", "", *whole)), (1, 2, 3, 4, 5, 6)),
        Table("Where this CPU spent most of each phase", ("phase", "CPU", "functions"), places, (1,)),
    ]


def _phase_table(found: CellExplanation) -> Table:
    rows = tuple(
        (
            phase.name,
            f"{phase.start_ns:,}",
            f"{phase.length_ns:,}",
            f"{100 * phase.length_ns / max(found.latency_ns, 1):.1f}",
            _path(_from_interrupt(phase)),
        )
        for phase in found.phases
    )
    total = ("whole latency", "", f"{found.latency_ns:,}", "100.0", "")
    header = ("phase", "from [ns]", "length [ns]", "share [%]", "where most of it was spent")
    return Table("From the due time to the reading of the clock", header, (*rows, total), (1, 2, 3))


def _from_interrupt(phase: ExecutedPhase) -> tuple[str, ...]:
    """The stack of a phase; of one in an interrupt, without what the interrupt hit."""
    places = [place for place, name in enumerate(phase.path) if is_interrupt(name)]
    in_interrupt = phase.name in (IN_INTERRUPT, IN_SENT_INTERRUPT)
    return phase.path[places[-1] :] if places and in_interrupt else phase.path


def _function_table(phase: ExecutedPhase) -> Table:
    rows = tuple((name, f"{ns:,}", f"{100 * ns / max(phase.own_ns, 1):.1f}") for name, ns in phase.functions)
    whole = f" (CPU {phase.cpu}, shares of its {phase.own_ns:,} ns)" if phase.others_ns else ""
    caption = f"Functions that ran longest {phase.name}, without what they called{whole}"
    return Table(caption, ("function", "time [ns]", "share [%]"), rows, (1, 2))


def _path(path: Sequence[str]) -> str:
    """A stack in one line: how it began and where it ended, without what every system call passes through."""
    shown = [name for name in path if name not in _WAYS_IN or name in (IDLE,)] or list(path[-1:])
    if len(shown) > MOST_PATH:
        shown = [*shown[:2], f"({len(shown) - MOST_PATH + 1} more)", *shown[2 - MOST_PATH + 1 :]]
    return " > ".join(shown) or "-"


def why_blocks(found: Sequence[CellExplanation], unexplained: Sequence[str]) -> list[Block]:
    """The first cause of each cell's largest latency, and a sentence for each cell that could not be explained."""
    blocks: list[Block] = [_why_table(found)] if found else []
    return [*blocks, Text(tuple(unexplained), "doubt", "These were not explained")] if unexplained else blocks


def _why_table(found: Sequence[CellExplanation]) -> Table:
    rows = tuple(
        (
            each.cell,
            value(each.latency_ns),
            f"{100 * each.longest.length_ns / max(each.latency_ns, 1):.0f}",
            first_cause(each),
        )
        for each in found
    )
    header = ("cell", "largest latency", "share [%]", "first cause")
    return Table("Why each largest latency was so large, and the share of the first cause", header, rows, (1, 2))


def encode_explanation(found: CellExplanation, command: str) -> bytes:
    """The explanation as JSON. Keys end with the unit."""
    told: dict[str, Any] = {
        "schema": EXPLANATION_SCHEMA,
        "version": EXPLANATION_SCHEMA_VERSION,
        "time": "virtual",
        "command": command,
        **explanation_dict(found),
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n"


def explanation_dict(found: CellExplanation) -> dict[str, Any]:
    """The explanation as plain data for JSON. Only a guest with several processors has the keys about their turns."""
    several = found.cpus_count > 1
    return {
        "cell": found.cell,
        "latency_ns": found.latency_ns,
        "first_cause": first_cause(found),
        "activation": found.activation,
        "activations_count": found.activations_count,
        "reading_ns": found.reading_ns,
        "idle": found.idle,
        "replaced_ns": list(found.replaced_ns),
        **_turns_dict(found),
        "marked_ns": found.marked_ns,
        "scheduled_by": list(found.scheduled_by),
        "phases": [
            {
                "name": phase.name,
                "start_ns": phase.start_ns,
                "length_ns": phase.length_ns,
                **({"cpu": phase.cpu, "own_ns": phase.own_ns, "others_ns": phase.others_ns} if several else {}),
                "path": list(phase.path),
                "functions": [{"name": name, "time_ns": ns} for name, ns in phase.functions],
            }
            for phase in found.phases
        ],
    }


def _turns_dict(found: CellExplanation) -> dict[str, Any]:
    if found.cpus_count == 1:
        return {}
    return {
        "cpus_count": found.cpus_count,
        "cpu": found.cpu,
        "own_ns": found.own_ns,
        "others_ns": found.others_ns,
        "woken_from_cpu": found.woken_from,
        "soaked": found.soaked,
        "count_error_ns": found.count_error_ns,
        "requests": [
            {
                "kind": request.kind.words[0],
                "cpu": request.cpu,
                "count": request.count,
                "start_ns": request.start_ns,
                "length_ns": request.length_ns,
                "own_ns": request.own_ns,
                "senders": [
                    {"cpu": sender.cpu, "words": sender_words(sender), "functions": list(sender.stack)}
                    for sender in request.senders
                ],
            }
            for request in found.requests
        ],
    }
