# SPDX-License-Identifier: Apache-2.0
"""Parse the lines that the agent prints, and draw the live view of a run from them.

A line has a prefix and then pairs of a name and a number. There are progress lines, and ``over`` lines for each second
above a limit. A ``Watcher`` of these lines may end the run.
"""

import contextlib
import os
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Protocol, TextIO, TypeVar

from rtproof.core.printable import clean
from rtproof.core.sparkline import sparklines_of

Kind = TypeVar("Kind")
LARGEST_NUMBER = (1 << 63) - 1
SECOND_NS = 1_000_000_000


def parse_numbers(line: str, prefix: str, kind: type[Kind]) -> Kind | None:
    """Parse a line with this prefix into a dataclass of whole numbers.

    None if the prefix or a number is missing, or if a number is larger than any that the agent has.
    """
    if not line.startswith(prefix):
        return None
    pairs = dict(word.partition("=")[::2] for word in line.removeprefix(prefix).split())
    known = [field for field in fields(kind) if field.name in pairs or field.default is MISSING]  # type: ignore[arg-type]
    try:
        numbers = {field.name: int(pairs[field.name]) for field in known}
    except (KeyError, ValueError):
        return None
    return kind(**numbers) if all(-LARGEST_NUMBER <= number <= LARGEST_NUMBER for number in numbers.values()) else None


OVER_PREFIX = "over "


@dataclass(frozen=True)
class OverLine:
    """One ``over`` line of the agent: in one second of its due times, a thread had latencies above a limit.

    ``worst_ns``: the largest of these latencies. ``begin_ns``, ``end_ns``: the first and the last late time; the end is
    before the begin if the agent does not print them. ``count``: how many activations were late between them; 0 if the
    agent does not print it.
    """

    thread: int
    limit_ns: int
    second: int
    worst_ns: int
    begin_ns: int = 0
    end_ns: int = -1
    count: int = 0

    @property
    def stretch(self) -> tuple[int, int, int] | None:
        """The first and the last late time, and the count; None if the agent does not print the times."""
        return (self.begin_ns, self.end_ns, self.count) if self.end_ns >= self.begin_ns else None


class Watcher(Protocol):
    """Follows a run and says when the run may end, because every limit is decided: ``rtproof.judge.watch``."""

    def over(
        self, thread: int, limit_ns: int, second: int, worst_ns: int, stretch: tuple[int, int, int] | None = None
    ) -> None: ...

    def invalid(self, reason: str) -> None: ...

    def progress(
        self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0, first_due_ns: int | None = None
    ) -> bool: ...

    def lines(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Progress:
    """One progress line of the agent: the numbers of one thread so far.

    ``time_ns``: time since the start of measuring. ``due_ns``: the numbers contain every activation that was due
    earlier; 0 from an agent that does not print it. ``first_due_ns``: the due time of the first activation that ran;
    None from an agent that does not print it. ``recent``, ``recent_max_ns``: how many ran since the line before,
    and the largest latency of these; 0 from an agent that does not print them. ``last_ns``: None if it is not known,
    as in a record without samples.
    """

    time_ns: int
    thread: int
    cpu: int
    obtained: int
    missed: int
    lost: int
    last_ns: int | None
    max_ns: int
    due_ns: int = 0
    recent: int = 0
    recent_max_ns: int = 0
    first_due_ns: int | None = None


PROGRESS_PREFIX = "progress "


def parse_over(line: str) -> OverLine | None:
    return parse_numbers(line, OVER_PREFIX, OverLine)


def parse_progress(line: str) -> Progress | None:
    return parse_numbers(line, PROGRESS_PREFIX, Progress)


MOST_ROWS = 16
FRAME_INTERVAL_S = 0.5
LINE_INTERVAL_S = 5.0
TABLE_COLUMNS = {"thread": 6, "cpu": 4, "n": 11, "missed": 7, "rate/s": 7, "last": 9, "max": 10}
"""Headings and widths of the table. What a terminal has beside it shows the maximum over time."""
FEWEST_CELLS, MOST_CELLS = 8, 60
MOST_SECONDS = 10_000_000
"""Seconds beyond this number, 115 days, are in no picture."""
USUAL_SIZE = os.terminal_size((96, 24))


def _us(nanoseconds: int | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1_000:,.1f}"


def clock_text(time_ns: int) -> str:
    """A time as hours, minutes and seconds: "1:02:03"."""
    minutes, seconds = divmod(max(time_ns, 0) // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _terminal_size(out: TextIO) -> os.terminal_size:
    """The size of the terminal, or the usual size. Some terminals, for example serial ones, report 0 columns."""
    try:
        size = os.get_terminal_size(out.fileno())
    except OSError:
        return USUAL_SIZE
    return size if size.columns and size.lines else USUAL_SIZE


def worst_first(threads: dict[int, Progress]) -> list[Progress]:
    """The threads sorted by their largest latency, largest first. Threads with equal ones are sorted by number."""
    return sorted(threads.values(), key=lambda row: (-row.max_ns, row.thread))


class MaximaOverTime:
    """The largest latency of each equal part of the run so far, in ns; 0 for a part in which nothing ran."""

    def __init__(self) -> None:
        self._parts: list[int] = []
        self._seconds_in_part = 1

    def add(self, second: int, largest_ns: int) -> None:
        """Take the largest latency of a second, which may be told again. Of too many parts each two become one."""
        if not 0 <= second < MOST_SECONDS:
            return
        while second // self._seconds_in_part >= MOST_CELLS:
            even = [*self._parts, 0]
            self._parts = [max(pair) for pair in zip(even[::2], even[1::2], strict=False)]
            self._seconds_in_part *= 2
        at = second // self._seconds_in_part
        self._parts += [0] * (at + 1 - len(self._parts))
        self._parts[at] = max(self._parts[at], largest_ns)

    def parts(self, most: int) -> list[int]:
        """At most so many equal parts."""
        count = len(self._parts)
        found = [0] * min(count, most)
        for at, largest in enumerate(self._parts):
            place = at * len(found) // count
            found[place] = max(found[place], largest)
        return found


def _aligned(cells: Iterable[object]) -> str:
    return " ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, TABLE_COLUMNS.values(), strict=True))


def can_redraw(out: TextIO) -> bool:
    """Whether the view may be drawn again in its place: on a terminal that knows escape codes."""
    return out.isatty() and os.environ.get("TERM") != "dumb"


def shows_colours(out: TextIO) -> bool:
    """Whether to write colours: on a terminal that knows escape codes, if the user wants them (https://no-color.org)."""
    return can_redraw(out) and not os.environ.get("NO_COLOR")


WORD_COLOURS = {
    **dict.fromkeys(("HELD", "PROVEN"), "\x1b[1;32m"),
    **dict.fromkeys(("EXCEEDED", "REFUTED"), "\x1b[1;31m"),
}
"""Escape codes (ECMA-48) of the states that the lines about the run name."""


class LiveView:
    """Takes progress lines as they arrive, and draws at most once per interval.

    ``more``: returns further lines about the run, the most important first. It is called at each drawing. Lines that
    begin with a space are shown on a terminal only.
    ``length_ns``: how long the run will be; 0: not known. ``silent``: what stands in place of the threads' numbers, if
    they have none before the end.
    """

    def __init__(  # noqa: PLR0913 - what a view shows
        self,
        out: TextIO,
        goal: str,
        on_terminal: bool,
        now: Callable[[], float] = time.monotonic,
        more: Callable[[], Sequence[str]] = tuple,
        *,
        length_ns: int = 0,
        silent: str = "",
    ) -> None:
        self._out = out
        self.goal = goal
        self._on_terminal = on_terminal
        self._now = now
        self._more = more
        self.length_ns, self.silent = length_ns, silent
        self._before: dict[int, Progress] = {}
        self._interval_s = FRAME_INTERVAL_S if on_terminal else LINE_INTERVAL_S
        self.threads: dict[int, Progress] = {}
        self._burst: set[int] = set()
        self._drawn_at = now()
        self._drawn_rows = 0
        self._maxima: dict[int, MaximaOverTime] = {}
        self._rates: dict[int, float] = {}

    def show(self, threads: dict[int, Progress], maxima: dict[int, MaximaOverTime], *, last: bool = False) -> None:
        """Take the numbers of all threads at once, with their maxima over time, in place of progress lines.

        Draws if these are the first or the last numbers, or if the last drawing is an interval ago.
        """
        self.threads, self._maxima = threads, maxima
        if last or not self._before or self._now() - self._drawn_at >= self._interval_s:
            self.draw(last=last)

    def feed(self, progress: Progress) -> None:
        """Take one progress line. A thread that reports for the second time shows that all threads have reported.

        Only then is the view drawn, so that it shows all threads together.
        """
        if progress.thread in self._burst:
            self._burst.clear()
            if self._now() - self._drawn_at >= self._interval_s:
                self.draw()
        self._burst.add(progress.thread)
        self.threads[progress.thread] = progress
        maxima = self._maxima.setdefault(progress.thread, MaximaOverTime())
        maxima.add(progress.time_ns // SECOND_NS, progress.recent_max_ns if progress.recent else 0)

    def say(self, text: str) -> None:
        """Print a sentence above the table, and draw the table again below the sentence."""
        self._write(self._erase() + clean(text) + "\n")
        self._drawn_rows = 0
        if self._on_terminal and self.threads:
            self.draw()

    def draw(self, *, last: bool = False) -> None:
        """Draw the threads' newest numbers. Nothing is drawn before the first progress line.

        The last drawing leaves out the further lines about the run: the result follows and says the same exactly.
        """
        if not self.threads:
            return
        more = () if last else self._more()
        rows = worst_first(self.threads)
        worst = rows[0]
        if self.silent:
            lines = [f"{clock_text(max(row.time_ns for row in rows))} of {self.goal}: {self.silent}"]
        elif self._on_terminal:
            self._take_rates()
            lines = self._table(rows, more)
        else:
            counts = (sum(row.obtained for row in rows), sum(row.missed for row in rows), sum(row.lost for row in rows))
            obtained, missed, lost = (f"{count:,}" for count in counts)
            lines = [
                f"{clock_text(worst.time_ns)} of {self.goal}: {obtained} activations, max {_us(worst.max_ns)} us "
                f"(thread {worst.thread}, CPU {worst.cpu}), {missed} missed, {lost} lost",
                *(f"  {line}" for line in more if not line.startswith(" ")),
            ]
        self._before = dict(self.threads)
        self._write(self._erase() + "".join(line + "\n" for line in lines))
        self._drawn_rows = len(lines)
        self._drawn_at = self._now()

    def _take_rates(self) -> None:
        """The activations per second of each thread since the earlier view. The agent may count late, many at once."""
        if self.threads == self._before:
            return
        self._rates = {}
        for number, row in self.threads.items():
            if old := self._before.get(number):
                span_ns = (row.due_ns or row.time_ns) - (old.due_ns or old.time_ns)
                if span_ns > 0:
                    self._rates[number] = (row.obtained - old.obtained) / span_ns * 1e9

    def _table(self, rows: Sequence[Progress], more: Sequence[str]) -> list[str]:
        """The view on a terminal: lines for the run, and a line for each of the worst threads that fit.

        The maxima over time stand beside them if there is room.
        """
        size, lost = _terminal_size(self._out), sum(row.lost for row in rows)
        told = (*more, *([f"{lost:,} values were lost: too many came at once"] if lost else []))
        also = [part for line in told for part in textwrap.wrap(line, size.columns - 1, subsequent_indent="  ")]
        shown = rows[: max(1, min(MOST_ROWS, size.lines - 3 - len(also)))]
        left_ns = self.length_ns - max(row.time_ns for row in rows)
        left = f", {clock_text(left_ns)} left" if self.length_ns else ""
        heading = f"{clock_text(rows[0].time_ns)} of {self.goal}{left}   latency in us"
        if len(shown) < len(rows):
            heading += f", the worst {len(shown)} of {len(rows)} threads"
        table = [_aligned(TABLE_COLUMNS)]
        for row in shown:
            rate = self._rates.get(row.thread)
            counts = f"{row.obtained:,}", f"{row.missed:,}", "-" if rate is None else f"{rate:,.0f}"
            table.append(_aligned((row.thread, row.cpu, *counts, _us(row.last_ns), _us(row.max_ns))))
        cells = min(size.columns - 3 - len(table[0]), MOST_CELLS)
        if self._maxima and cells >= FEWEST_CELLS:
            over_time = [
                "max over time"[:cells],
                *sparklines_of([self._maxima[row.thread].parts(cells) for row in shown]),
            ]
            table = [f"{line}  {part}".rstrip() for line, part in zip(table, over_time, strict=True)]
        lines = [line[: size.columns - 1] for line in (heading, *also, *table)]
        if shows_colours(self._out):
            for word, colour in WORD_COLOURS.items():
                lines = [line.replace(word, f"{colour}{word}\x1b[0m") for line in lines]
        return lines

    def _erase(self) -> str:
        """Escape codes (ECMA-48) that go up to the first drawn row and clear the screen from there on."""
        return f"\x1b[{self._drawn_rows}A\x1b[J" if self._on_terminal and self._drawn_rows else ""

    def _write(self, text: str) -> None:
        """Write the text, if anybody still reads. The run goes on without its view when the reader has gone."""
        with contextlib.suppress(OSError):
            self._out.write(text)
            self._out.flush()
