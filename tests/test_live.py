# SPDX-License-Identifier: Apache-2.0

import io
import os
import pty
from dataclasses import replace

import pytest

from rtproof.run import live_view

LINE = (
    "progress time_ns=2000000000 thread=1 cpu=3 obtained=2000 missed=4 lost=0 "
    "last_ns=-500 min_ns=-900 mean_ns=5200 max_ns=81300"
)
ROW = live_view.Progress(2_000_000_000, 1, 3, 2000, 4, 0, -500, -900, 5200, 81_300)


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def view_on(on_terminal: bool) -> tuple[live_view.LiveView, io.StringIO, Clock]:
    out, clock = io.StringIO(), Clock()
    return live_view.LiveView(out, "0:00:20", on_terminal, clock), out, clock


def test_a_progress_line_is_read() -> None:
    assert live_view.parse_progress(LINE) == ROW


@pytest.mark.parametrize(
    "line",
    ["", "rtproof-agent: hello", "progress ", LINE.replace("cpu=3", "cpu=three"), LINE.replace(" max_ns=81300", "")],
)
def test_other_lines_are_none(line: str) -> None:
    assert live_view.parse_progress(line) is None


def test_a_newer_agent_may_say_more() -> None:
    assert live_view.parse_progress(LINE + " extra=1 word") == ROW


def test_the_worst_threads_come_first_and_no_more_than_16() -> None:
    rows = {n: replace(ROW, thread=n, max_ns=1000 * n) for n in range(40)}
    lines = live_view.progress_table(rows, "0:00:20", os.terminal_size((120, 50)))
    assert "the worst 16 of 40 threads" in lines[0]
    assert [int(line.split()[0]) for line in lines[2:]] == list(range(39, 23, -1))


def test_the_table_fits_a_small_terminal() -> None:
    rows = {n: replace(ROW, thread=n) for n in range(40)}
    lines = live_view.progress_table(rows, "0:00:20", os.terminal_size((40, 10)))
    assert len(lines) < 10
    assert max(map(len, lines)) < 40


def test_80_columns_hold_whole_rows() -> None:
    lines = live_view.progress_table(
        {1: replace(ROW, obtained=10**10, missed=10**7, max_ns=10**9)}, "0:00:20", os.terminal_size((80, 24))
    )
    assert lines[1].endswith(" max")
    assert lines[2].endswith(" 1000000.0")


def test_a_terminal_that_does_not_know_its_size_gets_a_usual_one() -> None:
    main, other = pty.openpty()
    with os.fdopen(main, "rb"), os.fdopen(other, "w") as terminal:
        assert live_view._terminal_size(terminal) == live_view.USUAL_SIZE


def test_the_sentence_adds_up_all_threads() -> None:
    text = live_view.progress_sentence({0: replace(ROW, thread=0, max_ns=9, missed=0), 1: ROW}, "0:00:20")
    assert text == "0:00:02 of 0:00:20: 4000 activations, max 81.3 us (thread 1, CPU 3), 4 missed, 0 lost"


def test_a_terminal_gets_at_most_two_frames_a_second() -> None:
    view, out, clock = view_on(True)
    for step in range(100):
        clock.seconds = step / 10
        view.feed(replace(ROW, time_ns=step * 100_000_000))
    assert out.getvalue().count("latency in us") == 19


def test_all_threads_are_in_one_frame() -> None:
    """The agent reads the clock again for each thread's line."""
    view, out, clock = view_on(True)
    clock.seconds = 1.0
    for thread in range(3):
        view.feed(replace(ROW, thread=thread, time_ns=2_000_000_000 + thread))
    assert out.getvalue() == ""
    view.feed(replace(ROW, thread=0, time_ns=2_500_000_000))
    assert len(out.getvalue().splitlines()) == 5


def test_a_frame_erases_the_one_before() -> None:
    view, out, _ = view_on(True)
    view.feed(ROW)
    view.draw()
    assert "\x1b" not in out.getvalue()
    view.draw()
    assert out.getvalue().count("\x1b[3A\x1b[J") == 1


def test_a_sentence_stands_above_the_table() -> None:
    view, out, _ = view_on(True)
    view.feed(ROW)
    view.draw()
    view.say("one load died")
    last_frame = out.getvalue().rpartition("\x1b[J")[2].splitlines()
    assert last_frame[0] == "one load died"
    assert last_frame[1].startswith("0:00:02 of 0:00:20")


def test_a_file_gets_plain_lines_every_five_seconds() -> None:
    view, out, clock = view_on(False)
    for second in range(21):
        clock.seconds = float(second)
        view.feed(replace(ROW, time_ns=second * 1_000_000_000))
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["0:00:04", "0:00:09", "0:00:14", "0:00:19"]
    assert "\x1b" not in out.getvalue()


def test_nothing_is_drawn_before_anything_is_known() -> None:
    view, out, _ = view_on(True)
    view.draw()
    view.say("starting")
    assert out.getvalue() == "starting\n"


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


def test_how_far_a_thread_has_come_is_read_where_it_is_told() -> None:
    older, newer = live_view.parse_progress(LINE), live_view.parse_progress(f"{LINE} due_ns=123")
    assert older is not None
    assert newer is not None
    assert (older.due_ns, newer.due_ns) == (0, 123)


def test_more_is_told_below_the_heading_and_the_first_of_it_on_a_line() -> None:
    progress = live_view.parse_progress(LINE)
    assert progress is not None
    lines = live_view.progress_table({0: progress}, "0:00:20", more=("first", "second"))
    assert lines[1:3] == ["first", "second"]
    assert len(lines) == 5
    narrow = live_view.progress_table(
        {0: progress}, "x", os.terminal_size((30, 24)), ("how much longer it takes to be told",)
    )
    assert narrow[1:3] == ["how much longer it takes to", "  be told"]
    assert live_view.progress_sentence({0: progress}, "0:00:20", ("first", "second")).endswith(" lost; first")
    assert (
        len(live_view.progress_table(dict.fromkeys(range(30), progress), "x", os.terminal_size((80, 12)), ("a", "b")))
        <= 11
    )
