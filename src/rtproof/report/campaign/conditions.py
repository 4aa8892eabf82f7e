# SPDX-License-Identifier: Apache-2.0
"""What was run, and how that is never what the article did."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.phrases import duration, value
from rtproof.profiles import Claim, Profile, agent_arguments
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.campaign.first import name
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
    """Cells without a result, cells whose figures are of something else, and those of which something is gone."""
    failed = tuple(f"{name(each)}: {each.failure}" for each in outcomes if each.failure)
    invalid = tuple(f"{name(each)}: {what}" for each in outcomes for what in each.invalid)
    lost = tuple(f"{name(each)}: {what}" for each in outcomes for what in each.losses)
    blocks = [Text(words, kind) for words, kind in ((failed, "bad"), (invalid, "doubt"), (lost, "doubt")) if words]
    return [Section("faults", "Cells that failed, are INVALID or not whole", tuple(blocks))] if blocks else []


def section(profile: Profile, outcomes: Sequence[Outcome], command: str, *, short: bool) -> Section:
    blocks: list[Block] = [Text((command,), "code")] if command else []
    passed = tuple(_passed(outcomes))
    blocks += [Text(passed, headline="Why it was not measured the first way")] if passed else []
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


def _passed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Why the first way could not be had; cells with the same story share a sentence."""
    told: dict[str, list[str]] = {}
    for each in outcomes:
        if each.passed and each.way:
            reasons = "; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed)
            told.setdefault(reasons, []).append(name(each))
    yield from (f"{'; '.join(names)}: {reasons}." for reasons, names in told.items())
