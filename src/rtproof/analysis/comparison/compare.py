# SPDX-License-Identifier: Apache-2.0
"""Two sides in, everything that can be said about them out. Nothing is read, and nothing is left to chance."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from rtproof.analysis.comparison.alike import differences, refusal, variations
from rtproof.analysis.comparison.deterministic import deterministic, without_chance
from rtproof.analysis.comparison.effects import effects, in_turns, overall
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.metrics import metrics, pooled, reference_levels
from rtproof.analysis.comparison.model import Comparison, LeftOut, Side
from rtproof.analysis.comparison.order import order
from rtproof.analysis.comparison.shift import shift
from rtproof.analysis.comparison.turns import turns
from rtproof.analysis.comparison.wording import sentences
from rtproof.errors import UserError

NAMES = ("A", "B")


def compare(
    a: Sequence[RunFigures],
    b: Sequence[RunFigures],
    names: tuple[str, str] = NAMES,
    although: Collection[str] = (),
    levels: Sequence[int] = (),
) -> Comparison:
    """Side a against side b, the baseline.

    although: facts of MUST_AGREE in which the sides differ on purpose. levels: values, fixed beforehand, whose excess
    is a metric in place of the usual ones. UserError, one sentence, where the two may not be compared.
    """
    sides = (_able(a, names[0]), _able(b, names[1]))
    _no_run_twice((*a, *b))
    refused = refusal(*sides, names, although)
    if refused:
        raise UserError(refused)
    reference, no_level = reference_levels(*sides, levels)
    asked, impossible = metrics(*sides, reference)
    taken = turns(*sides)
    found = in_turns(effects(asked), taken.interleaved) if asked else ()
    made = Comparison(
        a=_side(names[0], sides[0]),
        b=_side(names[1], sides[1]),
        unit=sides[0][0].unit,
        finding=overall(found, taken.interleaved),
        sentences=(),
        effects=found,
        impossible=(*impossible, *no_level),
        levels=reference,
        shift=shift(*sides),
        order=order(*sides),
        differences=differences(*sides, although),
        left_out=(*_left_out(a, names[0]), *_left_out(b, names[1])),
        turns=taken,
    )
    made = without_chance(made) if deterministic(made) else made
    return replace(made, sentences=sentences(made))


def _able(runs: Sequence[RunFigures], name: str) -> tuple[RunFigures, ...]:
    """The runs that measured what was asked."""
    if not runs:
        raise UserError(f"there is no run of {name}: a comparison needs one on each side")
    able = tuple(run for run in runs if not run.invalid and run.n)
    if not able:
        why = runs[0].invalid[0] if runs[0].invalid else "nothing was measured"
        raise UserError(f"no run of {name} can be compared; of {runs[0].name} it says: {why}")
    return able


def _left_out(runs: Sequence[RunFigures], name: str) -> list[LeftOut]:
    return [
        LeftOut(name, run.name, "; ".join(run.invalid) or "nothing was measured")
        for run in runs
        if run.invalid or not run.n
    ]


def _no_run_twice(runs: Sequence[RunFigures]) -> None:
    """The same run again is no further evidence."""
    twice = [run_id for run_id, n in Counter(run.run_id for run in runs if run.run_id).items() if n > 1]
    if twice:
        same = " and ".join(run.name for run in runs if run.run_id == twice[0])
        raise UserError(f"{same} are one and the same run: each run counts once, on one side")


def _side(name: str, runs: tuple[RunFigures, ...]) -> Side:
    return Side(name, runs, pooled(runs), sum(run.overflow for run in runs), variations(runs))
