# SPDX-License-Identifier: Apache-2.0
"""What a guest shall do, packed for it, and the archive of what it left, unpacked here."""

import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rtproof.errors import TargetError
from rtproof.files import refuse_existing
from rtproof.vm.initramfs import read_file

_SCRIPT = "rtproof/job.sh"


@dataclass(frozen=True)
class Job:
    """``script``: for BusyBox sh; the files it leaves in /out come back. ``files``: (path in the guest, file here)."""

    script: str
    files: tuple[tuple[str, Path], ...] = ()


def pack(job: Job) -> bytes:
    """The job as a tar archive; the same job gives the same bytes. Files stay executable if they are."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, _SCRIPT, job.script.encode(), 0o755)
        for place, here in sorted(job.files):
            _add(tar, place.lstrip("/"), read_file(here), 0o755 if os.access(here, os.X_OK) else 0o644)
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


def unpack(archive: bytes, folder: Path) -> None:
    """Write the regular files of the archive below the folder, over nothing. TargetError if it is broken."""
    for name, content in members(archive).items():
        path = folder / name
        refuse_existing(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def members(archive: bytes) -> dict[str, bytes]:
    """The regular files of an archive by their names. TargetError if it is broken."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    found[_inside(member.name)] = content.read()
    except tarfile.TarError as error:
        raise TargetError(f"the guest's results cannot be unpacked: {error}") from error
    return found


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise TargetError(f"the guest's results have a file outside of their folder: {name}")
    return str(path)
