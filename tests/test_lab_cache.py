# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rtproof.errors import TargetError, UserError
from rtproof.lab.cache import MANIFEST, Cache
from rtproof.lab.cells import Cost

COST = Cost(4.5, 2.0)


def fill(folder: Path) -> Cost:
    (folder / "run.rtrec").write_text("a record")
    (folder / "agent.log").write_text("")
    return COST


def never(folder: Path) -> Cost:
    raise AssertionError("made again")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cells")


def test_a_cell_is_made_once(cache: Cache) -> None:
    assert cache.find("a") is None
    made = cache.make("a", fill)
    assert (made.fresh, made.cost, made.folder) == (True, COST, cache.root / "a")
    found = cache.make("a", never)
    assert (found.fresh, found.cost, found.folder) == (False, COST, made.folder)
    assert sorted(path.name for path in made.folder.iterdir()) == ["agent.log", MANIFEST, "run.rtrec"]


def test_each_key_has_its_own(cache: Cache) -> None:
    cache.make("a", fill)
    assert cache.find("b") is None


DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda folder: (folder / "run.rtrec").write_text("A record"),
    "cut": lambda folder: (folder / "run.rtrec").write_text(""),
    "gone": lambda folder: (folder / "run.rtrec").unlink(),
    "more": lambda folder: (folder / "run.json").write_text("{}"),
    "no manifest": lambda folder: (folder / MANIFEST).unlink(),
    "torn manifest": lambda folder: (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes()[:-5]),
    "another manifest": lambda folder: (folder / MANIFEST).write_text('{"host_s": "x"}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_is_made_again(cache: Cache, damage: str) -> None:
    DAMAGES[damage](cache.make("a", fill).folder)
    assert cache.find("a") is None
    assert cache.make("a", fill).fresh
    assert not cache.make("a", never).fresh
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


def test_a_failure_is_no_cell_but_leaves_its_logs_until_the_next_attempt(cache: Cache) -> None:
    def fail(folder: Path) -> Cost:
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


def test_ctrl_c_leaves_nothing(cache: Cache) -> None:
    def interrupt(folder: Path) -> Cost:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.make("a", interrupt)
    assert list(cache.root.iterdir()) == []


def test_of_two_labs_at_once_the_first_result_stays(cache: Cache) -> None:
    def slow(folder: Path) -> Cost:
        other = Cache(cache.root)
        (cache.root / f"a.{os.getpid()}").rename(cache.root / "aside")
        other.make("a", fill)
        (cache.root / "aside").rename(folder)
        (folder / "run.rtrec").write_text("a record")
        return Cost(9.0, 2.0)

    assert cache.make("a", slow).folder == cache.root / "a"
    found = cache.find("a")
    assert found is not None
    assert found.cost == COST
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text("a file in the way")
    with pytest.raises(UserError, match="cannot keep the cell in"):
        Cache(tmp_path / "cells").make("a", fill)
