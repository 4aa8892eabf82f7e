# SPDX-License-Identifier: Apache-2.0
"""The trace that another tool recorded, as a record without samples. To explain it, find its activations first."""

from dataclasses import dataclass, replace

from rtproof.core.errors import UserError
from rtproof.record.contents import WHOLE_RUN, Begin, Event, Moment, Record, SystemFile
from rtproof.summary import kernel_trace
from rtproof.summary.imported_samples import IMPORTED_EVENT, BlocksInMemory
from rtproof.summary.kernel_trace import TRACE_PREFIX
from rtproof.summary.trace_pages import page_events
from rtproof.summary.trace_text import event_number

FORMAT_PREFIX = "events/"


@dataclass(frozen=True)
class ImportedTrace:
    """A trace. files: by the names that a record has below ``trace/``. identity: the same for the same file.

    big: the byte order. missing: sentences on what the file lacks. system: what uname said, "" if it is not told.
    """

    tool: str
    files: dict[str, bytes]
    big: bool
    identity: bytes
    missing: tuple[str, ...] = ()
    system: str = ""


def record_of_trace(trace: ImportedTrace, path: str, size: int) -> Record:
    """The trace as a record. path, size: of the file that it comes from. Its origin is still 0.

    Only the formats of events that occur are kept, because a file has those of all events that the kernel knows.
    UserError if the file does not tell how its pages are laid out.
    """
    about = f"endian {'big' if trace.big else 'little'}\nbuffer_kib 0\nplace {trace.tool}\nmissing\n".encode()
    words = [*trace.system.split(maxsplit=2), "", "", ""][:3]
    whole = Record(
        path=path,
        size=size,
        begin=Begin(1, 4, trace.identity, 0, 0, "", trace.system.rpartition(" ")[2], words[2].partition(" ")[0], ""),
        facts=(),
        files=tuple(_file(name, content) for name, content in (trace.files | {"about": about}).items()),
        series=(),
        slices=(),
        seconds={},
        top={},
        counters=(),
        events=tuple(Event(0, WHOLE_RUN, IMPORTED_EVENT, note) for note in trace.missing),
        end=None,
        damage=(),
        chunk_refs=(),
        read_blocks=BlocksInMemory(()),
    )
    return _with_formats_that_occur(whole)


def _file(name: str, content: bytes) -> SystemFile:
    return SystemFile(0, Moment.END, TRACE_PREFIX + name, 0, False, content)


def _with_formats_that_occur(record: Record) -> Record:
    layout = kernel_trace.page_layout(record)
    seen: set[bytes] = set()
    for cpu in kernel_trace.trace_cpus(record):
        seen |= {bytes(event[:2]) for event in page_events(kernel_trace.cpu_pages(record, cpu, layout), layout)}
    numbers = {int.from_bytes(each, "big" if layout.big else "little") for each in seen}
    if not numbers:
        raise UserError(f"{record.path} holds no events")
    return replace(record, files=tuple(file for file in record.files if _is_of_use(file, numbers)))


def _is_of_use(file: SystemFile, numbers: set[int]) -> bool:
    name = file.path.removeprefix(TRACE_PREFIX)
    if not name.startswith(FORMAT_PREFIX) or name.startswith(f"{FORMAT_PREFIX}ftrace/"):
        return True
    number = event_number(file.content.decode(errors="replace"))
    return number in numbers
