# SPDX-License-Identifier: Apache-2.0
"""Checks of a few lines and records with facts for them, so that tests of the audit's pages need no real check."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from audit_cases import SEEN

from rtproof.audit import check_file
from rtproof.audit.check import Check, Outcome, Rule, Severity
from rtproof.record.contents import Moment, Record, SystemFile

THP, SPEED, LOUD = "/sys/kernel/mm/thp", "/sys/devices/system/cpu/cpu*/speed", "/proc/sys/kernel/loud"
COUNT = "/proc/sys/kernel/count"


def made_check(
    check_id: str,
    path: str,
    good: str,
    severity: Severity = Severity.HIGH,
    explains: tuple[str, ...] = (),
) -> Check:
    """A check whose file must hold this word."""
    return Check(
        check_id, f"Title of {check_id}", (path,), severity, f"Why of {check_id}.", (f"source of {check_id}",),
        f"Mend {check_id}.", rule=rules_of(path, good), explains=explains, if_absent=Outcome.NOT_APPLICABLE,
        subject=check_id.partition(".")[0],
    )  # fmt: skip


def rules_of(path: str, good: str) -> tuple[Rule, ...]:
    """Every file must hold this word."""
    finding = f"{{{path}|path}} is {{{path}}}.{{{path}|others}}"
    return (
        Rule(there=(path,)),
        Rule(when=(f"{path} other-than {good}",), finding=finding),
        Rule(known=(path,)),
        Rule(good=""),
    )


CHECKS = (
    made_check("memory.thp", THP, "never", Severity.HIGH, ("softirqs-off", "page-fault")),
    made_check("power.speed", SPEED, "fast", Severity.MEDIUM),
    made_check("console.loud", LOUD, "0", Severity.LOW, ("irqoff",)),
    made_check("hardware.count", COUNT, "0", Severity.FATAL),
)
GOOD = {THP: "never\n", SPEED.replace("*", "0"): "fast\n", SPEED.replace("*", "1"): "fast\n", LOUD: "0\n", COUNT: "0\n"}


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit has only CHECKS."""
    monkeypatch.setattr(check_file, "all_checks", lambda: CHECKS)
    monkeypatch.setattr(check_file, "severe_checks", lambda: CHECKS)


def audited(record: Record, files: Mapping[str, str] | None = None, end: Mapping[str, str] | None = None) -> Record:
    """The record with the facts of an audit: GOOD and SEEN but for these."""
    start = {**SEEN, **GOOD, **(files or {})}
    told = [SystemFile(0, Moment.START, path, 0, False, text.encode()) for path, text in start.items()]
    told += [SystemFile(0, Moment.END, path, 0, False, text.encode()) for path, text in (end or {}).items()]
    return replace(record, files=(*(file for file in record.files if file.path not in start), *told))
