# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rtproof.core.errors import TargetError, UserError
from rtproof.lab.guest_cell import CELL_MANIFEST, CellCost, CellStore

COST = CellCost(4.5, 2.0)


def fill(folder: Path) -> CellCost:
    (folder / "run.rtrec").write_text("a record")
    (folder / "agent.log").write_text("")
    return COST


def never(folder: Path) -> CellCost:
    raise AssertionError("made again")


@pytest.fixture
def cache(tmp_path: Path) -> CellStore:
    return CellStore(tmp_path / "cells")


def test_a_cell_is_made_once(cache: CellStore) -> None:
    assert cache.find("a") is None
    made = cache.make("a", fill)
    assert (made.fresh, made.cost, made.folder) == (True, COST, cache.root / "a")
    found = cache.make("a", never)
    assert (found.fresh, found.cost, found.folder) == (False, COST, made.folder)
    assert sorted(path.name for path in made.folder.iterdir()) == ["agent.log", CELL_MANIFEST, "run.rtrec"]


def test_each_key_has_its_own(cache: CellStore) -> None:
    cache.make("a", fill)
    assert cache.find("b") is None


DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda folder: (folder / "run.rtrec").write_text("A record"),
    "cut": lambda folder: (folder / "run.rtrec").write_text(""),
    "gone": lambda folder: (folder / "run.rtrec").unlink(),
    "more": lambda folder: (folder / "run.json").write_text("{}"),
    "no manifest": lambda folder: (folder / CELL_MANIFEST).unlink(),
    "torn manifest": lambda folder: (folder / CELL_MANIFEST).write_bytes((folder / CELL_MANIFEST).read_bytes()[:-5]),
    "another manifest": lambda folder: (folder / CELL_MANIFEST).write_text('{"host_s": "x"}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_is_made_again(cache: CellStore, damage: str) -> None:
    DAMAGES[damage](cache.make("a", fill).folder)
    assert cache.find("a") is None
    assert cache.make("a", fill).fresh
    assert not cache.make("a", never).fresh
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


def test_a_failure_is_no_cell_but_leaves_its_logs_until_the_next_attempt(cache: CellStore) -> None:
    def fail(folder: Path) -> CellCost:
        (folder / "console.log").write_text("panic")
        raise TargetError("the guest's kernel panicked")

    with pytest.raises(TargetError):
        cache.make("a", fail)
    assert cache.find("a") is None
    (left,) = cache.root.iterdir()
    assert (left / "console.log").read_text() == "panic"
    dead = subprocess.Popen(["true"])
    dead.wait()
    left.rename(cache.root / f"a.{dead.pid}")
    assert cache.make("a", fill).fresh
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


def test_ctrl_c_leaves_nothing(cache: CellStore) -> None:
    def interrupt(folder: Path) -> CellCost:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.make("a", interrupt)
    assert list(cache.root.iterdir()) == []


def test_of_two_labs_at_once_the_first_result_stays(cache: CellStore) -> None:
    def slow(folder: Path) -> CellCost:
        other = CellStore(cache.root)
        (cache.root / f"a.{os.getpid()}").rename(cache.root / "aside")
        other.make("a", fill)
        (cache.root / "aside").rename(folder)
        (folder / "run.rtrec").write_text("a record")
        return CellCost(9.0, 2.0)

    assert cache.make("a", slow).folder == cache.root / "a"
    found = cache.find("a")
    assert found is not None
    assert found.cost == COST
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("a file in the way")
    with pytest.raises(UserError, match="cannot keep the cell in"):
        CellStore(tmp_path / "cells").make("a", fill)
