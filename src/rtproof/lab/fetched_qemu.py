# SPDX-License-Identifier: Apache-2.0
"""Fetch Debian's newer QEMU into the lab's cache, beside the system's; nothing is installed.

The packages, their versions and their SHA-256 are those of fetched_qemu.toml, so every machine gets the same bytes.
"""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from rtproof.core.errors import UserError
from rtproof.core.toml import read_toml
from rtproof.lab.debian_packages import Archive, Package, debian_architecture, unpack_package
from rtproof.lab.stored_folders import StoredFolder, discard, file_sha256, find_stored, obtain_folder
from rtproof.vm.emulators import fetched_qemu_folder

_TABLE = Path(__file__).with_name("fetched_qemu.toml")


class PinnedPackage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One package: for which architecture of the host, which version, and the SHA-256 of its file."""

    architecture: str
    name: str
    version: str
    sha256: str


class PinnedPackages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packages of one QEMU, and the suites of Debian that have them."""

    suites: tuple[str, ...]
    package: tuple[PinnedPackage, ...]


def pinned_packages() -> PinnedPackages:
    """The table of what to fetch."""
    return read_toml(_TABLE, PinnedPackages)


def fetched_qemu() -> StoredFolder | None:
    """The QEMU in the cache. None if it was not fetched, or is damaged."""
    return find_stored(fetched_qemu_folder())


def fetch_qemu(mirror: str = "", again: bool = False, say: Callable[[str], None] = lambda _: None) -> StoredFolder:
    """The QEMU in the cache, fetched from Debian unless it is there. UserError if it cannot be had or does not run."""
    return obtain_folder(fetched_qemu_folder(), lambda part: _fill(part, mirror, say), again)


def _fill(part: Path, mirror: str, say: Callable[[str], None]) -> Mapping[str, str]:
    here, table = debian_architecture(), pinned_packages()
    wanted = {each.name: each for each in table.package if each.architecture == here}
    if not wanted:
        raise UserError(f"there is no QEMU to fetch for {here}: install QEMU 8.1 or newer on this machine")
    archive = Archive(table.suites, here, mirror)
    version = next(iter(wanted.values())).version
    say(f"fetching QEMU {version}")

    def choose(found: Archive) -> list[Package]:
        return [found.named(each.name, each.version) for each in wanted.values()]

    for package, deb in archive.collect(choose, part):
        if file_sha256(deb) != wanted[package.name].sha256:
            raise UserError(f"{deb.name} of the mirror is another file than the one that rtproof was tested with")
        unpack_package(deb, part)
        deb.unlink()
    for unneeded in ("usr/share/doc", "usr/share/man", "usr/share/applications", "usr/share/icons"):
        discard(part / unneeded)
    return {"package": "qemu-system-x86", "version": version, "says": _version_line(part)}


def _version_line(part: Path) -> str:
    """What the unpacked QEMU says of itself. UserError if it does not run, because a library is missing."""
    program = part / "usr" / "bin" / "qemu-system-x86_64"
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        why = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise UserError(
            f"the fetched QEMU does not run ({why}); it takes its libraries from the system's QEMU: "
            "apt-get install qemu-system-x86"
        )
    return done.stdout.splitlines()[0]
