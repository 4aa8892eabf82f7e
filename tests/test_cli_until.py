# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --until-decided`` on a simulated target."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rtproof.cli.main import main
from rtproof.cli.option_values import until_announcement
from rtproof.judge.analysis_model import State
from rtproof.record.contents import EndReason
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import Run, open_run

BASE = ["run", "--output", "r", "--no-report", "--target", "simulated", "--limit", "100us"]
UNTIL = [*BASE, "--until-decided"]
NEVER = ["--target-option", "episodes=0/h"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object], str, Run]:
    code = main([*UNTIL, "--json", *words])
    out, err = capsys.readouterr()
    return code, json.loads(out), err, open_run("r")


def test_it_ends_when_the_limit_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err, run = found(capsys, *NEVER, "--at-most", "1/h")
    assert code == State.PROVEN.exit_code
    assert said["verdict"]["state"] == "PROVEN"  # type: ignore[index]
    assert run.record.end is not None
    assert run.record.end.reason is EndReason.INTERRUPTED
    assert 0 <= run.record.end.time_ns - said["verdict"]["decided_at_ns"] <= 5 * 10**9  # type: ignore[index]
    assert run.info is not None
    assert run.info.until_decided
    assert run.record.fact("until_decided") == "yes"
    assert "PROVEN after 3 h 29 min without an episode" in err
    assert [doubt["code"] for doubt in said["doubts"]] == ["simulated"]  # type: ignore[attr-defined]


def test_it_ends_when_the_limit_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _, run = found(capsys, "--target-option", "episodes=20/h", "--at-most", "1/h")
    assert code == State.REFUTED.exit_code
    assert run.record.end is not None
    assert 0 <= run.record.end.time_ns - said["verdict"]["decided_at_ns"] <= 5 * 10**9  # type: ignore[index]


def test_it_ends_undecided_where_it_may_not_last_long_enough(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _, run = found(capsys, *NEVER, "--at-most", "1/h", "--max-duration", "1h")
    assert code == State.UNDECIDED.exit_code
    assert run.record.end is not None
    assert run.record.end.reason is EndReason.AS_ASKED
    assert run.record.end.time_ns == 3600 * 10**9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--until-decided", "--duration", "1h"], "leave --duration and --samples out"),
        (["--max-duration", "1h"], "--max-duration needs --until-decided"),
        (["--until-decided", "--profile", "akamina"], "--until-decided does not go with --"),
        (["--until-decided", "--observer"], "--until-decided does not go with --"),
        (["--until-decided", "--repeat", "3"], "--until-decided does not go with --"),
        (["--until-decided", "--abba", "--period 1ms", "--period 2ms"], "--until-decided does not go with --"),
        (["--until-decided", "--load", "sched"], "no use for --load"),
    ],
)
def test_refusals_are_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BASE, *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("r").exists()


def test_ctrl_c_ends_it_earlier_and_keeps_it() -> None:
    words = [*UNTIL, *NEVER, "--at-most", "1/30d", "--max-duration", "400d"]  # undecided for most of an hour
    process = subprocess.Popen([sys.executable, "-m", "rtproof", *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()
    while not Path("r/run.rtrec").exists():
        assert process.poll() is None
    process.send_signal(2)
    process.communicate()
    assert process.returncode == State.UNDECIDED.exit_code
    end = open_run("r").record.end
    assert end is not None
    assert end.reason is EndReason.INTERRUPTED


def test_the_record_alone_says_why_it_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """It holds the limits but not how often, so they are plain; who states them has the run judged as the folder is."""
    asked = ["--limit", "100us", "--at-most", "1/min"]
    assert main([*UNTIL, *NEVER, "--at-most", "1/min"]) == State.PROVEN.exit_code
    bare = Path("r/run.rtrec").rename("bare.rtrec")
    capsys.readouterr()
    assert main(["show", str(bare), "--json"]) == State.HELD.exit_code
    capsys.readouterr()
    assert main(["judge", str(bare), *asked, "--fixed-beforehand"]) == State.PROVEN.exit_code
    assert main([*BASE[:1], "--output", "short", *BASE[3:], *NEVER, "--duration", "1min"]) == State.HELD.exit_code
    assert open_run("short").record.fact("until_decided") is None


@pytest.mark.serial
@pytest.mark.parametrize(("limit", "at_most", "code"), [("10s", "1/s", 0), ("1ns", "1/d", 1)])
def test_on_this_machine(limit: str, at_most: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing takes ten seconds, and everything takes a nanosecond; both are decided within seconds."""
    words = ["run", "--output", "r", "--no-report", "--json", "--limit", limit, "--at-most", at_most, "--gap", "100ms"]
    how = ["--until-decided", "--max-duration", "600s", "--policy", "other", "--allow-unprivileged", "--threads", "1"]
    found = main([*words, *how])
    said = json.loads(capsys.readouterr().out)
    run = open_run("r")
    assert run.record.end is not None
    if found == 3:
        pytest.skip("this host is too busy to decide anything: the run is INVALID")
    assert found == code
    assert run.record.end.reason is EndReason.INTERRUPTED
    assert said["verdict"]["decided_at_ns"] <= run.record.end.time_ns


def test_a_plain_limit_and_one_with_a_rate_are_both_announced() -> None:
    hour_ns = 3600 * 10**9
    said = until_announcement([Requirement(500_000), Requirement(100_000, hour_ns)], "12h")
    assert said == (
        "measures until it is decided: 500 us EXCEEDED, or HELD after 3 h, which rules out exceedances more often than "
        "once per 1 h; 100 us REFUTED, or PROVEN after 3 h 29 min without an episode, 6 h 50 min with 1, 9 h 11 min "
        "with 2; for 12 h at most"
    )


def test_the_announcement_gives_each_limit_its_own_time() -> None:
    said = until_announcement([Requirement(500_000, 10**9), Requirement(2_000_000)], "2h")
    assert "PROVEN after 3.5 s without an episode" in said
    assert said.endswith("for 2 h at most, which is too short for HELD")
