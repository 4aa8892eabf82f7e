# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from rtproof import files
from rtproof.errors import UserError


def test_a_new_file_stays(tmp_path: Path) -> None:
    with files.new_path(tmp_path / "a") as path:
        path.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"


def test_half_a_file_goes(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), files.new_path(tmp_path / "a") as path:
        write_half(path)
    assert not (tmp_path / "a").exists()


def write_half(path: Path) -> None:
    path.write_text("half")
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
