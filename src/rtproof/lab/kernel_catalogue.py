# SPDX-License-Identifier: Apache-2.0
"""The kernels that the lab can fetch by name, and rtproof's kernel module built for each of them."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rtproof
from rtproof.core.errors import UserError
from rtproof.core.phrases import names_instead, unknown_name
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import Archive, Package
from rtproof.vm.cache_folders import FILE_LIST, StoredFolder, discard, find_stored, lab_cache, obtain_folder
from rtproof.vm.kernel_files import Kernel, open_kernel

# Build our kernel module, and the modules of its tests, against a kernel's headers: once for each state of the input.
#
# The same sources, headers and compiler give the same bytes, wherever the cache is. A guest's virtual time depends on
# every byte that the guest loads. So the modules have no debug information and no path of this machine.


OUR_MODULE = "rtproof"
NOT_FOR_MAKE = ("ARCH", "KBUILD_OUTPUT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Variables to remove from the environment. They change what is built, or connect make to a make that called us."""

_PACKAGE = Path(rtproof.__file__).parent
_SOURCES = ("*.c", "*.h", "Kbuild", "Makefile")
_PREFIXES = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-", "armv7": "arm-linux-gnueabihf-"}
# Debian's kernels of the catalogue are built with the first.
_COMPILERS = ("gcc-12", "gcc")


def module_sources() -> Path:
    """The module's sources: in this package when it is installed, otherwise in the checkout. UserError if neither."""
    for candidate in (_PACKAGE / "_kmod_source", _PACKAGE.parent.parent / "kmod"):
        if (candidate / "rtproof.h").is_file():
            return candidate
    raise UserError(f"the kernel module's sources are not at {_PACKAGE / '_kmod_source'}: install rtproof again")


def build_module(kernel: Kernel, headers: Path, which: str = OUR_MODULE, again: bool = False) -> Path:
    """The file ``which``.ko for a kernel: ``rtproof`` from kmod/, any other from kmod/tests/.

    headers: the folder to give to ``make -C``. again: build it in any case. UserError with the compiler's first error.
    """
    if not re.fullmatch(r"[A-Za-z0-9_]{1,55}", which):
        raise UserError(f"{which!r} is no name of a module, such as {OUR_MODULE}")
    compiler = kernel_compiler(kernel.arch)
    folder = module_sources()
    inside = "" if which == OUR_MODULE else "tests"
    # The tests' modules may include their own files and rtproof's.
    places = (folder, folder / inside) if inside else (folder,)
    found = (path for place in places for pattern in _SOURCES for path in place.glob(pattern))
    names = sorted(str(path.relative_to(folder)) for path in found)
    key = _build_key(folder, names, headers, compiler)
    place = lab_cache() / "modules" / f"{which}-{kernel.release}-{key}"

    def fill(part: Path) -> Mapping[str, str]:
        scratch = part / "build"
        for name in names:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, scratch / name)
        _make(scratch / inside, headers, compiler)
        built = scratch / inside / f"{which}.ko"
        if not built.is_file():
            raise UserError(f"compiling the kernel module made no {built.name}")
        built.rename(part / built.name)
        shutil.rmtree(scratch)
        return {"release": kernel.release}

    return obtain_folder(place, fill, again).folder / f"{which}.ko"


def kernel_compiler(arch: str) -> str:
    """The compiler for modules of an architecture. UserError that says what to install if there is none here."""
    prefix = _PREFIXES[arch]
    found = next((prefix + name for name in _COMPILERS if shutil.which(prefix + name)), "")
    missing = [] if found else [f"gcc-{prefix.rstrip('-').replace('_', '-')}"]
    missing += [] if shutil.which("make") else ["make"]
    if missing:
        raise UserError(
            f"a kernel module for {arch} cannot be built here without {prefix}gcc and make: "
            f"install them (Debian: apt-get install {' '.join(missing)})"
        )
    return found


def _build_key(folder: Path, names: list[str], headers: Path, compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    version = next(iter(said.splitlines()), compiler)
    digest = hashlib.sha256(f"{compiler}\n{version}\n".encode())
    for path in [*(folder / name for name in names), headers / ".config", headers / "Module.symvers"]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from error
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _make(scratch: Path, headers: Path, compiler: str) -> None:
    """Run the kernel's make. Modules get no type information, because that needs a vmlinux and pahole."""
    command = [
        *("make", "-C", str(headers), f"M={scratch}"),
        f"CROSS_COMPILE={compiler[: compiler.rindex('gcc')]}",
        f"CC={compiler}",
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
        f"KCFLAGS=-g0 -ffile-prefix-map={scratch}=kmod -ffile-prefix-map={headers.parent}=headers",
        "modules",
    ]
    variables = {name: value for name, value in os.environ.items() if name not in NOT_FOR_MAKE} | {"LC_ALL": "C"}
    done = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        wrong = [line for line in lines if re.search(r"error|undefined|not found|No rule|Stop", line)]
        why = re.sub(r"(/\S+)/build/", "", (wrong or lines or ["make gave no message"])[0])
        raise UserError(f"the kernel module does not compile against {headers.name}: {why}")


Say = Callable[[str], None]
"""A function that gets one sentence when something begins that takes long."""

SUITES = {
    "6.1": ("bookworm", "bookworm-security"),
    "6.12": ("bookworm-backports",),
    "5.10": ("bullseye", "bullseye-security"),
}


DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64", "armv7": "armhf"}
"""Debian's names of the architectures, by the agent's."""


@dataclass(frozen=True)
class CatalogueEntry:
    """A kernel that the lab can fetch by name. ``series``: such as 6.12. ``rt``: built with PREEMPT_RT.

    ``arch``: the agent's name of its architecture. ``version``: the exact one of Debian's packages; "" takes the one in
    the cache, or else the newest.
    """

    name: str
    series: str
    rt: bool
    arch: str
    version: str = ""

    @property
    def asked_name(self) -> str:
        """NAME or NAME@VERSION, as ``catalogue_entry`` takes it."""
        return f"{self.name}{VERSION_MARK}{self.version}" if self.version else self.name

    @property
    def flavour(self) -> str:
        """The end of the release that ``uname -r`` prints."""
        debian = DEBIAN_NAMES[self.arch]
        return ("rt-" if self.rt else "") + ("armmp" if debian == "armhf" else debian)

    @property
    def image_pattern(self) -> str:
        """A pattern for the names of image packages: 6.1.0-50-rt-amd64, 6.12.95+deb12-amd64-unsigned."""
        return rf"linux-image-{re.escape(self.series)}\.\d+(-\d+|\+[^-]+)-{self.flavour}(-unsigned)?"


def catalogue() -> tuple[CatalogueEntry, ...]:
    return tuple(
        CatalogueEntry(f"debian-{series}{'-rt' * rt}{'' if debian == 'amd64' else f'-{debian}'}", series, rt, arch)
        for arch, debian in DEBIAN_NAMES.items()
        for series in SUITES
        for rt in (True, False)
    )


VERSION_MARK = "@"
"""Between the name of a kernel and its exact version: debian-6.1@6.1.192-2."""
_DEBIAN_VERSION = re.compile(r"[0-9][A-Za-z0-9.+~-]*")
"""deb-version(7), without an epoch, which kernels do not have."""


def catalogue_entry(text: str) -> CatalogueEntry:
    """The entry for NAME or NAME@VERSION. UserError with the list of names if there is none."""
    name, mark, version = text.partition(VERSION_MARK)
    if mark and not _DEBIAN_VERSION.fullmatch(version):
        raise UserError(f"{text!r} has no version of Debian's packages behind the @, such as 6.1.192-2")
    for candidate in catalogue():
        if candidate.name == name:
            return replace(candidate, version=version)
    raise UserError(unknown_name("kernel", name, [entry.name for entry in catalogue()]))


def cached_kernel(wanted: CatalogueEntry) -> StoredFolder | None:
    """The stored folder of a kernel. None if the cache does not have it or it is damaged."""
    return find_stored(_place(wanted))


def opened_kernel(wanted: CatalogueEntry) -> Kernel | None:
    stored = cached_kernel(wanted)
    return _opened(stored) if stored else None


def fetch_kernel(name: str, mirror: str = "", again: bool = False, say: Say = lambda _: None) -> Kernel:
    """The kernel with this name, from the cache or from Debian. again: fetch the newest one in any case.

    The headers and a BusyBox are fetched too, because the archive may drop them. UserError if it cannot be fetched.
    """
    wanted = catalogue_entry(name)
    fetch_busybox(wanted.arch, mirror, say)
    return _opened(_stored(wanted, mirror, again, say))


def _stored(wanted: CatalogueEntry, mirror: str, again: bool, say: Say) -> StoredFolder:
    return obtain_folder(_place(wanted), lambda part: _fill_kernel(wanted, mirror, part, say), again)


def _opened(stored: StoredFolder) -> Kernel:
    return open_kernel(stored.folder / _fact(stored, "image"), stored.folder / _fact(stored, "modules"))


def _fact(stored: StoredFolder, name: str) -> str:
    """A fact of a kernel in the cache. UserError if the cache has been damaged."""
    found = stored.facts.get(name)
    if not isinstance(found, str):
        raise UserError(
            f"{stored.folder / FILE_LIST} is damaged, it has no {name}: rtproof lab kernels fetch --again "
            f"{stored.folder.name}"
        )
    return found


def _place(wanted: CatalogueEntry) -> Path:
    """The folder of a kernel. An exact version is taken from the folder without a version if that one has it."""
    usual = lab_cache() / "kernels" / wanted.name
    if not wanted.version:
        return usual
    stored = find_stored(usual)
    if stored and stored.facts.get("version") == wanted.version:
        return usual
    return usual.with_name(f"{wanted.name}{VERSION_MARK}{wanted.version}")


def exact_name(name: str, kernel: Kernel) -> str:
    """The name with the version of Debian's packages, NAME@VERSION; "" for an image of the user's own."""
    try:
        stored = cached_kernel(catalogue_entry(name))
    except UserError:
        return ""
    if stored is None or not kernel.image.is_relative_to(stored.folder.resolve()):
        return ""
    return f"{name.partition(VERSION_MARK)[0]}{VERSION_MARK}{_fact(stored, 'version')}"


def kernel_headers(name: str, mirror: str = "", say: Say = lambda _: None) -> Path:
    """The folder to give to ``make -C`` to build modules for a kernel of the catalogue."""
    stored = _stored(catalogue_entry(name), mirror, False, say)
    return stored.folder / _fact(stored, "headers")


def module_for_kernel(name: str, which: str = OUR_MODULE, mirror: str = "", say: Say = lambda _: None) -> Path:
    """``which``.ko, built for a kernel of the catalogue: ``rtproof`` from kmod/, any other from kmod/tests/."""
    return build_module(fetch_kernel(name, mirror, say=say), kernel_headers(name, mirror), which)


def module_for_headers(headers: Path, which: str = OUR_MODULE) -> Path:
    """``which``.ko for a kernel of the user's own. headers: its build tree or headers, as for ``make -C``.

    It is built each time, because no file of a build tree tells of every change. UserError if the folder is not that.
    """
    config, release = headers / "include/config/auto.conf", headers / "include/generated/utsrelease.h"
    try:
        for path in (config, release):
            if path.exists() and not path.is_file():
                raise UserError(f"{path} is no file")
        options = config.read_text(errors="replace").splitlines()
        name = release.read_text(errors="replace").partition('"')[2].partition('"')[0]
    except OSError as error:
        raise UserError(
            f"{error.filename} cannot be read ({error.strerror}): --headers wants a kernel's build tree, prepared with "
            f"'make modules_prepare', or the folder lib/modules/RELEASE/build"
        ) from error
    if not _RELEASE.fullmatch(name):
        raise UserError(f"{release} names no release of a kernel")
    arch = next((arch for option, arch in _ARCH_OF_OPTION.items() if f"{option}=y" in options), "")
    if not arch:
        raise UserError(f"{headers} is for no architecture of the lab: there are {', '.join(_ARCH_OF_OPTION.values())}")
    return build_module(Kernel(arch, headers, None, name, ""), headers.resolve(), which, again=True)


_RELEASE = re.compile(r"[0-9][A-Za-z0-9._+~-]{0,63}")
"""The kernel's makefiles allow 64 characters."""
_ARCH_OF_OPTION = {"CONFIG_X86_64": "x86_64", "CONFIG_ARM64": "aarch64", "CONFIG_ARM": "armv7"}


def fetch_busybox(arch: str, mirror: str = "", say: Say = lambda _: None) -> Path:
    """Debian's static BusyBox for an architecture. ``arch``: the agent's name."""

    def fill(part: Path) -> Mapping[str, str]:
        say(f"fetching BusyBox for {arch}")
        archive = Archive(SUITES["6.1"], DEBIAN_NAMES[arch], mirror)
        ((package, deb),) = archive.collect(lambda found: [found.named("busybox-static")], part)
        debian_packages.unpack_package(deb, part / "all")
        _single_match(part / "all", "bin/busybox").rename(part / "busybox")
        deb.unlink()
        discard(part / "all")
        return {"package": package.name, "version": package.version}

    return obtain_folder(lab_cache() / "busybox" / arch, fill).folder / "busybox"


def _fill_kernel(wanted: CatalogueEntry, mirror: str, part: Path, say: Say) -> Mapping[str, str]:
    """Fetch the image, its headers, and the kernel's build programs, which run on this machine."""

    def image_and_headers(found: Archive) -> list[Package]:
        version = wanted.version
        image = found.newest(wanted.image_pattern, f"linux-image of {wanted.series} with {wanted.flavour}", version)
        release = image.name.removeprefix("linux-image-").removesuffix("-unsigned")
        flavoured = found.named(f"linux-headers-{release}", version)
        common = (name for name in flavoured.depends if name.startswith("linux-headers-"))
        return [image, flavoured, *(found.named(name, version) for name in common)]

    say(f"fetching {wanted.asked_name}")
    suites = SUITES[wanted.series]
    fetched = Archive(suites, DEBIAN_NAMES[wanted.arch], mirror).collect(image_and_headers, part)
    image, flavoured = fetched[0][0], fetched[1][0]
    kbuild = next((name for name in flavoured.depends if name.startswith("linux-kbuild-")), "")
    own = Archive(suites, debian_packages.debian_architecture(), mirror)
    fetched += own.collect(lambda found: [found.named(kbuild, wanted.version)], part)
    say(f"unpacking {image.name} {image.version}")
    for _, deb in fetched:
        debian_packages.unpack_package(deb, part / "all")
        deb.unlink()
    release = flavoured.name.removeprefix("linux-headers-")
    facts = {"package": image.name, "version": image.version, "release": release, **_keep_needed(part, release)}
    discard(part / "all")
    return facts


def _keep_needed(part: Path, release: str) -> dict[str, str]:
    """Keep the image, its configuration, modules and headers. Paths inside the headers become relative."""
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
    """The one file or folder that matches a pattern in unpacked packages, with or without a merged /usr."""
    for candidate in (folder / name, folder / "usr" / name):
        if candidate.exists():
            return candidate
    raise UserError(f"Debian's package has no {name}: this version of rtproof does not know its layout")


def resolve_kernel(
    text: str, modules_folder: Path | None = None, mirror: str = "", say: Say = lambda _: None
) -> Kernel:
    """The kernel that ``--kernel`` names: NAME or NAME@VERSION of the catalogue, or the user's own image.

    An image's modules are also searched in lib/modules/RELEASE beside the image and beside its folder.
    """
    if text.partition(VERSION_MARK)[0] in (known.name for known in catalogue()):
        if modules_folder is not None:
            raise UserError(f"{text} has its own modules: give a folder of modules only with an image of your own")
        return fetch_kernel(text, mirror, say=say)
    image = Path(text)
    if not image.is_file():
        names = names_instead(text, (known.name for known in catalogue()))
        raise UserError(f"{text!r} is neither a file nor the name of a kernel{names}")
    kernel = open_kernel(image, modules_folder)
    folder = kernel.image.parent
    places = [base / "lib" / "modules" / kernel.release for base in (folder, folder.parent)]
    beside = next((place for place in places if kernel.release and place.is_dir()), None)
    return kernel if modules_folder else open_kernel(image, beside)


def list_kernels() -> list[dict[str, Any]]:
    """Every kernel of the catalogue, each with the exact versions in the cache. None: not known without the kernel."""
    found = []
    for known in catalogue():
        folders = sorted((lab_cache() / "kernels").glob(f"{known.name}{VERSION_MARK}*"))
        versions = (folder.name.partition(VERSION_MARK)[2] for folder in folders if (folder / FILE_LIST).is_file())
        for each in (known, *(replace(known, version=version) for version in versions)):
            found.append(_listed_kernel(each, cached_kernel(each)))
    return found


def _listed_kernel(known: CatalogueEntry, stored: StoredFolder | None) -> dict[str, Any]:
    built = "PREEMPT_RT" if known.rt else None
    if stored:
        config = stored.folder / _fact(stored, "config")
        try:
            built = preemption_of_config(config.read_text(errors="replace"))
        except OSError as error:
            raise UserError(f"{config} cannot be read: {error.strerror}") from error
    return {
        "name": known.asked_name,
        "architecture": known.arch,
        "suite": SUITES[known.series][0],
        "preemption": built,
        "package": _fact(stored, "package") if stored else None,
        "version": _fact(stored, "version") if stored else None,
        "folder": str(stored.folder) if stored else None,
        "size_bytes": stored.size if stored else None,
    }


def preemption_of_config(config: str) -> str:
    """The preemption model of a kernel, from its configuration (kernel/Kconfig.preempt)."""
    chosen = {line.removesuffix("=y") for line in config.splitlines() if line.startswith("CONFIG_PREEMPT")}
    if "CONFIG_PREEMPT_RT" in chosen:
        return "PREEMPT_RT"
    models = {"CONFIG_PREEMPT_LAZY": "lazy", "CONFIG_PREEMPT_VOLUNTARY": "voluntary", "CONFIG_PREEMPT": "full"}
    default = next((word for option, word in models.items() if option in chosen), "none")
    return f"{default}, or preempt=" if "CONFIG_PREEMPT_DYNAMIC" in chosen else default
