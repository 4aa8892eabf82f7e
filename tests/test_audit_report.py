# SPDX-License-Identifier: Apache-2.0
"""The audit of a run's own record: in its report, beside what was late, and on the screen when it ends."""

from dataclasses import replace

import pytest
from analysis_records import fact
from audit_checks import CHECKS, COUNT, LOUD, THP, audited, few_checks, made_check
from explain_cases import HOG, begun, traced_run
from report_cases import LIMIT, sections_of, tables, whole_record, words

from rtproof.audit import check_file, judgement
from rtproof.audit.check import Audit
from rtproof.audit.facts import Facts
from rtproof.compare.run_metrics import facts_of
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Moment, Record
from rtproof.record.requirement import Requirement
from rtproof.report.audit_findings import audit_in_short, audit_of_run, causes_with_findings
from rtproof.report.sections.audit import audit_section, causes_blocks

__all__ = ["few_checks"]
pytestmark = pytest.mark.usefixtures("few_checks")
VIRTUAL = fact("virtual_time", "icount of QEMU", Moment.START)


def late_by_softirqs(files: dict[str, str]) -> Record:
    """One activation that waited, while a hog had softirqs off on a stock kernel."""
    cpu = begun().hard(-9_000, "irq_vectors/irq_work_entry", depth=1).hard(-8_000, "irq_vectors/irq_work_exit")
    made = traced_run([118_000], cpu.timer(8_000, depth=1).to_victim(114_000).switch(130_000, HOG, state=1))
    return audited(made, files)


def test_each_cause_has_its_findings_and_how_many_activations_it_made_late(monkeypatch: pytest.MonkeyPatch) -> None:
    record = late_by_softirqs({THP: "always\n", LOUD: "7\n"})
    kind = explain(record, 100_000).budgets[0].first.cause
    checks = (*CHECKS[1:], made_check("memory.thp", THP, "never", explains=(kind.value,)))
    monkeypatch.setattr(check_file, "all_checks", lambda: checks)
    found = explain(record, 100_000)
    ((row, findings),) = [one for one in causes_with_findings(found, record) if one[0].cause.cause is kind]
    assert [one.check.id for one in findings] == ["memory.thp"]
    assert (row.late, row.first_in) == (1, 1)
    (table,) = tables(causes_blocks(found, record)).values()
    assert [row[1:] for row in table.rows if "memory.thp" in row[3]] == [("1", "1", "memory.thp (high)")]
    section = sections_of(analyse(record, Requirement(100_000), 1))["audit"]
    assert "Findings that would explain why 1 activation came late" in tables(section.blocks)
    sound = late_by_softirqs({})
    assert causes_blocks(explain(sound, 100_000), sound) == []


@pytest.mark.parametrize(("names", "fits"), [("", True), (":hog", True), (":kswapd.*|ho.", True), (":kswapd.*", False)])
def test_a_finding_about_some_threads_explains_no_others(
    names: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = late_by_softirqs({THP: "always\n"})
    found = explain(record, 100_000)
    explains = (f"{found.budgets[0].first.cause.value}{names}",)
    checks = (made_check("memory.thp", THP, "never", explains=explains),)
    monkeypatch.setattr(check_file, "all_checks", lambda: checks)
    assert bool(causes_with_findings(found, record)) is fits


def test_a_record_that_is_read_again_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Facts] = []
    judge = judgement.audit

    def counted(facts: Facts) -> Audit:
        judged.append(facts)
        return judge(facts)

    monkeypatch.setattr(judgement, "audit", counted)
    whole = audited(whole_record(), {THP: "always of this test\n"})
    assert audit_of_run(whole) is audit_of_run(replace(whole, files=tuple(replace(file) for file in whole.files)))
    told = (*whole.facts, fact("host.user", "somebody"))
    assert audit_of_run(whole) is audit_of_run(replace(whole, facts=told))
    assert len(judged) == 1
    other = audited(whole_record(), {THP: "never\n"})
    assert audit_of_run(other) != audit_of_run(whole)


def test_a_guest_in_virtual_time_is_called_one_and_its_hardware_is_left_out() -> None:
    whole = whole_record()
    made = replace(whole, facts=(*whole.facts, VIRTUAL))
    guest = analyse(audited(made, {COUNT: "3\n", THP: "always\n"}), LIMIT, 1)
    blocks = audit_section(guest)
    assert [row[1] for row in tables(blocks)["Findings above low"].rows] == ["memory.thp"]
    assert "guest of the lab in virtual time" in words(blocks)
    assert "Findings about hardware are left out." in words(blocks)
    assert audit_in_short(guest.record) == ""


def test_the_line_on_severe_findings_has_a_command_that_works_or_none() -> None:
    record = audited(replace(whole_record(), path="runs/a/run.rtrec"), {THP: "always\n"})
    named = audit_in_short(record)
    assert named.endswith("; see rtproof audit runs/a")
    assert audit_in_short(record, len(named)) == named
    assert audit_in_short(record, len(named) - 1).endswith("; rtproof audit lists them")


def test_every_cause_that_a_check_explains_is_one() -> None:
    known = {cause.value for cause in Cause}
    real = check_file.check_files().values()
    assert [
        (check.id, name)
        for file in real
        for check in file.check
        for name in check.explains
        if name.partition(":")[0] not in known
    ] == []


def test_a_count_is_no_fact_of_a_run() -> None:
    """It would differ between any two runs."""
    told = facts_of(audited(whole_record(1, 30), {COUNT: "3\n"}, {COUNT: "5\n"}))
    assert COUNT not in told
