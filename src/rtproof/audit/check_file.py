# SPDX-License-Identifier: Apache-2.0
"""Read the checks of ``checks/SUBJECT.toml``. Tests hold what the files say to what ``rules`` understands."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from rtproof.audit.check import Check, CheckFile
from rtproof.core.errors import UserError
from rtproof.core.toml import parse_toml

SUBJECTS = (
    "kernel",
    "boot",
    "scheduler",
    "application",
    "isolation",
    "power",
    "clocks",
    "memory",
    "console",
    "services",
    "hardware",
)
"""In the order of the pages and of the output."""
MOST_MEANT = 8
_BEGIN = b"\n[[check]]\n"
_SEVERE = re.compile(rb'\b(severity|severest) = "(fatal|high)"')


def parse_checks(content: bytes, subject: str) -> CheckFile:
    """The checks of a file."""
    file = parse_toml(content, CheckFile, f"{subject}.toml")
    return CheckFile(file.title, tuple(msgspec.structs.replace(check, subject=subject) for check in file.check))


@cache
def check_files() -> dict[str, CheckFile]:
    """The files of all subjects, by subject, in the order of SUBJECTS."""
    return {subject: parse_checks(content, subject) for subject, content in _contents()}


def _contents() -> Iterator[tuple[str, bytes]]:
    folder = Path(__file__).with_name("checks")
    return ((subject, (folder / f"{subject}.toml").read_bytes()) for subject in SUBJECTS)


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, in the order of the subjects."""
    return tuple(check for file in check_files().values() for check in file.check)


@cache
def severe_checks() -> tuple[Check, ...]:
    """The checks that can have a fatal or high finding, in the order of the subjects.

    Only these are parsed, by the words in their text: to parse all takes a tenth of the time of ``rtproof show``.
    """
    found: list[Check] = []
    for subject, content in _contents():
        head, *checks = content.split(_BEGIN)
        severe = [check for check in checks if _SEVERE.search(check)]
        found += parse_checks(_BEGIN.join((head, *severe)), subject).check
    return tuple(found)


def find_check(check_id: str) -> Check:
    """The check of this id. UserError if there is none, with the ids that are like it."""
    ids = {check.id: check for check in all_checks()}
    if check_id in ids:
        return ids[check_id]
    import difflib  # Takes longer to load than most commands take to answer.

    name = check_id.lower()
    within = [one for one in ids if name and one.startswith(f"{name}.")] or [one for one in ids if name and name in one]
    near = (within or difflib.get_close_matches(name, ids, 3))[:MOST_MEANT]
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UserError(f"there is no check {check_id!r}{meant}; 'rtproof audit --list' names all")
