# SPDX-License-Identifier: Apache-2.0
"""Records that an agent on this machine is writing: find them, and follow one of them while it grows.

Everything here only reads. The agent is sent nothing, and does not know that somebody reads.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from rtproof.record.activations import SECOND_NS, number_activations
from rtproof.record.chunks import (
    CHUNK_HEADER,
    SAMPLES_FIELDS,
    SHORT_COUNT,
    ChunkType,
    FileWindow,
    Frame,
    Hole,
    padded,
    walk_chunks,
)
from rtproof.record.contents import Begin, End, Fact, Int64Array, Moment, Series, Slice, View
from rtproof.record.decoding import Tick, decode_payload, decode_seconds
from rtproof.record.encoding import MalformedError
from rtproof.record.reading import decode_block, open_regular
from rtproof.run.live_view import MaximaOverTime, Progress

QUIET_S = 5.0
"""An agent writes at least once a second. After this time without a byte, an agent that is gone writes no more."""
RUN_COMMAND = "run"
OUTPUT_OPTIONS = ("-o", "--output")
PROCESSES = Path("/proc")


def running_records() -> dict[Path, int]:
    """The records that agents on this machine are writing, sorted by path, each with the number of its agent's process.

    An agent is known by its command line: ``run``, and then the option for the record. Processes that the agent has
    forked have the same command line; the one with the smallest number stands for all.
    """
    found: dict[Path, int] = {}
    for pid in sorted(int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()):
        path = _output_of(pid)
        if path is not None and path.name:
            found.setdefault(path, pid)
    return dict(sorted(found.items()))


def writer_of(record: Path) -> int | None:
    """The number of the process that writes this record; None if no agent on this machine does."""
    return running_records().get(record.resolve())


def _output_of(pid: int) -> Path | None:
    """The record that a process writes if it is an agent; None for any other process.

    ``--stop-on-eof`` is what the host gives every agent, also one with another name. ``rtproof run`` itself is none.
    """
    try:
        words = (PROCESSES / str(pid) / "cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
    except OSError:
        return None
    is_agent = "--stop-on-eof" in words or Path(words[0]).name.startswith("rtproof-agent")
    if RUN_COMMAND not in words or not is_agent:
        return None
    given = next(_outputs(words[words.index(RUN_COMMAND) + 1 :]), "-")
    if given == "-":
        return None
    with suppress(OSError):
        return ((PROCESSES / str(pid) / "cwd").readlink() / given).resolve()
    return Path(given) if Path(given).is_absolute() else None


def _outputs(words: list[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in OUTPUT_OPTIONS:
            yield following
        elif word.startswith("--output="):
            yield word.removeprefix("--output=")


class _ThreadSoFar:
    """What the record says of one thread. ``row``: the numbers, as a progress line has them; valid once ``seen``.

    SECONDS chunks count every activation up to a checkpoint. The samples after the last of them are not counted yet.
    """

    def __init__(self, series: Series) -> None:
        self.series = series
        self.row = Progress(0, series.thread, series.cpu, 0, 0, 0, None, 0)
        self.seen = False
        self.maxima = MaximaOverTime()
        self.blocks: list[bytes] = []
        self._recent = (0, 0)

    def checkpoint(self, payload: bytes) -> None:
        """Take a SECONDS chunk. It counts the samples before it, so only the last block is needed."""
        seconds = decode_seconds([payload])
        ran = seconds.obtained > 0
        self._take_largest(seconds.second[ran], seconds.max[ran])
        del self.blocks[:-1]
        self.take_blocks()
        self._count(int(seconds.obtained.sum()) - self._recent[0], int(seconds.missed.sum()) - self._recent[1])
        self._recent = (0, 0)

    def take_blocks(self) -> None:
        """Take the samples that came after the last checkpoint."""
        for payload in self.blocks:
            block = decode_block(memoryview(payload))
            missed = np.zeros(block.values.size, np.int64)
            missed[block.gap_position] = block.gap_missed
            some = number_activations(self.series, block.first_index, block.first_due_ns, block.values, missed)
            obtained, skipped = some.value.size, int(missed.sum())
            self._recent = (self._recent[0] + obtained, self._recent[1] + skipped)
            self._count(obtained, skipped)
            self.row = replace(self.row, last_ns=int(some.value[-1]), time_ns=int(some.due_ns[-1]))
            self._take_largest(some.due_ns // SECOND_NS, some.value)
        self.blocks.clear()

    def _count(self, obtained: int, missed: int) -> None:
        self.row = replace(self.row, obtained=self.row.obtained + obtained, missed=self.row.missed + missed)

    def _take_largest(self, second: Int64Array, value: Int64Array) -> None:
        if value.size:
            largest = int(value.max())
            self.row = replace(self.row, max_ns=max(self.row.max_ns, largest) if self.seen else largest)
            self.seen = True
            for each in np.unique(second):
                self.maxima.add(int(each), int(value[second == each].max()))


class RecordFollower:
    """Reads a record's new whole chunks each time it is asked. A torn chunk at the end is read once it is whole.

    ``end``: the END chunk, once it is there. ``time_ns``: of the newest chunk that has a time each second.
    """

    def __init__(self, record: Path) -> None:
        self.path = record
        self.begin: Begin | None = None
        self.end: End | None = None
        self.time_ns = 0
        self._at = 0
        self._facts: dict[str, str] = {}
        self._threads: dict[int, _ThreadSoFar] = {}
        self._by_series: dict[int, _ThreadSoFar] = {}

    def read(self) -> bool:
        """Take the new chunks; whether there were any. RecordError if the record cannot be read."""
        before = self._at
        with open_regular(str(self.path)) as file:
            window = FileWindow(file.fileno(), os.fstat(file.fileno()).st_size)
            for part in walk_chunks(window, start=before):
                if isinstance(part, Hole):
                    if part.offset + part.length >= window.size:
                        break
                    self._at = part.offset + part.length
                    continue
                self._at = part.offset + CHUNK_HEADER.size + padded(len(part.payload))
                with suppress(MalformedError):
                    self._take(part)
        for thread in self._threads.values():
            with suppress(MalformedError):
                thread.take_blocks()
        return self._at > before

    def asked(self, key: str) -> str:
        """The value of a fact that was asked of the whole run; "" if there is none."""
        return self._facts.get(key, "")

    def asked_number(self, key: str) -> int:
        value = self.asked(key)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0

    def threads(self) -> dict[int, Progress]:
        """The numbers of each thread of which there is a value, by the thread's number."""
        seen = {number: one.row for number, one in self._threads.items() if one.seen}
        return {number: replace(row, time_ns=row.time_ns or self.time_ns) for number, row in seen.items()}

    def maxima(self) -> dict[int, MaximaOverTime]:
        return {number: one.maxima for number, one in self._threads.items()}

    @property
    def limits_ns(self) -> list[int]:
        return [int(word) for word in self.asked("limits_ns").split(",") if word.isascii() and word.isdigit()]

    def quiet_s(self) -> float:
        return time.time() - self.path.stat().st_mtime

    def _take(self, frame: Frame) -> None:
        if frame.type in (ChunkType.SAMPLES, ChunkType.SECONDS):
            self._take_values(frame.type, bytes(frame.payload))
            return
        item = decode_payload(frame.type, frame.payload)
        if isinstance(item, Series):
            self._add(item)
        elif isinstance(item, Tick):
            self.time_ns = item.time_ns
        elif isinstance(item, Fact) and item.moment is Moment.ASKED:
            self._facts[item.key] = item.value
        elif isinstance(item, Slice) and item.view is View.OBSERVED and item.series in self._by_series:
            thread = self._by_series[item.series]
            thread.row = replace(thread.row, lost=thread.row.lost + item.lost)
        elif isinstance(item, Begin):
            self.begin = item
        elif isinstance(item, End):
            self.end = item

    def _add(self, series: Series) -> None:
        """The last field of a thread, the whole reaction, is the one that is shown."""
        shown = self._threads.get(series.thread)
        if shown is None or shown.series.id < series.id:
            self._threads[series.thread] = _ThreadSoFar(series)
            self._by_series = {one.series.id: one for one in self._threads.values()}

    def _take_values(self, kind: int, payload: bytes) -> None:
        least = SAMPLES_FIELDS.size if kind == ChunkType.SAMPLES else SHORT_COUNT.size
        thread = self._by_series.get(SHORT_COUNT.unpack_from(payload)[0]) if len(payload) >= least else None
        if thread is None:
            return
        if kind == ChunkType.SAMPLES:
            thread.blocks.append(payload)
        else:
            thread.checkpoint(payload)
