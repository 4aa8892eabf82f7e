# SPDX-License-Identifier: Apache-2.0
"""Bugs of Linux that delay real-time threads, by version: ``kernel_bugs.toml``."""

import re
from enum import Enum
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from rtproof.audit.check import Severity
from rtproof.core.toml import parse_toml

MAY_BE_FIXED = (
    "The sources of this version had a bug whose fix may have been brought back into it; a distribution's third number "
    "does not tell that."
)


Version = tuple[int, int, int | None]
"""Of the sources. The third number is None where a distribution counts in its own way."""


class BugState(Enum):
    """Whether a version has a bug. UNKNOWN: its branch had the bug, and may have the fix."""

    OPEN = "open"
    CLOSED = "closed"
    UNKNOWN = "unknown"


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bug. fix: the commit. stable: versions of stable branches that have the fix."""

    id: str
    effect: str
    introduced: str
    fixed: str
    fix: str
    severity: Severity
    source: str
    stable: tuple[str, ...] = ()

    def state_in(self, version: Version) -> BugState:
        """Whether a version has it."""
        if not _numbers(self.introduced)[:2] <= version[:2] < _numbers(self.fixed)[:2]:
            return BugState.CLOSED
        fix = next((found[2] for text in self.stable if (found := _numbers(text))[:2] == version[:2]), None)
        if version[2] == 0:
            return BugState.OPEN
        if version[2] is None or fix is None:
            return BugState.UNKNOWN
        return BugState.CLOSED if version[2] >= fix else BugState.OPEN


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def exact_version(release: str, version: str) -> Version | None:
    """The version of the sources; None if the release does not begin with numbers.

    Debian names the version of the sources in ``uname -v``. Where a number of the distribution follows the third
    number, as in 5.14.0-427, the third number is that of the distribution.
    """
    found = re.match(r"(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?(-\d|\+|-arch|-gentoo)?", release)
    if not found:
        return None
    major, minor = int(found[1]), int(found[2])
    of_debian = re.search(rf"Debian {major}\.{minor}\.(\d{{1,4}})", version)
    if of_debian:
        return major, minor, int(of_debian[1])
    counted_otherwise = found[4] is not None and found[4].startswith("-") and found[4][1:].isdigit()
    return major, minor, None if counted_otherwise else int(found[3] or 0)


@cache
def known_bugs() -> tuple[Bug, ...]:
    """All bugs of the list."""
    text = resources.files("rtproof.audit").joinpath("kernel_bugs.toml").read_bytes()
    return parse_toml(text, dict[Literal["bug"], tuple[Bug, ...]], "kernel_bugs.toml")["bug"]
