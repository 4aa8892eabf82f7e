# SPDX-License-Identifier: Apache-2.0
"""Evidence: the machine and kernel that were measured, as they described themselves."""

import os

from rtproof.analysis.model import Analysis
from rtproof.record import Moment, Record, SystemFile
from rtproof.report import figures, procfs
from rtproof.report.blocks import Block, Table

ORDER = 200
TITLE = "Evidence: the system"

LONGEST = 600
FROM_FILES = {
    "/proc/cpuinfo": {"model name": "processor", "Hardware": "hardware", "machine": "machine"},
    "/proc/meminfo": {"MemTotal": "memory"},
}
MOMENTS = {Moment.ASKED: "asked", Moment.START: "start", Moment.DURING: "during", Moment.END: "end"}


def render(analysis: Analysis) -> list[Block]:
    record = analysis.record
    blocks: list[Block] = [Table("Machine and kernel", ("what", "as it says"), tuple(_machine(record)))]
    settings = tuple(_settings(record))
    if settings:
        blocks.append(Table("Settings of the kernel", ("file", "content"), settings))
    if record.files:
        header = ("file", "read at", "content")
        rows = tuple((file.path, MOMENTS[file.moment], _size(file)) for file in record.files)
        blocks.append(Table("Files kept in the record", header, rows, folded=True))
    return blocks


def _machine(record: Record) -> list[tuple[str, str]]:
    begin = record.begin
    host = [(fact.key.removeprefix("host."), fact.value) for fact in record.facts if fact.key.startswith("host.")]
    return [
        ("machine", begin.machine),
        ("kernel", f"{begin.kernel_release} {begin.kernel_version}"),
        *_details(record),
        *((name, text) for name, text in host if name != "command"),
    ]


def _details(record: Record) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path, keys in FROM_FILES.items():
        for line in (procfs.file_text(record, path) or "").splitlines():
            key, colon, text = line.partition(":")
            name = keys.get(key.strip())
            if colon and name and name not in dict(found):
                found.append((name, text.strip()))
    return found


def _settings(record: Record) -> list[tuple[str, str]]:
    """Files of one line, once each."""
    return [(path, _content(record, path)) for path in dict.fromkeys(f.path for f in record.files if _is_setting(f))]


def _is_setting(file: SystemFile) -> bool:
    text = file.content.strip()
    return file.errno == 0 and b"\n" not in text and len(text) <= LONGEST


def _content(record: Record, path: str) -> str:
    start, end = (procfs.file_text(record, path, when) for when in (Moment.START, Moment.END))
    if start is None or end is None or start == end:
        return _line(start if end is None else end)
    return f"{_line(start)}; at the end: {_line(end)}"


def _line(text: str | None) -> str:
    return (text or "").strip() or "(empty)"


def _size(file: SystemFile) -> str:
    if file.errno:
        return f"not read: {os.strerror(file.errno)}"
    return f"{figures.count(len(file.content))} bytes{', cut' if file.cut else ''}"
