# SPDX-License-Identifier: Apache-2.0
"""Another tool as a probe (``exec:tool=NAME``): its command line, what the agent keeps of it, and how it is judged."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_process import agent, eventually, needs_fifo, policy, running
from analysis_records import BEGIN, SECOND, record

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment.other_tools import analyse_tool_record
from rtproof.experiment.run_request import RunRequest, with_measurement
from rtproof.judge.analysis_model import Analysis, State
from rtproof.record.contents import WHOLE_RUN, End, EndReason, Fact, Moment, Record, SystemFile
from rtproof.record.requirement import Requirement
from rtproof.summary.tool_output import OUTPUT_PATH, tool_output

OPTIONS = dict.fromkeys(
    (
        *("probe", "method", "period", "period_step", "duration", "samples", "warmup", "cpus", "threads", "policy"),
        *("priority", "phase", "dma_latency", "no_lock_memory", "record", "checkpoint", "load", "trace"),
        *("trace_blocks", "allow_unprivileged"),
    )
)


def asked(probe: str, **more: Any) -> RunRequest:
    return with_measurement(RunRequest((), "local"), {**OPTIONS, "probe": probe, "duration": "10s", **more})


def command(probe: str, **more: Any) -> str:
    """The tool's command line, as the agent gets it."""
    words = asked(probe, **more).arguments
    (run_option,) = re.findall(r"run=([^,]*)", words[words.index("--probe") + 1])
    return str(run_option).replace("+", " ").replace(";", ",")


@pytest.mark.parametrize(
    ("probe", "more", "expected"),
    [
        (
            "exec:tool=cyclictest",
            {"cpus": "0,2-3", "policy": "rr", "priority": 7, "period": "250us"},
            "cyclictest -q -m -t 3 -a 0,2-3 -d 0 -p 7 --policy=rr --laptop -i 250 -D 10 -h 10000",
        ),
        (
            "exec:tool=cyclictest",
            {"policy": "other"},
            "cyclictest -q -m -S -p 0 --policy=other --laptop -i 1000 -D 10 -h 10000",
        ),
        ("exec:tool=rtla", {"cpus": "1"}, "rtla timerlat hist -P f:80 -c 1 -p 1000 -d 10s -E 10000 -b 1"),
        ("exec:tool=latmus", {"duration": "2min"}, "latmus -m -P80 -p1000 -T120 -H10000 -g"),
        ("exec:run=oslat -D 10 -c '0,1'", {}, "oslat -D 10 -c 0,1"),
    ],
)
def test_what_decides_about_the_figures_is_chosen(probe: str, more: dict[str, Any], expected: str) -> None:
    assert command(probe, **more) == expected


@pytest.mark.parametrize(
    ("probe", "more", "sentence"),
    [
        ("exec", {}, "--probe exec needs a tool or a command: exec:tool=cyclictest or 'exec:run=oslat -D 60'; "),
        ("exec:bins=5", {}, "--probe exec needs a tool or a command"),
        ("exec:tool=cyclictst", {}, "there is no tool 'cyclictst' (did you mean 'cyclictest'?)"),
        ("exec:run=oslat 'a b'", {}, "the word 'a b' of the tool's command is empty or has a space"),
        ("exec:run=oslat 'a", {}, "the command of --probe exec has a quote that is not closed"),
        ("exec:run=oslat", {"priority": 5}, "--priority does not go with --probe exec:run"),
        ("exec:tool=cyclictest", {"duration": "2500ms"}, "whole seconds, at least 2, not 2.5 s: give --duration 3s"),
        ("exec:tool=cyclictest", {"duration": None, "samples": 5}, "--samples does not go with --probe exec"),
        ("exec:tool=cyclictest", {"policy": "deadline"}, "--policy deadline does not go with --probe exec"),
        ("exec:tool=cyclictest", {"period": "1500ns"}, "a period of whole microseconds, not 1.5 us"),
    ],
)
def test_what_no_tool_can_be_asked_for_is_one_sentence(probe: str, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        asked(probe, **more)
    assert sentence in str(refused.value)


# Records made by hand: what they hold of a tool, and how it is judged.

HISTOGRAM = (
    "# Histogram\n000010 {n}\n000050 000001\n# Total: {n1}\n# Min Latencies: 00010\n# Avg Latencies: 00010\n"
    "# Max Latencies: 00050\n# Histogram Overflows: 00000\n"
)
RT_THREADS = "PID TID CLS RTPRIO PSR RUN_NS CPUS COMM\n"


def lines_of(text: str, at_s: float, letter: str = "o") -> str:
    return "".join(f"{round(at_s * 1000)} {letter} {line}\n" for line in text.splitlines())


def tool_record(  # noqa: PLR0913
    printed: str,
    *,
    seconds: int = 20,
    threads: str = "70 71 FF 80 1 5 1 cyclictest\n",
    exit_code: int | None = 0,
    ended_s: float | None = None,
    reason: EndReason = EndReason.AS_ASKED,
    **facts: str,
) -> Record:
    """A record of a tool with process 70 that ran from 0 s on. threads: lines of the file rt-threads."""
    told = {
        "probe": "exec",
        "probe_options": f"tool=cyclictest,run=cyclictest+-D+{seconds},ask=1",
        "policy": "fifo",
        "priority": "80",
        "period_ns": "1000000",
        "duration_ns": str(seconds * SECOND),
        "cpus": "1",
        "loads": "",
        **facts,
    }
    end_s = seconds + 0.1 if ended_s is None else ended_s
    output = f"0 p 70\n{printed}"
    output += "" if exit_code is None else f"{round(end_s * 1000)} x {exit_code}\n"
    return record(
        (),
        begin=replace(BEGIN, origin_monotonic_ns=0),
        facts=tuple(Fact(0, WHOLE_RUN, Moment.ASKED, key, value) for key, value in told.items()),
        files=(
            SystemFile(0, Moment.DURING, OUTPUT_PATH, 0, False, output[:40].encode()),
            SystemFile(0, Moment.START, "rt-threads", 0, False, RT_THREADS.encode()),
            SystemFile(0, Moment.DURING, "rt-threads", 0, False, (RT_THREADS + threads).encode()),
            SystemFile(0, Moment.DURING, OUTPUT_PATH, 0, False, output[40:].encode()),
        ),
        end=End(round(end_s * SECOND), reason, "", ()),
    )


def whole_histogram(seconds: int) -> str:
    n1 = seconds * 1000
    return lines_of(HISTOGRAM.format(n=f"{n1 - 1:06}", n1=f"{n1:09}"), seconds + 0.1)


def judged(found: Record, limit_us: int = 100, at_most_s: int = 60) -> Analysis:
    output = tool_output(found)
    assert output is not None
    return analyse_tool_record(found, output, (Requirement(limit_us * 1000, at_most_s * SECOND),))


def doubts(analysis: Analysis) -> dict[str, str]:
    return {doubt.code: doubt.whole for doubt in analysis.doubts}


def test_lines_are_joined_from_their_pieces() -> None:
    printed = "1000 E T: 0 (\n1000 o other\n1001 e 71) P:80\n2000 o \n2500 O no end\n"
    found = tool_output(tool_record(printed))
    assert found is not None
    assert found.text == "other\nT: 0 (71) P:80\n\nno end\n"
    assert (found.process, found.exit_code, found.ran_ns) == (70, 0, 20_100_000_000)
    assert found.command == ("cyclictest", "-D", "20")
    assert tool_output(record(())) is None


def test_a_run_without_an_exceedance_is_proven() -> None:
    analysis = judged(tool_record(whole_histogram(600), seconds=600))
    assert analysis.verdict.state is State.PROVEN, analysis.verdict.reasons
    assert "not-checked" not in doubts(analysis)


def test_an_exceedance_refutes() -> None:
    analysis = judged(tool_record(whole_histogram(4), seconds=4), limit_us=20, at_most_s=3600)
    assert analysis.verdict.state is State.REFUTED, analysis.verdict.reasons


@pytest.mark.parametrize(
    ("threads", "sentence"),
    [
        ("", "0 of 1 thread ran as fifo 80; none had a real-time policy"),
        ("70 71 FF 2 1 5 1 cyclictest\n", "0 of 1 thread ran as fifo 80; seen were cyclictest (TID 71, fifo 2)"),
        ("70 71 RR 80 1 5 1 cyclictest\n", "0 of 1 thread ran as fifo 80; seen were cyclictest (TID 71, rr 80)"),
    ],
)
def test_threads_with_another_policy_make_the_run_invalid(threads: str, sentence: str) -> None:
    analysis = judged(tool_record(whole_histogram(20), threads=threads))
    assert analysis.verdict.state is State.INVALID
    assert sentence in doubts(analysis)["policy"]


@pytest.mark.parametrize(
    ("printed", "more", "code", "sentence"),
    [
        ("", {}, "contradiction", "cyclictest printed nothing"),
        ("900 o hello\n", {}, "contradiction", "what cyclictest printed is no measurement: 'hello'"),
        ("900 o # Histogram\n", {}, "contradiction", "what cyclictest printed cannot be read: it has neither"),
        (None, {"exit_code": -9}, "tool-ended", "signal 9 ended the tool; cyclictest: # Histogram Overflows: 00000"),
        (None, {"exit_code": 3}, "tool-ended", "the tool ended with exit code 3; cyclictest"),
        (None, {"ended_s": 5.0}, "tool-ended", "the tool ran 5.0 s of 20.0 s"),
        (None, {"exit_code": None}, "tool-ended", "the record does not tell how the tool ended; cyclictest"),
    ],
)
def test_a_tool_that_did_not_measure_makes_the_run_invalid(
    printed: str | None, more: dict[str, Any], code: str, sentence: str
) -> None:
    analysis = judged(tool_record(whole_histogram(20) if printed is None else printed, **more))
    assert analysis.verdict.state is State.INVALID
    assert sentence in doubts(analysis)[code]
    assert analysis.verdict.exceedances_observed in (None, 0)


def test_the_priority_of_a_command_is_its_own() -> None:
    options = "run=cyclictest+-D+20"
    analysis = judged(tool_record(whole_histogram(20), probe_options=options, policy="other"))
    assert "policy" not in doubts(analysis)
    assert "does not tell the period" in " ".join(analysis.verdict.reasons)


def test_a_rival_of_the_tool_is_told() -> None:
    tool, rival = "70 71 FF 80 1 5 1 cyclictest\n", "90 91 FF 85 1 5000000 1 rival\n"
    analysis = judged(tool_record(whole_histogram(20), threads=tool + rival))
    assert "rival (fifo 85" in doubts(analysis)["rt-threads"]


def test_counts_of_virtual_time_are_not_judged() -> None:
    found = tool_record(whole_histogram(600), seconds=600)
    virtual = Fact(0, WHOLE_RUN, Moment.START, "virtual_time", "instructions")
    assert judged(replace(found, facts=(*found.facts, virtual))).verdict.state is State.INVALID


# Real processes. Stand-ins print what the sources' printf print.

LATENCY = """#!{python}
import os, signal, sys, time
seconds = int(next(word[2:] for word in sys.argv if word.startswith("-T")))
priority = int(next(word[2:] for word in sys.argv if word.startswith("-P")))
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print("== Sampling period: 1000 us\\n== Test mode: periodic user-mode task\\n== All results in microseconds")
print(f"RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority {{priority}})")
print("RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst", flush=True)
for _ in range(seconds):
    time.sleep(1)
    print("RTD|      1.200|      2.100|      5.250|       0|     0|      1.200|      5.250", flush=True)
print(f"HSD|    avg|   1 -  2 | {{seconds * 1000 - 1:8}}\\nHSD|    avg|   5 -  6 | {{1:8}}")
print(f"HSS|    avg| {{seconds * 1000:9}}|      2.100|      0.400")
print(f"RTS|      1.200|      2.100|      5.250|       0|     0|    00:00:{{seconds:02}}/00:00:{{seconds:02}}")
"""


def stand_in(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, first in the PATH."""
    agent()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "bin"


@needs_fifo
def test_a_tool_measures_under_a_load_and_is_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(place, "latency", LATENCY.format(python=sys.executable))
    words = ["run", "--probe", "exec:tool=latency", "--duration", "4s", "--load", "cpu", "-o"]
    code = main([*words, "a", "--limit", "4us"])
    assert code in (1, 3), "refuted, or invalid on a busy machine"
    capsys.readouterr()
    assert main(["show", "a", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["imported"]["tool"], told["pooled"]["obtained_count"]) == ("Xenomai latency", 4000)


def test_nothing_stays_if_the_agent_is_killed(place: Path) -> None:
    stand_in(place, "latency", "#!/bin/sh\nexec sleep 600\n")
    options = ["--probe", "exec:tool=latency,run=latency", "--threads", "1", *policy()]
    with running("-o", "a", "--duration", "600s", *options) as measuring:
        measuring.await_ns(SECOND)
        measuring.process.kill()
        measuring.process.wait()
        assert eventually(lambda: measuring.processes() == [])


def test_a_process_in_a_session_of_its_own_ends_with_the_tool(place: Path) -> None:
    escaped = place.parent / "escaped"
    stand_in(place, "latency", f"#!/bin/sh\nsetsid sh -c 'echo $$ > {escaped}; exec sleep 600' &\nsleep 1\n")
    main(["run", "--probe", "exec:run=latency", "--duration", "2s", "-o", "a"])
    assert eventually(lambda: not Path("/proc", escaped.read_text().strip(), "stat").exists())
