# SPDX-License-Identifier: Apache-2.0
"""Planted misconfigurations: the audit finds each by its own id, and nothing else."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from audit_finds import try_plant
from audit_plants import PLANTS, SYSTEMS, Plant
from audit_systems import BAD, System, stored_bytes, stored_names, stored_record
from fuzzing import worker
from fuzzing.audit_promises import REQUESTS, check_promises, files_in, why_not_good
from fuzzing.facts_mutations import StoredFile
from fuzzing.targets import TARGETS

from rtproof.audit import check_file, judgement
from rtproof.audit.check import CheckResult, Outcome, Severity
from rtproof.audit.facts import Facts, Reading, State


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_misconfiguration_is_found_and_nothing_else(plant: Plant) -> None:
    tried = try_plant(plant)
    assert tried.missed == frozenset()
    assert tried.false == frozenset()
    assert tried.lost == frozenset()


@pytest.mark.parametrize("name", stored_names())
def test_every_stored_system_is_judged_whole_and_twice_alike(name: str) -> None:
    audits = [judgement.audit(Facts(stored_record(name))) for _ in range(2)]
    assert audits[0] == audits[1]
    assert audits[0].collected
    assert [result.check.id for result in audits[0].results] == [check.id for check in check_file.all_checks()]
    severe = judgement.judge_checks(Facts(stored_record(name)), check_file.severe_checks())
    assert _severe_findings(severe) == _severe_findings(audits[0].results)


def _severe_findings(results: Iterable[CheckResult]) -> list[str]:
    """The ids of the findings that the screen of a run counts."""
    return [
        one.check.id for one in results if one.outcome is Outcome.FINDING and one.severity.rank <= Severity.HIGH.rank
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_sound_system_has_no_finding_above_low_but_those_that_hold(name: str) -> None:
    bad = [result for outcome in BAD for result in SYSTEMS[name].audit().of(outcome)]
    above_low = {result.check.id for result in bad if result.severity.rank < Severity.LOW.rank}
    assert above_low - _OF_ANY_GUEST - HOLDS.get(name, set()) == set()


_OF_ANY_GUEST = {"hw.virt", "clk.tsc", "clk.source", "kern.dmesg.bugs"}
"""What holds of an emulator on a busy host: no constant counter, and interrupts that come late."""
HOLDS = {
    "stock": {"kern.preempt.rt"},
    "application": {"pm.qos.dma"},
}
"""Findings above low that hold of systems that plants are put into, as a person judged. The agent holds the request."""


def test_a_wrong_application_has_a_finding_of_each_kind() -> None:
    audit = System("wrong-application").audit()
    found = {result.check.id for result in audit.of(Outcome.FINDING)}
    assert {f"sched.app.{kind}" for kind in ("policy", "lock", "affinity", "slack")} <= found
    told = {result.check.id for result in audit.results if "The same cause as sched.app.lock" in result.sentence}
    assert told == {"sched.app.heap", "sched.app.faults"}


def test_every_check_has_a_plant() -> None:
    planted = {name for plant in PLANTS for name in plant.expected}
    unplanted = [check.id for check in check_file.all_checks() if check.id not in planted]
    assert unplanted == ["kern.mitig"], "it finds nothing: it shows comparisons which protections are on"


# Damaged facts: no traceback, and never good for what is not there, as docs/fuzz.md defines it.


DAMAGED = 30
PARTS = 4
AUDIT = next(target for target in TARGETS if target.name == "audit")


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_facts_are_never_good_for_what_is_not_there(part: int, tmp_path: Path) -> None:
    own = len(AUDIT.corpus())
    for _, content, _ in islice(worker.inputs(AUDIT, 100 + part), own, own + DAMAGED):
        assert worker.check(AUDIT, content, tmp_path / "reading", twice=False)


@pytest.mark.parametrize("name", stored_names())
def test_each_good_check_of_a_stored_system_names_what_the_record_holds(name: str, tmp_path: Path) -> None:
    for number, request in enumerate(REQUESTS):
        assert check_promises(stored_bytes(name), tmp_path, request, number)


def test_the_bytes_are_read_by_code_of_their_own_as_the_reader_reads_them() -> None:
    files = files_in(stored_bytes("debian-6.12-rt"))
    record = stored_record("debian-6.12-rt")
    assert set(files) == {file.path for file in record.files}
    assert all(
        any((each.number, each.content) == (file.errno, file.content) for each in files[file.path])
        for file in record.files
    )


def _good(path: str, value: str, check_id: str = "mem.compact.unevict") -> CheckResult:
    check = check_file.find_check(check_id)
    return CheckResult(check, Outcome.GOOD, Severity.LOW, "", (Reading(path, State.HERE, value),))


def test_what_the_record_does_not_hold_is_a_broken_promise() -> None:
    path = "/proc/sys/vm/compact_unevictable_allowed"
    here = StoredFile(0, 1, 0, 0, path.encode(), b"0\n")
    refused = StoredFile(0, 1, 0, 1, path.encode(), b"")
    cut = StoredFile(0, 1, 1, 0, path.encode(), b"0\n")
    missing = StoredFile(0, 1, 0, 2, path.encode(), b"")
    assert why_not_good(_good(path, "0"), {path: [here]}) == ""
    assert "does not hold" in why_not_good(_good(path, "1"), {path: [here]})
    assert all("no whole" in why_not_good(_good(path, "0"), {path: [each]}) for each in (refused, cut, missing))
    assert why_not_good(_good(path, "(it is not there)"), {path: [missing]}) == ""
    assert "nobody saw" in why_not_good(_good(path, "(it is not there)"), {path: [refused]})
    assert "nobody saw" in why_not_good(_good(path, "(it is not there)"), {})
