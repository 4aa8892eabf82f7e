# SPDX-License-Identifier: Apache-2.0
"""The published keys of a campaign, and the campaign as JSON. docs/json-schema.md describes it."""

import json
from collections.abc import Sequence
from pathlib import PurePath

from rtproof.articles import Article, ArticleFigure, ArticleRow
from rtproof.profiles import Bins, CellPlan, Profile, Way, agent_arguments
from rtproof.profiles.profile import OptionChange
from rtproof.record.requirement import Requirement
from rtproof.report.pages import campaign_curves, campaign_outcomes, campaign_page
from rtproof.report.pages.campaign_conclusions import CheckedConclusion, CheckedRow, checked_conclusions
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome, OtherToolResult, campaign_exit_code
from rtproof.report.pages.campaign_table import article_rows, measured_length, outcomes_by_cell
from rtproof.schema.encoder import ITSELF, Json, Key, Shape, document, encode
from rtproof.schema.published import REQUIREMENT, analysis_dict
from rtproof.summary.counts import DominantBin
from rtproof.summary.summary_model import Doubt

CAMPAIGN_SCHEMA = "rtproof.campaign"
CAMPAIGN_SCHEMA_VERSION = 2

Campaign = tuple[Profile, Sequence[CellOutcome], Article | None, CampaignExtras]
Cell = tuple[CellPlan, Sequence[CellOutcome], Article | None, Sequence[Bins]]
Result = tuple[CellOutcome, Sequence[Bins]]
Pair = tuple[str, campaign_curves.CurvePair]


def _article_name(campaign: Campaign) -> str:
    return PurePath(campaign[0].article).stem


def _requirements(campaign: Campaign) -> list[Requirement]:
    return list(campaign_outcomes.judged_requirements(campaign[0].claims, campaign[1]))


CHANGE = Shape("change", OptionChange) | {
    "option": "the option",
    "before": "its values in the profile",
    "now": "the user's value",
}
PROFILE = Shape("profile", Campaign) | {
    "name": Key("of the profile", "0.name"),
    "title": Key("of the profile", "0.title"),
    "article": Key("whose experiment it is", _article_name),
    "about": Key("what it measures", "0.about"),
    "differs": Key("sentences on how it differs from the article", "0.differs"),
    "requirements": Key("what the cells were judged by, else what the profile asks", _requirements, each=REQUIREMENT),
    "changes": Key("what the user changed", "0.changes", each=CHANGE),
}


def _full_share(found: DominantBin) -> float:
    return found.n / found.total


BIN = Shape("bin", DominantBin) | {
    "from_ns": Key("its lower end", "start"),
    "to_ns": Key("its upper end", "end"),
    "share_ratio": Key("the share of values in it", _full_share),
}
CONTEXT_SWITCH = Shape("context switch", campaign_curves.ContextSwitchTime) | {
    "values_count": Key("n", "n"),
    "least_ns": "it lasts at least this long",
    "most_ns": "it lasts at most this long",
    "interrupt": Key("the fullest bin of the interrupt", shape=BIN),
    "task": Key("the fullest bin of the task", shape=BIN),
}
PASSED = Shape("passed way", tuple[Way, str]) | {"way": Key("its name", "0.name"), "why": Key("why not", "1")}


def _stage(result: Result) -> str | None:
    outcome = result[0]
    return outcome.shown.series.field if outcome.shown and outcome.way and outcome.way.stage else None


def _arguments(result: Result) -> list[str]:
    return list(agent_arguments(result[0].cell, result[0].way))


def _context_switch(result: Result) -> campaign_curves.ContextSwitchTime | None:
    return campaign_curves.context_switch_time(*result)


def _analysis(result: Result) -> Json | None:
    return analysis_dict(result[0].analysis) if result[0].analysis else None


RESULT = Shape("result", Result) | {
    "system": Key("its name", "0.system"),
    "way": Key("the way that was taken, or `null`", "0.way.name"),
    "passed": Key("the ways before it", "0.passed", each=PASSED),
    "stage": Key("the stage that the table shows; `null` for the one that is judged", _stage),
    "arguments": Key("of the agent", _arguments),
    "core": Key("the co-kernel beside Linux, or `null`", "0.core"),
    "failure": Key("a sentence, or `null`", "0.failure", or_null=True),
    "report": Key("the path of its report from the file", "0.link", or_null=True),
    "files": Key("the paths of what else the article kept", "0.kept"),
    "context_switch": Key("the time of a context switch, or `null`", _context_switch, shape=CONTEXT_SWITCH),
    "analysis": Key("an analysis with its own `schema` and `version`, or `null`", _analysis),
}
FIGURE = Shape("figure", ArticleFigure) | {
    "printed": Key("as in the article", "text"),
    "value": "in the `unit`",
    "unit": "`ns`, `count`, or `%` for a share of 1",
    "step": "one unit of the last digit printed, in `unit`",
    "at_least": "the article gives a lower bound only",
}


def _length(row: ArticleRow) -> str | None:
    return measured_length(row) or None


ROW = Shape("row of the article", ArticleRow) | {
    "key": "of the row",
    "label": "of the row",
    "board": "as published",
    "kernel": "as published",
    "command": Key("as published; `null`: not told", or_null=True),
    "length": Key("as published; `null`: not told", _length),
    "figures": Key("what it printed", each=FIGURE),
}


def _results(cell: Cell) -> list[Result]:
    return [(each, cell[3]) for each in cell[1]]


def _rows(cell: Cell) -> list[ArticleRow]:
    return list(article_rows(cell[0], cell[2]))


CELL = Shape("cell", Cell) | {
    "key": Key("of the cell", "0.key"),
    "label": Key("its name", "0.label"),
    "axes": Key("value by name", "0.axes"),
    "length_ns": Key("how long it measures", "0.length_ns"),
    "article_length_ns": Key("how long the article measured", "0.article_ns"),
    "results": Key("one for each system", _results, each=RESULT),
    "article": Key("the rows that the cell repeats", _rows, each=ROW),
}


def _values_counts(pair: Pair) -> list[int]:
    return [each.counts.total for each in pair[1].samples]


def _independent_counts(pair: Pair) -> list[int]:
    return [round(each.effective) for each in pair[1].samples]


def _better(pair: Pair) -> str | None:
    better = pair[1].better
    return None if better is None else "first" if better.first_is_better else "second"


PAIR = Shape("pair", Pair) | {
    "latency": Key("the kind of latency", "0"),
    "first": Key("name of a cell", "1.first.name"),
    "second": Key("name of a cell", "1.second.name"),
    "values_count": Key("n of both", _values_counts),
    "independent_count": Key("how many independent values both are worth", _independent_counts),
    "better": Key("`first` or `second`; `null`: chance decides everywhere", _better),
    "above_ns": Key("it is better above this value; `null`: everywhere", "1.better.above"),
    "until_ns": Key("and surely up to this value", "1.better.until"),
    "top_share_ratio": Key("how much of the other lies above `above_ns`", "1.better.top_share"),
    "likeness": Key("by the largest distance of the curves", "1.apart.likeness"),
    "distance_ratio": Key("this distance", "1.apart.seen"),
    "distance_at_ns": Key("where it is", "1.apart.at"),
    "distance_low_ratio": Key("its lower limit (95 %)", "1.apart.least"),
    "distance_high_ratio": Key("its upper limit (95 %)", "1.apart.most"),
}
CAMPAIGN_OBJECTION = Shape("objection to rows", Doubt) | {
    "code": "see the table of objections",
    "rows": "the labels of the rows",
    "what": "what speaks against them",
    "remedy": "what to do about it",
    "detail": "the figures and names that `what` leaves out",
}
CAMPAIGN_OBJECTIONS = Shape("objections of a campaign", tuple[Sequence[Doubt], Sequence[Doubt]]) | {
    "here": Key("to what was measured", "0", each=CAMPAIGN_OBJECTION),
    "article": Key("to what was published", "1", each=CAMPAIGN_OBJECTION),
}
CHECKED_ROW = Shape("row or run of a conclusion", CheckedRow) | {
    "of": "the label of the article's row, or the name of a run",
    "published": "it is a row of the article",
    "values_count": Key("n", "count"),
    "least_count": Key("at least so many values were not below the limit", "least"),
    "most_count": Key("at most so many", "most"),
    "max_ns": "the largest value",
    "every_ns": "if none was, such values may still come this often (95 %)",
    "shows": Key("what this says of the conclusion, or `null`", or_null=True),
}
CONCLUSION = Shape("conclusion", CheckedConclusion) | {
    "key": Key("of the conclusion", "statement.key"),
    "field": Key("whose values it is about", "statement.field"),
    "says": Key("`below`: all values are; `not below`: not all are", "statement.says"),
    "limit_ns": Key("below what", "statement.limit.value"),
    "rows": Key("the article's, then the runs that repeat them", each=CHECKED_ROW),
}
GIVEN = Shape("result of another tool", OtherToolResult) | {
    "label": "what it measured",
    "tool": "whose it is",
    "count": "n",
    "min_ns": "the smallest value",
    "mean_ns": "the mean",
    "max_ns": "the largest value",
    "notes": "what it cannot tell",
}


def _exit_code(campaign: Campaign) -> int:
    return campaign_exit_code(campaign[1])


def _cells(campaign: Campaign) -> list[Cell]:
    profile, outcomes, article, _ = campaign
    return [(cell, group, article, profile.bins) for cell, group in outcomes_by_cell(outcomes)]


def _pairs(campaign: Campaign) -> list[Pair]:
    return [(name, pair) for name, some in campaign_curves.curve_pairs(*campaign[:2]) for pair in some]


def _objections(campaign: Campaign) -> tuple[Sequence[Doubt], Sequence[Doubt]]:
    return campaign_page.campaign_objections(*campaign[:3])


def _conclusions(campaign: Campaign) -> list[CheckedConclusion]:
    return checked_conclusions(*campaign[:3])


CAMPAIGN = Shape("campaign", Campaign) | {
    **document(CAMPAIGN_SCHEMA, CAMPAIGN_SCHEMA_VERSION),
    "command": Key("as typed, or `null`", "3.command", or_null=True),
    "exit_code": Key("2 if a cell failed, else of the worst verdict", _exit_code),
    "profile": Key("what was asked", ITSELF, shape=PROFILE),
    "cells": Key("in order", _cells, each=CELL),
    "pairs": Key("curves two by two, where the profile draws them", _pairs, each=PAIR),
    "objections": Key("what speaks against the rows", _objections, shape=CAMPAIGN_OBJECTIONS),
    "conclusions": Key("what the article concludes on limits, checked", _conclusions, each=CONCLUSION),
    "given": Key("results of other tools", "3.given", each=GIVEN),
}


def encode_campaign(
    profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None, more: CampaignExtras
) -> bytes:
    """Return the JSON as UTF-8, indented by two."""
    found = encode((profile, outcomes, article, more), CAMPAIGN)
    return json.dumps(found, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"
