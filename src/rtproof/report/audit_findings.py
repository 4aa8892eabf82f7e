# SPDX-License-Identifier: Apache-2.0
"""The audit of a run's own record: which findings it has, and which of them would explain why the run was late."""

import re
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING

from rtproof.audit import check_file, judgement
from rtproof.audit.check import Audit, Check, CheckResult, Outcome, Severity
from rtproof.audit.facts import Facts
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.record.contents import Record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.report.text_table import WIDTH
from rtproof.summary.recorded_facts import is_collected, virtual_time_clock

if TYPE_CHECKING:  # slow to import
    from rtproof.explain.causes import NamedCause
    from rtproof.explain.explanation import CauseRow, Explanation

MOST_NAMED = 4
LEAST_SHARE = 0.05
"""A cause with a smaller share of the late time needs no findings, unless it was the main cause somewhere."""
OF_THE_HOST = "host."
"""How the keys of facts begin that rtproof adds when it writes a page."""
OF_A_MACHINE = ("hardware",)
"""Subjects of checks that say nothing of a guest of the lab in virtual time."""


_last: dict[tuple[object, ...], Audit] = {}


def audit_of_run(record: Record) -> Audit | None:
    """The audit of a run's record, for no purpose in particular; None if the record has no facts for one.

    The last one is kept, because the screen and the page of a run both have it. The page adds to the record what the
    host tells of itself.
    """
    if not is_collected(record):
        return None
    facts = tuple(fact for fact in record.facts if not fact.key.startswith(OF_THE_HOST))
    key = (record.path, record.begin, record.damage, facts, record.files, id(check_file.all_checks()))
    if key not in _last:
        _last.clear()
        _last[key] = judgement.audit(Facts(record))
    return _last[key]


def findings_of(record: Record, least: Severity) -> tuple[CheckResult, ...]:
    """The findings at or above a severity, the most severe first; of a guest in virtual time, without its hardware."""
    found = audit_of_run(record)
    virtual = bool(virtual_time_clock(record))
    return tuple(
        one
        for one in (found.of(Outcome.FINDING) if found else ())
        if one.severity.rank <= least.rank and not (virtual and one.check.subject in OF_A_MACHINE)
    )


def causes_with_findings(found: "Explanation", record: Record) -> list[tuple["CauseRow", tuple[CheckResult, ...]]]:
    """The causes that some finding of the run's audit would explain, in the order of the explanation, with these."""
    every = findings_of(record, Severity.INFO)
    rows = [row for row in found.rows if row.first_in or row.share >= LEAST_SHARE]
    told = ((row, tuple(one for one in every if _explains(one.check, row.cause))) for row in rows)
    return [(row, findings) for row, findings in told if findings]


def _explains(check: Check, cause: "NamedCause") -> bool:
    kinds = {each.value for each in (cause.cause, *cause.cause.may_be)}
    told = (word.partition(":") for word in check.explains)
    return any(kind in kinds and re.fullmatch(names or ".*", cause.name) for kind, _, names in told)


def named_findings(findings: tuple[CheckResult, ...]) -> str:
    """The ids of findings in a line, such as kern.preempt.rt (high), mem.thp (medium)."""
    named = ", ".join(f"{one.check.id} ({one.severity.value})" for one in findings[:MOST_NAMED])
    return f"{named} and {len(findings) - MOST_NAMED} more" if len(findings) > MOST_NAMED else named


def audit_in_short(record: Record, width: int = WIDTH) -> str:
    """A line on the findings that are fatal or high; "" if there is none, and for a guest in virtual time.

    It names the run as a command does, if that leaves it within the width.
    """
    if virtual_time_clock(record) or not is_collected(record):
        return ""
    judged = judgement.judge_checks(Facts(record), check_file.severe_checks())
    found = [one for one in judged if one.outcome is Outcome.FINDING and one.severity.rank <= Severity.HIGH.rank]
    if not found:
        return ""
    worst = min(found, key=lambda one: one.severity.rank)
    path = PurePath(record.path)
    run = shlex.quote(clean(str(path.parent if path.name == RECORD_NAME else path)))
    begin = f"{quantity(len(found), 'severe finding')}, the worst: {worst.check.id}; "
    command = f"see rtproof audit {run}"
    return f"{begin}{command if len(begin) + len(command) <= width else 'rtproof audit lists them'}"
