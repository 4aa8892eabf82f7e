# SPDX-License-Identifier: Apache-2.0
"""The short form of ``make faults``: failing system calls and power cuts, and that their checks can fail."""

import errno
import sys
from pathlib import Path

import pytest
from agent_process import agent
from crash_states import Read, Step, crash_states, read_log, replay, versions
from faults import logged_run
from faulty_runs import (
    AGENT_RUN,
    PLAIN,
    Fault,
    Faulty,
    NoFaultsHereError,
    Subject,
    agent_subject,
    broken_promises,
    host_program,
    let_fail,
    numbers,
    one_run,
    run_faulty,
    tool,
)

from rtproof.record.reading import open_record


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
    command = host_program("report", record, "--format", "markdown", "--output", page)
    end = run_faulty(tmp_path, command, Fault("write", 1, errno.ENOSPC), str(page.parent))
    assert end.given
    assert broken_promises(end, (0, 2)) == []
    assert end.exit_code == 2
    assert list(page.parent.iterdir()) == []


def in_shell(script: str) -> Subject:
    return Subject("shell", lambda _: ("sh", "-c", script), lambda place, end: [])


@pytest.mark.parametrize(
    ("script", "finding"),
    [
        ("kill -SEGV $$", "signal 11 ended it"),
        ("exit 7", "exit code 7"),
        ("echo one >&2; echo two >&2; exit 2", "exit code 2 with 2 lines: 'one\\ntwo\\n'"),
        ("exit 2", "exit code 2 with 0 lines: ''"),
        ("setsid sleep 60 & exit 0", "processes were left: sleep"),
        ("touch stray", "files were left: ['stray']"),
        ('mkdir -p "$TMPDIR/load/a" && touch "$TMPDIR/load/a/b"', "files were left: ['load', 'load/a', 'load/a/b']"),
        ("echo 'this is a defect of rtproof 1' >&2; exit 2", "a traceback: 'this is a defect of rtproof 1\\n'"),
    ],
)
def test_the_check_of_an_end_can_fail(tmp_path: Path, script: str, finding: str) -> None:
    _, found = one_run(in_shell(script), tmp_path, Fault("fsync"))
    assert finding in found


def test_a_hang_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faulty_runs.PATIENCE_S", 1)
    end, found = one_run(in_shell("sleep 60"), tmp_path, Fault("fsync"))
    assert end.hung
    assert "it hung for 1 s" in found


def test_the_call_that_fails_is_the_nth_on_the_paths_asked_for(tmp_path: Path) -> None:
    script = f"import os; f = os.open('{tmp_path}/mine', os.O_CREAT | os.O_WRONLY)\nfor i in range(5):\n"
    script += " try: os.write(f, b'%d' % i)\n except OSError as e: print(i, e.errno)\n"
    for keep_on, said, kept in ((False, "2 5\n", b"0134"), (True, "2 5\n3 5\n4 5\n", b"01")):
        (tmp_path / "mine").unlink(missing_ok=True)
        program = (sys.executable, "-c", f"import sys; sys.stdout = sys.stderr\n{script}")
        end = run_faulty(tmp_path, program, Fault("write", 3, errno.EIO, keep_on), f"{tmp_path}/mine")
        assert (end.said, (tmp_path / "mine").read_bytes(), end.calls) == (said, kept, 5)
    assert list(numbers(3, 10)) == [1, 2, 3]
    assert list(numbers(0, 10)) == []


LOGGED = (*AGENT_RUN, "--duration", "1200ms", "--checkpoint", "100ms", "--limit", "20us")


def test_after_a_power_cut_all_is_there_up_to_the_last_flush(tmp_path: Path) -> None:
    log = logged_run(tmp_path, LOGGED)
    assert versions(read_log(log))[-1] == (tmp_path / "logged.rtrec").read_bytes()
    done = replay(log, tmp_path, 60, 13)
    assert done.findings == []
    assert done.flushes >= 4
    assert done.different > 20
    assert done.analysed > 0


def test_the_checks_of_a_crash_state_can_fail(tmp_path: Path) -> None:
    log = logged_run(tmp_path, LOGGED)
    steps = read_log(log)
    last_flush = max(number for number, step in enumerate(steps) if step.offset is None)
    first_writes = [step for step in steps if step.content is not None]
    # A medium that told of flushes that it had not made: writes before the last flush are lost.
    cut = [*steps[: last_flush // 2], *(step for step in steps[last_flush // 2 :] if step.content is None)]
    content = versions(cut)[-1]
    place = tmp_path / "cut.rtrec"
    place.write_bytes(content)
    flushed = Read.of(open_record(tmp_path / "logged.rtrec"))
    less = Read.of(open_record(place))
    assert less.lacks(flushed).startswith("flushed and gone: ")
    assert less.contradicts(flushed) == ""
    assert flushed.contradicts(less).startswith("not in the whole record: ")
    assert len(first_writes) > 50


def test_a_crash_state_keeps_what_was_flushed_and_may_tear_the_rest() -> None:
    steps = [Step(0, b"a" * 5000), Step(None, None), Step(5000, b"b" * 5000), Step(10000, b"c" * 5000)]
    states = list(crash_states(steps, 400, 1))
    after = [state.content for state in states if state.flushed]
    assert after
    assert all(content[:5000] == b"a" * 5000 for content in after)
    torn = [content for content in after if b"\0" in content]
    assert torn
    assert {len(content) for content in after} == {5000, 10000, 15000}
    assert any(content[5000:].startswith(b"b") and content.endswith(b"\0") for content in torn)
    assert list(crash_states(steps, 400, 1)) == states
