# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign: the answer, the table of cells, the article beside it, objections, curves and conditions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from rtproof import articles
from rtproof.articles import Article
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent, quantity
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import State
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import claim_of
from rtproof.judge.verdict import worst_state
from rtproof.lab.kernel_comparison import VIRTUAL_TIME, turns_sentence
from rtproof.profiles import Profile, agent_arguments
from rtproof.profiles.profile import LOAD
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.number_format import UNKNOWN, US
from rtproof.report.pages import campaign_cells, campaign_curves
from rtproof.report.pages.article_numbers import article_section
from rtproof.report.pages.campaign_cells import (
    ARTICLE_PREFIX,
    CellOutcome,
    MeasuredCampaign,
    judged_requirements,
    longest_answer_text,
    measured_length,
    out_of_band_bound,
    requirement_sentences,
    stalled_text,
)
from rtproof.report.pages.campaign_extras import check_extras, conclusions_section, extra_sections
from rtproof.report.pages.comparison_figures import in_own_colours
from rtproof.report.sections import tracing
from rtproof.report.sections.verdict import KINDS
from rtproof.summary.loops import BAND_LEVEL, IGNORE, most_cycles_out_of_band
from rtproof.summary.recorded_facts import online_processors, turns_of_processors
from rtproof.summary.summary_model import Doubt

MOST_LISTED_CELLS = 8
"""The largest number of cells of a system that are listed one by one."""


def answer_block(campaign: MeasuredCampaign) -> Text:
    """Return the figure of every cell that its article is about, and the worst verdict where there are limits."""
    profile, outcomes = campaign.profile, campaign.outcomes
    words, figure = answer_of_profile(profile)
    virtual = all(each.virtual for each in outcomes)
    if words == OUT_OF_BAND and not virtual:
        words = f"{words} ({percent(BAND_LEVEL)} confidence)"
    states = [each.analysis.verdict.state for each in outcomes if each.analysis]
    alike = len(set(states)) < 2 and len(states) == len(outcomes)
    lines = []
    for system in campaign.systems:
        here = [each for each in outcomes if each.system == system]
        told = []
        for each in here[:MOST_LISTED_CELLS]:
            state = each.analysis.verdict.state if each.analysis else State.NOT_ASKED
            found = figure(each) if each.analysis else "not measured"
            # Where all verdicts are the same, the headline says so.
            verdict = "" if alike or state is State.NOT_ASKED else f"{state.value}, "
            told.append(f"{each.cell.label}: {verdict}{found}")
        told += [f"and {len(here) - MOST_LISTED_CELLS} more cells, below"] if len(here) > MOST_LISTED_CELLS else []
        lines.append("; ".join(told))
    several = len(lines) > 1
    above = (f"{words}:",) if several else ()
    terms = tuple(zip(campaign.systems if several else [words], lines, strict=True))
    if not profile.claims or not states:
        return Text(above, terms=terms)
    worst = worst_state(states)
    headline = f"{worst.value} in {states.count(worst)} of {quantity(len(outcomes), 'cell')}"
    assumed = dict.fromkeys(filter(None, map(verdict_sentences.assumption_of_verdict, campaign.verdicts)))
    verdicts = [each.analysis.verdict for each in outcomes if each.analysis]
    needed = [each.needed_ns for each in verdicts if each.state is State.UNDECIDED and each.needed_ns]
    proven = (
        [f"PROVEN takes {duration(max(needed), up=True)} per cell, if nothing exceeds the limit."] if needed else []
    )
    below = (
        *requirement_sentences(judged_requirements(campaign), virtual=virtual),
        *(f"Each cell by itself: {text[:1].lower()}{text[1:]}." for text in assumed),
        *proven,
        *above,
    )
    return Text(below, KINDS[worst], headline, terms)


def _cycles_answer(outcome: CellOutcome) -> str:
    found = outcome.cycles
    if found is None:
        return UNKNOWN
    stood = f", {stalled_text(found)}" if found.stalls else ""
    most = most_cycles_out_of_band(found)
    possible = f" (up to {out_of_band_bound(most)} possible)" if most is not None else ""
    return f"{found.out_of_band:,} of {found.counted:,}{possible}{stood}"


def _loops_answer(outcome: CellOutcome) -> str:
    found = outcome.loops
    if found is None or not found.loop.count:
        return UNKNOWN
    ends = f"{US.show(found.loop.min)} to {US(found.loop.max)}"
    return f"{ends} (n = {found.loop.count:,}), top late by at most {US(found.error.max)}"


def _latency_answer(outcome: CellOutcome) -> str:
    shown = outcome.shown
    if shown is None or not (shown.observed.count or shown.never_ran):
        return UNKNOWN
    return f"{longest_answer_text(shown)} {US.name} (n = {shown.observed.count:,})"


OUT_OF_BAND = "Cycles out of the band"
ANSWER_OF_QUESTION: Mapping[str, tuple[str, Callable[[CellOutcome], str]]] = {
    "cycles": (OUT_OF_BAND, _cycles_answer),
    "loop-max": ("Loop time", _loops_answer),
    "": ("Largest latency", _latency_answer),
}
"""Keys: the column that shows what a profile is about. The first key that the profile has decides."""


def answer_of_profile(profile: Profile) -> tuple[str, Callable[[CellOutcome], str]]:
    """The figure that a profile is about: its words, and how it is got of a cell."""
    return next(each for column, each in ANSWER_OF_QUESTION.items() if column in (*profile.columns, ""))


NO_OBJECTION_TO_RUN = "No objection: nothing in the figures measured here speaks against them."
NO_OBJECTION_TO_ARTICLE = "Nothing in the article's own figures speaks against its rows."
OBJECTION_HEADER = ("row", "what speaks against it")


def objections_section(campaign: MeasuredCampaign) -> Section:
    own, published = campaign_objections(campaign)
    blocks = [_objection_block("Objections to the rows measured here", own, NO_OBJECTION_TO_RUN)]
    if campaign.article:
        blocks.append(_objection_block("Objections to the article's rows", published, NO_OBJECTION_TO_ARTICLE))
        rows = tuple((row.label, caveat) for row in campaign.repeated for caveat in row.caveats)
        caption = "What the article itself says against its rows"
        blocks += [Table(caption, OBJECTION_HEADER, rows)] if rows else []
        blocks.append(Text((" ".join(campaign.article.about.split()),), headline="The article's figures"))
    return Section("objections", "Objections", tuple(blocks) if campaign.outcomes else ())


def _objection_block(caption: str, some: Sequence[Doubt], none: str) -> Block:
    rows = tuple(("; ".join(each.rows), each.whole) for each in some)
    return Table(caption, OBJECTION_HEADER, rows) if rows else Text((none,))


def campaign_objections(campaign: MeasuredCampaign) -> tuple[tuple[Doubt, ...], tuple[Doubt, ...]]:
    """Return the objections to the rows measured here, and those to the article's rows that the profile repeats.

    Rows of one cell on several systems are compared. The cell without a load is said to be idle where cells differ by
    load.
    """
    own = [
        claim_of(
            each.analysis,
            f"{each.cell.label}, {each.system}",
            each.cell.key,
            said_idle=LOAD in each.cell.axes and not each.cell.loads,
        )
        for each in campaign.outcomes
        if each.analysis
    ]
    labels = {row.key: row.label for row in campaign.repeated}
    published = articles.claims(campaign.article) if campaign.article else ()
    repeated = [msgspec.structs.replace(claim, name=labels[claim.name]) for claim in published if claim.name in labels]
    return doubts_about_rows(own), doubts_about_rows(repeated)


def check_profile_page(profile: Profile, article: Article) -> None:
    """Raise UserError if the page cannot be made as the profile asks. This is called before hours of measuring."""
    try:
        campaign_cells.metrics_by_name(profile.columns)
        check_extras(profile.extras)
    except UserError as problem:
        raise UserError(f"the profile {profile.name}: {problem}") from None
    for key in (key for cell in profile.cells for key in cell.article_rows):
        if article.row(key) is None:
            raise UserError(f"the profile {profile.name}: row: the article {article.name} has no row {key!r}")


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
    counted = [f"{VIRTUAL_TIME} ({', '.join(virtual)}.)"]
    records = [each.analysis.record for each in outcomes if each.analysis and each.virtual]
    turns = [(online_processors(record), turns_of_processors(record)) for record in records]
    for cpus, turn_us, soakers in dict.fromkeys((cpus, each.turn_us, each.soakers_count) for cpus, each in turns):
        counted += [turns_sentence(cpus, turn_us, soakers=soakers == cpus)] if cpus > 1 and turn_us else []
    missing = []
    for name, _, faults in FAULTS:
        if found := [each for each in outcomes if faults(each)]:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            count = f"{len(found)} of {quantity(len(outcomes), 'cell')} {name}"
            missing.append(f"{count}: {campaign.some_of(found[:1])}: {faults(found[0])[0]}{more}")
    kind = "bad" if any(each.failure for each in outcomes) else "doubt"
    told = (
        Text(tuple(cores), "doubt", BESIDE_LINUX) if cores else None,
        Text(tuple(counted), "doubt", "VIRTUAL TIME") if virtual else None,
        Text(tuple(missing), kind, MISSING_TITLE) if missing else None,
    )
    return [block for block in told if block]


FAULTS: tuple[tuple[str, str, Callable[[CellOutcome], tuple[str, ...]]], ...] = (
    ("failed", "bad", lambda each: (each.failure,) if each.failure else ()),
    ("INVALID", "doubt", lambda each: each.invalid),
    ("not whole", "doubt", lambda each: each.losses),
)
"""Kinds of gaps: their name, the kind of their text, and how an outcome tells them."""


def faults_section(campaign: MeasuredCampaign) -> Section:
    """Return the cells without a result, the cells that did not measure what was asked, and those with lost data."""
    blocks = []
    for _, kind, faults in FAULTS:
        words = tuple(f"{name}: {what}" for name, each in campaign.named for what in faults(each))
        blocks += [Text(words, kind)] if words else []
    return Section("faults", "Cells that failed, are INVALID or not whole", tuple(blocks))


def difference_sentences(campaign: MeasuredCampaign) -> Iterator[str]:
    """Yield how this measurement differs from the article's.

    That is what the chosen ways lack and why, other lengths, what is not counted, and what the user changed.
    """
    profile, outcomes = campaign.profile, campaign.outcomes
    ways: defaultdict[str, list[CellOutcome]] = defaultdict(list)
    for each in outcomes:
        if each.passed and each.way:
            reasons = "; ".join(f"{way.name} can't be had: {why}" for way, why in each.passed)
            ways[f"measured by way of {each.way.name} ({reasons}). {each.way.says}".strip()].append(each)
    yield from (f"{campaign.some_of(some)}: {story}" for story, some in ways.items())
    lengths: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for cell in profile.cells:
        if cell.length_ns != cell.article_ns:
            how = "Shortened" if cell.length_ns < cell.article_ns else "Longer"
            lengths[how, duration(cell.length_ns)][duration(cell.article_ns)] = None
    yield from (f"{how}: {here} instead of {', '.join(articles)}." for (how, here), articles in lengths.items())
    # Of a short run fewer cycles are left out at its start.
    if few := {each.cycles.ignored // max(each.cycles.loops, 1) for each in outcomes if each.cycles} - {IGNORE}:
        ends = " to ".join(f"{n:,}" for n in sorted({min(few), max(few)}))
        yield f"Not counted are the first {ends} cycles instead of {IGNORE:,}."
    for change in profile.changes:
        if change.chosen:
            yield f"Only {change.option} {change.now}, of {', '.join(change.before)}."
        elif change.before:
            before = " or ".join(change.before)
            yield f"Changed against the profile: {change.option} is {change.now} instead of {before}."
        else:
            yield f"Set: {change.option} {change.now or 'to nothing'}, for which the profile has no value of its own."
    if profile.guest.says and any(each.virtual for each in outcomes):
        yield profile.guest.says


def observer_section(campaign: MeasuredCampaign) -> Section:
    """Return what tracing adds in each cell that measured it."""
    found = [(name, tracing.observer_section(each.analysis)) for name, each in campaign.named if each.analysis]
    told = [block for name, blocks in found if blocks for block in (Text((), headline=name), *blocks)]
    return Section("observer", "Observer effect: what tracing itself changes", tuple(told))


def conditions_section(campaign: MeasuredCampaign) -> Section:
    profile, command = campaign.profile, campaign.command
    blocks: list[Block] = [Text((command,), "code")] if command else []
    blocks += [Text(profile.differs, headline="Never as in the article")] if profile.differs else []
    ways = {cell.key: several[0].way for cell, several in campaign.cells}
    rows: list[tuple[str, ...]] = []
    for cell in profile.cells:
        options = " ".join(agent_arguments(cell, ways.get(cell.key)))
        rows.append((cell.label, "here", options, duration(cell.length_ns)))
        told = [row for row in campaign.published(cell) if row.command]
        rows += [("", f"{ARTICLE_PREFIX}{row.label}", row.command, measured_length(row)) for row in told]
        rows += [] if told else [("", "article", "", duration(cell.article_ns))]
    header = ("cell", "where", "options of rtproof run, or the article's command", "length")
    blocks.append(Table("What each cell ran, and how long", header, tuple(rows), (3,)))
    kept = tuple(name for each in campaign.outcomes for name in each.kept)
    blocks += [Text((f"Files as the article kept them: {', '.join(kept)}.",))] if kept else []
    return Section("conditions", "What was run", tuple(blocks))


def campaign_sections(campaign: MeasuredCampaign) -> list[Section]:
    campaign = campaign.marked
    result, differs = campaign_cells.result_section(campaign), tuple(difference_sentences(campaign))
    before = (
        *warnings_before(campaign),
        *([answer_block(campaign)] if campaign.outcomes else []),
        *([Text(differs, "doubt", CHANGED_TITLE)] if differs else []),
        Text((campaign.profile.about,)),
    )
    found = [
        replace(result, blocks=(*before, *result.blocks)),
        article_section(campaign),
        faults_section(campaign),
        objections_section(campaign),
        conclusions_section(campaign),
        *extra_sections(campaign),
        campaign_curves.overview_section(campaign),
        campaign_curves.curves_section(campaign),
        campaign_curves.tails_section(campaign),
        observer_section(campaign),
        conditions_section(campaign),
    ]
    plots = [block for part in found for block in part.blocks if isinstance(block, Plot)]
    published = [each.name for plot in plots for each in plot.curves if each.name.startswith(ARTICLE_PREFIX)]
    names = (*(name for name, _ in campaign.named), *campaign.systems, *published)
    return [replace(part, blocks=tuple(in_own_colours(part.blocks, names))) for part in found if part.blocks]


def campaign_title(campaign: MeasuredCampaign) -> str:
    """Return a title that tells this page from others: the profile and the systems."""
    systems, outcomes = ", ".join(campaign.marked.systems), campaign.outcomes
    in_guests = [each.analysis for each in outcomes if each.analysis and each.virtual]
    virtual = ", virtual time" if in_guests else ""
    cpus = max((online_processors(analysis.record) for analysis in in_guests), default=1)
    several = f", {cpus} processors" if cpus > 1 else ""
    return f"rtproof: profile {campaign.profile.name} on {systems}{virtual}{several}"
