# SPDX-License-Identifier: Apache-2.0
"""What was run, by which command and with which options, and what never is as in the article."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.phrases import duration
from rtproof.articles import Article, Row
from rtproof.profiles import CellPlan, Profile, Way, agent_arguments
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.campaign.metrics import length
from rtproof.report.campaign.naming import named, some_of
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import PUBLISHED, article_rows, by_cell

VIRTUAL = (
    "Virtual time: one nanosecond per guest instruction, so the figures of these systems count instructions; they are "
    "not a board's microseconds, and still less the article's. Only who is late and who is not can be told from them."
)

BESIDE_LINUX = (
    "IN-BAND: beside a co-kernel Linux's own threads were measured; the co-kernel's tasks are not delayed by Linux and "
    "were not measured."
)


def virtual_time(outcomes: Sequence[Outcome]) -> list[Block]:
    """The label of figures that count instructions; none where no cell is of that kind."""
    systems = dict.fromkeys(each.system for each in outcomes if each.virtual)
    return [Text((f"{VIRTUAL} ({', '.join(systems)}.)",), "doubt", "VIRTUAL TIME")] if systems else []


def in_band(outcomes: Sequence[Outcome]) -> list[Block]:
    """What a co-kernel beside Linux means for the figures; nothing where no cell has one."""
    cores = dict.fromkeys((each.core, each.system) for each in outcomes if each.core)
    return [Text(tuple(f"{system}: {core}." for core, system in cores), "doubt", BESIDE_LINUX)] if cores else []


def faults(outcomes: Sequence[Outcome]) -> list[Section]:
    """Cells without a result, cells whose figures are of something else, and those of which something is gone."""
    cells = named(outcomes)
    failed = tuple(f"{name}: {each.failure}" for name, each in cells if each.failure)
    invalid = tuple(f"{name}: {what}" for name, each in cells for what in each.invalid)
    lost = tuple(f"{name}: {what}" for name, each in cells for what in each.losses)
    blocks = [Text(words, kind) for words, kind in ((failed, "bad"), (invalid, "doubt"), (lost, "doubt")) if words]
    return [Section("faults", "Cells that failed, are INVALID or not whole", tuple(blocks))] if blocks else []


def section(
    profile: Profile, outcomes: Sequence[Outcome], article: Article | None, command: str, *, short: bool
) -> Section:
    blocks: list[Block] = [Text((command,), "code")] if command else []
    passed = tuple(_passed(outcomes))
    blocks += [Text(passed, headline="Why it was not measured the first way")] if passed else []
    if not short:
        blocks += [Text(profile.differs, headline="Never as in the article")] if profile.differs else []
        blocks.append(_table(profile, outcomes, article))
        kept = tuple(name for each in outcomes for name in each.kept)
        blocks += [Text((f"Files as the article kept them: {', '.join(kept)}.",))] if kept else []
    return Section("conditions", "What was run", tuple(blocks))


def _table(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> Table:
    ways = {cell.key: several[0].way for cell, several in by_cell(outcomes)}
    rows = [row for cell in profile.cells for row in _ran(cell, ways.get(cell.key), [*article_rows(cell, article)])]
    header = ("cell", "where", "options of rtproof run, or the article's command", "length")
    return Table("What each cell ran, and how long", header, tuple(rows), (3,))


def _ran(cell: CellPlan, way: Way | None, published: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    yield (cell.label, "here", " ".join(agent_arguments(cell, way)), duration(cell.length_ns))
    lines = [("", f"{PUBLISHED}{row.label}", row.command, length(row)) for row in published if row.command]
    yield from lines or [("", "article", "", duration(cell.article_ns))]


def _passed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Why the first way could not be had; cells with the same story share a sentence."""
    told: dict[str, list[Outcome]] = {}
    for each in outcomes:
        if each.passed and each.way:
            told.setdefault("; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed), []).append(each)
    yield from (f"{some_of(some, outcomes)}: {reasons}." for reasons, some in told.items())
