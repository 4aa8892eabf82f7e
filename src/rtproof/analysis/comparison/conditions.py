# SPDX-License-Identifier: Apache-2.0
"""How the runs came about: their boots, their order in time, activations that never ran. Each is a sentence or none."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.phrases import percent, quantity

SAME_BOOT_NS = 5 * 1_000_000_000
"""Two estimates of the instant of one boot differ by less, unless the wall clock was set between them."""
MISSED = 1e-4
"""A share of activations that never ran from which on the view of those that ran looks better than the system is."""

Sides = tuple[tuple[str, Sequence[RunFigures]], tuple[str, Sequence[RunFigures]]]


def conditions(sides: Sides) -> tuple[str, ...]:
    """Sentences on what the comparison could not even out."""
    return (*_in_order(sides), *_boots(sides), *_missed(sides), *_too_few_boots(sides), *_unclear(sides))


def unclear(runs: Sequence[RunFigures]) -> tuple[str, ...]:
    """What the files of some runs do not tell, each with the number of runs of which it holds."""
    found = Counter(sentence for run in runs for sentence in run.unclear)
    return tuple(f"{quantity(n, 'run')} of {len(runs)}: {sentence}" for sentence, n in found.items())


def boots(runs: Sequence[RunFigures]) -> int | None:
    """From how many boots the runs are, by their clocks; None if that is not known of all."""
    times = sorted(run.booted_ns for run in runs if run.booted_ns is not None)
    if len(times) < len(runs) or not times:
        return None
    return 1 + sum(later - earlier > SAME_BOOT_NS for earlier, later in pairwise(times))


def _in_order(sides: Sides) -> Iterator[str]:
    times = [[run.started_ns for run in runs if run.started_ns is not None] for _, runs in sides]
    if min(map(len, times)) < 2:
        return
    for (first, second), (early, late) in (((0, 1), times), ((1, 0), times[::-1])):
        if max(early) < min(late):
            yield (
                f"all runs of {sides[first][0]} came before those of {sides[second][0]}, so whatever else changed in "
                "between cannot be told from what is compared: take turns (rtproof run --repeat 5 --abba)"
            )


def _boots(sides: Sides) -> Iterator[str]:
    found = boots([run for _, runs in sides for run in runs])
    if found == 1:
        yield "all runs are of one boot, so how boots of one system differ is not in the scatter of the runs"


def _too_few_boots(sides: Sides) -> Iterator[str]:
    every = boots([run for _, runs in sides for run in runs])
    for name, runs in sides:
        if len(runs) > 1 and boots(runs) == 1 and every != 1:
            yield f"the runs of {name} are of one boot, so the boot cannot be told from what is compared"


def _missed(sides: Sides) -> Iterator[str]:
    for name, runs in sides:
        missed, ran = sum(run.missed or 0 for run in runs), sum(run.n for run in runs)
        if runs[0].facts.get("view") == "observed" and ran and missed > MISSED * ran:
            share = percent(float(f"{missed / (missed + ran):.2g}"))
            yield (
                f"{quantity(missed, 'activation')} of {name} never ran ({share} of those due) and are in no figure: "
                "the schedule view (--view schedule) charges each with the time it was late"
            )
        uncounted = sum(run.missed is None for run in runs)
        if uncounted:
            yield (
                f"how many activations of {name} never ran is not known of {quantity(uncounted, 'run')}, whose files "
                "do not count them: they are in no figure"
            )


def _unclear(sides: Sides) -> Iterator[str]:
    return (f"{name}, {sentence}" for name, runs in sides for sentence in unclear(runs))
