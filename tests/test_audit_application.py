# SPDX-License-Identifier: Apache-2.0
"""Checks of the user's own application: on made facts, and on a program that does wrong what it is not told."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from audit_cases import judged, made_facts

from rtproof.audit import check_file, judgement
from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.experiment.audited_system import CollectRequest, collect

APP = Path(__file__).parent / "wrong_app.c"
WRONG = {f"sched.app.{name}" for name in ("policy", "lock", "affinity", "slack")}
ONLINE = {"/sys/devices/system/cpu/online": "0-3\n", "/sys/devices/system/cpu/isolated": "\n"}
HEAD = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS SLACK COMM\n"
CYCLIC = "700 701 1 FF 80 - 3 3 0x00400000 0 the loop\n"
HELPER = "700 700 1 TS - 0 0 0-3 0x00400000 50000 app\n"
STATUS = "Name:\tapp\nVmLck:\t{:>8} kB\nVmRSS:\t{:>8} kB\n"
MAPS = "/usr/bin/app file 40 40 {0}\n[heap] heap 132 {1} {2}\n- anonymous 8192 16 {3}\n[stack] stack 132 12 {0}\n"
FAULTS = "700 {} {}\n701 {} {}\n"


def _judged(
    check: str, files: dict[str, str | int], cpus: frozenset[int] | None = None, end: dict[str, str | int] | None = None
) -> CheckResult:
    return judged(f"sched.app.{check}", made_facts(ONLINE | files, end=end, request=AuditRequest(cpus, 700)))


def _outcome(check: str, files: dict[str, str | int], cpus: frozenset[int] | None = None) -> Outcome:
    return _judged(check, files, cpus).outcome


def test_one_thread_with_a_real_time_policy_is_enough() -> None:
    assert _outcome("policy", {"process/threads": HEAD + CYCLIC + HELPER}) is Outcome.GOOD
    found = _judged("policy", {"process/threads": HEAD + HELPER})
    assert (found.outcome, found.severity) == (Outcome.FINDING, Severity.HIGH)


def test_the_cyclic_threads_stay_on_the_isolated_cpus() -> None:
    both: dict[str, str | int] = {"process/threads": HEAD + CYCLIC + HELPER}
    assert _outcome("affinity", both, frozenset({3})) is Outcome.GOOD
    assert _outcome("affinity", both) is Outcome.GOOD
    outside = _judged("affinity", both, frozenset({2}))
    assert (outside.outcome, outside.severity) == (Outcome.FINDING, Severity.MEDIUM)
    assert "the loop/701 may run on CPU 3" in outside.sentence
    wide = _judged("affinity", {"process/threads": HEAD + HELPER})
    assert (wide.outcome, wide.severity) == (Outcome.FINDING, Severity.LOW)
    many: dict[str, str | int] = {"process/threads": HEAD + CYCLIC.replace("3 3", "3 70-71")}
    assert _outcome("affinity", many, frozenset({70, 71})) is Outcome.GOOD
    unseen: dict[str, str | int] = {"process/threads": HEAD + CYCLIC.replace("3 3", "3 -")}
    assert _outcome("affinity", unseen, frozenset({3})) is Outcome.UNKNOWN


def test_memory_and_heap_are_judged_apart() -> None:
    def maps(code: int, heap: int, other: int) -> dict[str, str | int]:
        return {"process/maps": MAPS.format(code, 130, heap, other)}

    assert _outcome("lock", {"process/status": STATUS.format(8000, 200)}) is Outcome.GOOD
    assert _outcome("lock", {"process/status": STATUS.format(0, 200)}) is Outcome.FINDING
    assert _outcome("lock", {"process/status": STATUS.format(60, 200)}) is Outcome.FINDING
    later = maps(40, 0, 16)
    assert _outcome("lock", later | {"process/status": STATUS.format(68, 200)}) is Outcome.GOOD
    assert _outcome("heap", maps(40, 130, 16)) is Outcome.GOOD
    found = _judged("heap", later)
    assert found.outcome is Outcome.FINDING
    assert "130 of the 146 kB" in found.sentence
    assert _outcome("heap", {"process/maps": "/bin/app file 40 40 0\n"}) is Outcome.NOT_APPLICABLE
    assert _outcome("heap", {"process/maps": "[heap] heap 132 130 -\n"}) is Outcome.UNKNOWN


def test_faults_of_the_cyclic_threads_count() -> None:
    files: dict[str, str | int] = {
        "process/threads": HEAD + CYCLIC + HELPER,
        "process/faults": FAULTS.format(5, 1, 9, 2),
    }

    def found(*end: int) -> CheckResult:
        return _judged("faults", files, None, {"process/faults": FAULTS.format(*end)})

    assert found(99, 99, 9, 2).outcome is Outcome.GOOD
    assert (found(5, 1, 10, 2).outcome, found(5, 1, 10, 2).severity) == (Outcome.FINDING, Severity.MEDIUM)
    assert (found(5, 1, 9, 3).outcome, found(5, 1, 9, 3).severity) == (Outcome.FINDING, Severity.HIGH)
    assert _judged("faults", files).outcome is Outcome.UNKNOWN
    assert _judged("faults", files, None, {"process/faults": "999 1 1\n"}).outcome is Outcome.UNKNOWN


def test_slack_counts_without_a_real_time_policy_only() -> None:
    assert _outcome("slack", {"process/threads": HEAD + HELPER}) is Outcome.FINDING
    assert _outcome("slack", {"process/threads": HEAD + HELPER.replace("50000", "1")}) is Outcome.GOOD
    assert _outcome("slack", {"process/threads": HEAD + CYCLIC + HELPER}) is Outcome.GOOD
    assert _outcome("slack", {"process/threads": HEAD + HELPER.replace("50000", "-")}) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ("/sys/fs/cgroup/a b/cpu.max max 100000\n/sys/fs/cgroup/a b/cpu.stat 0\n", Outcome.GOOD),
        ("/sys/fs/cgroup/a b/cpu.max max 100000\n/sys/fs/cgroup/cpu.max 50000 100000\n", Outcome.FINDING),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us -1\n/sys/fs/cgroup/cpuset/cpuset.effective_cpus 0-3\n", Outcome.GOOD),
        ("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us 20000\n", Outcome.FINDING),
        ("/sys/fs/cgroup/box/cpuset.cpus.effective 0-1\n", Outcome.FINDING),
        ("/sys/fs/cgroup/box/cpu.weight 100\n", Outcome.NOT_APPLICABLE),
        ("", Outcome.NOT_APPLICABLE),
        ("/sys/fs/cgroup/box/cpu.max some\n", Outcome.UNKNOWN),
    ],
)
def test_quotas_of_control_groups(files: str, outcome: Outcome) -> None:
    assert _outcome("quota", {"process/cgroup-files": files}, frozenset({3})) is outcome


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
        record = collect(CollectRequest(pid=pid))
    checks = [check for check in check_file.check_files()["application"].check if check.id != "sched.app.quota"]
    results = judgement.audit(Facts(record, AuditRequest(frozenset({cpu}), pid)), checks).results
    assert {result.check.id for result in results if result.outcome is Outcome.FINDING} == wrong
    assert not [result.sentence for result in results if result.outcome is Outcome.UNKNOWN]
