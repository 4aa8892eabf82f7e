# SPDX-License-Identifier: Apache-2.0
"""The table of metrics: both sides, their ratio with its interval, and the smallest ratio that could have been seen."""

from collections.abc import Sequence

from rtproof.analysis.comparison.deterministic import deterministic
from rtproof.analysis.comparison.model import Comparison, Effect
from rtproof.analysis.comparison.wording import interval
from rtproof.analysis.phrases import percent, quantity, value
from rtproof.report import figures
from rtproof.report.blocks import Block, Section, Table, Text

NONE = "none"
NO_P = "not tested"
IF_ALIKE = (
    "The runs are not known to be taken by turns: interval and p hold only if nothing else changed from run to run."
)


def section(found: Comparison, *, short: bool) -> Section:
    """short: without the columns that explain the others."""
    blocks: list[Block] = []
    if found.effects:
        blocks.append(_table(found, short=short))
        blocks += _notes(found.effects)
    if found.effects and not short and not deterministic(found):
        blocks += _how_many(found.effects)
    lines = tuple(f"{one.label}: not compared, since {one.why}." for one in found.impossible)
    blocks += [Text(lines)] if lines else []
    return Section("metrics", "Metrics", tuple(blocks))


def _table(found: Comparison, *, short: bool) -> Table:
    """What was found comes first, since a narrow screen shows the first columns."""
    header = ("metric", "finding", "ratio", "95 % interval", "p (Holm)", "detectable", found.a.name, found.b.name)
    more = ("run to run", "equal up to")
    rows = tuple((*_row(one), *(() if short else _more(one))) for one in found.effects)
    return Table(_caption(found), (*header, *(() if short else more)), rows, tuple(range(2, 8 if short else 10)))


def _caption(found: Comparison) -> str:
    a, b = found.a, found.b
    methods = ", ".join(dict.fromkeys(one.method for one in found.effects))
    unturned = f" {IF_ALIKE}" if found.turns.interleaved is not True and len(a.runs) > 1 < len(b.runs) else ""
    means = f"{quantity(len(a.runs), 'run')} and {quantity(len(b.runs), 'run')}"
    if deterministic(found):
        return (
            f"{a.name}, {b.name}: geometric means over {means}. Ratio: {a.name} over {b.name}. In virtual time a ratio "
            "has no interval, and no difference is more or less than chance."
        )
    return (
        f"{a.name}, {b.name}: geometric means over {means}. "
        f"Ratio: {a.name} over {b.name}. Interval: {methods}. Detectable: the ratio that so many runs show with a "
        f"probability of 80 %; smaller ones stay unseen.{unturned}"
    )


def _row(one: Effect) -> tuple[str, ...]:
    return (
        one.label,
        one.finding.value,
        ratio(one.ratio),
        interval(one, ratio),
        NO_P if one.p_holm is None else _p(one.p_holm),
        "unknown" if one.detectable is None else f"x {ratio(one.detectable)}",
        _figure(one, one.a),
        _figure(one, one.b),
    )


def _more(one: Effect) -> tuple[str, ...]:
    return "unknown" if one.run_factor is None else f"x {ratio(one.run_factor)}", f"x {ratio(one.margin)}"


def _figure(one: Effect, size: float) -> str:
    return (
        f"{size:.3g}" if one.unit == "share" else value(round(size)) if one.unit == "ns" else f"{size:,.4g} {one.unit}"
    )


def ratio(size: float | None) -> str:
    """Two digits behind the point near 1, three digits elsewhere."""
    if size is None:
        return NONE
    return f"{size:.2f}" if 0.1 <= size < 10 else figures.number(size, 3)


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def _notes(effects: Sequence[Effect]) -> list[Block]:
    lines = tuple(dict.fromkeys(f"{one.label}: {note}" for one in effects for note in one.notes))
    return [Text(lines)] if lines else []


def _how_many(effects: Sequence[Effect]) -> list[Block]:
    """What a larger experiment would have to be."""
    ratios = list(dict.fromkeys(size for one in effects for size, _ in one.runs_for))
    if not ratios:
        return []
    rows = tuple((one.label, *(_runs(dict(one.runs_for).get(size)) for size in ratios)) for one in effects)
    header = ("metric", *(f"a ratio of {ratio(size)}" for size in ratios))
    caption = (
        f"Runs a side with which a ratio is found with a probability of {percent(0.8)}, if runs go on to differ so much"
    )
    return [Table(caption, header, rows, tuple(range(1, len(header))), folded=True)]


def _runs(runs: int | None) -> str:
    return "unknown" if runs is None else figures.count(runs)
