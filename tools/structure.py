# SPDX-License-Identifier: Apache-2.0
"""The modules of src/rtproof and their imports, read from the source text: nothing is imported or run.

An import that is written as a string is not seen.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOST = Path("src/rtproof")
Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A Python file of the host. ``name``: dotted, a package's own for its ``__init__.py``."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


@dataclass(frozen=True)
class Import:
    """One module names another. ``late``: inside a function, or only for the type checker."""

    importer: str
    imported: str
    late: bool


@functools.cache
def host_modules(root: Path) -> list[Module]:
    """Every Python file of src/rtproof, in the order of the names."""
    source = root / HOST
    paths = sorted(path for path in source.rglob("*.py") if "vendor" not in path.parts)
    return [_module(path, path.relative_to(source.parent)) for path in paths]


def _module(path: Path, place: Path) -> Module:
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
    except (SyntaxError, ValueError) as error:
        raise SystemExit(f"{path} is no Python that can be read: {error}") from None
    parts = place.parent.parts if path.name == "__init__.py" else place.with_suffix("").parts
    return Module(".".join(parts), path, tree)


def host_imports(modules: Sequence[Module]) -> list[Import]:
    """Every import of one module of the host by another, once for each place where it is written."""
    names = {module.name for module in modules}
    return [
        Import(module.name, imported, late)
        for module in modules
        for node, late in _import_statements(module.tree)
        for imported in sorted(_targets(node, module, names) - {module.name})
    ]


def _import_statements(node: ast.AST, late: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        else:
            yield from _import_statements(child, late or _is_function(child) or _is_for_types(child))


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_for_types(node: ast.AST) -> bool:
    """Whether a node is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"


def _targets(node: ast.Import | ast.ImportFrom, module: Module, names: set[str]) -> set[str]:
    """The modules of the host that a statement names: ``from a import b`` names a.b if that is a module, else a."""
    base = f"{_absolute(node, module)}." if isinstance(node, ast.ImportFrom) else ""
    paths = [base + alias.name for alias in node.names]
    nearest = (path if path in names else path.rpartition(".")[0] for path in paths)
    return {path for path in nearest if path in names}


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*base, *([node.module] if node.module else [])])


def package_of(name: str) -> str:
    """The package of docs/layers.md that a module belongs to: the part after ``rtproof``, or ``rtproof`` itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def graph_of(arrows: Iterable[tuple[str, str]]) -> Graph:
    """From each start of an arrow to all its ends; arrows from a node to itself are left out."""
    graph: dict[str, set[str]] = defaultdict(set)
    for start, end in arrows:
        if start != end:
            graph[start].add(end)
    return dict(graph)


def circles(graph: Graph) -> list[list[str]]:
    """The largest groups of nodes in which every node reaches every other one: strongly connected components."""
    ends_of = {node: reached(graph, node) for node in graph}
    groups = {
        frozenset(other for other in ends if node in ends_of.get(other, ()))
        for node, ends in ends_of.items()
        if node in ends
    }
    return sorted(sorted(group) for group in groups)


def reached(graph: Graph, start: str) -> set[str]:
    """The nodes at the ends of all ways from ``start``; ``start`` itself only if it lies on a circle."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen
