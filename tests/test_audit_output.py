# SPDX-License-Identifier: Apache-2.0
"""The result of an audit: text, JSON, JUnit and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rtproof.audit.check import Audit, Change, Check, CheckResult, Effect, Outcome, Severity
from rtproof.audit.facts import Reading, State
from rtproof.cli.main import main
from rtproof.experiment import audited_system
from rtproof.report.pages.audit_page import audit_junit, audit_text

THP = Check(
    "mem.thp",
    "Transparent huge pages",
    ("/sys/kernel/mm/transparent_hugepage/enabled",),
    Severity.MEDIUM,
    "The kernel moves memory for them. A thread that faults then waits.",
    ("https://docs.kernel.org/admin-guide/mm/transhuge.html",),
    "Set it to never.",
    change=Change(now="echo never > {path}", boot="transparent_hugepage=never", risk="Programs may become slower."),
    effect=(Effect("1 ms less", "article 3, table 2"),),
    explains=("page-fault",),
    subject="memory",
)
PATH = "/sys/kernel/mm/transparent_hugepage/enabled"


def check(check_id: str, severity: Severity = Severity.HIGH) -> Check:
    return Check(check_id, f"title of {check_id}", ("/x",), severity, "Why.", ("a source",), f"Mend {check_id}.")


def result(
    outcome: Outcome = Outcome.FINDING,
    of: Check = THP,
    sentence: str = "The kernel makes huge pages of any memory.",
    read: Sequence[Reading] = (Reading(PATH, State.HERE, "[always] madvise never"),),
) -> CheckResult:
    return CheckResult(of, outcome, of.severity, sentence, tuple(read))


def unreadable(name: str, reason: str, severity: Severity = Severity.HIGH) -> CheckResult:
    path = f"/sys/{name}"
    return result(
        Outcome.UNKNOWN,
        check(name, severity),
        f"{path} could not be read: {reason}.",
        [Reading(path, State.UNREADABLE, "", reason)],
    )


def audit(*results: CheckResult, notes: tuple[str, ...] = ()) -> Audit:
    return Audit(results, "default", "x86_64", "6.12.0-rt #1 SMP PREEMPT_RT", 1, True, notes)


def folded(text: str) -> str:
    return " ".join(text.split())


def test_a_hostile_text_sends_nothing_to_the_terminal() -> None:
    text = audit_text(
        audit(result(sentence="evil \x1b[31m\u202e", read=[Reading("/x\x1b", State.HERE, "\x07")])), verbose=True
    )
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


@pytest.mark.parametrize(
    ("outcomes", "fail_on", "code"),
    [
        ([(Outcome.FINDING, Severity.HIGH)], Severity.HIGH, 1),
        ([(Outcome.FINDING, Severity.MEDIUM)], Severity.HIGH, 0),
        ([(Outcome.FINDING, Severity.MEDIUM)], Severity.MEDIUM, 1),
        ([(Outcome.FINDING, Severity.FATAL)], Severity.HIGH, 1),
        ([(Outcome.UNKNOWN, Severity.HIGH)], Severity.HIGH, 4),
        ([(Outcome.CONFLICTING, Severity.FATAL)], Severity.HIGH, 4),
        ([(Outcome.UNKNOWN, Severity.LOW)], Severity.HIGH, 0),
        ([(Outcome.UNKNOWN, Severity.FATAL), (Outcome.FINDING, Severity.HIGH)], Severity.HIGH, 1),
        ([(Outcome.UNKNOWN, Severity.HIGH), (Outcome.FINDING, Severity.LOW)], Severity.HIGH, 4),
        ([(Outcome.GOOD, Severity.FATAL), (Outcome.NOT_APPLICABLE, Severity.FATAL)], Severity.INFO, 0),
    ],
)
def test_exit_codes(outcomes: list[tuple[Outcome, Severity]], fail_on: Severity, code: int) -> None:
    found = audit(*(result(outcome, check(f"a.x{i}", severity)) for i, (outcome, severity) in enumerate(outcomes)))
    assert found.exit_code(fail_on) == code


def test_junit_agrees_with_the_exit_code() -> None:
    found = audit(
        result(of=check("a.high")),
        result(of=check("a.low", Severity.LOW)),
        result(Outcome.GOOD, check("a.good"), ""),
        result(Outcome.NOT_APPLICABLE, check("a.none"), "There is only one CPU."),
        unreadable("a.hidden", "debugfs is not mounted"),
        result(Outcome.CONFLICTING, check("a.both"), "They differ."),
    )
    suite = ET.fromstring(audit_junit(found, Severity.HIGH)).find("testsuite")
    assert suite is not None
    kinds = {case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in suite}
    assert kinds == {
        "a.high": ["failure"],
        "a.low": ["skipped"],
        "a.good": [],
        "a.none": ["skipped"],
        "a.hidden": ["skipped"],
        "a.both": ["skipped"],
    }
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["6", "1", "0", "4"]
    hidden = suite.find("testcase[@name='a.hidden']/skipped")
    assert hidden is not None
    assert hidden.get("message") == "unknown, severity high: /sys/a.hidden could not be read: debugfs is not mounted."
    lower = ET.fromstring(audit_junit(found, Severity.LOW)).find("testsuite")
    assert lower is not None
    assert lower.get("failures") == "2"


# The command.


@pytest.fixture(scope="module")
def facts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This machine's facts."""
    path = tmp_path_factory.mktemp("audit") / "facts.rtrec"
    assert main(["audit", "-o", str(path)]) in (0, 1, 4)
    return path


def test_a_stored_file_is_judged_with_all_outputs(
    facts_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xml = tmp_path / "audit.xml"
    code = main(["audit", str(facts_file), "--json", "--junit", str(xml)])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["exit_code"] == code
    assert found["collected"] is True
    assert f"JUnit: {xml}\n" in err
    cases = ET.fromstring(xml.read_bytes()).findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == [one["id"] for one in found["checks"]]
    assert main(["audit", str(facts_file), "--junit", str(xml)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pid", "3"], "--pid is for facts that are collected"),
        (["--target", "local"], "--target is for facts that are collected, and FILE has them already"),
        (["--target-option", "a=b"], "--target-option is for facts that are collected"),
        (["--agent", "x"], "--agent is for facts that are collected"),
        (["-o", "x"], "--output is for facts that are collected"),
        (["--cpus", "4095"], "--cpus: the machine has no CPU 4095: it has 0-"),
        (["--fail-on", "never"], "'never' is not one of"),
        (["--for", "fun"], "'fun' is not one of"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    facts_file: Path, words: list[str], sentence: str, refused: Callable[..., str]
) -> None:
    assert sentence in refused("audit", facts_file, *words).replace("0 is the only one", "0-")


@pytest.mark.parametrize(
    "command",
    [
        ["show"],
        ["show", "--json"],
        ["report"],
        ["explain"],
        ["watch"],
        ["history"],
        ["matrix"],
        ["export", "--format", "csv"],
        ["compare", "--against", str(Path(__file__).parent / "data" / "golden" / "x86_64-1.3.rtrec")],
    ],
)
def test_what_needs_a_measurement_refuses_the_facts_of_a_system(
    command: list[str], facts_file: Path, refused: Callable[..., str]
) -> None:
    before = set(facts_file.parent.iterdir())
    said = f"{facts_file} holds the facts of a system and no measurement: rtproof audit {facts_file} judges it"
    assert said in refused(command[0], facts_file, *command[1:])
    assert set(facts_file.parent.iterdir()) == before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_file_that_was_cut_says_so(
    share: float, facts_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = facts_file.read_bytes()
    part = tmp_path / "part.rtrec"
    part.write_bytes(whole[: int(share * len(whole))])
    main(["audit", str(part)])
    assert "The record is not whole" in folded(capsys.readouterr().out)
    main(["audit", str(part), "--json"])
    assert "was cut off" in json.loads(capsys.readouterr().out)["notes"][0]
    main(["audit", str(facts_file)])
    assert "not whole" not in folded(capsys.readouterr().out)


def test_a_closed_output_is_no_trouble(facts_file: Path) -> None:
    for options in ("", "--json", "--for article-1"):
        words = ["sh", "-c", f'"$0" -m rtproof audit "$1" {options} >&-', sys.executable, str(facts_file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.stderr, done.returncode in (0, 1, 4)) == ("", True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_no_folder_and_no_agent(number: int, tmp_path: Path) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"signal {number} is ignored here")
    slow = tmp_path / "agent"
    more_than_a_pipe_holds = "head -c 300000 /dev/zero | tr '\\0' '\\n' >&2"  # So somebody reads when it is through.
    slow.write_text(f"#!/bin/sh\n{more_than_a_pipe_holds}\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    slow.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    audit = subprocess.Popen(
        [sys.executable, "-m", "rtproof", "audit", "--agent", str(slow)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
    )
    pid = int(awaited(lambda: (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else ""))
    audit.send_signal(number)
    _, err = audit.communicate(timeout=300)
    assert (audit.returncode != 0, b"Traceback" in err) == (True, False)
    assert awaited(lambda: "" if Path(f"/proc/{pid}").exists() else "gone")
    assert list(scratch.iterdir()) == []


def awaited(look: Callable[[], str], most_s: float = 300) -> str:
    """What the function says, as soon as it says something."""
    end = time.monotonic() + most_s
    while not (found := look().strip()) and time.monotonic() < end:
        time.sleep(0.02)
    assert found, "it did not come"
    return found


def test_the_end_says_where_the_facts_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.rtrec"
    main(["audit", "-o", str(path)])
    assert capsys.readouterr().out.endswith(f"\nfacts: {path}\n")
    assert path.stat().st_size


@pytest.mark.parametrize("option", ["--junit", "-o"])
def test_a_file_that_cannot_be_made_is_refused_before_facts_are_collected(
    option: str, tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited_system, "collect_on", lambda *_: pytest.fail("it collected"))
    assert f"there is no folder {tmp_path / 'gone'}" in refused("audit", option, tmp_path / "gone" / "x")
