# SPDX-License-Identifier: Apache-2.0
"""Another tool as a probe (``exec:tool=NAME``): its command line, what the agent keeps of it, and how it is judged."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_process import agent, eventually, measured, needs_fifo, policy, run, running, whole
from analysis_records import BEGIN, SECOND, record

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import foreign_tools
from rtproof.experiment.run_request import Measurement, measurement
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.judge.verdict_sentences import claim_answer
from rtproof.record.contents import WHOLE_RUN, End, EndReason, Fact, Moment, Record, SystemFile
from rtproof.summary.tool_output import OUTPUT_PATH, tool_output

OPTIONS = dict.fromkeys(
    (
        *("probe", "method", "period", "period_step", "duration", "samples", "warmup", "cpus", "threads", "policy"),
        *("priority", "phase", "dma_latency", "no_lock_memory", "record", "checkpoint", "load", "trace"),
        *("trace_blocks", "allow_unprivileged"),
    )
)


def asked(probe: str, **more: Any) -> Measurement:
    return measurement({**OPTIONS, "probe": probe, "duration": "10s", **more})


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
            {},
            "cyclictest -q -m -S --policy=fifo --priority=80 -i 1000 -D 10 -h 10000",
        ),
        (
            "exec:tool=cyclictest,bins=500",
            {"cpus": "0,2-3", "policy": "rr", "priority": 7, "period": "250us", "dma_latency": "off"},
            "cyclictest -q -m -t 3 -a 0,2-3 -d 0 --policy=rr --priority=7 -i 250 -D 10 -h 500 --laptop",
        ),
        ("exec:tool=cyclictest", {"policy": "other"}, "cyclictest -q -m -S --policy=other -i 1000 -D 10 -h 10000"),
        (
            "exec:tool=cyclictest,more=--smi+-N",
            {"threads": 2, "dma_latency": 5},
            "cyclictest -q -m -t 2 -a -d 0 --policy=fifo --priority=80 -i 1000 -D 10 -h 10000 --latency=5 --smi -N",
        ),
        (
            "exec:tool=rtla",
            {"cpus": "1"},
            "rtla timerlat hist -P f:80 -c 1 -p 1000 -d 10s -E 10000 -b 1 --dma-latency 0",
        ),
        ("exec:tool=latency,mode=kernel", {"cpus": "1"}, "latency -t1 -P80 -c 1 -p1000 -T10 -h -H10000 -B1000"),
        ("exec:tool=latmus,mode=irq", {"duration": "2min"}, "latmus -m -i -P80 -p1000 -T120 -H10000 -g"),
    ],
)
def test_what_decides_about_the_figures_is_chosen(probe: str, more: dict[str, Any], expected: str) -> None:
    assert command(probe, **more) == expected


def test_the_agent_keeps_a_summary_and_has_no_warm_up() -> None:
    words = asked("exec:tool=cyclictest", load=("cpu",)).arguments
    told = dict(zip(words[::2], words[1::2], strict=True))
    assert (told["--warmup"], told["--record"], told["--threads"], told["--load"]) == ("0s", "summary", "1", "cpu")
    assert told["--probe"].endswith(",ask=1")
    assert asked("exec:tool=cyclictest").whole_ns == 10 * SECOND


@pytest.mark.parametrize(
    ("probe", "more", "sentence"),
    [
        ("exec", {}, "--probe exec needs a tool, such as exec:tool=cyclictest; there are: cyclictest, rtla, "),
        ("exec:tool=cyclictst", {}, "there is no tool 'cyclictst' (did you mean 'cyclictest'?)"),
        ("exec:tol=cyclictest", {}, "there is no option of --probe exec 'tol' (did you mean 'tool'?)"),
        ("exec:tool=rtla,tool=latency", {}, "the option 'tool' of --probe exec is given twice"),
        ("exec:tool", {}, "the option 'tool' of --probe exec needs a value"),
        ("exec:tool=cyclictest,bins=0", {}, "bins takes a number from 1 to 100,000"),
        ("exec:tool=cyclictest,bins=²", {}, "bins takes a number from 1 to 100,000"),
        ("exec:tool=cyclictest,mode=irq", {}, "there is no mode of cyclictest 'irq'; there is none"),
        ("exec:tool=latency,mode=irk", {}, "there is no mode of latency 'irk' (did you mean 'irq'?)"),
        ("exec:tool=cyclictest,more='", {}, "the option 'more' of --probe exec has a quote that is not closed"),
        ("exec:tool=cyclictest,more='a+b'", {}, "the word 'a b' of the tool's command has a space"),
        ("exec:tool=cyclictest", {"duration": "1s"}, "at least 2, not 1.0 s: give --duration 2s"),
        ("exec:tool=cyclictest", {"duration": "2500ms"}, "whole seconds, at least 2, not 2.5 s: give --duration 3s"),
        ("exec:tool=cyclictest", {"duration": None, "samples": 5}, "--samples does not go with --probe exec"),
        ("exec:tool=cyclictest", {"period": "1500ns"}, "a period of whole microseconds, not 1.5 us"),
        ("exec:tool=cyclictest", {"policy": "deadline"}, "--policy deadline does not go with --probe exec"),
        ("exec:tool=cyclictest", {"method": "x"}, "--method does not go with --probe exec"),
        ("exec:tool=cyclictest", {"allow_unprivileged": True}, "--allow-unprivileged does not go with --probe exec"),
        ("exec:tool=cyclictest", {"until_decided": True}, "--until-decided does not go with --probe exec"),
        ("exec:tool=latency", {"cpus": "0-1"}, "latency measures with one thread on one CPU"),
        ("exec:tool=latmus", {"threads": 2}, "latmus measures with one thread on one CPU"),
        ("exec:tool=latency", {"policy": "rr"}, "latency measures with policy fifo only"),
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
    return foreign_tools.analyse_tool_record(found, (Requirement(limit_us * 1000, at_most_s * SECOND),))


def doubts(analysis: Analysis) -> dict[str, str]:
    return {doubt.code: doubt.what for doubt in analysis.doubts}


def test_lines_are_joined_from_their_pieces_and_keep_their_times() -> None:
    printed = "1000 E T: 0 (\n1000 o other\n1001 e 71) P:80\n2000 o \n2500 O no end\n"
    found = tool_output(tool_record(printed))
    assert found is not None
    assert [(line.time_ns // 1_000_000, line.error, line.text) for line in found.lines] == [
        (1000, False, "other"),
        (1001, True, "T: 0 (71) P:80"),
        (2000, False, ""),
        (20100, False, "no end"),
    ]
    assert (found.process, found.exit_code, found.command) == (70, 0, ("cyclictest", "-D", "20"))
    assert tool_output(record(())) is None


def test_a_run_without_an_exceedance_is_proven() -> None:
    analysis = judged(tool_record(whole_histogram(600), seconds=600))
    assert analysis.verdict.state is State.PROVEN, analysis.verdict.reasons
    assert "not-checked" not in doubts(analysis)
    assert "page faults, missed activations and the times of single values are in no figure" in str(doubts(analysis))
    assert dict(analysis.imported.facts)["command"] == "cyclictest -D 600" if analysis.imported else False


def test_a_tool_that_tells_a_longer_time_than_it_ran_is_invalid() -> None:
    printed = lines_of(
        f"RTD|{1.2:11.3f}|{2.1:11.3f}|{5.2:11.3f}|{0:8}|{0:6}|{1.2:11.3f}|{5.2:11.3f}\nHSS|    avg| 59000|  2.1|  0.4\n"
        "RTS|      1.200|      2.100|      5.250|       0|     0|    00:00:59/00:00:59\n",
        20.1,
    )
    options = "tool=latency,run=latency+-T{0}"
    analysis = judged(tool_record(printed, seconds=59, probe_options=options.format(59)), at_most_s=15)
    assert analysis.verdict.state is State.PROVEN, analysis.verdict.reasons
    analysis = judged(tool_record(printed, seconds=20, probe_options=options.format(20)), at_most_s=15)
    assert analysis.verdict.state is State.INVALID
    assert doubts(analysis)["tool-ended"] == "latency says that it measured for 59.0 s, and it ran for 20.1 s"


@pytest.mark.parametrize(("seen_s", "state"), [(5.9, State.UNDECIDED), (6.1, State.INVALID)])
def test_a_policy_that_the_tool_takes_late_makes_the_run_invalid(seen_s: float, state: State) -> None:
    found = tool_record(whole_histogram(20), ended_s=21.0)
    files = [
        replace(file, time_ns=round(seen_s * SECOND)) if b"cyclictest" in file.content else file for file in found.files
    ]
    analysis = judged(replace(found, files=tuple(files)))
    assert analysis.verdict.state is state
    assert ("no thread of the tool was seen with policy fifo 80 in its first 6.1 s" in str(doubts(analysis))) is (
        state is State.INVALID
    )


def in_virtual_time(seconds: int) -> Record:
    found = tool_record(whole_histogram(seconds), seconds=seconds)
    clock = Fact(0, WHOLE_RUN, Moment.START, "virtual_time", "qemu icount shift=0: 1 ns is one instruction")
    return replace(found, facts=(*found.facts, clock))


def test_in_virtual_time_nothing_is_proven() -> None:
    analysis = judged(in_virtual_time(600))
    assert (analysis.verdict.state, analysis.verdict.alpha) == (State.UNDECIDED, None)
    assert analysis.verdict.reasons[0] == "0 of 600,000 samples exceeded the limit in this deterministic run"
    assert claim_answer(analysis.verdict) == "100 us was not exceeded in this deterministic run."
    analysis = judged(in_virtual_time(600), limit_us=20, at_most_s=3600)
    assert analysis.verdict.state is State.REFUTED
    assert claim_answer(analysis.verdict) == "20 us was exceeded in this deterministic run more often than was asked."
    assert judged(in_virtual_time(600), limit_us=20, at_most_s=60).verdict.state is State.UNDECIDED


def test_an_exceedance_refutes() -> None:
    analysis = judged(tool_record(whole_histogram(4), seconds=4), limit_us=20, at_most_s=3600)
    assert analysis.verdict.state is State.REFUTED, analysis.verdict.reasons


@pytest.mark.parametrize(
    ("threads", "sentence"),
    [
        ("", "policy fifo 80 was asked for 1 thread of the tool, and 0 had it: none had a real-time policy"),
        ("70 71 FF 2 1 5 1 cyclictest\n", "and 0 had it: seen were cyclictest (TID 71, fifo 2, allowed on 1)"),
        ("90 91 FF 80 1 5 1 cyclictest\n", "and 0 had it: none had a real-time policy"),
        ("70 71 RR 80 1 5 1 cyclictest\n", "and 0 had it: seen were cyclictest (TID 71, rr 80, allowed on 1)"),
    ],
)
def test_threads_with_another_policy_make_the_run_invalid(threads: str, sentence: str) -> None:
    analysis = judged(tool_record(whole_histogram(20), threads=threads))
    assert analysis.verdict.state is State.INVALID
    assert sentence in doubts(analysis)["policy"]
    assert sentence in analysis.verdict.reasons[0]


def test_another_cpu_makes_the_run_invalid() -> None:
    analysis = judged(tool_record(whole_histogram(20), threads="70 71 FF 80 1 5 0-1 cyclictest\n"))
    assert analysis.verdict.state is State.INVALID
    assert "CPUs that were not asked for: cyclictest (TID 71, fifo 80, allowed on 0-1)" in doubts(analysis)["cpu"]


def test_a_real_time_thread_where_none_was_asked_for_makes_the_run_invalid() -> None:
    analysis = judged(tool_record(whole_histogram(20), policy="other", priority="0"))
    assert analysis.verdict.state is State.INVALID
    assert "policy other was asked for, and threads of the tool had another" in doubts(analysis)["policy"]


def test_threads_of_the_tool_are_no_rivals_and_others_are() -> None:
    other = "70 71 FF 80 1 5 1 cyclictest\n95 96 FF 90 1 5 0-1 rival\n97 98 FF 20 1 5 0-1 meek\n"
    found = doubts(judged(tool_record(whole_histogram(20), threads=other)))
    assert "1 other thread" in found["rt-threads"]
    assert "rival (TID 96, fifo 90" in found["rt-threads"]
    assert "rt-threads" not in doubts(judged(tool_record(whole_histogram(20))))


@pytest.mark.parametrize(
    ("printed", "more", "code", "sentence"),
    [
        ("", {}, "contradiction", "cyclictest printed nothing"),
        ("900 o hello\n", {}, "contradiction", "what cyclictest printed is no measurement: 'hello'"),
        ("900 o # Histogram\n", {}, "contradiction", "what cyclictest printed cannot be read: it has neither"),
        (None, {"exit_code": -9}, "tool-ended", "signal 9 ended cyclictest: # Histogram Overflows: 00000"),
        (None, {"exit_code": 3}, "tool-ended", "cyclictest ended with exit code 3"),
        (None, {"ended_s": 5.0}, "tool-ended", "asked to measure for 20.0 s and ended after 5.0 s"),
        (None, {"exit_code": None}, "tool-ended", "the record does not tell how cyclictest ended"),
    ],
)
def test_a_tool_that_did_not_measure_makes_the_run_invalid(
    printed: str | None, more: dict[str, Any], code: str, sentence: str
) -> None:
    analysis = judged(tool_record(whole_histogram(20) if printed is None else printed, **more))
    assert analysis.verdict.state is State.INVALID
    assert sentence in doubts(analysis)[code]
    assert analysis.verdict.exceedances_observed in (None, 0)


def test_what_was_measured_until_an_interruption_is_judged() -> None:
    found = tool_record(whole_histogram(5), ended_s=5.2, reason=EndReason.INTERRUPTED)
    analysis = judged(found, limit_us=20, at_most_s=3600)
    assert analysis.verdict.state is State.REFUTED
    assert "it was interrupted" in doubts(analysis)["ended-early"]
    assert analysis.imported
    assert analysis.imported.duration_ns == 5 * SECOND


def test_lines_over_time_tell_counts_and_the_largest_so_far() -> None:
    status = "T: 0 (71) P:80 I:1000 C: {0} Min: 10 Act: 10 Avg: 10 Max: {1}"
    lines = "".join(
        lines_of(status.format(n, worst), s, "e") for s, n, worst in ((1, 900, 40), (2, 1900, 40), (3, 2900, 50))
    )
    analysis = judged(tool_record(lines + whole_histogram(20)))
    assert analysis.imported
    assert [(each.count, each.largest_ns, each.so_far_ns) for each in analysis.imported.intervals] == [
        (900, 40_000, 40_000),
        (1000, None, 40_000),
        (1000, 50_000, 50_000),
    ]
    assert [part.cpu for part in analysis.imported.parts] == [1]


# Real processes. Stand-ins print what the sources' printf print.

LATENCY = """#!{python}
import os, signal, sys, time
seconds = int(next(word[2:] for word in sys.argv if word.startswith("-T")))
priority = int(next(word[2:] for word in sys.argv if word.startswith("-P")))
if {fifo}:
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
    stand_in(place, "latency", LATENCY.format(python=sys.executable, fifo=True))
    words = ["run", "--probe", "exec:tool=latency", "--duration", "4s", "--load", "cpu", "-o"]
    assert main([*words, "a", "--limit", "4us"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("REFUTED")
    assert len(out.splitlines()) <= 20
    assert main(["show", "a", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["record"]["kernel_release"] == os.uname().release
    assert (told["imported"]["tool"], told["pooled"]["obtained_count"]) == ("Xenomai latency", 4000)
    page = Path("a.html").read_text()
    assert "Over time, by the tool" in page
    assert "fifo 80" in page
    assert main(["show", "a", "--limit", "1ms"]) in (0, 4)
    assert "after" in capsys.readouterr().out
    assert main([*words, "b"]) == 0
    assert main(["compare", "a", "--against", "b", "--although-different"]) in (0, 1, 3, 4)


@needs_fifo
def test_a_tool_without_the_policy_is_invalid(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(place, "latency", LATENCY.format(python=sys.executable, fifo=False))
    assert main(["run", "--probe", "exec:tool=latency", "--duration", "2s", "-o", "a", "--limit", "1ms", "-q"]) == 3
    assert capsys.readouterr().out.startswith("INVALID")
    assert main(["show", "a"]) == 3
    assert "none had a real-time policy" in capsys.readouterr().out


def test_a_tool_that_is_not_there_is_one_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--probe", "exec:tool=latmus", "--duration", "2s", "-o", "a", *policy()]
    if policy()[1] != "fifo":
        pytest.skip("latmus is started with fifo only")
    assert main(words) == 2
    assert capsys.readouterr().err == "rtproof: there is no program 'latmus' in the PATH of the target\n"
    assert not Path("a").exists()


@needs_fifo
@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ("echo 'cannot do it' >&2; exit 4", 2, "could not run the tool: exit code 4: cannot do it"),
        ("kill -9 $$", 2, "could not run the tool: killed by signal 9"),
        ("echo hello; sleep 2", 3, "what latency printed is no measurement: 'hello'"),
        ("exit 0", 3, "ended after"),
        ("yes", 2, "could not run the tool: it printed more than 15 MiB"),
    ],
)
def test_a_tool_that_fails_is_told(
    script: str, code: int, sentence: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(place, "latency", f"#!/bin/sh\n{script}\n")
    assert main(["run", "--probe", "exec:tool=latency", "--duration", "2s", "-o", "a", "--limit", "1ms", "-v"]) == code
    out, err = capsys.readouterr()
    assert sentence in " ".join((out + err).replace("\n? ", " ").split())
    assert "Traceback" not in out + err


@needs_fifo
def test_a_tool_that_does_not_end_is_ended_with_all_that_it_started(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(place, "latency", "#!/bin/sh\ntrap '' INT\nsleep 600 & sleep 600\n")
    done = run("run", "-o", "a", "--duration", "1s", "--probe", "exec:tool=latency,run=latency", "--threads", "1")
    assert done.returncode == 0, done.stderr
    found = tool_output(whole(Path("a")))
    assert found is not None
    assert found.exit_code == -9
    assert found.ran_ns is not None
    assert found.ran_ns < 30 * SECOND


def test_a_tool_that_is_asked_to_end_prints_what_it_has(place: Path) -> None:
    stand_in(place, "latency", "#!/bin/sh\ntrap 'echo so far; kill $!; exit 0' INT\necho begun\nsleep 600 & wait\n")
    options = ["--probe", "exec:tool=latency,run=latency", "--threads", "1", *policy()]
    with running("-o", "a", "--duration", "60s", *options) as measuring:
        measuring.await_ns(SECOND)
        measuring.process.send_signal(2)
        assert measuring.end() == 0
        assert eventually(lambda: measuring.processes() == [])  # A killed orphan needs a moment to be gone.
    found = tool_output(whole(Path("a")))
    assert found is not None
    assert [line.text for line in found.lines] == ["begun", "so far"]
    assert found.exit_code == 0


def test_nothing_stays_if_the_agent_is_killed(place: Path) -> None:
    stand_in(place, "latency", "#!/bin/sh\nexec sleep 600\n")
    options = ["--probe", "exec:tool=latency,run=latency", "--threads", "1", *policy()]
    with running("-o", "a", "--duration", "60s", *options) as measuring:
        measuring.await_ns(SECOND)
        measuring.process.kill()
        measuring.process.wait()
        assert eventually(lambda: measuring.processes() == [])


@needs_fifo
def test_the_real_cyclictest(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("cyclictest"):
        pytest.skip("cyclictest of rt-tests is not installed")
    code = main(["run", "--probe", "exec:tool=cyclictest", "--duration", "3s", "-o", "a", "--limit", "10s", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 4, told["verdict"]
    assert not [doubt for doubt in told["doubts"] if doubt["severity"] == "invalid"]
    assert told["imported"]["period_ns"] == 1_000_000
    assert len(told["threads"]) == len(os.sched_getaffinity(0))
    assert all(thread["series"]["cpu"] >= 0 for thread in told["threads"])
    found = foreign_tools.analyse_tool_record(whole(Path("a/run.rtrec")), ())
    assert found.imported
    assert len({each.end_ns for each in found.imported.intervals}) >= 2
    assert sum(each.count or 0 for each in found.imported.intervals) <= (found.imported.count or 0)


def test_the_agent_alone_runs_any_command(tmp_path: Path) -> None:
    found = tool_output(
        measured(tmp_path / "a", "--duration", "5s", "--probe", "exec:run=echo+a;b+c", "--threads", "1", *policy())
    )
    assert found is not None
    assert [line.text for line in found.lines] == ["a,b c"]
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--probe", "exec"], "probe 'exec' needs run=COMMAND"),
        (["--probe", "exec:run=no-such-tool+-x"], "there is no program 'no-such-tool' in the PATH of the target"),
        (["--probe", "exec:run=echo", "--threads", "2"], "method tool can serve one thread only; say --threads 1"),
        (["--probe", "exec:run=+"], "probe 'exec' needs run=COMMAND"),
    ],
)
def test_the_agent_refuses_what_it_cannot_start(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = run("run", "-o", tmp_path / "a", "--duration", "1s", *options)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: {sentence}\n")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("probe", "shown"),
    [
        ("exec:tool=cyclictest", "another tool measures; its figures come at the end"),
        ("foreign:thread=motion", "the kernel's trace is kept; the latencies are read from it at the end"),
        ("timer", ""),
        (None, ""),
    ],
)
def test_a_probe_without_latencies_of_its_own_says_when_they_come(probe: str | None, shown: str) -> None:
    assert foreign_tools.told_at_the_end(probe) == shown
