# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the system of a run, by the audit of its record."""

from contextlib import suppress

from rtproof.audit.check import Severity
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.explain.explanation import Explanation
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report.audit_findings import OF_A_MACHINE, audit_of_run, causes_with_findings, findings_of, named_findings
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import table_of
from rtproof.report.pages.audit_page import counts_sentence, undecided, unknown_reason
from rtproof.report.sections.explained import explanation_of
from rtproof.summary.kernel_trace import has_trace
from rtproof.summary.recorded_facts import virtual_time_clock

MOST_CAUSES = 8


def audit_section(analysis: Analysis) -> list[Block]:
    """The findings above low, what they would explain of this run, and how to change them."""
    record = analysis.record
    found = audit_of_run(record)
    if found is None:
        return []
    of_guest = (f"Findings about {' and '.join(OF_A_MACHINE)} are left out.",) if virtual_time_clock(record) else ()
    blocks: list[Block] = [Text((f"{counts_sentence(found)}.", *found.notes, *of_guest))]
    shown = table_of(
        "Findings above low",
        findings_of(record, Severity.MEDIUM),
        ("severity", lambda one: one.severity.value),
        ("check", lambda one: one.check.id),
        ("what was found", lambda one: one.sentence),
        ("what to do", lambda one: one.check.advice + " What was measured contradicts this advice." * one.contradicted),
        numeric=(),
    )
    blocks += [shown] if shown.rows else []
    if has_trace(record):
        with suppress(UserError):  # The section on why it was late says so.
            blocks += causes_blocks(explanation_of(analysis), record)
    unknown = tuple((one.severity.value, one.check.id, unknown_reason(one)) for one in undecided(found))
    if unknown:
        caption = f"{quantity(len(unknown), 'check')} that could not be decided"
        blocks.append(Table(caption, ("severity", "check", "why"), unknown, folded=True))
    return blocks


def causes_blocks(found: Explanation, record: Record) -> list[Block]:
    """A row for each cause of late activations that some finding would explain; nothing if there is none."""
    rows = tuple(
        (row.cause.words(found.blind), f"{row.late:,}", f"{row.first_in:,}", named_findings(findings))
        for row, findings in causes_with_findings(found, record)[:MOST_CAUSES]
    )
    caption = f"Findings that would explain why {quantity(len(found.budgets), 'activation')} came late"
    header = ("cause", "activations", "main cause of", "findings of the audit")
    return [Table(caption, header, rows, (1, 2))] if rows else []
