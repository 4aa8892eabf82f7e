# SPDX-License-Identifier: Apache-2.0
"""What an agent's ``list`` tells: one thing in a line, tabs between its kind, its names and its help."""

NOT_HERE = "; not here: "
"""Stands in a help before what this machine lacks for it."""


WORDS = {"probe": 3, "probe_option": 4, "method": 4, "load": 3, "load_option": 4}


def rows(listed: str, *kinds: str) -> list[list[str]]:
    """The words of each line of these kinds, by default of all. Lines that an agent of another version may have, with
    other words, are left out."""
    split = (line.split("\t") for line in listed.splitlines())
    return [row for row in split if len(row) == WORDS.get(row[0]) and row[0] in (kinds or WORDS)]


def missing(text: str) -> str:
    """What the machine lacks, as a help says; "" if nothing."""
    return text.partition(NOT_HERE)[2]


def without_missing(text: str) -> str:
    """The help alone."""
    return text.partition(NOT_HERE)[0]
