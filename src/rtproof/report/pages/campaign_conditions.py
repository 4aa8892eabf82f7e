# SPDX-License-Identifier: Apache-2.0
"""Blocks that say how the cells of a campaign were measured, which are missing, and what differs from the article."""

from collections.abc import Iterator, Sequence

from rtproof.articles import Article, ArticleRow
from rtproof.core.phrases import duration, quantity
from rtproof.lab.kernel_comparison import turns_sentence
from rtproof.profiles import CellPlan, OptionChange, Profile, Way, agent_arguments
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.pages.campaign_outcomes import CellOutcome, outcomes_by_name, some_of
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, article_rows, measured_length, outcomes_by_cell
from rtproof.report.sections import tracing
from rtproof.summary.loops import IGNORE
from rtproof.summary.recorded_facts import online_processors, turns_of_processors

VIRTUAL_TIME_NOTE = (
    "Virtual time: one nanosecond per guest instruction, so the figures of these systems count instructions; they are "
    "not a board's microseconds, and still less the article's. Only who is late and who is not can be told from them."
)

BESIDE_LINUX = (
    "IN-BAND: beside a co-kernel Linux's own threads were measured; the co-kernel's tasks are not delayed by Linux and "
    "were not measured."
)


def virtual_time_block(outcomes: Sequence[CellOutcome]) -> list[Block]:
    """Return the note that the figures count instructions; empty where no cell ran in virtual time."""
    systems = dict.fromkeys(each.system for each in outcomes if each.virtual)
    told = (f"{VIRTUAL_TIME_NOTE} ({', '.join(systems)}.)", *_turns_sentences(outcomes))
    return [Text(told, "doubt", "VIRTUAL TIME")] if systems else []


def _turns_sentences(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Yield what the figures of guests with several processors are."""
    records = [each.analysis.record for each in outcomes if each.analysis and each.virtual]
    turns = [(online_processors(record), turns_of_processors(record)) for record in records]
    for count, turn_us, soakers in dict.fromkeys((count, each.turn_us, each.soakers_count) for count, each in turns):
        if count > 1 and turn_us:
            yield turns_sentence(count, turn_us, soakers=soakers == count)


def in_band_block(outcomes: Sequence[CellOutcome]) -> list[Block]:
    """Return what a co-kernel beside Linux means for the figures; empty where no cell has one."""
    cores = dict.fromkeys((each.core, each.system) for each in outcomes if each.core)
    return [Text(tuple(f"{system}: {core}." for core, system in cores), "doubt", BESIDE_LINUX)] if cores else []


def cell_fault_blocks(outcomes: Sequence[CellOutcome]) -> list[Section]:
    """Return the cells without a result, the cells that did not measure what was asked, and those with lost data."""
    cells = outcomes_by_name(outcomes)
    failed = tuple(f"{name}: {each.failure}" for name, each in cells if each.failure)
    invalid = tuple(f"{name}: {what}" for name, each in cells for what in each.invalid)
    lost = tuple(f"{name}: {what}" for name, each in cells for what in each.losses)
    blocks = [Text(words, kind) for words, kind in ((failed, "bad"), (invalid, "doubt"), (lost, "doubt")) if words]
    return [Section("faults", "Cells that failed, are INVALID or not whole", tuple(blocks))] if blocks else []


def observer_section(outcomes: Sequence[CellOutcome]) -> Section:
    """Return what tracing adds in each cell that measured it."""
    found = [
        (name, tracing.observer_section(each.analysis)) for name, each in outcomes_by_name(outcomes) if each.analysis
    ]
    told = [block for name, blocks in found if blocks for block in (Text((), headline=name), *blocks)]
    return Section("observer", "Observer effect: what tracing itself changes", tuple(told))


def conditions_section(
    profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None, command: str, *, short: bool
) -> Section:
    blocks: list[Block] = [Text((command,), "code")] if command else []
    passed = tuple(_ways_passed_over(outcomes))
    blocks += [Text(passed, headline="Why it was not measured the first way")] if passed else []
    if not short:
        blocks += [Text(profile.differs, headline="Never as in the article")] if profile.differs else []
        blocks.append(_conditions_table(profile, outcomes, article))
        kept = tuple(name for each in outcomes for name in each.kept)
        blocks += [Text((f"Files as the article kept them: {', '.join(kept)}.",))] if kept else []
    return Section("conditions", "What was run", tuple(blocks))


def _conditions_table(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> Table:
    ways = {cell.key: several[0].way for cell, several in outcomes_by_cell(outcomes)}
    rows = [
        row
        for cell in profile.cells
        for row in _conditions_row(cell, ways.get(cell.key), [*article_rows(cell, article)])
    ]
    header = ("cell", "where", "options of rtproof run, or the article's command", "length")
    return Table("What each cell ran, and how long", header, tuple(rows), (3,))


def _conditions_row(cell: CellPlan, way: Way | None, published: Sequence[ArticleRow]) -> Iterator[tuple[str, ...]]:
    yield (cell.label, "here", " ".join(agent_arguments(cell, way)), duration(cell.length_ns))
    lines = [
        ("", f"{ARTICLE_PREFIX}{row.label}", row.command, measured_length(row)) for row in published if row.command
    ]
    yield from lines or [("", "article", "", duration(cell.article_ns))]


def _ways_passed_over(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Yield why the first way could not be taken. Cells with the same reason share a sentence."""
    told: dict[str, list[CellOutcome]] = {}
    for each in outcomes:
        if each.passed and each.way:
            told.setdefault("; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed), []).append(each)
    yield from (f"{some_of(some, outcomes)}: {reasons}." for reasons, some in told.items())


# The next functions write what a reader has to know before the table: what is missing from it, and how the measurement
# differs from the article's. Each takes a line or two; the sections below the table have all of it.


MISSING_TITLE = "Missing from the table"
CHANGED_TITLE = "Not as in the article, this time"


def missing_block(outcomes: Sequence[CellOutcome]) -> list[Block]:
    """Return the cells without a result, the cells that are INVALID, and the cells with lost data."""
    told = tuple(_missing_sentences(outcomes))
    failed = any(each.failure for each in outcomes)
    return [Text(told, "bad" if failed else "doubt", MISSING_TITLE)] if told else []


def difference_block(profile: Profile, outcomes: Sequence[CellOutcome]) -> list[Block]:
    """Return how the measurement differs from the article's."""
    in_guest = (profile.guest.says,) if profile.guest.says and any(each.virtual for each in outcomes) else ()
    others = (*_uncounted_sentences(outcomes), *map(_change_sentence, profile.changes), *in_guest)
    told = (*_way_sentences(outcomes), *_length_sentences(profile.cells), *others)
    return [Text(told, "doubt", CHANGED_TITLE)] if told else []


def _missing_sentences(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Yield one line for each kind of gap, with the first cell of that kind."""
    kinds = (
        ("failed", [(each, each.failure) for each in outcomes if each.failure]),
        ("INVALID", [(each, each.invalid[0]) for each in outcomes if each.invalid]),
        ("not whole", [(each, each.losses[0]) for each in outcomes if each.losses]),
    )
    for kind, found in kinds:
        if found:
            (first, why), others = found[0], len(found) - 1
            more = f" (and {others} more)" if others else ""
            yield f"{len(found)} of {quantity(len(outcomes), 'cell')} {kind}: {some_of([first], outcomes)}: {why}{more}"


def _way_sentences(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Yield what the chosen way lacks, where the first way could not be taken."""
    told: dict[str, list[CellOutcome]] = {}
    for each in outcomes:
        if each.passed and each.way:
            told.setdefault(f"measured by way of {each.way.name}. {each.way.says}".strip(), []).append(each)
    for story, some in told.items():
        yield f"{some_of(some, outcomes)}: {story}"


def _length_sentences(cells: Sequence[CellPlan]) -> list[str]:
    told: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell.length_ns != cell.article_ns:
            how = "Shortened" if cell.length_ns < cell.article_ns else "Longer"
            told.setdefault((how, duration(cell.length_ns)), []).append(duration(cell.article_ns))
    return [f"{how}: {here} instead of {', '.join(dict.fromkeys(lengths))}." for (how, here), lengths in told.items()]


def _uncounted_sentences(outcomes: Sequence[CellOutcome]) -> list[str]:
    """Return a sentence on short runs: fewer cycles are left out at their start."""
    found = [each.analysis.cycles for each in outcomes if each.analysis and each.analysis.cycles]
    few = {each.ignored // max(each.loops, 1) for each in found} - {IGNORE}
    ends = " to ".join(f"{n:,}" for n in sorted({min(few), max(few)})) if few else ""
    return [f"Not counted are the first {ends} cycles instead of {IGNORE:,}."] if few else []


def _change_sentence(change: OptionChange) -> str:
    if change.chosen:
        return f"Only {change.option} {change.now}, of {', '.join(change.before)}."
    if not change.before:
        return f"Set: {change.option} {change.now or 'to nothing'}, for which the profile has no value of its own."
    return f"Changed against the profile: {change.option} is {change.now} instead of {' or '.join(change.before)}."
