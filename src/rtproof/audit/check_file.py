# SPDX-License-Identifier: Apache-2.0
"""Read the checks of ``checks/SUBJECT.toml``, and refuse what makes no sense before anything is judged."""

import re
from functools import cache
from importlib import resources

import msgspec

from rtproof.audit import conditions, functions, rules
from rtproof.audit.check import Check, CheckFile, Form
from rtproof.audit.facts import KernelVersion
from rtproof.audit.presets import PURPOSES
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
_ID = re.compile(r"[a-z0-9]+(\.[a-z0-9_]+)+")
_CPU_FORMS = (Form.CPU_LIST, Form.CPU_MASK)


def parse_checks(content: bytes, subject: str) -> CheckFile:
    """The checks of a file. UserError for a word that means nothing."""
    name = f"{subject}.toml"
    file = parse_toml(content, CheckFile, name)
    for check in file.check:
        complaint = _complaint(check, subject)
        if complaint:
            raise UserError(f"{name}: {check.id}: {complaint}")
    return CheckFile(file.title, tuple(msgspec.structs.replace(check, subject=subject) for check in file.check))


def _complaint(check: Check, subject: str) -> str:
    """What is wrong with a check, or ""."""
    return next(filter(None, (judge(check, subject) for judge in (_of_words, _of_judging, _of_versions))), "")


def _of_words(check: Check, _: str) -> str:
    unknown = [need for need in check.needs if need not in conditions.CONDITIONS]
    purposes = [purpose for purpose in (*check.severity_for, *check.good_for) if purpose not in PURPOSES]
    if not _ID.fullmatch(check.id):
        return "its id must be words of small letters with dots between them"
    if not check.source:
        return "it names no source"
    if unknown:
        return f"there is no condition {unknown[0]!r}"
    return f"there is no purpose {purposes[0]!r}" if purposes else ""


def _of_judging(check: Check, subject: str) -> str:
    if sum(map(bool, (check.function, check.good, check.rule))) != 1:
        return "it needs either good, rule or function"
    if check.rule:
        return rules.complaint(check)
    if check.function and functions.find(subject, check.function) is None:
        return f"functions/{subject}.py has no function {check.function!r}"
    for good in (check.good, *check.good_for.values()):
        for pattern in (good.has, good.lacks) if good else ():
            try:
                re.compile(pattern)
            except re.error as problem:
                return f"{pattern!r} is no pattern: {problem}"
        if good and good.cpus and check.form not in _CPU_FORMS:
            return "good.cpus needs a form of CPUs"
    return ""


def _of_versions(check: Check, _: str) -> str:
    wrong = [text for text in (check.since, check.until) if text and KernelVersion.read(text) is None]
    return f"{wrong[0]!r} is no version of a kernel" if wrong else ""


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
    found = next((check for check in all_checks() if check.id == check_id), None)
    if found:
        return found
    near = _ids_like(check_id.lower())
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UserError(f"there is no check {check_id!r}{meant}; 'rtproof audit --list' names all")


def _ids_like(name: str) -> list[str]:
    import difflib  # Takes longer to load than most commands take to answer.

    ids = [check.id for check in all_checks()]
    within = [one for one in ids if name and one.startswith(f"{name}.")] or [one for one in ids if name and name in one]
    return (within or difflib.get_close_matches(name, ids, 3))[:MOST_MEANT]
