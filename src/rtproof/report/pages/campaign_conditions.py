# SPDX-License-Identifier: Apache-2.0
"""What a reader has to know of a campaign: cells that are missing, how it differs from the article, what was run."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from rtproof.core.phrases import duration, quantity
from rtproof.lab.kernel_comparison import VIRTUAL_TIME, turns_sentence
from rtproof.profiles import OptionChange, agent_arguments
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.pages.campaign_outcomes import CellOutcome, MeasuredCampaign
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, measured_length
from rtproof.report.sections import tracing
from rtproof.summary.loops import IGNORE
from rtproof.summary.recorded_facts import online_processors, turns_of_processors

BESIDE_LINUX = (
    "IN-BAND: beside a co-kernel Linux's own threads were measured; the co-kernel's tasks are not delayed by Linux and "
    "were not measured."
)
MISSING_TITLE = "Missing from the table"
CHANGED_TITLE = "Not as in the article, this time"


def warnings_before(campaign: MeasuredCampaign) -> list[Block]:
    """Return what a reader must know before the table: a co-kernel, virtual time, and cells that are missing."""
    outcomes = campaign.outcomes
    cores = dict.fromkeys(f"{each.system}: {each.core}." for each in outcomes if each.core)
    virtual = dict.fromkeys(each.system for each in outcomes if each.virtual)
    counted = (f"{VIRTUAL_TIME} ({', '.join(virtual)}.)", *_turns_sentences(outcomes))
    missing = tuple(_missing_sentences(campaign))
    told = (
        Text(tuple(cores), "doubt", BESIDE_LINUX) if cores else None,
        Text(counted, "doubt", "VIRTUAL TIME") if virtual else None,
        Text(missing, "bad" if any(each.failure for each in outcomes) else "doubt", MISSING_TITLE) if missing else None,
    )
    return [block for block in told if block]


def _turns_sentences(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    """Yield what the figures of guests with several processors are."""
    records = [each.analysis.record for each in outcomes if each.analysis and each.virtual]
    turns = [(online_processors(record), turns_of_processors(record)) for record in records]
    for count, turn_us, soakers in dict.fromkeys((count, each.turn_us, each.soakers_count) for count, each in turns):
        if count > 1 and turn_us:
            yield turns_sentence(count, turn_us, soakers=soakers == count)


FAULTS: tuple[tuple[str, str, Callable[[CellOutcome], tuple[str, ...]]], ...] = (
    ("failed", "bad", lambda each: (each.failure,) if each.failure else ()),
    ("INVALID", "doubt", lambda each: each.invalid),
    ("not whole", "doubt", lambda each: each.losses),
)
"""Kinds of gaps: their name, the kind of their text, and how an outcome tells them."""


def _missing_sentences(campaign: MeasuredCampaign) -> Iterator[str]:
    """Yield one line for each kind of gap, with the first cell of that kind."""
    for name, _, faults in FAULTS:
        if found := [each for each in campaign.outcomes if faults(each)]:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            count = f"{len(found)} of {quantity(len(campaign.outcomes), 'cell')} {name}"
            yield f"{count}: {campaign.some_of(found[:1])}: {faults(found[0])[0]}{more}"


def faults_section(campaign: MeasuredCampaign) -> Section:
    """Return the cells without a result, the cells that did not measure what was asked, and those with lost data."""
    told = (
        (tuple(f"{name}: {what}" for name, each in campaign.named for what in faults(each)), kind)
        for _, kind, faults in FAULTS
    )
    blocks = tuple(Text(words, kind) for words, kind in told if words)
    return Section("faults", "Cells that failed, are INVALID or not whole", blocks)


def difference_sentences(campaign: MeasuredCampaign) -> tuple[str, ...]:
    """Return how this measurement differs from the article's."""
    profile = campaign.profile
    in_guest = [profile.guest.says] if any(each.virtual for each in campaign.outcomes) else []
    told = (*_way_sentences(campaign), *_length_sentences(campaign), *_uncounted_sentences(campaign.outcomes))
    return tuple(filter(None, (*told, *map(_change_sentence, profile.changes), *in_guest)))


def _way_sentences(campaign: MeasuredCampaign) -> Iterator[str]:
    """Yield why the first way could not be taken, and what the chosen one lacks. Equal sentences stand once."""
    told: defaultdict[str, list[CellOutcome]] = defaultdict(list)
    for each in campaign.outcomes:
        if each.passed and each.way:
            reasons = "; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed)
            told[f"measured by way of {each.way.name} ({reasons}). {each.way.says}".strip()].append(each)
    yield from (f"{campaign.some_of(some)}: {story}" for story, some in told.items())


def _length_sentences(campaign: MeasuredCampaign) -> list[str]:
    told: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in campaign.profile.cells:
        if cell.length_ns != cell.article_ns:
            how = "Shortened" if cell.length_ns < cell.article_ns else "Longer"
            told[how, duration(cell.length_ns)].append(duration(cell.article_ns))
    return [f"{how}: {here} instead of {', '.join(dict.fromkeys(lengths))}." for (how, here), lengths in told.items()]


def _uncounted_sentences(outcomes: Sequence[CellOutcome]) -> list[str]:
    """Return a sentence on short runs: fewer cycles are left out at their start."""
    few = {each.cycles.ignored // max(each.cycles.loops, 1) for each in outcomes if each.cycles} - {IGNORE}
    ends = " to ".join(f"{n:,}" for n in sorted({min(few), max(few)})) if few else ""
    return [f"Not counted are the first {ends} cycles instead of {IGNORE:,}."] if few else []


def _change_sentence(change: OptionChange) -> str:
    if change.chosen:
        return f"Only {change.option} {change.now}, of {', '.join(change.before)}."
    if not change.before:
        return f"Set: {change.option} {change.now or 'to nothing'}, for which the profile has no value of its own."
    return f"Changed against the profile: {change.option} is {change.now} instead of {' or '.join(change.before)}."


def observer_section(campaign: MeasuredCampaign) -> Section:
    """Return what tracing adds in each cell that measured it."""
    found = [(name, tracing.observer_section(each.analysis)) for name, each in campaign.named if each.analysis]
    told = [block for name, blocks in found if blocks for block in (Text((), headline=name), *blocks)]
    return Section("observer", "Observer effect: what tracing itself changes", tuple(told))


def conditions_section(campaign: MeasuredCampaign, *, short: bool) -> Section:
    profile, command = campaign.profile, campaign.command
    blocks: list[Block] = [Text((command,), "code")] if command else []
    if not short:
        blocks += [Text(profile.differs, headline="Never as in the article")] if profile.differs else []
        blocks.append(_conditions_table(campaign))
        kept = tuple(name for each in campaign.outcomes for name in each.kept)
        blocks += [Text((f"Files as the article kept them: {', '.join(kept)}.",))] if kept else []
    return Section("conditions", "What was run", tuple(blocks))


def _conditions_table(campaign: MeasuredCampaign) -> Table:
    ways = {cell.key: several[0].way for cell, several in campaign.cells}
    rows: list[tuple[str, ...]] = []
    for cell in campaign.profile.cells:
        options = " ".join(agent_arguments(cell, ways.get(cell.key)))
        rows.append((cell.label, "here", options, duration(cell.length_ns)))
        lines = [
            ("", f"{ARTICLE_PREFIX}{row.label}", row.command, measured_length(row))
            for row in campaign.published(cell)
            if row.command
        ]
        rows += lines or [("", "article", "", duration(cell.article_ns))]
    header = ("cell", "where", "options of rtproof run, or the article's command", "length")
    return Table("What each cell ran, and how long", header, tuple(rows), (3,))
