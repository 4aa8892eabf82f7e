# SPDX-License-Identifier: Apache-2.0
"""The short form of ``make faults``: failing system calls and power cuts, and that their checks can fail."""

import errno
from pathlib import Path

import pytest
from agent_process import agent
from faults_calls import (
    AGENT_RUN,
    HOST,
    PLAIN,
    Fault,
    Faulty,
    NoFaultsHereError,
    agent_subject,
    broken_promises,
    let_fail,
    one_run,
    run_faulty,
    tool,
)
from faults_power import logged_run, read_log, replay, versions


@pytest.fixture(scope="module", autouse=True)
def _traced() -> None:
    agent()
    try:
        tool()
    except NoFaultsHereError as reason:
        pytest.skip(f"no faults can be made here: {reason}")


RECORD_FAULTS = [
    ("write", errno.ENOSPC),
    ("write", errno.EINTR),
    ("fdatasync", errno.EIO),
    ("fsync", errno.EIO),
    ("fallocate", errno.ENOSPC),
    ("open", errno.EMFILE),
    ("mmap", errno.ENOMEM),
    ("clone", errno.EAGAIN),
]


@pytest.mark.parametrize(("kind", "error"), RECORD_FAULTS)
def test_a_failing_call_of_the_agent_is_told_and_leaves_nothing(tmp_path: Path, kind: str, error: int) -> None:
    tally = let_fail(agent_subject("agent", PLAIN), tmp_path, kind, error, most=3)
    assert tally.findings == []
    assert tally.reached >= 1


def only_record(tmp_path: Path, fault: Fault) -> tuple[Faulty, list[str], list[str]]:
    """An agent of whose calls only those on its record or its folder fail: its end, findings, and the files there."""
    end, found = one_run(agent_subject("agent", PLAIN, own_paths=True), tmp_path, fault)
    assert end.given
    return end, found, [one.name for one in (tmp_path / "place").iterdir()]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_when_the_first_write_fails_no_empty_file_stays(tmp_path: Path, error: int) -> None:
    end, found, there = only_record(tmp_path, Fault("write", 1, error))
    assert (end.exit_code, found, there) == (2, [], [])


def test_an_interrupted_flush_is_taken_up_again(tmp_path: Path) -> None:
    end, found, there = only_record(tmp_path, Fault("fdatasync", 1, errno.EINTR))
    assert (end.exit_code, end.said, found, there) == (0, "", [], ["record"])


def test_a_page_that_cannot_be_written_leaves_no_part(tmp_path: Path) -> None:
    record = tmp_path / "sound.rtrec"
    run_faulty(tmp_path, (agent(), *PLAIN, "-o", record), Fault("write"))
    page = tmp_path / "page" / "page.md"
    page.parent.mkdir()
    command = (*HOST, "report", record, "--format", "markdown", "--output", page)
    end = run_faulty(tmp_path, command, Fault("write", 1, errno.ENOSPC), str(page.parent))
    assert end.given
    assert broken_promises(end, (0, 2)) == []
    assert end.exit_code == 2
    assert list(page.parent.iterdir()) == []


LOGGED = (*AGENT_RUN, "--duration", "1200ms", "--checkpoint", "100ms", "--limit", "20us")


def test_after_a_power_cut_all_is_there_up_to_the_last_flush(tmp_path: Path) -> None:
    log = logged_run(tmp_path, LOGGED)
    assert versions(read_log(log))[-1] == (tmp_path / "logged.rtrec").read_bytes()
    done = replay(log, tmp_path, 60, 13)
    assert done.findings == []
    assert done.flushes >= 2
    assert done.different >= 2
    assert done.analysed > 0
