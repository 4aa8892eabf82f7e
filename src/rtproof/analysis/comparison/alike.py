# SPDX-License-Identifier: Apache-2.0
"""Like for like: in which facts two sides differ, which forbid a comparison, and which have to be said aloud."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.ranking import known, rank
from rtproof.analysis.phrases import quantity

OTHER_QUANTITY = ("probe", "field", "unit", "view", "virtual time")
"""Where these differ, two things were measured, which have no ratio."""
MUST_AGREE = ("load", "period", "policy", "method", "CPUs", "threads")
"""Where these differ, the difference may come from them; the user may say that this is what he compares."""
ABSENT = {"cmdline ": "not there", "config ": "not set", "module ": "not loaded", "option ": "as by default"}
"""What it means that a fact of such a key is not there, in a run that has others of its kind."""
NOT_KNOWN = "not known"


class Weight(Enum):
    """FORBIDS: no comparison. UNLIKE: none unless the user says so. TOLD: a possible reason of what is found."""

    FORBIDS = "forbids"
    UNLIKE = "unlike"
    TOLD = "told"


@dataclass(frozen=True)
class Difference:
    """A fact that the two sides do not share. a, b: as each says; several texts where its runs differ.

    why, source: of the ranking, "" where nothing is known. said: the user said that the sides differ in it.
    """

    key: str
    a: str
    b: str
    weight: Weight
    why: str
    source: str
    said: bool = False


@dataclass(frozen=True)
class Variation:
    """A fact in which the runs of one side differ among themselves. texts: each with the number of its runs."""

    key: str
    texts: tuple[tuple[str, int], ...]
    weight: Weight


def differences(
    a: Sequence[RunFigures], b: Sequence[RunFigures], although: Collection[str] = ()
) -> tuple[Difference, ...]:
    """What the sides differ in: what forbids first, then what has to agree, then by what is known to matter."""
    found = [_difference(key, a, b, although) for key in _keys((*a, *b))]
    return tuple(sorted((one for one in found if one), key=lambda one: (list(Weight).index(one.weight), rank(one.key))))


def variations(runs: Sequence[RunFigures]) -> tuple[Variation, ...]:
    """In which facts the runs of one side differ, in the same order."""
    found = [Variation(key, tuple(_texts(key, runs).most_common()), _weight(key)) for key in _keys(runs)]
    several = [one for one in found if len(one.texts) > 1]
    return tuple(sorted(several, key=lambda one: (list(Weight).index(one.weight), rank(one.key))))


def refusal(
    a: Sequence[RunFigures], b: Sequence[RunFigures], names: tuple[str, str], although: Collection[str] = ()
) -> str | None:
    """Why the two may not be compared, in one sentence that says what remains; None if they may."""
    found = differences(a, b, although)
    for side, runs in zip(names, (a, b), strict=True):
        mixed = [one for one in variations(runs) if one.weight is not Weight.TOLD and one.key not in although]
        if mixed:
            return _mixed(side, mixed)
    forbidden = [one for one in found if one.weight is Weight.FORBIDS]
    if forbidden:
        return _forbidden(forbidden, names)
    unlike = [one for one in found if one.weight is Weight.UNLIKE and not one.said]
    return _unlike(unlike, names) if unlike else None


def _keys(runs: Iterable[RunFigures]) -> list[str]:
    return list(dict.fromkeys(key for run in runs for key in run.facts))


def _difference(
    key: str, a: Sequence[RunFigures], b: Sequence[RunFigures], although: Collection[str]
) -> Difference | None:
    texts = [_texts(key, runs) for runs in (a, b)]
    if set(texts[0]) == set(texts[1]):
        return None
    unknown = any(NOT_KNOWN in each for each in texts)
    if unknown and _kind(key):
        return None
    row = known(key)
    weight = Weight.TOLD if unknown else _weight(key)
    a_says, b_says = (_words(each) for each in texts)
    why = "it has to agree, and nobody can say whether it does" if unknown and _weight(key) is not Weight.TOLD else ""
    return Difference(
        key, a_says, b_says, weight, why or (row.why if row else ""), row.source if row else "", key in although
    )


def _texts(key: str, runs: Sequence[RunFigures]) -> Counter[str]:
    return Counter(told(key, run) for run in runs)


def told(key: str, run: RunFigures) -> str:
    """What a run says of a fact; what its absence means where it does not."""
    return run.facts.get(key) or _absent(key, run)


def _absent(key: str, run: RunFigures) -> str:
    kind = _kind(key)
    has_others = kind == "option " or any(other.startswith(kind) for other in run.facts)
    return ABSENT[kind] if kind and has_others else NOT_KNOWN


def _kind(key: str) -> str:
    return next((kind for kind in ABSENT if key.startswith(kind)), "")


def _words(texts: Counter[str]) -> str:
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{text} ({quantity(n, 'run')})" for text, n in texts.most_common())


def _weight(key: str) -> Weight:
    if key in OTHER_QUANTITY:
        return Weight.FORBIDS
    return Weight.UNLIKE if key in MUST_AGREE else Weight.TOLD


def _mixed(side: str, mixed: list[Variation]) -> str:
    listed = ", and ".join(f"{one.key}: {_words(Counter(dict(one.texts)))}" for one in mixed)
    return f"the runs of {side} are not alike ({listed}), so they are not one side: put those together that are"


def _forbidden(forbidden: list[Difference], names: tuple[str, str]) -> str:
    return (
        f"{_listed(forbidden, names)}: these are two quantities, and a ratio of them says nothing; "
        "what remains is the report of each run by itself, and a comparison of runs that measured the same"
    )


def _unlike(unlike: list[Difference], names: tuple[str, str]) -> str:
    keys = ",".join(one.key for one in unlike)
    return (
        f"{_listed(unlike, names)}: so nobody could say whether a difference comes from that; measure both alike, "
        f"or say that this is what you compare (--although {keys!r})"
    )


def _listed(found: list[Difference], names: tuple[str, str]) -> str:
    return "; ".join(f"{one.key} is {one.a!r} in {names[0]} and {one.b!r} in {names[1]}" for one in found)
