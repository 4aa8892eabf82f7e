# SPDX-License-Identifier: Apache-2.0
"""What another tool printed while the agent ran it (probe exec), and which real-time threads it had.

The record has the tool's lines as parts of one file, with the time at which each came. What the lines mean is known to
``rtproof.importers``, which this package does not import.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rtproof.record.contents import Record
from rtproof.summary.recorded_facts import probe_options
from rtproof.summary.target_threads import TargetThread, every_real_time_thread

PROBE = "exec"
OUTPUT_PATH = "exec/output"
KERNEL_THREADS = re.compile(r"timerlatu?/\d+")
"""The threads that the kernel, or rtla in one process, has for the tracer timerlat."""

_LINE = re.compile(r"(\d{1,15}) ([oeOEpx]) ?(.*)")


@dataclass(frozen=True)
class ToolLine:
    """One line of the tool. time_ns: when its end came, of the record. error: whether it came on standard error."""

    time_ns: int
    error: bool
    text: str


@dataclass(frozen=True)
class ToolOutput:
    """What a record holds of the tool.

    tool: the name that the host gave it. command: its words. process: its number; None if it was not started.
    exit_code: minus the number of the signal that ended it; None if the record does not hold its end.
    began_ns, ended_ns: times of the record.
    """

    tool: str
    command: tuple[str, ...]
    lines: tuple[ToolLine, ...]
    process: int | None = None
    exit_code: int | None = None
    began_ns: int = 0
    ended_ns: int | None = None

    @property
    def text(self) -> str:
        """All lines in the order in which they came."""
        return "".join(f"{line.text}\n" for line in self.lines)

    @property
    def command_for_any_length(self) -> str:
        """The words without those that say how long to measure (-D 5, -d 5s, -T5)."""
        return re.sub(r" (-D \d+|-d \d+s|-T\d+)(?= |$)", "", " ".join(self.command))

    @property
    def ran_ns(self) -> int | None:
        """How long it ran; None if the record does not hold its end."""
        return None if self.ended_ns is None else self.ended_ns - self.began_ns


def tool_output(record: Record) -> ToolOutput | None:
    """The output of the tool that the agent ran; None for a record of any other probe."""
    if record.fact("probe") != PROBE:
        return None
    options = probe_options(record)
    words = options.get("run", "").replace(";", ",").split("+")
    parts = [file.content for file in record.files if file.path == OUTPUT_PATH]
    found = ToolOutput(options.get("tool", ""), tuple(words), ())
    pieces = list(_pieces(b"".join(parts).decode(errors="replace"), record.begin.origin_monotonic_ns))
    found = replace(found, lines=tuple(_whole_lines(pieces)))
    for time_ns, letter, text in pieces:
        number = int(text) if re.fullmatch(r"-?\d{1,9}", text) else None
        if letter == "p":
            found = replace(found, process=number, began_ns=time_ns)
        elif letter == "x":
            found = replace(found, exit_code=number, ended_ns=time_ns)
    return found


Piece = tuple[int, str, str]
"""Time in ns, letter and text of a line of the file. The letter is a stream (o, e), in capitals if its line goes on; p:
the process; x: its end."""


def _pieces(text: str, origin_ns: int) -> Iterator[Piece]:
    """Lines that are no such line are skipped: a damaged record may lack a part of one."""
    for line in text.split("\n"):
        if match := _LINE.fullmatch(line):
            yield int(match[1]) * 1_000_000 - origin_ns, match[2], match[3].rstrip("\r")


def _whole_lines(pieces: list[Piece]) -> Iterator[ToolLine]:
    open_text = {"o": "", "e": ""}
    for time_ns, letter, text in pieces:
        stream = letter.lower()
        if stream not in open_text:
            continue
        open_text[stream] += text
        if letter == stream:
            yield ToolLine(time_ns, stream == "e", open_text[stream])
            open_text[stream] = ""
    last_ns = pieces[-1][0] if pieces else 0
    yield from (ToolLine(last_ns, stream == "e", text) for stream, text in open_text.items() if text)


def threads_of_tool(record: Record, output: ToolOutput) -> tuple[TargetThread, ...]:
    """The real-time threads that the tool had, as last seen; the kernel's own for the tracer timerlat too."""
    return tuple(
        thread
        for thread in every_real_time_thread(record)
        if (output.process and thread.process == output.process) or KERNEL_THREADS.fullmatch(thread.name)
    )
