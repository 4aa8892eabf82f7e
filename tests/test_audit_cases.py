# SPDX-License-Identifier: Apache-2.0
"""Cases of the checks: what the facts of a system are, and what the check must say. ``data/audit_cases/SUBJECT.toml``.

A group has the keys that all of its cases share. files, end: the text of each file at the start and the end, or the
number of an error (1: EPERM, 2: ENOENT). A file has its path, or the end of a source of the check; $cpu, $cgroup, $vm
and $kernel are folders. A text of $name stands under [text]. options: of the kernel's configuration. boot: the command
line. kernel: release and version. cpus, pid, purpose: as the options of ``rtproof audit``. says: the whole sentence.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from audit_cases import REFUSED, configured, judged, made_facts

from rtproof.audit import check_file, judgement, rules
from rtproof.audit.check import Check, Outcome, Severity
from rtproof.audit.facts import AuditRequest, Facts

FOLDER = Path(__file__).parent / "data" / "audit_cases"
PLACES = {
    "$cpu": "/sys/devices/system/cpu",
    "$cgroup": "/sys/fs/cgroup",
    "$vm": "/proc/sys/vm",
    "$kernel": "/proc/sys/kernel",
}
FILES = ("files", "end")
Case = dict[str, Any]


def cases() -> list[Any]:
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        for group in content["group"]:
            for number, row in enumerate(group["cases"]):
                shared = {key: value for key, value in group.items() if key not in ("about", "cases")}
                case = {**shared, **row, **{key: shared.get(key, {}) | row.get(key, {}) for key in FILES}}
                found.append(pytest.param(case, content.get("text", {}), id=f"{group['about']} {number}"))
    return found


def _path(name: str, check_id: str) -> str:
    first, slash, rest = name.partition("/")
    if first in PLACES:
        return f"{PLACES[first]}{slash}{rest}"
    check = check_file.find_check(check_id)
    try:
        return rules.source_of((*check.read, *check.also), name)
    except ValueError:
        return name


def _files(case: Case, key: str, texts: dict[str, str]) -> dict[str, str | int]:
    named = {_path(name, case["check"]): content for name, content in case[key].items()}
    return {
        path: texts[content[1:]] if isinstance(content, str) and content.startswith("$") else content
        for path, content in named.items()
    }


def facts_of(case: Case, texts: dict[str, str]) -> Facts:
    """The facts of the system of a case."""
    files = _files(case, "files", texts)
    if "options" in case:
        files |= configured(*case["options"])
    if "boot" in case:
        files["/proc/cmdline"] = f"{case['boot']}\n"
    cpus = frozenset(case["cpus"]) if "cpus" in case else None
    return made_facts(
        files,
        end=_files(case, "end", texts),
        request=AuditRequest(cpus, case.get("pid"), case.get("purpose", "default")),
        kernel=tuple(case.get("kernel", ("6.12.0", "#1 SMP PREEMPT_RT"))),
        machine=case.get("machine", "x86_64"),
    )


@pytest.mark.parametrize(("case", "texts"), cases())
def test_a_case_has_its_outcome(case: Case, texts: dict[str, str]) -> None:
    found = judged(case["check"], facts_of(case, texts))
    assert found.outcome.value == case["outcome"], found.sentence
    assert found.sentence or found.outcome is Outcome.GOOD
    assert found.severity.value == case.get("severity", found.severity.value)
    assert found.sentence == case.get("says", found.sentence)
    if "purpose" not in case and found.outcome is Outcome.FINDING and found.severity.rank <= Severity.HIGH.rank:
        assert found.check.id in {check.id for check in check_file.severe_checks()}


def test_the_severe_checks_are_whole_and_told_by_severe_ones() -> None:
    severe = {check.id: check for check in check_file.severe_checks()}
    assert list(severe.values()) == [check for check in check_file.all_checks() if check.id in severe]
    assert {name for check in severe.values() for name in check.told_by} <= severe.keys()
    most = {check.id: min(_severities(check), key=lambda one: one.rank) for check in check_file.all_checks()}
    assert [name for name, one in most.items() if one.rank <= Severity.HIGH.rank and name not in severe] == []


def _severities(check: Check) -> list[Severity]:
    """Those of its findings for no purpose in particular."""
    return [check.severity, check.severest or check.severity, *(rule.severity or check.severity for rule in check.rule)]


def test_each_rule_of_a_check_judges_a_case() -> None:
    judging = set()
    for case, texts in (each.values for each in cases()):
        check = check_file.find_check(case["check"])
        facts = facts_of(case, texts)
        if check.rule and judgement.why_not_applicable(facts, check) is None:
            judging.add((check.id, rules.judged_by(facts, check)[0]))
    every = {(check.id, number) for check in check_file.all_checks() for number in range(len(check.rule))}
    assert every - judging == set()


@pytest.mark.parametrize("check", check_file.all_checks(), ids=lambda check: check.id)
def test_nothing_read_is_never_good(check: Check) -> None:
    request = AuditRequest(cpus=frozenset({2, 3}), pid=1)
    facts = made_facts({"/proc/cmdline": REFUSED, "/proc/mounts": REFUSED}, kernel=("", ""), request=request)
    assert judgement.judge_check(facts, check).outcome in (Outcome.UNKNOWN, Outcome.NOT_APPLICABLE)
