# SPDX-License-Identifier: Apache-2.0
"""Read a traced run from the disk, explain it, and print the explanation."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, unknown_name
from rtproof.core.units import whole_number
from rtproof.experiment.stored_runs import is_foreign, is_trace_file, open_run, open_trace, with_threads
from rtproof.explain.causes import Cause
from rtproof.explain.coincidence import Coincidences, coincidences
from rtproof.explain.explanation import Explanation, explain
from rtproof.explain.foreign_records import ALL_REAL_TIME, WantedThreads
from rtproof.record import run_folder
from rtproof.record.contents import Record
from rtproof.report import render
from rtproof.report.blocks import Section, Text
from rtproof.report.sections.explained import (
    SHOWN_BUDGETS,
    budget_blocks,
    coincidence_blocks,
    explained_blocks,
)
from rtproof.report.text_table import fitted_to_terminal
from rtproof.summary.kernel_trace import has_trace, trace_refused
from rtproof.summary.recorded_facts import is_collected


def parse_at_most(words: Sequence[str]) -> dict[Cause, int]:
    """How often each cause may be the first one, from words such as irqoff:0. UserError for any other word.

    Of a cause that is given twice, the smaller number holds.
    """
    found: dict[Cause, int] = {}
    known = {cause.value: cause for cause in Cause}
    for word in words:
        name, _, number = word.rpartition(":")
        most = whole_number(number)
        if not name or most is None:
            raise UserError(f"--explain-at-most {word}: write a cause and a number, such as irqoff:0")
        if name not in known:
            raise UserError(unknown_name("cause", name, known))
        cause = known[name]
        found[cause] = min(most, found.get(cause, most))
    return found


def explain_run(
    path: Path, limit_ns: int | None, top: int, at_most: Mapping[Cause, int], wanted: WantedThreads = ALL_REAL_TIME
) -> tuple[Record, Explanation | Coincidences, tuple[str, ...]]:
    """Explain the run at a path, or say what coincides with late activations where it has no trace.

    wanted: of a trace.dat. The last: sentences on causes that came more often than they may. UserError if causes are
    limited and there is no trace, or if late activations that are not in it may exceed a limit.
    """
    record = _opened(path, wanted)
    untraced = not has_trace(record) and not is_trace_file(path)
    if untraced and record.end is not None and not at_most:
        return record, coincidences(record, limit_ns, top), ()
    found = explain(record, limit_ns, top)
    more = tuple(exceeded_causes(found, at_most))
    unknown = found.outside + found.left_out
    if unknown and not more and exceeded_causes(found, {cause: most - unknown for cause, most in at_most.items()}):
        which = "none" if not found.budgets else f"{len(found.budgets):,}"
        raise UserError(
            f"the trace holds {which} of {quantity(found.late, 'late activation')}, so it is unknown whether "
            "--explain-at-most is exceeded"
        )
    return record, found, more


def _opened(path: Path, wanted: WantedThreads) -> Record:
    """The record of a run, or of a trace with the threads that are wanted. UserError for a run: it has its threads."""
    if is_trace_file(path):
        return open_trace(path, wanted)
    if wanted == ALL_REAL_TIME:
        return open_run(path).record
    record = run_folder.open_run(path).record
    if not is_foreign(record):
        raise UserError(
            "--thread, --pid, --begin and --end are for a trace.dat or an application; this run has its own activations"
        )
    return with_threads(record, wanted)


def exceeded_causes(found: Explanation, at_most: Mapping[Cause, int]) -> list[str]:
    """A sentence for each cause that is, or may be, the first one more often than it may be.

    A limit on a cause also counts causes that cannot be told apart from it.
    """
    sentences = []
    for cause, most in at_most.items():
        alike = {cause, *(other for other in Cause if cause in other.may_be)}
        count = sum(any(one.cause in alike for one in each.possible_firsts) for each in found.budgets)
        if count > most:
            sure = sum(each.first.cause is cause for each in found.budgets)
            had = "had" if sure == count else "had, or may have had,"
            sentences.append(f"{quantity(count, 'late activation')} {had} {cause.value} first, and {most} may")
    return sentences


def print_explanation(
    record: Record, found: Explanation | Coincidences, exceeded: tuple[str, ...], as_json: bool, *, verbose: bool
) -> None:
    """Print what ``explain_run`` found. verbose: with the budgets of the latest activations."""
    if as_json:
        from rtproof.schema.published import coincidences_dict, explanation_dict

        if isinstance(found, Coincidences):
            document = coincidences_dict(found, record)
        else:
            document = explanation_dict(found, record, exceeded)
        click.echo(json.dumps(document, indent=2))
        return
    if isinstance(found, Coincidences):
        blocks = coincidence_blocks(found, trace_refused(record))
        title, name = "rtproof: what coincides with lateness", "Coincidence"
    else:
        blocks = explained_blocks(found, record)
        if is_collected(record):
            from rtproof.report.sections.audit import causes_blocks

            blocks += causes_blocks(found, record)
        blocks += budget_blocks(found, SHOWN_BUDGETS) if verbose else []
        blocks += [Text(tuple(f"{sentence}." for sentence in exceeded), "bad")] if exceeded else []
        title, name = "rtproof: why it was late", "Causes"
    with fitted_to_terminal():
        click.echo(render("text", title, [Section("explained", name, tuple(blocks))]), nl=False)
