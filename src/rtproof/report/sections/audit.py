# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the system of a run, by the audit of its record."""

from rtproof.audit.audit_model import CheckResult
from rtproof.audit.check import Severity
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.explain.explanation import Explanation
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report.audit_findings import OF_A_MACHINE, audit_of_run, causes_with_findings, findings_of, named_findings
from rtproof.report.blocks import Block, Table, Text
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
    shown = findings_of(record, Severity.MEDIUM)
    blocks: list[Block] = [Text((f"{counts_sentence(found)}.", *found.notes, *_left_out(record)))]
    if shown:
        blocks.append(Table("Findings above low", HEADER, tuple(map(_row, shown))))
    blocks += _causes(analysis)
    unknown = tuple((one.severity.value, one.check.id, unknown_reason(one)) for one in undecided(found))
    if unknown:
        caption = f"{quantity(len(unknown), 'check')} that could not be decided"
        blocks.append(Table(caption, ("severity", "check", "why"), unknown, folded=True))
    return blocks


HEADER = ("severity", "check", "what was found", "what to do")


def _left_out(record: Record) -> tuple[str, ...]:
    """What is not in the tables of a guest of the lab."""
    if not virtual_time_clock(record):
        return ()
    return (f"Findings about {' and '.join(OF_A_MACHINE)} are left out.",)


def _row(one: CheckResult) -> tuple[str, ...]:
    against = " What was measured contradicts this advice." if one.contradicted else ""
    return one.severity.value, one.check.id, one.sentence, f"{one.check.advice}{against}"


def _causes(analysis: Analysis) -> list[Block]:
    """The findings beside the causes of late activations that they would explain."""
    if not has_trace(analysis.record):
        return []
    try:
        return causes_blocks(explanation_of(analysis), analysis.record)
    except UserError:
        return []  # the section on why it was late says so


def causes_blocks(found: Explanation, record: Record) -> list[Block]:
    """A row for each cause of late activations that some finding would explain; nothing if there is none."""
    rows = tuple(
        (row.cause.words(found.blind), f"{row.late:,}", f"{row.first_in:,}", named_findings(findings))
        for row, findings in causes_with_findings(found, record)[:MOST_CAUSES]
    )
    caption = f"Findings that would explain why {quantity(len(found.budgets), 'activation')} came late"
    header = ("cause", "activations", "main cause of", "findings of the audit")
    return [Table(caption, header, rows, (1, 2))] if rows else []
