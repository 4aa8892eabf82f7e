# SPDX-License-Identifier: Apache-2.0
"""What coincides with late activations without a trace: found where it was put in, and seldom where it was not."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import agent_process
import numpy as np
import pytest
from analysis_records import SERIES, block, file, record

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.explain.coincidence import COINCIDENCE_LEVEL, chances_of, coincidences
from rtproof.record.contents import Conditions, Counter, Record
from rtproof.report.blocks import Text
from rtproof.report.sections.explained import coincidence_blocks, coincidence_in_short

MS, SECOND = 1_000_000, 1_000_000_000
INTERRUPTS = "   CPU0  CPU1\n 36:  9  0  PCI-MSIX-0000:00:02.0  1-edge  eth7\nLOC:  5  6  Local timer interrupts\n"


# The chances alone.


def test_in_shuffled_seconds_something_coincides_as_seldom_as_is_said() -> None:
    """Counts of all kinds, also the same one twice and one that seldom moves, of which none has to do with lateness."""
    runs, seconds, false = 300, 40, 0
    for seed in range(runs):
        random = np.random.default_rng(seed)
        busy = random.gamma(0.5, 1_000, (10, seconds))
        rare = random.random((5, seconds)) < 0.1
        columns = [*busy, busy[0], *rare.astype(float)]
        late = random.permutation(seconds) < 5
        other = random.permutation(seconds) < 8
        chances = chances_of(columns, [late if at % 3 else other for at in range(len(columns))], 199)
        false += min(chances) <= COINCIDENCE_LEVEL
    assert 0 < false / runs <= COINCIDENCE_LEVEL + 3 * sqrt(COINCIDENCE_LEVEL * (1 - COINCIDENCE_LEVEL) / runs)


def test_what_was_put_into_the_late_seconds_is_found_beside_much_that_was_not() -> None:
    found = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        columns = list(random.gamma(0.5, 1_000, (50, 60)))
        late = random.permutation(60) < 6
        columns[7] = columns[7] + np.where(late, 20_000, 0)
        chances = chances_of(columns, [late] * 50, 199)
        found += chances[7] == min(chances) <= COINCIDENCE_LEVEL
    assert found == 40


# Of a record.


def counter(name: str, values: list[int], *, grows: bool = True, sparse: bool = False) -> Counter:
    """Readings each second; with sparse only those that differ from the one before, as the agent writes them."""
    kept = [at for at, value in enumerate(values) if not sparse or at == 0 or value != values[at - 1]]
    times = np.array(kept, np.int64) * SECOND
    return Counter(hash(name) % 1000, grows, name, "things", times, np.array([values[at] for at in kept], np.int64))


def made(late: tuple[int, ...] = (3, 9, 14, 22), seconds: int = 30) -> Record:
    """Ten activations a second, one of 5 ms in each late second; an interrupt of CPU 2 moves there too.

    The thread waited 4 ms for a CPU in these, and 1 ms in any other.
    """
    series = replace(SERIES, period_ns=100 * MS, first_due_ns=0, cpu=2)
    values = np.full(seconds * 10, 20_000)
    values[[10 * at + 5 for at in late]] = 5 * MS
    random = np.random.default_rng(0)
    moved = np.cumsum([0, *(900 if at in late else 0 for at in range(seconds))]).tolist()
    noise = np.cumsum([0, *random.integers(0, 1_000, seconds)]).tolist()
    nothing = np.zeros(seconds, np.int64)
    waited = np.array([4 * MS if at in late else 1 * MS for at in range(seconds)])
    times = np.arange(1, seconds + 1) * SECOND + 3 * MS
    names = ("noted", "elsewhere", "checks", "other_policy", "other_priority", "other_affinity", "involuntary_switches")
    zeros: dict[str, Any] = dict.fromkeys(names, nothing)
    conditions = Conditions(0, times, run_delay_ns=waited, **zeros)
    counters = (
        counter("interrupts.36.cpu2", moved, sparse=True),
        counter("interrupts.LOC.cpu2", noise),
        counter("interrupts.36.cpu1", moved),
        counter("pressure.io", noise[::-1][:1] * (seconds + 1)),
        counter("clock.raw", list(range(seconds + 1)), grows=False),
        counter("temperature.0", [40_000 + 9_000 * (at - 1 in late) for at in range(seconds + 1)], grows=False),
    )
    parts = {"counters": counters, "conditions": {0: conditions}, "files": (file("/proc/interrupts", INTERRUPTS),)}
    return record([block(values.tolist(), series=series)], (series,), **parts)


def test_a_record_says_what_moved_where_and_what_was_measured() -> None:
    found = coincidences(made(), 1 * MS)
    assert (found.late, found.late_seconds, found.seconds, found.too_few) == (4, 4, 30, "")
    assert found.looked_at == 5, "three interrupts, one of them on a CPU without a late thread, and a gauge both ways"
    moved = {each.words: each for each in found.moved}
    assert list(moved) == ["interrupt 36 eth7 on CPU 2", "temperature 0, higher"]
    assert (moved["interrupt 36 eth7 on CPU 2"].late, moved["interrupt 36 eth7 on CPU 2"].ordinary) == (900, 0)
    assert (moved["temperature 0, higher"].late, moved["temperature 0, higher"].ordinary) == (49_000, 40_000)
    assert all(each.chance <= COINCIDENCE_LEVEL for each in found.moved)
    (waited,) = found.waited
    assert (waited.late_ns, waited.waited_ns, waited.share) == (20 * MS, 12 * MS, 0.6)


def test_a_counter_of_an_unknown_kind_bears_its_name_whatever_its_characters() -> None:
    whole = made()
    moving = replace(whole.counters[-1], name="{x}.{")
    found = coincidences(replace(whole, counters=(moving,)), 1 * MS)
    assert [each.words for each in found.moved] == ["{x}.{, higher"]


@pytest.mark.parametrize(
    ("late", "seconds", "says"),
    [
        ((), 30, "no second was late"),
        (tuple(range(30)), 30, "every second was late"),
        ((3,), 15, "1 late second of 15 is too few"),
    ],
)
def test_where_nothing_can_coincide_the_reason_is_given(late: tuple[int, ...], seconds: int, says: str) -> None:
    found = coincidences(made(late, seconds), 1 * MS)
    assert found.moved == ()
    assert says in found.too_few
    texts = [line for each in coincidence_blocks(found, "") if isinstance(each, Text) for line in each.paragraphs]
    assert any(says in line for line in texts)
    assert coincidence_in_short(found)


def test_without_readings_there_is_one_sentence() -> None:
    with pytest.raises(UserError, match="fewer than two readings"):
        coincidences(record([block([1_000] * 9)]), 500)


# For real.

SHUT = """
umount /sys/kernel/tracing 2> /dev/null
mountpoint -q /sys/kernel/debug && umount -l /sys/kernel/debug
exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"
"""
"""As in most containers: nobody has mounted tracefs there, and root may not do it either."""


@agent_process.needs_root
def test_without_tracefs_a_run_says_so_before_it_begins_and_names_no_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["run", "--agent", agent_process.agent(), "--explain", "--policy", "other", "--duration", "3s"]
    words += ["--period", "10ms", "--limit", "1ns", "--no-report", "--output", str(out)]
    command = ["unshare", "--mount", "sh", "-c", SHUT, "sh", sys.executable, "-m", "rtproof", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=agent_process.PATIENCE_S, check=False)
    first, *_ = run.stderr.splitlines()
    if first.startswith("unshare"):
        pytest.skip(f"no mounts of its own can be had here, as root may have: {first}")
    assert "no events of the kernel, so causes can only be guessed from what coincides: " in first
    assert "this is a container" in first
    assert main(["explain", str(out), "--limit", "1ns", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["late_count"] > 0, bool(told["trace_refused"])) == (True, True)
    assert main(["explain", str(out), "--explain-at-most", "irqoff:0"]) == 2
    assert "this run has no trace" in capsys.readouterr().err


@agent_process.needs_root
def test_an_unprivileged_agent_counts_what_it_can(tmp_path: Path) -> None:
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
    place = Path("/tmp") / f"rtproof-agent-{os.getpid()}-{time.monotonic_ns()}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    try:
        (place / "agent").write_bytes(Path(agent_process.agent()).read_bytes())
        (place / "agent").chmod(0o755)
        words = ("run", "-o", str(place / "record"), "--trace", "recorder,optional", "--samples", "1500")
        command = [*nobody, str(place / "agent"), *words, "--allow-unprivileged"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=agent_process.PATIENCE_S, check=False)
        assert done.returncode == 0
        unprivileged, *others = done.stderr.splitlines()
        assert unprivileged.startswith("rtproof-agent: the threads run without real time: policy ")
        assert len(others) == 1
        assert "a trace needs root" in done.stderr
        names = {counter.name.partition(".")[0] for counter in agent_process.whole(place / "record").counters}
    finally:
        for each in place.iterdir():
            each.unlink()
        place.rmdir()
    assert {"interrupts", "softirqs", "steal", "minor_faults", "major_faults"} <= names
