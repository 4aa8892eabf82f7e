# SPDX-License-Identifier: Apache-2.0
"""Reads the C source of the agent: which file includes which, and how many paths lead through each function."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

AGENT = Path("agent")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
COMMENT_OR_STRING = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.VERBOSE | re.DOTALL
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
WORD = re.compile(r"\w+|&&|\|\||[^\w\s]")
BRANCHES = {"if", "for", "while", "case", "&&", "||", "?"}
NOT_FUNCTIONS = {"__attribute__", "_Alignas", "typeof", "__typeof__", "void", "int"}
"""Words before a parenthesis that are not the function's name: of attributes, and of types that a function returns."""


def files(root: Path) -> list[Path]:
    """Every .c and .h file of the agent, in its folders too, without the tests; paths from the agent's folder."""
    folder = root / AGENT
    paths = (path.relative_to(folder) for path in folder.rglob("*.[ch]"))
    return sorted(path for path in paths if "tests" not in path.parts)


def text_of(root: Path, path: Path) -> str:
    return (root / AGENT / path).read_text(encoding="utf-8")


def includes(root: Path) -> list[tuple[str, str]]:
    """Pairs of a file and one that it includes. x.c and x.h of one folder are one file, named without suffix."""
    known = files(root)
    return [
        (_node(path), _node(included))
        for path in known
        for name in INCLUDE.findall(text_of(root, path))
        for included in _included(Path(name), path, known)
    ]


def _node(path: Path) -> str:
    return path.with_suffix("").as_posix()


def _included(name: Path, path: Path, known: Sequence[Path]) -> list[Path]:
    """The file beside the one that includes it, else from the agent's folder, else anywhere; [] if it is not ours."""
    for candidate in (_without_dots(path.parent / name), name):
        if candidate in known:
            return [candidate]
    ends = _without_dots(name).parts
    anywhere = [each for each in known if each.parts[-len(ends) :] == ends]
    if len(anywhere) > 1:
        places = " or ".join(str(AGENT / each) for each in anywhere)
        raise SystemExit(f"{AGENT / path} includes {name}: nobody can say whether that is {places}")
    return anywhere


def _without_dots(path: Path) -> Path:
    kept: list[str] = []
    for part in path.parts:
        if part == ".." and kept:
            kept.pop()
        elif part != "..":
            kept.append(part)
    return Path(*kept)


def uses(root: Path) -> list[tuple[str, str]]:
    """Pairs of a file and one with a function that it names in its code; a header's declarations are no code."""
    blocks = {path: _blocks_of(root, path) for path in files(root)}
    homes = {
        name: _node(path)
        for path, found in blocks.items()
        for head, _ in found
        if "static" not in head and (name := _function_name(head))
    }
    return [
        (_node(path), homes[word])
        for path, found in blocks.items()
        for word in sorted({word for _, body in found for word in body} & homes.keys())
    ]


def _blocks_of(root: Path, path: Path) -> list[tuple[list[str], list[str]]]:
    try:
        return list(_blocks(_words(text_of(root, path))))
    except ValueError as error:
        raise SystemExit(f"{AGENT / path}: {error}") from None


def _words(text: str) -> list[str]:
    return WORD.findall(DIRECTIVE.sub(" ", COMMENT_OR_STRING.sub(_substitute, text)))


def _substitute(match: re.Match[str]) -> str:
    """A string becomes a number, so that a value still stands there; a comment becomes a space."""
    return "0" if match.group()[0] in "\"'" else " "


def _blocks(words: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """What stands before each outermost pair of braces, and what stands between them."""
    head: list[str] = []
    body: list[str] = []
    depth = 0
    for word in words:
        depth += (word == "{") - (word == "}")
        if depth < 0:
            raise ValueError("there is a closing brace without an opening one")
        if depth:
            body.append(word)
        elif word == "}":
            yield head, body
            head, body = [], []
        else:
            head = [] if word == ";" else [*head, word]
    if depth:
        raise ValueError("there is an opening brace without a closing one")


def _function_name(head: Sequence[str]) -> str | None:
    """The name before the first parenthesis; None of a type or of data, whose head has no parenthesis or a ``=``."""
    depth = 0
    for name, after in pairwise(head):
        if name == "=":
            return None
        if not depth and after == "(" and name.isidentifier() and name not in NOT_FUNCTIONS:
            return name
        depth += (name == "(") - (name == ")")
    return None


def functions(text: str) -> list[tuple[str, int]]:
    """Each function of a C file with its cyclomatic complexity: 1 + the number of ``if for while case && || ?`` in it.

    Comments, strings and lines of the preprocessor are left out, so the code of both branches of an ``#if`` counts.
    ValueError if the braces do not match.
    """
    return _counted(_blocks(_words(text)))


def _counted(blocks: Iterable[tuple[list[str], list[str]]]) -> list[tuple[str, int]]:
    named = ((_function_name(head), body) for head, body in blocks)
    return [(name, 1 + sum(word in BRANCHES for word in body)) for name, body in named if name]


def complex_functions(root: Path, most: int) -> list[str]:
    """The functions of a complexity above ``most``, the largest first; SystemExit names a file that cannot be read."""
    counted = {path: _counted(_blocks_of(root, path)) for path in files(root)}
    found = [(count, f"{AGENT / path} {name}") for path, functions in counted.items() for name, count in functions]
    return [f"{count} {place}" for count, place in sorted(found, reverse=True) if count > most]
