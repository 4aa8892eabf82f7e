#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what makes this repository easy or hard to learn, and compares the figures with those of a file.

The host is the Python package in src/rtproof, the agent is the C program in agent/. Every figure is read from the
source text; nothing of the project is imported or run. An import that is written as a string is therefore not seen.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import agent_source

ROOT = Path(__file__).parent.parent
HOST = Path("src/rtproof")
PLUG_IN_FOLDERS = {"commands", "exporters", "formats", "importers", "rules", "sections", "targets"}
"""A module in one of these folders is a plug-in. The file's name is a word of the user, so it may stand twice."""
MOST_PYTHON_PATHS = 10
MOST_C_PATHS = 15
Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A Python file of the host. ``name``: dotted, a package's own for its ``__init__.py``."""

    name: str
    path: Path
    tree: ast.Module
    line_count: int

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


@dataclass(frozen=True)
class Import:
    """One module names another. ``late``: inside a function, or only for the type checker."""

    importer: str
    imported: str
    late: bool


@dataclass(frozen=True)
class Figure:
    """A number about the source; ``items`` are the things that it counts, where it counts things with names."""

    key: str
    meaning: str
    value: int
    items: tuple[str, ...] = ()
    has_margin: bool = True
    more_is_worse: bool = True

    def allowed(self, committed: int) -> int:
        """The worst value that is accepted beside a committed one: 2 % worse, or 1; no worse at all of circles."""
        margin = max(committed // 50, 1) if self.has_margin else 0
        return committed + margin if self.more_is_worse else committed - margin

    def is_worse(self, committed: int) -> bool:
        return (self.value > self.allowed(committed)) if self.more_is_worse else (self.value < self.allowed(committed))


# The host: modules, imports, names


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
    return Module(".".join(parts), path, tree, len(text.splitlines()))


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


def single_importers(modules: Iterable[Module], imports: Iterable[Import]) -> list[str]:
    """The modules that exactly one other module imports, each with that other one.

    Packages' own files and plug-ins are left out: each of these is a file of its own for another reason.
    """
    counted = (module.name for module in modules if not module.is_package and not _is_plug_in(module))
    importers: dict[str, set[str]] = {name: set() for name in counted}
    for each in imports:
        importers.get(each.imported, set()).add(each.importer)
    return [f"{name} by {min(users)}" for name, users in importers.items() if len(users) == 1]


def repeated(places: Iterable[tuple[str, str]]) -> list[str]:
    """The names that stand in more than one place, each with its places."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, place in places:
        found[name].append(place)
    return [f"{name}: {', '.join(sorted(where))}" for name, where in sorted(found.items()) if len(where) > 1]


def _is_plug_in(module: Module) -> bool:
    return not PLUG_IN_FOLDERS.isdisjoint(module.name.split(".")[:-1])


def _classes(modules: Iterable[Module]) -> list[tuple[str, str]]:
    """The name of each class, and the module that it stands in."""
    return [
        (node.name, module.name)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]


def function_imports(modules: Iterable[Module]) -> list[str]:
    """Each import statement inside a function, of the host or of a library."""
    return [
        f"{module.name}:{line}"
        for module in modules
        for line in sorted(
            {
                node.lineno
                for function in ast.walk(module.tree)
                if _is_function(function)
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
        )
    ]


def type_blocks(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.name}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and _is_for_types(node)
    ]


def python_complexity(function: ast.AST) -> int:
    """1 + each if, for, while, except, case, and, or, and conditional expression; functions within count apart."""
    count = 1
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, _PYTHON_BRANCHES):
            count += 1
        if not _is_function(node):
            waiting += ast.iter_child_nodes(node)
    return count


_PYTHON_BRANCHES = ast.If | ast.IfExp | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case


def complex_functions(modules: Iterable[Module]) -> list[str]:
    found = [
        (python_complexity(node), f"{module.name}.{node.name}")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [f"{count} {name}" for count, name in sorted(found, reverse=True) if count > MOST_PYTHON_PATHS]


# The figures


def repository_files(root: Path) -> list[str]:
    """Every file that git knows of; SystemExit where there is no git or no repository."""
    try:
        done = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit("git is not installed, which lists the files of the repository") from None
    if done.returncode:
        raise SystemExit(f"git cannot list the files of {root}: {done.stderr.strip()}")
    return done.stdout.split("\0")[:-1]


def test_files(root: Path) -> list[Path]:
    return sorted((root / "tests").rglob("test_*.py"))


def test_functions(root: Path) -> int:
    """The functions named test_* in the Python tests; one with parameters counts once."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in test_files(root))
    return len(re.findall(r"^[ \t]*(?:async )?def test_", text, re.MULTILINE))


def _listed(key: str, meaning: str, items: Iterable[str], *, has_margin: bool = True) -> Figure:
    found = tuple(items)
    return Figure(key, meaning, len(found), found, has_margin)


def _circles(key: str, meaning: str, arrows: Iterable[tuple[str, str]]) -> Figure:
    found = circles(graph_of(arrows))
    return _listed(key, meaning, (f"{len(names)}: {' '.join(names)}" for names in found), has_margin=False)


def _name_figures(modules: Sequence[Module]) -> list[Figure]:
    stems = [(each.path.stem, each.name) for each in modules if not each.is_package and not _is_plug_in(each)]
    classes = _classes(modules)
    asked = (place for name, place in classes if name == "Asked")
    # The API gives its users the nouns of the models that it is a layer over.
    private = [(name, place) for name, place in classes if package_of(place) != "api"]
    return [
        _listed("repeated_modules", "module names that stand twice (plug-ins apart)", repeated(stems)),
        _listed("repeated_classes", "class names that stand twice (Python API apart)", repeated(private)),
        _listed("asked_classes", "classes named Asked", asked, has_margin=False),
    ]


def _import_figures(modules: Sequence[Module]) -> list[Figure]:
    imports = host_imports(modules)
    # The package itself only names the Python API, lazily, and every module may read its version.
    every = [(each.importer, each.imported) for each in imports if each.importer != "rtproof"]
    at_once = [(each.importer, each.imported) for each in imports if not each.late]
    packages = [(package_of(start), package_of(end)) for start, end in every if "rtproof" not in (start, end)]
    return [
        _listed(
            "single_importers", "host modules with one importer (plug-ins apart)", single_importers(modules, imports)
        ),
        _listed("function_imports", "import statements inside functions", function_imports(modules)),
        _listed("type_blocks", "blocks of imports for the type checker", type_blocks(modules)),
        _circles("circles_at_start", "circles of host modules by imports at the top", at_once),
        _circles("circles", "circles of host modules by all imports", every),
        _circles("package_circles", "circles of host packages by all imports", packages),
    ]


def _host_figures(modules: Sequence[Module]) -> list[Figure]:
    lines = sum(module.line_count for module in modules)
    hard = complex_functions(modules)
    return [
        _listed("host_files", "Python files of the host", (module.name for module in modules)),
        Figure("host_lines", "lines of the host's Python", lines),
        *_name_figures(modules),
        *_import_figures(modules),
        _listed("complex_python", f"Python functions of complexity > {MOST_PYTHON_PATHS}", hard),
    ]


def _agent_figures(root: Path) -> list[Figure]:
    paths = agent_source.files(root)
    includes, uses = agent_source.includes(root), agent_source.uses(root)
    lines = sum(len(agent_source.text_of(root, path).splitlines()) for path in paths)
    hard = agent_source.complex_functions(root, MOST_C_PATHS)
    return [
        _listed("agent_files", "C files and headers of the agent (tests apart)", map(str, paths)),
        Figure("agent_lines", "lines of the agent's C", lines),
        _circles("agent_circles", "circles of agent files (.c with .h) by includes", includes),
        _circles("agent_circles_used", "circles of agent files by includes and calls", [*includes, *uses]),
        _listed("complex_c", f"C functions of complexity > {MOST_C_PATHS}", hard),
    ]


def figures(root: Path) -> list[Figure]:
    """All figures of a repository; SystemExit with a sentence if one cannot be told."""
    tests = Figure("test_functions", "functions test_* (one with parameters once)", test_functions(root))
    return [
        _listed("files", "files in git", repository_files(root)),
        *_host_figures(host_modules(root)),
        *_agent_figures(root),
        _listed("test_files", "Python files test_*.py", map(str, test_files(root))),
        replace(tests, more_is_worse=False),
    ]


# What is printed


def table(found: Sequence[Figure]) -> str:
    """A line for each figure: value, meaning, key."""
    lines = [f"{each.value:8,}  {each.meaning:<50}{each.key}" for each in found]
    return "\n".join(line.rstrip() for line in lines)


def values(found: Sequence[Figure]) -> str:
    """JSON: each key with its value."""
    return json.dumps({each.key: each.value for each in found}, indent=2) + "\n"


def read_values(path: Path) -> dict[str, int]:
    """The values that were stored in a file; SystemExit if it is not such a file."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read: {error}") from None
    if not isinstance(stored, dict) or not all(type(value) is int for value in stored.values()):
        raise SystemExit(f"{path} does not hold figures: an object of whole numbers is expected")
    return stored


def complaints(found: Sequence[Figure], committed: Mapping[str, int]) -> list[str]:
    """A sentence for each figure that is worse than the committed one by more than its margin, or has no partner."""
    missing = {each.key for each in found}.symmetric_difference(committed)
    worse = [each for each in found if each.key in committed and each.is_worse(committed[each.key])]
    return [
        *(f"{key} is not in both the program and the file: store the figures again" for key in sorted(missing)),
        *(_complaint(each, committed[each.key]) for each in worse),
    ]


def _complaint(figure: Figure, committed: int) -> str:
    bound = f"at {'most' if figure.more_is_worse else 'least'} {figure.allowed(committed):,} accepted"
    return f"{figure.key}: {figure.meaning}: {figure.value:,} now, {committed:,} committed, {bound}"


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="folder of the repository; default: this one")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--json", action="store_true", help="print the figures as JSON")
    choice.add_argument("--show", metavar="KEY", help="print what a figure counts, a line for each")
    choice.add_argument("--write", metavar="FILE", type=Path, help="store the figures as JSON")
    choice.add_argument("--check", metavar="FILE", type=Path, help="exit with 1 if a figure is worse than in FILE")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """0, or 1 if a figure is worse than committed, or 2 if something cannot be read."""
    options = _arguments(words)
    try:
        return _run(options, figures(options.root))
    except (SystemExit, OSError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, found: list[Figure]) -> int:
    if options.check:
        sentences = complaints(found, read_values(options.check))
        print("\n".join(sentences) or "No figure is worse than committed.")
        return int(bool(sentences))
    if options.write:
        options.write.write_text(values(found), encoding="utf-8")
    else:
        print(_output(options, found))
    return 0


def _output(options: argparse.Namespace, found: list[Figure]) -> str:
    if options.json:
        return values(found).rstrip()
    if not options.show:
        return table(found)
    items = {each.key: each.items for each in found}
    if options.show not in items:
        raise SystemExit(f"there is no figure {options.show}; there are: {', '.join(items)}")
    return "\n".join(items[options.show])


if __name__ == "__main__":
    sys.exit(main())
