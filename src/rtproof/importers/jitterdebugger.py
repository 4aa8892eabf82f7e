# SPDX-License-Identifier: Apache-2.0
"""The file ``results.json`` of jitterdebugger, versions 2 and 3.

The histogram has a fixed number of bins, up to a millisecond. Larger values are counted but are in no bin, and one
value of each CPU is lost at the end. The file does not hold period, priority and duration. Unlike cyclictest,
jitterdebugger also measures the activations that follow a late one, each with its lateness. (Format:
jitterdebugger.c, dump_stats and write_stats.)

``samples.raw`` in the same folder (options -o, -s) has every sample. It is packed without gaps: the number of the
thread (32 bits), the time at which it ran (seconds and nanoseconds) and the latency (64 bits). The bytes are in the
order of the machine that measured. A sample has 28 bytes if the machine has a time of 64 bits, and 20 if it has one of
32. The latency is in whole microseconds, or in nanoseconds (option -N), which only ``results.json`` says.
jitterdebugger never skips a due time, and its period is in whole microseconds. So the due times form a grid, which the
times and latencies must fit; a sample that is missing was lost, because the buffer was full. (Format: jitterdebugger.h,
latency_sample.)
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rtproof.core import bounded, files
from rtproof.core.bounded import MIB, Room, read_bounded
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, value
from rtproof.core.units import UNITS_NS
from rtproof.importers._rt_tests import RtTestsResult, figures_of
from rtproof.importers._tool_output import LARGEST_COUNT, LARGEST_NS, decode_json, imported_measurement
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.imported_samples import ImportedSamples, ImportedThread, Stretch

TOOL = "jitterdebugger"
SCALE_NS = 1_000_000
"""End of the scale of the histogram: a millisecond, at any resolution."""
SILENT = "it says neither its period nor its priority nor how long it ran"


def looks_like(text: str) -> bool:
    return text.lstrip().startswith("{") and '"cpu"' in text and '"count"' in text and '"histogram"' in text


def read(text: str) -> ImportedHistogram:
    """The measurement in the document; UserError if the document has another form."""
    document = decode_json(text, RtTestsResult)
    if not document.cpu:
        raise UserError("it has no CPU")
    width_ns = document.sysinfo.get("resolution_in_ns", 1_000)
    if not isinstance(width_ns, int) or not 0 < width_ns <= SCALE_NS:
        raise UserError(f"its resolution of {width_ns!r} ns makes no sense")
    # It numbers its threads. Only with one on each CPU are these the CPUs.
    everywhere = document.sysinfo.get("cpus_online") in (None, len(document.cpu))
    parts = [
        replace(part, cpu=part.number if everywhere else None)
        for part in (figures_of(number, each, width_ns, SCALE_NS) for number, each in sorted(document.cpu.items()))
    ]
    facts = tuple((key, str(value)) for key, value in document.sysinfo.items() if str(value))
    return imported_measurement(
        TOOL, "results", parts, width_ns, scale_ns=SCALE_NS, left_out=len(parts), facts=facts, notes=(SILENT,)
    )


# Every sample.


Int64Array = NDArray[np.int64]
RAW, RESULTS = "samples.raw", "results.json"
LARGEST_BYTES = 2_800_000_000
"""A hundred million samples: 27 hours of one thread at a period of 1 ms. Each takes 4 bytes of memory."""
PIECE_BYTES = 140 << 15
"""Of the file at a time. A whole number of samples of 28 bytes, and of 20."""
STRETCH_BYTES = 1_000
"""Of memory, for the objects of a stretch without a gap."""
MOST_THREADS = 4096
METHOD = "clock_nanosleep"
FEWEST = 3
USUALLY_LOST = 16
"""So many of the last samples of a thread may be lost when it ends: two were."""
KEPT_FILES = {"cmdline": "/proc/cmdline", "cpuinfo": "/proc/cpuinfo", "config.gz": "/proc/config.gz"}
"""Files of the folder, and where they were on the target."""
LARGEST_FILE = 1 << 20

SAMPLES_SILENT = (
    "it says neither its priority nor which load ran, and not whether it was to stop at a value (option -b)"
)
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
OTHER_RUN = (
    "the samples of thread {0} contradict number, minimum or maximum in the results.json beside it: they are of "
    "different runs"
)

FORMS = {
    f"{8 * size} bits, {name}": np.dtype(
        [("thread", f"{order}u4"), ("s", f"{order}i{size}"), ("ns", f"{order}i{size}"), ("value", f"{order}u8")]
    )
    for name, order in (("little-endian", "<"), ("big-endian", ">"))
    for size in (8, 4)
}
"""Those of a sample in samples.raw, by what they say of the machine."""

Table = tuple[Int64Array, Int64Array, Int64Array]
"""Some of the samples: the number of the thread, when it ran in ns, and the latency in the tool's unit."""
Tables = Callable[[], Iterator[Table]]
"""Reads the file from its beginning, because the samples of a day do not fit into memory."""


def place_of_samples(path: Path) -> Path | None:
    """The file with the samples: the path itself, or inside the folder; None for anything else.

    A file of binary samples has no mark. So it must bear its name, or end like it.
    """
    place = path / RAW if path.is_dir() else path
    return place if place.suffix == ".raw" and place.is_file() else None


def read_samples(path: Path) -> tuple[ImportedSamples, Path, int]:
    """The samples at a path that holds some, their file, and its size in bytes.

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


def _samples(place: Path, size: int) -> ImportedSamples:
    tables, cut_off = _tables_of_raw(place, size)
    results = _results(place.parent)
    told = results.sysinfo if results else {}
    threads = _grid(tables, told.get("resolution_in_ns"))
    some = next(iter(threads.values()))
    notes = [SAMPLES_SILENT]
    if some.resolution_ns > 1:
        unsure_ns = max(one.resolution_ns - 1 - (one.high_ns - one.low_ns) for one in threads.values())
        notes.append(RECOVERED.format(value(max(unsure_ns, 1))))
    notes += [CUT_OFF.format(cut_off)] if cut_off else []
    lost_at_ends = dict.fromkeys(threads, 0)
    if results:
        _refuse_contradictions(results, threads)
        for number, one in threads.items():
            total, (*_, most) = results.cpu[number].total, results.cpu[number].ends
            if most > one.most:
                notes.append(LARGER.format(number, value(most * one.resolution_ns)))
            # A few are always lost at its end. They are left out unless one of them has the maximum, as with -b.
            lost = max(min(total, LARGEST_COUNT) - one.last_index - 1, 0)
            lost_at_ends[number] = lost if most > one.most or lost > USUALLY_LOST else 0
        missing = sum(cpu.total for cpu in results.cpu.values()) - sum(one.count for one in threads.values())
        notes += [NOT_WRITTEN.format(quantity(missing, "activation"))] if missing > 0 else []
    else:
        notes.append(ALONE)
    identity = hashlib.blake2b(digest_size=16)
    for piece in _pieces(place):
        identity.update(piece)
    release, version, machine = (str(told.get(key, ""))[:200] for key in ("release", "version", "machine"))
    kept = {path: place.parent / name for name, path in KEPT_FILES.items()}
    return ImportedSamples(
        TOOL,
        METHOD,
        some.period_ns,
        tuple(
            ImportedThread(
                number,
                number if told.get("cpus_online") == len(threads) else None,
                one.first_due_ns,
                tuple(one.stretches),
                lost_at_ends[number],
            )
            for number, one in threads.items()
        ),
        identity.digest(),
        machine,
        release,
        version,
        tuple(
            (path, read_bounded(file, LARGEST_FILE))
            for path, file in kept.items()
            if file.is_file() and 0 < file.stat().st_size <= LARGEST_FILE
        ),
        tuple(notes),
    )


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

    def tables() -> Iterator[Table]:
        for rows in (_rows(piece, form) for piece in _pieces(place)):
            thread, seconds, rest, late = (rows[name].astype(np.int64) for name in ("thread", "s", "ns", "value"))
            yield thread, seconds * UNITS_NS["s"] + rest, late

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


# The grid of due times.


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

    def add(self, time_ns: Int64Array, value: Int64Array) -> bool:
        """Take samples that follow; False if one fits no due time."""
        # Rounded down, the latency leaves less than a resolution. Half a period keeps the numbers from its edges.
        after_ns = time_ns - value * self.resolution_ns - self.begin_ns
        index = (after_ns + self.period_ns // 2) // self.period_ns
        steps = np.diff(index, prepend=self.last_index)
        after_ns -= index * self.period_ns
        self.low_ns, self.high_ns = min(self.low_ns, int(after_ns.min())), max(self.high_ns, int(after_ns.max()))
        if np.any(steps <= 0) or self.high_ns - self.low_ns >= self.resolution_ns:
            return False
        self.least, self.most = min(self.least, int(value.min())), max(self.most, int(value.max()))
        # The true first due time is known at the end only: ``finish`` takes what is too much.
        late_ns = after_ns + (value + 1) * self.resolution_ns
        narrow = late_ns.astype(np.uint32) if int(late_ns.max()) < 1 << 32 else late_ns
        starts = [0, *(np.flatnonzero(steps[1:] != 1) + 1).tolist()]
        self.room.take(narrow.nbytes + STRETCH_BYTES * len(starts))
        self.stretches += zip(index[starts].tolist(), np.split(narrow, starts[1:]), strict=True)
        self.count, self.last_index = self.count + value.size, int(index[-1])
        return True

    def finish(self) -> None:
        """Count the latencies from the first due time, in place."""
        for _, late_ns in self.stretches:
            # Modulo 2^32 to subtract less than 0 of unsigned numbers, too.
            over_ns = (self.high_ns + 1) % (1 << 32) if late_ns.dtype == np.uint32 else self.high_ns + 1
            np.subtract(late_ns, late_ns.dtype.type(over_ns), out=late_ns)


Threads = Mapping[int, _ThreadOnGrid]


def _grid(tables: Tables, resolution: object) -> Threads:
    """The threads on the grid that all times fit at the resolution that is told, else at the usual ones."""
    if resolution is not None and (not isinstance(resolution, int) or not 0 < resolution <= SCALE_NS):
        raise UserError(f"results.json beside it has a resolution of {resolution!r} ns, which makes no sense")
    tried = [resolution] if isinstance(resolution, int) else [UNITS_NS["us"], 1]
    room = Room(bounded.MOST_BYTES, f"its samples take more than {bounded.MOST_BYTES // MIB} MiB of memory")
    found = [threads for each in tried if (threads := _grid_at(tables, each, room))]
    if not found:
        whose = " at the resolution that results.json tells" if resolution is not None else ""
        raise UserError(f"its times and latencies fit no grid of due times{whose}")
    if len(found) > 1:
        raise UserError("nothing tells whether its latencies are microseconds or nanoseconds: results.json is missing")
    return found[0]


def _grid_at(tables: Tables, resolution_ns: int, room: Room) -> Threads | None:
    """The threads by number, None if the samples fit no grid."""
    threads: dict[int, _ThreadOnGrid] = {}
    period_ns = 0
    for thread, time_ns, late in tables():
        if late.max() > LARGEST_NS // resolution_ns:
            return None
        order = np.argsort(thread, kind="stable")
        numbers, starts = np.unique(thread[order], return_index=True)
        parts = [(time_ns[mine], late[mine]) for mine in np.split(order, starts[1:])]
        period_ns = period_ns or _period_ns([times - values * resolution_ns for times, values in parts])
        if period_ns <= 0:
            return None
        for number, (times_ns, values) in zip(numbers.tolist(), parts, strict=True):
            begin_ns = int(times_ns[0] - values[0] * resolution_ns)
            one = threads.setdefault(number, _ThreadOnGrid(begin_ns, period_ns, resolution_ns, room))
            if not one.add(times_ns, values):
                return None
    for each in threads.values():
        each.finish()
    return dict(sorted(threads.items()))


def _period_ns(due: list[Int64Array]) -> int:
    """The usual distance of two due times, in whole microseconds; below 0 if the times go back."""
    steps = [np.diff(times_ns) for times_ns in due if times_ns.size >= FEWEST]
    if not steps:
        raise UserError("no thread of it has three samples, so its period is unknown")
    return round(float(np.median(np.concatenate(steps))) / UNITS_NS["us"]) * UNITS_NS["us"]


def _results(folder: Path) -> RtTestsResult | None:
    """What results.json says; None if there is none. UserError if it is another tool's or makes no sense."""
    try:
        text = read_bounded(folder / RESULTS).decode("utf-8-sig", errors="replace")
    except OSError:
        return None
    if text and not looks_like(text):
        raise UserError("the results.json beside it is of another tool")
    return decode_json(text, RtTestsResult) if text else None


def _refuse_contradictions(results: RtTestsResult, threads: Threads) -> None:
    """UserError if the samples are not those that results.json counts.

    Where no sample of a thread was lost, its minimum and maximum are among them. A thread may lose its only sample.
    """
    for number in sorted({*threads, *results.cpu}):
        one, told = threads.get(number), results.cpu.get(number)
        total, (least, _, most) = (told.total, told.ends) if told else (0, (0, 0, 0))
        if one is None or told is None:
            agree = told is not None and total <= 1
        elif one.count < total:
            agree = least <= one.least and one.most <= most
        else:
            agree = (one.count, one.least, one.most) == (total, least, most)
        if not agree:
            raise UserError(OTHER_RUN.format(number))
