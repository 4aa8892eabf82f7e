# SPDX-License-Identifier: Apache-2.0
"""What is known of the facts of a run: ``known_facts.toml``."""

from functools import cache
from importlib import resources

import msgspec

from rtproof.core.toml import parse_toml


class KnownFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact that is known to change latencies. key: a pattern. why: a clause. source: a page, or "measured here"."""

    key: str
    why: str
    source: str


class KnownFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """known: the facts, strongest first. files: names of files, by path. asked: names of what the user asked for."""

    known: tuple[KnownFact, ...]
    files: dict[str, str]
    asked: dict[str, str]


@cache
def known_facts() -> KnownFacts:
    """The whole file."""
    text = resources.files("rtproof.compare").joinpath("known_facts.toml").read_bytes()
    return parse_toml(text, KnownFacts, "known_facts.toml")
