# SPDX-License-Identifier: Apache-2.0
"""The kernels that Debian ships, by name: fetched once, kept unpacked and with their headers, never installed.

Both series come from packages made on Debian 12, so that one compiler and one C library fit the headers of both.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages, kernel_modules
from rtproof.lab.debian_packages import Archive, Package
from rtproof.lab.stored_folders import StoredFolder, discard, find_stored, obtain_folder
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.kernel_files import Kernel, open_kernel

Say = Callable[[str], None]
"""Told one sentence when something begins that takes long."""

SUITES = {"6.1": ("bookworm", "bookworm-security"), "6.12": ("bookworm-backports",)}


@dataclass(frozen=True)
class KernelArchitecture:
    """An architecture by its names: the agent's, Debian's, the kernel packages', and the end of our kernels' names."""

    name: str
    debian: str
    flavour: str
    ending: str


KERNEL_ARCHITECTURES = (
    KernelArchitecture("x86_64", "amd64", "amd64", ""),
    KernelArchitecture("aarch64", "arm64", "arm64", "-arm64"),
    KernelArchitecture("armv7", "armhf", "armmp", "-armhf"),
)


@dataclass(frozen=True)
class CatalogueEntry:
    """A kernel that can be had by name. ``series``: such as 6.12; ``rt``: built with PREEMPT_RT."""

    name: str
    series: str
    rt: bool
    machine: KernelArchitecture

    @property
    def flavour(self) -> str:
        """The end of the release that ``uname -r`` says."""
        return ("rt-" if self.rt else "") + self.machine.flavour

    @property
    def image_pattern(self) -> str:
        """Names of the packages with the image: 6.1.0-50-rt-amd64, 6.12.95+deb12-amd64-unsigned."""
        return rf"linux-image-{re.escape(self.series)}\.\d+(-\d+|\+[^-]+)-{self.flavour}(-unsigned)?"


def catalogue() -> tuple[CatalogueEntry, ...]:
    """All kernels that can be had by name."""
    return tuple(
        CatalogueEntry(f"debian-{series}{'-rt' if rt else ''}{machine.ending}", series, rt, machine)
        for machine in KERNEL_ARCHITECTURES
        for series in SUITES
        for rt in (True, False)
    )


def catalogue_entry(name: str) -> CatalogueEntry:
    """The catalogue's entry of that name; UserError with the list of names otherwise."""
    for candidate in catalogue():
        if candidate.name == name:
            return candidate
    raise UserError(f"there is no kernel {name!r}; there are: {', '.join(e.name for e in catalogue())}")


def cached_kernel(wanted: CatalogueEntry) -> StoredFolder | None:
    """What the cache has of a kernel; None if it is not there, or damaged."""
    return find_stored(_place(wanted))


def fetch_kernel(name: str, mirror: str = "", again: bool = False, say: Say = lambda _: None) -> Kernel:
    """The kernel of that name, from the cache or from Debian; ``again`` takes what is newest now.

    Its headers and a BusyBox come with it, so that later nothing is wanted from the network, and because the archive
    drops old headers. UserError if the name is not known or nothing can be fetched.
    """
    wanted = catalogue_entry(name)
    fetch_busybox(wanted.machine.name, mirror, say)
    return _opened(_stored(wanted, mirror, again, say))


def _stored(wanted: CatalogueEntry, mirror: str, again: bool, say: Say) -> StoredFolder:
    return obtain_folder(_place(wanted), lambda part: _fill_kernel(wanted, mirror, part, say), again)


def _opened(stored: StoredFolder) -> Kernel:
    return open_kernel(stored.folder / stored.facts["image"], stored.folder / stored.facts["modules"])


def _place(wanted: CatalogueEntry) -> Path:
    return lab_cache() / "kernels" / wanted.name


def kernel_headers(name: str, mirror: str = "", say: Say = lambda _: None) -> Path:
    """The folder to give to ``make -C`` for modules of a kernel of the catalogue."""
    stored = _stored(catalogue_entry(name), mirror, False, say)
    return stored.folder / stored.facts["headers"]


def module_for_kernel(
    name: str, which: str = kernel_modules.OUR_MODULE, mirror: str = "", say: Say = lambda _: None
) -> Path:
    """``which``.ko, built for a kernel of the catalogue: ``rtproof`` from kmod/, any other from kmod/tests/."""
    return kernel_modules.build_module(fetch_kernel(name, mirror, say=say), kernel_headers(name, mirror), which)


def fetch_busybox(arch: str, mirror: str = "", say: Say = lambda _: None) -> Path:
    """Debian's static BusyBox for an architecture by the agent's name."""
    machine = next((machine for machine in KERNEL_ARCHITECTURES if machine.name == arch), None)
    if machine is None:
        raise UserError(
            f"there is no BusyBox for {arch!r}; there is one for: {', '.join(m.name for m in KERNEL_ARCHITECTURES)}"
        )
    place = lab_cache() / "busybox" / arch
    stored = obtain_folder(place, lambda part: _fill_busybox(machine, mirror, part, say))
    return stored.folder / "busybox"


def _fill_busybox(machine: KernelArchitecture, mirror: str, part: Path, say: Say) -> Mapping[str, str]:
    say(f"fetching BusyBox for {machine.name}")
    archive = Archive(SUITES["6.1"], machine.debian, mirror)
    ((package, deb),) = archive.collect(lambda found: [found.named("busybox-static")], part)
    debian_packages.unpack_package(deb, part / "all")
    _single_match(part / "all", "bin/busybox").rename(part / "busybox")
    deb.unlink()
    discard(part / "all")
    return {"package": package.name, "version": package.version}


def _fill_kernel(wanted: CatalogueEntry, mirror: str, part: Path, say: Say) -> Mapping[str, str]:
    say(f"fetching {wanted.name}")
    archive = Archive(SUITES[wanted.series], wanted.machine.debian, mirror)
    (image, image_deb), *rest = archive.collect(lambda found: _image_and_headers(found, wanted), part)
    debs = [image_deb, *(deb for _, deb in rest), _kbuild(rest[0][0], wanted, mirror, part)]
    say(f"unpacking {image.name} {image.version}")
    for deb in debs:
        debian_packages.unpack_package(deb, part / "all")
        deb.unlink()
    release = rest[0][0].name.removeprefix("linux-headers-")
    facts = {"package": image.name, "version": image.version, "release": release, **_keep_needed(part, release)}
    discard(part / "all")
    return facts


def _image_and_headers(archive: Archive, wanted: CatalogueEntry) -> list[Package]:
    image = archive.newest(wanted.image_pattern, f"linux-image of {wanted.series} with {wanted.flavour}")
    release = image.name.removeprefix("linux-image-").removesuffix("-unsigned")
    flavoured = archive.named(f"linux-headers-{release}")
    common = (name for name in flavoured.depends if name.startswith("linux-headers-"))
    return [image, flavoured, *(archive.named(name) for name in common)]


def _kbuild(flavoured: Package, wanted: CatalogueEntry, mirror: str, folder: Path) -> Path:
    """Its programs run here, whatever they build for."""
    name = next((name for name in flavoured.depends if name.startswith("linux-kbuild-")), "")
    archive = Archive(SUITES[wanted.series], debian_packages.debian_architecture(), mirror)
    ((_, deb),) = archive.collect(lambda found: [found.named(name)], folder)
    return deb


def _keep_needed(part: Path, release: str) -> dict[str, str]:
    """Image, its configuration, modules, headers; the paths that the headers have in them are made relative."""
    image, config, drivers = f"boot/vmlinuz-{release}", f"boot/config-{release}", f"lib/modules/{release}"
    for name in (image, config, drivers, "usr/src"):
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        _single_match(part / "all", name).rename(part / name)
    for tools in (part / "all" / "usr/lib").glob("linux-kbuild-*"):
        (part / "usr/lib").mkdir(exist_ok=True)
        tools.rename(part / "usr/lib" / tools.name)
    for link in ("build", "source"):
        (part / drivers / link).unlink(missing_ok=True)
    source = f"usr/src/linux-headers-{release}"
    makefile = part / source / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", "../"))
    return {"image": image, "config": config, "modules": drivers, "headers": source}


def _single_match(folder: Path, name: str) -> Path:
    """A file or folder of unpacked packages, which may have /usr merged in or not."""
    for candidate in (folder / name, folder / "usr" / name):
        if candidate.exists():
            return candidate
    raise UserError(f"Debian's package has no {name}: this version of rtproof does not know its layout")


def resolve_kernel(
    text: str, modules_folder: Path | None = None, mirror: str = "", say: Say = lambda _: None
) -> Kernel:
    """The kernel that ``--kernel`` names: one of the catalogue, or an image of the user's.

    Modules of an image are looked for in lib/modules/RELEASE beside it and beside its folder, unless their folder is
    given. UserError with the list of names if it is neither.
    """
    if text in (known.name for known in catalogue()):
        if modules_folder is not None:
            raise UserError(f"{text} has its own modules: a folder of modules goes with an image of your own")
        return fetch_kernel(text, mirror, say=say)
    image = Path(text)
    if not image.is_file():
        names = ", ".join(known.name for known in catalogue())
        raise UserError(f"{text!r} is no file and no name of a kernel; the names are: {names}")
    kernel = open_kernel(image, modules_folder)
    return kernel if modules_folder else open_kernel(image, _modules_beside(kernel))


def _modules_beside(kernel: Kernel) -> Path | None:
    folder = kernel.image.parent
    places = [base / "lib" / "modules" / kernel.release for base in (folder, folder.parent)]
    return next((place for place in places if kernel.release and place.is_dir()), None)


@dataclass(frozen=True)
class ListedKernel:
    """A kernel of the catalogue. ``preemption``: as it is built; the last four are None where the cache has it not."""

    name: str
    architecture: str
    suite: str
    preemption: str | None
    package: str | None
    version: str | None
    folder: Path | None
    size_bytes: int | None


def list_kernels() -> list[ListedKernel]:
    """Every kernel of the catalogue, in its order."""
    return [_listed_kernel(known, cached_kernel(known)) for known in catalogue()]


def _listed_kernel(known: CatalogueEntry, stored: StoredFolder | None) -> ListedKernel:
    place = known.name, known.machine.name, SUITES[known.series][0]
    if stored is None:
        return ListedKernel(*place, "PREEMPT_RT" if known.rt else None, None, None, None, None)
    facts = stored.facts
    built = preemption_of_config((stored.folder / facts["config"]).read_text())
    return ListedKernel(*place, built, facts["package"], facts["version"], stored.folder, stored.size)


def preemption_of_config(config: str) -> str:
    """How a kernel of that configuration preempts (kernel/Kconfig.preempt)."""
    chosen = {line.removesuffix("=y") for line in config.splitlines() if line.startswith("CONFIG_PREEMPT")}
    if "CONFIG_PREEMPT_RT" in chosen:
        return "PREEMPT_RT"
    models = {"CONFIG_PREEMPT_LAZY": "lazy", "CONFIG_PREEMPT_VOLUNTARY": "voluntary", "CONFIG_PREEMPT": "full"}
    default = next((word for option, word in models.items() if option in chosen), "none")
    return f"{default}, or preempt=" if "CONFIG_PREEMPT_DYNAMIC" in chosen else default
