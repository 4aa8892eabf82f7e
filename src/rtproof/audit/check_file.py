# SPDX-License-Identifier: Apache-2.0
"""Read the checks of ``checks/SUBJECT.toml``. Tests hold what the files say to what ``rules`` understands."""

from functools import cache
from importlib import resources

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


def parse_checks(content: bytes, subject: str) -> CheckFile:
    """The checks of a file."""
    file = parse_toml(content, CheckFile, f"{subject}.toml")
    return CheckFile(file.title, tuple(msgspec.structs.replace(check, subject=subject) for check in file.check))


@cache
def check_files() -> dict[str, CheckFile]:
    """The files of all subjects, by subject, in the order of SUBJECTS."""
    folder = resources.files("rtproof.audit").joinpath("checks")
    return {subject: parse_checks(folder.joinpath(f"{subject}.toml").read_bytes(), subject) for subject in SUBJECTS}


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, in the order of the subjects."""
    return tuple(check for file in check_files().values() for check in file.check)


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
