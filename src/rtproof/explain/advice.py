# SPDX-License-Identifier: Apache-2.0
"""Advice on causes, as data: ``rules/NAME.toml`` says for a cause, and the names it fits, what helps and who says so.

A file has a list ``advice``. Of one cause, the first advice whose ``name`` fits is taken, so special ones come first.
"""

import re
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from rtproof.core.errors import UserError
from rtproof.core.toml import parse_toml
from rtproof.explain.causes import MAY_BE, Cause, NamedCause

LONGEST_SHORT = 48


class Advice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule.

    causes: which it is for. name: a pattern that the whole name fits; "" fits all.
    of_chain: whether it is only for what kept the late thread by keeping another one, for which that one waited.
    short: what helps, in a few words. sentence: what helps. source: who says so.
    """

    causes: tuple[str, ...]
    short: str
    sentence: str
    source: str
    name: str = ""
    of_chain: bool = False


def parse_advice(content: bytes, name: str) -> tuple[Advice, ...]:
    """The rules of a file. UserError for a cause or a pattern that there is not."""
    found = parse_toml(content, dict[Literal["advice"], tuple[Advice, ...]], name)["advice"]
    known = {cause.value for cause in Cause}
    for rule in found:
        unknown = [cause for cause in rule.causes if cause not in known]
        if unknown:
            raise UserError(f"{name}: there is no cause {unknown[0]!r}")
        if len(rule.short) > LONGEST_SHORT:
            raise UserError(f"{name}: {rule.short!r} is too long for a table")
        try:
            re.compile(rule.name)
        except re.error as problem:
            raise UserError(f"{name}: {rule.name!r} is no pattern: {problem}") from None
    return found


@cache
def all_advice() -> tuple[Advice, ...]:
    """The rules of all files, in the order of their names."""
    folder = resources.files("rtproof.explain").joinpath("rules")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(rule for file in files for rule in parse_advice(file.read_bytes(), file.name))


def advice_on(cause: NamedCause, *, of_chain: bool = False) -> Advice | None:
    """The first rule that fits a cause, or else what it may be; None if there is none. of_chain: as in ``Advice``."""
    for kind in (cause.cause, *MAY_BE.get(cause.cause, ())):
        for rule in all_advice():
            named = not rule.name or re.fullmatch(rule.name, cause.name)
            if kind.value in rule.causes and named and (of_chain or not rule.of_chain):
                return rule
    return None
