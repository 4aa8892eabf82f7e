# SPDX-License-Identifier: Apache-2.0
"""Text as people keep and paste it: packed, in other encodings, indented, quoted in mails, behind times of a console.

Each importer reads what is left of it. What was taken off stands in a note.
"""

import gzip
import io
import quopri
import re
import zlib
from collections.abc import Sequence
from itertools import islice

import msgspec

from rtproof.core.bounded import LARGEST_TEXT_BYTES, read_bounded
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.summary.summary_model import Doubt, Severity

MOST_LINES = 4_000_000
WIDE_BYTES = 4 * 1024 * 1024
"""In a longer text, a character beyond Latin-1 becomes a question mark: else all its characters take four bytes."""
LEAD_BYTES = 4_096
LONGEST_LINE = 100
"""This much of a line that cannot be read is printed."""

PACKED = "it was unpacked (gzip)"
UTF_16 = "it was converted from UTF-16"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MOSTLY = 0.7
"""Of a text in UTF-16 without a mark of the byte order, this share of every second byte is zero."""
QUOTED_PRINTABLE = "a mail's quoted-printable form was decoded"
PREFIXES = (
    ("a mail's quotation marks (>)", re.compile(r"^ *(?:> ?)+", re.M), 0.0),
    ("the signs of a patch (+)", re.compile(r"^\+", re.M), 0.5),
    ("the times of a console", re.compile(r"^\[ *\d[\d .:,TZ+-]*\] ?", re.M), 0.5),
    ("the times of a log", re.compile(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \S+ \S+\[\d+\]:)? ", re.M), 0.5),
)
"""What no tool prints before its lines: its name, its form, and in how many of the lines it must stand."""

WRAPPED = (
    ("a mail had wrapped", re.compile(r"^( *T:.*:) *\n *(-?\d+) *$", re.M)),
    ("a backslash continues", re.compile(r"^(.*\S) *\\\n *(\S.*)$", re.M)),
)
"""Lines whose end stands on the next line: whose doing it is, and both lines."""

_DIFF = re.compile(r"^[> ]*@@ -(?!0,0 )[\d,]+ \+[\d,]+ @@|^[\d,]+[acd][\d,]+\n[<>] |^\*{3} \d+(?:,\d+)? \*{4}$", re.M)
"""Of diff in its three forms."""
_EXCHANGED = re.compile(r"^-(?!-).*\n\+(?!\+)", re.M)
_FIRST_WORD = re.compile(r"^([-+])[# ]*([^-+\s]\S*)", re.M)
_DIFF_MARK = re.compile(r"^(?:> ?)*[-+<>! ] ?", re.M)
_PREFIX_END = re.compile(r"\s+|[|:>\])#]")
MOST_PREFIX_WORDS = 12
_JSON_BEGIN = re.compile(r"^\{\s*\"", re.M)
_SOFT_BREAK = re.compile(r"[^=\n]=$", re.M)
"""The end of a line in a mail's quoted-printable form. No tool prints it."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[\d{1,3}(?:;\d{1,3})+m")
"""Colours and movements of a terminal. What shows a paste may have dropped the first character, ESC."""
_BLANKS = str.maketrans({"\t": " ", "\xa0": " "})
_BLOCK = re.compile(r"(?:^.*\S.*\n?)+", re.M)
_INDENTED = re.compile(r"^ +(?!Core:)(?:[#$=A-Za-z[]|\d{6} |\d+ \d\d:\d\d:\d\d )", re.M)
"""The first line of an indented block. oslat indents its own table."""


def is_document(text: str) -> bool:
    """Whether it is JSON or XML, which has no lines."""
    return text.lstrip().startswith(("{", "<"))


class ToolLines(msgspec.Struct, frozen=True):
    """The lines that a tool prints. figures: how a line of figures begins. read: the lines that its importer reads.

    other: further lines of the tool; None if they are not known.
    """

    figures: re.Pattern[str]
    read: re.Pattern[str]
    other: re.Pattern[str] | None = None


def tool_lines(figures: str, read: Sequence[str | re.Pattern[str]], other: str | None = None) -> ToolLines:
    """The patterns of whole lines; "(?m)" and the ends of the line are added."""
    lines = "|".join(f"(?:{each if isinstance(each, str) else each.pattern})" for each in read)
    whole_lines = None if other is None else re.compile(f"(?:{other})$")
    return ToolLines(re.compile(f"^(?:{figures})", re.M), re.compile(lines, re.M), whole_lines)


class DiffError(UserError):
    """A text is a diff. text: its lines without the marks of diff."""

    def __init__(self, text: str) -> None:
        super().__init__("it is a diff, which has lines of two outputs: give each output in a file of its own")
        self.text = text


def plain_text(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text in a file, without what mails, consoles and web pages put before its lines; UserError if too large."""
    text, notes = _decoded(content)
    if is_document(text):
        return text, tuple(notes)
    if _is_diff(text):
        raise DiffError(_DIFF_MARK.sub("", text))
    if _SOFT_BREAK.search(text):
        text = quopri.decodestring(text.encode()).decode("utf-8", errors="replace")
        notes.append(QUOTED_PRINTABLE)
    for name, prefix, share in PREFIXES:
        count = sum(1 for _ in prefix.finditer(text))
        if count and count >= share * sum(1 for _ in re.finditer(r"\S.*", text)):
            text = prefix.sub("", text)
            notes.append(f"{name} were taken off {quantity(count, 'line')}")
    for cause, lines in WRAPPED:
        text, count = lines.subn(r"\1 \2", text)
        if count:
            notes.append(f"{quantity(count, 'line')} that {cause} were joined")
    text, count = _without_indent(text)
    if count:
        notes.append(f"the blanks before {quantity(count, 'line')} were taken off")
    return without_lead(text), tuple(notes)


def _is_diff(text: str) -> bool:
    """Whether a text is a diff, or has lines of one first word that are taken out and put in again."""
    words = set(_FIRST_WORD.findall(text)) if _EXCHANGED.search(text) else set()
    return bool(_DIFF.search(text)) or any(("-", word) in words for sign, word in words if sign == "+")


def _decoded(content: bytes) -> tuple[str, list[str]]:
    """The characters without those for a terminal, and what was done to the bytes; UserError if too large."""
    notes = []
    if content.startswith(b"\x1f\x8b"):
        content = _unpacked(content)
        notes.append(PACKED)
    if wide := _wide_encoding(content):
        text = content.decode(wide, errors="replace")
        notes.append(UTF_16)
    else:
        # Editors and shells of other systems put a mark of the byte order at the beginning.
        text = content.decode("utf-8-sig", errors="replace")
    if len(content) > WIDE_BYTES:
        text = text.encode("latin-1", errors="replace").decode("latin-1")
    if max(text.count("\n"), text.count("\r")) > MOST_LINES:
        raise UserError(f"it has more than {MOST_LINES:,} lines")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text).translate(_BLANKS), notes


def _wide_encoding(content: bytes) -> str:
    """The name of the encoding of a text in UTF-16, with or without a mark of the byte order; "" of any other."""
    if content.startswith(_UTF_16_MARKS):
        return "utf-16"
    high, low = content[0:LEAD_BYTES:2], content[1:LEAD_BYTES:2]
    for name, zeros, others in (("utf-16-le", low, high), ("utf-16-be", high, low)):
        if not others.count(0) and zeros.count(0) > _MOSTLY * len(zeros):
            return name
    return ""


def _unpacked(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return read_bounded(file, LARGEST_TEXT_BYTES, "unpacked, it")
    except (OSError, EOFError, zlib.error):
        raise UserError("it was packed with gzip, and the packed file is damaged or was cut off") from None


def _without_indent(text: str) -> tuple[str, int]:
    """The text without the blanks that all lines of a block have in common, and from how many lines they were taken."""
    count = 0

    def unindented(block: re.Match[str]) -> str:
        nonlocal count
        lines = block[0].splitlines(keepends=True)
        common = min(len(line) - len(line.lstrip(" ")) for line in lines)
        if not common or not _INDENTED.match(lines[0]):
            return block[0]
        count += len(lines)
        return "".join(line[common:] for line in lines)

    return (_BLOCK.sub(unindented, text), count) if _INDENTED.search(text) else (text, 0)


def without_lead(text: str) -> str:
    """A JSON document without the lines before it, such as those of sudo; any other text unchanged."""
    begin = _JSON_BEGIN.search(text[:LEAD_BYTES])
    if begin and text.rstrip().endswith("}") and "{" not in text[: begin.start()]:
        return text[begin.start() :]
    return text


def without_cut_line(text: str, lines: ToolLines) -> tuple[str, tuple[Doubt, ...]]:
    """The text without a last line of figures that has no end, and a doubt if there was one.

    A figure that was cut off is another figure: 106.589 becomes 106, or 1.
    """
    whole, newline, last = text.rpartition("\n")
    if not whole.strip() or not lines.figures.match(last):
        return text, ()
    what = "the last line has no end, so the file may have been cut off in it: this line is left out"
    return whole + newline, (Doubt("lines-unread", Severity.WARNING, what, "save the output again", _quoted([last])),)


def unread_lines(text: str, lines: ToolLines, tool: str) -> tuple[tuple[str, ...], tuple[Doubt, ...]]:
    """A note on lines that are none of the tool's, and a doubt on lines of figures that cannot be read."""
    figures, foreign = [], []
    for line in filter(str.strip, lines.read.sub("", text).splitlines()):
        if lines.figures.match(line) or _row_behind_prefix(line, lines):
            figures.append(line)
        elif lines.other and not lines.other.match(line):
            foreign.append(line)
    notes = (f"{quantity(len(foreign), 'line')} of it {tool} does not print: {_quoted(foreign)}",) if foreign else ()
    if not figures:
        return notes, ()
    what = f"{quantity(len(figures), 'line')} of figures cannot be read: {_quoted(figures[:1])}"
    return notes, (Doubt("lines-unread", Severity.WARNING, what, "save the output again", _quoted(figures)),)


def _row_behind_prefix(line: str, lines: ToolLines) -> bool:
    """Whether a line is one that the importer reads, behind words that are none of the tool's."""
    most = 2 if line.startswith("#") else MOST_PREFIX_WORDS  # a comment of a tool may end in figures
    ends = [each.end() for each in islice(_PREFIX_END.finditer(line, 0, LONGEST_LINE), most)]
    return any(lines.figures.match(line[end:]) and lines.read.match(line[end:]) for end in ends)


def _quoted(lines: Sequence[str]) -> str:
    """The first lines, and how many more there are."""
    shown = ", ".join(repr(" ".join(line.split())[:LONGEST_LINE]) for line in lines[:3])
    return f"{shown} and {len(lines) - 3:,} more" if len(lines) > 3 else shown
