# SPDX-License-Identifier: Apache-2.0
"""What tracing itself adds to the latency, measured in the same run by turns."""

from rtproof.analysis.model import Analysis
from rtproof.analysis.observer import METHOD, Effect, Observer, observer
from rtproof.analysis.phrases import duration
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text


def render(analysis: Analysis) -> list[Block]:
    found = observer(analysis.record)
    if found is None:
        return []
    if found.refused:
        return [Text((f"No comparison: {found.refused}.",), "doubt")]
    return [_table(found), Text((_how(found), *_says(found)))]


def _table(found: Observer) -> Table:
    several = len(found.fields) > 1
    rows = tuple(
        (f"{field.field}, {effect.statistic}" if several else effect.statistic, *_numbers(effect))
        for field in found.fields
        for effect in field.effects
    )
    header = figures.headings(figures.US, "without", "with tracing", "tracing adds", "at least", "at most")
    return Table("Latency of a block, without tracing and with it", ("per block", *header), rows, (1, 2, 3, 4, 5))


def _numbers(effect: Effect) -> tuple[str, ...]:
    return tuple(
        figures.US.show(value)
        for value in (effect.without, effect.with_trace, effect.difference, effect.low, effect.high)
    )


def _how(found: Observer) -> str:
    return (
        f"n = {found.sets} sets of four blocks of {duration(found.block_ns)}, of whose beginning "
        f"{duration(found.left_out_ns)} are left out; activations that ran, all threads together. {METHOD}. "
        "Without and with: mean over the blocks. What tracing costs while it is switched off is in both."
    )


def _says(found: Observer) -> tuple[str, ...]:
    """In words, of the field that a limit judges."""
    judged = found.fields[-1]
    return tuple(_sentence(effect) for effect in judged.effects if effect.statistic in ("median", "maximum"))


def _sentence(effect: Effect) -> str:
    if effect.low <= 0 <= effect.high:
        most = max(-effect.low, effect.high)
        return f"The {effect.statistic} shows no effect of tracing; if there is one, it is below {figures.US(most)}."
    way = "higher" if effect.difference > 0 else "lower"
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return f"With tracing the {effect.statistic} was {way} by {figures.US(low)} to {figures.US(high)}."
