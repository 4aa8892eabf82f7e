# SPDX-License-Identifier: Apache-2.0
"""The files in ``debian/`` agree with the project's. ``make packages-check`` builds and tries the packages."""

import fnmatch
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import rtproof
from rtproof.agents.architectures import ARCHITECTURES, architecture_of_machine

ROOT = Path(__file__).parent.parent
DEBIAN = ROOT / "debian"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def paragraphs(path: Path) -> list[dict[str, str]]:
    """The paragraphs of a file in Debian's format (deb822), each field with its lines joined by newlines."""
    found = []
    for block in re.split(r"\n\s*\n", path.read_text()):
        fields = re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", block, re.MULTILINE)
        found.append({name: value.strip() for name, value in fields})
    return [fields for fields in found if fields]


CONTROL = paragraphs(DEBIAN / "control")
RULES = (DEBIAN / "rules").read_text()
CHANGELOG = (DEBIAN / "changelog").read_text()


def names(field: str) -> set[str]:
    """The packages that a field such as Depends names, without versions."""
    return {entry.split()[0] for entry in field.split(",") if entry.strip()}


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.match(r"rtproof \(([^)]+)\) \S+; urgency=\w+\n", CHANGELOG)
    module = re.search(r'^PACKAGE_VERSION="(.*)"$', (ROOT / "kmod/dkms.conf").read_text(), re.MULTILINE)
    assert newest
    assert module
    assert newest[1] == module[1] == rtproof.__version__
    assert (
        f"/usr/src/rtproof-{module[1]}\n    dkms install rtproof/{module[1]}\n" in (ROOT / "kmod/README.md").read_text()
    )


def test_the_build_dependencies_are_those_of_the_project() -> None:
    needed = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    wanted = {f"python3-{re.split('[>=<]', requirement)[0]}" for requirement in needed}
    assert wanted <= names(CONTROL[0]["Build-Depends"])


def test_each_architecture_of_debian_has_the_name_that_rtproof_gives_it() -> None:
    machines = {
        "amd64": "x86_64",
        "arm64": "aarch64",
        "armel": "armv5tel",
        "armhf": "armv7l",
        "i386": "i686",
        "powerpc": "ppc",
        "ppc64el": "ppc64le",
        "riscv64": "riscv64",
    }
    told = dict(re.findall(r"^NAME_(\w+) := (\w+)$", RULES, re.MULTILINE))
    assert told == {debian: architecture_of_machine(machine).name for debian, machine in machines.items()}
    # Debian never had a port for ARM v4T with this name of ours.
    assert {each.name for each in ARCHITECTURES} - set(told.values()) == {"arm920t"}


# The licences of all files.


COPYRIGHT = paragraphs(DEBIAN / "copyright")
STANZAS = [fields for fields in COPYRIGHT if "Files" in fields]
SPDX_NAMES = {
    "GPL-2.0-only WITH Linux-syscall-note OR Apache-2.0": "GPL-2.0-only with Linux-syscall-note exception or Apache-2.0"
}


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout, so nothing says which files are the project's")
    return [name for name in listed.stdout.split("\0") if name and not (ROOT / name).is_symlink()]


def licence_of(name: str) -> str:
    """What debian/copyright says: the last paragraph that names the file holds."""
    holding = [s for s in STANZAS if any(fnmatch.fnmatchcase(name, pattern) for pattern in s["Files"].split())]
    return holding[-1]["License"]


def test_each_file_has_the_licence_that_it_names_itself() -> None:
    wrong = []
    for name in tracked_files():
        head = (ROOT / name).read_bytes()[:400].decode(errors="replace")
        own = re.search(r"^\W*SPDX-License-Identifier: ([\w. -]+?)(?: \*/| -->|,|$)", head, re.MULTILINE)
        if own and SPDX_NAMES.get(own[1], own[1]) != licence_of(name):
            wrong.append(f"{name}: {own[1]}, and not {licence_of(name)}")
    assert wrong == []


def test_each_licence_is_used_and_its_text_is_there() -> None:
    alone = [fields["License"] for fields in COPYRIGHT if "Files" not in fields and "License" in fields]
    texts = {text.partition("\n")[0] for text in alone}
    used = {part for stanza in STANZAS for part in stanza["License"].split(" or ")}
    assert texts == used
    simple = {part.partition(" with ")[0] for part in used}
    assert simple == set(PROJECT["project"]["license"].split(" AND "))


def test_each_pattern_is_of_a_file() -> None:
    files = tracked_files()
    for stanza in STANZAS:
        for pattern in stanza["Files"].split():
            assert fnmatch.filter(files, pattern), pattern
