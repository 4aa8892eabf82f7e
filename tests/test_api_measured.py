# SPDX-License-Identifier: Apache-2.0
"""``rtproof.run`` measures this machine as the command line does: from threads, workers, and until Ctrl-C."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtproof
from rtproof.cli.main import main

SCRIPT = """
import signal, sys, rtproof
signal.signal(signal.SIGINT, signal.default_int_handler)
print(rtproof.run, flush=True)
try:
    rtproof.run(duration="60s", output=sys.argv[1])
except rtproof.RunInterrupted as interrupted:
    print(interrupted.run.summary().pooled.n > 0, interrupted)
"""
PATIENCE_S = 60


@pytest.mark.real
def test_a_run_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    run = rtproof.run(duration=1_000_000_000, limit="50ms", at_most="1/min", load=["timers"], note="a note")
    assert run.path.parent == Path("runs")
    assert run.verdict().limit_ns == 50_000_000
    assert run.verdict().at_most_ns == 60_000_000_000
    assert (run.kind, run.note, run.facts["load"]) == ("run", "a note", "timers")
    assert run.samples().latency_ns.size == run.summary().pooled.observed.n
    capsys.readouterr()
    main(["show", str(run.path), "--json"])
    assert json.loads(run.to_json()) == json.loads(capsys.readouterr().out)
    assert {number: signal.getsignal(number) for number in before} == before
    coinciding = run.causes()
    main(["explain", str(run.path), "--json"])
    assert json.loads(coinciding.to_json()) == json.loads(capsys.readouterr().out)
    assert not coinciding.traced
    assert coinciding.causes == ()
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"], "no report that nobody asked for"


@pytest.fixture
def measuring(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A script that measures, once its record has content."""
    folder = tmp_path / "run"
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        record, end = folder / "run.rtrec", time.monotonic() + PATIENCE_S
        try:
            while not (record.exists() and record.stat().st_size) and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(2)
            yield process
        finally:
            process.kill()


@pytest.mark.real
def test_ctrl_c_leaves_a_shortened_run(measuring: "subprocess.Popen[str]", tmp_path: Path) -> None:
    measuring.send_signal(signal.SIGINT)
    said, _ = measuring.communicate(timeout=PATIENCE_S)
    assert f"True interrupted; what was measured until then is kept in {tmp_path / 'run'}" in said
    assert measuring.returncode == 0
    run = rtproof.open(tmp_path / "run")
    assert json.loads(run.to_json())["record"]["end_reason"] == "interrupted"


@pytest.mark.real
def test_the_measurement_ends_with_the_process_that_asked(measuring: "subprocess.Popen[str]", tmp_path: Path) -> None:
    measuring.kill()
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if json.loads(rtproof.open(tmp_path / "run").to_json())["record"]["end_reason"]:
            break
        time.sleep(0.2)
    assert json.loads(rtproof.open(tmp_path / "run").to_json())["record"]["end_reason"] == "interrupted"


def test_ctrl_c_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = subprocess.Popen.wait
    sent: list[int] = []

    def interrupted(process: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        if not sent:
            sent.append(process.pid)
            raise KeyboardInterrupt
        return waited(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(rtproof.RunInterrupted, match=r"^interrupted before anything was measured$") as stopped:
        rtproof.run(duration="60s", output=tmp_path / "run")
    assert stopped.value.run is None
    assert not (tmp_path / "run").exists()
    assert isinstance(stopped.value, KeyboardInterrupt)


def simulated(at: int, folder: str = "runs") -> Any:
    return rtproof.run(target="simulated", target_options={"seed": at}, duration="1s", output=f"{folder}/{at}")


def test_threads_measure_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no file of the working folder stands in for a module of the measuring process."""
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    monkeypatch.chdir(tmp_path)
    found: list[rtproof.Run] = []

    def measure() -> None:
        found.append(rtproof.run(target="simulated", duration="1s"))

    threads = [threading.Thread(target=measure) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({run.path for run in found}) == 2


def test_workers_of_multiprocessing_measure(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        run = pool.apply(simulated, (1, str(tmp_path)))
    assert run.path == tmp_path / "1"
    assert run.summary().pooled.n


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duration": "1x"}, ["--duration=1x"]),
        ({"duration": "1s", "load": "nosuch"}, ["--duration=1s", "--load=nosuch"]),
        ({"limit": "5us", "at_most": ["1/h", "1/d"]}, ["--limit=5us", "--at-most=1/h", "--at-most=1/d"]),
    ],
)
def test_bad_input_has_the_sentence_of_the_command_line(
    options: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"--output={tmp_path / 'b'}", *words]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    with pytest.raises(rtproof.RtproofError) as refused:
        rtproof.run(output=tmp_path / "a", **options)
    assert f"rtproof: {refused.value}" == told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"duration": 1.5}, "duration: a time is text such as '500us'"),
        ({"load": [7.5, None]}, "load: text or a number is needed, and no NoneType"),
        ({"cpus": [0, 1]}, "cpus: text or a number is needed, and no list"),
        ({"output": 5}, "a path is text or a pathlib.Path, and no int"),
        ({"output": "."}, ". exists already: nothing is ever written over"),
    ],
)
def test_bad_arguments(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(rtproof.RtproofError) as refused:
        rtproof.run(**options)
    assert sentence in str(refused.value)


def test_an_unknown_argument() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'durations'"):
        rtproof.run(durations="1s")  # type: ignore[call-arg]


def test_a_python_that_does_not_know_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(rtproof.RtproofError, match="does not know its own program"):
        rtproof.run(output=tmp_path / "a")


def test_an_agent_that_fails(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho 'rtproof-agent: the board is on fire' >&2\nexit 1\n")
    os.chmod(agent, 0o755)  # noqa: PTH101
    with pytest.raises(rtproof.RtproofError, match="the board is on fire"):
        rtproof.run(duration="1s", agent=agent, output=tmp_path / "run")
