# SPDX-License-Identifier: Apache-2.0
"""The result of a tuning: what each knob does, which ones to keep, and what could not be found."""

import math
from collections.abc import Mapping, Sequence

from rtproof.core.phrases import quantity
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.tune.effects import Effect
from rtproof.tune.knobs import KnobOnTarget
from rtproof.tune.tuning import ALPHA, KnobResult, Tuning

NONE = "-"


def tuning_sections(found: Tuning, knobs: Sequence[KnobOnTarget], files: Sequence[str] = ()) -> list[Section]:
    """The sections. knobs: all that were asked for. files: names of those that make the set permanent."""
    by_name = {each.knob.name: each for each in knobs}
    blocks: list[Block] = [Text(tuple(_answer(found, by_name, files)), kind="good" if found.kept else "normal")]
    tried = [each for each in found.knobs if each.confirmed]
    others = sorted((each for each in found.knobs if not each.confirmed), key=lambda each: _of(each, found).ln)
    if tried:
        blocks.append(_table("Tried alone and together, against the untouched system", tried, found, by_name))
    if others:
        blocks.append(_table("Screened: on in half of the runs", others, found, by_name))
    sections = [
        Section("tuning", "Tuning", tuple(blocks)),
        Section("tuning-shows", "What it can show", (Text(_shows(found)),)),
    ]
    missing = [each for each in knobs if each.missing]
    left_out = found.plan.left_out
    if missing or left_out:
        rows = [(each.knob.name, each.missing) for each in missing] + [
            (name, "no time in this budget") for name in left_out
        ]
        table = Table("Knobs that were not tried", ("knob", "why"), tuple(rows), folded=True)
        sections.append(Section("tuning-not-tried", "Not tried", (table,)))
    return sections


def _answer(found: Tuning, by_name: Mapping[str, KnobOnTarget], files: Sequence[str]) -> list[str]:
    if found.kept:
        effect = found.together[found.metric]
        said = [
            f"Keep {', '.join(found.kept)}: together {_change(effect, ALPHA)} in the {found.metric}.",
            *(f"Cost of {name}: {by_name[name].knob.cost}" for name in found.kept),
        ]
        if files:
            said.append(f"{', '.join(files)} make the set permanent. rtproof changed nothing for good.")
        return said
    if found.unfinished and found.kept is None and not found.blocks:
        return [f"No answer: {found.unfinished}."]
    if not found.blocks:
        return [f"No knob seems to lower the {found.metric}, so none was tried alone."]
    return [f"Keep nothing: no knob, and no set of knobs, measurably lowers the {found.metric}."]


def _shows(found: Tuning) -> tuple[str, ...]:
    said = [f"{quantity(found.runs, 'run')} measured, {found.lost} of them not to be judged."]
    ratios = found.detectable_ratios()
    if ratios and found.deviation is not None:
        said.append(
            f"Runs of the untouched system differ by a factor of {math.exp(found.deviation):.2f} (standard deviation "
            "of the logarithm). A tuning of this length finds, in 4 of 5 cases, a knob that lowers the "
            f"{found.metric} by {100 * (1 - 1 / ratios[1]):.0f} % or more. A smaller effect may be there."
        )
    if found.unfinished and found.runs:
        said.append(f"It ended before its plan: {found.unfinished}.")
    said.append(
        "A run is the unit. Chance draws the order of the runs. All choices of knobs to keep together are wrong in at "
        f"most {100 * ALPHA:.0f} % of tunings. A longer run can exceed every maximum here."
    )
    return tuple(said)


def _of(knob: KnobResult, found: Tuning) -> Effect:
    return knob.effects[found.metric]


def _table(caption: str, knobs: Sequence[KnobResult], found: Tuning, by_name: Mapping[str, KnobOnTarget]) -> Table:
    metrics = list(dict.fromkeys(name for knob in knobs for name in knob.effects))
    header = ("knob", *metrics, "cost", "keep")
    rows = tuple(
        (
            knob.name,
            *(_change(knob.effects[name], knob.alpha) if name in knob.effects else NONE for name in metrics),
            by_name[knob.name].knob.cost,
            _keep(knob, found),
        )
        for knob in knobs
    )
    return Table(caption, header, rows)


def _keep(knob: KnobResult, found: Tuning) -> str:
    effect = _of(knob, found)
    low, high = effect.interval(knob.alpha)
    if knob.kept:
        return "keep"
    if low > 0:
        return "hurts"
    return "not shown" if high > 0 else "not needed"


def _change(effect: Effect, alpha: float) -> str:
    """As "-12 % (-20 to -3)"."""
    low, high = effect.interval(alpha)
    return f"{_percent(effect.ln)} % ({_percent(low)} to {_percent(high)})"


def _percent(ln: float) -> str:
    return f"{100 * math.expm1(ln):+.0f}" if ln < 3 else f"x{math.exp(min(ln, 50)):.0f}"
