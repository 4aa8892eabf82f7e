# SPDX-License-Identifier: Apache-2.0
"""Sessions with an agent that behaves as it is told."""

import io
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import fake_agent
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_folders import INFO

from rtproof.core.errors import TargetError, UserError
from rtproof.record import run_folder
from rtproof.record.contents import EndReason
from rtproof.run import live_view, session
from rtproof.run.live_view import LiveView
from rtproof.run.session import FORWARDED_SIGNALS, forwarding_signals
from rtproof.targets import local


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
    view = LiveView(seen or Seen(), "0:00:01", False)
    with local.open_target({}) as target:
        return session.run_session(session.RunPlan(target, tmp_path / "run", agent, arguments, INFO), view)


def record_end(tmp_path: Path) -> EndReason | None:
    end = run_folder.open_run(tmp_path / "run").record.end
    return end.reason if end else None


def test_a_run_leaves_a_folder_with_everything(tmp_path: Path) -> None:
    outcome = run(tmp_path, "good")
    assert (outcome.exit_code, outcome.said, outcome.failed, outcome.killed_by) == (0, "measured as asked", False, "")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["agent.log", "run.json", "run.rtrec"]
    assert (tmp_path / "run" / "agent.log").read_text() == "rtproof-agent: measured as asked\n"
    assert run_folder.open_run(tmp_path / "run").info == INFO


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("refuses", "there is no CPU 99 on this machine"),
        ("refuses_in_silence", "the agent ended with exit code 1 before it measured anything"),
        ("dies_early", "the agent was killed by SIGSEGV before it measured anything"),
    ],
)
def test_a_refusal_leaves_nothing_behind(tmp_path: Path, behaviour: str, sentence: str) -> None:
    with pytest.raises((UserError, TargetError), match=f"^{sentence}$"):
        run(tmp_path, behaviour)
    assert not (tmp_path / "run").exists()


def test_what_others_put_into_the_folder_stays(tmp_path: Path) -> None:
    guest = tmp_path / "run" / "guest"
    seen = Seen("ready", guest.touch)
    with pytest.raises(TargetError):
        run(tmp_path, "never_starts_but_talks", seen)
    assert list((tmp_path / "run").iterdir()) == [guest]


def test_a_run_that_is_interrupted_before_it_measured_is_no_failure(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "never_starts_but_talks", Seen("ready", sender([signal.SIGINT])))
    assert not (tmp_path / "run").exists()


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
    outcome = run(tmp_path, "runs_out_of_space")
    assert (outcome.failed, outcome.said) == (True, "no space left for the record")
    assert record_end(tmp_path) is EndReason.NO_SPACE


def test_nonsense_on_standard_error_does_no_harm(tmp_path: Path) -> None:
    seen = Seen()
    assert run(tmp_path, "talks_nonsense", seen).exit_code == 0
    assert "\x1b" not in seen.getvalue()
    assert "\x1b" not in (tmp_path / "run" / "agent.log").read_text()
    assert record_end(tmp_path) is EndReason.AS_ASKED


def test_endless_talk_fills_no_disk(tmp_path: Path) -> None:
    assert run(tmp_path, "talks_too_much").exit_code == 0
    assert (tmp_path / "run" / "agent.log").stat().st_size <= session.LARGEST_LOG


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


class Watcher:
    """Says that the run may end at the first progress."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ...]] = []

    def over(
        self, thread: int, limit_ns: int, second: int, worst_ns: int, stretch: tuple[int, int, int] | None = None
    ) -> None:
        self.told.append((thread, limit_ns, second, worst_ns, *(stretch or ())))

    def invalid(self, reason: str) -> None:
        raise AssertionError(reason)

    def progress(
        self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0, first_due_ns: int | None = None
    ) -> bool:
        assert first_due_ns is None, "an agent that does not print it"
        self.told.append((thread, due_ns, lost))
        return True

    def lines(self) -> list[str]:
        return []


def test_who_watches_is_told_everything_and_ends_the_run(tmp_path: Path) -> None:
    watcher = Watcher()
    agent = fake_agent.install(tmp_path, "until_enough")
    with local.open_target({}) as target:
        plan = session.RunPlan(target, tmp_path / "run", agent, (), INFO)
        outcome = session.run_session(plan, LiveView(Seen(), "0:00:01", False), watcher)
    assert (outcome.decided, outcome.interrupted, outcome.exit_code) == (True, False, 0)
    assert record_end(tmp_path) is EndReason.INTERRUPTED
    assert watcher.told[:2] == [(1, 500_000, 3, 600_000), (0, 400, 0)]
    assert not (tmp_path / "run" / "agent.log").exists()


# A signal is handed on at once, also where Python would tell of it only when the main thread has waited.


class Agent:
    """Says on a pipe that it was interrupted."""

    def __init__(self) -> None:
        self.asked, self._asking = os.pipe()

    def interrupt(self) -> None:
        os.write(self._asking, b"i")

    def terminate(self) -> None:
        os.write(self._asking, b"t")

    kill = terminate

    def lines(self) -> Iterator[str]:
        return iter(())

    def wait(self) -> int:
        return 0

    def close(self) -> None:
        os.close(self.asked)
        os.close(self._asking)


@pytest.mark.parametrize("number", FORWARDED_SIGNALS)
def test_a_signal_that_another_thread_takes_is_handed_on_at_once(number: signal.Signals) -> None:
    agent = Agent()
    with forwarding_signals() as forwarder:
        forwarder.process = agent
        other = threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), number))
        other.start()
        told = select.select([agent.asked], [], [], 300)[0]
        other.join()
    assert told == [agent.asked]
    assert os.read(agent.asked, 9) == b"i"
    agent.close()


def open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


def test_nothing_is_left_behind() -> None:
    handlers = {number: signal.getsignal(number) for number in (*FORWARDED_SIGNALS, signal.SIGURG)}
    threads = threading.active_count()
    files = open_files()
    with forwarding_signals():
        assert threading.active_count() == threads + 1
    assert {number: signal.getsignal(number) for number in handlers} == handlers
    assert threading.active_count() == threads
    assert open_files() == files
    assert signal.set_wakeup_fd(-1) == -1


LINE = (
    "progress time_ns=2000000000 thread=1 cpu=3 obtained=2000 missed=4 lost=0 "
    "last_ns=-500 min_ns=-900 mean_ns=5200 max_ns=81300"
)
OVER = "over thread=1 limit_ns=500000 second=17 worst_ns=612345"
ROW = live_view.Progress(2_000_000_000, 1, 3, 2000, 4, 0, -500, 81_300)


def test_lines_of_the_agent_are_read_also_if_a_newer_one_says_more() -> None:
    for more in ("", " extra=1 word"):
        assert live_view.parse_progress(LINE + more) == ROW
        assert live_view.parse_over(OVER + more) == live_view.OverLine(1, 500_000, 17, 612_345)
    exact = live_view.parse_over(f"{OVER} begin_ns=17000000000 end_ns=17000112345")
    assert exact
    assert exact.stretch == (17_000_000_000, 17_000_112_345, 0)
    for line in (
        "",
        "progress ",
        "over",
        *(LINE.replace("cpu=3", f"cpu={wrong}") for wrong in ("x", 2**63, "9" * 5_000)),
    ):
        assert live_view.parse_progress(line) is None
        assert live_view.parse_over(line) is None


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def view_on(on_terminal: bool) -> tuple[live_view.LiveView, io.StringIO, Clock]:
    out, clock = io.StringIO(), Clock()
    return live_view.LiveView(out, "0:00:20", on_terminal, clock), out, clock


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=1_000), st.integers(1, 60))
def test_the_maxima_over_time_keep_every_maximum(values: list[int], most: int) -> None:
    found = live_view.MaximaOverTime()
    for second, value in enumerate(values):
        found.add(second, value)
    assert max(found.parts(most)) == max(values)
    assert len(found.parts(most)) <= most


def test_a_terminal_gets_at_most_two_frames_a_second() -> None:
    view, out, clock = view_on(True)
    for step in range(100):
        clock.seconds = step / 10
        view.feed(replace(ROW, time_ns=step * 100_000_000))
    assert out.getvalue().count("latency in us") == 19


class NoReader(io.StringIO):
    """A pipe whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_view_without_a_reader_stops_nothing() -> None:
    view = live_view.LiveView(NoReader(), "0:00:20", True)
    view.say("nobody hears this")
    view.feed(ROW)
    view.draw()
    assert live_view.worst_first(view.threads) == [ROW]


def test_a_terminal_shows_the_rate_of_each_thread_since_the_view_before_and_the_time_left() -> None:
    early = {0: replace(ROW, thread=0, time_ns=1_000_000_000, obtained=1_000), 1: replace(ROW, thread=1)}
    now = {0: replace(ROW, thread=0, time_ns=1_500_000_000, obtained=1_500), 2: replace(ROW, thread=2, time_ns=9)}
    for length_ns, left in ((20_000_000_000, ", 0:00:18 left"), (1_000_000_000, ", 0:00:00 left"), (0, " of 1 h   ")):
        out = io.StringIO()
        view = live_view.LiveView(out, "1 h", True)
        view.length_ns = length_ns
        view.show(early, {}, last=True)
        view.show(now, {}, last=True)
        assert view._rates == {0: 1_000.0}
        assert left in out.getvalue()
    counted_late = live_view.LiveView(io.StringIO(), "1 h", True)
    counted_late.show({0: replace(early[0], due_ns=3_000_000_000)}, {}, last=True)
    counted_late.show({0: replace(now[0], due_ns=3_500_000_000)}, {}, last=True)
    assert counted_late._rates == {0: 1_000.0}


def test_a_sentence_about_the_connection_is_shown_before_the_next_line_comes(tmp_path: Path) -> None:
    """The next line comes once the connection is there again, which may take minutes."""
    seen = Seen()
    listener = session.AgentListener(LiveView(seen, "0:00:01", False), tmp_path / "log")
    lost = "rtproof: no connection to board (no route); the run goes on there"

    def lines() -> Iterator[str]:
        yield "rtproof-agent: measured as asked"
        yield lost
        assert lost in seen.getvalue()
        yield "rtproof-agent: no space left for the record"
        assert "no space" not in seen.getvalue()

    listener.listen(lines())
    assert seen.getvalue().count(lost) == 1
    assert (tmp_path / "log").read_text().count(lost) == 1
    assert listener.last == "no space left for the record"
