# SPDX-License-Identifier: Apache-2.0
"""usage: api_reference.py [FILE]    writes the reference of the Python API; default: docs/python/reference.md

The page is made of the docstrings. The signatures are those of the source text: how Python prints a type differs
between its versions.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import wrap

import rtproof

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "python" / "reference.md"
WIDTH = 120
ALIASES = """
| name in a signature | what it stands for |
| --- | --- |
| `Duration` | `str` or `int`: text with a unit, or nanoseconds |
| `Limits` | a `Duration`, a sequence of them, or `None` |
| `View` | `"observed"`: the activations that ran; `"schedule"`: all that were due, the missed ones, too |
| `Runs` | a path, a `Run`, an `Archive`, or a sequence of paths or runs |
| `Kind` | `"run"`, `"record"`, `"samples"`, `"trace"` or `"histogram"` |
| `Sentences` | a tuple of lines, each a tuple of a label and a text |
"""
HEAD = """\
# Reference of the Python API

`import rtproof` offers these names, and those alone are public. `python tools/api_reference.py` makes this page of
their docstrings.

Times are whole nanoseconds, and their names end with `_ns`. An argument that is a time takes text with a unit, such as
`"500us"`, or a whole number of nanoseconds. `None` means that a run does not tell a figure, an empty text
that there is nothing to tell. Results are frozen dataclasses: they can be compared with `==`, and they can be pickled.
A `Run`, `Archive`, `Samples` or `SampleChunk` can be pickled, too, but equals only itself. Every error of yours, of a
file or of the system is an `RtproofError`, whose text is one sentence. `from rtproof import *` hides Python's own
`open`: write `import rtproof`.
"""
GROUPS = {
    "Open, measure, compare": ("open", "open_archive", "run", "compare", "history"),
    "A run": ("Run", "Thread", "Samples", "SampleChunk"),
    "Its numbers": ("Summary", "Figures", "Distribution", "Quantile", "Doubt"),
    "Its verdict": ("Verdict", "State", "Requirement", "Episode"),
    "Its causes": ("Explanation", "Cause", "NamedCause", "Budget", "LateActivation", "BudgetPart", "Coincidence"),
    "Several runs": ("Archive", "Comparison", "Effect", "Difference", "History", "Change"),
    "Errors": ("RtproofError", "RunInterrupted"),
}
SEQUENCE = ("__len__", "__iter__", "__getitem__", "__bool__", "__str__")
"""Special methods that say how users may treat an object."""


@cache
def definitions(module: str) -> dict[str, ast.ClassDef | ast.FunctionDef]:
    """The classes and functions of a module by their names."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: each for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}


def definition(name: str) -> ast.ClassDef | ast.FunctionDef:
    """Where the source defines a public name."""
    found = getattr(rtproof, name)
    return definitions(found.__module__)[found.__name__]


def is_public(name: str) -> bool:
    """Whether a member belongs to the surface."""
    return not name.startswith("_") or name in SEQUENCE


def signature(node: ast.FunctionDef) -> str:
    """The signature in one line, as in the source."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The public methods and properties, without the overloads of one."""
    found = [each for each in node.body if isinstance(each, ast.FunctionDef) and is_public(each.name)]
    return [each for each in found if "overload" not in map(ast.unparse, each.decorator_list)]


def page() -> str:
    """The whole page."""
    left = set(rtproof.__all__) - {"__version__"} - {name for names in GROUPS.values() for name in names}
    assert not left, f"give {', '.join(sorted(left))} a place in GROUPS"
    parts = [HEAD.rstrip("\n"), ALIASES.rstrip("\n")]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [line for name in names for line in _section(name)]
    return "\n".join(parts) + "\n"


def _section(name: str) -> Iterator[str]:
    node = definition(name)
    yield f"\n### {name}\n"
    if isinstance(node, ast.FunctionDef):
        yield _fence(node, "rtproof.")
        yield from _markdown(ast.get_docstring(node) or "", {})
        return
    yield from _markdown(ast.get_docstring(node) or "", dict(_types(node)))
    for method in methods(node):
        is_property = any("property" in ast.unparse(each) for each in method.decorator_list)
        yield f"\n#### {name}.{method.name}\n"
        yield (
            f"A property: `{ast.unparse(method.returns)}`.\n" if is_property and method.returns else _fence(method, "")
        )
        yield from _markdown(ast.get_docstring(method) or "", {})


def _types(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The type of each attribute; of an enumeration its members."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            yield ast.unparse(each.target), ast.unparse(each.annotation)


def _fence(node: ast.FunctionDef, before: str) -> str:
    """The signature in a fence that no test runs, an argument a line where it is long."""
    line = before + signature(node)
    if len(line) > WIDTH:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        line = f"{before}{node.name}(\n" + "".join(f"    {each},\n" for each in _arguments(node.args)) + f"){returns}"
    return f"```text\n{line}\n```\n"


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Each argument with its annotation and its default."""
    missing = [None] * (len(given.args) - len(given.defaults))
    yield from (_argument(*pair) for pair in zip(given.args, [*missing, *given.defaults], strict=True))
    if given.kwonlyargs:
        yield "*"
        yield from (_argument(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True))


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return argument.arg + kind + (f" = {ast.unparse(default)}" if default else "")


def _markdown(docstring: str, types: Mapping[str, str]) -> Iterator[str]:
    """A docstring with the sections Args, Attributes and Returns as Markdown. types: of the attributes."""
    for part in docstring.replace("``", "`").split("\n\n"):
        title, _, rest = part.partition("\n")
        if title == "Returns:":
            yield f"Returns: {' '.join(rest.split())}\n"
        elif title in ("Args:", "Attributes:"):
            yield "\n".join(_items(rest, types)) + "\n"
        else:
            yield part.replace("*", "\\*") + "\n"


def section_items(rest: str) -> Iterator[tuple[str, str]]:
    """Name and words of each item of a section; further lines of an item stand further in."""
    for item in re.split(r"\n {4}(?! )", "\n" + rest)[1:]:
        name, _, words = " ".join(item.split()).partition(": ")
        yield name, words


def _items(rest: str, types: Mapping[str, str]) -> Iterator[str]:
    """A line of a list for each item."""
    for name, words in section_items(rest):
        kind = f" ({types[name]})" if name in types else ""
        yield from wrap(f"* `{name}{kind}`: {words}", WIDTH, subsequent_indent="  ", break_long_words=False)


def main(words: list[str]) -> None:
    """Write the page."""
    Path(words[0] if words else PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
