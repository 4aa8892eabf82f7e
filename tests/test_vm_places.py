# SPDX-License-Identifier: Apache-2.0

import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from rtproof.core.errors import TargetError
from rtproof.vm import cache_folders

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rtproof" / "lab"


def folders(cache: Path) -> list[str]:
    return [path.name for path in (cache / "scratch").iterdir() if path.is_dir()]


def test_a_scratch_folder_is_gone_after_its_use_also_after_an_error(cache: Path) -> None:
    def use() -> None:
        with cache_folders.scratch_folder() as folder:
            (folder / "file").touch()
            assert folders(cache) == [folder.name]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    assert folders(cache) == []


def test_two_have_folders_of_their_own(cache: Path) -> None:
    with cache_folders.scratch_folder() as one, cache_folders.scratch_folder() as other:
        assert sorted(folders(cache)) == sorted([one.name, other.name])
        assert (one / "lock").exists()


def test_what_a_killed_program_left_goes_with_the_next(cache: Path) -> None:
    code = (
        "import time; from rtproof.vm.cache_folders import scratch_folder\n"
        "with scratch_folder() as f: print(f, flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        with cache_folders.scratch_folder():
            assert left.is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
        with cache_folders.scratch_folder() as folder:
            assert folders(cache) == [folder.name]


def test_a_full_disk_is_said_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 1 << 40, 5 << 20))
    with (
        pytest.raises(TargetError, match=r"a guest may need 128 MiB of disk in .*, and 5 MiB are free"),
        cache_folders.scratch_folder(),
    ):
        pass


def test_a_cache_that_cannot_be_made_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(TargetError, match="no temporary folder can be made in"), cache_folders.scratch_folder():
        pass


def test_a_file_is_written_whole_over_another(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    for content in (b"one", b"other"):
        cache_folders.write_cache_file(place, content)
        assert [path.read_bytes() for path in place.parent.iterdir()] == [content]
