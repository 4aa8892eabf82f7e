# SPDX-License-Identifier: Apache-2.0
"""``rtproof watch``: a run that somebody else makes."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_process import eventually, running, whole
from record_cases import MS, write_small

from rtproof.cli.main import main
from rtproof.core.phrases import limit_value, value
from rtproof.experiment import watched_run
from rtproof.record import run_folder
from rtproof.record.chunks import CHUNK_HEADER, padded
from rtproof.run import running_records
from rtproof.run.live_view import MaximaOverTime
from rtproof.run.running_records import RecordFollower


def arguments(record: Path, *more: str) -> tuple[str | Path, ...]:
    """So rarely does it tell how far it is that nobody need read that for minutes."""
    return ("-o", record, "--policy", "other", "--checkpoint", "100ms", "--progress", "1s", *more)


def never(_: float) -> None:
    pytest.fail("it waits for something")


def chunk_ends(content: bytes) -> list[int]:
    """Where each chunk of a whole record ends."""
    ends, at = [], 0
    while at < len(content):
        at += CHUNK_HEADER.size + padded(int(CHUNK_HEADER.unpack_from(content, at)[1]))
        ends.append(at)
    return ends


def test_a_record_that_grows_by_chunks_and_by_torn_chunks_ends_in_the_same_numbers(tmp_path: Path) -> None:
    truth = write_small(tmp_path / "whole.rtrec")
    content = (tmp_path / "whole.rtrec").read_bytes()
    growing = tmp_path / "growing.rtrec"
    begin, *ends = chunk_ends(content)
    growing.write_bytes(content[:begin])
    follower = RecordFollower(growing)
    assert follower.read()
    before = begin
    for end in ends:
        with growing.open("ab") as file:
            file.write(content[before : (before + end) // 2])
            file.flush()
            assert not follower.read()  # the last chunk is torn
            file.write(content[(before + end) // 2 : end])
            file.flush()
            assert follower.read()
        before = end
    assert not follower.read()
    assert follower.end is not None
    totals = {part.series: part for part in follower.end.totals}
    threads = follower.threads()
    assert sorted(threads) == [0, 1]
    for number, row in threads.items():
        assert row.obtained == totals[number].obtained == truth[number].value.size
        assert (row.missed, row.lost) == (totals[number].missed, totals[number].lost)
        assert row.max_ns == truth[number].value.max()
        assert row.last_ns == truth[number].value[-1]
        assert row.time_ns == truth[number].due_ns[-1]
        assert follower.maxima()[number].parts(60) == [truth[number].value.max()]


def test_it_counts_once_what_samples_and_seconds_both_tell(tmp_path: Path) -> None:
    truth = write_small(tmp_path / "whole.rtrec")
    content = (tmp_path / "whole.rtrec").read_bytes()
    part = tmp_path / "part.rtrec"
    seen = []
    for end in chunk_ends(content):
        part.write_bytes(content[:end])
        follower = RecordFollower(part)
        follower.read()
        seen.append(follower.threads()[0].obtained if 0 in follower.threads() else 0)
    assert seen == sorted(seen)
    assert seen[-1] == truth[0].value.size


def test_damage_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    write_small(tmp_path / "a.rtrec")
    content = bytearray((tmp_path / "a.rtrec").read_bytes())
    content[chunk_ends(bytes(content))[1] + 25] ^= 1
    (tmp_path / "a.rtrec").write_bytes(content)
    follower = RecordFollower(tmp_path / "a.rtrec")
    follower.read()
    assert follower.end is not None


def test_maxima_over_time_in_equal_parts() -> None:
    found = MaximaOverTime()
    assert found.parts(8) == []
    for second, largest_ns in ((0, 10), (1, 20), (2, 30), (5, 60), (2**40, 1), (-1, 1), (2, 40)):
        found.add(second, largest_ns)
    assert found.parts(60) == [10, 20, 40, 0, 0, 60]
    assert found.parts(2) == [40, 60]
    found.add(119, 7)
    assert found.parts(60) == [20, 40, 60, *[0] * 56, 7]


def test_a_run_of_the_real_agent_until_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "a.rtrec"
    looks: list[float] = []
    with running(*arguments(record, "--duration", "10min", "--limit", "1h")) as one:
        one.await_ns(0)
        assert running_records.running_records()[record] == one.process.pid

        def end(seconds: float) -> None:
            if not looks:
                one.process.send_signal(signal.SIGINT)
            looks.append(seconds)
            time.sleep(0.05)

        assert watched_run.watch(record, end) in (3, 4)
        assert one.end() == 0
    assert looks
    assert whole(record).damage == ()
    assert "activations, max" in capsys.readouterr().err


def test_it_says_which_limit_is_exceeded(tmp_path: Path) -> None:
    truth = write_small(tmp_path / "whole.rtrec")
    follower = RecordFollower(tmp_path / "whole.rtrec")
    follower.read()
    worst_ns = max(int(one.value.max()) for one in truth.values())
    follower._facts["limits_ns"] = f"{worst_ns - 1},{worst_ns}"
    (line,) = watched_run._exceeded(follower)
    assert f"{limit_value(worst_ns - 1)} is exceeded: the largest latency is {value(worst_ns)}" == line


def test_a_run_without_samples(tmp_path: Path) -> None:
    record = tmp_path / "a.rtrec"
    with running(*arguments(record, "--duration", "700ms", "--record", "summary", "--period", "1ms")) as one:
        assert one.end() == 0
    follower = RecordFollower(record)
    follower.read()
    assert follower.end is not None
    rows = follower.threads()
    assert sum(row.obtained for row in rows.values()) == sum(total.obtained for total in follower.end.totals)
    assert [row.last_ns for row in rows.values()] == [None] * len(rows)


def test_a_killed_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_run, "QUIET_S", 0.0)
    record = tmp_path / "a.rtrec"
    looks = []
    with running(*arguments(record, "--duration", "10min")) as one:
        one.await_ns(300 * MS)

        def kill(_: float) -> None:
            looks.append(1)
            for pid in one.processes():
                os.kill(pid, signal.SIGKILL)
            one.process.wait()

        code = watched_run.watch(record, kill)
    assert looks == [1]
    shown = capsys.readouterr()
    assert code in (0, 3)
    assert "rtproof: the agent was killed; what it measured until then is judged" in shown.err


def test_ctrl_c_leaves_the_run_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "a.rtrec"

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with running(*arguments(record, "--duration", "10min")) as one:
        one.await_ns(0)
        assert watched_run.watch(record, interrupt) == 130
        assert one.process.poll() is None
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    assert whole(record).end
    assert f"no longer watched; the run goes on: rtproof watch {record}" in capsys.readouterr().err


def test_a_run_that_still_warms_up_is_waited_for(tmp_path: Path) -> None:
    """A machine that is busy enough shows the run only when it is over."""
    record = tmp_path / run_folder.RECORD_NAME
    with running(*arguments(record, "--duration", "200ms", "--warmup", "2s")) as one:
        assert eventually(lambda: one.process.poll() is not None or bool(running_records.writer_of(record)))
        assert watched_run.watch(tmp_path, lambda _: time.sleep(0.05)) in (0, 3)
        assert one.end() == 0
    assert whole(record).end


def finished(folder: Path) -> Path:
    """A run folder of which the run is over."""
    folder.mkdir()
    write_small(folder / run_folder.RECORD_NAME)
    return folder


def test_a_finished_run_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path / "a")
    (tmp_path / "a.html").write_text("the page")
    code = watched_run.watch(run, never)
    assert f"page      {tmp_path / 'a.html'}\n" in capsys.readouterr().out
    assert main(["show", str(run)]) == code


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda place: place.mkdir(), "is not a run folder: it has no run.rtrec"),
        (lambda place: place.write_bytes(b""), "is empty"),
        (lambda place: place.write_bytes(b"no record" * 9), "has neither the heading nor the figures of any tool"),
        (lambda place: None, "is no run folder and no record"),
    ],
)
def test_what_is_no_run(
    make: Callable[[Path], object], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "a")
    assert main(["watch", str(tmp_path / "a")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_the_runs_that_go_on_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(*arguments(tmp_path / "a.rtrec", "--duration", "10min")) as one:
        assert eventually(lambda: running_records.writer_of(tmp_path / "a.rtrec") is not None)
        assert main(["watch"]) == 0
        assert f"{tmp_path / 'a.rtrec'}  (process {one.process.pid})\n" in capsys.readouterr().out
    monkeypatch.setattr(running_records, "running_records", dict)
    assert main(["watch"]) == 0
    assert capsys.readouterr() == ("", "no run on this machine\n")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["/a/rtproof-agent", "run", "-o", "/r/run.rtrec"], "/r/run.rtrec"),
        (["nice", "agent", "run", "--duration", "1s", "--output=/r/x", "--stop-on-eof"], "/r/x"),
        (["rtproof-agent", "run", "-o", "-"], None),
        (["python", "/bin/rtproof", "run", "--output", "/r"], None),
        (["sh", "-c", "rtproof-agent run -o /r"], None),
        (["rtproof-agent", "load", "sched"], None),
        ([""], None),
    ],
)
def test_an_agent_is_known_by_its_command_line(
    words: list[str], output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_text("\0".join([*words, ""]))
    monkeypatch.setattr(running_records, "PROCESSES", tmp_path)
    assert [*map(str, running_records.running_records())] == ([output] if output else [])
