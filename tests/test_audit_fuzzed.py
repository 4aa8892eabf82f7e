# SPDX-License-Identifier: Apache-2.0
"""Damaged facts of systems: no traceback, and never ``good`` for what is not there, as docs/fuzz.md defines it."""

from itertools import islice
from pathlib import Path

import pytest
from audit_systems import stored_bytes, stored_names, stored_record
from fuzzing import worker
from fuzzing.audit_promises import REQUESTS, check_promises, files_in, why_not_good
from fuzzing.facts_mutations import StoredFile
from fuzzing.targets import TARGETS

from rtproof.audit import check_file
from rtproof.audit.audit_model import CheckResult, Outcome, ReadValue
from rtproof.audit.check import Severity

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
