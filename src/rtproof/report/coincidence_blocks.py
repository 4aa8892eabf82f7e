# SPDX-License-Identifier: Apache-2.0
"""What coincides with late activations where there is no trace: never a budget, and called what it is."""

from rtproof.core.phrases import capitalised, limit_value, quantity, value
from rtproof.explain.coincidence import COINCIDENCE_LEVEL, COINCIDENCE_METHOD, Coincidences
from rtproof.report.blocks import Block, Table, Text

MOST_MOVED = 12
SHORT_MOVED = 2


def coincidence_blocks(found: Coincidences, why_no_trace: str) -> list[Block]:
    """The sentences and the table of what coincides. why_no_trace: the agent's reason, or ""."""
    reason = f": {why_no_trace}" if why_no_trace else ""
    share, late_ns = found.waited_share, sum(each.late_ns for each in found.waited)
    # Waiting is known for whole seconds only, so this is a bound.
    waited = (
        f"The threads waited for a CPU for at most {100 * (share or 0):.1f} % of the late time of {value(late_ns)}."
    )
    first = (
        f"{capitalised(_which(found))}. Their cause is unknown without a trace of the kernel's events{reason}. "
        "What coincided with them may be a cause or not."
    )
    blocks: list[Block] = [Text((first,) if share is None else (first, waited))]
    if not found.moved:
        return [*blocks, Text((f"{capitalised(_nothing(found))}.",))]
    shown = found.moved[:MOST_MOVED]
    more = len(found.moved) - len(shown)
    left = f" {quantity(more, 'more count')} coincided too." if more else ""
    header = ("what rose", "unit", "in a late second", "in an ordinary one", "by chance")
    caption = f"What rose more in {quantity(found.late_seconds, 'late second')} than in the others (medians)"
    rows = tuple(
        (each.words, each.unit, f"{each.late:,.1f}", f"{each.ordinary:,.1f}", _chance(each.chance)) for each in shown
    )
    how = (
        f"By chance: the probability (p) that a count rises as much in seconds that were not late, corrected for all "
        f"{quantity(found.looked_at, 'count')}. Rows above {100 * COINCIDENCE_LEVEL:.0f} % are left out. "
        f"Method: {COINCIDENCE_METHOD}."
    )
    return [*blocks, Table(caption, header, rows, (2, 3, 4)), Text((f"{how}{left}",))]


def coincidence_in_short(found: Coincidences) -> str:
    """One sentence for the screen."""
    if not found.late:
        return f"no activation was above {value(found.limit_ns or 0)}"
    told = "; ".join(f"{each.words} ({_chance(each.chance)} by chance)" for each in found.moved[:SHORT_MOVED])
    more = len(found.moved) - SHORT_MOVED
    others = f"; and {more} more" if more > 0 else ""
    what = f"coincided: {told}{others}" if found.moved else _nothing(found)
    share = found.waited_share
    waited = "" if share is None else f"; at most {100 * share:.0f} % of the late time was waiting for a CPU"
    return f"cause unknown without a trace; {what}{waited}"


def _which(found: Coincidences) -> str:
    late = quantity(found.late, "activation")
    which = f"{late} above {limit_value(found.limit_ns)}" if found.limit_ns else f"the {found.late:,} largest latencies"
    return f"{which}, in {found.late_seconds:,} of {quantity(found.seconds, 'second')}"


def _nothing(found: Coincidences) -> str:
    if found.too_few:
        return f"no coincidence can be told from chance: {found.too_few}"
    return f"nothing coincided, of {quantity(found.looked_at, 'count')} that changed"


def _chance(chance: float) -> str:
    return f"{100 * chance:.2g} %"
