# SPDX-License-Identifier: Apache-2.0
"""The goals of benchmarks, and the table that says whether each goal is reached."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """One number of a benchmark. ``goal``: in words; ``bounds``: the same as numbers, inclusive; none: only told."""

    key: str
    words: str
    goal: str = ""
    bounds: tuple[float, float] | None = None


def show(goals: Iterable[Goal], results: Mapping[str, float]) -> bool:
    """Print the table; False if a goal is missed or a number is missing."""
    print(f"\n{'':58} {'measured':>14}  goal")
    fine = True
    for goal in goals:
        if goal.key not in results:
            print(f"{goal.words:58} {'not measured':>14}  {goal.goal}")
            fine = False
            continue
        holds = goal.bounds is None or goal.bounds[0] <= results[goal.key] <= goal.bounds[1]
        fine = fine and holds
        value = f"{results[goal.key]:,.3f}" if results[goal.key] < 1000 else f"{results[goal.key]:,.0f}"
        print(f"{goal.words:58} {value:>14}  {goal.goal}{'' if holds else '   MISSED'}")
    return fine
