# SPDX-License-Identifier: Apache-2.0
"""``rtproof tune`` from its arguments to its exit code, with an agent that measures nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_process import PATIENCE_S
from analysis_records import BEGIN, file, record
from fake_agent import Job

import rtproof
from rtproof.cli.main import main
from rtproof.experiment import tuning_runs
from rtproof.record.contents import End, EndReason, Moment
from rtproof.record.writing import RecordWriter

SOURCES = str(Path(rtproof.__file__).parent.parent)
FIVE = "swappiness,printk,huge-pages,perf,hung-task"
HOW = "FAKE_TUNED"
AGENT = """#!/bin/sh
# On this machine the knob printk makes everything three times as early.
# The variable says what goes wrong: with settings, or in which run.
how=" $FAKE_TUNED "
number=$(basename "$(dirname "$3")")
say() { printf "$@" >&2; }
first_line() {
    case $how in
    *" rights "*) say "refused\\t%s can't be set to 'x': Permission denied; all settings are as before\\n" "${2%=*}";;
    *" full "*) say "refused\\tsettings can't be changed, because no journal can be written: No space left\\n";;
    *) say "setting\\t%s\\tx\\t7\\tx\\t1 set, 0 had it, 0 kept by the kernel, 0 refused\\nrestored\\n" "${2%=*}";;
    esac
}
case $1 in
facts)
    case $how in *" runs="*) name=${how##*=};; *) name=init;; esac
    cp RECORDS/${name% } "$3"; exit;;
try)
    case $how in *" old "*) say "rtproof-agent: unknown command; see rtproof-agent help\\n"; exit 2;; esac
    shift
    new=yes
    for word; do
        case $word in
        --) new=yes;;
        --set) ;;
        *) [ $new ] && first_line "" "$word"; new=;;
        esac
    done
    exit;;
esac
case $how in *" tells "*) say "rtproof-agent: /proc/x stays '7'\\n";; esac
knob=0
for word; do case $word in *printk*) knob=1;; esac; done
record=RECORDS/$knob-$(($(echo "x$number" | cksum | cut -d" " -f1) % 8))
case $how in
*" waits=$number "*) trap 'cp '$record' "$3"; exit 0' INT; touch "${0%/*}/waits"; while :; do sleep 0.05; done;;
*" dies=$number "*) kill -SEGV $$;;
*" cut=$number "*) cp $record "$3"; kill -KILL $$;;
*" dies_from="*) first=${how##*=}; [ "$number" -ge "${first% }" ] 2> /dev/null && kill -SEGV $$;;
esac
cp $record "$3"
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts, and runs of a second with the knob (1) and without (0), eight of each."""
    folder = tmp_path_factory.mktemp("records")
    for name in ("init", "irqbalance", "tuned", "added"):
        tasks = f"PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS SLACK COMM\n7 7 1 TS 0 0 0 0-1 0 50000 {name}\n"
        with RecordWriter(folder / name) as writer:
            writer.begin(BEGIN)
            writer.file(file("/sys/devices/system/cpu/online", "0-1\n"))
            writer.file(file("tasks", tasks))
            writer.file(file("/proc/cmdline", f"quiet rtproof_tune.{name}=1\n"))
            writer.end(End(0, EndReason.AS_ASKED, "", ()))
    for knob, base_ns in enumerate((30_000, 10_000)):
        for at in range(8):
            Job(["agent", "run", "-o", str(folder / f"{knob}-{at}")]).write(latency_ns=base_ns + 200 * at)
    return folder


@pytest.fixture
def folder(tmp_path: Path, records: Path) -> Path:
    """One with the agent."""
    agent = tmp_path / "agent"
    agent.write_text(AGENT.replace("RECORDS", str(records)))
    agent.chmod(0o755)
    return tmp_path


def command(folder: Path, *words: str) -> list[str]:
    fixed = ("--warmup", "0s", "--run-length", "1s", "--output", str(folder / "out"))
    return [sys.executable, "-m", "rtproof", "tune", "--agent", str(folder / "agent"), *fixed, *words]


def environment(how: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCES, HOW: how}


def tune(folder: Path, how: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *words), env=environment(how), capture_output=True, text=True, check=False)


def notes(folder: Path) -> list[str]:
    """Which knobs were on in each run."""
    return [json.loads(each.read_text())["note"] for each in sorted(folder.glob("out/runs/*/run.json"))]


def only_document(text: str) -> dict[str, Any]:
    """ValueError if there is anything else."""
    found: dict[str, Any] = json.loads(text)
    return found


REFUSED = {
    "an unknown knob": ("", ("--knobs", "printc"), "there is no knob 'printc' (did you mean 'printk'?)"),
    "no knob": ("", ("--knobs", ""), "there is no knob ''"),
    "CPUs that do not exist": ("", ("--cpus", "5-6"), "--cpus: the target has no CPU 5-6: it has 0-1"),
    "too little time": ("", ("--budget", "2s"), "--budget is too short: "),
    "an agent of before": ("old", (), "this agent is older than 'tune', and cannot try settings"),
    "no rights": ("rights", (), "Permission denied): it needs root on the target"),
    "no room for the journal": (
        "full",
        ("--knobs", "printk,perf"),
        "2 knobs: settings can't be changed, because no journal",
    ),
    "irqbalance": ("runs=irqbalance", (), "irqbalance/7 would undo what is tried: end it first"),
    "tuned": ("runs=tuned", (), "tuned/7 would undo what is tried: end it first"),
    "words that a killed tuning left": ("runs=added", (), "added to its command line: boot it first"),
    "a simulated machine": ("", ("--target", "simulated"), "a simulated machine has no settings and no facts"),
    "an agent that cannot measure": (
        "dies=a",
        ("--knobs", "printk"),
        "the untouched system cannot be measured: the agent",
    ),
    "a knob for ordinary threads": (
        "",
        ("--knobs", "timer-slack"),
        "this target has no knob that can be tried (1 knob: needs --policy other",
    ),
    "a knob that needs a boot": (
        "",
        ("--knobs", "no-tick"),
        "this target has no knob that can be tried (1 knob: needs a boot",
    ),
}


@pytest.mark.parametrize(("how", "words", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_one_sentence_and_leaves_nothing(
    how: str, words: tuple[str, ...], sentence: str, folder: Path
) -> None:
    said = tune(folder, how, *words)
    assert said.returncode == 2, said
    last = said.stderr.splitlines()[-1]
    assert last.startswith("rtproof: ")
    assert sentence in last
    assert said.stdout == ""
    assert "Traceback" not in said.stderr
    assert [each.name for each in folder.iterdir()] == ["agent"]


def test_a_folder_that_exists_is_refused_and_stays(folder: Path) -> None:
    (folder / "out").mkdir()
    said = tune(folder, "")
    assert said.returncode == 2
    assert "exists already" in said.stderr
    assert not list((folder / "out").iterdir())


def test_the_knob_that_helps_is_kept_and_json_is_the_only_output(folder: Path) -> None:
    said = tune(folder, "tells cut=0004", "--knobs", "printk,perf", "--budget", "10min", "--seed", "3", "--json")
    assert said.returncode == 0, said
    found = only_document(said.stdout)
    assert found["kept"] == ["printk"]
    assert found["seed"] == 3
    assert found["lost_runs_count"] == 1
    assert "run 0004 is not judged" in said.stderr
    assert said.stderr.count("rtproof-agent: /proc/x stays '7'\n") == 1
    assert (folder / "out" / "tuning.json").read_text() == said.stdout
    assert (folder / "out" / "permanent" / "90-rtproof.conf").exists()
    assert len(notes(folder)) == found["runs_count"]


@pytest.mark.parametrize(
    ("stage", "knobs", "run"), [("pilot", "printk", 3), ("screening", FIVE, 9), ("few", "printk", 9)]
)
def test_what_was_measured_before_an_interruption_is_kept(stage: str, knobs: str, run: int, folder: Path) -> None:
    words = command(folder, "--knobs", knobs, "--budget", "20min", "--json")
    tuning = subprocess.Popen(
        words, env=environment(f"waits={run:04}"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    ends = time.monotonic() + PATIENCE_S
    while not (folder / "waits").exists():
        assert time.monotonic() < ends
        time.sleep(0.05)
    tuning.send_signal(signal.SIGINT)
    out, errors = tuning.communicate(timeout=PATIENCE_S)
    assert tuning.returncode == 130, errors
    assert errors.splitlines()[-1] == "rtproof: interrupted; what was measured until then is kept"
    found = only_document(out)
    assert found["unfinished"] == "the user ended it"
    assert found["runs_count"] == run - 1
    assert len(notes(folder)) == run
    assert (found["detectable_ratio"] is None) == (stage == "pilot")
    assert (folder / "out" / "report.html").exists()


def test_a_target_that_vanishes_ends_it_and_the_seed_repeats_the_order(tmp_path: Path, folder: Path) -> None:
    orders = []
    for seed in ("8", "8", "9"):
        said = tune(folder, "dies_from=0008", "--knobs", FIVE, "--budget", "20min", "--seed", seed, "--json")
        assert said.returncode == 2, said
        last = said.stderr.splitlines()[-1]
        assert last.startswith("rtproof: 3 runs in a row failed: the agent was killed by SIGSEGV")
        assert last.endswith("what was measured until then is kept")
        assert only_document(said.stdout)["runs_count"] == 9
        orders.append([line.split(", on: ")[1] for line in said.stderr.splitlines() if ", on: " in line])
        (folder / "out").rename(tmp_path / f"out-{len(orders)}")
    assert len(orders[0]) == 10
    assert orders[0] == orders[1] != orders[2]


def test_a_result_that_nobody_reads_is_kept(folder: Path) -> None:
    words = command(folder, "--knobs", "printk", "--budget", "10min")
    with Path("/dev/full").open("w") as full:
        code = subprocess.run(words, env=environment("dies_from=0002"), stdout=full, check=False).returncode
    assert code == 2
    assert {"tuning.json", "report.html"} <= {each.name for each in (folder / "out").iterdir()}


def test_an_undo_that_no_agent_can_do_is_an_error() -> None:
    assert main(["undo", "--target", "simulated"]) == 2


@pytest.mark.parametrize(
    ("begin", "end", "used"), [("100", "350", 250), ("990", "10", 21), ("100", "?", 0), ("100", None, 0)]
)
def test_the_energy_of_a_run_is_counted_where_it_can_be_read(begin: str, end: str | None, used: int) -> None:
    files = [file(tuning_runs.RAPL + "energy_uj", begin), file(tuning_runs.RAPL + "max_energy_range_uj", "1000\n")]
    if end is not None:
        files.append(file(tuning_runs.RAPL + "energy_uj", end, Moment.END))
    assert tuning_runs.energy_uj(record([], files=tuple(files))) == used
