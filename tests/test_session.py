# SPDX-License-Identifier: Apache-2.0
"""Sessions with an agent that behaves as it is told."""

import io
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import fake_agent
import pytest

from rtproof.core.errors import TargetError, UserError
from rtproof.record import run_folder
from rtproof.record.contents import EndReason
from rtproof.run import session
from rtproof.run.live_view import LiveView
from rtproof.targets import local

INFO = run_folder.RunInfo(
    command=["rtproof", "run"],
    started="2026-01-01T00:00:00+00:00",
    host="desk",
    user="me",
    rtproof_version="0",
    agent_sha256="",
    agent_arch="x86_64",
    target="local",
)


class Seen(io.StringIO):
    """What the user sees; ``action`` is called once, when a text shows up that holds ``word``."""

    def __init__(self, word: str = "", action: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._word = word
        self._action = action

    def write(self, text: str) -> int:
        if self._action is not None and self._word in text:
            action, self._action = self._action, None
            action()
        return super().write(text)


def sender(numbers: list[int]) -> Callable[[], None]:
    """Sends this process signals, as a user does who presses Ctrl-C again and again."""

    def send() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)

    return send


def run(
    tmp_path: Path, behaviour: str, seen: Seen | None = None, arguments: tuple[str, ...] = ()
) -> session.AgentOutcome:
    agent = fake_agent.install(tmp_path, behaviour)
    plan = session.RunPlan(tmp_path / "run", agent, arguments, INFO)
    view = LiveView(seen or Seen(), "0:00:01", False)
    with local.open_target({}) as target:
        return session.run_session(target, plan, view)


def record_end(tmp_path: Path) -> EndReason | None:
    end = run_folder.open_run(tmp_path / "run").record.end
    return end.reason if end else None


def test_a_run_leaves_a_folder_with_everything(tmp_path: Path) -> None:
    seen = Seen()
    outcome = run(tmp_path, "good", seen)
    assert (outcome.exit_code, outcome.said, outcome.failed, outcome.killed_by) == (0, "measured as asked", False, "")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["agent.log", "run.json", "run.rtrec"]
    assert (tmp_path / "run" / "agent.log").read_text() == "rtproof-agent: measured as asked\n"
    assert run_folder.open_run(tmp_path / "run").info == INFO
    assert "measured as asked" in seen.getvalue()
    assert "500 activations, max 10.0 us" in seen.getvalue()


def test_the_agent_is_told_where_and_how(tmp_path: Path) -> None:
    outcome = run(tmp_path, "tells_its_arguments", arguments=("--period", "1ms"))
    record = tmp_path / "run" / "run.rtrec"
    assert outcome.said == f"run -o {record} --period 1ms --progress 500ms --stop-on-eof"


def test_a_refusal_leaves_nothing_behind(tmp_path: Path) -> None:
    seen = Seen()
    with pytest.raises(UserError, match=r"^there is no CPU 99 on this machine$"):
        run(tmp_path, "refuses", seen)
    assert not (tmp_path / "run").exists()
    assert seen.getvalue() == ""


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("refuses_in_silence", "the agent ended with exit code 1 before it measured anything"),
        ("dies_early", "the agent was killed by SIGSEGV before it measured anything"),
    ],
)
def test_an_agent_that_fails_at_once_is_one_sentence(tmp_path: Path, behaviour: str, sentence: str) -> None:
    with pytest.raises(TargetError, match=f"^{sentence}$"):
        run(tmp_path, behaviour)
    assert not (tmp_path / "run").exists()


def test_an_empty_record_is_no_record(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no CPU 99"):
        run(tmp_path, "leaves_an_empty_file")
    assert not (tmp_path / "run").exists()


def test_what_others_put_into_the_folder_stays(tmp_path: Path) -> None:
    guest = tmp_path / "run" / "guest"
    seen = Seen("ready", guest.touch)
    with pytest.raises(TargetError):
        run(tmp_path, "never_starts_but_talks", seen)
    assert list((tmp_path / "run").iterdir()) == [guest]


def test_an_existing_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").touch()
    with pytest.raises(UserError, match="exists already"):
        run(tmp_path, "good")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]


def test_a_killed_agent_leaves_its_record(tmp_path: Path) -> None:
    outcome = run(tmp_path, "dies")
    assert outcome.killed_by == "SIGKILL"
    assert not outcome.failed
    assert record_end(tmp_path) is None


def test_a_full_disk_leaves_its_record_and_its_reason(tmp_path: Path) -> None:
    seen = Seen()
    outcome = run(tmp_path, "runs_out_of_space", seen)
    assert (outcome.failed, outcome.said) == (True, "no space left for the record")
    assert record_end(tmp_path) is EndReason.NO_SPACE
    assert "no space" not in seen.getvalue(), "whoever tells of the failure says it"


def test_nonsense_on_standard_error_does_no_harm(tmp_path: Path) -> None:
    seen = Seen()
    assert run(tmp_path, "talks_nonsense", seen).exit_code == 0
    assert "\x1b" not in seen.getvalue()
    assert "\x1b" not in (tmp_path / "run" / "agent.log").read_text()
    assert record_end(tmp_path) is EndReason.AS_ASKED


def test_endless_talk_fills_no_disk(tmp_path: Path) -> None:
    assert run(tmp_path, "talks_too_much").exit_code == 0
    assert (tmp_path / "run" / "agent.log").stat().st_size <= session.LARGEST_LOG


def test_a_disk_too_full_for_the_log_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOG_NAME", "no/such/folder")
    assert run(tmp_path, "good").said == "measured as asked"


def test_a_missing_agent_is_one_sentence(tmp_path: Path) -> None:
    plan = session.RunPlan(tmp_path / "run", tmp_path / "nowhere", (), INFO)
    with local.open_target({}) as target, pytest.raises(TargetError, match="cannot be started"):
        session.run_session(target, plan, LiveView(Seen(), "", False))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("behaviour", "signals", "killed_by", "reason"),
    [
        ("until_interrupted", [signal.SIGINT], "", EndReason.INTERRUPTED),
        ("until_interrupted", [signal.SIGTERM], "", EndReason.INTERRUPTED),
        ("until_interrupted", [signal.SIGHUP], "", EndReason.INTERRUPTED),
        ("until_terminated", [signal.SIGINT, signal.SIGINT], "", EndReason.INTERRUPTED),
        ("never_ends", [signal.SIGINT, signal.SIGINT, signal.SIGINT], "SIGKILL", None),
    ],
)
def test_each_signal_ends_the_agent_more_firmly(
    tmp_path: Path, behaviour: str, signals: list[int], killed_by: str, reason: EndReason | None
) -> None:
    outcome = run(tmp_path, behaviour, Seen("ready", sender(signals)))
    assert outcome.killed_by == killed_by
    assert record_end(tmp_path) is reason


def test_the_handlers_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(tmp_path, "good")
    assert signal.getsignal(signal.SIGINT) is before


def test_it_runs_in_another_thread_too(tmp_path: Path) -> None:
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(run(tmp_path, "good")))
    thread.start()
    thread.join()
    assert [outcome.exit_code for outcome in outcomes] == [0]


class Watcher:
    """Says that the run may end at the first progress."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ...]] = []

    def over(self, thread: int, limit_ns: int, second: int, worst_ns: int) -> None:
        self.told.append((thread, limit_ns, second, worst_ns))

    def progress(self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0) -> bool:
        self.told.append((thread, due_ns, lost))
        return True

    def lines(self) -> list[str]:
        return []


def test_who_watches_is_told_everything_and_ends_the_run(tmp_path: Path) -> None:
    watcher = Watcher()
    agent = fake_agent.install(tmp_path, "until_enough")
    plan = session.RunPlan(tmp_path / "run", agent, (), INFO)
    with local.open_target({}) as target:
        outcome = session.run_session(target, plan, LiveView(Seen(), "0:00:01", False), watcher)
    assert (outcome.decided, outcome.interrupted, outcome.exit_code) == (True, False, 0)
    assert record_end(tmp_path) is EndReason.INTERRUPTED
    assert watcher.told[:2] == [(1, 500_000, 3, 600_000), (0, 400, 0)]
    assert not (tmp_path / "run" / "agent.log").exists()
