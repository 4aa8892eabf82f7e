# SPDX-License-Identifier: Apache-2.0
"""The kernels that Debian ships, by name: fetched once, kept unpacked and with their headers, never installed.

Both series come from packages made on Debian 12, so that their headers are at home with one compiler and one C library.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import UserError
from rtproof.lab import debian
from rtproof.lab.debian import Archive, Package
from rtproof.lab.store import Stored, discard, lab_cache, look, obtain
from rtproof.vm.kernel import Kernel, open_kernel

Say = Callable[[str], None]
"""Told one sentence when something begins that takes long."""

SUITES = {"6.1": ("bookworm", "bookworm-security"), "6.12": ("bookworm-backports",)}


@dataclass(frozen=True)
class Machine:
    """An architecture by its names: the agent's, Debian's, the kernel packages', and the end of our kernels' names."""

    name: str
    debian: str
    flavour: str
    ending: str


MACHINES = (
    Machine("x86_64", "amd64", "amd64", ""),
    Machine("aarch64", "arm64", "arm64", "-arm64"),
    Machine("armv7", "armhf", "armmp", "-armhf"),
)


@dataclass(frozen=True)
class Entry:
    """A kernel that can be had by name. ``series``: such as 6.12; ``rt``: built with PREEMPT_RT."""

    name: str
    series: str
    rt: bool
    machine: Machine

    @property
    def flavour(self) -> str:
        """The end of the release that ``uname -r`` says."""
        return ("rt-" if self.rt else "") + self.machine.flavour

    @property
    def image_pattern(self) -> str:
        """Names of the packages with the image: 6.1.0-50-rt-amd64, 6.12.95+deb12-amd64-unsigned."""
        return rf"linux-image-{re.escape(self.series)}\.\d+(-\d+|\+[^-]+)-{self.flavour}(-unsigned)?"


def catalogue() -> tuple[Entry, ...]:
    """All kernels that can be had by name."""
    return tuple(
        Entry(f"debian-{series}{'-rt' if rt else ''}{machine.ending}", series, rt, machine)
        for machine in MACHINES
        for series in SUITES
        for rt in (True, False)
    )


def entry(name: str) -> Entry:
    """The catalogue's entry of that name; UserError with the list of names otherwise."""
    for candidate in catalogue():
        if candidate.name == name:
            return candidate
    raise UserError(f"there is no kernel {name!r}; there are: {', '.join(e.name for e in catalogue())}")


def cached(wanted: Entry) -> Stored | None:
    """What the cache has of a kernel; None if it is not there, or damaged."""
    return look(_place(wanted))


def fetch(name: str, mirror: str = "", again: bool = False, say: Say = lambda _: None) -> Kernel:
    """The kernel of that name, from the cache or from Debian; ``again`` takes what is newest now.

    Its headers come with it, because the archive drops old ones. UserError if the name is not known or nothing can be
    fetched.
    """
    wanted = entry(name)
    stored = obtain(_place(wanted), lambda part: _fill_kernel(wanted, mirror, part, say), again)
    kernel = _open(stored)
    if kernel.identity != stored.sha256[stored.facts["image"]]:
        kernel = _open(obtain(_place(wanted), lambda part: _fill_kernel(wanted, mirror, part, say), again=True))
    return kernel


def _open(stored: Stored) -> Kernel:
    return open_kernel(stored.folder / stored.facts["image"], stored.folder / stored.facts["modules"])


def _place(wanted: Entry) -> Path:
    return lab_cache() / "kernels" / wanted.name


def headers(name: str, mirror: str = "") -> Path:
    """The folder to give to ``make -C`` for modules of a kernel of the catalogue."""
    fetch(name, mirror)
    stored = cached(entry(name))
    if stored is None:
        raise UserError(f"the cache of {name} changes while it is read: is another program at work there?")
    return stored.folder / stored.facts["headers"]


def busybox(arch: str, mirror: str = "", say: Say = lambda _: None) -> Path:
    """Debian's static BusyBox for an architecture by the agent's name."""
    machine = next((machine for machine in MACHINES if machine.name == arch), None)
    if machine is None:
        raise UserError(f"there is no BusyBox for {arch!r}; there is one for: {', '.join(m.name for m in MACHINES)}")
    place = lab_cache() / "busybox" / arch
    stored = obtain(place, lambda part: _fill_busybox(machine, mirror, part, say))
    return stored.folder / "busybox"


def _fill_busybox(machine: Machine, mirror: str, part: Path, say: Say) -> Mapping[str, str]:
    say(f"fetching BusyBox for {machine.name}")
    archive = Archive(SUITES["6.1"], machine.debian, mirror)
    ((package, deb),) = archive.collect(lambda found: [found.newest("busybox-static")], part)
    debian.unpack(deb, part / "all")
    _only(part / "all", "bin/busybox").rename(part / "busybox")
    deb.unlink()
    discard(part / "all")
    return {"package": package.name, "version": package.version}


def _fill_kernel(wanted: Entry, mirror: str, part: Path, say: Say) -> Mapping[str, str]:
    say(f"fetching {wanted.name}")
    archive = Archive(SUITES[wanted.series], wanted.machine.debian, mirror)
    (image, image_deb), *rest = archive.collect(lambda found: _image_and_headers(found, wanted), part)
    debs = [image_deb, *(deb for _, deb in rest), _kbuild(rest[0][0], wanted, mirror, part)]
    say(f"unpacking {image.name} {image.version}")
    for deb in debs:
        debian.unpack(deb, part / "all")
        deb.unlink()
    release = rest[0][0].name.removeprefix("linux-headers-")
    facts = {"package": image.name, "version": image.version, "release": release, **_keep_needed(part, release)}
    discard(part / "all")
    return facts


def _image_and_headers(archive: Archive, wanted: Entry) -> list[Package]:
    image = archive.newest(wanted.image_pattern)
    release = image.name.removeprefix("linux-image-").removesuffix("-unsigned")
    flavoured = archive.newest(re.escape(f"linux-headers-{release}"))
    common = (name for name in flavoured.depends if name.startswith("linux-headers-"))
    return [image, flavoured, *(archive.newest(re.escape(name)) for name in common)]


def _kbuild(flavoured: Package, wanted: Entry, mirror: str, folder: Path) -> Path:
    """Its programs run here, whatever they build for."""
    name = next((name for name in flavoured.depends if name.startswith("linux-kbuild-")), "")
    archive = Archive(SUITES[wanted.series], debian.host_architecture(), mirror)
    ((_, deb),) = archive.collect(lambda found: [found.newest(re.escape(name))], folder)
    return deb


def _keep_needed(part: Path, release: str) -> dict[str, str]:
    """Image, its configuration, modules, headers; the paths that the headers have in them are made relative."""
    image, config, modules = f"boot/vmlinuz-{release}", f"boot/config-{release}", f"lib/modules/{release}"
    for name in (image, config, modules, "usr/src", "usr/lib"):
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        _only(part / "all", name).rename(part / name)
    for link in ("build", "source"):
        (part / modules / link).unlink(missing_ok=True)
    source = f"usr/src/linux-headers-{release}"
    makefile = part / source / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", "../"))
    return {"image": image, "config": config, "modules": modules, "headers": source}


def _only(folder: Path, name: str) -> Path:
    """A file or folder of unpacked packages, which may have /usr merged in or not."""
    for candidate in (folder / name, folder / "usr" / name):
        if candidate.exists():
            return candidate
    raise UserError(f"Debian's package has no {name}: this version of rtproof does not know its layout")
