# SPDX-License-Identifier: Apache-2.0
"""The real agent where a record finds little room: refused when it cannot fit, stopped cleanly when the room goes."""

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import agent_process
import pytest
import recompute
from agent_process import needs_fifo, needs_root, policy, running, whole

from rtproof.record.contents import EndReason

pytestmark = [pytest.mark.serial, needs_root]

MS = 1_000_000
# 20,000 activations a second for each of 4 threads: what is reserved lasts for about a second.
BUSY = ("--period", "50us", "--threads", "4")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(path: Path) -> None:
    """Takes all the space that is left."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


@pytest.mark.parametrize("options", [["--duration", "10min"], ["--samples", "5000000", "--period", "100us"]])
def test_what_cannot_fit_is_refused_before_it_starts(disk: Path, options: list[str]) -> None:
    done = agent_process.run("run", "-o", disk / "record", *policy(), *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the record may grow to " in done.stderr
    assert " and there are 1.0 MB free where " in done.stderr
    assert list(disk.iterdir()) == []


def test_room_for_what_is_above_limits_is_asked_for(disk: Path) -> None:
    short = ("run", "-o", str(disk / "record"), *policy(), "--threads", "1", "--record", "summary")
    done = agent_process.run(*short, "--duration", "10min", "--limit", "500us", "--limit", "1ms")
    assert done.returncode == 2
    assert "the record may grow to 2.5 MB and there are 1.0 MB free where " in done.stderr
    assert done.stderr.endswith("or with fewer limits\n")
    assert list(disk.iterdir()) == []


def test_a_summary_of_the_same_run_fits(disk: Path) -> None:
    done = agent_process.run("run", "-o", disk / "record", *policy(), *BUSY, "--duration", "10min", "--threads", "1")
    assert "--record summary" in done.stderr
    with running(
        "-o", disk / "record", *policy(), "--record", "summary", "--duration", "10min", "--threads", "1"
    ) as one:
        one.await_ns(100 * MS)
        one.process.terminate()
        assert one.end() == 0
    assert whole(disk / "record").chunk_refs == ()


@needs_fifo
def test_when_the_space_goes_it_stops_and_the_record_is_whole(disk: Path) -> None:
    with running("-o", disk / "record", *policy(), *BUSY, "--duration", "2500ms") as one:
        one.await_ns(100 * MS)
        fill(disk / "filler")
        assert one.end() == 2
    assert one.messages == [
        "rtproof-agent: no space was left for the record; the run ended early, what was written is whole"
    ]
    record = whole(disk / "record")
    assert record.end is not None
    assert record.end.reason is EndReason.NO_SPACE
    assert [event.kind for event in record.events if event.kind == "no_space"] == ["no_space"]
    assert min(total.obtained for total in record.end.totals) > 0
    recompute.check(record)


def test_a_record_that_the_limit_on_file_sizes_cannot_hold_is_refused(tmp_path: Path) -> None:
    limited = ("prlimit", "--fsize=300000")
    done = agent_process.run("run", "-o", tmp_path / "record", *policy(), "--duration", "1s", prefix=limited)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert " and the limit on the size of files (ulimit -f) is 0.3 MB; measure for less time" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 16])
def test_under_the_limit_on_file_sizes_the_record_gets_its_end(tmp_path: Path, threads: int) -> None:
    place = tmp_path / "record"
    kept = 2**18 + threads * 2**14
    with running("-o", place, "--policy", "other", "--threads", str(threads), "--duration", "2min") as one:
        one.await_ns(100 * MS)
        most = place.stat().st_size + kept + 10_000
        resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert one.end() == 2
    assert one.messages == [
        "rtproof-agent: the limit on the size of files left no room for the record; the run ended early, "
        "what was written is whole"
    ]
    assert place.stat().st_size <= most
    record = whole(place)
    assert record.end is not None
    assert record.end.reason is EndReason.NO_SPACE
    assert [event.text for event in record.events if event.kind == "no_space"] == [
        "the limit on the size of files leaves no room for the record"
    ]
    assert min(total.obtained for total in record.end.totals) > 0
    recompute.check(record)
