# SPDX-License-Identifier: Apache-2.0
"""Arguments of users: times as text or as whole nanoseconds, and the limits that these make. And one kind of error."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import TypeVar

import click
import numpy as np

from rtproof.core import units
from rtproof.core.defects import error_sentence
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.phrases import unknown_name
from rtproof.experiment import run_request
from rtproof.record.requirement import Requirement

Duration = str | int
"""A time: text with a unit, such as "500us" or "2h", or a whole number of nanoseconds."""
Limits = Duration | Sequence[Duration] | None
"""One limit, several that are judged together, or None."""
Parsed = TypeVar("Parsed")


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Within the context, an error of the user, of a file or of the system becomes a ``RtproofError``.

    Any other exception is a defect of rtproof, and stays what it is, with its traceback.
    """
    try:
        yield
    except RtproofError:
        raise
    except click.ClickException as problem:
        raise RtproofError(problem.format_message().rstrip(".")) from None
    except OSError as problem:
        raise RtproofError(error_sentence(problem)) from problem


def path_of(path: object) -> Path:
    """The path that a user named; RtproofError for what is no path."""
    named = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(named, str):
        raise RtproofError(f"a path is text or a pathlib.Path, and no {type(named).__name__}")
    if not named:
        raise RtproofError("a path is empty: the current folder is '.'")
    return Path(for_system("a path", named))


def for_system(name: str, text: str) -> str:
    """The text; RtproofError if it has a character that no path and no argument of a program can have here."""
    if "\0" in text:
        raise RtproofError(f"{name} has a NUL character: {text!r}")
    try:
        fsencode(text)
    except UnicodeEncodeError as problem:
        raise RtproofError(
            f"{name} has a character that {problem.encoding} lacks, this system's encoding: {text!a}"
        ) from None
    return text


def flag_of(name: str, value: object) -> bool:
    """True or False, also numpy's. RtproofError for anything else: "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise RtproofError(f"{name}: True or False is needed, and {value!r} is neither")
    return bool(value)


def whole_number(name: str, value: object, least: int, most: int) -> int:
    """A whole number of any type, such as numpy's."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise RtproofError(f"{name}: {value!r} is no whole number from {least} to {most}")
    return int(value)


def duration_text(name: str, value: object) -> str:
    """A time as the command line takes it. RtproofError for what is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral):
        kind = type(value).__name__
        raise RtproofError(f"{name}: a time is text such as '500us', or a whole number of nanoseconds, and no {kind}")
    return f"{int(value)}ns"


def rate_text(name: str, value: object) -> str:
    """How often something may come, as the command line takes it: "1/h", or the nanoseconds of an int."""
    return value if isinstance(value, str) else f"1/{duration_text(name, value)}"


def each_of(value: object) -> list[object]:
    """The elements of a list or a tuple; a single value as the only element; none for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def length_ns(name: str, value: object) -> int:
    """A time above 0."""
    return _read(name, duration_text(name, value), units.parse_length)


SMALLEST_SHARE = 1e-12
"""No run has so many activations that a smaller share, or one nearer to 1, says more."""


def share_of(value: object) -> float:
    """A share between 0 and 1."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not SMALLEST_SHARE <= float(value) <= 1 - SMALLEST_SHARE
    ):
        raise RtproofError(f"shares: a share lies between 0 and 1, such as 0.9995, and {value!r} does not")
    return float(value)


CLAIM: Mapping[str, tuple[str, Callable[[str, object], str], Callable[[str], int | float]]] = {
    "longest": ("longest_ns", duration_text, units.parse_longest_episode),
    "gap": ("gap_ns", duration_text, units.parse_gap),
    "confidence": ("confidence", lambda _, value: str(value), units.parse_confidence),
    "shows": ("shows_ns", rate_text, units.parse_at_most),
    "bunches": ("bunches", lambda _, value: str(value), units.parse_bunches),
}
"""The field of a requirement that each argument sets, the argument as text, and what reads that."""


def requirements_of(limit: Limits, at_most: object = None, **claim: object) -> tuple[Requirement, ...]:
    """The requirements that a user gives now; none without a limit. RtproofError for what makes none.

    claim: of the names in ``CLAIM``; None: not given.
    """
    for name in claim:
        if name not in CLAIM:
            raise RtproofError(unknown_name("argument", name, ("limit", "at_most", *CLAIM, "fixed_beforehand")))
    limits = [length_ns("limit", each) for each in each_of(limit)]
    rates = [_read("at_most", rate_text("at_most", each), units.parse_judged_rate) for each in each_of(at_most)]
    given = {
        field: _read(name, text(name, claim[name]), parse)
        for name, (field, text, parse) in CLAIM.items()
        if claim.get(name) is not None
    }
    if not limits and (given or rates):
        raise RtproofError("at_most, shows, longest, gap, confidence and bunches need a limit")
    return run_request.requirements_of_limits(limits, rates, given)


def _read(name: str, text: str, parse: Callable[[str], Parsed]) -> Parsed:
    try:
        return parse(text)
    except UserError as problem:
        raise RtproofError(f"{name}: {problem}") from None
