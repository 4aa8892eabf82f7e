# SPDX-License-Identifier: Apache-2.0
"""Damaged facts of systems: no traceback, and never ``good`` for what is not there, as docs/fuzz.md defines it."""

from itertools import islice
from pathlib import Path

import pytest
from audit_systems import System, stored_bytes, stored_names, stored_record
from fuzzing import audit_promises, worker
from fuzzing.audit_promises import REQUESTS, check_promises, files_in, why_not_good
from fuzzing.facts_mutations import StoredFile, garbled, mutated_facts, without
from fuzzing.targets import TARGETS

from rtproof.audit import check_file
from rtproof.audit.audit_model import CheckResult, Outcome, ReadValue
from rtproof.audit.check import Severity

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
DAMAGED = 60
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
    return CheckResult(check, Outcome.GOOD, Severity.LOW, "", (ReadValue(path, value),))


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


def test_a_check_that_stays_good_without_its_file_is_a_broken_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_promises, "without", lambda content, is_gone: content)
    good = System("sound-6.12-rt").audit().of(Outcome.GOOD)
    number = next(at for at, result in enumerate(good) if result.check.id == "mem.compact.unevict")
    with pytest.raises(AssertionError, match="is good without all that it reads"):
        check_promises(stored_bytes("sound-6.12-rt"), tmp_path, REQUESTS[0], number)


def test_damage_changes_files_and_the_same_seed_makes_the_same() -> None:
    content, other = stored_bytes("debian-6.12-rt"), stored_bytes("debian-6.12")
    made = [mutated_facts(content, other, seed) for seed in range(40)]
    assert made == [mutated_facts(content, other, seed) for seed in range(40)]
    assert sum(each != content for each in made) >= 35
    gone, garbage = (change(content, lambda path: path == THP) for change in (without, garbled))
    assert THP in files_in(content)
    assert THP not in files_in(gone)
    assert b"garbage" in files_in(garbage)[THP][0].content
