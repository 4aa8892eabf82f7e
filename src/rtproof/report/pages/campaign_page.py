# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign: the answer for each cell, then every section, with the objections to published claims."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rtproof import articles
from rtproof.articles import Article, ArticleRow
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, percent, quantity
from rtproof.core.units import format_cpus
from rtproof.judge import planning, verdict_sentences
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import ResultClaim, claim_of
from rtproof.judge.verdict import worst_state
from rtproof.profiles import CellPlan, Profile
from rtproof.profiles.profile import LOAD
from rtproof.report import number_format
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.number_format import US
from rtproof.report.pages import campaign_conditions, campaign_curves, campaign_outcomes, campaign_table
from rtproof.report.pages.article_numbers import article_section
from rtproof.report.pages.article_picture import article_picture
from rtproof.report.pages.campaign_conclusions import conclusions_section
from rtproof.report.pages.campaign_outcomes import (
    NO_EXTRAS,
    CampaignExtras,
    CellOutcome,
    OtherToolResult,
    campaign_exit_code,
    outcomes_marked_in_band,
)
from rtproof.report.pages.campaign_table import longest_answer_text, out_of_band_bound, stalled_text
from rtproof.report.pages.comparison_figures import in_own_colours
from rtproof.report.sections.verdict import KINDS
from rtproof.summary.loops import BAND_LEVEL, most_cycles_out_of_band
from rtproof.summary.recorded_facts import online_processors
from rtproof.summary.summary_model import Doubt

__all__ = [
    "CampaignExtras",
    "CellOutcome",
    "OtherToolResult",
    "campaign_exit_code",
    "campaign_sections",
    "campaign_title",
    "check_profile_page",
]


MOST_LISTED_CELLS = 8
"""The largest number of cells of a system that are listed one by one."""


def answer_block(profile: Profile, outcomes: Sequence[CellOutcome]) -> Text:
    """Return the figure of every cell that its article is about, and the worst verdict where there are limits."""
    words, figure = answer_of_profile(profile)
    if words == OUT_OF_BAND and not all(each.virtual for each in outcomes):
        words = f"{words} ({percent(BAND_LEVEL)} confidence)"
    states = [each.analysis.verdict.state for each in outcomes if each.analysis]
    alike = len(set(states)) < 2 and len(states) == len(outcomes)
    systems = list(dict.fromkeys(each.system for each in outcomes))
    lines = [_listed_cells([each for each in outcomes if each.system == system], figure, alike) for system in systems]
    several = len(systems) > 1
    told = (f"{words}:",) if several else ()
    terms = tuple(zip(systems if several else [words], lines, strict=True))
    if not profile.claims or not states:
        return Text(told, terms=terms)
    worst = worst_state(states)
    headline = f"{worst.value} in {states.count(worst)} of {quantity(len(outcomes), 'cell')}"
    required = campaign_outcomes.requirement_sentences(
        campaign_outcomes.judged_requirements(profile.claims, outcomes), virtual=all(each.virtual for each in outcomes)
    )
    below = (*required, *campaign_outcomes.requirement_assumptions(outcomes), *_needed_length(outcomes), *told)
    return Text(below, KINDS[worst], headline, terms)


def _listed_cells(here: Sequence[CellOutcome], figure: Callable[[CellOutcome], str], alike: bool) -> str:
    """Return the listed cells of one system. alike: all verdicts are the same, and the line above says so."""
    told = [f"{each.cell.label}: {_answer_figure(each, figure, alike)}" for each in here[:MOST_LISTED_CELLS]]
    told += [f"and {len(here) - MOST_LISTED_CELLS} more cells, below"] if len(here) > MOST_LISTED_CELLS else []
    return "; ".join(told)


def _answer_figure(outcome: CellOutcome, figure: Callable[[CellOutcome], str], alike: bool) -> str:
    if outcome.analysis is None:
        return "not measured"
    state = outcome.analysis.verdict.state
    return figure(outcome) if alike or state is State.NOT_ASKED else f"{state.value}, {figure(outcome)}"


def _cycles_answer(outcome: CellOutcome) -> str:
    found = outcome.analysis.cycles if outcome.analysis else None
    if found is None:
        return number_format.UNKNOWN
    stood = f", {stalled_text(found)}" if found.stalls else ""
    most = most_cycles_out_of_band(found)
    possible = f" (up to {out_of_band_bound(most)} possible)" if most is not None else ""
    return f"{found.out_of_band:,} of {found.counted:,}{possible}{stood}"


def _loops_answer(outcome: CellOutcome) -> str:
    found = outcome.loops
    if found is None or not found.loop.count:
        return number_format.UNKNOWN
    ends = f"{US.show(found.loop.min)} to {US(found.loop.max)}"
    return f"{ends} (n = {found.loop.count:,}), top late by at most {US(found.error.max)}"


def _largest_answer(outcome: CellOutcome) -> str:
    shown = outcome.shown
    if shown is None or not shown.observed.count:
        return number_format.UNKNOWN
    return f"{US(shown.observed.max)} (n = {shown.observed.count:,})"


def _longest_answer(outcome: CellOutcome) -> str:
    shown = outcome.shown
    return f"{longest_answer_text(shown)} {US.name} (n = {shown.observed.count:,})" if shown else number_format.UNKNOWN


OUT_OF_BAND = "Cycles out of the band"
ANSWER_OF_QUESTION: Mapping[str, tuple[str, Callable[[CellOutcome], str]]] = {
    "cycles": (OUT_OF_BAND, _cycles_answer),
    "loop-max": ("Loop time", _loops_answer),
    "longest": ("Largest latency", _longest_answer),
    "": ("Largest latency", _largest_answer),
}
"""Keys: the column that shows what a profile is about. The first key that the profile has decides."""


def answer_of_profile(profile: Profile) -> tuple[str, Callable[[CellOutcome], str]]:
    """The figure that a profile is about: its words, and how it is got of a cell."""
    return next(each for column, each in ANSWER_OF_QUESTION.items() if column in (*profile.columns, ""))


def _needed_length(outcomes: Sequence[CellOutcome]) -> Iterator[str]:
    verdicts = [each.analysis.verdict for each in outcomes if each.analysis]
    needed = [each.needed_ns for each in verdicts if each.state is State.UNDECIDED and each.needed_ns]
    if needed:
        yield f"PROVEN takes {duration(max(needed), up=True)} per cell, if nothing exceeds the limit."


NO_OBJECTION_TO_RUN = "No objection: nothing in the figures measured here speaks against them."
NO_OBJECTION_TO_ARTICLE = "Nothing in the article's own figures speaks against its rows."
OBJECTION_HEADER = ("row", "what speaks against it")


def objections_section(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> Section:
    own, published = campaign_objections(profile, outcomes, article)
    blocks = [_objection_block("Objections to the rows measured here", own, NO_OBJECTION_TO_RUN)]
    if article:
        blocks.append(_objection_block("Objections to the article's rows", published, NO_OBJECTION_TO_ARTICLE))
        blocks += _published_claim_rows(profile, article)
    return Section("objections", "Objections", tuple(blocks) if outcomes else ())


def campaign_objections(
    profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None
) -> tuple[tuple[Doubt, ...], tuple[Doubt, ...]]:
    """Return the objections to the rows measured here, and those to the article's rows that the profile repeats."""
    return doubts_about_rows(_objections_to_cells(outcomes)), doubts_about_rows(
        _objections_to_article(profile, article) if article else []
    )


def _objections_to_cells(outcomes: Sequence[CellOutcome]) -> list[ResultClaim]:
    """Return the claims of the measured cells. Claims of one cell on several systems are compared."""
    measured = [(each, each.analysis) for each in outcomes if each.analysis]
    return [
        claim_of(found, f"{each.cell.label}, {each.system}", each.cell.key, said_idle=_said_idle(each.cell))
        for each, found in measured
    ]


def _said_idle(cell: CellPlan) -> bool:
    """Return whether this is the cell without a load, in a profile whose cells differ by load."""
    return LOAD in cell.axes and not cell.loads


def _objections_to_article(profile: Profile, article: Article) -> list[ResultClaim]:
    """Return the claims of the article's rows that the profile repeats, by their labels."""
    labels = {row.key: row.label for row in _grouped_objections(profile, article)}
    return [replace(claim, name=labels[claim.name]) for claim in articles.claims(article) if claim.name in labels]


def _published_claim_rows(profile: Profile, article: Article) -> list[Block]:
    """Return what is known of the article's figures, and what the article itself says against them, if it does."""
    rows = tuple((row.label, each) for row in _grouped_objections(profile, article) for each in row.caveats)
    table = [Table("What the article itself says against its rows", OBJECTION_HEADER, rows)] if rows else []
    return [*table, Text((" ".join(article.about.split()),), headline="The article's figures")]


def _grouped_objections(profile: Profile, article: Article) -> list[ArticleRow]:
    """Return the article's rows that the profile repeats."""
    wanted = {key for cell in profile.cells for key in cell.article_rows}
    return [row for row in article.rows if row.key in wanted]


def _objection_block(caption: str, some: Sequence[Doubt], none: str) -> Block:
    if not some:
        return Text((none,))
    rows = tuple(("; ".join(each.rows), each.whole) for each in some)
    return Table(caption, OBJECTION_HEADER, rows)


EVIDENCE_EXPLAINED = (
    "This is not about how well the article measured. It is the most that any run of this length can show, if one run "
    "is like another. It assumes that the article's length was fixed before the run."
)
EVIDENCE_OF_ALL_ROWS = "rows of this article"
EVIDENCE_CAPTION = "By their length, largest value and number of values"
EVIDENCE_TITLE = "What the article's rows are worth"


def article_evidence_section(profile: Profile, article: Article | None) -> Section:
    """Return what the article's rows that the profile repeats are worth."""
    wanted = {key for cell in profile.cells for key in cell.article_rows}
    told = article_evidence_rows(article, wanted) if article else []
    before = [label for label, _, _ in told[:-1]]
    rows = tuple(
        ("" if label == above else label, f"{name}: {text}" if name else text)
        for above, (label, name, text) in zip(["", *before], told, strict=False)
    )
    table = Table(EVIDENCE_CAPTION, ("row", "what it is worth"), rows, folded=True)
    return Section("honest", EVIDENCE_TITLE, (table, Text((EVIDENCE_EXPLAINED,))) if rows else ())


def article_evidence_rows(
    article: Article, wanted: Sequence[str] | set[str] | None = None
) -> list[tuple[str, str, str]]:
    """Return label of the row, name of the thread or field ("" for all), and sentence.

    wanted: the keys of the rows; None for all rows.
    """
    chosen = [row for row in article.rows if wanted is None or row.key in wanted]
    told = [(row.label, name, text) for row in chosen for name, text in _evidence_of_row(row)]
    return told + [(EVIDENCE_OF_ALL_ROWS, "", text) for text in _evidence_threshold(article, chosen)]


def _evidence_of_row(row: ArticleRow) -> Iterator[tuple[str, str]]:
    """Yield what a row's maxima are worth. A maximum that is only a lower bound is left out."""
    length = row.asked or row.duration
    largest = [(each.name, each.figures["max"]) for each in row.numbers if "max" in each.figures]
    known = [(name, int(figure.value)) for name, figure in largest if not figure.at_least]
    if length is None or length.at_least or not known:
        return
    duration_ns = int(length.value)
    told = [(name, verdict_sentences.largest_value_sentences(max_ns, duration_ns)) for name, max_ns in known]
    yield from ((name, bound) for name, (_, _, bound) in told)
    again, later, _ = told[0][1]
    yield "the maximum" if len(told) == 1 else "each maximum", f"{again}; {later}"
    yield from (("", text) for text in verdict_sentences.unseen_event_sentences(duration_ns))


def _evidence_threshold(article: Article, rows: Sequence[ArticleRow]) -> Iterator[str]:
    """Yield a sentence on the article's threshold for each number of values that its rows have."""
    if article.threshold is None:
        return
    counts = [each.value("count") for row in rows for each in row.numbers]
    for count in dict.fromkeys(int(count) for count in counts if count):
        yield verdict_sentences.threshold_rank_sentence(planning.share_threshold(1 - article.threshold.value, count))


# The next functions check the page before a campaign, and put its sections together: what each cell measured, beside
# the figures that the article published. ``campaign_sections`` is a pure function, for local runs and for the lab's.


def check_profile_page(profile: Profile, article: Article) -> None:
    """Raise UserError if the page cannot be made as the profile asks. This is called before hours of measuring."""
    try:
        campaign_table.metrics_by_name(profile.columns)
        campaign_curves.check_extras(profile.extras)
    except UserError as problem:
        raise UserError(f"the profile {profile.name}: {problem}") from None
    for key in (key for cell in profile.cells for key in cell.article_rows):
        if article.row(key) is None:
            raise UserError(f"the profile {profile.name}: row: the article {article.name} has no row {key!r}")


def campaign_sections(
    profile: Profile,
    outcomes: Sequence[CellOutcome],
    article: Article | None,
    more: CampaignExtras = NO_EXTRAS,
    *,
    short: bool = False,
) -> list[Section]:
    """Return all sections. outcomes: every cell on every system, in the profile's order. short: for a terminal."""
    outcomes = outcomes_marked_in_band(outcomes)
    table = campaign_table.result_section(profile, outcomes, more.given, short=short)
    losses = (
        *campaign_conditions.in_band_block(outcomes),
        *campaign_conditions.virtual_time_block(outcomes),
        *campaign_conditions.missing_block(outcomes),
    )
    answered = [answer_block(profile, outcomes)] if outcomes else []
    before = (*losses, *answered, *campaign_conditions.difference_block(profile, outcomes), Text((profile.about,)))
    parts = [
        Section(table.name, table.title, (*before, *table.blocks)),
        _beside_article(profile, outcomes, article, more.given, short=short),
        *campaign_conditions.cell_fault_blocks(outcomes),
        objections_section(profile, outcomes, article),
        conclusions_section(profile, outcomes, article),
        *(_terminal_tables(profile, outcomes, article) if short else _curves_and_more(profile, outcomes, article)),
        campaign_conditions.observer_section(outcomes),
        campaign_conditions.conditions_section(profile, outcomes, article, more.command, short=short),
    ]
    plots = [block for part in parts for block in part.blocks if isinstance(block, Plot)]
    drawn = dict.fromkeys(curve.name for plot in plots for curve in plot.curves)
    published = [name for name in drawn if name.startswith(campaign_table.ARTICLE_PREFIX)]
    names = (*campaign_outcomes.cell_names(outcomes), *(each.system for each in outcomes), *published)
    return [replace(part, blocks=tuple(in_own_colours(part.blocks, names))) for part in parts if part.blocks]


def _beside_article(
    profile: Profile,
    outcomes: Sequence[CellOutcome],
    article: Article | None,
    given: Sequence[OtherToolResult],
    *,
    short: bool,
) -> Section:
    """Return the article's numbers and ours, on a page with their picture."""
    found = article_section(profile, outcomes, article, given)
    picture = [] if short or not found.blocks else article_picture(profile, outcomes, article)
    return replace(found, blocks=(*picture, *found.blocks))


TERMINAL_EXTRAS = ("app", "threads")
"""Extra sections whose tables a terminal shows too: the columns of the result are not the article's own table."""


def _terminal_tables(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Section]:
    wanted = replace(profile, extras=tuple(name for name in profile.extras if name in TERMINAL_EXTRAS))
    found = campaign_curves.extra_sections(wanted, outcomes, article)
    return [replace(each, blocks=tuple(block for block in each.blocks if isinstance(block, Table))) for each in found]


def _curves_and_more(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Section]:
    drawn = [
        campaign_curves.overview_section(profile, outcomes),
        campaign_curves.curves_section(profile, outcomes, article),
        campaign_curves.tails_section(profile, outcomes, article),
    ]
    return [
        *campaign_curves.extra_sections(profile, outcomes, article),
        *drawn,
        article_evidence_section(profile, article),
    ]


def campaign_title(profile: Profile, outcomes: Sequence[CellOutcome]) -> str:
    """Return a title that tells this page from others: the profile and the systems."""
    systems = ", ".join(dict.fromkeys(each.system for each in outcomes_marked_in_band(outcomes)))
    in_guests = [each.analysis for each in outcomes if each.analysis and each.virtual]
    virtual = ", virtual time" if in_guests else ""
    cpus = max((online_processors(analysis.record) for analysis in in_guests), default=1)
    processors = f", {cpus} processors{_only_measured(in_guests, cpus)}" if cpus > 1 else ""
    return f"rtproof: profile {profile.name} on {systems}{virtual}{processors}"


def _only_measured(analyses: Sequence[Analysis], cpus: int) -> str:
    """On which of the guests' processors was measured, if it is the same part of them in all cells."""
    measured = {tuple(sorted({each.series.cpu for each in analysis.summaries})) for analysis in analyses}
    alike = measured.pop() if len(measured) == 1 else ()
    return f", measured on {format_cpus(alike)}" if 0 < len(alike) < cpus and alike[0] >= 0 else ""
