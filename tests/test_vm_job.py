# SPDX-License-Identifier: Apache-2.0

import io
import tarfile
from pathlib import Path

import pytest

from rtproof.core.errors import TargetError, UserError
from rtproof.vm import guest
from rtproof.vm.guest import Job


def archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    return packed.getvalue()


def test_a_job_is_its_script_and_its_files_and_always_the_same_bytes(tmp_path: Path) -> None:
    program, text = tmp_path / "program", tmp_path / "text"
    program.write_bytes(b"1")
    program.chmod(0o755)
    text.write_bytes(b"2")
    packed = guest.pack_job(Job("echo", (("/lab/text", text), ("/lab/program", program))))
    text.touch()
    assert packed == guest.pack_job(Job("echo", (("/lab/program", program), ("/lab/text", text))))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert [(m.name, m.mode, m.mtime) for m in tar] == [
            ("rtproof/job.sh", 0o755, 0),
            ("lab/program", 0o755, 0),
            ("lab/text", 0o644, 0),
        ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent, which is to go into the guest, cannot be read"):
        guest.pack_job(Job("", (("/x", tmp_path / "absent"),)))


def test_results_are_written_below_the_folder_and_over_nothing(tmp_path: Path) -> None:
    guest.unpack_results(archive("./a", "./b/c"), tmp_path)
    assert (tmp_path / "b" / "c").read_bytes() == b"abc"
    with pytest.raises(UserError, match="exists already"):
        guest.unpack_results(archive("./a"), tmp_path)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "b/../../a"])
def test_results_outside_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="outside of their folder"):
        guest.unpack_results(archive(name), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_archive_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be unpacked"):
        guest.unpack_results(b"\x01" * 2048, tmp_path)
