# SPDX-License-Identifier: Apache-2.0
"""Why the largest latency of a cell was so large: a sentence, a table of the phases, and the functions that ran."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from rtproof.core.phrases import quantity, value
from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.executed_code import ENTRY, IDLE, USER
from rtproof.lab.kernel_comparison import VIRTUAL_TIME
from rtproof.lab.latency_phases import (
    AFTER_SCHEDULER,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    IN_INTERRUPT,
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
_WAYS_IN = (USER, ENTRY, "do_syscall_64", "x64_sys_call", "el0_svc", "el0t_64_sync", "el0t_64_sync_handler")


def first_cause(found: CellExplanation) -> str:
    """The longest phase in words, with the part of the kernel in which it was spent."""
    phase = found.longest
    words = _words_of(phase)
    places = [*_places(phase), *(name for name, _ in phase.functions[:1])]
    return f"{words}: {', '.join(dict.fromkeys(places))}" if places else words


def _own_path(phase: ExecutedPhase) -> tuple[str, ...]:
    """The stack of a phase; behind the scheduler without what the switch found there."""
    if phase.name != AFTER_SCHEDULER or SCHEDULER not in phase.path:
        return phase.path
    return phase.path[phase.path.index(SCHEDULER) + 1 :]


def _words_of(phase: ExecutedPhase) -> str:
    interrupted = any(map(is_interrupt, _own_path(phase)))
    if phase.name == BEFORE_INTERRUPT:
        return "another interrupt first" if interrupted else "interrupts off"
    if phase.name == AFTER_SCHEDULER:
        return "an interrupt after the switch" if interrupted else "switch and return"
    return {IN_INTERRUPT: "other work in the timer's interrupt", BEFORE_SCHEDULER: "no switch"}.get(
        phase.name, phase.name
    )


def _places(phase: ExecutedPhase) -> list[str]:
    """Where in the kernel a phase was spent: a system call, a softirq, a kernel thread, or an interrupt."""
    path = _own_path(phase)
    if phase.name in (IN_INTERRUPT, AFTER_SCHEDULER):
        return [name for name in path if is_interrupt(name)][-1:]
    calls = [f"{match[1] or match[2]}()" for match in map(_SYSTEM_CALL.match, path) if match]
    softirqs = [f"softirq {name}" for name in _called_by(_SOFTIRQ, path)]
    return [*(calls or _called_by(_THREADS, path))[-1:], *softirqs[-1:]]


def _called_by(callers: Collection[str], path: Sequence[str]) -> list[str]:
    return [name for before, name in pairwise(path) if before in callers]


def explanation_sections(found: CellExplanation) -> list[Section]:
    """The whole answer for one cell, the sentence first."""
    phase = found.longest
    share = f"{100 * phase.length_ns / found.latency_ns:.1f} %" if found.latency_ns else "all"
    cause = first_cause(found)
    headline = f"{value(found.latency_ns)}: {share} of it {phase.name}. {cause[0].upper()}{cause[1:]}."
    blocks: list[Block] = [Text(tuple(_notes(found)), headline=headline), _phase_table(found)]
    blocks += [_function_table(each) for each in found.phases if each is phase]
    return [Section("explanation", f"Why {found.cell} was late", tuple(blocks))]


def _notes(found: CellExplanation) -> list[str]:
    place = f"activation {found.activation + 1:,} of {found.activations_count:,} that ran"
    notes = [f"This is the largest latency of the cell: {place}. {VIRTUAL_TIME}"]
    if found.scheduled_by:
        marked = "" if found.marked_ns is None else f" was asked for {value(found.marked_ns)} after the due time, and"
        notes.append(f"The switch to the measuring thread{marked} came through {_path(found.scheduled_by)}.")
    notes.append(f"The clock was read within {quantity(found.reading_ns, 'instruction')}: no phase is known better.")
    if found.idle:
        notes.append("The processor waited within this latency, so instructions do not tell all of the time.")
    return notes


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
    return phase.path[places[-1] :] if places and phase.name == IN_INTERRUPT else phase.path


def _function_table(phase: ExecutedPhase) -> Table:
    rows = tuple((name, f"{ns:,}", f"{100 * ns / max(phase.length_ns, 1):.1f}") for name, ns in phase.functions)
    caption = f"Functions that ran longest {phase.name}, without what they called"
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
    """The explanation as plain data for JSON."""
    return {
        "cell": found.cell,
        "latency_ns": found.latency_ns,
        "first_cause": first_cause(found),
        "activation": found.activation,
        "activations_count": found.activations_count,
        "reading_ns": found.reading_ns,
        "idle": found.idle,
        "marked_ns": found.marked_ns,
        "scheduled_by": list(found.scheduled_by),
        "phases": [
            {
                "name": phase.name,
                "start_ns": phase.start_ns,
                "length_ns": phase.length_ns,
                "path": list(phase.path),
                "functions": [{"name": name, "time_ns": ns} for name, ns in phase.functions],
            }
            for phase in found.phases
        ],
    }
