# SPDX-License-Identifier: Apache-2.0
"""Activations between two marks: the application, or an event of its thread, says where each begins and ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.explain.trace_events import FORK, FORK_VALUES
from rtproof.record.contents import Record

PRINT = "ftrace/print"
"""The event of what a program writes into ``trace_marker``."""
OWN_EVENT = re.compile(r"rtproof_[0-9_]+/(begin|end)")
"""The events of the agent's uprobes."""
WRITTEN, REACHED, LEFT, EVENT = "marker", "uprobe", "uretprobe", "event"
REACHED_OR_LEFT = (REACHED, LEFT)
_MARK = re.compile(rf"({WRITTEN}|{REACHED}|{LEFT}|{EVENT}):(.+)", re.DOTALL)
_EVENT = re.compile(r"(?P<path>[\w-]+/[\w-]+)(:(?P<filter>.+))?")


@dataclass(frozen=True)
class Mark:
    """What begins or ends an activation.

    kind: WRITTEN, REACHED, LEFT or EVENT. what: the text; the file and the place in it; or SYSTEM/NAME.
    shown: how a sentence names the mark.
    """

    kind: str
    what: str
    shown: str

    def fit(self, text: str) -> int:
        """How well a written text fits, 0 if not at all. A text fits a whole mark better than the begin of one."""
        if self.kind != WRITTEN:
            return 0
        if self.what.endswith("*"):
            return len(self.what) if text.startswith(self.what[:-1]) else 0
        return 1 << 16 if text == self.what else 0


Marks = tuple[Mark, Mark]
"""What begins and what ends each activation."""


def parse_mark(words: str) -> Mark:
    """A mark as the record has it. UserError for what is none."""
    match = _MARK.fullmatch(words)
    event = _EVENT.fullmatch(match[2]) if match and match[1] == EVENT else None
    if not match or (match[1] == EVENT and not event):
        raise UserError(
            f"{one_line(words, 80)!r} is no mark: write marker:TEXT, uprobe:FILE:FUNCTION or event:SYSTEM/NAME"
        )
    kind, what = match[1], event["path"] if event else match[2]
    place, _, name = what.partition(" ") if kind in REACHED_OR_LEFT else (what, "", "")
    shown = f"{place.rpartition(':')[0]}:{name}" if name else what if kind != EVENT else match[2]
    return Mark(kind, place, one_line(f"{kind}:{shown}", 120))


def marks_in(record: Record) -> Marks | None:
    """The marks that a run was asked for; None if it was not. UserError if its record is damaged there."""
    begin, end = record.fact("begin_mark"), record.fact("end_mark")
    return (parse_mark(begin), parse_mark(end)) if begin and end else None


def mark_events(marks: Marks, paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The events of a trace that the marks need, with their fields. UserError if the trace lacks one.

    paths: of all events in the trace, as SYSTEM/NAME.
    """
    there = set(paths)
    own = {path.rpartition("/")[2]: path for path in there if OWN_EVENT.fullmatch(path)}
    found: dict[str, tuple[str, ...]] = {FORK: FORK_VALUES} if FORK in there else {}
    for which, mark in zip(("begin", "end"), marks, strict=True):
        path = PRINT if mark.kind == WRITTEN else mark.what if mark.kind == EVENT else own.get(which, "")
        if path not in there:
            raise UserError(f"the trace has no event of the mark {mark.shown}")
        found[path] = ("buf",) if path == PRINT else found.get(path, ())
    if len(found) == 1 + (FORK in found) and PRINT not in found:
        raise UserError(f"the two marks are the same event, {marks[0].shown}")
    return found
