# SPDX-License-Identifier: Apache-2.0
"""What cells are called where a table or a plot has one name for each."""

from collections.abc import Sequence

from rtproof.report.campaign.outcome import Outcome


def names(outcomes: Sequence[Outcome]) -> list[str]:
    """Of each the label of its cell, and where there are several systems the one that it ran on."""
    several = len({each.system for each in outcomes}) > 1
    return [f"{each.cell.label}, {each.system}" if several else each.cell.label for each in outcomes]


def named(outcomes: Sequence[Outcome]) -> list[tuple[str, Outcome]]:
    """Each with its name."""
    return list(zip(names(outcomes), outcomes, strict=True))


def some_of(some: Sequence[Outcome], outcomes: Sequence[Outcome]) -> str:
    """The names of some, where it is not all of several."""
    if len(some) == len(outcomes) > 1:
        return "All cells"
    chosen = {id(each) for each in some}
    return "; ".join(name for name, each in named(outcomes) if id(each) in chosen)
