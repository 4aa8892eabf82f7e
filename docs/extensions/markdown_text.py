# SPDX-License-Identifier: Apache-2.0
"""Turns the texts of the program, its help and its docstrings, into Markdown that says the same."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence

Link = Callable[[str], str | None]
"""The address of a command's page; None if the words are no command, or if nothing is to be linked."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LIST_LIKE = re.compile(r"^(\d*)([-+.)])(?=\s)")
"""What would begin an item of a list."""
_TOKEN = re.compile(
    r"``(?P<code>.+?)``"
    r"|'(?P<command>rtproof(?: [^']+)?)'"
    r"|(?P<url>https?://[^\s()<>]*[^\s()<>.,;:])"
    r"|(?<![\w\-./=])(?P<option>--?[A-Za-z][\w-]*)",
)
KEEP_LINES = "\b"
"""Click's mark: the lines of this paragraph stay as they are."""
INDENT = "    "


def no_link(_command: str) -> None:
    """For pages that are read without the others."""


def escape(text: str) -> str:
    """The text with nothing in it that Markdown takes for markup within a line."""
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """The text as code, whatever backticks it has."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def inline(text: str, link: Link = no_link) -> str:
    """One paragraph in one line: options, commands in quotes and words in double backticks are code, commands links."""
    words = " ".join(text.split())
    parts: list[str] = []
    at = 0
    for found in _TOKEN.finditer(words):
        parts += [escape(words[at : found.start()]), _marked(found, link)]
        at = found.end()
    whole = "".join([*parts, escape(words[at:])])
    return _LIST_LIKE.sub(r"\1\\\2", whole)


def _marked(found: re.Match[str], link: Link) -> str:
    if found["url"]:
        return f"<{found['url']}>"
    command = found["command"] or ""
    words = found["code"] or command or found["option"]
    address = link(command or words)
    return f"[{code(words)}]({address})" if address else code(words)


def prose(text: str, link: Link = no_link) -> str:
    """Paragraphs of a help text or a docstring. Those that are indented or follow click's mark \\b keep their lines."""
    return "\n\n".join(_paragraph(each, link) for each in re.split(r"\n\s*\n", inspect.cleandoc(text)) if each.strip())


def _paragraph(text: str, link: Link) -> str:
    lines = text.split("\n")
    if lines[0].strip(" ") == KEEP_LINES:
        return literal(lines[1:])
    if all(line.startswith(INDENT) for line in lines):
        return literal(line.removeprefix(INDENT) for line in lines)
    return inline(text, link)


def literal(lines: Iterable[str]) -> str:
    """Lines as they are."""
    return "\n".join(["```text", *lines, "```"])


def option(signature: str, *paragraphs: str, indexed: bool = True) -> str:
    """An option or an argument with what it does. indexed: other pages can name it, and the search finds it."""
    body = [] if indexed else [":no-index:", ""]
    return "\n".join([f"````{{option}} {signature}", *body, "\n\n".join(filter(None, paragraphs)), "````"])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace(chr(10), ' ') for cell in line)} |" for line in lines)


def toctree(pages: Iterable[str], *options: str) -> str:
    """The pages below this one."""
    return "\n".join(["```{toctree}", *(f":{each}:" for each in ("hidden", *options)), "", *pages, "```"])


def page(title: str, *blocks: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", *filter(None, blocks)]) + "\n"
