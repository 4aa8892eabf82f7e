# SPDX-License-Identifier: Apache-2.0

import errno
import os
import socket
from contextlib import chdir
from pathlib import Path

import pytest

from rtproof.core import files
from rtproof.core.errors import RecordError, UserError
from rtproof.experiment import stored_runs
from rtproof.record.reading import open_regular


def test_a_new_file_stays(tmp_path: Path) -> None:
    with files.new_path(tmp_path / "a") as path:
        path.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"


def test_half_a_file_goes(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full") as caught, files.new_path(tmp_path / "a") as path:
        write_half(path)
    assert caught.value.filename == str(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def write_half(path: Path) -> None:
    path.write_text("half")
    raise OSError(errno.ENOSPC, "full")


def fill_and_fail(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder.parent.parent / "note").touch()
    raise OSError("full")


@pytest.mark.parametrize("kind", ["file", "folder", "dead link"])
def test_what_exists_is_refused_and_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "file":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    with pytest.raises(UserError, match="exists already"), files.new_path(path):
        raise AssertionError("it must not come so far")
    assert path.is_symlink() or path.exists()


def test_only_folders_that_are_new_and_empty_are_taken_back(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    wanted = tmp_path / "mine" / "kept" / "empty" / "a"
    with pytest.raises(OSError, match="full"), files.removing_empty_folders(wanted):
        fill_and_fail(wanted)
    assert sorted(path.name for path in (tmp_path / "mine").rglob("*")) == ["kept", "note"]
    with files.removing_empty_folders(wanted):
        wanted.mkdir(parents=True)
    assert wanted.exists()


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_may_keep_its_reader_waiting_is_refused(tmp_path: Path, kind: str) -> None:
    place = {"device": Path("/dev/null")}.get(kind, tmp_path / "a")
    with socket.socket(socket.AF_UNIX) as end, chdir(tmp_path):
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "socket":
            end.bind("a")
        with pytest.raises(UserError, match=f"^cannot read {place}: it is a pipe or a device and not a file$"):
            files.refuse_what_waits(place)


def test_a_file_and_a_link_to_one_do_not_wait(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").symlink_to("a")
    for name in ("a", "b", "."):
        files.refuse_what_waits(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        files.refuse_what_waits(tmp_path / "c")


@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/mem"])
def test_what_the_kernel_makes_up_as_it_is_read_is_refused_before_it_is_opened(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"there is no {path}")
    with pytest.raises(UserError, match="the kernel makes it up as it is read"):
        files.refuse_what_waits(Path(path))
    with pytest.raises(UserError, match="the kernel makes it up as it is read"):
        stored_runs.read_histogram_file(Path(path))
    with pytest.raises(RecordError, match="is empty"):
        open_regular(path)
