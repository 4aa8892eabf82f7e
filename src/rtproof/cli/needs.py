# SPDX-License-Identifier: Apache-2.0
"""What a profile needs that this machine lacks, as its agent tells: one line for each."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rtproof import loads
from rtproof.agents import listing
from rtproof.profiles import CellPlan, Profile, Way, run_options
from rtproof.profiles.model import LOAD

AUTO = ""
"""The method of a probe without one: its first."""

PROGRAM = "--program"


@dataclass(frozen=True)
class Known:
    """What an agent has, and why it can't run here, "" if it can: methods by probe and method, loads by name."""

    methods: Mapping[tuple[str, str], str]
    loads: Mapping[str, str]


def known(listed: str) -> Known:
    """Of what the agent's ``list`` prints."""
    methods: dict[tuple[str, str], str] = {}
    for _, probe, method, text in listing.rows(listed, "method"):
        methods[probe, method] = listing.missing(text)
        methods.setdefault((probe, AUTO), listing.missing(text))
    return Known(methods, {name: listing.missing(text) for _, name, text in listing.rows(listed, "load")})


def needs(profile: Profile, known: Known, *, short: bool = False) -> list[str]:
    """Sentences: what the user has to say, and which way is taken in whose place; short: without reasons and help."""
    asked = [each for each in profile.parameters if each.default is None]
    words = [f"--set {each.name}=..." + ("" if short else f" ({each.help})") for each in asked]
    lines = Counter(line for cell in profile.cells for line in _of_cell(cell, known, short))
    cells = len(profile.cells)
    return [*words, *(line if n == cells else f"{n} of {cells} cells: {line}" for line, n in lines.items())]


def _of_cell(cell: CellPlan, known: Known, short: bool) -> Iterable[str]:
    reasons = [(way, _why_not(cell, way, known)) for way in cell.ways]
    taken = next((way for way, why in reasons if not why), None)
    passed = reasons if taken is None else reasons[: cell.ways.index(taken)]
    whys = "; ".join(f"{way.name}: {why}" for way, why in passed) if len(reasons) > 1 else reasons[0][1]
    if taken is None:
        yield "can't run here" + ("" if short else f" ({whys})")
    elif passed:
        yield f"by way of {taken.name}" + ("" if short else f" ({whys})")


def _why_not(cell: CellPlan, way: Way, known: Known) -> str:
    options = run_options(cell, way)
    probe = options.get("probe", "timer").partition(":")[0]
    here = (probe, options.get("method", AUTO))
    if here not in known.methods:
        return f"this agent has no probe {probe} with such a method"
    return known.methods[here] or next(filter(None, _loads_lack(options.get(LOAD, ()), known)), "")


def _loads_lack(names: Sequence[str], known: Known) -> Iterable[str]:
    """Of the agent's own loads, and of programs whether they are installed."""
    words = iter(loads.resolve(names))
    for option, value in zip(words, words, strict=True):
        name = value.partition(":")[0]
        if option != PROGRAM:
            yield known.loads.get(name, f"this agent has no load {name}")
        elif shutil.which(value.split()[1]) is None:
            yield f"the program {value.split()[1]} is not installed"
