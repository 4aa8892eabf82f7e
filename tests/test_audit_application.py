# SPDX-License-Identifier: Apache-2.0
"""Checks of the user's own application: on made facts, and on a program that does wrong what it is not told."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rtproof.audit import check_file, judgement
from rtproof.audit.check import Outcome
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.experiment.audited_system import collect

APP = Path(__file__).parent / "wrong_app.c"
WRONG = {f"sched.app.{name}" for name in ("policy", "lock", "affinity", "slack")}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("wrong") / "wrong_app"
    try:
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", built, APP], check=True)
    except FileNotFoundError:
        pytest.skip("there is no gcc")
    return built


@contextmanager
def _running(program: Path, words: str) -> Iterator[tuple[int, int]]:
    """The program's number, and the CPU that it would stay on."""
    with subprocess.Popen(
        [program, *words.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stderr
            said = process.stdout.readline().split()
            if not said:
                complaint = process.stderr.read()
                assert "not permitted" in complaint or "Cannot allocate" in complaint
                pytest.skip(f"this user may not do what the program asks for: {complaint.strip()}")
            yield process.pid, int(said[1])
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", WRONG),
        ("policy affinity slack lock heap", set()),
        ("affinity slack lock heap", {"sched.app.policy"}),
        ("policy slack lock heap", {"sched.app.affinity"}),
        ("policy affinity slack lock", {"sched.app.heap"}),
        ("affinity lock heap", {"sched.app.policy", "sched.app.slack"}),
        ("policy affinity", {"sched.app.lock"}),
    ],
)
def test_a_program_is_found_wrong_in_exactly_what_it_does_wrong(program: Path, right: str, wrong: set[str]) -> None:
    """Besides a quota: that is of the place where the tests run."""
    if os.geteuid():
        pytest.skip("the timer slack of another process is read by root only")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("with one CPU, no affinity is wrong")
    with _running(program, right) as (pid, cpu):
        record = collect(pid=pid)
    checks = [check for check in check_file.check_files()["application"].check if check.id != "sched.app.quota"]
    results = judgement.audit(Facts(record, AuditRequest(frozenset({cpu}), pid)), checks).results
    assert {result.check.id for result in results if result.outcome is Outcome.FINDING} == wrong
    assert not [result.sentence for result in results if result.outcome is Outcome.UNKNOWN]
