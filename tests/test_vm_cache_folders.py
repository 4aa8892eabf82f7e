# SPDX-License-Identifier: Apache-2.0

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import rtproof
from rtproof.core.errors import TargetError, UserError
from rtproof.lab.guest_cell import CellCost, CellStore
from rtproof.vm import cache_folders


def fill(part: Path) -> Mapping[str, str]:
    (part / "lib").mkdir()
    (part / "image").write_bytes(b"kernel")
    (part / "lib" / "a.ko").write_bytes(b"module")
    (part / "lib" / "link").symlink_to("a.ko")
    return {"version": "1"}


def refuse(part: Path) -> Mapping[str, str]:
    pytest.fail("made again")


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    first = cache_folders.obtain_folder(tmp_path / "a", fill)
    assert (first.folder, dict(first.facts), first.size) == (tmp_path / "a", {"version": "1"}, 12)
    assert cache_folders.obtain_folder(tmp_path / "a", refuse) == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: (place / "lib" / "a.ko").unlink(),
        lambda place: (place / "lib" / "a.ko").write_bytes(b"mod"),
        lambda place: (place / "lib" / "a.ko").write_bytes(b"modulf"),
        lambda place: ((place / "image").unlink(), (place / "image").symlink_to("lib/a.ko")),
        lambda place: (place / cache_folders.FILE_LIST).unlink(),
        lambda place: (place / cache_folders.FILE_LIST).write_text("{"),
        lambda place: (place / cache_folders.FILE_LIST).write_text("[]"),
        lambda place: (place / cache_folders.FILE_LIST).write_text('{"facts": {}, "files": {"image": 3}}'),
    ],
)
def test_a_damaged_folder_is_noticed_and_made_anew(tmp_path: Path, damage: object) -> None:
    cache_folders.obtain_folder(tmp_path / "a", fill)
    damage(tmp_path / "a")  # type: ignore[operator]
    assert cache_folders.find_stored(tmp_path / "a") is None
    cache_folders.obtain_folder(tmp_path / "a", fill)
    assert (tmp_path / "a" / "lib" / "a.ko").read_bytes() == b"module"


def test_what_fails_leaves_the_old_and_nothing_half_made(tmp_path: Path) -> None:
    cache_folders.obtain_folder(tmp_path / "a", fill)

    def interrupted(part: Path) -> Mapping[str, str]:
        (part / "half").write_bytes(b"")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache_folders.obtain_folder(tmp_path / "a", interrupted, again=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.lock"]
    assert cache_folders.obtain_folder(tmp_path / "a", refuse).facts["version"] == "1"


def test_two_labs_at_once_fetch_once(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    made = []

    def slow(part: Path) -> Mapping[str, str]:
        begun.set()
        assert go.wait(300)
        made.append(part)
        return fill(part)

    threads = [threading.Thread(target=cache_folders.obtain_folder, args=(tmp_path / "a", slow)) for _ in range(2)]
    threads[0].start()
    assert begun.wait(300)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(300)
    assert len(made) == 1


COST = CellCost(4.5, 2.0)


def fill_cache(folder: Path) -> CellCost:
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
    assert cache.make("a", fill_cache) == COST
    assert cache.make("a", never) == cache.find("a") == COST
    assert sorted(path.name for path in cache.folder("a").iterdir()) == ["agent.log", "files.json", "run.rtrec"]


@pytest.mark.parametrize("facts", ["{}", '{"cost": "{}"}', '{"cost": 3}', '{"cost": "{\\"host_s\\": \\"x\\"}"}'])
def test_a_cell_whose_cost_is_none_is_made_again(cache: CellStore, facts: str) -> None:
    cache.make("a", fill_cache)
    listed = json.loads((cache.folder("a") / cache_folders.FILE_LIST).read_text())
    listed["facts"] = json.loads(facts)
    (cache.folder("a") / cache_folders.FILE_LIST).write_text(json.dumps(listed))
    assert cache.find("a") is None
    cache.make("a", fill_cache)
    assert cache.make("a", never) == COST


def test_a_failure_is_no_cell_but_leaves_its_logs_until_the_next_attempt(cache: CellStore) -> None:
    def fail(folder: Path) -> CellCost:
        (folder / "console.log").write_text("panic")
        raise TargetError("the guest's kernel panicked")

    with pytest.raises(TargetError):
        cache.make("a", fail)
    assert cache.find("a") is None
    assert (cache.root / "a.part" / "console.log").read_text() == "panic"
    cache.make("a", fill_cache)
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["a"]


SIZE = 1000
LONG_AGO_S = 1_000_000_000
USER = """
import sys
from pathlib import Path
from rtproof.vm import cache_folders
cache_folders.use_cache(Path(sys.argv[1]), lambda: None)
print("used", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Cells a to d of 1000 bytes, of which a was used first; e is what a failed attempt left between b and c."""
    for at, name in enumerate(("a", "b", "b.1", "c", "d")):
        folder = tmp_path / "cells" / name
        folder.mkdir(parents=True)
        (folder / "run.rtrec").write_bytes(bytes(SIZE))
        os.utime(folder, (LONG_AGO_S + at, LONG_AGO_S + at))
    return tmp_path / "cells"


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir())


@contextmanager
def user(root: Path) -> Iterator[None]:
    """Another process that uses the cells, and runs."""
    command = [sys.executable, "-c", USER, str(root)]
    environment = {**os.environ, "PYTHONPATH": str(Path(rtproof.__file__).parent.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "used\n"
        try:
            yield
        finally:
            process.kill()


def test_the_longest_unused_go_first_with_what_failed_attempts_left(root: Path) -> None:
    cache_folders.bound_cache(root, 3 * SIZE)
    assert left(root) == ["b.1", "c", "d"]
    cache_folders.bound_cache(root, SIZE)
    assert left(root) == ["d"]


def test_what_a_running_lab_uses_is_cut_by_the_first_one_after_it(root: Path) -> None:
    def cut() -> None:
        cache_folders.bound_cache(root, SIZE)

    with user(root):
        with pytest.raises(UserError, match="a lab is running"), cache_folders.unused_cache(root):
            pytest.fail("it is used")
        with user(root):
            pass
        assert cache_folders.mark_used(root / "a")
        assert not cache_folders.mark_used(root / "gone")
    cache_folders.use_cache(root, cut)
    assert left(root) == ["a"]
    cache_folders.use_cache(root, lambda: pytest.fail("it is in use"))
    with pytest.raises(UserError, match="a lab is running"), cache_folders.unused_cache(root):
        pytest.fail("it is used")


def test_links_and_pipes_in_a_cache_hinder_nobody(root: Path, tmp_path: Path) -> None:
    """A link counts nothing and is removed itself, wherever it leads."""
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    (kept / "file").write_bytes(b"x" * SIZE)
    for name, target in (("gone", "/nowhere"), ("loop", "loop"), ("far", str(kept))):
        (root / name).symlink_to(target)
    os.mkfifo(root / "1")
    entries = cache_folders.cache_entries(root)
    assert {path.name: cache_folders.entry_bytes(path) for _, path in entries if path.is_symlink()} == dict.fromkeys(
        ("gone", "loop", "far"), 0
    )
    cache_folders.bound_cache(root, 0)
    assert left(root) == []
    assert [path.name for path in kept.iterdir()] == ["file"]
