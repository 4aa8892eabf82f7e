# SPDX-License-Identifier: Apache-2.0
"""Fetch packages of Debian with an apt of the lab's own; the machine's own apt, indexes and packages stay unchanged.

Each group of suites and each architecture has its own apt, so that an index that a mirror is changing hides no other.
Only the addresses of mirrors come from the machine's apt.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rtproof.core.errors import UserError
from rtproof.core.toml import read_toml
from rtproof.vm.cache_folders import (
    StoredFolder,
    cache_locked,
    check_room,
    discard,
    file_sha256,
    find_stored,
    lab_cache,
    obtain_folder,
)
from rtproof.vm.emulators import FETCHED, fetched_qemu_folder, read_emulator

KEYRINGS = tuple(Path(f"/usr/share/keyrings/debian-archive-keyring.{end}") for end in ("gpg", "pgp"))
MIRROR_VARIABLE = "RTPROOF_MIRROR"

_CODENAMES = {"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid"}
_ALIASES = {"oldoldstable", "oldstable", "stable", "testing", "unstable"}
_SNAPSHOTS = "/archive/debian/"
"""Part of the addresses of snapshot.debian.org, whose indexes are older than they say they may be."""


def sources_for(suites: Iterable[str], mirror: str = "") -> str:
    """A deb822 file with these suites, from ``mirror`` or those of the machine's apt. UserError without any."""
    mirror = mirror or os.environ.get(MIRROR_VARIABLE, "")
    if mirror and not re.match(r"[a-z+]+:/", mirror):
        raise UserError(f"{mirror!r} is not the address of a mirror, such as http://HOST/debian")
    known = [(mirror.rstrip("/"), "bookworm")] if mirror else _machine_mirrors()
    if not known:
        raise UserError("this machine's apt sources name no mirror of Debian: give one with --mirror URL")
    ring = next((f"Signed-By: {path}" for path in KEYRINGS if path.is_file()), "")
    stanzas = []
    for suite in suites:
        for uri in _addresses(suite, known):
            old = "Check-Valid-Until: no" if _SNAPSHOTS.rstrip("/") in uri else ""
            lines = ("Types: deb", f"URIs: {uri}", f"Suites: {suite}", "Components: main", ring, old)
            stanzas.append("\n".join(filter(None, lines)) + "\n")
    return "\n".join(stanzas)


def _machine_mirrors() -> list[tuple[str, str]]:
    """Address and suite of each source with the component main of this machine's apt that is Debian's.

    Code names come first, because other archives also call their suites "stable".
    """
    words = ("--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "--no-release-info", "Created-By: Packages")
    rows = [line.split() for line in _run(["apt-get", "indextargets", *words]).stdout.splitlines()]
    found = dict.fromkeys((row[0].rstrip("/"), row[1]) for row in rows if row[2:] == ["main"])
    for names in (_CODENAMES, _ALIASES):
        if some := [(uri, suite) for uri, suite in found if re.split("[-/]", suite)[0] in names]:
            return some
    return []


def _addresses(suite: str, known: Sequence[tuple[str, str]]) -> Iterable[str]:
    """The mirrors that have a suite. A machine that names no security suite gets it beside its mirrors."""
    security = ("-security", "/updates")
    fitting = [uri for uri, its in known if its.endswith(security) == suite.endswith(security)]
    if not fitting and suite.endswith(security):
        snapshots = "/archive/debian-security/"
        fitting = [uri.replace(_SNAPSHOTS, snapshots) if _SNAPSHOTS in uri else f"{uri}-security" for uri, _ in known]
    return dict.fromkeys(fitting)


TOOLS = ("apt-get", "apt-cache", "apt-config", "dpkg", "dpkg-deb")

# The settings by which this machine reaches the network. Its hooks and other settings are left out.
_FROM_MACHINE = re.compile(r"(Acquire::(https?|ftp|Check-|ForceIPv|Retries)|Dir::Etc::netrc)[^ ]* ")


@dataclass(frozen=True)
class Package:
    """One version of a package, as the index of its suite describes it. ``size``: bytes to download."""

    name: str
    version: str
    architecture: str
    depends: tuple[str, ...]
    size: int


OLDER_VERSIONS = "a mirror with older ones can be given with --mirror, such as one of snapshot.debian.org"


class UnavailableError(UserError):
    """The archive does not have the package now, or cannot be reached."""


def check_tools(instead: str = "give a kernel of your own with --kernel FILE") -> None:
    """UserError if this machine cannot fetch Debian's packages. ``instead``: what the user can do without them."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise UserError(
            f"fetching Debian's packages needs {', '.join(missing)}, which this machine does not have: "
            f"fetch on a machine with apt, or {instead}"
        )


def debian_architecture() -> str:
    check_tools()
    return _run(["dpkg", "--print-architecture"]).stdout.strip()


class Archive:
    """Some suites of Debian for one architecture."""

    def __init__(self, suites: Sequence[str], architecture: str, mirror: str = "") -> None:
        check_tools()
        self.architecture = architecture
        self._suites = tuple(suites)
        self._sources = sources_for(suites, mirror)
        self._place = lab_cache() / "apt" / f"{suites[0]}-{architecture}"
        self._complaint = ""

    def collect(self, choose: Callable[["Archive"], list[Package]], folder: Path) -> list[tuple[Package, Path]]:
        """Download the packages that ``choose`` finds in fresh indexes. If one is unavailable, try once more."""

        def collected() -> list[tuple[Package, Path]]:
            self._update()
            return [(package, self._download(package, folder)) for package in choose(self)]

        with cache_locked(self._place):
            try:
                return collected()
            except UnavailableError:
                return collected()
            finally:
                discard(self._place / "cache")

    def newest(self, pattern: str, what: str = "", version: str = "") -> Package:
        """The newest package whose whole name matches, or that version. UnavailableError with those there are."""
        beginning = re.match(r"[a-z-]*", pattern)
        names = self._apt("apt-cache", "pkgnames", beginning[0] if beginning else "").stdout.split()
        wanted = sorted((name for name in names if re.fullmatch(pattern, name)), key=len)
        listed = parse_packages(self._apt("apt-cache", "show", *wanted).stdout) if wanted else []
        packages = [package for package in listed if version in ("", package.version)]
        if not packages:
            told = f" in version {version}" if version else ""
            where = f"{self.architecture} in Debian's {', '.join(self._suites)}"
            others = ", ".join(dict.fromkeys(package.version for package in listed))
            said = f" (apt-get says: {self._complaint})" if self._complaint else ""
            rest = f" (there are: {others}; {OLDER_VERSIONS})" if others else said
            raise UnavailableError(f"cannot find {what or pattern}{told} for {where}{rest}")
        newest = packages[0]
        for other in packages[1:]:
            compared = _run(["dpkg", "--compare-versions", other.version, "gt", newest.version])  # deb-version(7)
            newest = other if compared.returncode == 0 else newest
        return newest

    def named(self, name: str, version: str = "") -> Package:
        return self.newest(re.escape(name), name, version)

    def _update(self) -> None:
        """Fetch the indexes. A missing one is no error yet: the search for a package shows whether it was needed."""
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._place / name).mkdir(parents=True, exist_ok=True)
        (self._place / "status").touch()
        (self._place / "debian.sources").write_text(self._sources)
        (self._place / "apt.conf").write_text(_configuration(self._place, self.architecture))
        self._complaint = _first_complaint(self._apt("apt-get", "--quiet", "update").stderr)

    def _apt(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return _run(command, folder, {"APT_CONFIG": str(self._place / "apt.conf")})

    def _download(self, package: Package, folder: Path) -> Path:
        before = set(folder.glob("*.deb"))
        wanted = f"{package.name}={package.version}"
        done = self._apt("apt-get", "--quiet", "download", wanted, folder=folder)
        came = set(folder.glob("*.deb")) - before
        if done.returncode != 0 or len(came) != 1:
            raise UnavailableError(f"{wanted} cannot be fetched: {_first_complaint(done.stderr)}")
        return came.pop()


def _run(
    command: Sequence[str], folder: Path | None = None, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", **(variables or {})}
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def _configuration(place: Path, architecture: str) -> str:
    """The text of apt's configuration. A process of root downloads as root: another user cannot enter its cache."""
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


def unpack_package(deb: Path, folder: Path) -> None:
    """Unpack the files of a package without installing it. UserError if that fails."""
    done = _run(["dpkg-deb", "--extract", str(deb), str(folder)])
    if done.returncode != 0:
        raise UserError(f"{deb.name} cannot be unpacked: {_first_complaint(done.stderr)}")


def _first_complaint(messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:") or "error" in line] or lines
    return re.sub(r"^[EW]: ", "", errors[0]).rstrip(".") if errors else ""


# Debian's newer QEMU in the lab's cache, beside the system's; nothing is installed. The packages, their versions and
# their SHA-256 are those of fetched_qemu.toml, so every machine gets the same bytes.


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


def fetch_qemu(mirror: str = "", again: bool = False, say: Callable[[str], None] = lambda _: None) -> StoredFolder:
    """The QEMU in the cache, fetched from Debian unless the version of the table is there.

    UserError if it cannot be had or does not run; TargetError if the disk has no room.
    """
    place, table = fetched_qemu_folder(), read_toml(_TABLE, PinnedPackages)
    stored = find_stored(place)
    if stored and not again and stored.facts.get("version") in {each.version for each in table.package}:
        return stored
    check_tools(INSTEAD)
    here = debian_architecture()
    wanted = {each.name: each for each in table.package if each.architecture == here}
    if not wanted:
        raise UserError(f"there is no QEMU to fetch for {here}: {INSTEAD}")
    first = next(iter(wanted.values()))

    def fill(part: Path) -> Mapping[str, str]:
        check_room(part, NEEDED_MIB, "fetching QEMU")
        archive = Archive(table.suites, here, mirror)
        say(f"fetching QEMU {first.version}")
        packages = archive.collect(
            lambda found: [found.named(each.name, each.version) for each in wanted.values()], part
        )
        for package, deb in packages:
            if file_sha256(deb) != wanted[package.name].sha256:
                raise UserError(
                    f"the mirror's {deb.name} is another file than the one that rtproof was tested with: "
                    "give another mirror with --mirror URL"
                )
            unpack_package(deb, part)
            deb.unlink()
        for unneeded in UNNEEDED:
            discard(part / unneeded)
        programs = [read_emulator(str(path), FETCHED) for path in sorted((part / "usr" / "bin").glob(PROGRAMS))]
        if not programs:
            raise UserError(f"Debian's packages have no usr/bin/{PROGRAMS}: this version of rtproof does not know them")
        if faulty := next((each for each in programs if each.fault), None):
            raise UserError(faulty.fault)
        return {"package": first.name, "version": first.version, "says": programs[0].version}

    return obtain_folder(place, fill, again or stored is not None)
