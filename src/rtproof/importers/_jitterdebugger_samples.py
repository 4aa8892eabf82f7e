# SPDX-License-Identifier: Apache-2.0
"""Every sample of jitterdebugger (option -s): ``samples.raw`` in the folder of -o, and the ``samples.csv`` made of it.

A sample is packed without gaps: the number of the thread (32 bits), the time at which it ran (seconds and nanoseconds)
and the latency (64 bits). The bytes are in the order of the machine that measured. A sample has 28 bytes if the machine
has a time of 64 bits, and 20 if it has one of 32. The CSV has the same: thread, seconds and nanoseconds, latency. The
latency is in whole microseconds, or in nanoseconds (option -N), which only ``results.json`` says. jitterdebugger never
skips a due time, and its period is in whole microseconds. So the due times form a grid, which the times and latencies
must fit; a sample that is missing was lost, because the buffer was full. (Format: jitterdebugger.h, latency_sample, and
jd_samples_csv.c.)
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtproof.core import files
from rtproof.core.bounded import MIB, MOST_BYTES, Room, read_bounded
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, value
from rtproof.core.units import UNITS_NS
from rtproof.importers._tool_output import LARGEST_COUNT, LARGEST_NS, decode_json
from rtproof.importers.jitterdebugger import SCALE_NS, TOOL, Cpu, JitterdebuggerResult
from rtproof.importers.jitterdebugger import looks_like as looks_like_results
from rtproof.summary.imported_samples import ImportedSamples, ImportedThread, Stretch

Int64Array = NDArray[np.int64]
RAW, CSV, RESULTS = "samples.raw", "samples.csv", "results.json"
LARGEST_BYTES = 2_800_000_000
"""A hundred million samples: 27 hours of one thread at a period of 1 ms. Each takes 4 bytes of memory."""
PIECE_BYTES = 140 << 15
"""Of the file at a time. A whole number of samples of 28 bytes, and of 20."""
STRETCH_BYTES = 1_000
"""Of memory, for the objects of a stretch without a gap."""
LONGEST_LINE = 60
MOST_THREADS = 4096
METHOD = "clock_nanosleep"
FEWEST = 3
USUALLY_LOST = 16
"""So many of the last samples of a thread may be lost when it ends: two were."""

SILENT = "it says neither its priority nor which load ran, and not whether it was to stop at a value (option -b)"
RECOVERED = (
    "each latency is the time at which the thread ran, in nanoseconds, less a due time of the grid, which is known to "
    "{0}: no latency is told too small, and none by more than this too large"
)
NOT_WRITTEN = (
    "it counted {0} more than it wrote samples: the last of each thread are lost when it ends, others if its buffer "
    "was full"
)
LARGER = (
    "the largest latency of thread {0} is {1} in results.json, and no sample is that long: it was lost, and no figure "
    "has it"
)
ALONE = "there is no results.json beside it, so the kernel is unknown, and nothing tells how many samples are missing"
CUT_OFF = "its last {0} bytes are no whole sample: it was ended while it wrote"

_CSV_LINE = re.compile(rb"\d{1,5};\d{1,12}\.\d{9};\d{1,20}\r?\n")


def looks_like(path: Path) -> bool:
    """Whether the path is such a file, or the folder with one."""
    return place_of_samples(path) is not None


def place_of_samples(path: Path) -> Path | None:
    """The file with the samples: the path itself, or inside the folder; None for anything else.

    A file of binary samples has no mark. So it must bear its name, or end like it.
    """
    if path.is_dir():
        return next((path / name for name in (RAW, CSV) if (path / name).is_file()), None)
    if path.suffix == ".raw" and path.is_file():
        return path
    return path if path.suffix == ".csv" and path.is_file() and _CSV_LINE.match(_head(path)) else None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(80)
    except OSError:
        return b""


@dataclass(frozen=True)
class _SampleTable:
    """Some of the samples, as columns. thread: its number. time_ns: when it ran. value: latency, in the tool's unit."""

    thread: Int64Array
    time_ns: Int64Array
    value: Int64Array


Tables = Callable[[], Iterator[_SampleTable]]
"""Reads the file from its beginning, because the samples of a day do not fit into memory."""


def read(path: Path) -> tuple[ImportedSamples, Path, int]:
    """The samples at a path for which ``looks_like`` is true, their file, and its size in bytes.

    UserError if they make no sense or contradict the other files of the folder.
    """
    place = place_of_samples(path)
    if place is None:
        raise UserError(f"{path} holds no samples of jitterdebugger")
    try:
        files.refuse_what_waits(place)
        size = place.stat().st_size
        if size > LARGEST_BYTES:
            raise UserError(f"it is larger than {LARGEST_BYTES // MIB:,} MiB")
        return _samples(place, size), place, size
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    except UserError as problem:
        raise UserError(f"{place} should hold samples of jitterdebugger, but {problem}") from None


def _pieces(place: Path) -> Iterator[bytes]:
    with place.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _digest(place: Path) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for piece in _pieces(place):
        found.update(piece)
    return found.digest()


def _samples(place: Path, size: int) -> ImportedSamples:
    tables, cut_off = _tables_of_csv(place) if place.suffix == ".csv" else _tables_of_raw(place, size)
    results = _results(place.parent)
    told = results.sysinfo if results else {}
    grid = _grid(tables, told.get("resolution_in_ns"))
    online = told.get("cpus_online")
    all_cpus = isinstance(online, int) and online == len(grid.threads)
    if results:
        _refuse_contradictions(results, grid)
    lost_maxima = dict(_lost_maxima(results, grid)) if results else {}
    release, version, machine = (str(told.get(key, ""))[:200] for key in ("release", "version", "machine"))
    return ImportedSamples(
        TOOL,
        METHOD,
        grid.period_ns,
        tuple(
            ImportedThread(
                number,
                number if all_cpus else None,
                one.first_due_ns,
                tuple(one.stretches),
                _lost_at_ends(results.cpu[number].count, one, number in lost_maxima) if results else 0,
            )
            for number, one in grid.threads.items()
        ),
        _digest(place),
        machine,
        release,
        version,
        tuple(_files(place.parent)),
        tuple(_notes(cut_off, grid, results)),
    )


def _notes(cut_off: int, grid: "_DueTimeGrid", results: JitterdebuggerResult | None) -> Iterator[str]:
    yield SILENT
    if grid.resolution_ns > 1:
        yield RECOVERED.format(value(max(grid.unsure_ns, 1)))
    if cut_off:
        yield CUT_OFF.format(cut_off)
    if results is None:
        yield ALONE
        return
    yield from (LARGER.format(number, value(most_ns)) for number, most_ns in _lost_maxima(results, grid))
    counted, written = sum(cpu.count for cpu in results.cpu.values()), sum(one.count for one in grid.threads.values())
    if counted > written:
        yield NOT_WRITTEN.format(quantity(counted - written, "activation"))


def _lost_maxima(results: JitterdebuggerResult, grid: "_DueTimeGrid") -> Iterator[tuple[int, int]]:
    """Number and maximum in ns of each thread whose maximum is in none of its samples."""
    for number, one in grid.threads.items():
        most = results.cpu[number].max
        if most > one.most:
            yield number, most * grid.resolution_ns


def _lost_at_ends(counted: int, thread: "_ThreadOnGrid", maximum_lost: bool) -> int:
    """How many of the counted activations ran before the first sample or behind the last one.

    A few are always lost at its end. They are left out unless one of them has the maximum, as with option -b.
    """
    lost = max(min(counted, LARGEST_COUNT) - thread.last_index - 1, 0)
    return lost if maximum_lost or lost > USUALLY_LOST else 0


# The bytes of samples.raw, in each of the forms that they can have.


def _form(order: str, time_bytes: int) -> np.dtype[np.void]:
    word, time, long = f"{order}u4", f"{order}i{time_bytes}", f"{order}u8"
    return np.dtype([("thread", word), ("s", time), ("ns", time), ("value", long)])


FORMS = {
    f"{size * 8} bits, {name}": _form(order, size)
    for name, order in (("little-endian", "<"), ("big-endian", ">"))
    for size in (8, 4)
}
"""By what they say of the machine."""


def _tables_of_raw(place: Path, size: int) -> tuple[Tables, int]:
    """The samples in the one form that all of them fit, and the bytes left over; UserError if none or several do."""
    fitting = [form for form in FORMS.values() if form.itemsize <= size]
    for piece in _pieces(place):
        fitting = [form for form in fitting if _fits(_rows(piece, form))]
        if not fitting:
            break
    # A few samples may fit a form that leaves a rest, too.
    fitting = [form for form in fitting if not size % form.itemsize] or fitting
    if not fitting:
        raise UserError("its bytes are samples in none of their forms: 28 or 20 bytes, of either byte order")
    if len(fitting) > 1:
        raise UserError("its bytes are samples in more than one form, so their values are unknown")
    form = fitting[0]

    def tables() -> Iterator[_SampleTable]:
        for rows in (_rows(piece, form) for piece in _pieces(place)):
            times_ns = rows["s"].astype(np.int64) * UNITS_NS["s"] + rows["ns"].astype(np.int64)
            yield _SampleTable(rows["thread"].astype(np.int64), times_ns, rows["value"].astype(np.int64))

    return tables, size % form.itemsize


def _rows(piece: bytes, form: np.dtype[np.void]) -> NDArray[np.void]:
    return np.frombuffer(piece, form, len(piece) // form.itemsize)


def _fits(rows: NDArray[np.void]) -> bool:
    """Whether all rows can be samples. A latency is never longer than the time since the clock began."""
    if not rows.size:
        return True
    seconds, rest, late = rows["s"], rows["ns"], rows["value"]
    if rows["thread"].max() >= MOST_THREADS or rest.min() < 0 or rest.max() >= UNITS_NS["s"] or seconds.min() < 0:
        return False
    return bool(seconds.max() <= LARGEST_NS // UNITS_NS["s"] and late.max() <= LARGEST_NS)


def _tables_of_csv(place: Path) -> tuple[Tables, int]:
    """The samples of the CSV, and the length of a last line that was cut off."""
    size, end = 0, b""
    for piece in _pieces(place):
        size, end = size + len(piece), piece[-LONGEST_LINE:]
    cut_off = len(end) - end.rfind(b"\n") - 1
    if cut_off == size:
        raise UserError("it has no sample")
    return lambda: _csv_tables(place), cut_off


def _csv_tables(place: Path) -> Iterator[_SampleTable]:
    """UserError for a line of another form. The last one may be cut off."""
    number, begun = 1, b""
    for piece in _pieces(place):
        whole, newline, begun = (begun + piece).rpartition(b"\n")
        lines = (whole + newline).splitlines(keepends=True)
        wrong = next((at for at, line in enumerate(lines, number) if not _CSV_LINE.fullmatch(line)), None)
        if wrong is not None or len(begun) > LONGEST_LINE:
            raise UserError(f"line {wrong or number + len(lines)} is no thread, time and latency")
        number += len(lines)
        if lines:
            yield _table_of_lines(lines)


def _table_of_lines(lines: list[bytes]) -> _SampleTable:
    words = np.array([line.replace(b".", b";").split(b";") for line in lines], dtype="S21")
    try:
        thread, seconds, rest, late = (column.astype(np.int64) for column in words.T)
    except (OverflowError, ValueError):
        raise UserError("a latency is larger than any clock can show") from None
    if seconds.max() > LARGEST_NS // UNITS_NS["s"] or late.max() > LARGEST_NS or thread.max() >= MOST_THREADS:
        raise UserError("a number of it is larger than any thread or clock can show")
    return _SampleTable(thread, seconds * UNITS_NS["s"] + rest, late)


# The grid of due times.


class _MisfitError(Exception):
    """A sample lies on no due time of the grid."""


@dataclass
class _ThreadOnGrid:
    """The samples of one thread so far. Each lies by less than the resolution behind its due time.

    begin_ns: the first due time, known to the resolution. low_ns, high_ns: how far behind due times samples were.
    stretches: the number of an activation, and the latencies in ns from it on. least, most: in the tool's unit.
    """

    begin_ns: int
    period_ns: int
    resolution_ns: int
    room: Room
    stretches: list[Stretch] = field(default_factory=list)
    count: int = 0
    last_index: int = -1
    low_ns: int = LARGEST_NS
    high_ns: int = -LARGEST_NS
    least: int = LARGEST_NS
    most: int = 0

    @property
    def first_due_ns(self) -> int:
        return self.begin_ns + self.high_ns - (self.resolution_ns - 1)

    @property
    def unsure_ns(self) -> int:
        return self.resolution_ns - 1 - (self.high_ns - self.low_ns)

    def add(self, time_ns: Int64Array, value: Int64Array) -> None:
        """Samples that follow. _MisfitError for one that fits no due time."""
        # Rounded down, the latency leaves less than a resolution. Half a period keeps the numbers from its edges.
        after_ns = time_ns - value * self.resolution_ns - self.begin_ns
        index = (after_ns + self.period_ns // 2) // self.period_ns
        steps = np.diff(index, prepend=self.last_index)
        after_ns -= index * self.period_ns
        self.low_ns, self.high_ns = min(self.low_ns, int(after_ns.min())), max(self.high_ns, int(after_ns.max()))
        if np.any(steps <= 0) or self.high_ns - self.low_ns >= self.resolution_ns:
            raise _MisfitError
        self.least, self.most = min(self.least, int(value.min())), max(self.most, int(value.max()))
        # The true first due time is known at the end only: ``finish`` takes what is too much.
        late_ns = after_ns + (value + 1) * self.resolution_ns
        narrow = late_ns.astype(np.uint32) if int(late_ns.max()) < 1 << 32 else late_ns
        starts = [0, *(np.flatnonzero(steps[1:] != 1) + 1).tolist()]
        self.room.take(narrow.nbytes + STRETCH_BYTES * len(starts))
        self.stretches += zip(index[starts].tolist(), np.split(narrow, starts[1:]), strict=True)
        self.count, self.last_index = self.count + value.size, int(index[-1])

    def finish(self) -> None:
        """Count the latencies from the first due time, in place."""
        for _, late_ns in self.stretches:
            # Modulo 2^32 to subtract less than 0 of unsigned numbers, too.
            over_ns = (self.high_ns + 1) % (1 << 32) if late_ns.dtype == np.uint32 else self.high_ns + 1
            np.subtract(late_ns, late_ns.dtype.type(over_ns), out=late_ns)


@dataclass(frozen=True)
class _DueTimeGrid:
    """threads: by number. unsure_ns: how exactly the due times are known."""

    period_ns: int
    resolution_ns: int
    unsure_ns: int
    threads: Mapping[int, _ThreadOnGrid]


def _grid(tables: Tables, resolution: object) -> _DueTimeGrid:
    """The grid that all times fit at the resolution that is told, else at the usual ones."""
    if resolution is not None and (not isinstance(resolution, int) or not 0 < resolution <= SCALE_NS):
        raise UserError(f"results.json beside it has a resolution of {resolution!r} ns, which makes no sense")
    tried = [resolution] if isinstance(resolution, int) else [UNITS_NS["us"], 1]
    room = Room(MOST_BYTES, f"its samples take more than {MOST_BYTES // MIB} MiB of memory")
    found = [grid for each in tried if (grid := _grid_at(tables, each, room))]
    if not found:
        whose = " at the resolution that results.json tells" if resolution is not None else ""
        raise UserError(f"its times and latencies fit no grid of due times{whose}")
    if len(found) > 1:
        raise UserError("nothing tells whether its latencies are microseconds or nanoseconds: results.json is missing")
    return found[0]


def _grid_at(tables: Tables, resolution_ns: int, room: Room) -> _DueTimeGrid | None:
    """The grid of due times, None if the samples fit none."""
    threads: dict[int, _ThreadOnGrid] = {}
    period_ns = 0
    for table in tables():
        if table.value.max() > LARGEST_NS // resolution_ns:
            return None
        of_thread = dict(_by_thread(table))
        period_ns = period_ns or _period_ns([times - values * resolution_ns for times, values in of_thread.values()])
        if period_ns <= 0:
            return None
        for number, (times_ns, values) in of_thread.items():
            begin_ns = int(times_ns[0] - values[0] * resolution_ns)
            thread = threads.setdefault(number, _ThreadOnGrid(begin_ns, period_ns, resolution_ns, room))
            try:
                thread.add(times_ns, values)
            except _MisfitError:
                return None
    for each in threads.values():
        each.finish()
    unsure_ns = max(each.unsure_ns for each in threads.values())
    return _DueTimeGrid(period_ns, resolution_ns, unsure_ns, dict(sorted(threads.items())))


def _by_thread(table: _SampleTable) -> Iterator[tuple[int, tuple[Int64Array, Int64Array]]]:
    """The times and values of each thread."""
    order = np.argsort(table.thread, kind="stable")
    numbers, starts = np.unique(table.thread[order], return_index=True)
    for number, mine in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        yield number, (table.time_ns[mine], table.value[mine])


def _period_ns(due: Iterable[Int64Array]) -> int:
    """The usual distance of two due times, in whole microseconds; below 0 if the times go back."""
    steps = [np.diff(times_ns) for times_ns in due if times_ns.size >= FEWEST]
    if not steps:
        raise UserError("no thread of it has three samples, so its period is unknown")
    return round(float(np.median(np.concatenate(steps))) / UNITS_NS["us"]) * UNITS_NS["us"]


# What lies beside the samples.


def _results(folder: Path) -> JitterdebuggerResult | None:
    """What results.json says; None if there is none. UserError if it is another tool's or makes no sense."""
    text = _text(folder / RESULTS)
    if not text:
        return None
    if not looks_like_results(text):
        raise UserError("the results.json beside it is of another tool")
    return decode_json(text, JitterdebuggerResult)


def _refuse_contradictions(results: JitterdebuggerResult, grid: _DueTimeGrid) -> None:
    """UserError if the samples are not those that results.json counts."""
    for number in sorted({*grid.threads, *results.cpu}):
        if not _agree(grid.threads.get(number), results.cpu.get(number)):
            raise UserError(
                f"the samples of thread {number} contradict number, minimum or maximum in the results.json beside it: "
                "they are of different runs"
            )


def _agree(thread: _ThreadOnGrid | None, told: Cpu | None) -> bool:
    """Whether samples are those of a thread that was told. Where none was lost, minimum and maximum are among them."""
    if thread is None or told is None:
        return told is not None and told.count <= 1
    whole = thread.count == told.count and (thread.least, thread.most) == (told.min, told.max)
    return whole or (thread.count < told.count and told.min <= thread.least and thread.most <= told.max)


KEPT_FILES = {"cmdline": "/proc/cmdline", "cpuinfo": "/proc/cpuinfo", "config.gz": "/proc/config.gz"}
"""Files of the folder, and where they were on the target."""
LARGEST_FILE = 1 << 20


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, path in KEPT_FILES.items():
        place = folder / name
        if place.is_file() and 0 < place.stat().st_size <= LARGEST_FILE:
            yield path, read_bounded(place, LARGEST_FILE)


def _text(place: Path) -> str:
    try:
        return read_bounded(place).decode("utf-8-sig", errors="replace")
    except OSError:
        return ""
