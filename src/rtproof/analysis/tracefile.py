# SPDX-License-Identifier: Apache-2.0
"""The kernel's own trace of a run, as the agent kept it: files ``trace/NAME`` of the record, long ones in parts."""

import re
from collections import Counter
from dataclasses import dataclass

from rtproof.record import Record

PREFIX = "trace/"
EVENT_LINE = re.compile(
    r"^ *(?P<task>.+)-(?P<pid>\d+) +(?:\([ \d-]*\) +)?\[(?P<cpu>\d+)\] +(?:\S+ +)?"
    r"(?P<seconds>\d+)\.(?P<fraction>\d+): (?P<what>.*)$"
)
"""A line of the file ``trace``: task, id, CPU, flags (not before Linux 2.6.39), time and the event."""
SYSTEM_CALL = re.compile(r"^(sys_\w+)(\(| -> )")
"""Events of system calls are written without their name: ``sys_NAME(...)`` and ``sys_NAME -> RESULT``."""

MARKER, MARK = "tracing_mark_write", "print"
"""What a program wrote into the trace itself stands under the function that took it, and is the event ``print``."""


@dataclass(frozen=True)
class TraceLine:
    """One event of the text. ``time_ns``: by the trace's clock, as exact as the text."""

    task: str
    pid: int
    cpu: int
    time_ns: int
    event: str


def has_trace(record: Record) -> bool:
    """Whether the run was traced and the record holds what came of it."""
    return any(file.path.startswith(PREFIX) for file in record.files)


def names(record: Record) -> list[str]:
    """The files that were kept, in their order."""
    found = (file.path.removeprefix(PREFIX) for file in record.files if file.path.startswith(PREFIX))
    return list(dict.fromkeys(found))


def content(record: Record, name: str) -> bytes:
    """A file, put together from its parts; empty if it was not kept."""
    return b"".join(file.content for file in record.files if file.path == PREFIX + name)


def text(record: Record, name: str) -> str:
    return content(record, name).decode(errors="replace")


def about(record: Record) -> dict[str, str]:
    """What the agent says of the trace: a word and the rest of its line."""
    return dict(line.partition(" ")[::2] for line in text(record, "about").splitlines())


def clock(record: Record) -> str:
    """Name of the trace's clock, which its file has in brackets."""
    found = re.search(r"\[(\S+)\]", text(record, "trace_clock"))
    return found[1] if found else ""


def cpus(record: Record) -> list[int]:
    """CPUs of which there is a buffer, in increasing order."""
    found = (re.fullmatch(r"cpu(\d+)/stats", name) for name in names(record))
    return sorted(int(match[1]) for match in found if match)


def stats(record: Record, cpu: int) -> dict[str, str]:
    """What the buffer of a CPU says of itself, such as ``entries`` and ``overrun``."""
    lines = text(record, f"cpu{cpu}/stats").splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def parse_line(line: str) -> TraceLine | None:
    """A line of the text; None if it is no event but a remark, such as how many events were lost."""
    found = EVENT_LINE.match(line)
    if not found:
        return None
    time_ns = int(found["seconds"]) * 1_000_000_000 + int(found["fraction"].ljust(9, "0")[:9])
    return TraceLine(found["task"], int(found["pid"]), int(found["cpu"]), time_ns, _event(found["what"]))


def _event(what: str) -> str:
    call = SYSTEM_CALL.match(what)
    if call:
        return call[1].replace("sys_", "sys_enter_" if call[2] == "(" else "sys_exit_", 1)
    name = what.partition(":")[0]
    return MARK if name == MARKER else name


def lines(record: Record) -> list[TraceLine]:
    """Every event of the text, in its order."""
    return [line for line in map(parse_line, text(record, "text").splitlines()) if line]


def kinds(found: list[TraceLine]) -> dict[str, int]:
    """How many events there are of each name, the most frequent first."""
    return dict(Counter(line.event for line in found).most_common())
