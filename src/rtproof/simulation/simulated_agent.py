# SPDX-License-Identifier: Apache-2.0
"""Stand in for an agent: with the agent's options, progress lines and record, but in simulated time.

Simulated time runs as fast as the host computes it.
"""

import array
import fcntl
import os
import secrets
import select
import signal
import stat
import sys
import termios
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np

from rtproof import __version__
from rtproof.core.errors import AGENT_SAYS, UserError
from rtproof.record import chunks
from rtproof.record.activations import Activations
from rtproof.record.contents import WHOLE_RUN, Begin, End, EndReason, Fact, Moment, Series
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.simulation import simulated_thread
from rtproof.simulation.simulated_thread import (
    SECOND_NS,
    PlayedStretch,
    SimulatedProcess,
    SimulationRequest,
    SummaryThread,
)

PAUSE_S = 0.0001
EAGER = 200
"""How often the pipe is checked without a pause. The reader is usually quick."""


class ProgressPipe:
    """The connection to the reader of standard error. ``stop``: why the run must end now; None while it goes on."""

    def __init__(self, stops_with_input: bool) -> None:
        self.stop: EndReason | None = None
        self._fd = sys.stderr.fileno()
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._fd).st_mode)
        self._output = select.poll()
        self._output.register(self._fd, 0)
        self._input = select.poll() if stops_with_input else None
        if self._input:
            self._input.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)

    def tell(self, lines: Iterable[str]) -> None:
        """Print lines and wait until they are read. If the reader is gone, the run must stop."""
        try:
            text = "".join(line + "\n" for line in lines).encode()
            while text:
                text = text[os.write(self._fd, text) :]
            looks = 0
            # The system does not report when a pipe becomes empty.
            while self._is_pipe and not self.stop and self._unread():
                looks += 1
                time.sleep(0 if looks < EAGER else PAUSE_S)
        except BrokenPipeError:
            self.stop = EndReason.HOST_GONE
        if self._input and self._input.poll(0) and not os.read(sys.stdin.fileno(), 4096):
            self.stop = EndReason.HOST_GONE

    def _unread(self) -> int:
        """The number of unread bytes in the pipe. BrokenPipeError if the reader is gone."""
        if self._output.poll(0):
            raise BrokenPipeError
        waiting = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
        return waiting[0]

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop = EndReason.INTERRUPTED


MACHINE = "simulated"
KERNEL = "none"
STRETCH_S = 600
SAMPLED_STRETCH_S = 60
"""How many seconds are drawn and written at once; fewer if samples are kept."""
SIMULATE_OPTION = "--simulate"
NEVER = 1 << 62
MOST_EVENTS = 10_000_000


def main(words: Sequence[str]) -> int:
    """Run the command line ``run -o FILE ... --simulate key=value ...``, and return the agent's exit code for it."""
    try:
        asked, process = parse_arguments(words)
        _play(asked, process, words)
    except UserError as problem:
        sys.stderr.write(f"{AGENT_SAYS}{problem}\n")
        return 2
    except OSError as problem:
        sys.stderr.write(f"{AGENT_SAYS}cannot write the record: {problem.strerror}\n")
        return 2
    return 0


def parse_arguments(words: Sequence[str]) -> tuple[SimulationRequest, SimulatedProcess]:
    """The requested run, and the process, whose options follow the agent's. UserError if they make no sense."""
    if not words or words[0] != "run":
        raise UserError("a simulated machine has no settings and no facts: its agent can only run")
    where = list(words).index(SIMULATE_OPTION) if SIMULATE_OPTION in words else len(words)
    options = dict(word.partition("=")[::2] for word in words[where + 1 :])
    asked, process = simulated_thread.parse_request(words[1:where]), simulated_thread.parse_process(options)
    if process.tail.threshold_ns >= asked.period_ns:
        raise UserError("the simulation's events must be less than a period late: take a smaller above=")
    if process.events_per_s * asked.duration_ns / SECOND_NS > MOST_EVENTS:
        raise UserError(f"more than {MOST_EVENTS:,} events are too many to simulate: take fewer episodes=")
    return asked, process


def facts_of(asked: SimulationRequest, process: SimulatedProcess, words: Sequence[str]) -> Mapping[str, object]:
    """The facts about the request. The key ``simulated`` distinguishes the record from that of a measurement."""
    tail = process.tail
    told = (
        f"seed={process.seed} kind={process.kind} episodes={process.episodes} "
        f"above={tail.threshold_ns:.0f}ns scale={tail.scale_ns:.0f}ns shape={tail.shape:g} step={process.step_s}s"
    )
    return {
        "args": " ".join(words),
        "simulated": told,
        "probe": "simulated",
        "period_ns": asked.period_ns,
        "duration_ns": asked.duration_ns,
        "threads": len(asked.cpus),
        "limits_ns": ",".join(map(str, asked.limits_ns)),
        "record": "samples" if asked.keep_samples else "summary",
        **({"claims": asked.claims} if asked.claims else {}),
        **({"until_decided": "yes"} if asked.until_decided else {}),
    }


def _play(asked: SimulationRequest, process: SimulatedProcess, words: Sequence[str]) -> None:
    series = simulated_thread.series_of(asked)
    late = simulated_thread.late_activations(process, asked, series)
    listener = ProgressPipe(asked.stops_with_input)
    with suppress(FileNotFoundError):
        if not Path(asked.output).stat().st_size:
            Path(asked.output).unlink()
    origin = (secrets.token_bytes(16), time.time_ns(), time.monotonic_ns())
    machine = (MACHINE, KERNEL, "a seeded process, not a machine")
    with RecordWriter(asked.output) as writer:
        writer.begin(Begin(chunks.MAJOR, chunks.MINOR, *origin, __version__, *machine))
        for key, value in facts_of(asked, process, words).items():
            writer.fact(Fact(0, WHOLE_RUN, Moment.ASKED, key, str(value)))
        for one in series:
            writer.series(one)
        threads = []
        kind = SeriesWriter if asked.keep_samples else SummaryThread
        for one, late_one in zip(series, late, strict=True):
            written = kind(writer, one, limits_ns=asked.limits_ns)
            generator = np.random.default_rng((process.seed, 2, one.thread))
            threads.append(_Thread(one, late_one, generator, written))
        end_s, reason = _run(threads, listener, asked, process)
        writer.end(End(end_s * SECOND_NS, reason, "", tuple(thread.written.finish() for thread in threads)))


@dataclass
class _Thread:
    """A simulated thread and its current stretch of seconds.

    told: what a progress line shows after each second: obtained, sum, last, least and largest so far. over: for each
    second with a latency above a limit, what follows the thread in its ``over`` lines.
    """

    series: Series
    late: Activations
    generator: np.random.Generator
    written: SummaryThread | SeriesWriter
    now: PlayedStretch = field(init=False)
    told: list[list[int]] = field(default_factory=lambda: [[0, 0, 0, NEVER, 0]])
    over: dict[int, list[str]] = field(default_factory=dict)

    def draw(self, first_second: int, seconds: int, limits_ns: Sequence[int]) -> None:
        """Draw the next stretch, and compute its progress and its seconds above limits."""
        some = simulated_thread.play_stretch(self.series, self.late, first_second, seconds, self.generator)
        if isinstance(self.written, SeriesWriter):
            some = simulated_thread.with_values(some, self.generator)
        self.now = some
        obtained, total, last, least, most = self.told[-1]
        lowest = np.where(some.body.any(axis=1), simulated_thread.BODY_NS[np.argmax(some.body > 0, axis=1)], NEVER)
        highest = some.most()
        columns = (
            obtained + np.cumsum(some.obtained()),
            total + np.cumsum(some.total()),
            np.where(lowest < NEVER, lowest, last),
            np.minimum.accumulate(np.minimum(lowest, least)),
            np.maximum.accumulate(np.maximum(highest, most)),
        )
        self.told = np.stack(columns, axis=1).tolist()
        self.over = {}
        for limit_ns in limits_ns:
            late = some.above(limit_ns)
            for second, worst_ns, (begin_ns, end_ns, count) in late.late_stretches(limit_ns, self.series.period_ns):
                words = f"worst_ns={worst_ns} begin_ns={begin_ns} end_ns={end_ns} count={count}"
                self.over.setdefault(second - first_second, []).append(f"limit_ns={limit_ns} second={second} {words}")

    def keep(self, seconds: int) -> None:
        """Write the first seconds of the stretch."""
        played = self.now.until(seconds)
        if isinstance(self.written, SummaryThread):
            self.written.add(played)
        elif played.values is not None:
            self.written.add(played.values)

    def lines(self, start: int, stop: int, tells_progress: bool) -> Iterator[str]:
        """The lines that the agent prints about the seconds from start to stop of the stretch."""
        name = f"thread={self.series.thread}"
        for at in range(start, stop) if self.over else ():
            for words in self.over.get(at, ()):
                yield f"over {name} {words}"
        if tells_progress:
            obtained, total, last, least, most = self.told[stop - 1]
            now_ns = (self.now.first_second + stop) * SECOND_NS
            yield (
                f"progress time_ns={now_ns} {name} cpu={self.series.cpu} obtained={obtained} missed=0 lost=0 "
                f"last_ns={last} min_ns={min(least, most)} mean_ns={total // max(obtained, 1)} max_ns={most} "
                f"due_ns={now_ns} first_due_ns={self.series.first_due_ns}"
            )


def _run(
    threads: Sequence[_Thread], listener: ProgressPipe, asked: SimulationRequest, process: SimulatedProcess
) -> tuple[int, EndReason]:
    """Play until the end, or until the listener stops the run. The number of seconds played, and why they ended."""
    end_s = asked.duration_ns // SECOND_NS
    size = max(SAMPLED_STRETCH_S if asked.keep_samples else STRETCH_S, process.step_s)
    for first in range(0, end_s, size):
        seconds = min(size, end_s - first)
        for thread in threads:
            thread.draw(first, seconds, asked.limits_ns)
        shown = 0
        while True:
            start, shown = shown, min(shown + process.step_s, seconds)
            listener.tell([line for thread in threads for line in thread.lines(start, shown, asked.tells_progress)])
            if listener.stop or shown == seconds:
                break
        for thread in threads:
            thread.keep(shown)
        if listener.stop:
            return first + shown, listener.stop
    return end_s, EndReason.AS_ASKED
