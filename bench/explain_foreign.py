# SPDX-License-Identifier: Apache-2.0
"""The latency that a trace tells of other programs, beside what they print.

Both are figures of the same activations. A program that also prints when it read its clock is paired with the trace by
time: the trace's end of an activation lies between the program's begin and its reading. cyclictest prints no times, so
its figures are paired in their order, by the number of their due time. No pair is left out for being far apart.

Both need not begin alike. Behind a pipe the trace begins with the waking, and the program with a reading of the sender
before write(). A program that missed a due time counts from the one after it, and the trace from the one for which the
timer woke the thread. So like is compared with like from the trace's begin on: the program's reading against the end in
the trace. How far the begins are apart is told.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from part import ROOT, Bound, Figure, Part, percent

from rtproof.agents.build import find_agent
from rtproof.core.errors import UserError
from rtproof.experiment.stored_runs import open_run
from rtproof.record.contents import Record

APP = ROOT / "tests" / "foreign_app.c"
APP_KINDS = ("sleep", "timerfd", "posix", "pipe")
TIMES, PERIOD_US = 1_500, 1_000
SECONDS = 2
"""rt-app is given a length in place of a number."""
PATIENCE_S = 60
MOST_SHIFT = 50
"""How many activations of a program may have no figure at its beginning, or the other way round."""
CYCLICTEST_LINE = re.compile(r"(?m)^\s*0:\s*\d+:\s*(\d+)\s*$")
RT_APP_THREAD = "rtapp"
Array = NDArray[np.int64]


@dataclass(frozen=True)
class Own:
    """What a program tells of its activations. read_ns: when it read its clock; None if it does not tell.

    resolution_ns: the last digit of a reading.
    """

    late_ns: Array
    read_ns: Array | None = None
    resolution_ns: int = 1


@dataclass(frozen=True)
class Traced:
    """What the trace tells: when each activation was due and ended, by CLOCK_MONOTONIC."""

    due_ns: Array
    end_ns: Array


@dataclass(frozen=True)
class Program:
    """thread: its name. run: runs it in a folder. needs: a program that must be installed, and its package."""

    thread: str
    run: Callable[[Path], Own]
    needs: tuple[str, str] = ("cc", "gcc")


def run_app(kind: str, folder: Path) -> Own:
    app = folder / "foreign_app"
    subprocess.run(["cc", "-O2", "-o", app, APP, "-lpthread", "-lrt"], check=True)
    return read_app(_printed(app, kind, str(TIMES), str(PERIOD_US)))


def read_app(text: str) -> Own:
    """What foreign_app prints. It has zeros for what it did not get to."""
    both = np.array([line.split() for line in text.splitlines()], np.int64).reshape(-1, 2)
    both = both[both[:, 1] != 0]
    return Own(both[:, 0], both[:, 1])


def run_cyclictest(_: Path) -> Own:
    return read_cyclictest(_printed("cyclictest", "-v", "-N", "-m", "-t1", "-p80", f"-i{PERIOD_US}", f"-l{TIMES}"))


def read_cyclictest(text: str) -> Own:
    found = np.array([int(ns) for ns in CYCLICTEST_LINE.findall(text)], np.int64)
    return Own(found[found != 0])


def run_rt_app(folder: Path) -> Own:
    asked = {
        "global": {
            "duration": SECONDS, "default_policy": "SCHED_FIFO", "logdir": str(folder), "log_basename": "log",
            "lock_pages": True, "ftrace": False, "calibration": 100,
        },
        "tasks": {
            RT_APP_THREAD: {
                "policy": "SCHED_FIFO", "priority": 70, "loop": -1, "run": 20,
                "timer": {"ref": "tick", "period": PERIOD_US, "mode": "absolute"},
            }
        },
    }  # fmt: skip
    words = folder / "asked.json"
    words.write_text(json.dumps(asked))
    _printed("rt-app", words)
    return read_rt_app((folder / f"log-{RT_APP_THREAD}-0.log").read_text())


def read_rt_app(text: str) -> Own:
    """The log of rt-app, in us. A line ends with the wake-up, so its ``end`` is the reading. 0: it did not sleep."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    both = np.array([(line[10], line[5]) for line in lines], np.int64).reshape(-1, 2) * 1_000
    both = both[both[:, 0] > 0]
    return Own(both[:, 0], both[:, 1], 1_000)


def _printed(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


PROGRAMS = {
    "cyclictest": Program("cyclictest", run_cyclictest, needs=("cyclictest", "rt-tests")),
    "rt-app": Program(RT_APP_THREAD, run_rt_app, needs=("rt-app", "rt-app")),
    **{f"app-{kind}": Program(f"app-{kind}", partial(run_app, kind)) for kind in APP_KINDS},
}


def measure(name: str) -> dict[str, Any]:
    """How the figures of a program and those of the trace differ. UserError if it is missing, or there is no trace."""
    program = PROGRAMS[name]
    command, package = program.needs
    if not shutil.which(command):
        raise UserError(f"{command} is not installed (package {package} of Debian)")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with traced(program.thread, folder / "run.rtrec"):
            own = program.run(folder)
        record = open_run(folder / "run.rtrec").record
        definitions = [event.text for event in record.events if event.kind == "definition"]
        return {"definitions": definitions, **compare(own, traced_activations(record))}


@contextmanager
def traced(thread: str, record: Path) -> Iterator[None]:
    """Trace a thread of this name while the statements run. UserError if it cannot be traced."""
    trace = f"explain,whole,calls_of={thread}"
    words = ["run", "--probe", f"foreign:thread={thread}", "--trace", trace, "--duration", "10min", "--progress", "1s"]
    command = [str(find_agent()), *words, "-o", str(record)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        assert agent.stderr is not None
        said = []
        for line in agent.stderr:
            if line.startswith("progress"):
                break
            said.append(line)
        else:
            raise UserError(" ".join(said).strip() or "the agent ended before it measured")
        try:
            yield
        finally:
            agent.send_signal(2)
            agent.communicate()


def traced_activations(record: Record) -> Traced:
    """Those of the thread with the most: a thread that has the name for a moment has few."""
    series = max(record.series, key=lambda each: sum(block.values.size for block in record.blocks(each.id)))
    due, end = [], []
    for block in record.blocks(series.id):
        missed = np.zeros(block.values.size, np.int64)
        missed[block.gap_position] = block.gap_missed
        steps = np.arange(block.values.size) + np.cumsum(missed) - missed
        due.append(record.begin.origin_monotonic_ns + block.first_due_ns + steps * series.period_ns)
        end.append(due[-1] + block.values)
    return Traced(np.concatenate(due), np.concatenate(end))


def compare(own: Own, trace: Traced) -> dict[str, Any]:
    """How both differ, the same activations side by side, in us. Figures without a partner are counted."""
    timed = own.read_ns is not None
    at, there = by_time(own, trace) if timed else by_order(own, trace)
    latency_ns = trace.end_ns - trace.due_ns
    told: dict[str, Any] = {
        "printed": int(own.late_ns.size),
        "in_trace": int(latency_ns.size),
        "paired": int(at.size),
        "partner_percent": percent(at.size, own.late_ns.size),
        **_shares("own_alone", np.delete(own.late_ns, at)),
        **_shares("apart" if timed else "like", own.late_ns[at] - latency_ns[there]),
    }
    if own.read_ns is None:
        return told
    begin_ns, read_ns = (own.read_ns - own.late_ns)[at], own.read_ns[at]
    begins, like = _shares("begins", trace.due_ns[there] - begin_ns), _shares("like", read_ns - trace.end_ns[there])
    return {**told, **begins, **like}


def by_time(own: Own, trace: Traced) -> tuple[Array, Array]:
    """The places of partners: the last end in the trace before the reading, if the program had begun by then.

    Of several readings behind one end the first is the partner: for the others the thread did not sleep.
    """
    assert own.read_ns is not None
    there = np.searchsorted(trace.end_ns, own.read_ns + own.resolution_ns - 1, side="right") - 1
    begin_ns = own.read_ns - own.late_ns - own.resolution_ns
    fits = (there >= 0) & (trace.end_ns[there] >= begin_ns)
    fits &= np.diff(there, prepend=-1) > 0
    return np.flatnonzero(fits), there[fits]


def by_order(own: Own, trace: Traced, period_ns: int = 1_000 * PERIOD_US) -> tuple[Array, Array]:
    """The places of partners if the program counts its due times on, and leaves out those that are over.

    So each figure has a number on the grid of due times, as has each activation of the trace. Of all beginnings that
    give nearly the most partners, it is the one whose differences are closest to each other.
    """
    own_number = np.concatenate(([0], np.cumsum(1 + own.late_ns // period_ns)))[:-1]
    number = (trace.due_ns - trace.due_ns[0] + period_ns // 2) // period_ns
    begins = range(-MOST_SHIFT, MOST_SHIFT + 1)
    tried = [np.intersect1d(own_number + begin, number, return_indices=True)[1:] for begin in begins]
    most = max(at.size for at, _ in tried)
    latency_ns = trace.end_ns - trace.due_ns

    def spread(places: tuple[Array, Array]) -> float:
        apart_ns = own.late_ns[places[0]] - latency_ns[places[1]]
        return float(np.median(np.abs(apart_ns - np.median(apart_ns)))) if apart_ns.size else 0.0

    at, there = min((each for each in tried if each[0].size >= 0.9 * most), key=spread)
    return at, there


def _shares(name: str, values: Array) -> dict[str, float]:
    """In us: the median, the 99 % of the absolute values, and the largest."""
    if not values.size:
        return {}
    found = {"p50": np.median(values), "p99": np.percentile(np.abs(values), 99), "most": values.max()}
    return {f"{name}_{key}_us": float(value) / 1000 for key, value in found.items()}


PART = Part(
    goal="of what other programs print and the trace tells of the same activations, 99 % are at most 20 us apart",
    items=lambda: list(PROGRAMS),
    measure=measure,
    figures=(
        Figure("partner_percent", "figures with a partner", "%", of="printed"),
        Figure("like_p50_us", "own latency minus the trace's, like with like, median", "us", of="paired"),
        Figure("like_p99_us", "own latency minus the trace's, like with like, |99 %|", "us", Bound(most=20), "paired"),
        Figure("like_most_us", "own latency minus the trace's, like with like, most", "us", of="paired"),
        Figure("apart_p50_us", "the same as both print it, median", "us", of="paired"),
        Figure("apart_p99_us", "the same as both print it, |99 %|", "us", of="paired"),
        Figure("begins_p99_us", "from the program's begin to the trace's, |99 %|", "us", of="paired"),
    ),
)
