# SPDX-License-Identifier: Apache-2.0
"""What was run, and how that is not what the article did."""

from collections.abc import Sequence

from rtproof.analysis.cycles import IGNORE
from rtproof.analysis.phrases import duration, value
from rtproof.profiles import CellPlan, Change, Claim, Profile, agent_arguments
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import by_cell

VIRTUAL = (
    "Virtual time: one nanosecond per guest instruction, so the figures of these systems count instructions; they are "
    "not a board's microseconds, and still less the article's. Only who is late and who is not can be told from them."
)


def virtual_time(outcomes: Sequence[Outcome]) -> list[Block]:
    """The label of figures that count instructions; none where no cell is of that kind."""
    systems = dict.fromkeys(each.system for each in outcomes if each.virtual)
    return [Text((f"{VIRTUAL} ({', '.join(systems)}.)",), "doubt", "VIRTUAL TIME")] if systems else []


def faults(outcomes: Sequence[Outcome]) -> list[Section]:
    """Cells without a result, cells whose figures are of something else, and those of which values are gone."""
    failed = tuple(f"{_name(each)}: {each.failure}" for each in outcomes if each.failure)
    invalid = tuple(f"{_name(each)}: {what}" for each in outcomes for what in each.invalid)
    lost = tuple(f"{_name(each)}: {what}" for each in outcomes for what in each.losses)
    blocks = [Text(words, kind) for words, kind in ((failed, "bad"), (invalid, "doubt"), (lost, "doubt")) if words]
    return [Section("faults", "Cells that failed, are INVALID or lost values", tuple(blocks))] if blocks else []


def section(profile: Profile, outcomes: Sequence[Outcome], command: str, *, short: bool) -> Section:
    blocks: list[Block] = [Text((command,), "code")] if command else []
    changed = (*_lengths(profile.cells), *_uncounted(outcomes), *map(_change, profile.changes), *_ways(outcomes))
    blocks += [Text(changed, "doubt", "Not as in the article, this time")] if changed else []
    if not short:
        blocks += [Text(profile.differs, headline="Never as in the article")] if profile.differs else []
        blocks.append(_table(profile, outcomes))
        kept = tuple(name for each in outcomes for name in each.kept)
        blocks += [Text((f"Files as the article kept them: {', '.join(kept)}.",))] if kept else []
    return Section("conditions", "What was run", tuple(blocks))


def _table(profile: Profile, outcomes: Sequence[Outcome]) -> Table:
    ways = {cell.key: several[0].way for cell, several in by_cell(outcomes)}
    rows = tuple(
        (
            cell.label,
            " ".join(agent_arguments(cell, ways.get(cell.key))),
            duration(cell.length_ns),
            duration(cell.article_ns),
        )
        for cell in profile.cells
    )
    caption = f"Options of each cell, and how long it measured{_asked(profile.claims)}"
    return Table(caption, ("cell", "options of rtproof run", "here", "article"), rows, (2, 3))


def _asked(claims: Sequence[Claim]) -> str:
    told = (f"{value(each.limit_ns)} exceeded at most once per {duration(each.at_most_ns)}" for each in claims)
    return f"; asked: {', '.join(told)}" if claims else ""


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
    few = sorted({each.ignored // max(each.loops, 1) for each in found} - {IGNORE})
    return [f"Not counted are the first {n:,} cycles instead of {IGNORE:,}." for n in few]


def _listed(labels: list[str]) -> str:
    return "; ".join(labels)


def _change(change: Change) -> str:
    if change.chosen:
        return f"Only {change.option} {change.now}, of {', '.join(change.before)}."
    return f"Changed: {change.option} {change.now} instead of {' or '.join(change.before)}."


def _ways(outcomes: Sequence[Outcome]) -> list[str]:
    """Which way was taken where the first could not be had, and why; cells with the same story share a sentence."""
    told: dict[str, list[str]] = {}
    for each in outcomes:
        if each.passed and each.way:
            reasons = "; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed)
            told.setdefault(f"Measured by way of {each.way.name} ({reasons}). {each.way.says}".strip(), []).append(
                _name(each)
            )
    return [f"{_listed(names)}: {story}" for story, names in told.items()]


def _name(outcome: Outcome) -> str:
    return f"{outcome.cell.label}, {outcome.system}"
