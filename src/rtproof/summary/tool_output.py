# SPDX-License-Identifier: Apache-2.0
"""What another tool printed while the agent ran it (probe exec), and which real-time threads it had.

The record has the tool's lines as parts of one file. What they mean is known to ``rtproof.importers``.
"""

import re
from dataclasses import dataclass

from rtproof.record.contents import Record
from rtproof.summary.recorded_facts import probe_options
from rtproof.summary.target_threads import TargetThread, every_real_time_thread

PROBE = "exec"
OUTPUT_PATH = "exec/output"
KERNEL_THREADS = re.compile(r"timerlatu?/\d+")
"""The threads that the kernel, or rtla in one process, has for the tracer timerlat."""

_LINE = re.compile(r"(\d{1,15}) ([oeOEpx]) ?(.*)")
"""Time in ms, letter, text. The letter: a stream (o, e), in capitals if its line goes on; p: the process; x: its end.
"""
_LENGTH = re.compile(r" (-D ?\d\w*|--duration[= ]\w+|-d \d+s|-T ?\d+)(?= |$)")


@dataclass(frozen=True)
class ToolOutput:
    """What a record holds of the tool.

    tool: its name in the host's table; "" for a command of the user. command: its words. text: the lines of both
    streams, in the order in which they ended. process: its number; None if it was not started. exit_code: minus the
    number of the signal that ended it. ran_ns: how long it ran; both None if the record does not hold its end.
    """

    tool: str
    command: tuple[str, ...]
    text: str
    process: int | None
    exit_code: int | None
    ran_ns: int | None

    @property
    def command_for_any_length(self) -> str:
        """The words without those that say how long to measure (-D 5, -d 5s, -T5)."""
        return _LENGTH.sub("", " ".join(self.command))


def tool_output(record: Record) -> ToolOutput | None:
    """The output of the tool that the agent ran; None for a record of any other probe."""
    if record.fact("probe") != PROBE:
        return None
    content = b"".join(file.content for file in record.files if file.path == OUTPUT_PATH).decode(errors="replace")
    lines: list[str] = []
    begun = {"o": "", "e": ""}
    ends: dict[str, tuple[int, int | None]] = {}
    for match in filter(None, map(_LINE.fullmatch, content.split("\n"))):  # A damaged record may lack a part of a line.
        letter, text = match[2], match[3].rstrip("\r")
        if letter in "px":
            ends[letter] = int(match[1]) * 1_000_000, int(text) if re.fullmatch(r"-?\d{1,9}", text) else None
        else:
            begun[letter.lower()] += text
            if letter.islower():
                lines.append(begun[letter])
                begun[letter] = ""
    lines += filter(None, begun.values())
    options, (began, ended) = probe_options(record), (ends.get("p"), ends.get("x"))
    return ToolOutput(
        tool=options.get("tool", ""),
        command=tuple(options.get("run", "").replace(";", ",").split("+")),
        text="".join(f"{line}\n" for line in lines),
        process=began[1] if began else None,
        exit_code=ended[1] if ended else None,
        ran_ns=ended[0] - began[0] if began and ended else None,
    )


def threads_of_tool(record: Record, output: ToolOutput) -> tuple[TargetThread, ...]:
    """The real-time threads that the tool had, as last seen; the kernel's own for the tracer timerlat too."""
    return tuple(
        thread
        for thread in every_real_time_thread(record)
        if (output.process and thread.process == output.process) or KERNEL_THREADS.fullmatch(thread.name)
    )
