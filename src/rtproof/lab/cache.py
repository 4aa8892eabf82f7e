# SPDX-License-Identifier: Apache-2.0
"""Finished cells, kept by what went in: whole or not at all, and made again when they are damaged."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rtproof.errors import UserError
from rtproof.lab.cells import Cost
from rtproof.lab.upkeep import bound, enrol, use
from rtproof.vm.places import lab_cache

MANIFEST = "cell.json"


class _Manifest(msgspec.Struct, frozen=True):
    """files: SHA-256 of each file beside it."""

    host_s: float
    virtual_s: float
    files: dict[str, str]


@dataclass(frozen=True)
class Kept:
    """A finished cell. folder: of the cache, not to be written to; fresh: made now and not found."""

    folder: Path
    cost: Cost
    fresh: bool


@dataclass(frozen=True)
class Cache:
    """A folder with one folder for each cell, named by its key."""

    root: Path

    def find(self, key: str) -> Kept | None:
        """The cell of that key, if it is there and none of its bytes has changed."""
        folder = self.root / key
        if not use(folder):
            return None
        try:
            manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
            whole = manifest.files == _digests(folder)
        except (OSError, msgspec.DecodeError):
            return None
        return Kept(folder, Cost(manifest.host_s, manifest.virtual_s), fresh=False) if whole else None

    def make(self, key: str, fill: Callable[[Path], Cost]) -> Kept:
        """The cell of that key, made if need be. What a failure leaves stays beside, for its logs, until the next."""
        found = self.find(key)
        return found or self._make(key, fill)

    def _make(self, key: str, fill: Callable[[Path], Cost]) -> Kept:
        part = self.root / f"{key}.{os.getpid()}"
        try:
            self._sweep(key)
            part.mkdir(parents=True)
            cost = fill(part)
            manifest = _Manifest(cost.host_s, cost.virtual_s, _digests(part))
            (part / MANIFEST).write_bytes(msgspec.json.encode(manifest))
            self._put(part, key)
        except KeyboardInterrupt:
            shutil.rmtree(part, ignore_errors=True)
            raise
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise UserError(f"cannot keep the cell in {self.root}: {error.strerror}") from error
        return Kept(self.root / key, cost, fresh=True)

    def _put(self, part: Path, key: str) -> None:
        """Two labs may make the same cell at once; the results are equal, and that of the first is kept."""
        place = self.root / key
        if place.exists() and self.find(key):
            shutil.rmtree(part)
            return
        if place.exists():
            shutil.rmtree(place)
        part.rename(place)

    def _sweep(self, key: str) -> None:
        """Remove what earlier attempts at a cell left, unless they are still at it."""
        for part in self.root.glob(f"{key}.*"):
            if not _alive(part.suffix[1:]):
                shutil.rmtree(part, ignore_errors=True)


def kept_cells() -> Path:
    """The folder of the lab's finished cells."""
    return lab_cache() / "cells"


@contextmanager
def opened() -> Iterator[Cache]:
    """The lab's finished cells, held to their size afterwards; what this process uses stays there until it ends."""
    root = kept_cells()
    enrol(root)
    try:
        yield Cache(root)
    finally:
        bound(root)


def _alive(pid: str) -> bool:
    return pid.isdigit() and Path("/proc", pid).exists()


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
