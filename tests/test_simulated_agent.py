# SPDX-License-Identifier: Apache-2.0
"""The program: what it says, how it ends, and that it waits for whoever listens."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rtproof.record.contents import EndReason, Record
from rtproof.record.reading import open_record
from rtproof.run.live_view import parse_progress
from rtproof.targets.simulated import START

PROCESS = ("--simulate", "seed=4", "episodes=1/min")
LONG = ("--duration", "300d", "--limit", "100us", "--progress", "500ms")
PIPE = 65_536


def words(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", START.format(path=sys.path), "run", "-o", str(path), *more]


@contextmanager
def started(path: Path, *more: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(words(path, *more), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(path: Path) -> Record:
    record = open_record(path)
    assert record.end is not None
    assert record.damage == ()
    return record


def test_it_tells_of_each_thread_and_each_second_above_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    asked = ("--duration", "10min", "--threads", "2", "--limit", "100us", "--limit", "130us", "--progress", "1s")
    done = subprocess.run(words(path, *asked, *PROCESS), capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    progress = [found for line in lines if (found := parse_progress(line))]
    assert [(p.thread, p.time_ns) for p in progress[-2:]] == [(0, 600 * 10**9), (1, 600 * 10**9)]
    assert all(line.endswith(f"due_ns={p.time_ns}") for line, p in zip(lines[-2:], progress[-2:], strict=True))
    record = ended(path)
    seconds = {
        (thread, limit, int(second), int(worst))
        for thread in (0, 1)
        for limit in (100_000, 130_000)
        for second, worst in zip(record.seconds[thread].second, record.seconds[thread].max, strict=True)
        if worst > limit
    }
    said = [dict(word.split("=") for word in line.split()[1:]) for line in lines if line.startswith("over ")]
    keys = ("thread", "limit_ns", "second", "worst_ns")
    assert seconds == {tuple(int(one[key]) for key in keys) for one in said}
    assert len({limit for _, limit, _, _ in seconds}) == 2
    assert record.fact("simulated", thread=0xFFFF) is not None
    assert (
        [p.obtained for p in progress[-2:]] == [total.obtained for total in record.end.totals] if record.end else False
    )


def test_over_comes_before_the_progress_that_covers_it(tmp_path: Path) -> None:
    asked = ("--duration", "1h", "--limit", "100us", "--progress", "1s")
    done = subprocess.run(words(tmp_path / "x", *asked, *PROCESS), capture_output=True, text=True, check=True)
    known_s, over = 0, 0
    for line in done.stderr.splitlines():
        if found := parse_progress(line):
            known_s = found.time_ns // 10**9
        else:
            over += 1
            assert int(line.split("second=")[1].split()[0]) == known_s
    assert over > 30


def test_it_does_not_run_ahead_of_its_reader(tmp_path: Path) -> None:
    """Whatever is read, at most two steps more have been played when it is told to stop."""
    path = tmp_path / "x"
    with started(path, *LONG, *PROCESS) as process:
        assert process.stderr is not None
        last = [process.stderr.readline() for _ in range(50)][-1]
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait() == 0
    progress = parse_progress(last.decode())
    record = ended(path)
    assert record.end is not None
    assert record.end.reason is EndReason.INTERRUPTED
    if progress:
        assert record.end.time_ns - progress.time_ns <= 300 * 10**9


def test_the_end_of_its_input_ends_it_where_that_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with started(path, *LONG, "--stop-on-eof", *PROCESS) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stderr.readline()
        process.stdin.close()
        process.stdin = None
        process.stderr.read()
        assert process.wait() == 0
    record = ended(path)
    assert record.end is not None
    assert record.end.reason is EndReason.HOST_GONE


def test_nobody_who_listens_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with started(path, *LONG, *PROCESS) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.stderr.close()
        assert process.wait() == 0
        process.stderr = None
    record = ended(path)
    assert record.end is not None
    assert record.end.reason is EndReason.HOST_GONE


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--duration", "1s", "--load", "sched"), "no use for --load"),
        (("--duration", "1s", "--simulate", "kind=flood"), "there is no kind of process 'flood'"),
        (("--duration", "1s", "--simulate", "above=1ms"), "less than a period late"),
    ],
)
def test_nonsense_leaves_nothing_but_a_sentence(more: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = subprocess.run(words(tmp_path / "x", *more), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("rtproof-agent: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_record_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"something")
    done = subprocess.run(words(tmp_path / "x", "--duration", "1s"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "rtproof-agent: cannot write the record: File exists\n"
    assert (tmp_path / "x").read_bytes() == b"something"
