# SPDX-License-Identifier: Apache-2.0
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rtproof"

MAY_IMPORT = {
    "core": "",
    "record": "core",
    "statistics": "",
    "agents": "core",
    "profiles": "core",
    "loads": "core",
    "simulation": "core record",
    "vm": "core agents",
    "targets": "core simulation vm",
    "summary": "core record statistics",
    "tail": "core record statistics summary",
    "judge": "core record statistics summary tail",
    "compare": "core record statistics summary judge",
    "schema": "record statistics summary tail judge compare",
    "articles": "core judge",
    "importers": "core summary",
    "exporters": "core record summary judge",
    "report": "core record statistics profiles summary tail judge compare schema articles",
    "run": "core record targets",
    "lab": "core record loads vm summary judge report",
    "experiment": "core record agents profiles loads targets summary tail judge compare schema articles importers "
    "exporters report run lab vm",
    "cli": "everything",
}


def imported(tree: ast.AST) -> set[str]:
    """The packages of rtproof that a module imports, anywhere in it."""
    paths = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"line {node.lineno}: write the import with its full name, so that the layers can be seen"
            )
            paths |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [path.split(".") for path in paths]
    return {part[1] for part in parts if part[0] == "rtproof" and len(part) > 1 and not part[1].startswith("__")}


def trespasses(package: str, tree: ast.AST) -> list[str]:
    """A sentence for each import that the table does not allow to a module of ``package``."""
    assert package in MAY_IMPORT, f"{package} is new: give it a row in docs/layers.md and in {Path(__file__).name}"
    allowed = MAY_IMPORT[package].split()
    return [
        f"{package} may not import {other} (docs/layers.md): move what is needed to a lower layer, or hand it in"
        for other in sorted(imported(tree) - {package})
        if "everything" not in allowed and other not in allowed
    ]


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


MODULES = [path for path in SOURCE.rglob("*.py") if not package_of(path).startswith("__")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_import_only_what_their_layer_may(path: Path) -> None:
    assert trespasses(package_of(path), ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import rtproof.targets",
        "from rtproof import targets",
        "from rtproof.targets import local",
        "def f():\n  import rtproof.targets.local",
    ],
)
def test_a_trespass_is_found(statement: str) -> None:
    (sentence,) = trespasses("summary", ast.parse(statement))
    assert sentence.startswith("summary may not import targets")


def test_the_page_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\w+) \|(.*)\|$", (ROOT / "docs" / "layers.md").read_text(), re.MULTILINE)
    assert [(name, cells.strip().replace(",", "")) for name, cells in rows] == list(MAY_IMPORT.items())
