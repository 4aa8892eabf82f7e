# SPDX-License-Identifier: Apache-2.0
"""What a profile needs that this machine lacks, as its agent tells: one line for each."""

from collections import Counter
from collections.abc import Iterable, Mapping

from rtproof.profiles import CellPlan, Profile, Way, run_options

MISSING = "; not here: "
AUTO = ""
"""The method of a probe without one: its first."""

Methods = Mapping[tuple[str, str], str]
"""By probe and method: why it can't run here, "" if it can."""


def methods(listed: str) -> Methods:
    """Of what the agent's ``list`` prints."""
    found: dict[tuple[str, str], str] = {}
    for row in (line.split("\t") for line in listed.splitlines()):
        if row[0] == "method" and len(row) > 3:
            reason = row[3].partition(MISSING)[2]
            found[row[1], row[2]] = reason
            found.setdefault((row[1], AUTO), reason)
    return found


def needs(profile: Profile, known: Methods, *, short: bool = False) -> list[str]:
    """Sentences: what the user has to say, and which way is taken in whose place; short: without reasons and help."""
    asked = [each for each in profile.parameters if each.default is None]
    words = [f"--set {each.name}=..." + ("" if short else f" ({each.help})") for each in asked]
    lines = Counter(line for cell in profile.cells for line in _of_cell(cell, known, short))
    cells = len(profile.cells)
    return [*words, *(line if n == cells else f"{n} of {cells} cells: {line}" for line, n in lines.items())]


def _of_cell(cell: CellPlan, known: Methods, short: bool) -> Iterable[str]:
    reasons = [(way, _why_not(cell, way, known)) for way in cell.ways]
    taken = next((way for way, why in reasons if not why), None)
    passed = reasons if taken is None else reasons[: cell.ways.index(taken)]
    whys = "; ".join(f"{way.name}: {why}" for way, why in passed) if len(reasons) > 1 else reasons[0][1]
    if taken is None:
        yield "can't run here" + ("" if short else f" ({whys})")
    elif passed:
        yield f"by way of {taken.name}" + ("" if short else f" ({whys})")


def _why_not(cell: CellPlan, way: Way, known: Methods) -> str:
    options = run_options(cell, way)
    probe = options.get("probe", "timer").partition(":")[0]
    return known.get((probe, options.get("method", AUTO)), f"this agent has no probe {probe} with such a method")
