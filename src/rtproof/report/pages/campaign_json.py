# SPDX-License-Identifier: Apache-2.0
"""A campaign as JSON: what ``rtproof run --profile NAME --json`` prints and ``result.json`` holds."""

import json
from collections.abc import Sequence
from pathlib import PurePath

from rtproof.articles import ArticleFigure, ArticleRow
from rtproof.profiles import Bins, CellPlan, Way, agent_arguments
from rtproof.profiles.profile import OptionChange
from rtproof.report.pages import campaign_curves, campaign_extras, campaign_page
from rtproof.report.pages.campaign_cells import (
    CellOutcome,
    MeasuredCampaign,
    OtherToolResult,
    judged_requirements,
    measured_length,
)
from rtproof.report.pages.campaign_curves import CurvePair
from rtproof.report.pages.campaign_extras import CheckedConclusion, CheckedRow, checked_conclusions
from rtproof.report.stage_tables import ContextSwitch
from rtproof.schema.encoder import ITSELF, Json, Key, Scope, by_model, document, encode, table
from rtproof.schema.published import MODELS, analysis_dict
from rtproof.summary.counts import DominantBin
from rtproof.summary.summary_model import Doubt

CAMPAIGN_SCHEMA = "rtproof.campaign"
CAMPAIGN_SCHEMA_VERSION = 2

CellOfCampaign = tuple[CellPlan, Sequence[CellOutcome], MeasuredCampaign]
Result = tuple[CellOutcome, Sequence[Bins]]


def _article_name(campaign: MeasuredCampaign) -> str:
    """Whose experiment it is."""
    return PurePath(campaign.profile.article).stem


PROFILE = table(
    MeasuredCampaign,
    "name=profile.name title=profile.title article about=profile.about differs=profile.differs requirements "
    "changes=profile.changes",
    "profile",
    name="of the profile",
    title="of the profile",
    article=_article_name,
    differs="sentences on how it differs from the article",
    requirements=judged_requirements,
)


def _share(found: DominantBin) -> float:
    """The share of values in it."""
    return found.n / found.total


def _stage(result: Result) -> str | None:
    """The stage that the table shows; None for the one that is judged."""
    outcome = result[0]
    return outcome.shown.series.field if outcome.shown and outcome.way and outcome.way.stage else None


def _arguments(result: Result) -> list[str]:
    """Of the agent."""
    return list(agent_arguments(result[0].cell, result[0].way))


def _context_switch(result: Result) -> ContextSwitch | None:
    """The time of a context switch, or None."""
    return campaign_extras.context_switch_of(*result)


def _analysis(result: Result) -> Json | None:
    """An analysis with its own `schema` and `version`, or None."""
    return analysis_dict(result[0].analysis) if result[0].analysis else None


PASSED = table(tuple[Way, str], "way=0.name why=1", "passed way", way="its name", why="why not")
RESULT = table(
    Result,
    "system=0.system way=0.way.name passed=0.passed stage arguments core=0.core failure?=0.failure report?=0.link "
    "files=0.kept context_switch analysis",
    "result",
    system="its name",
    way="the way that was taken, or `null`",
    passed=Key("the ways before it", each=PASSED),
    stage=_stage,
    arguments=_arguments,
    failure="a sentence, or `null`",
    report="the path of its report from the file",
    files="the paths of what else the article kept",
    context_switch=_context_switch,
    analysis=_analysis,
)


def _results(cell: CellOfCampaign) -> list[Result]:
    return [(each, cell[2].profile.bins) for each in cell[1]]


def _rows(cell: CellOfCampaign) -> list[ArticleRow]:
    return cell[2].published(cell[0])


CELL = table(
    CellOfCampaign,
    "key=0.key label=0.label axes=0.axes length_ns=0.length_ns article_length_ns=0.article_ns results article",
    "cell",
    key="of the cell",
    label="its name",
    axes="value by name",
    article_length_ns="how long the article measured",
    results=Key("one for each system", _results, each=RESULT),
    article=Key("the rows that the cell repeats", _rows),
)


def _length(row: ArticleRow) -> str | None:
    """As published; None: not told."""
    return measured_length(row) or None


def _values_counts(pair: CurvePair) -> list[int]:
    """Values of both."""
    return [each.counts.total for each in pair.samples]


def _independent_counts(pair: CurvePair) -> list[int]:
    """How many independent values both are worth."""
    return [round(each.effective) for each in pair.samples]


def _better(pair: CurvePair) -> str | None:
    """`first` or `second`; None: chance decides everywhere."""
    return None if pair.better is None else "first" if pair.better.first_is_better else "second"


TABLES = by_model(
    table(OptionChange, "option before now", "change", option="the option"),
    table(ContextSwitch, "values_count=n least_ns most_ns interrupt task", values_count="the number of values"),
    table(
        DominantBin,
        "from_ns=start to_ns=end share_ratio",
        "bin",
        from_ns="its lower end",
        to_ns="its upper end",
        share_ratio=_share,
    ),
    table(
        ArticleRow,
        "key label board kernel command? length figures",
        "row of the article",
        key="of the row",
        label="of the row",
        board="as published",
        kernel="as published",
        command="as published; `null`: not told",
        length=_length,
        figures="what it printed",
    ),
    table(
        ArticleFigure, "printed=text value unit step at_least", "figure", unit="`ns`, `count`, or `%` for a share of 1"
    ),
    table(
        CurvePair,
        "latency first second values_count independent_count better above_ns=better.above until_ns=better.until "
        "top_share_ratio=better.top_share likeness=apart.likeness distance_ratio=apart.seen distance_at_ns=apart.at "
        "distance_low_ratio=apart.least distance_high_ratio=apart.most",
        "pair",
        latency="the kind of latency",
        first="name of a cell",
        second="name of a cell",
        values_count=_values_counts,
        independent_count=_independent_counts,
        better=_better,
        above_ns="it is better above this value; `null`: everywhere",
        until_ns="and surely up to this value",
        top_share_ratio="how much of the other lies above `above_ns`",
        likeness="by the largest distance of the curves",
        distance_ratio="this distance",
        distance_at_ns="where it is",
        distance_low_ratio="its lower limit (95 %)",
        distance_high_ratio="its upper limit (95 %)",
    ),
    table(
        CheckedRow,
        "of published values_count=count least_count most_count max_ns every_ns shows?",
        "row or run of a conclusion",
        published="it is a row of the article",
        values_count="the number of values",
        least_count="at least so many values were not below the limit",
        most_count="at most so many",
        max_ns="the largest value",
    ),
    table(
        OtherToolResult,
        "label tool count min_ns mean_ns max_ns notes",
        "result of another tool",
        label="what it measured",
        tool="whose it is",
        count="the number of values",
        min_ns="the smallest value",
        mean_ns="the mean",
        max_ns="the largest value",
    ),
)
OBJECTION = table(
    Doubt,
    "code rows what remedy detail",
    "objection to rows",
    code="see the table of objections",
    what="what speaks against them",
)
OBJECTIONS = table(
    tuple[Sequence[Doubt], Sequence[Doubt]],
    "here=0 article=1",
    "objections of a campaign",
    here=Key("to what was measured", each=OBJECTION),
    article=Key("to what was published", each=OBJECTION),
)
CONCLUSION = table(
    CheckedConclusion,
    "key=0.key field=0.field says=0.says limit_ns=0.limit.value rows=1",
    "conclusion",
    key="of the conclusion",
    field="whose values it is about",
    says="`below`: all values are; `not below`: not all are",
    limit_ns="below what",
    rows="the article's, then the runs that repeat them",
)


def _cells(campaign: MeasuredCampaign) -> list[CellOfCampaign]:
    return [(cell, group, campaign) for cell, group in campaign.cells]


CAMPAIGN = table(
    MeasuredCampaign,
    "schema version command? exit_code profile cells pairs objections conclusions given",
    "campaign",
    **document(CAMPAIGN_SCHEMA, CAMPAIGN_SCHEMA_VERSION),
    command="as typed, or `null`",
    exit_code="2 if a cell failed, else of the worst verdict",
    profile=Key("what was asked", ITSELF, shape=PROFILE),
    cells=Key("in order", _cells, each=CELL),
    pairs=Key("curves two by two, where the profile draws them", campaign_curves.curve_pairs),
    objections=Key("what speaks against the rows", campaign_page.campaign_objections, shape=OBJECTIONS),
    conclusions=Key("what the article concludes on limits, checked", checked_conclusions, each=CONCLUSION),
    given="results of other tools",
)


def encode_campaign(campaign: MeasuredCampaign) -> bytes:
    """Return the JSON as UTF-8, indented by two."""
    found = encode(campaign, CAMPAIGN, Scope(tables=MODELS | TABLES))
    return json.dumps(found, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"
