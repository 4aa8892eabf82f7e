# SPDX-License-Identifier: Apache-2.0
"""Decide whether two sides may be compared: which facts differ, how the runs came, and which are copies."""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from rtproof.compare.comparison_model import (
    DifferenceWeight,
    FactDifference,
    RunTurns,
    sides_in_virtual_time,
)
from rtproof.compare.run_metrics import KnownFact, RunFigures, known_facts
from rtproof.core.phrases import percent, quantity

SAME_BOOT_NS = 5 * 1_000_000_000
"""Two estimates of the time of one boot differ by less, unless somebody set the wall clock between them."""
MISSED = 1e-4
"""From this share of missed activations on, a view of only those that ran looks better than the system is."""

SIDE_NAMES = ("A", "B")
SideRuns = tuple[tuple[str, Sequence[RunFigures]], tuple[str, Sequence[RunFigures]]]


def measuring_conditions(sides: SideRuns) -> tuple[str, ...]:
    """Return sentences on unequal conditions of the sides that the comparison could not correct."""
    boots = distinct_boots([run for _, runs in sides for run in runs])
    of_one_boot = [name for name, runs in sides if len(runs) > 1 and distinct_boots(runs) == 1 != boots]
    return (
        *(["all runs are of one boot: other boots of the same system may differ more"] if boots == 1 else []),
        *_missed(sides),
        *(
            f"the runs of {name} are of one boot: a difference between boots would look the same"
            for name in of_one_boot
        ),
        *(f"{name}, {sentence}" for name, runs in sides for sentence in unclear_conditions(runs)),
    )


def unclear_conditions(runs: Sequence[RunFigures]) -> tuple[str, ...]:
    """Return what the files of some runs do not tell, each with the number of these runs."""
    found = Counter(sentence for run in runs for sentence in run.unclear)
    return tuple(f"{quantity(n, 'run')} of {len(runs)}: {sentence}" for sentence, n in found.items())


def distinct_boots(runs: Sequence[RunFigures]) -> int | None:
    """Return from how many boots the runs come, by their clocks; None if a run's boot is not known."""
    times = sorted(run.booted_ns for run in runs if run.booted_ns is not None)
    if len(times) < len(runs) or not times:
        return None
    return 1 + sum(later - earlier > SAME_BOOT_NS for earlier, later in pairwise(times))


def _missed(sides: SideRuns) -> Iterator[str]:
    for name, runs in sides:
        missed, ran = sum(run.missed or 0 for run in runs), sum(run.n for run in runs)
        if runs[0].facts.get("view") == "observed" and ran and missed > MISSED * ran:
            share = percent(float(f"{missed / (missed + ran):.2g}"))
            yield (
                f"{quantity(missed, 'activation')} of {name} never ran ({share} of those due) and are in no figure; "
                "--view schedule counts each with the time that it was late"
            )
        uncounted = sum(run.missed is None for run in runs)
        if uncounted:
            yield (
                f"activations that never ran are in no figure, and {quantity(uncounted, 'run')} of {name} "
                f"{'does' if uncounted == 1 else 'do'} not count them"
            )


# Without turns, a slow change of the machine looks like a difference of the sides. Only the order of the start times
# counts. ``turn_imbalance`` is the largest difference between the shares of their runs that both sides measured, at
# any point. A drift of any shape moves the difference of the means by at most the imbalance times the total way of the
# drift. A-then-B has an imbalance of 1; five pairs have 0.2. docs/comparison.md has the error for each order.

MOST_AHEAD = 2
"""One side may be ahead of the other by this many runs, each counted as its share of the smaller side ..."""
MOST_IMBALANCE = 0.2
"""... or by this share of the runs, whichever is more."""
MOST_LOST = 1
"""An order that chance drew is by turns as drawn. It stays so if a run is lost, which shifts the shares of its side."""
LONGEST_PART = 4
"""``A B B A`` repeats. A disturbance with the same period would meet one side alone."""
FEWEST_CHANGES = 5
"""Five pairs have five changes of side. With four changes, a single rise and fall in time can fit the sides.

Fewer pairs cannot have so many: they are by turns from as many changes as pairs, and no side of them is called better.
"""
MOST_CHANGES = 10
NO_TIMES = "when it began is not known of {0}"
SAME_TIME = "runs of both sides have the same start time"


def run_turns(a: Sequence[RunFigures], b: Sequence[RunFigures], names: tuple[str, str] = SIDE_NAMES) -> RunTurns:
    """Return whether the runs were taken by turns in time; None if the order is not known. names: of the sides."""
    starts = [(run.started_ns, name) for name, side in zip(SIDE_NAMES, (a, b), strict=True) for run in side]
    seeds = {run.order_seed for run in (*a, *b)}
    seed = next(iter(seeds)) if len(seeds) == 1 else None
    known = sorted((start, name) for start, name in starts if start is not None)
    if len(known) < len(starts):
        return RunTurns(None, "", NO_TIMES.format(f"{len(starts) - len(known)} of {quantity(len(starts), 'run')}"))
    if any(early[0] == late[0] and early[1] != late[1] for early, late in pairwise(known)):
        return RunTurns(None, "", SAME_TIME)
    order = "".join(name for _, name in known)
    even = is_interleaved(order, 0 if seed is None else MOST_LOST)
    if even:
        return RunTurns(even, order, "", seed)
    called = dict(zip(SIDE_NAMES, names, strict=True))
    first, *later = [(len(list(some)), called[side]) for side, some in groupby(order)]
    told = [f"{quantity(first[0], 'run')} of {first[1]} came first", *(f"then {n} of {name}" for n, name in later)]
    if len(told) > MOST_CHANGES:
        told[MOST_CHANGES:] = [f"then {quantity(len(told) - MOST_CHANGES, 'more change')} of side"]
    return RunTurns(even, order, ", ".join(told), seed)


def is_interleaved(order: str, lost: int = 0) -> bool:
    """Return whether runs in this order were taken by turns, if so many more were lost.

    order: such as "ABBA", with both letters in it.
    """
    fewest = min(order.count("A"), order.count("B"))
    most = max(MOST_AHEAD / fewest, MOST_IMBALANCE) + lost / fewest + 1e-9
    least = max(fewest - 1, min(fewest, FEWEST_CHANGES), 2) - 2 * lost
    return turn_imbalance(order) <= most and sum(early != late for early, late in pairwise(order)) >= least


def drawn_order(times: int, seed: int) -> str:
    """Return ``times`` A and as many B, drawn from all orders by turns that do not repeat a part."""
    chance, sides = random.Random(seed), list("AB" * times)  # noqa: S311 - no secret
    chance.shuffle(sides)
    while times > 1 and (repeated_part("".join(sides)) or not is_interleaved("".join(sides))):
        chance.shuffle(sides)
    return "".join(sides)


def repeated_part(order: str) -> str:
    """Return the part of at most LONGEST_PART letters that the order repeats at least once; "" if there is none."""
    lengths = range(1, min(LONGEST_PART, len(order) // 2) + 1)
    return next((order[:length] for length in lengths if order[length:] == order[:-length]), "")


def turn_imbalance(order: str) -> float:
    """Return the largest difference, at any point, of the shares of A and B measured by then. order: such as "ABBA"."""
    n, m = order.count("A"), order.count("B")
    return max(abs(order[:at].count("A") / n - order[:at].count("B") / m) for at in range(1, len(order) + 1))


_GROUPS = ("cmdline ", "/", "config ", "module ")
"""Kinds of keys without a row, in order. Keys of no kind come before them."""


def ranked_facts(key: str) -> int:
    """Return the rank of a fact: the smaller, the more the fact is known to change latencies."""
    ranking, row = known_facts().known, known_fact(key)
    group = next((number for number, start in enumerate(_GROUPS, 1) if key.startswith(start)), 0)
    return ranking.index(row) if row else len(ranking) + group


def known_fact(key: str) -> KnownFact | None:
    """Return the row of a fact; None if there is none."""
    return next((row for row in known_facts().known if re.fullmatch(row.key, key)), None)


OTHER_QUANTITY = ("probe", "field", "unit", "view", "virtual time")
"""Where one of these facts differs, the sides measured two different things, which have no ratio."""
MUST_AGREE = ("load", "period", "policy", "method", "CPUs", "threads", "processor turns")
"""Where one of these facts differs, it may cause the difference. The user may name it as the thing to compare."""
ABSENT = {"cmdline ": "not there", "config ": "not set", "module ": "not loaded", "option ": "as by default"}
"""What it means if a run has no fact of such a key but has others of the same kind."""
NOT_KNOWN = "not known"


def fact_differences(
    a: Sequence[RunFigures], b: Sequence[RunFigures], although: Collection[str] = ()
) -> tuple[FactDifference, ...]:
    """Return the facts in which the sides differ: those that forbid a comparison, MUST_AGREE, then by rank."""
    keys = dict.fromkeys(key for run in (*a, *b) for key in run.facts)
    return tuple(sorted(filter(None, (_difference(key, a, b, although) for key in keys)), key=_rank))


def _rank(one: FactDifference) -> tuple[int, int]:
    return list(DifferenceWeight).index(one.weight), ranked_facts(one.key)


def comparison_refusal(
    a: Sequence[RunFigures], b: Sequence[RunFigures], names: tuple[str, str], although: Collection[str] = ()
) -> str | None:
    """Return one sentence on why the sides may not be compared and what remains possible; None if they may."""
    found = fact_differences(a, b, although)
    for side, runs in zip(names, (a, b), strict=True):
        texts = {key: _texts(key, runs) for key in (*OTHER_QUANTITY, *MUST_AGREE) if key not in although}
        mixed = [f"{key}: {texts_of_runs(each)}" for key, each in texts.items() if len(each) > 1]
        if mixed:
            listed = ", and ".join(mixed)
            return f"the runs of {side} are not alike ({listed}): put only runs that are alike on one side"
    forbidden = [one for one in found if one.weight is DifferenceWeight.FORBIDS]
    if forbidden:
        return (
            f"{_listed(forbidden, names)}: two different quantities have no ratio; report each run by itself, or "
            "compare runs that measured the same"
        )
    unlike = [one for one in found if one.weight is DifferenceWeight.UNLIKE and not one.said]
    if not unlike:
        return None
    keys = ",".join(one.key for one in unlike)
    return (
        f"{_listed(unlike, names)}: a difference may come from that; measure both alike, or say that this is what you "
        f"compare (--although {keys!r})"
    )


def texts_of_runs(texts: Counter[str]) -> str:
    """Return the text that all runs have; else each, with how many runs have it."""
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{text} ({quantity(n, 'run')})" for text, n in texts.most_common())


def _difference(
    key: str, a: Sequence[RunFigures], b: Sequence[RunFigures], although: Collection[str]
) -> FactDifference | None:
    texts = [_texts(key, runs) for runs in (a, b)]
    if set(texts[0]) == set(texts[1]):
        return None
    unknown = any(NOT_KNOWN in each for each in texts)
    if unknown and _kind(key):
        return None
    row, weight = known_fact(key), _weight(key)
    why, source = (row.why, row.source) if row else ("", "")
    if unknown and weight is not DifferenceWeight.TOLD:
        why = "it must agree, and one side does not tell it"
    a_says, b_says = (texts_of_runs(each) for each in texts)
    weight = DifferenceWeight.TOLD if unknown else weight
    return FactDifference(key, a_says, b_says, weight, why, source, key in although)


def _texts(key: str, runs: Sequence[RunFigures]) -> Counter[str]:
    return Counter(difference_sentences(key, run) for run in runs)


def difference_sentences(key: str, run: RunFigures) -> str:
    """Return the text of a fact in a run; if the run does not have the fact, what its absence means."""
    if said := run.facts.get(key):
        return said
    kind = _kind(key)
    has_others = kind == "option " or any(other.startswith(kind) for other in run.facts)
    return ABSENT[kind] if kind and has_others else NOT_KNOWN


def _kind(key: str) -> str:
    return next((kind for kind in ABSENT if key.startswith(kind)), "")


def _weight(key: str) -> DifferenceWeight:
    if key in OTHER_QUANTITY:
        return DifferenceWeight.FORBIDS
    return DifferenceWeight.UNLIKE if key in MUST_AGREE else DifferenceWeight.TOLD


def _listed(found: list[FactDifference], names: tuple[str, str]) -> str:
    return "; ".join(f"{one.key} is {one.a!r} in {names[0]} and {one.b!r} in {names[1]}" for one in found)


# The next class finds runs that copy another one: they are no further evidence.


COPY = "it has the same values as {0}, so it is no further run"
FEWEST_DISTINCT = 20
"""Chance does not make two independent runs alike in the counts of so many bins, or in so many maxima of seconds."""


class SeenRuns:
    """The values of the runs so far. Runs in virtual time are alike by design.

    every: equal runs are copies even where chance can make them alike, as it must be once a run is surely one.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._names: dict[tuple[object, ...], str] = {}

    def copied_by(self, run: RunFigures) -> str:
        """Say which of them a run copies; "" if none, and then it is one of them."""
        if sides_in_virtual_time([run]):
            return ""
        of_seconds = run.seconds.max.tobytes() if run.seconds else b""
        counts = (each.tobytes() for each in (run.counts.lo, run.counts.hi, run.counts.n))
        values = (run.overflow, run.largest, of_seconds, *counts)
        largest = run.seconds.max if run.seconds else np.zeros(0)
        telling = max(run.counts.n.size, np.unique(largest).size) >= FEWEST_DISTINCT
        if values in self._names and (self._every or telling):
            return COPY.format(self._names[values])
        self._names[values] = run.name
        return ""
