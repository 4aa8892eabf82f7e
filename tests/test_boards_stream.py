# SPDX-License-Identifier: Apache-2.0
"""Runs whose record is streamed from a board's RAM, over a real sshd: whole, bounded, and what was lost is told."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from board_runs import ENDED_WELL, assert_whole, ended, rtproof, start, wait_until
from board_servers import Board, board, processes

from rtproof.agents.build import find_agent
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Moment, Record
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.streaming import dropped_samples, times_away

pytestmark = pytest.mark.slow
MIB = 1 << 20
RAM = Path(f"/dev/shm/rtproof-tests-{os.getpid()}")
IN_RAM = RAM / "rtproof-0"
"""The board of these tests is this machine, with another root's home."""


@contextmanager
def started(machine: Board, folder: Path, *words: str) -> "Iterator[subprocess.Popen[str]]":
    """A streamed run, which is killed if the test ends before it does."""
    with start("run", *machine.options, *words, "--stream", "--no-report", "-q", "-o", str(folder)) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """A board that keeps its folder in /dev/shm, whatever else is a tmpfs here."""
    if subprocess.run(["findmnt", "-t", "tmpfs", "/dev/shm"], capture_output=True, check=False).returncode:
        pytest.skip("/dev/shm is no tmpfs here")
    find_agent()  # built now, not while a test waits
    with board(tmp_path_factory.mktemp("machine"), "sshd") as made:
        RAM.mkdir()
        yield replace(made, options=(*made.options, "--target-option", f"dir={RAM}"))
        shutil.rmtree(RAM)


def run_on_board() -> Path:
    (found,) = IN_RAM.glob("run-*")
    return found


def bytes_there(folder: Path) -> int:
    """RAM that the files of the run take, as the kernel counts it."""
    total = 0
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            total += file.stat().st_blocks * 512
    return total


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def agents(machine: Board) -> list[int]:
    """The agent's processes on the board."""
    words = ("ip", "netns", "pids", machine.cable.namespace)
    pids = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return [int(pid) for pid in pids if b"rtproof-agent" in command(pid)]


def command(pid: str) -> bytes:
    """The program that a process runs; empty if it has ended."""
    try:
        return Path("/proc", pid, "cmdline").read_bytes().split(b"\0")[0]
    except FileNotFoundError:
        return b""


def has_samples(folder: Path) -> bool:
    """Whether the record is here as far as its first samples."""
    return size(folder / "run.rtrec") > 0 and bool(open_record(folder / "run.rtrec").chunk_refs)


def kept_by_second(record: Record, series: int) -> dict[int, int]:
    """How many samples of each second the record has."""
    refs = tuple(ref for ref in record.chunk_refs if ref.series == series)
    (one,) = (each for each in record.series if each.id == series)
    counts: dict[int, int] = {}
    for block in record.read_blocks(refs):
        gaps = np.zeros(block.values.size, dtype=np.int64)
        gaps[block.gap_position] = block.gap_missed
        index = np.concatenate(([0], np.cumsum(1 + gaps)[:-1]))
        due = block.first_due_ns + index * one.period_ns
        for second, count in zip(*np.unique(due // SECOND_NS, return_counts=True), strict=True):
            counts[int(second)] = counts.get(int(second), 0) + int(count)
    return counts


def ran_by_second(record: Record, series: int) -> dict[int, int]:
    seconds = record.seconds[series]
    return {int(s): int(n) for s, n in zip(seconds.second, seconds.obtained, strict=True) if n}


def test_a_streamed_record_is_whole_and_nothing_is_written_outside_of_ram(machine: Board, tmp_path: Path) -> None:
    before = set(machine.cache.glob("**/*"))
    with started(machine, tmp_path / "run", "--duration", "6s") as run:
        ended(run)
    record = assert_whole(tmp_path / "run", 6)
    for series in record.series:
        assert kept_by_second(record, series.id) == ran_by_second(record, series.id)
    assert dropped_samples(record) == []
    assert set(machine.cache.glob("**/*")) == before
    assert list(IN_RAM.glob("run-*")) == []
    assert not [line for line in processes(machine.cable.namespace) if "rtproof-agent" in line]


def test_a_link_that_is_away_for_too_long_costs_samples_that_are_told(machine: Board, tmp_path: Path) -> None:
    """Threads at 10 kHz soon fill the smallest buffer. What the agent counted is in the record all the same."""
    folder = tmp_path / "run"
    words = ("--duration", "1h", "--period", "100us", "--limit", "50ms", "--at-most", "1/s")
    with started(machine, folder, *words, "--target-option", "stream=1MiB") as run:
        wait_until(lambda: has_samples(folder), "samples arrive while it is measured")
        there = run_on_board()
        machine.cable.pull()
        wait_until(lambda: b"link_behind" in (there / "run.rtrec").read_bytes(), "the buffer does not fill")
        time.sleep(20)  # samples are dropped all this time
        largest, length = bytes_there(there), size(there / "run.rtrec")
        machine.cable.plug()
        wait_until(lambda: b"link_caught_up" in (folder / "run.rtrec").read_bytes(), "the host has not caught up")
        ended(run, interrupt=True)
    record = assert_whole(folder, 100, "INTERRUPTED")
    assert largest < MIB + 128 * 1024  # the log, and what rounds up to pages, come on top of the record
    assert length < size(folder / "run.rtrec")
    lost = dropped_samples(record)
    assert lost
    for series in record.series:
        ran, kept = ran_by_second(record, series.id), kept_by_second(record, series.id)
        missing = {second: n - kept.get(second, 0) for second, n in ran.items() if n != kept.get(second, 0)}
        mine = [each for each in lost if each[0] == series.id]
        assert sum(missing.values()) == sum(samples for _, samples, *_ in mine)
        spans = (range(from_ns // SECOND_NS, to_ns // SECOND_NS + 1) for *_, from_ns, to_ns in mine)
        assert set(missing) == {second for span in spans for second in span if ran.get(second)}
    assert max(until - since for since, until in times_away(record) if until) > 20 * SECOND_NS
    assert int(record.fact("samples_dropped", Moment.END) or 0) == sum(samples for _, samples, *_ in lost)
    found = analyse(record, Requirement(50_000_000))
    assert "samples-dropped" in {doubt.code for doubt in found.doubts}
    assert "lost" not in {doubt.code for doubt in found.doubts}
    assert record.end is not None
    assert found.pooled.observed.count == sum(total.obtained for total in record.end.totals)


def test_the_run_of_a_killed_host_is_taken_up_where_it_was(machine: Board, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started(machine, folder, "--duration", "1h") as run:
        wait_until(lambda: has_samples(folder), "samples arrive while it is measured")
        wait_until((run_on_board() / "delivery").exists, "some of it is freed")
        run.kill()
        run.communicate()
    stale = shutil.copytree(folder, tmp_path / "stale", ignore=shutil.ignore_patterns("run.rtrec*"))
    refused = rtproof("attach", str(stale), "--no-report")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1), refused.stderr
    assert "were streamed to another folder" in refused.stderr
    ended(start("stop", str(folder), "--no-report"))
    record = assert_whole(folder, 0, "INTERRUPTED")
    for series in record.series:
        assert kept_by_second(record, series.id) == ran_by_second(record, series.id)
    assert dropped_samples(record) == []
    assert list(IN_RAM.glob("run-*")) == []


def test_of_a_board_that_loses_its_ram_what_was_streamed_is_kept(machine: Board, tmp_path: Path) -> None:
    """As after a reboot: neither the run's processes nor its folder nor the agent is there any more."""
    with started(machine, tmp_path / "run", "--duration", "1h") as run:
        wait_until(lambda: has_samples(tmp_path / "run"), "samples arrive while it is measured")
        for pid in agents(machine):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(IN_RAM)
        told, said = run.communicate(timeout=1800)
    assert run.returncode in (*ENDED_WELL, 4), told + said
    assert "booted anew, or the run was removed; what was streamed is kept" in said
    record = open_record(tmp_path / "run" / "run.rtrec")
    assert record.end is None
    assert record.chunk_refs
    assert not (tmp_path / "run" / "unfinished.json").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--target-option", "dir=/var/lib"), "/var/lib is not in RAM (tmpfs)"),
        (("--threads", "40", "--target-option", "stream=1MiB"), "too small for this run"),
        (("--target-option", "stream=900000MiB"), "does not fit"),
        (("--detach",), "leave --detach out"),
        (("--explain", "--limit", "1ms"), "leave --explain"),
    ],
)
def test_what_cannot_be_streamed_is_one_sentence(
    machine: Board, tmp_path: Path, more: tuple[str, ...], sentence: str
) -> None:
    options = machine.options[:-2] if "dir=" in more[-1] else machine.options
    refused = rtproof("run", *options, *more, "--stream", "--duration", "1s", "-o", str(tmp_path / "run"))
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert not (tmp_path / "run").exists()
    assert list(IN_RAM.glob("run-*")) == []
