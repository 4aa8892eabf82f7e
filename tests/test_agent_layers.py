# SPDX-License-Identifier: Apache-2.0
"""The agent's folders keep to the table of docs/layers.md, and no two of its files need each other."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AGENT = ROOT / "agent"
CONTRACTS = {"probes/probe.h", "loads/load.h"}
"""What a plug-in promises. A row of the table names them ``contracts``."""
TABLE = re.compile(r"^\| `agent/(?P<folder>[a-z/]*)` \| *(?P<may>[^|]*?) *\|", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def sources() -> dict[str, set[str]]:
    """Each file of the agent but its tests, and what it includes, both from the agent's folder."""
    files = [path for path in AGENT.rglob("*.[ch]") if path.relative_to(AGENT).parts[0] != "tests"]
    return {str(path.relative_to(AGENT)): set(INCLUDE.findall(path.read_text())) for path in files}


def allowed() -> dict[str, set[str]]:
    """The table: each folder, and those that it may include from."""
    text = (ROOT / "docs" / "layers.md").read_text()
    return {row["folder"].rstrip("/"): set(re.findall(r"[a-z/]+", row["may"])) for row in TABLE.finditer(text)}


def folder(file: str) -> str:
    return file.rpartition("/")[0]


def test_every_folder_is_in_the_table() -> None:
    assert {folder(file) for file in sources() if folder(file)} == set(allowed())


@pytest.mark.parametrize("name", sorted(allowed()))
def test_a_folder_includes_only_what_the_table_allows(name: str) -> None:
    may = allowed()[name] | {name}
    others = {
        f"{file} includes {included}"
        for file, all_included in sources().items()
        for included in all_included
        if folder(file) == name and folder(included) not in may and not ("contracts" in may and included in CONTRACTS)
    }
    assert not others


def test_the_table_has_no_circle() -> None:
    TopologicalSorter({name: may - {"contracts"} for name, may in allowed().items()}).prepare()


def test_no_two_files_need_each_other() -> None:
    """A .c and its .h are one; CycleError names the files of a circle."""
    needs: dict[str, set[str]] = {}
    for file, included in sources().items():
        one = file[:-2]
        needs.setdefault(one, set()).update(name[:-2] for name in included if name[:-2] != one)
    TopologicalSorter(needs).prepare()


def test_what_is_included_is_there() -> None:
    """Each include is written from the agent's folder."""
    assert {name for included in sources().values() for name in included} <= set(sources()) | {"probes/kernel/kmod.h"}
