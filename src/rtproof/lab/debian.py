# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian, by an apt of the lab's own: its sources, indexes and cache; nothing of the machine's is changed.

There is one such apt for each group of suites and each architecture, so that a mirror that is being synchronised, and
has one index that does not fit, stops only what needs that index. apt checks signatures and checksums.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import UserError
from rtproof.lab import sources
from rtproof.lab.store import discard, locked
from rtproof.vm.places import lab_cache

TOOLS = ("apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb")

# How this machine reaches the network; its hooks and its other choices are left out.
_FROM_MACHINE = re.compile(r"(Acquire::(https?|ftp|Check-|ForceIPv|Retries)|Dir::Etc::netrc)[^ ]* ")
_NOT_FROM_MACHINE = ("sourceparts", "main", "parts", "preferences", "preferencesparts")


@dataclass(frozen=True)
class Package:
    """One version of a package, as the index of its suite has it. ``size``: bytes to download."""

    name: str
    version: str
    architecture: str
    depends: tuple[str, ...]
    size: int


class UnavailableError(UserError):
    """The archive does not have it now, or it cannot be reached."""


def check_tools() -> None:
    """UserError if this machine cannot fetch Debian's packages."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise UserError(
            f"fetching Debian's packages needs {', '.join(missing)}, which this machine does not have: "
            "fetch on a machine with apt, or give a kernel of your own with --kernel FILE"
        )


def host_architecture() -> str:
    """This machine's architecture, as Debian calls it."""
    check_tools()
    return _run(["dpkg", "--print-architecture"]).stdout.strip()


class Archive:
    """Some suites of Debian for one architecture."""

    def __init__(self, suites: Sequence[str], architecture: str, mirror: str = "") -> None:
        check_tools()
        self.architecture = architecture
        self._suites = tuple(suites)
        self._sources = sources.sources_for(suites, mirror)
        self._place = lab_cache() / "apt" / f"{suites[0]}-{architecture}"
        self._complaint = ""

    def collect(self, choose: Callable[["Archive"], list[Package]], folder: Path) -> list[tuple[Package, Path]]:
        """Download what ``choose`` finds in fresh indexes, tried once more if something is not there.

        Mirrors change between the index and the package, and while they do, indexes may not fit their checksums.
        """
        with locked(self._place):
            try:
                return self._collect(choose, folder)
            except UnavailableError:
                return self._collect(choose, folder)
            finally:
                discard(self._place / "cache")

    def _collect(self, choose: Callable[["Archive"], list[Package]], folder: Path) -> list[tuple[Package, Path]]:
        self._update()
        return [(package, self._download(package, folder)) for package in choose(self)]

    def newest(self, pattern: str, what: str = "") -> Package:
        """The newest package whose whole name matches; of the same version the one with the shorter name."""
        beginning = re.match(r"[a-z-]*", pattern)
        names = self._apt_cache("pkgnames", beginning[0] if beginning else "").split()
        wanted = sorted((name for name in names if re.fullmatch(pattern, name)), key=len)
        packages = parse_packages(self._apt_cache("show", *wanted)) if wanted else []
        if not packages:
            where = f"{self.architecture} in Debian's {', '.join(self._suites)}"
            raise UnavailableError(f"cannot find {what or pattern} for {where}{self._why()}")
        return functools.reduce(lambda best, other: other if is_newer(other.version, best.version) else best, packages)

    def named(self, name: str) -> Package:
        """The newest version of one package."""
        return self.newest(re.escape(name), name)

    def _why(self) -> str:
        return f" (apt-get says: {self._complaint})" if self._complaint else ""

    def _update(self) -> None:
        """Not every index has to come: whether what is wanted is in those that did shows when it is looked for."""
        self._configure()
        self._complaint = _first_complaint(self._apt(["apt-get", "--quiet", "update"]).stderr)

    def _configure(self) -> None:
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._place / name).mkdir(parents=True, exist_ok=True)
        (self._place / "status").touch()
        (self._place / "debian.sources").write_text(self._sources)
        (self._place / "apt.conf").write_text(_configuration(self._place, self.architecture))

    def _apt(self, command: list[str], folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
        return _run(command, folder, {"APT_CONFIG": str(self._place / "apt.conf")})

    def _apt_cache(self, *arguments: str) -> str:
        return self._apt(["apt-cache", *arguments]).stdout

    def _download(self, package: Package, folder: Path) -> Path:
        before = set(folder.glob("*.deb"))
        wanted = f"{package.name}={package.version}"
        done = self._apt(["apt-get", "--quiet", "download", wanted], folder)
        came = set(folder.glob("*.deb")) - before
        if done.returncode != 0 or len(came) != 1:
            raise UnavailableError(f"{wanted} cannot be fetched: {_first_complaint(done.stderr)}")
        return came.pop()


def _run(
    command: list[str], folder: Path | None = None, variables: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "LC_ALL": "C", **(variables or {})}
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def _configuration(place: Path, architecture: str) -> str:
    """apt's user for downloads must be root where we are, because it cannot enter the cache of another user."""
    ours = {
        "APT::Architecture": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::GzipIndexes": "true",
        "Acquire::Languages": "none",
        "Dir::State": f"{place}/state",
        "Dir::State::status": f"{place}/status",
        "Dir::Cache": f"{place}/cache",
        "Dir::Etc::sourcelist": f"{place}/debian.sources",
        **{
            f"Dir::Etc::{name}": "/dev/null"
            for name in ("sourceparts", "main", "parts", "preferences", "preferencesparts")
        },
    }
    machine = [line for line in _run(["apt-config", "dump"]).stdout.splitlines() if _FROM_MACHINE.match(line)]
    lines = [*machine, *(f'{name} "{value}";' for name, value in ours.items())]
    return "\n".join([*lines, f'APT::Architectures {{ "{architecture}"; }};', ""])


def parse_packages(text: str) -> list[Package]:
    """The packages of an index, or of what ``apt-cache show`` prints (deb822)."""
    found = []
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): *(.*)$", stanza, re.MULTILINE))
        if {"Package", "Version", "Architecture", "Size"} <= fields.keys():
            depends = tuple(re.findall(r"(?:^|, *)([^ ,|:(]+)", fields.get("Depends", "")))
            found.append(
                Package(fields["Package"], fields["Version"], fields["Architecture"], depends, int(fields["Size"]))
            )
    return found


def is_newer(version: str, than: str) -> bool:
    """By Debian's rules for versions (deb-version(7))."""
    return _run(["dpkg", "--compare-versions", version, "gt", than]).returncode == 0


def unpack(deb: Path, folder: Path) -> None:
    """The files of a package, without installing it; UserError if that fails."""
    done = _run(["dpkg-deb", "--extract", str(deb), str(folder)])
    if done.returncode != 0:
        raise UserError(f"{deb.name} cannot be unpacked: {_first_complaint(done.stderr)}")


def _first_complaint(messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:") or "error" in line] or lines
    return re.sub(r"^[EW]: ", "", errors[0]).rstrip(".") if errors else ""
