# SPDX-License-Identifier: Apache-2.0
"""The cache of cells is held to a size. Its users are processes of their own: each keeps what it uses until it ends."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rtproof
from rtproof.core.errors import UserError
from rtproof.lab import stored_folders

SIZE = 1000
LONG_AGO_S = 1_000_000_000
USER = """
import sys
from pathlib import Path
from rtproof.lab import stored_folders
root = Path(sys.argv[1])
stored_folders.enrol_user(root)
print(*(stored_folders.mark_used(root / name) for name in sys.argv[2:]), flush=True)
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
    return sorted(path.name for path in root.iterdir() if path.is_dir() and path.name != stored_folders.USERS_FOLDER)


@contextmanager
def user(root: Path, *names: str) -> Iterator[None]:
    """Another process that uses some of the cells, and runs."""
    command = [sys.executable, "-c", USER, str(root), *names]
    environment = {**os.environ, "PYTHONPATH": str(Path(rtproof.__file__).parent.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        assert process.stdout.readline().split() == ["True"] * len(names)
        try:
            yield
        finally:
            process.kill()


def test_what_fits_stays(root: Path) -> None:
    stored_folders.bound_cache(root, 5 * SIZE)
    assert left(root) == ["a", "b", "b.1", "c", "d"]


def test_the_longest_unused_go_first_with_what_failed_attempts_left(root: Path) -> None:
    stored_folders.bound_cache(root, 3 * SIZE)
    assert left(root) == ["b.1", "c", "d"]
    stored_folders.bound_cache(root, SIZE)
    assert left(root) == ["d"]


def test_use_makes_a_cell_young(root: Path) -> None:
    assert stored_folders.mark_used(root / "a")
    stored_folders.bound_cache(root, 2 * SIZE)
    assert left(root) == ["a", "d"]


def test_what_is_gone_can_not_be_used(root: Path) -> None:
    assert not stored_folders.mark_used(root / "z")
    assert not stored_folders.mark_used(root.parent / "nowhere" / "z")
    assert not (root.parent / "nowhere").exists()


def test_what_a_running_lab_has_used_stays_until_it_ends(root: Path) -> None:
    with user(root, "a", "c"):
        assert stored_folders.mark_used(root / "d")
        stored_folders.bound_cache(root, 0)
        assert left(root) == ["a", "c", "d"]
    stored_folders.bound_cache(root, 0)
    assert left(root) == []
    assert list((root / stored_folders.USERS_FOLDER).iterdir()) == []


def test_a_cache_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(UserError, match=r"cannot keep the cells in .*/file/cells: Not a directory"):
        stored_folders.bound_cache(place / "cells")
