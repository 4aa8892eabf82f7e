# SPDX-License-Identifier: Apache-2.0
"""What coincides with late activations where there is no trace: never a budget, and called what it is."""

from rtproof.core.phrases import capitalised, quantity, value
from rtproof.explain.coincidence import COINCIDENCE_LEVEL, COINCIDENCE_METHOD, Coincidences, MovedCount
from rtproof.report.blocks import Block, Table, Text

MOST_MOVED = 12
SHORT_MOVED = 2


def coincidence_blocks(found: Coincidences, why_no_trace: str) -> list[Block]:
    """The sentences and the table of what coincides. why_no_trace: the agent's reason, or ""."""
    reason = f": {why_no_trace}" if why_no_trace else ""
    first = (
        f"{capitalised(_which(found))}, and no trace of the kernel's events{reason}. "
        "Nobody can tell what delayed them; this is what coincides, which is no cause."
    )
    blocks: list[Block] = [Text((first, _waiting(found)))]
    if not found.moved:
        return [*blocks, Text((f"{capitalised(_nothing(found))}.",))]
    shown = found.moved[:MOST_MOVED]
    more = len(found.moved) - len(shown)
    left = f" {quantity(more, 'more count')} coincided too." if more else ""
    header = ("what moved", "unit", "in a late second", "in an ordinary one", "by chance")
    caption = f"What moved more in {quantity(found.late_seconds, 'late second')} than in the others"
    return [*blocks, Table(caption, header, tuple(map(_row, shown)), (2, 3, 4)), Text((f"{_how(found)}{left}",))]


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
    return f"no trace, so no causes; {what}{waited}"


def _which(found: Coincidences) -> str:
    late = quantity(found.late, "activation")
    which = f"{late} above {value(found.limit_ns)}" if found.limit_ns else f"the {late} with the largest latencies"
    return f"{which}, in {found.late_seconds:,} of {quantity(found.seconds, 'second')}"


def _nothing(found: Coincidences) -> str:
    if found.too_few:
        return f"nothing can be said to coincide: {found.too_few}"
    return f"nothing coincided of {quantity(found.looked_at, 'count')} that moved"


def _waiting(found: Coincidences) -> str:
    """For how long late threads were ready to run and had no CPU: a bound, since it is known for whole seconds only."""
    share = found.waited_share
    if share is None:
        return "How long the threads were ready and waited for a CPU is not known."
    late_ns = sum(each.late_ns for each in found.waited)
    return (
        f"Measured: for at most {100 * share:.1f} % of {value(late_ns)} of lateness the threads were ready and waited "
        "for a CPU (run_delay of the late seconds, without what is usual). "
        f"Unexplained: at least {100 * (1 - share):.1f} %."
    )


def _row(moved: MovedCount) -> tuple[str, ...]:
    return moved.words, moved.unit, f"{moved.late:,.1f}", f"{moved.ordinary:,.1f}", _chance(moved.chance)


def _chance(chance: float) -> str:
    return f"{100 * chance:.2g} %"


def _how(found: Coincidences) -> str:
    return (
        f"Medians. By chance: how often one or more of all {quantity(found.looked_at, 'count')} would move so in "
        f"seconds that have nothing to do with it; shown are those with at most {100 * COINCIDENCE_LEVEL:.0f} %. "
        f"Method: {COINCIDENCE_METHOD}."
    )
