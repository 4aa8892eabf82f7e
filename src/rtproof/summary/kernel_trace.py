# SPDX-License-Identifier: Apache-2.0
"""The kernel's own trace of a run, from the files ``trace/NAME`` of its record: text, pages, lost events, coverage."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from math import ceil
from operator import attrgetter
from struct import Struct

from rtproof.core.errors import UserError
from rtproof.core.units import whole_number
from rtproof.record.contents import Record, SnapshotReason
from rtproof.summary.target_threads import every_real_time_thread, target_threads
from rtproof.summary.trace_pages import STAMP_SIZE, PageLayout, Piece, page_of, pieces
from rtproof.summary.trace_text import (
    MARK,
    EventFormat,
    EventWriter,
    Functions,
    RawEvent,
    event_format,
    parse_fields,
    raw_events,
)

TRACE_PREFIX = "trace/"
MARKER = "tracing_mark_write"
"""The function that takes what a program writes into the trace. The event is ``print``."""


def has_trace(record: Record) -> bool:
    """Whether the run was traced and the record holds the trace."""
    return any(file.path.startswith(TRACE_PREFIX) for file in record.files)


def trace_refused(record: Record) -> str:
    """Why a run with --explain has no trace, in the agent's words; "" where it has one, or was not to have one."""
    return record.fact("trace_refused") or ""


def has_recorder(record: Record) -> bool:
    """Whether a flight recorder kept pages for some activations only, so that there are holes between the pages."""
    return "recorder" in trace_information(record)


@dataclass(frozen=True)
class RecorderWindows:
    """How many activations were above the flight recorder's threshold, and what became of their windows.

    above: activations above its threshold. kept: how many of them have their events in the record.
    lost: for each reason how many are not, without reasons that none had; empty in records before format 1.5, which do
    not tell why.
    room: bytes for events in the record; None: not told.
    """

    above: int
    kept: int
    lost: dict[str, int]
    room: int | None

    @property
    def untold(self) -> int:
        """How many are lost for a reason that the record does not tell."""
        return max(0, self.above - self.kept - sum(self.lost.values()))


RECORDER_LOSSES = {"before": "lost_before", "queue": "lost_queue", "memory": "lost_memory", "record": "lost_record"}


def recorder_windows(record: Record) -> RecorderWindows | None:
    """What the flight recorder says about its windows; None without one, or if the record was cut off."""
    told = trace_information(record)
    above, kept = whole_number(told.get("windows_threshold", "")), whole_number(told.get("windows_kept", ""))
    if above is None or kept is None:
        return None
    lost = {reason: whole_number(told.get(key, "")) or 0 for reason, key in RECORDER_LOSSES.items()}
    # Windows above the threshold without events: their writer came when these had been overwritten.
    above_it = (window for window in record.snapshots if window.reason is SnapshotReason.THRESHOLD)
    lost["gone"] = sum(not any(lane.stamps for lane in window.pages) for window in above_it)
    room = whole_number(told.get("record_room", ""))
    return RecorderWindows(above, kept - lost["gone"], {key: n for key, n in lost.items() if n}, room)


def trace_names(record: Record) -> list[str]:
    """The names of the files of the trace, in their order."""
    found = (file.path.removeprefix(TRACE_PREFIX) for file in record.files if file.path.startswith(TRACE_PREFIX))
    return list(dict.fromkeys(found))


def trace_content(record: Record, name: str) -> bytes:
    """The content of a file, put together from its parts; empty if it was not kept."""
    return b"".join(_parts(record).get(name, ()))


def trace_text(record: Record, name: str) -> str:
    """The text of a file of the trace; empty if it was not kept."""
    return trace_content(record, name).decode(errors="replace")


def trace_information(record: Record) -> dict[str, str]:
    """What the agent says about the trace: by its first word, the rest of each line."""
    return dict(line.partition(" ")[::2] for line in trace_text(record, "about").splitlines())


def trace_clock(record: Record) -> str:
    """The name of the trace's clock, which its file has in brackets; "" without one."""
    found = re.search(r"\[(\S+)\]", trace_text(record, "trace_clock"))
    return found[1] if found else ""


def trace_cpus(record: Record) -> list[int]:
    """The CPUs whose buffer was kept, in increasing order."""
    names = trace_names(record)
    found = {int(match[1]) for name in names if (match := re.fullmatch(r"cpu(\d+)/(?:stats|raw)", name))}
    if COLUMNS in names and not any(name.endswith("/stats") for name in names):  # the record was cut off
        big = trace_information(record).get("endian") == "big"
        found |= set(_columns(record, big))
    return sorted(found)


def trace_statistics(record: Record, cpu: int) -> dict[str, str]:
    """What the kernel says about the buffer of a CPU, such as ``entries`` and ``overrun``."""
    lines = trace_text(record, f"cpu{cpu}/stats").splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def trace_events(record: Record) -> Iterable[RawEvent]:
    """The events of the pages of all CPUs by time. Nothing if no page can be read."""
    try:
        layout = page_layout(record)
    except UserError:
        return ()
    formats = event_formats(record)
    of_cpus = [raw_events(cpu_page_list(record, cpu, layout), cpu, layout, formats) for cpu in trace_cpus(record)]
    return merge(*of_cpus, key=attrgetter("time_ns"))


def cpu_page_list(record: Record, cpu: int, layout: PageLayout, padded: bool = False) -> list[bytes]:
    """The pages of a CPU in the order of time. padded: those made of pieces, too, have their full size."""
    content = trace_content(record, f"cpu{cpu}/raw")
    if not has_recorder(record):
        return [content] if content else []
    pages = [content[at : at + layout.page] for at in range(0, len(content), layout.page)]
    pages += [page_of(piece, layout, padded) for piece in _pieces(record, cpu, layout)]
    stamp = Struct(f"{layout.order}Q")
    return sorted(pages, key=lambda page: (stamp.unpack_from(page.ljust(stamp.size, b"\0"))[0], page))


def cpu_pages(record: Record, cpu: int, layout: PageLayout) -> bytes:
    """The same pages one behind the other, all of full size. UserError if they are too many."""
    size = len(_pieces(record, cpu, layout)) * layout.page
    if size > PAGES_MOST:
        raise UserError(
            f"the pages of CPU {cpu} would take {size >> 20:,} MiB, and no more than {PAGES_MOST >> 20:,} MiB of a CPU "
            "are written"
        )
    return b"".join(cpu_page_list(record, cpu, layout, padded=True))


def _pieces(record: Record, cpu: int, layout: PageLayout) -> tuple[Piece, ...]:
    if not has_recorder(record):
        return ()
    return _columns(record, layout.big).get(cpu, ())


@lru_cache(maxsize=1)
def _parts(record: Record) -> Mapping[str, list[bytes]]:
    """The parts of each file of the trace. A machine of a thousand CPUs has thousands of files."""
    found: dict[str, list[bytes]] = {}
    for file in record.files:
        if file.path.startswith(TRACE_PREFIX):
            found.setdefault(file.path.removeprefix(TRACE_PREFIX), []).append(file.content)
    return found


@lru_cache(maxsize=1)
def _columns(record: Record, big: bool) -> Mapping[int, tuple[Piece, ...]]:
    """The pieces of pages of each CPU that a flight recorder kept since format 1.6. Each part stands alone."""
    found: dict[int, list[Piece]] = {}
    for file in record.files:
        for piece in pieces(file.content, big) if file.path == TRACE_PREFIX + COLUMNS else ():
            found.setdefault(piece.cpu, []).append(piece)
    return {cpu: tuple(each) for cpu, each in found.items()}


def event_formats(record: Record) -> dict[int, EventFormat]:
    """The formats of the events that were traced, by the number that their events have."""
    paths = {name: match["path"] for name in trace_names(record) if (match := FORMAT.fullmatch(name))}
    found = (event_format(path, trace_text(record, name)) for name, path in paths.items())
    return {known.id: known for known in found if known}


def task_names(record: Record) -> dict[int, str]:
    """The names of threads by their ids: those of the run's lists, and before them those that the kernel remembered."""
    listed = {thread.id: thread.name for thread in target_threads(record)}
    listed |= {thread.id: thread.name for thread in every_real_time_thread(record)}
    lines = (line.partition(" ") for line in trace_text(record, "saved_cmdlines").splitlines())
    return listed | {int(pid): name for pid, _, name in lines if pid.isdecimal() and len(pid) < LONGEST_ID}


def event_writer(record: Record) -> EventWriter:
    """What makes text of the events of a record."""
    return EventWriter(page_layout(record), task_names(record), Functions(trace_text(record, "kallsyms")))


def text_of_events(record: Record) -> Iterator[str]:
    """Yield a line for each event. UserError if no page can be read."""
    return map(event_writer(record).line, trace_events(record))


COLUMNS = "columns"
"""The name of the file with pieces of pages of all CPUs."""
FORMAT = re.compile(r"events/(?P<path>[^/]+/[^/]+)/format")
LONGEST_ID = 11
LARGEST_PAGE = 1 << 26
"""In bytes. Pages of kernels have 4 KiB to 64 KiB, or a size that somebody set."""
PAGES_MOST = 1 << 29
"""Bytes of one CPU's pages that are made of pieces. An hour's full record makes about 36 MiB of all CPUs."""


def page_layout(record: Record) -> PageLayout:
    """The layout of the pages of a record's trace; UserError if the record does not state it."""
    fields = parse_fields(trace_text(record, "header_page"))
    known = {field.name: (field.offset, field.size) for field in fields}
    data, commit = known.get("data", (0, 0)), known.get("commit", (0, 0))
    page = sum(data)
    commit_end = sum(commit)
    if not 0 < page <= LARGEST_PAGE or commit[1] not in (4, 8) or not STAMP_SIZE <= commit[0] < commit_end <= data[0]:
        raise UserError("the record lacks the layout of its trace's pages")
    order = ">" if trace_information(record).get("endian") == "big" else "<"
    return PageLayout(order, page, commit[0], commit[1], data[0])


def print_addresses(record: Record) -> dict[int, str]:
    """The functions that wrote into the trace itself, by the address that their events have."""
    writer = event_writer(record)
    marks = (writer.values(event) for event in trace_events(record) if event.format and event.format.name == MARK)
    found = {address for values in marks if isinstance(address := values.get("ip"), int)}
    return {address: writer.functions.name(address) or MARKER for address in found}


RECORDS_CLOCK = "mono"
"""The trace's name for the clock that the record uses."""


@dataclass(frozen=True)
class TraceSummary:
    """The numbers of a trace. Times count from the origin of the record. They are None if the clocks differ.

    Attributes:
        clock: The trace's, as tracefs calls it; ``mono`` is the record's own.
        missing: Events (names, or beginnings with a star) that were to be traced and that the kernel does not have.
        entries: Events left in the buffers, or on the pages that a flight recorder kept.
        overrun: Events overwritten by later ones.
        dropped: Events never written.
        oldest_ns: The oldest event that is left.
        newest_ns: The newest event.
        whole_from_ns: From here on nothing was overwritten on any CPU; None: nowhere anything was.
        enough_kib: The size of a CPU's buffer that would have held all events of the busiest CPU, about. None if
            nothing was overwritten.
    """

    clock: str
    kinds: dict[str, int]
    missing: tuple[str, ...]
    entries: int
    overrun: int
    dropped: int
    oldest_ns: int | None
    newest_ns: int | None
    whole_from_ns: int | None
    enough_kib: int | None


def lost_trace_events(record: Record) -> tuple[int, int]:
    """How many events were overwritten by later ones, and how many were never written. This takes little time."""
    stats = {cpu: trace_statistics(record, cpu) for cpu in trace_cpus(record)}
    return _total(stats, "overrun"), _total(stats, "dropped events") + _total(stats, "commit overrun")


def trace_summary(record: Record) -> TraceSummary:
    """The numbers of the trace of a record."""
    stats = {cpu: trace_statistics(record, cpu) for cpu in trace_cpus(record)}
    overrun, dropped = lost_trace_events(record)
    clock = trace_clock(record)
    kinds: Counter[str] = Counter()
    oldest: dict[int, int] = {}
    newest_ns: int | None = None
    for event in trace_events(record):
        kinds[event.format.name if event.format else "unknown"] += 1
        if clock == RECORDS_CLOCK:
            newest_ns = event.time_ns - record.begin.origin_monotonic_ns
            oldest.setdefault(event.cpu, newest_ns)
    # The present size of a buffer, times all events over those that are left, would hold all.
    present_kib = whole_number(trace_information(record).get("buffer_kib", "")) or 0
    counted = [(_total({cpu: of}, "entries"), _total({cpu: of}, "overrun")) for cpu, of in stats.items()]
    parts = [(left + gone) / left for left, gone in counted if left and gone]
    recorder = has_recorder(record)
    forgetful = [] if recorder else [cpu for cpu, of in stats.items() if of.get("overrun", "0") != "0"]
    return TraceSummary(
        clock=clock,
        kinds=dict(kinds.most_common()),
        missing=tuple(trace_information(record).get("missing", "").split()),
        entries=kinds.total() if recorder else _total(stats, "entries"),
        overrun=overrun,
        dropped=dropped,
        oldest_ns=min(oldest.values(), default=None),
        newest_ns=newest_ns,
        # The oldest event of that CPU which overwrote any and whose oldest event is the latest.
        whole_from_ns=max((oldest[cpu] for cpu in forgetful if cpu in oldest), default=None),
        enough_kib=ceil(present_kib * max(parts)) or None if parts else None,
    )


def _total(stats: dict[int, dict[str, str]], key: str) -> int:
    return sum(whole_number(values.get(key, "")) or 0 for values in stats.values())
