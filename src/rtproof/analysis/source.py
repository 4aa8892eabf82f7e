# SPDX-License-Identifier: Apache-2.0
"""What the source of a probe counted by itself, with values that never reached the record (docs/record-format.md)."""

import re
from collections import defaultdict
from dataclasses import dataclass

from rtproof.record import Moment, Record

_PATH = re.compile(r"rtproof\.ko/thread(\d{1,5})/([^/]+)")
_LINE = re.compile(r"([a-z_]+) (-?\d{1,40})")


@dataclass(frozen=True)
class SourceCount:
    """One field of one thread, as its source counted it. lost: values among the counted that the record lacks."""

    thread: int
    field: str
    count: int
    missed: int
    lost: int
    min: int
    max: int


def source_counts(record: Record) -> tuple[SourceCount, ...]:
    """The account of every field that has one, in the order of the record; one that has no count is left out."""
    found = []
    for file in record.files:
        path = _PATH.fullmatch(file.path)
        if path and file.moment is Moment.END and file.errno == 0:
            said = _numbers(file.content.decode("utf-8", "replace"))
            if "count" in said:
                numbers = (said[word] for word in ("count", "missed", "lost", "min", "max"))
                found.append(SourceCount(int(path[1]), path[2], *numbers))
    return tuple(found)


def _numbers(text: str) -> dict[str, int]:
    """Lines of a word and a number; what is no such line is skipped, what is not there is 0."""
    matches = (_LINE.fullmatch(line) for line in text.splitlines())
    return defaultdict(int, {match[1]: int(match[2]) for match in matches if match})
