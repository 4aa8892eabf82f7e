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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, value
from rtproof.core.units import UNITS_NS
from rtproof.importers._tool_output import LARGEST_COUNT, LARGEST_NS, decode_json
from rtproof.importers.jitterdebugger import SCALE_NS, TOOL, Cpu, JitterdebuggerResult
from rtproof.importers.jitterdebugger import looks_like as looks_like_results
from rtproof.summary.imported_samples import ImportedSamples, ImportedThread

Int64Array = NDArray[np.int64]
RAW, CSV, RESULTS = "samples.raw", "samples.csv", "results.json"
LARGEST_BYTES = 512 * 1024 * 1024
"""Eighteen million samples: five hours of one thread at a period of 1 ms."""
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
NOT_BINNED = "{0:,} of these lie beyond the scale of its own histogram (1 ms), which leaves them away"
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
    """The samples as columns. thread: its number. time_ns: when it ran. value: its latency, in the tool's unit."""

    thread: Int64Array
    time_ns: Int64Array
    value: Int64Array
    cut_off: int = 0


def read(path: Path) -> tuple[ImportedSamples, Path, int]:
    """The samples at a path for which ``looks_like`` is true, their file, and its size in bytes.

    UserError if they make no sense or contradict the other files of the folder.
    """
    place = place_of_samples(path)
    if place is None:
        raise UserError(f"{path} holds no samples of jitterdebugger")
    content = _content(place)
    try:
        return _samples(content, place), place, len(content)
    except UserError as problem:
        raise UserError(f"{place} should hold samples of jitterdebugger, but {problem}") from None


def _content(place: Path) -> bytes:
    try:
        files.refuse_what_waits(place)
        if place.stat().st_size > LARGEST_BYTES:
            raise UserError(f"{place} is larger than {LARGEST_BYTES // 1024 // 1024} MiB, which is not read at once")
        return place.read_bytes()
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None


def _samples(content: bytes, place: Path) -> ImportedSamples:
    table = _of_csv(content) if place.suffix == ".csv" else table_of_raw(content)
    results = _results(place.parent)
    told = results.sysinfo if results else {}
    grid = _grid(table, told.get("resolution_in_ns"))
    online = told.get("cpus_online")
    all_cpus = isinstance(online, int) and online == len(grid.threads)
    if results:
        _refuse_contradictions(results, table, grid)
    lost_maxima = dict(_lost_maxima(results, table, grid)) if results else {}
    release, version, machine = (str(told.get(key, ""))[:200] for key in ("release", "version", "machine"))
    return ImportedSamples(
        TOOL,
        METHOD,
        grid.period_ns,
        tuple(
            ImportedThread(
                number,
                number if all_cpus else None,
                due_ns,
                index,
                late_ns,
                _lost_at_ends(results.cpu[number].count, index, number in lost_maxima) if results else 0,
            )
            for number, (due_ns, index, late_ns) in grid.threads.items()
        ),
        hashlib.blake2b(content, digest_size=16).digest(),
        machine,
        release,
        version,
        tuple(_files(place.parent)),
        tuple(_notes(table, grid, results)),
    )


def _notes(table: _SampleTable, grid: "_DueTimeGrid", results: JitterdebuggerResult | None) -> Iterator[str]:
    yield SILENT
    if grid.resolution_ns > 1:
        yield RECOVERED.format(value(max(grid.unsure_ns, 1)))
    if table.cut_off:
        yield CUT_OFF.format(table.cut_off)
    if results is None:
        yield ALONE
        return
    yield from (LARGER.format(number, value(most_ns)) for number, most_ns in _lost_maxima(results, table, grid))
    counted = sum(cpu.count for cpu in results.cpu.values())
    if counted > table.thread.size:
        yield NOT_WRITTEN.format(quantity(counted - table.thread.size, "activation"))
    binned = sum(sum(cpu.histogram.values()) for cpu in results.cpu.values())
    if counted > binned:
        yield f"results.json counts {quantity(counted, 'activation')}; {NOT_BINNED.format(counted - binned)}"


def _lost_maxima(results: JitterdebuggerResult, table: _SampleTable, grid: "_DueTimeGrid") -> Iterator[tuple[int, int]]:
    """Number and maximum in ns of each thread whose maximum is in none of its samples."""
    for number in grid.threads:
        most = results.cpu[number].max
        if most > int(table.value[table.thread == number].max()):
            yield number, most * grid.resolution_ns


def _lost_at_ends(counted: int, index: Int64Array, maximum_lost: bool) -> int:
    """How many of the counted activations ran before the first sample or behind the last one.

    A few are always lost at its end. They are left out unless one of them has the maximum, as with option -b.
    """
    lost = max(min(counted, LARGEST_COUNT) - int(index[-1] - index[0] + 1), 0)
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


def table_of_raw(content: bytes) -> _SampleTable:
    """The samples in the one form that all of them fit; UserError if none or several do."""
    fitting = [form for form in FORMS.values() if _fits(np.frombuffer(content, form, len(content) // form.itemsize))]
    # A few samples may fit a form that leaves a rest, too.
    fitting = [form for form in fitting if not len(content) % form.itemsize] or fitting
    if not fitting:
        raise UserError("its bytes are samples in none of their forms: 28 or 20 bytes, of either byte order")
    if len(fitting) > 1:
        raise UserError("its bytes are samples in more than one form, so their values are unknown")
    form = fitting[0]
    rows = np.frombuffer(content, form, len(content) // form.itemsize)
    times_ns = rows["s"].astype(np.int64) * UNITS_NS["s"] + rows["ns"].astype(np.int64)
    return _SampleTable(
        rows["thread"].astype(np.int64), times_ns, rows["value"].astype(np.int64), len(content) % form.itemsize
    )


def _fits(rows: NDArray[np.void]) -> bool:
    """Whether all rows can be samples. A latency is never longer than the time since the clock began."""
    if not rows.size:
        return False
    seconds, rest, late = rows["s"], rows["ns"], rows["value"]
    if rows["thread"].max() >= MOST_THREADS or rest.min() < 0 or rest.max() >= UNITS_NS["s"] or seconds.min() < 0:
        return False
    return bool(seconds.max() <= LARGEST_NS // UNITS_NS["s"] and late.max() <= LARGEST_NS)


def _of_csv(content: bytes) -> _SampleTable:
    """The samples of the CSV; UserError for a line of another form. The last one may be cut off."""
    lines, cut_off = _whole_lines(content)
    words = np.array([line.replace(b".", b";").split(b";") for line in lines], dtype="S21")
    try:
        thread, seconds, rest, late = (column.astype(np.int64) for column in words.T)
    except (OverflowError, ValueError):
        raise UserError("a latency is larger than any clock can show") from None
    if seconds.max() > LARGEST_NS // UNITS_NS["s"] or late.max() > LARGEST_NS or thread.max() >= MOST_THREADS:
        raise UserError("a number of it is larger than any thread or clock can show")
    return _SampleTable(thread, seconds * UNITS_NS["s"] + rest, late, cut_off)


def _whole_lines(content: bytes) -> tuple[list[bytes], int]:
    """The lines, and the length of a last one that is cut off. UserError for a line of another form, or without any."""
    lines = content.splitlines(keepends=True)
    cut_off = len(lines.pop()) if lines and not _CSV_LINE.fullmatch(lines[-1]) and not lines[-1].endswith(b"\n") else 0
    wrong = next((number for number, line in enumerate(lines, 1) if not _CSV_LINE.fullmatch(line)), None)
    if wrong is not None:
        raise UserError(f"line {wrong} is no thread, time and latency")
    if not lines:
        raise UserError("it has no sample")
    return lines, cut_off


# The grid of due times.


@dataclass(frozen=True)
class _DueTimeGrid:
    """threads: by number, the first due time, the number of each activation, and its latency in ns.

    unsure_ns: how exactly the due times are known.
    """

    period_ns: int
    resolution_ns: int
    unsure_ns: int
    threads: Mapping[int, tuple[int, Int64Array, Int64Array]]


def _grid(table: _SampleTable, resolution: object) -> _DueTimeGrid:
    """The grid that all times fit at the resolution that is told, else at the usual ones."""
    if resolution is not None and (not isinstance(resolution, int) or not 0 < resolution <= SCALE_NS):
        raise UserError(f"results.json beside it has a resolution of {resolution!r} ns, which makes no sense")
    tried = [resolution] if isinstance(resolution, int) else [UNITS_NS["us"], 1]
    found = [grid for each in tried if (grid := _grid_at(table, each))]
    if not found:
        whose = " at the resolution that results.json tells" if resolution is not None else ""
        raise UserError(f"its times and latencies fit no grid of due times{whose}")
    if len(found) > 1:
        raise UserError("nothing tells whether its latencies are microseconds or nanoseconds: results.json is missing")
    return found[0]


def _grid_at(table: _SampleTable, resolution_ns: int) -> _DueTimeGrid | None:
    """The grid of due times, None if the samples fit none."""
    if table.value.max() > LARGEST_NS // resolution_ns:
        return None
    threads = {int(each): table.thread == each for each in np.unique(table.thread)}
    due = {each: table.time_ns[mine] - table.value[mine] * resolution_ns for each, mine in threads.items()}
    period_ns = _period_ns(due.values())
    if period_ns <= 0:
        return None
    fitted = {each: _fitted(times_ns, period_ns, resolution_ns) for each, times_ns in due.items()}
    if any(one is None for one in fitted.values()):
        return None
    unsure_ns, found = 0, {}
    for each, one in fitted.items():
        if one is None:
            continue
        first_ns, index, unsure = one
        unsure_ns = max(unsure_ns, unsure)
        found[each] = (first_ns, index, table.time_ns[threads[each]] - first_ns - index * period_ns)
    return _DueTimeGrid(period_ns, resolution_ns, unsure_ns, found)


def _period_ns(due: Iterable[Int64Array]) -> int:
    """The usual distance of two due times, in whole microseconds; below 0 if the times go back."""
    steps = [np.diff(times_ns) for times_ns in due if times_ns.size >= FEWEST]
    if not steps:
        raise UserError("no thread of it has three samples, so its period is unknown")
    return round(float(np.median(np.concatenate(steps))) / UNITS_NS["us"]) * UNITS_NS["us"]


def _fitted(due_ns: Int64Array, period_ns: int, resolution_ns: int) -> tuple[int, Int64Array, int] | None:
    """First due time, number of each activation and how unsure the due times are; None if they fit no grid.

    due_ns: the time of each sample less its latency, which was rounded down. So each lies by less than the resolution
    behind its due time.
    """
    # Rounded down, the latency leaves less than a resolution. Half of it keeps the numbers from the edge of a period.
    index = (due_ns - due_ns[0] + period_ns // 2) // period_ns
    if np.any(np.diff(index) <= 0):
        return None
    rest_ns = due_ns - index * period_ns
    low_ns, high_ns = int(rest_ns.min()), int(rest_ns.max())
    if high_ns - low_ns >= resolution_ns:
        return None
    return high_ns - (resolution_ns - 1), index, resolution_ns - 1 - (high_ns - low_ns)


# What lies beside the samples.


def _results(folder: Path) -> JitterdebuggerResult | None:
    """What results.json says; None if there is none. UserError if it is another tool's or makes no sense."""
    text = _text(folder / RESULTS)
    if not text:
        return None
    if not looks_like_results(text):
        raise UserError("the results.json beside it is of another tool")
    return decode_json(text, JitterdebuggerResult)


def _refuse_contradictions(results: JitterdebuggerResult, table: _SampleTable, grid: _DueTimeGrid) -> None:
    """UserError if the samples are not those that results.json counts."""
    if set(grid.threads) - set(results.cpu):
        raise UserError("it has threads that the results.json beside it does not know: they are of different runs")
    for number, told in results.cpu.items():
        values = table.value[table.thread == number]
        if not values.size and told.count > 1:
            raise UserError(
                f"thread {number} has no sample, and the results.json beside it counts {told.count:,}: they are of "
                "different runs"
            )
        if values.size > told.count:
            raise UserError(
                f"thread {number} has {values.size:,} samples, and the results.json beside it counts {told.count:,}: "
                "they are of different runs"
            )
        if values.size and _unlike(values, told):
            raise UserError(
                f"the latencies of thread {number} contradict minimum and maximum in the results.json beside it: they "
                "are of different runs"
            )


def _unlike(values: Int64Array, told: Cpu) -> bool:
    """Whether samples of a thread contradict its minimum and maximum. Where none was lost, both are among them."""
    least, most = int(values.min()), int(values.max())
    whole = values.size == told.count
    return most > told.max or least < told.min or (whole and (least, most) != (told.min, told.max))


KEPT_FILES = {"cmdline": "/proc/cmdline", "cpuinfo": "/proc/cpuinfo", "config.gz": "/proc/config.gz"}
"""Files of the folder, and where they were on the target."""
LARGEST_FILE = 1 << 20


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, path in KEPT_FILES.items():
        place = folder / name
        if place.is_file() and 0 < place.stat().st_size <= LARGEST_FILE:
            yield path, place.read_bytes()


def _text(place: Path) -> str:
    try:
        if not place.is_file() or place.stat().st_size > LARGEST_FILE * 64:
            return ""
        return place.read_text("utf-8-sig", errors="replace")
    except OSError:
        return ""
