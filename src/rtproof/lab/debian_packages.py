# SPDX-License-Identifier: Apache-2.0
"""Fetch packages of Debian with an apt of the lab's own; the machine's own apt, indexes and packages stay unchanged.

Each group of suites and each architecture has its own apt. So if one index does not fit because its mirror is being
synchronised, only the packages of that index are missing. apt checks signatures and checksums.

The addresses of mirrors and their keys come from the machine's apt sources, in both formats (sources.list(5)). The lab
takes no more from there, because it needs suites that the machine itself may not use.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.lab.stored_folders import cache_locked, discard
from rtproof.vm.cache_folders import lab_cache

# The next functions read the mirrors of Debian, and their keys, from this machine's apt sources.


APT_FOLDER = Path("/etc/apt")
KEYRINGS = tuple(Path(f"/usr/share/keyrings/debian-archive-keyring.{end}") for end in ("gpg", "pgp"))
MIRROR_VARIABLE = "RTPROOF_MIRROR"

_CODENAMES = {"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid"}
_ALIASES = {"oldoldstable", "oldstable", "stable", "testing", "unstable"}
# Other options, above all trusted=yes, are decisions of the machine's owner for the machine, not for the lab.
_KEPT_OPTIONS = ("signed-by", "check-valid-until", "check-date")
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)\s*(?P<components>.*)")


@dataclass(frozen=True)
class AptSource:
    """A suite of packages. ``options``: those of ``_KEPT_OPTIONS``, with names in lower case."""

    uri: str
    suite: str
    options: tuple[tuple[str, str], ...] = ()


def machine_sources(folder: Path = APT_FOLDER) -> list[AptSource]:
    """All enabled sources of binary packages of the component main in an apt configuration folder."""
    found: list[AptSource] = []
    parts = folder / "sources.list.d"
    for path in (folder / "sources.list", *(sorted(parts.iterdir()) if parts.is_dir() else ())):
        parse = {".list": _one_line, ".sources": _deb822}.get(path.suffix)
        if parse and path.is_file():
            found += parse(path.read_text(errors="replace"))
    return found


def _one_line(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        match = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if match and "main" in match["components"].split():
            pairs = (option.partition("=") for option in (match["options"] or "").split())
            options = {key.lower(): value for key, _, value in pairs}
            yield AptSource(match["uri"].rstrip("/"), match["suite"], _kept_options(options))


def _deb822(text: str) -> Iterator[AptSource]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = _fields(stanza)
        enabled = fields.get("enabled", "yes").lower() not in ("no", "false", "0")
        if not enabled or "deb" not in fields.get("types", "").split():
            continue
        if "main" not in fields.get("components", "").split():
            continue
        for uri, suite in product(fields.get("uris", "").split(), fields.get("suites", "").split()):
            yield AptSource(uri.rstrip("/"), suite, _kept_options(fields))


def _fields(stanza: str) -> dict[str, str]:
    """The fields of a paragraph, with names in lower case. A value keeps all its lines: Signed-By may hold a key."""
    fields: dict[str, str] = {}
    last = ""
    for line in stanza.splitlines():
        if line[:1].isspace():
            fields[last] = f"{fields.get(last, '')}\n{line.rstrip()}"
        else:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            fields[last] = value.strip()
    return fields


def _kept_options(options: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, options[name]) for name in _KEPT_OPTIONS if options.get(name))


def sources_for(suites: Iterable[str], mirror: str = "", folder: Path = APT_FOLDER) -> str:
    """A deb822 file with these suites of Debian, from ``mirror``, or from the places of this machine's apt sources.

    UserError if neither names a mirror.
    """
    mirror = mirror or os.environ.get(MIRROR_VARIABLE, "")
    known = [_of_mirror(mirror)] if mirror else _of_debian(machine_sources(folder))
    if not known:
        raise UserError("this machine's apt sources name no mirror of Debian: give one with --mirror URL")
    return "\n".join(_stanza(source) for suite in suites for source in _serving(suite, known))


def _of_mirror(uri: str) -> AptSource:
    if not re.match(r"[a-z+]+:/", uri):
        raise UserError(f"{uri!r} is not the address of a mirror, such as http://HOST/debian")
    return AptSource(uri.rstrip("/"), "bookworm", (("check-valid-until", "no"),) if _SNAPSHOTS in uri else ())


_SNAPSHOTS = "/archive/debian/"
"""Part of the addresses of snapshot.debian.org, whose indexes are older than they say they may be."""


def _security_address(mirror: str) -> str:
    """The address of a mirror's security suites: the same with "-security" added."""
    if _SNAPSHOTS in mirror:
        return mirror.replace(_SNAPSHOTS, "/archive/debian-security/")
    return f"{mirror}-security"


def _of_debian(sources: list[AptSource]) -> list[AptSource]:
    """The sources with Debian's code names. If there are none, those with a name such as "stable".

    Code names come first, because other archives also call their suites "stable".
    """
    by_name = ([each for each in sources if _base(each.suite) in names] for names in (_CODENAMES, _ALIASES))
    return next(filter(None, by_name), [])


def _base(suite: str) -> str:
    return re.sub(r"(-updates|-backports|-security|-proposed-updates|/updates)/?$", "", suite)


def _is_security(suite: str) -> bool:
    return suite.endswith(("-security", "/updates"))


def _serving(suite: str, sources: list[AptSource]) -> list[AptSource]:
    """A suite at each address that has it. Security suites and other suites have different addresses.

    A machine that names no security suite would get other kernels: it gets that beside its mirrors.
    """
    wanted = _is_security(suite)
    fitting = [each for each in sources if _is_security(each.suite) == wanted]
    if wanted and not fitting:
        fitting = [replace(each, uri=_security_address(each.uri)) for each in sources]
    return [replace(each, suite=suite) for each in {each.uri: each for each in fitting}.values()]


def _stanza(source: AptSource) -> str:
    options = dict(source.options)
    ring = next((str(path) for path in KEYRINGS if path.is_file()), "")
    if ring:
        options.setdefault("signed-by", ring)
    lines = ["Types: deb", f"URIs: {source.uri}", f"Suites: {source.suite}", "Components: main"]
    return "\n".join([*lines, *(f"{name.title()}: {value}" for name, value in options.items())]) + "\n"


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
    """Debian's name of this machine's architecture."""
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
        """Download the packages that ``choose`` finds in fresh indexes. If one is unavailable, try once more.

        A mirror may change between the download of the index and that of the package. Meanwhile, indexes may not fit
        their checksums.
        """
        with cache_locked(self._place):
            try:
                return self._collect(choose, folder)
            except UnavailableError:
                return self._collect(choose, folder)
            finally:
                discard(self._place / "cache")

    def _collect(self, choose: Callable[["Archive"], list[Package]], folder: Path) -> list[tuple[Package, Path]]:
        self._update()
        return [(package, self._download(package, folder)) for package in choose(self)]

    def newest(self, pattern: str, what: str = "", version: str = "") -> Package:
        """The newest package whose whole name matches. If two have the same version, the one with the shorter name.

        ``version``: take this version only. UnavailableError, with the versions that there are.
        """
        beginning = re.match(r"[a-z-]*", pattern)
        names = self._apt_cache("pkgnames", beginning[0] if beginning else "").split()
        wanted = sorted((name for name in names if re.fullmatch(pattern, name)), key=len)
        listed = parse_packages(self._apt_cache("show", *wanted)) if wanted else []
        packages = [package for package in listed if version in ("", package.version)]
        if not packages:
            told = f" in version {version}" if version else ""
            where = f"{self.architecture} in Debian's {', '.join(self._suites)}"
            others = ", ".join(dict.fromkeys(package.version for package in listed))
            rest = f" (there are: {others}; {OLDER_VERSIONS})" if others else self._apt_words()
            raise UnavailableError(f"cannot find {what or pattern}{told} for {where}{rest}")
        return functools.reduce(lambda best, other: other if is_newer(other.version, best.version) else best, packages)

    def named(self, name: str, version: str = "") -> Package:
        """The newest version of one package, or the given one."""
        return self.newest(re.escape(name), name, version)

    def _apt_words(self) -> str:
        """What apt-get said, in brackets, to end a sentence; "" if it said nothing."""
        return f" (apt-get says: {self._complaint})" if self._complaint else ""

    def _update(self) -> None:
        """Fetch the indexes. A missing one is no error yet: the search for a package shows whether it was needed."""
        self._configure()
        self._complaint = _first_complaint(self._apt(["apt-get", "--quiet", "update"]).stderr)

    def _configure(self) -> None:
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._place / name).mkdir(parents=True, exist_ok=True)
        (self._place / "status").touch()
        (self._place / "debian.sources").write_text(self._sources)
        (self._place / "apt.conf").write_text(_configuration(self._place, self.architecture))

    def _apt(self, command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
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
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", **(variables or {})}
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def _configuration(place: Path, architecture: str) -> str:
    """The text of apt's configuration. If this process is root, apt downloads as root.

    Usually apt would download as a user of its own, who cannot enter another user's cache.
    """
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
    """Whether a version is newer than another by Debian's rules (deb-version(7))."""
    return _run(["dpkg", "--compare-versions", version, "gt", than]).returncode == 0


def unpack_package(deb: Path, folder: Path) -> None:
    """Unpack the files of a package without installing it. UserError if that fails."""
    done = _run(["dpkg-deb", "--extract", str(deb), str(folder)])
    if done.returncode != 0:
        raise UserError(f"{deb.name} cannot be unpacked: {_first_complaint(done.stderr)}")


def _first_complaint(messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:") or "error" in line] or lines
    return re.sub(r"^[EW]: ", "", errors[0]).rstrip(".") if errors else ""
