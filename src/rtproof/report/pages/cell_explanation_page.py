# SPDX-License-Identifier: Apache-2.0
"""Why the largest latency of a cell was so large: a sentence, a table of the phases, and the functions that ran."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import msgspec

from rtproof.core.phrases import quantity, value
from rtproof.lab.cell_explanation import (
    AFTER_SCHEDULER,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    IN_INTERRUPT,
    SCHEDULER,
    UNTIL_SCHEDULER,
    CellExplanation,
    ExecutedPhase,
)
from rtproof.lab.executed_code import ENTRY, IDLE, SOAKER, USER
from rtproof.lab.kernel_comparison import VIRTUAL_TIME
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.number_format import table_of
from rtproof.schema.encoder import Json, Key, encode, row, table
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
    """The longest phase in words, with the part of the kernel in which it was spent."""
    phase = found.longest
    words = _words_of(phase)
    functions = () if _is_of_others(phase) else phase.functions[:1]
    places = [*_places(phase), *(name for name, _ in functions)]
    return f"{words}: {', '.join(dict.fromkeys(places))}" if places else words


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
    if phase.name == BEFORE_INTERRUPT:
        return "another interrupt first" if interrupted else "interrupts off"
    if phase.name == AFTER_SCHEDULER:
        return "an interrupt after the switch" if interrupted else "switch and return"
    return _WORDS.get(phase.name, phase.name)


_WORDS = {
    IN_INTERRUPT: "other work in the timer's interrupt",
    BEFORE_SCHEDULER: "no switch",
    UNTIL_SCHEDULER: "no wake-up, or no switch",
}
_MOST_OWN_SHARE = 0.1
"""A phase with a smaller share of instructions of its own processor is not explained by those instructions."""


def _is_of_others(phase: ExecutedPhase) -> bool:
    least_own_ns = phase.others_ns if _is_in_program(phase) else _MOST_OWN_SHARE * phase.length_ns
    return phase.others_ns > 0 and phase.own_ns < least_own_ns


def _is_in_program(phase: ExecutedPhase) -> bool:
    """Whether an interrupt had not come while a program ran, which cannot keep it away."""
    return phase.name == BEFORE_INTERRUPT and phase.path[-1:] in ((USER,), (SOAKER,), ())


def _places(phase: ExecutedPhase) -> list[str]:
    """Where in the kernel a phase was spent: a system call, a softirq, a kernel thread, or an interrupt."""
    path = _own_path(phase)
    if _is_of_others(phase):
        return []
    if phase.name in (IN_INTERRUPT, AFTER_SCHEDULER):
        return [name for name in path if is_interrupt(name)][-1:]
    calls = [f"{match[1] or match[2]}()" for match in map(_SYSTEM_CALL.match, path) if match]
    softirqs = [f"softirq {name}" for name in _called_by(_SOFTIRQ, path)]
    return [*(calls or _called_by(_THREADS, path))[-1:], *softirqs[-1:]]


def _called_by(callers: Collection[str], path: Sequence[str]) -> list[str]:
    return [name for before, name in pairwise(path) if before in callers]


def explanation_sections(found: CellExplanation) -> list[Section]:
    """The whole answer for one cell, the sentence first."""
    phase, cause = found.longest, first_cause(found)
    share = f"{100 * phase.length_ns / found.latency_ns:.1f} %" if found.latency_ns else "all"
    where = f", on CPU {found.cpu}" if found.cpus_count > 1 else ""
    headline = f"{value(found.latency_ns)}: {share} of it {phase.name}{where}. {cause[0].upper()}{cause[1:]}."
    whole = f" (shares of the {phase.own_ns:,} ns of this CPU)" if phase.others_ns else ""
    functions = table_of(
        f"Functions that ran longest {phase.name}, without what they called{whole}",
        phase.functions,
        ("function", lambda row: row[0]),
        ("time [ns]", lambda row: f"{row[1]:,}"),
        ("share [%]", lambda row: f"{100 * row[1] / max(phase.own_ns, 1):.1f}"),
        numeric=(1, 2),
    )
    blocks: tuple[Block, ...] = (Text(tuple(_notes(found)), headline=headline), *_phase_tables(found), functions)
    return [Section("explanation", f"Why {found.cell} was late", blocks)]


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
    certainty = quantity(found.reading_ns, "instruction")
    if found.count_error_ns is not None and found.soaked:
        differing = f"differ by {value(abs(found.count_error_ns))}"
        certainty += f", and the instructions since the activation before and their time in the record {differing}"
    notes.append(f"Accuracy of the phases: {certainty}.")
    if found.idle:
        notes.append("The processor waited, so the instructions do not account for all of the time.")
    return notes


def _notes_of_turns(found: CellExplanation) -> Iterator[str]:
    """What only a guest with several processors needs to be told."""
    if found.cpus_count == 1:
        return
    yield (
        f"{value(found.own_ns)} were instructions of CPU {found.cpu}. The other "
        f"{value(found.others_ns)} were turns of other processors, which take no time on real hardware."
    )
    if any(name == SOAKER for phase in found.phases for name, _ in phase.functions):
        yield f"{SOAKER[0].upper()}{SOAKER[1:]} runs where nothing else does. It stands for an idle processor."
    if not found.soaked:
        yield "While all processors waited, time passed without instructions."
    yield (
        "What another processor did is not shown, nor when it woke the thread. "
        "If this one waited for a lock, the wait is shown, but not what the lock's holder did."
    )


def _phase_tables(found: CellExplanation) -> Iterator[Table]:
    rows = [
        (
            phase.name,
            f"{phase.start_ns:,}",
            f"{phase.length_ns:,}",
            f"{100 * phase.length_ns / max(found.latency_ns, 1):.1f}",
            f"{phase.own_ns:,}",
            f"{phase.others_ns:,}",
        )
        for phase in found.phases
    ]
    whole = (f"{found.latency_ns:,}", "100.0", f"{found.own_ns:,}", f"{found.others_ns:,}")
    header = ("phase", "from [ns]", "length [ns]", "share [%]", "this CPU [ns]", "turns of others [ns]")
    caption = "From the due time to the reading of the clock"
    yield Table(caption, header, (*rows, ("whole latency", "", *whole)), (1, 2, 3, 4, 5))
    yield table_of(
        "Where most of each phase was spent",
        found.phases,
        ("phase", lambda phase: phase.name),
        ("functions", lambda phase: _path(_from_interrupt(phase))),
        numeric=(),
    )


def _from_interrupt(phase: ExecutedPhase) -> tuple[str, ...]:
    """The stack of a phase; of one in an interrupt, without what the interrupt hit."""
    places = [place for place, name in enumerate(phase.path) if is_interrupt(name)]
    in_interrupt = phase.name == IN_INTERRUPT
    return phase.path[places[-1] :] if places and in_interrupt else phase.path


def _path(path: Sequence[str]) -> str:
    """A stack in one line: how it began and where it ended, without what every system call passes through."""
    shown = [name for name in path if name not in _WAYS_IN or name in (IDLE,)] or list(path[-1:])
    if len(shown) > MOST_PATH:
        shown = [*shown[:2], f"({len(shown) - MOST_PATH + 1} more)", *shown[2 - MOST_PATH + 1 :]]
    return " > ".join(shown) or "-"


def why_blocks(found: Sequence[CellExplanation], unexplained: Sequence[str]) -> list[Block]:
    """The first cause of each cell's largest latency, and a sentence for each cell that could not be explained."""
    causes = table_of(
        "Why each largest latency was so large, and the share of the first cause",
        found,
        ("cell", lambda each: each.cell),
        ("largest latency", lambda each: value(each.latency_ns)),
        ("share [%]", lambda each: f"{100 * each.longest.length_ns / max(each.latency_ns, 1):.0f}"),
        ("first cause", first_cause),
        numeric=(1, 2),
    )
    blocks: list[Block] = [causes] if found else []
    return [*blocks, Text(tuple(unexplained), "doubt", "These were not explained")] if unexplained else blocks


def encode_explanation(found: CellExplanation, command: str) -> bytes:
    """The explanation as JSON. Keys end with the unit."""
    head = {"schema": EXPLANATION_SCHEMA, "version": EXPLANATION_SCHEMA_VERSION, "time": "virtual", "command": command}
    return msgspec.json.format(msgspec.json.encode({**head, **explanation_dict(found)}), indent=1) + b"\n"


FUNCTION = row(tuple[str, int], "function", name="its name", time_ns="how long it ran")
PHASE = table(ExecutedPhase, "name start_ns length_ns path functions own_ns others_ns", functions=Key(each=FUNCTION))
EXPLANATION = table(
    CellExplanation,
    "cell latency_ns first_cause activation activations_count reading_ns idle replaced_ns marked_ns scheduled_by "
    "cpus_count cpu own_ns others_ns soaked count_error_ns phases",
    first_cause=first_cause,
    phases=Key(each=PHASE),
)


def explanation_dict(found: CellExplanation) -> Json:
    """The explanation as plain data for JSON."""
    return encode(found, EXPLANATION)
