# SPDX-License-Identifier: Apache-2.0
"""Build our kernel module, and the modules of its tests, against a kernel's headers: once for each state of the input.

The same sources, headers and compiler give the same bytes, wherever the cache is. A guest's virtual time depends on
every byte that the guest loads. So the modules have no debug information and no path of this machine.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import rtproof
from rtproof.core.errors import UserError
from rtproof.lab.stored_folders import obtain_folder
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.kernel_files import Kernel

OUR_MODULE = "rtproof"
NOT_FOR_MAKE = ("ARCH", "KBUILD_OUTPUT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Of the environment: they would change what is built, or make us part of a make that called this program."""

_PACKAGE = Path(rtproof.__file__).parent
_SOURCES = ("*.c", "*.h", "Kbuild", "Makefile")
_PREFIXES = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-", "armv7": "arm-linux-gnueabihf-"}
# Debian's kernels of the catalogue are built with the first.
_COMPILERS = ("gcc-12", "gcc")


@dataclass(frozen=True)
class Toolchain:
    """What compiles for a kernel: the prefix of its programs, the compiler, and what that says about itself."""

    prefix: str
    compiler: str
    identity: str


def module_sources() -> Path:
    """The module's sources: beside this package when installed, in the checkout otherwise."""
    for candidate in (_PACKAGE / "_kmod_source", _PACKAGE.parent.parent / "kmod"):
        if (candidate / "rtproof.h").is_file():
            return candidate
    raise UserError(f"the kernel module's sources are not at {_PACKAGE / '_kmod_source'}: install rtproof again")


def build_module(kernel: Kernel, headers: Path, which: str = OUR_MODULE) -> Path:
    """The file ``which``.ko for a kernel: ``rtproof`` from kmod/, any other from kmod/tests/.

    ``headers``: the folder to give to ``make -C``. UserError if it does not compile, with the first error.
    """
    tools = toolchain(kernel.arch)
    folder = module_sources()
    inside = "" if which == OUR_MODULE else "tests"
    names = _source_names(folder, inside)
    key = _build_key(folder, names, headers, tools)
    place = lab_cache() / "modules" / f"{which}-{kernel.release}-{key}"

    def fill(part: Path) -> Mapping[str, str]:
        scratch = part / "build"
        for name in names:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, scratch / name)
        _make(scratch / inside, headers, tools)
        _take_module(scratch / inside / f"{which}.ko", kernel, part)
        shutil.rmtree(scratch)
        return {"release": kernel.release}

    return obtain_folder(place, fill).folder / f"{which}.ko"


def toolchain(arch: str) -> Toolchain:
    """What compiles modules for an architecture here; UserError that says what to install if nothing does."""
    prefix = _PREFIXES[arch]
    found = next((prefix + name for name in _COMPILERS if shutil.which(prefix + name)), "")
    missing = [] if found else [f"gcc-{prefix.rstrip('-').replace('_', '-')}"]
    missing += [] if shutil.which("make") else ["make"]
    if missing:
        raise UserError(
            f"a kernel module for {arch} cannot be built here without {prefix}gcc and make: "
            f"install them (Debian: apt-get install {' '.join(missing)})"
        )
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return Toolchain(prefix, found, said.splitlines()[0] if said else found)


def _source_names(folder: Path, inside: str) -> list[str]:
    """Sources relative to the folder; the tests' modules may include what is theirs and ours."""
    found = [path for pattern in _SOURCES for path in folder.glob(pattern)]
    if inside:
        found += [path for pattern in _SOURCES for path in (folder / inside).glob(pattern)]
    return sorted(str(path.relative_to(folder)) for path in found)


def _build_key(folder: Path, names: list[str], headers: Path, tools: Toolchain) -> str:
    digest = hashlib.sha256(f"{tools.compiler}\n{tools.identity}\n".encode())
    for path in [*(folder / name for name in names), headers / ".config", headers / "Module.symvers"]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from error
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _make(scratch: Path, headers: Path, tools: Toolchain) -> None:
    """Type information of modules is left out, because making it needs a vmlinux and pahole."""
    command = [
        "make",
        "-C",
        str(headers),
        f"M={scratch}",
        f"CROSS_COMPILE={tools.prefix}",
        f"CC={tools.compiler}",
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
        f"KCFLAGS=-g0 -ffile-prefix-map={scratch}=kmod -ffile-prefix-map={headers.parent}=headers",
        "modules",
    ]
    plain = {name: value for name, value in os.environ.items() if name not in NOT_FOR_MAKE}
    done = subprocess.run(
        command, env={**plain, "LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UserError(f"the kernel module does not compile against {headers.name}: {_first_error(done.stderr)}")


def _first_error(messages: str) -> str:
    """The first line that says what is wrong, with paths as in the sources."""
    lines = [line for line in messages.splitlines() if re.search(r"error|undefined|not found|No rule|Stop", line)]
    line = (lines or messages.splitlines() or ["make gave no message"])[0]
    return re.sub(r"(/\S+)/build/", "", line)


def _take_module(built: Path, kernel: Kernel, part: Path) -> None:
    if not built.is_file():
        raise UserError(f"the sources of the kernel module make no {built.name}")
    ours, theirs = vermagic(built), _vermagic_of(kernel)
    if ours != theirs:
        raise UserError(f"{built.name} is built for {ours!r}, and the kernel takes only {theirs!r}")
    built.rename(part / built.name)


def _vermagic_of(kernel: Kernel) -> str:
    """What the kernel wants a module to be built for: what its own modules say."""
    own = (path for path in kernel.modules.rglob("*.ko*") if path.is_file()) if kernel.modules else iter(())
    return vermagic(next(own, None))


def vermagic(module: Path | None) -> str:
    """Release and settings that a module is built for, such as ``6.1.0-50-rt-amd64 SMP preempt_rt mod_unload``."""
    if module is None:
        return ""
    data = lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()
    found = re.search(rb"\0vermagic=([^\0]*)\0", data)
    return found[1].decode(errors="replace").strip() if found else ""
