# SPDX-License-Identifier: Apache-2.0
"""Fetch Debian's newer QEMU into the lab's cache, beside the system's; nothing is installed.

The packages, their versions and their SHA-256 are those of fetched_qemu.toml, so every machine gets the same bytes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from rtproof.core.errors import UserError
from rtproof.core.toml import read_toml
from rtproof.lab.debian_packages import Archive, Package, check_tools, debian_architecture, unpack_package
from rtproof.vm.cache_folders import StoredFolder, check_room, discard, file_sha256, find_stored, obtain_folder
from rtproof.vm.emulators import FETCHED, fetched_qemu_folder, read_emulator

_TABLE = Path(__file__).with_name("fetched_qemu.toml")
INSTEAD = "install QEMU 8.1 or newer, or give one of your own with --qemu PATH"
"""What to do on a machine for which nothing can be fetched."""
NEEDED_MIB = 256
"""Disk space while the packages are unpacked (measured: 30 MiB of packages, 137 MiB unpacked)."""
PROGRAMS = "qemu-system-*"
UNNEEDED = ("etc", "usr/lib/systemd", "usr/share/doc", "usr/share/man", "usr/share/applications", "usr/share/icons")


class PinnedPackage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One package: for which architecture of the host, which version, and the SHA-256 of its file."""

    architecture: str
    name: str
    version: str
    sha256: str


class PinnedPackages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packages of one QEMU, and the suites of Debian that have them. The first of an architecture is the QEMU."""

    suites: tuple[str, ...]
    package: tuple[PinnedPackage, ...]


def pinned_packages() -> PinnedPackages:
    """The table of what to fetch."""
    return read_toml(_TABLE, PinnedPackages)


def fetch_qemu(mirror: str = "", again: bool = False, say: Callable[[str], None] = lambda _: None) -> StoredFolder:
    """The QEMU in the cache, fetched from Debian unless the version of the table is there.

    UserError if it cannot be had or does not run; TargetError if the disk has no room.
    """
    place = fetched_qemu_folder()
    stored = find_stored(place)
    if stored and not again and stored.facts.get("version") in {each.version for each in pinned_packages().package}:
        return stored
    check_tools(INSTEAD)
    wanted = _wanted_here()
    return obtain_folder(place, lambda part: _fill(part, wanted, mirror, say), again or stored is not None)


def _wanted_here() -> tuple[PinnedPackage, ...]:
    here = debian_architecture()
    wanted = tuple(each for each in pinned_packages().package if each.architecture == here)
    if not wanted:
        raise UserError(f"there is no QEMU to fetch for {here}: {INSTEAD}")
    return wanted


def _fill(part: Path, wanted: tuple[PinnedPackage, ...], mirror: str, say: Callable[[str], None]) -> Mapping[str, str]:
    check_room(part, NEEDED_MIB, "fetching QEMU")
    archive = Archive(pinned_packages().suites, wanted[0].architecture, mirror)
    say(f"fetching QEMU {wanted[0].version}")

    def choose(found: Archive) -> list[Package]:
        return [found.named(each.name, each.version) for each in wanted]

    digests = {each.name: each.sha256 for each in wanted}
    for package, deb in archive.collect(choose, part):
        if file_sha256(deb) != digests[package.name]:
            raise UserError(
                f"the mirror's {deb.name} is another file than the one that rtproof was tested with: "
                "give another mirror with --mirror URL"
            )
        unpack_package(deb, part)
        deb.unlink()
    for unneeded in UNNEEDED:
        discard(part / unneeded)
    return {"package": wanted[0].name, "version": wanted[0].version, "says": _version_line(part)}


def _version_line(part: Path) -> str:
    """What the unpacked QEMU says of itself. UserError if one of its programs does not run."""
    found = [read_emulator(str(path), FETCHED) for path in sorted((part / "usr" / "bin").glob(PROGRAMS))]
    if not found:
        raise UserError(f"Debian's packages have no usr/bin/{PROGRAMS}: this version of rtproof does not know them")
    if faulty := next((each for each in found if each.fault), None):
        raise UserError(faulty.fault)
    return found[0].version
