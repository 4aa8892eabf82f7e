# SPDX-License-Identifier: Apache-2.0
"""The marks of the user's own application, from the words of the command line to those that the agent takes."""

import os
import re
from contextlib import suppress
from pathlib import Path

from rtproof.core.elf_symbols import checked_offset, function_offset
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.explain.marks import EVENT, LEFT, REACHED, WRITTEN, Marks, parse_mark

MOST_CHARACTERS = 400
_PLACE = re.compile(r"(?P<function>[^+]*)(\+(?P<plus>0x[0-9a-fA-F]{1,15}|[0-9]{1,15}))?")


def agent_marks(begin: str, end: str) -> tuple[str, str]:
    """Both marks as the agent takes them. UserError for a mark that makes no sense, or is the other one."""
    words = _agent_words(begin), _agent_words(end)
    first, last = map(parse_mark, words)
    if (first.kind, first.what) == (last.kind, last.what):
        raise UserError(f"--begin and --end are the same mark, {first.shown}, so an activation would have no length")
    return words


def refuse_replaced(marks: tuple[str, ...], maps: Path) -> None:
    """UserError if a process runs an older file than that in which the kernel would look for its marks.

    marks: as the agent takes them. maps: the process's file of this name below /proc.
    """
    in_files = [words for words in marks if words.startswith((f"{REACHED}:", f"{LEFT}:"))]
    places = [words.partition(" ")[0].split(":", 1)[1].rpartition(":")[0] for words in in_files]
    with suppress(OSError):
        loaded = maps.read_text(errors="replace").splitlines()
        for path in places:
            if any(line.endswith(f" {os.path.realpath(path)} (deleted)") for line in loaded):
                raise UserError(f"{path} was replaced after the process had begun, which runs the old one: restart it")


def trace_marks(begin: str, end: str) -> Marks:
    """Both marks for a trace that is there already. UserError for what only a new trace can have."""
    for words in (begin, end):
        kind = words.partition(":")[0]
        if kind in (REACHED, LEFT) or (kind == EVENT and words.count(":") > 1):
            raise UserError(
                f"{one_line(words, 80)} is for a new trace; for one that is there name an event:SYSTEM/NAME of it"
            )
    first, last = map(parse_mark, agent_marks(begin, end))
    return first, last


def _agent_words(words: str) -> str:
    """A mark with the place of a function in its file."""
    mark = parse_mark(words)
    if len(words) > MOST_CHARACTERS:
        raise UserError(f"a mark has {MOST_CHARACTERS} characters at most, not {len(words):,}")
    if mark.kind == WRITTEN and (not mark.what.isprintable() or mark.what != mark.what.strip()):
        raise UserError(f"{mark.shown!r} is no text of one line without blanks around it")
    if not words.isprintable() and mark.kind == EVENT:
        raise UserError(f"{mark.shown!r} has characters that no filter of the kernel can have")
    if mark.kind in (REACHED, LEFT):
        return _uprobe(mark.kind, words.partition(":")[2])
    return words


def _uprobe(kind: str, words: str) -> str:
    """``FILE:FUNCTION``, ``FILE:FUNCTION+OFFSET`` or ``FILE:+OFFSET`` as FILE:PLACE and the words for people."""
    file, _, place = words.rpartition(":")
    match = _PLACE.fullmatch(place)
    if not file or not match or not place:
        raise UserError(
            f"{one_line(f'{kind}:{words}', 80)} is no mark: write {kind}:FILE:FUNCTION, maybe with +OFFSET behind it"
        )
    path = Path(file).absolute()
    if "::" in words and not path.exists():
        raise UserError(
            f"{one_line(f'{kind}:{words}', 80)}: names of C++ are the mangled ones, as nm shows them, without ::"
        )
    if any(letter.isspace() or letter == "#" for letter in str(path)) or not str(path).isprintable():
        raise UserError(
            f"the kernel's uprobes take no path with blanks or #, such as {one_line(str(path))!r}: make a link"
        )
    plus, function = int(match["plus"] or "0", 0), match["function"]
    if kind == LEFT and (plus or not function):
        raise UserError(f"{kind} marks the return of a function, so it takes no +OFFSET")
    offset = function_offset(path, function, plus) if function else checked_offset(path, plus)
    return f"{kind}:{path}:{offset:#x} {place}"
