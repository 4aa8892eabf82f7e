# SPDX-License-Identifier: Apache-2.0
"""What the golden corpus keeps of an output: its words and figures, and nothing that depends on machine or day.

Every normalisation stands here: see ``REPLACED``, ``short_json`` and ``short_lines``.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Any

from rtproof import __version__

REPLACED = (
    # The version changes with each release, and the corpus shall not. Version 0.1.0 wrote the stored inputs.
    (re.compile(rf"(?<![\d.])(?:{re.escape(__version__)}|0\.1\.0)(?![\d.])"), "VERSION"),
    # JUnit says when it was written, on which machine.
    (re.compile(r'timestamp="[^"]*"'), 'timestamp="TIME"'),
    (re.compile(r'hostname="[^"]*"'), 'hostname="HOST"'),
    # Python prints a float with all digits; the last ones differ between versions of numpy and between CPUs.
    (re.compile(r"(?<![\w.])-?\d+\.\d{7,}(?:e[+-]?\d+)?"), lambda match: f"{float(match[0]):.6g}"),
)
"""What is replaced in every output, in this order."""

WIDTH = 110
"""JSON that fits stands on one line."""
SHORT_LIST = 12
"""So many values in a list without sentences stand whole."""
SHORT_RUN = 14
"""So many consecutive lines that differ only in their numbers stand whole."""
FIRST, LAST = 3, 2
"""How many are left at the begin and at the end of what is longer."""


def normalised(name: str, content: bytes, places: Iterable[Path]) -> str:
    """The lines of an output that the corpus keeps. name: of the file. places: folders whose paths are replaced."""
    text = content.decode(errors="backslashreplace")
    for place in places:
        text = text.replace(str(place), "FOLDER")
    text = text.replace("\r\n", "\n")
    if name.endswith(".html"):
        text = "\n".join(page_words(text))
    elif text.lstrip().startswith(("{", "[")):
        text = "\n".join(_json_lines(text))
    for pattern, replacement in REPLACED:
        text = pattern.sub(replacement, text)
    return "\n".join(short_lines(text.splitlines()))


def short_lines(lines: list[str]) -> Iterator[str]:
    """Of lines that differ only in their numbers, as those of a table, the first and last ones, and a digest."""
    for _, group in groupby(lines, key=lambda line: re.sub(r"[\d.,:+-]+", "0", re.sub(r"\s+", " ", line))):
        some = list(group)
        if len(some) <= SHORT_RUN:
            yield from some
        else:
            yield from (*some[:FIRST], _left_out(some[FIRST:-LAST], "lines"), *some[-LAST:])


def _left_out(some: list[Any], kind: str) -> str:
    """In place of what is left out: how many, and a digest in which a change of any of them is seen."""
    return f"... {len(some)} {kind}, sha256 {hashlib.sha256(json.dumps(some).encode()).hexdigest()[:12]} ..."


def _json_lines(text: str) -> list[str]:
    """JSON with one key on a line. What is not JSON is left as it is."""
    try:
        data = json.loads(text)
    except ValueError:
        return text.splitlines()
    return _drawn(short_json(data)).splitlines()


def short_json(data: Any) -> Any:
    """The same with floats of 6 digits, and with the first and last values of long lists."""
    if isinstance(data, float):
        return float(f"{data:.6g}")
    if isinstance(data, dict):
        return {key: short_json(value) for key, value in data.items()}
    if not isinstance(data, list):
        return data
    values = [short_json(value) for value in data]
    if len(values) <= SHORT_LIST or _has_sentence(values):
        return values
    return [*values[:FIRST], _left_out(values[FIRST:-LAST], "values"), *values[-LAST:]]


def _has_sentence(value: Any) -> bool:
    """A change of a sentence shall be read, so no digest takes its place."""
    if isinstance(value, dict | list):
        return any(map(_has_sentence, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and " " in value


def _drawn(data: Any, indent: str = "", key: str = "") -> str:
    """As json.dumps with an indent, but with everything on one line that fits."""
    line = key + json.dumps(data, ensure_ascii=False)
    if len(indent + line) < WIDTH or not isinstance(data, dict | list):
        return indent + line
    inner = f"{indent}  "
    if isinstance(data, dict):
        rows = [_drawn(value, inner, f"{json.dumps(name)}: ") for name, value in data.items()]
    else:
        rows = [_drawn(value, inner) for value in data]
    begin, end = "{}" if isinstance(data, dict) else "[]"
    return "\n".join([f"{indent}{key}{begin}", ",\n".join(rows), f"{indent}{end}"])


def page_words(html: str) -> list[str]:
    """The words of a page, one heading, paragraph, item or table row a line, and the data of its plots."""
    walk = _PageWords()
    walk.feed(html)
    walk.close()
    return walk.lines


class _PageWords(HTMLParser):
    WITHIN_A_LINE = frozenset(("a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "td", "th"))
    """All other elements begin and end a line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._line = ""
        self._inside: list[str] = []
        self._data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag not in self.WITHIN_A_LINE:
            self._end_line()
        if tag[0] == "h" and tag[1:].isdigit():
            self._line = f"{'#' * int(tag[1:])} "
        elif tag in ("td", "th"):
            self._line += " | " if self._line else ""
            spans = [f"{told[name]} {name}s" for name in ("rowspan", "colspan") if told.get(name)]
            self._line += f"({', '.join(spans)}) " if spans else ""
        elif tag == "rect":
            self.lines.append(f"bar: {told.get('class')} from {told.get('x')}, {told.get('width')} wide")
        elif tag in ("script", "style", "pre"):
            self._inside.append("data" if told.get("type") == "application/json" else tag)
        elif tag == "caption":
            self._line = "Table: "
        elif tag == "a" and not (told.get("href") or "#").startswith("#"):
            self._line += f"<{told['href']}> "

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.WITHIN_A_LINE:
            self._end_line()
        if tag in ("script", "style", "pre") and self._inside.pop() == "data":
            self.lines += ["Data of the plots:", *_json_lines(self._data)]
            self._data = ""

    def handle_data(self, data: str) -> None:
        inside = self._inside[-1] if self._inside else ""
        if inside == "data":
            self._data += data
        elif inside == "pre":
            self.lines += data.splitlines()
        elif not inside:
            self._line += re.sub(r"\s+", " ", data)

    def _end_line(self) -> None:
        if self._line.strip():
            self.lines.append(self._line.strip())
        self._line = ""
