# SPDX-License-Identifier: Apache-2.0
"""The mirrors of Debian that this machine's apt knows, read from its sources in both formats (sources.list(5)).

The lab needs suites that the machine itself may not use, so it takes the places and their keys from there, and no more.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import UserError

MACHINE = Path("/etc/apt")
KEYRINGS = tuple(Path(f"/usr/share/keyrings/debian-archive-keyring.{end}") for end in ("gpg", "pgp"))
MIRROR_VARIABLE = "RTPROOF_MIRROR"

_CODENAMES = {"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid"}
_ALIASES = {"oldoldstable", "oldstable", "stable", "testing", "unstable"}
# Anything else, above all trusted=yes, is a decision of the machine's owner for the machine, not for the lab.
_KEPT_OPTIONS = ("signed-by", "check-valid-until", "check-date")
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)\s*(?P<components>.*)")


@dataclass(frozen=True)
class Source:
    """One place that packages come from. ``options``: of ``_KEPT_OPTIONS``, names in lower case."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()


def machine_sources(folder: Path = MACHINE) -> list[Source]:
    """All binary sources in an apt configuration folder that are switched on."""
    found: list[Source] = []
    parts = folder / "sources.list.d"
    for path in (folder / "sources.list", *(sorted(parts.iterdir()) if parts.is_dir() else ())):
        parse = {".list": _one_line, ".sources": _deb822}.get(path.suffix)
        if parse and path.is_file():
            found += parse(path.read_text(errors="replace"))
    return found


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        match = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if match:
            pairs = (option.partition("=") for option in (match["options"] or "").split())
            options = {key.lower(): value for key, _, value in pairs}
            yield Source(match["uri"], (match["suite"],), tuple(match["components"].split()), _kept(options))


def _deb822(text: str) -> Iterator[Source]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = _fields(stanza)
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        suites, components = fields.get("suites", "").split(), fields.get("components", "").split()
        for uri in fields.get("uris", "").split():
            yield Source(uri, tuple(suites), tuple(components), _kept(fields))


def _fields(stanza: str) -> dict[str, str]:
    """Field names in lower case; a value keeps its further lines, because a key may be written out in Signed-By."""
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


def _kept(options: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, options[name]) for name in _KEPT_OPTIONS if options.get(name))


def sources_for(suites: Iterable[str], mirror: str = "", folder: Path = MACHINE) -> str:
    """A deb822 file with those suites of Debian, from ``mirror`` or else from wherever this machine's packages come.

    UserError if neither names a mirror.
    """
    mirror = mirror or os.environ.get(MIRROR_VARIABLE, "")
    known = _of_mirror(mirror) if mirror else _of_debian(machine_sources(folder))
    if not known:
        raise UserError("this machine's apt sources name no mirror of Debian: give one with --mirror URL")
    return "\n".join(_stanza(source, suite) for suite in suites for source in _serving(suite, known))


def _of_mirror(uri: str) -> list[Source]:
    """Mirrors have the security suites beside the others, under the same name with an ending."""
    if not re.match(r"[a-z+]+:/", uri):
        raise UserError(f"{uri!r} is not the address of a mirror, such as http://HOST/debian")
    bare = uri.rstrip("/")
    return [Source(bare, ("bookworm",), ("main",)), Source(f"{bare}-security", ("bookworm-security",), ("main",))]


def _of_debian(sources: list[Source]) -> list[Source]:
    """Those with Debian's code names; only if there is none, those that say "stable" as others do too."""
    for names in (_CODENAMES, _ALIASES):
        found = [source for source in sources if "main" in source.components and names & set(map(_base, source.suites))]
        if found:
            return found
    return []


def _base(suite: str) -> str:
    return re.sub(r"(-updates|-backports|-security|-proposed-updates|/updates)/?$", "", suite)


def _is_security(suite: str) -> bool:
    return suite.endswith(("-security", "/updates"))


def _serving(suite: str, sources: list[Source]) -> list[Source]:
    """One source for each address that has suites of the same kind."""
    fitting = (source for source in sources if any(_is_security(s) == _is_security(suite) for s in source.suites))
    return list({source.uri.rstrip("/"): source for source in fitting}.values())


def _stanza(source: Source, suite: str) -> str:
    options = dict(source.options)
    ring = next((str(path) for path in KEYRINGS if path.is_file()), "")
    if ring:
        options.setdefault("signed-by", ring)
    lines = ["Types: deb", f"URIs: {source.uri}", f"Suites: {suite}", "Components: main"]
    return "\n".join([*lines, *(f"{name.title()}: {value}" for name, value in options.items())]) + "\n"
