# SPDX-License-Identifier: Apache-2.0
"""What a reader has to know before the table: what is missing from it, and how it was not measured as in the article.

In a line or two each; the sections below have all of it.
"""

from collections.abc import Iterator, Sequence

from rtproof.analysis.cycles import IGNORE
from rtproof.analysis.phrases import duration, quantity
from rtproof.profiles import CellPlan, Change, Profile
from rtproof.report.blocks import Block, Text
from rtproof.report.campaign.naming import some_of
from rtproof.report.campaign.outcome import Outcome

MISSING = "Missing from the table"
CHANGED = "Not as in the article, this time"


def missing(outcomes: Sequence[Outcome]) -> list[Block]:
    """Cells without a result, cells that are INVALID, and those of which something is gone."""
    told = tuple(_missing(outcomes))
    failed = any(each.failure for each in outcomes)
    return [Text(told, "bad" if failed else "doubt", MISSING)] if told else []


def different(profile: Profile, outcomes: Sequence[Outcome]) -> list[Block]:
    """How it was not measured as in the article."""
    in_guest = (profile.guest.says,) if profile.guest.says and any(each.virtual for each in outcomes) else ()
    others = (*_uncounted(outcomes), *map(_change, profile.changes), *in_guest)
    told = (*_ways(outcomes), *_lengths(profile.cells), *others)
    return [Text(told, "doubt", CHANGED)] if told else []


def _missing(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """One line for each kind, with the first of each."""
    kinds = (
        ("failed", [(each, each.failure) for each in outcomes if each.failure]),
        ("INVALID", [(each, each.invalid[0]) for each in outcomes if each.invalid]),
        ("not whole", [(each, each.losses[0]) for each in outcomes if each.losses]),
    )
    for kind, found in kinds:
        if found:
            (first, why), others = found[0], len(found) - 1
            more = f" (and {others} more, below)" if others else ""
            yield f"{len(found)} of {quantity(len(outcomes), 'cell')} {kind}: {some_of([first], outcomes)}: {why}{more}"


def _ways(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What the way that was taken lacks, where the first could not be had."""
    told: dict[str, list[Outcome]] = {}
    for each in outcomes:
        if each.passed and each.way:
            told.setdefault(f"measured by way of {each.way.name}. {each.way.says}".strip(), []).append(each)
    for story, some in told.items():
        yield f"{some_of(some, outcomes)}: {story}"


def _lengths(cells: Sequence[CellPlan]) -> list[str]:
    """One sentence for all cells with the same length now."""
    told: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell.length_ns != cell.article_ns:
            how = "Shortened" if cell.length_ns < cell.article_ns else "Longer"
            told.setdefault((how, duration(cell.length_ns)), []).append(duration(cell.article_ns))
    return [f"{how}: {here} instead of {', '.join(dict.fromkeys(lengths))}." for (how, here), lengths in told.items()]


def _uncounted(outcomes: Sequence[Outcome]) -> list[str]:
    """Of a short run fewer cycles are left out at the start."""
    found = [each.analysis.cycles for each in outcomes if each.analysis and each.analysis.cycles]
    few = {each.ignored // max(each.loops, 1) for each in found} - {IGNORE}
    ends = " to ".join(f"{n:,}" for n in sorted({min(few), max(few)})) if few else ""
    return [f"Not counted are the first {ends} cycles instead of {IGNORE:,}."] if few else []


def _change(change: Change) -> str:
    if change.chosen:
        return f"Only {change.option} {change.now}, of {', '.join(change.before)}."
    return f"Changed: {change.option} {change.now} instead of {' or '.join(change.before)}."
