# SPDX-License-Identifier: Apache-2.0
"""Root file systems of Debian's own packages for any of its architectures, kept in the lab's cache; and its kernels.

The packages come from the mirror of this machine's apt sources, whose signatures and checksums apt verifies. They are
unpacked and not installed: a root has the files of the packages and no more.
"""

import functools
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import Archive, Package
from rtproof.lab.kernel_catalogue import SUITES
from rtproof.vm.cache_folders import lab_cache, obtain_folder
from rtproof.vm.initramfs import CpioEntry
from rtproof.vm.kernel_files import Kernel, open_kernel

BOOKWORM = SUITES["6.1"]
BUSYBOX_ROOT = ("busybox-static", "dropbear-bin")
DEBIAN_ROOT = (*BUSYBOX_ROOT, "dash", "coreutils", "grep", "sed", "mount")
"""Where it has a program of its own, that one is used; BusyBox has the rest, such as ``ip`` and ``insmod``."""
LEFT_OUT = ("share/doc", "share/man", "share/locale", "share/lintian", "share/bug", "share/info")


def needed_packages(archive: Archive, names: tuple[str, ...]) -> list[Package]:
    """The newest of these packages, and of all that they depend on."""
    found: dict[str, Package] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = archive.named(name)
            # What only runs while packages are installed is of no use here.
            waiting += [each for each in found[name].depends if not each.startswith(("debconf", "dpkg"))]
    return list(found.values())


@functools.cache
def root(debian: str, names: tuple[str, ...]) -> Path:
    """A folder with the packages, for one of Debian's architectures; skips the test if they cannot be had."""

    def fill(part: Path) -> Mapping[str, str]:
        archive = Archive(BOOKWORM, debian)
        collected = archive.collect(lambda fresh: needed_packages(fresh, names), part)
        for _, deb in collected:
            debian_packages.unpack_package(deb, part)
            deb.unlink()
        return {package.name: package.version for package, _ in collected}

    kind = "debian" if names == DEBIAN_ROOT else "busybox"
    try:
        return obtain_folder(lab_cache() / "roots" / f"{kind}-{debian}", fill).folder
    except UserError as problem:
        pytest.skip(f"a root for {debian} cannot be had here: {problem}")


@functools.cache
def raspberry_pi_kernel() -> tuple[Kernel, Path]:
    """Debian's kernel for the Raspberry Pi of ARMv6, and the folder of its device trees."""

    def fill(part: Path) -> Mapping[str, str]:
        archive = Archive(BOOKWORM, "armel")
        ((package, deb),) = archive.collect(lambda fresh: [fresh.newest(r"linux-image-6\.1\.0-\d+-rpi")], part)
        debian_packages.unpack_package(deb, part)
        deb.unlink()
        return {"package": package.name, "version": package.version}

    try:
        stored = obtain_folder(lab_cache() / "roots" / "kernel-rpi", fill)
    except UserError as problem:
        pytest.skip(f"the kernel for the Raspberry Pi cannot be had here: {problem}")
    release = stored.facts["package"].removeprefix("linux-image-")
    image, modules = (stored.folder / place / release for place in ("boot", "lib/modules"))
    kernel = open_kernel(image.with_name(f"vmlinuz-{release}"), modules)
    return kernel, stored.folder / f"usr/lib/linux-image-{release}"


def entries(folder: Path) -> Iterator[CpioEntry]:
    """Files and symbolic links of a root, below the merged /usr that Debian has."""
    for path in sorted(folder.rglob("*")):
        place = re.sub(r"^(bin|sbin|lib\w*)(?=/)", r"usr/\1", str(path.relative_to(folder)))
        if place.removeprefix("usr/").startswith(LEFT_OUT) or place == "files.json":
            continue
        if path.is_symlink():
            yield CpioEntry(place, stat.S_IFLNK | 0o777, str(path.readlink()).encode())
        elif path.is_file():
            yield CpioEntry(place, path.lstat().st_mode, path.read_bytes())
