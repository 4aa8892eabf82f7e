# SPDX-License-Identifier: Apache-2.0
"""HTML that cannot be injected into: every plain string is escaped, only ``Markup`` made here is taken as it is."""

import html
import json
from collections.abc import Iterable

from rtproof.report.words import clean

VOID = {"meta", "link", "br", "hr", "img", "col"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(kind: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """One element. Attributes: class_ for class, aria_label for aria-label; True: no value; None, False: left out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if kind in VOID:
        return Markup(f"<{kind}{given}>")
    return Markup(f"<{kind}{given}>{join(children)}</{kind}>")


def join(children: Iterable[str]) -> Markup:
    """Children one after the other, the plain strings escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def escape(words: str) -> Markup:
    """Plain text, without what no document should hold."""
    return Markup(html.escape(clean(words)))


def json_script(identity: str, data: object) -> Markup:
    """Data for the page's script. < > & are written as \\u003c and so on, so that no string can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return element("script", Markup(text), type="application/json", id=identity)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
