# SPDX-License-Identifier: Apache-2.0

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from rtproof.core.errors import UserError
from rtproof.lab import stored_folders


def fill(part: Path) -> Mapping[str, str]:
    (part / "lib").mkdir()
    (part / "image").write_bytes(b"kernel")
    (part / "lib" / "a.ko").write_bytes(b"module")
    (part / "lib" / "link").symlink_to("a.ko")
    return {"version": "1"}


def refuse(part: Path) -> Mapping[str, str]:
    pytest.fail("made again")


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    first = stored_folders.obtain_folder(tmp_path / "a", fill)
    assert (first.folder, dict(first.facts), first.size) == (tmp_path / "a", {"version": "1"}, 12)
    assert sorted(first.sha256) == ["image", "lib/a.ko"]
    assert stored_folders.obtain_folder(tmp_path / "a", refuse) == first


def test_a_folder_is_made_anew_when_asked(tmp_path: Path) -> None:
    stored_folders.obtain_folder(tmp_path / "a", fill)

    def other(part: Path) -> Mapping[str, str]:
        (part / "other").write_bytes(b"")
        return {"version": "2"}

    assert stored_folders.obtain_folder(tmp_path / "a", other, again=True).facts["version"] == "2"
    assert not (tmp_path / "a" / "image").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: (place / "lib" / "a.ko").unlink(),
        lambda place: (place / "lib" / "a.ko").write_bytes(b"mod"),
        lambda place: (place / "lib" / "a.ko").write_bytes(b"modulf"),
        lambda place: ((place / "image").unlink(), (place / "image").symlink_to("lib/a.ko")),
        lambda place: (place / stored_folders.FILE_LIST).unlink(),
        lambda place: (place / stored_folders.FILE_LIST).write_text("{"),
        lambda place: (place / stored_folders.FILE_LIST).write_text("[]"),
        lambda place: (place / stored_folders.FILE_LIST).write_text('{"facts": {}, "files": {"image": 3}}'),
    ],
)
def test_a_damaged_folder_is_noticed_and_made_anew(tmp_path: Path, damage: object) -> None:
    whole = stored_folders.obtain_folder(tmp_path / "a", fill)
    damage(tmp_path / "a")  # type: ignore[operator]
    assert stored_folders.find_stored(tmp_path / "a") is None
    assert stored_folders.obtain_folder(tmp_path / "a", fill).sha256 == whole.sha256
    assert (tmp_path / "a" / "lib" / "a.ko").read_bytes() == b"module"


def test_a_file_that_was_only_touched_is_whole(tmp_path: Path) -> None:
    stored_folders.obtain_folder(tmp_path / "a", fill)
    os.utime(tmp_path / "a" / "image", ns=(1, 1))
    assert stored_folders.obtain_folder(tmp_path / "a", refuse).facts["version"] == "1"


def test_what_fails_leaves_the_old_and_nothing_half_made(tmp_path: Path) -> None:
    stored_folders.obtain_folder(tmp_path / "a", fill)

    def interrupted(part: Path) -> Mapping[str, str]:
        (part / "half").write_bytes(b"")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stored_folders.obtain_folder(tmp_path / "a", interrupted, again=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.lock"]
    assert stored_folders.obtain_folder(tmp_path / "a", refuse).facts["version"] == "1"


def test_what_a_killed_program_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.part").mkdir()
    (tmp_path / "a.part" / "half").write_bytes(b"")
    assert "half" not in stored_folders.obtain_folder(tmp_path / "a", fill).sha256


def test_two_labs_at_once_fetch_once(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    made = []

    def slow(part: Path) -> Mapping[str, str]:
        begun.set()
        assert go.wait(60)
        made.append(part)
        return fill(part)

    threads = [threading.Thread(target=stored_folders.obtain_folder, args=(tmp_path / "a", slow)) for _ in range(2)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(made) == 1


def test_a_cache_that_cannot_be_written_is_said() -> None:
    with pytest.raises(UserError, match="cannot keep a in /dev/null/rtproof: Not a directory"):
        stored_folders.obtain_folder(Path("/dev/null/rtproof/a"), fill)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    def full(part: Path) -> Mapping[str, str]:
        Path("/dev/full").write_bytes(b"x")
        return {}

    with pytest.raises(UserError, match=r"cannot keep a in .*: No space left on device"):
        stored_folders.obtain_folder(tmp_path / "a", full)
    assert not (tmp_path / "a.part").exists()
