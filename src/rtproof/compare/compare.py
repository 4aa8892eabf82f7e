# SPDX-License-Identifier: Apache-2.0
"""Compare two sides of runs, and return everything that can be said about them."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from rtproof.audit.setup_changes import lacking_sentence, setup_changes
from rtproof.compare.comparison_model import (
    WHY,
    Comparison,
    ComparisonFinding,
    ComparisonSide,
    LeftOutRun,
    SideOrder,
    deterministic_comparison,
)
from rtproof.compare.comparison_sentences import comparison_sentences
from rtproof.compare.distributions import side_order
from rtproof.compare.effects import (
    compared_metrics,
    effects_in_turns,
    lacks_scatter,
    metric_effects,
    overall_finding,
    pooled_counts,
    reference_levels,
)
from rtproof.compare.likeness import (
    SIDE_NAMES,
    SeenRuns,
    comparison_refusal,
    fact_differences,
    fact_variations,
    run_turns,
)
from rtproof.compare.run_metrics import RunFigures
from rtproof.compare.run_rhythm import with_rhythm
from rtproof.core.errors import UserError


def without_chance(said: Comparison) -> Comparison:
    """Return the comparison with its figures and ratios only. It has no interval and no p, and calls no side better."""
    effects = [
        replace(one, low=None, high=None, p=None, p_holm=None, detectable=None, finding=ComparisonFinding.NOT_JUDGED)
        for one in said.effects
    ]
    return replace(
        said, finding=ComparisonFinding.NOT_JUDGED, effects=tuple(effects), order=SideOrder(None, None, (), WHY)
    )


def compare_sides(
    a: Sequence[RunFigures],
    b: Sequence[RunFigures],
    names: tuple[str, str] = SIDE_NAMES,
    although: Collection[str] = (),
    levels: Sequence[int] = (),
) -> Comparison:
    """Return the comparison of side a with side b, the baseline.

    although: facts of MUST_AGREE in which the sides differ on purpose. levels: values, fixed before the measurement;
    the share of values above each is a metric, in place of the usual levels.
    Raises UserError, with one sentence, where the two sides may not be compared.
    """
    ids = Counter(run.run_id for run in (*a, *b) if run.run_id)
    if twice := next((run_id for run_id, n in ids.items() if n > 1), ""):
        same = " and ".join(run.name for run in (*a, *b) if run.run_id == twice)
        raise UserError(f"{same} are one and the same run: each run counts once, on one side")
    for every in (False, True):  # copies of wide runs alone would leave a side its narrow ones
        seen = SeenRuns(every=every)
        able_a, out_of_a = _sorted_out(a, names[0], seen)
        able_b, out_of_b = _sorted_out(b, names[1], seen)
        if not any(one.is_copy for one in (*out_of_a, *out_of_b)):
            break
    sides = able_a, able_b
    refused = comparison_refusal(*sides, names, although)
    if refused:
        raise UserError(refused)
    reference, no_level = reference_levels(*sides, levels)
    asked, impossible = compared_metrics(*sides, reference)
    setups = [run.setup for run in sides[0]], [run.setup for run in sides[1]]
    found = metric_effects(asked) if asked else ()
    taken = with_rhythm(run_turns(*sides, names), sides, asked, found)
    withheld = ComparisonFinding.NOT_JUDGED if lacks_scatter(found) else taken.withheld
    found = effects_in_turns(found, withheld)
    made = Comparison(
        a=_side(names[0], sides[0]),
        b=_side(names[1], sides[1]),
        unit=sides[0][0].unit,
        finding=overall_finding(found, withheld),
        sentences=(),
        effects=found,
        impossible=(*impossible, *no_level),
        levels=reference,
        order=side_order(*sides),
        differences=fact_differences(*sides, although),
        left_out=(*out_of_a, *out_of_b),
        turns=taken,
        setup=setup_changes(*setups),
        setup_unknown=lacking_sentence(*setups, names),
    )
    made = without_chance(made) if deterministic_comparison(made) else made
    return replace(made, sentences=comparison_sentences(made))


def _sorted_out(
    runs: Sequence[RunFigures], name: str, seen: SeenRuns
) -> tuple[tuple[RunFigures, ...], list[LeftOutRun]]:
    """Return the runs that measured what was asked, without copies, and the others; UserError if no run did."""
    if not runs:
        raise UserError(f"there is no run of {name}: a comparison needs one on each side")
    able, left_out = [], []
    for run in runs:
        if run.invalid or not run.n:
            left_out.append(LeftOutRun(run.name, "; ".join(run.invalid) or "nothing was measured", name))
        elif not (copy := seen.copied_by(run)):
            able.append(run)
        else:
            left_out.append(LeftOutRun(run.name, copy, name, is_copy=True))
    if not able:
        raise UserError(f"no run of {name} can be compared; of {left_out[0].run} it says: {left_out[0].why}")
    return tuple(able), left_out


def _side(name: str, runs: tuple[RunFigures, ...]) -> ComparisonSide:
    return ComparisonSide(name, runs, pooled_counts(runs), sum(run.overflow for run in runs), fact_variations(runs))
