# SPDX-License-Identifier: Apache-2.0
"""Write a campaign as JSON. docs/json-schema.md describes it."""

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from rtproof.articles import Article, ArticleFigure, ArticleRow
from rtproof.profiles import Bins, CellPlan, Profile, agent_arguments
from rtproof.report.pages import campaign_curves, campaign_outcomes, campaign_page
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome, OtherToolResult, campaign_exit_code
from rtproof.report.pages.campaign_table import article_rows, measured_length, outcomes_by_cell
from rtproof.schema.analysis_json import analysis_dict, requirement_dict
from rtproof.summary.counts import DominantBin

CAMPAIGN_SCHEMA = "rtproof.campaign"
CAMPAIGN_SCHEMA_VERSION = 2


def encode_campaign(
    profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None, more: CampaignExtras
) -> bytes:
    """Return the JSON as UTF-8, indented by two."""
    found = {
        "schema": CAMPAIGN_SCHEMA,
        "version": CAMPAIGN_SCHEMA_VERSION,
        "command": more.command or None,
        "exit_code": campaign_exit_code(outcomes),
        "profile": _profile(profile, outcomes),
        "cells": [_cell(cell, group, article, profile.bins) for cell, group in outcomes_by_cell(outcomes)],
        "pairs": [_pair(name, pair) for name, some in campaign_curves.curve_pairs(profile, outcomes) for pair in some],
        "objections": _objections(profile, outcomes, article),
        "given": [_given(each) for each in more.given],
    }
    return json.dumps(found, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"


def _profile(profile: Profile, outcomes: Sequence[CellOutcome]) -> dict[str, Any]:
    return {
        "name": profile.name,
        "title": profile.title,
        "article": PurePath(profile.article).stem,
        "about": profile.about,
        "differs": list(profile.differs),
        "requirements": [
            requirement_dict(each) for each in campaign_outcomes.judged_requirements(profile.claims, outcomes)
        ],
        "changes": [
            {"option": change.option, "before": list(change.before), "now": change.now} for change in profile.changes
        ],
    }


def _cell(
    cell: CellPlan, group: Sequence[CellOutcome], article: Article | None, widths: Sequence[Bins]
) -> dict[str, Any]:
    return {
        "key": cell.key,
        "label": cell.label,
        "axes": dict(cell.axes),
        "length_ns": cell.length_ns,
        "article_length_ns": cell.article_ns,
        "results": [_result(each, widths) for each in group],
        "article": [_row(row) for row in article_rows(cell, article)],
    }


def _pair(name: str, pair: campaign_curves.CurvePair) -> dict[str, Any]:
    better, apart = pair.better, pair.apart
    return {
        "latency": name,
        "first": pair.first.name,
        "second": pair.second.name,
        "values_count": [each.counts.total for each in pair.samples],
        "independent_count": [round(each.effective) for each in pair.samples],
        "better": None if better is None else "first" if better.first_is_better else "second",
        "above_ns": better.above if better else None,
        "until_ns": better.until if better else None,
        "top_share_ratio": better.top_share if better else None,
        "likeness": apart.likeness.value if apart else None,
        "distance_ratio": apart.seen if apart else None,
        "distance_at_ns": apart.at if apart else None,
        "distance_low_ratio": apart.least if apart else None,
        "distance_high_ratio": apart.most if apart else None,
    }


def _context_switch(found: campaign_curves.ContextSwitchTime | None) -> dict[str, Any] | None:
    if found is None:
        return None
    told = {"values_count": found.n, "least_ns": found.least, "most_ns": found.most}
    return told | {"interrupt": _fullest(found.interrupt), "task": _fullest(found.task)}


def _fullest(found: DominantBin) -> dict[str, Any]:
    return {"from_ns": found.start, "to_ns": found.end, "share_ratio": found.n / found.total}


def _result(each: CellOutcome, widths: Sequence[Bins]) -> dict[str, Any]:
    return {
        "system": each.system,
        "way": each.way.name if each.way else None,
        "passed": [{"way": way.name, "why": why} for way, why in each.passed],
        "stage": each.shown.series.field if each.shown and each.way and each.way.stage else None,
        "arguments": list(agent_arguments(each.cell, each.way)),
        "core": each.core,
        "failure": each.failure or None,
        "report": each.link or None,
        "files": list(each.kept),
        "context_switch": _context_switch(campaign_curves.context_switch_time(each, widths)),
        "analysis": analysis_dict(each.analysis) if each.analysis else None,
    }


def _row(row: ArticleRow) -> dict[str, Any]:
    return {
        "key": row.key,
        "label": row.label,
        "board": row.board,
        "kernel": row.kernel,
        "command": row.command or None,
        "length": measured_length(row) or None,
        "figures": {name: _figure(figure) for name, figure in row.figures.items()},
    }


def _figure(figure: ArticleFigure) -> dict[str, Any]:
    return {
        "printed": figure.text,
        "value": figure.value,
        "unit": figure.unit,
        "step": figure.step,
        "at_least": figure.at_least,
    }


def _objections(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> dict[str, Any]:
    own, published = campaign_page.campaign_objections(profile, outcomes, article)
    return {
        name: [{"code": each.code, "rows": list(each.claims), "what": each.what} for each in some]
        for name, some in (("here", own), ("article", published))
    }


def _given(given: OtherToolResult) -> dict[str, Any]:
    return {
        "label": given.label,
        "tool": given.tool,
        "count": given.count,
        "min_ns": given.min_ns,
        "mean_ns": given.mean_ns,
        "max_ns": given.max_ns,
        "notes": list(given.notes),
    }
