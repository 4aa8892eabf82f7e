# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest, in runs of pytest of their own: what they count, print, and write into JUnit's file."""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from analyses_by_verdict import invalid, not_asked, proven, refuted, undecided
from board_servers import board

from rtproof.cli import pytest_runs
from rtproof.experiment.run_request import RunRequest
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import EndReason
from rtproof.record.reading import open_record
from rtproof.record.run_folder import read_run_info

SIMULATED = ("--rtproof-target", "simulated", "--rtproof-target-option", "episodes=0/h")
STILL = """
name = "still"
help = "stands still, so a run under it is INVALID"
[[parts]]
program = ["sleep", "1000"]
count = "lines"
"""
ONE_OF_EACH = """
def test_proven(rtproof):
    run = rtproof.run(limit="10s", at_most="1/s", duration="5s")
    assert run.proven
    assert run.worst_us < 10_000_000
    assert run.page.exists()

def test_exceeded(rtproof):
    assert rtproof.run(limit="1ns", duration="1s").held

def test_undecided(rtproof):
    assert rtproof.run(limit="10s", at_most="1/h", duration="1s").proven
"""
INVALID = """
def test_invalid(rtproof):
    assert rtproof.run(limit="10s", load="./still.toml", duration="4s").held
"""


@dataclass(frozen=True)
class Ended:
    """A run of pytest. cases: the test cases of JUnit's file by their names."""

    code: int
    said: str
    cases: Mapping[str, ET.Element]

    def counted(self, name: str) -> str:
        """What JUnit counts a test as: passed, failure, error."""
        found = [each.tag for each in self.cases[name] if each.tag != "properties"]
        return found[0] if found else "passed"

    def message(self, name: str) -> str:
        (problem,) = (each for each in self.cases[name] if each.tag in ("failure", "error"))
        return problem.attrib["message"]

    def properties(self, name: str) -> dict[str, str]:
        return {each.attrib["name"]: each.attrib["value"] for each in self.cases[name].iter("property")}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=junit.xml", *words]


def environment() -> dict[str, str]:
    """Without what the outer pytest tells its own processes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def run_pytest(folder: Path, tests: str, *words: str, ini: str = "") -> Ended:
    (folder / "test_board.py").write_text(tests)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")
    (folder / "still.toml").write_text(STILL)
    done = subprocess.run(
        command(*words), cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=1800
    )
    root = ET.parse(folder / "junit.xml").getroot()
    return Ended(
        done.returncode, done.stdout + done.stderr, {each.attrib["name"]: each for each in root.iter("testcase")}
    )


def assert_one_of_each(ended: Ended, folder: Path, *, real: bool = True) -> None:
    """Passing, failing and undecided, with the verdict's sentence, the page's path and the figures."""
    assert ended.code == pytest.ExitCode.TESTS_FAILED, ended.said
    for name, counted, verdict in (
        ("test_proven", "passed", "PROVEN"),
        ("test_exceeded", "failure", "EXCEEDED"),
        ("test_undecided", "failure", "UNDECIDED"),
    ):
        told = ended.properties(name)
        if real and told["rtproof_verdict"] == "INVALID":  # as on a host that is too busy to measure
            assert ended.counted(name) == "error"
            continue
        assert ended.counted(name) == counted, ended.said
        assert told["rtproof_verdict"] == verdict
        assert float(told["rtproof_worst_us"]) > 0
        assert int(told["rtproof_n"]) > 10  # a guest by the clock of a busy host misses most of its activations
        assert Path(told["rtproof_page"]).read_text().startswith("<!doctype html>")
        assert Path(told["rtproof_run"]).parent == folder / "runs"
        assert (Path(told["rtproof_run"]) / "run.rtrec").exists()
        if counted == "failure":
            assert ended.message(name).startswith(f"{verdict}: ")
            assert ended.message(name) == told["rtproof_sentence"]
            assert f"{told['rtproof_sentence']}\npage: {told['rtproof_page']}\n" in ended.said
        if counted == "failure":
            assert (float(told.get("rtproof_more_s", 0)) > 10_000) == (verdict == "UNDECIDED")


def assert_invalid_is_an_error(ended: Ended) -> None:
    assert ended.counted("test_invalid") == "error", ended.said
    told = ended.properties("test_invalid")
    assert told["rtproof_verdict"] == "INVALID"
    message = ended.message("test_invalid")
    assert "INVALID: " in message
    assert " no work " in message
    assert f"page: {told['rtproof_page']}" in ended.said


def test_a_simulated_target(tmp_path: Path) -> None:
    ended = run_pytest(tmp_path, ONE_OF_EACH, *SIMULATED)
    assert_one_of_each(ended, tmp_path, real=False)
    assert "2 failed, 1 passed in" in ended.said


@pytest.mark.real
def test_this_machine(tmp_path: Path) -> None:
    ended = run_pytest(tmp_path, ONE_OF_EACH + INVALID)
    assert_one_of_each(ended, tmp_path)
    assert_invalid_is_an_error(ended)
    info = read_run_info(Path(ended.properties("test_proven")["rtproof_run"]))
    assert info is not None
    words = ("--limit=10s", "--at-most=1/s", "--duration=5s", "--target=local")
    assert info.command == ["rtproof", "run", *words]


LAB = """
targets:
  main:
    resources:
      NetworkService:
        address: "{address}"
        username: root
    drivers:
      SSHDriver:
        keyfile: "{key}"
"""


@pytest.mark.slow
def test_the_board_of_labgrids_fixture(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("labgrid", reason="labgrid is not installed")
    place = tmp_path_factory.mktemp("board")
    with board(place, "sshd") as server:
        (tmp_path / "lab.yaml").write_text(LAB.format(address=server.cable.address, key=place / "key"))
        tests = ONE_OF_EACH + INVALID
        ini = "rtproof_target = labgrid-fixture\n"
        ended = run_pytest(tmp_path, tests, "--lg-env", "lab.yaml", ini=ini)
        without = run_pytest(tmp_path, "def test_it(rtproof):\n    rtproof.run()\n", ini=ini)
    assert_one_of_each(ended, tmp_path)
    assert_invalid_is_an_error(ended)
    info = read_run_info(Path(ended.properties("test_proven")["rtproof_run"]))
    assert info is not None
    assert info.target == "labgrid"
    assert without.counted("test_it") == "skipped"


REFUSED = {
    'limit="soon"': "rtproof.run(): Invalid value for '--limit': 'soon' is not a duration",
    'limits="1ms"': "No such option '--limits'",
    'target="ssh"': "rtproof.run() takes no target: give pytest --rtproof-target",
    'duration=["1s", "2s"]': "duration: one value is needed, and no list",
    "duration=True": "whole number of nanoseconds, and no bool",
    'until_decided="yes"': "Option '--until-decided' does not take a value",
    'explain="--help"': "rtproof.run() takes no help",
    'probe="timer", duration="1s", samples=3': "--duration and --samples exclude each other",
}


def test_what_cannot_be_measured_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    tests = "".join(f"def test_{at}(rtproof):\n    rtproof.run({words})\n" for at, words in enumerate(REFUSED))
    ended = run_pytest(tmp_path, tests, *SIMULATED)
    assert f"{len(REFUSED)} errors in" in ended.said
    for at, sentence in enumerate(REFUSED.values()):
        assert ended.counted(f"test_{at}") == "error"
        assert sentence in ended.message(f"test_{at}")
        assert ended.properties(f"test_{at}") == {}
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rtproof-target", "simulate"), "there is no target 'simulate' (did you mean 'simulated'?)"),
        (("--rtproof-target", "local", "--rtproof-target-option", "a=b"), "the target local has no option 'a'"),
        (("--rtproof-target", "simulated", "--rtproof-target-option", "seed"), "'seed' is not of the form key=value"),
        (("--rtproof-target", "labgrid-fixture"), "needs labgrid's fixture 'target': install labgrid"),
    ],
)
def test_a_target_that_there_is_not_is_an_error_in_a_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    test = "def test_it(rtproof):\n    rtproof.run(limit='1ms', duration='1s')\n"
    ended = run_pytest(tmp_path, test, *words, "-p", "no:labgrid", ini="rtproof_target_options = seed=1\n")
    assert ended.counted("test_it") == "error"
    assert sentence in ended.message("test_it")
    assert "1 error in" in ended.said


def test_an_expected_failure_does_not_hide_an_error_if_it_says_what_it_expects(tmp_path: Path) -> None:
    test = (
        "import pytest\n"
        "@pytest.mark.xfail(raises=AssertionError)\n"
        "def test_error(rtproof):\n"
        "    rtproof.run(limit='soon')\n"
        "@pytest.mark.xfail(raises=AssertionError)\n"
        "def test_undecided(rtproof):\n"
        "    assert rtproof.run(limit='1ms', at_most='1/h', duration='2s').proven\n"
    )
    ended = run_pytest(tmp_path, test, *SIMULATED)
    assert ended.counted("test_error") == "error"
    assert ended.counted("test_undecided") == "skipped"
    assert ended.properties("test_undecided")["rtproof_verdict"] == "UNDECIDED"


def test_an_assertion_about_something_else_keeps_its_message(tmp_path: Path) -> None:
    test = (
        "def test_it(rtproof):\n"
        "    assert rtproof.run(limit='1ms', at_most='1/s', duration='10s').proven\n"
        "    assert 1 + 1 == 3\n"
        "def test_other(rtproof):\n"
        "    assert rtproof.run(limit='1ms', duration='2s').held\n"
        "    {}['x']\n"
    )
    ended = run_pytest(tmp_path, test, *SIMULATED)
    assert ended.message("test_it") == "assert (1 + 1) == 3"
    assert "PROVEN: 1 ms was not exceeded in 10.0 s" in ended.said
    assert (ended.counted("test_other"), ended.message("test_other")) == ("failure", "KeyError: 'x'")


def test_a_run_has_no_truth_value(tmp_path: Path) -> None:
    """Who forgets .held must not pass."""
    test = "def test_it(rtproof):\n    assert rtproof.run(limit='1ns', duration='2s', report=False)\n"
    ended = run_pytest(tmp_path, test, *SIMULATED)
    assert ended.counted("test_it") == "error"
    assert "a run is neither true nor false: assert run.held, for example; this one is EXCEEDED" in ended.said


def test_a_fixture_that_measures_tells_the_verdict_too(tmp_path: Path) -> None:
    test = (
        "import pytest\n"
        "MEASURE = dict(limit='1ns', duration='2s', report=False)\n"
        "@pytest.fixture\n"
        "def before(rtproof):\n"
        "    assert rtproof.run(**MEASURE).held\n"
        "@pytest.fixture\n"
        "def after(rtproof):\n"
        "    yield\n"
        "    assert rtproof.run(**MEASURE).held\n"
        "@pytest.fixture\n"
        "def wrong(rtproof):\n"
        "    rtproof.run(limit='5')\n"
        "def test_before(before):\n    pass\n"
        "def test_after(after):\n    pass\n"
        "def test_wrong(wrong):\n    pass\n"
    )
    ended = run_pytest(tmp_path, test, *SIMULATED)
    for name, words in (("before", "EXCEEDED: "), ("after", "EXCEEDED: "), ("wrong", "has no unit")):
        assert ended.counted(f"test_{name}") == "error"
        assert words in ended.message(f"test_{name}")
    assert "1 passed, 3 errors in" in ended.said


@pytest.mark.real
def test_ctrl_c_ends_the_run_and_the_session(tmp_path: Path) -> None:
    test = "def test_it(rtproof):\n    rtproof.run(duration='1h')\ndef test_next():\n    pass\n"
    (tmp_path / "test_board.py").write_text(test)
    process = subprocess.Popen(
        command("-v"), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        end = time.monotonic() + 300
        while not [each for each in tmp_path.glob("runs/*/run.rtrec") if each.stat().st_size > 4_096]:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    assert "KeyboardInterrupt" in said
    assert "test_next" not in said
    (record,) = tmp_path.glob("runs/*/run.rtrec")
    end_of_run = open_record(record).end
    assert end_of_run is not None
    assert end_of_run.reason is EndReason.INTERRUPTED
    assert len(list(tmp_path.glob("runs/*.html"))) == 1


@pytest.mark.real
def test_tests_that_run_at_the_same_time_measure_one_board_in_turn(tmp_path: Path) -> None:
    tests = "".join(f"def test_{at}(rtproof):\n    rtproof.run(duration='1s', report=False)\n" for at in range(4))
    ended = run_pytest(tmp_path, tests, "-n", "2")
    assert ended.code == pytest.ExitCode.OK, ended.said
    folders = [Path(ended.properties(f"test_{at}")["rtproof_run"]) for at in range(4)]
    assert len(set(folders)) == 4
    spans = sorted(
        ((each / "run.json").stat().st_mtime_ns, (each / "run.rtrec").stat().st_mtime_ns) for each in folders
    )
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_who_waits_for_whom() -> None:
    def key(target: str, *options: tuple[str, str]) -> str:
        return pytest_runs.board_key(RunRequest((), target, target_options=options), None)

    board = key("ssh", ("host", "board"), ("port", "22"))
    assert board == key("ssh", ("port", "22"), ("host", "board"), ("user", "root"), ("sudo", "sudo -n"))
    assert board != key("ssh", ("host", "other"), ("port", "22"))
    assert board != key("serial", ("host", "board"), ("port", "22"))


def test_a_run_of_pytest_that_measures_nothing_is_not_disturbed(tmp_path: Path) -> None:
    test = (
        "import sys\n"
        "def test_modules():\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] == 'rtproof'}\n"
        "    assert ours == {'rtproof', 'rtproof.cli', 'rtproof.cli.pytest_errors', 'rtproof.cli.pytest_plugin'}\n"
        "    assert not {'numpy', 'duckdb', 'click', 'msgspec'} & set(sys.modules)\n"
        "def test_fails():\n"
        "    assert 1 == 2\n"
    )
    ended = run_pytest(tmp_path, test, "-p", "no:hypothesispytest")
    assert ended.counted("test_modules") == "passed", ended.said
    assert ended.message("test_fails") == "assert 1 == 2"
    assert "rtproof ---" not in ended.said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": ["1ms", "2ms"], "at_most": "1/h"}, ["--limit=1ms", "--limit=2ms", "--at-most=1/h"]),
        ({"load": ("sched", "mem"), "samples": 5}, ["--load=sched", "--load=mem", "--samples=5"]),
        ({"explain": True, "observer": False}, ["--explain", "--no-observer"]),
        ({"explain": "top=5", "note": None, "report": True}, ["--explain=top=5", "--report"]),
        ({"no_lock_memory": False, "allow_unprivileged": True}, ["--allow-unprivileged"]),
        ({"confidence": 0.99, "agent": Path("/a")}, ["--confidence=0.99", "--agent=/a"]),
    ],
)
def test_arguments_are_the_options_of_rtproof_run(options: dict[str, Any], words: list[str]) -> None:
    assert pytest_runs.option_words(options) == words


@pytest.mark.parametrize(
    ("case", "more"), [(proven, False), (refuted, False), (undecided, True), (invalid, False), (not_asked, False)]
)
def test_a_result_says_its_verdict_and_how_much_longer_it_takes(case: Callable[[], Analysis], more: bool) -> None:
    run = pytest_runs.RunResult(Path("/runs/a"), None, case())
    assert (run.more_s is not None) == more
    told = dict(run.properties())
    assert (told["verdict"], told["sentence"]) == (run.verdict, run.sentence)
    assert ("more_s" in told) == more
    states = [name for name in ("proven", "refuted", "undecided", "invalid") if getattr(run, name)]
    assert states == [name for name in [run.verdict.lower()] if name != "not asked"]
