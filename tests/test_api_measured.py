# SPDX-License-Identifier: Apache-2.0
"""``rtproof.run`` measures this machine as the command line does: from threads, workers, and until Ctrl-C."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_process import PATIENCE_S, eventually

import rtproof
from rtproof.cli.main import main
from rtproof.core.errors import RecordError
from rtproof.record.reading import open_record

SCRIPT = """
import signal, sys, rtproof
signal.signal(signal.SIGINT, signal.default_int_handler)
print(rtproof.run, flush=True)
try:
    rtproof.run(duration="10min", output=sys.argv[1])
except rtproof.RunInterrupted as interrupted:
    print(interrupted.run.summary().pooled.n > 0, interrupted)
"""


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
    main(["explain", str(run.path), "--json"])
    assert json.loads(run.causes().to_json()) == json.loads(capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"], "no report that nobody asked for"


def has_samples(folder: Path) -> bool:
    with suppress(RecordError):
        return bool(open_record(folder / "run.rtrec").slices)
    return False


@pytest.mark.real
def test_ctrl_c_and_the_end_of_the_process_that_asked_leave_a_shortened_run(tmp_path: Path) -> None:
    folders = (tmp_path / "interrupted", tmp_path / "killed")
    start = partial(subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    processes = [start([sys.executable, "-c", SCRIPT, str(folder)]) for folder in folders]
    try:
        assert all(eventually(partial(has_samples, each)) for each in folders)
        processes[0].send_signal(signal.SIGINT)
        processes[1].kill()
        said, _ = processes[0].communicate(timeout=PATIENCE_S)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert f"True interrupted; what was measured until then is kept in {folders[0]}" in said
    assert processes[0].returncode == 0
    for folder in folders:
        assert eventually(lambda folder=folder: open_record(folder / "run.rtrec").end is not None)  # type: ignore[misc]
        assert json.loads(rtproof.open(folder).to_json())["record"]["end_reason"] == "interrupted"


def test_ctrl_c_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = subprocess.Popen.wait
    sent: list[int] = []

    def interrupted(process: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        if not sent:
            sent.append(process.pid)
            raise KeyboardInterrupt
        return waited(process, timeout)

    agent = tmp_path / "agent"  # which never measures, however late the interrupt comes
    agent.write_text("#!/bin/sh\nexec sleep 600\n")
    agent.chmod(0o755)
    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(rtproof.RunInterrupted, match=r"^interrupted before anything was measured$") as stopped:
        rtproof.run(duration="60s", agent=agent, output=tmp_path / "run")
    assert stopped.value.run is None
    assert not (tmp_path / "run").exists()
    assert isinstance(stopped.value, KeyboardInterrupt)


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
