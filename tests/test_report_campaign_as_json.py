# SPDX-License-Identifier: Apache-2.0
"""``result.json`` and ``table.md``: held to their schema, to their page in docs/, and to what the other forms say."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import campaign_cases
import pytest

from rtproof import articles, report
from rtproof.profiles import ProfileLimit
from rtproof.profiles.profile import with_claims
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome, OtherToolResult

DOCS = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()
PAGE = DOCS[DOCS.index("# The JSON form of a profile's cells") : DOCS.index("## A histogram of another tool")]
CASES = {
    "akamina": campaign_cases.akamina,
    "ten-ms": campaign_cases.ten_ms,
    "simple-rt-app": campaign_cases.simple_rt_app,
    "bootlin-timer": campaign_cases.bootlin,
}


@dataclass(frozen=True)
class Optional:
    """This schema, or null."""

    schema: Any


TEXT, NUMBER, WHOLE, NOTHING, FLAG = str, (int, float), int, type(None), bool
FIGURE = {"printed": TEXT, "value": NUMBER, "unit": TEXT, "step": NUMBER, "at_least": FLAG}
BIN = {"from_ns": WHOLE, "to_ns": WHOLE, "share_ratio": NUMBER}
RATIOS = ("top_share_ratio", "distance_ratio", "distance_low_ratio", "distance_high_ratio")
OBJECTION = {"code": TEXT, "rows": [TEXT], "what": TEXT}
SCHEMA = {
    "schema": TEXT,
    "version": WHOLE,
    "command": (TEXT, NOTHING),
    "exit_code": WHOLE,
    "profile": {
        **dict.fromkeys(("name", "title", "article", "about"), TEXT),
        "differs": [TEXT],
        "requirements": [
            {
                **dict.fromkeys(("limit_ns", "at_most_ns", "gap_ns"), WHOLE),
                "confidence_ratio": NUMBER,
                "longest_ns": (WHOLE, NOTHING),
                "bunches_count": NUMBER,
            }
        ],
        "changes": [{"option": TEXT, "before": [TEXT], "now": TEXT}],
    },
    "cells": [
        {
            "key": TEXT,
            "label": TEXT,
            "axes": {...: TEXT},
            "length_ns": WHOLE,
            "article_length_ns": WHOLE,
            "results": [
                {
                    "system": TEXT,
                    "way": (TEXT, NOTHING),
                    "passed": [{"way": TEXT, "why": TEXT}],
                    "stage": (TEXT, NOTHING),
                    "arguments": [TEXT],
                    "core": (TEXT, NOTHING),
                    "failure": (TEXT, NOTHING),
                    "report": (TEXT, NOTHING),
                    "files": [TEXT],
                    "context_switch": Optional(
                        {
                            **dict.fromkeys(("values_count", "least_ns", "most_ns"), WHOLE),
                            **dict.fromkeys(("interrupt", "task"), BIN),
                        }
                    ),
                    "analysis": (dict, NOTHING),
                }
            ],
            "article": [
                {
                    **dict.fromkeys(("key", "label", "board", "kernel"), TEXT),
                    "command": (TEXT, NOTHING),
                    "length": (TEXT, NOTHING),
                    "figures": {...: FIGURE},
                }
            ],
        }
    ],
    "pairs": [
        {
            **dict.fromkeys(("latency", "first", "second"), TEXT),
            **{name: [WHOLE] for name in ("values_count", "independent_count")},
            **dict.fromkeys(("better", "likeness"), (TEXT, NOTHING)),
            **dict.fromkeys(("above_ns", "until_ns", "distance_at_ns"), (WHOLE, NOTHING)),
            **dict.fromkeys(RATIOS, (*NUMBER, NOTHING)),
        }
    ],
    "objections": {"here": [OBJECTION], "article": [OBJECTION]},
    "given": [
        {
            **dict.fromkeys(("label", "tool"), TEXT),
            "count": (WHOLE, NOTHING),
            **dict.fromkeys(("min_ns", "mean_ns", "max_ns"), (*NUMBER, NOTHING)),
            "notes": [TEXT],
        }
    ],
}
"""A mapping has exactly these keys (...: any), a list elements of this kind, everything else is of these types."""


def faults(told: Any, schema: Any, place: str = "") -> Iterator[str]:
    if isinstance(schema, Optional):
        if told is not None:
            yield from faults(told, schema.schema, place)
    elif isinstance(schema, dict):
        if not isinstance(told, dict):
            yield f"{place}: no object"
            return
        wanted = set(told) if ... in schema else set(schema)
        yield from (f"{place}: {key}" for key in sorted(wanted ^ set(told)))
        for key in wanted & set(told):
            yield from faults(told[key], schema.get(key, schema.get(...)), f"{place}.{key}")
    elif isinstance(schema, list):
        if not isinstance(told, list):
            yield f"{place}: no list"
            return
        for at, each in enumerate(told):
            yield from faults(each, schema[0], f"{place}[{at}]")
    elif not isinstance(told, schema):
        yield f"{place}: {told!r}"


def names(schema: Any) -> Iterator[str]:
    if isinstance(schema, Optional):
        yield from names(schema.schema)
    elif isinstance(schema, dict):
        yield from (key for key in schema if key is not ...)
        yield from (name for each in schema.values() for name in names(each))
    elif isinstance(schema, list):
        yield from names(schema[0])


def encoded(name: str, outcomes: Sequence[CellOutcome], more: CampaignExtras = CampaignExtras()) -> dict[str, Any]:  # noqa: B008
    profile = campaign_cases.shortened(name)
    if profile.claims:
        profile = with_claims(profile, (ProfileLimit(90_000, 3_600_000_000_000),))
    told: dict[str, Any] = json.loads(encode_campaign(profile, outcomes, articles.load(profile.article), more))
    return told


@pytest.mark.parametrize("name", CASES)
def test_every_result_is_of_the_schema(name: str) -> None:
    more = CampaignExtras(
        [OtherToolResult("user task", "Xenomai latency", 7, 8_720, 32_945.5, None, ("a note",))], "rtproof run"
    )
    assert list(faults(encoded(name, CASES[name](), more), SCHEMA)) == []


def test_what_is_not_of_the_schema_is_noticed() -> None:
    told = encoded("ten-ms", campaign_cases.ten_ms())
    del told["cells"][0]["label"]
    told["cells"][0]["new"] = 1
    told["exit_code"] = "1"
    told["given"] = {}
    assert sorted(faults(told, SCHEMA)) == [".cells[0]: label", ".cells[0]: new", ".exit_code: '1'", ".given: no list"]


def test_every_key_is_documented() -> None:
    assert [name for name in dict.fromkeys(names(SCHEMA)) if f"`{name}`" not in PAGE] == []


def test_the_largest_latencies_are_those_of_the_table() -> None:
    outcomes = campaign_cases.bootlin()
    told = encoded("bootlin-timer", outcomes)
    largest = [
        f"{result['analysis']['pooled']['observed']['max_ns'] / 1_000:,.3f}"
        for cell in told["cells"]
        for result in cell["results"]
    ]
    profile = campaign_cases.shortened("bootlin-timer")
    page = campaign_page.campaign_sections(profile, outcomes, articles.load("bootlin"))
    (table,) = (block for block in page[0].blocks if isinstance(block, Table))
    at = table.header.index("max [us]")
    assert [row[at] for row in table.rows if not row[1].startswith("article")] == largest


def test_what_article_5_reads_from_its_curves_is_there() -> None:
    told = encoded("akamina", campaign_cases.akamina())
    assert told["cells"][0]["results"][0]["context_switch"] == {
        "values_count": 6_000,
        "least_ns": 4_000,
        "most_ns": 6_500,
        "interrupt": {"from_ns": 1_500, "to_ns": 2_000, "share_ratio": pytest.approx(0.4992, abs=1e-4)},
        "task": {"from_ns": 6_000, "to_ns": 8_000, "share_ratio": pytest.approx(0.9548, abs=1e-4)},
    }
    interrupt, preemption = told["pairs"]
    assert (interrupt["latency"], preemption["latency"]) == ("interrupt latency", "preemption latency")
    assert (interrupt["first"], interrupt["second"]) == ("unloaded", "loaded (comms)")
    assert (interrupt["better"], interrupt["distance_ratio"], interrupt["values_count"]) == (None, 0, [6_000, 6_000])


@pytest.mark.parametrize("name", CASES)
def test_all_forms_have_every_cell_of_every_table(name: str) -> None:
    """The page, table.md and the terminal's form say the same."""
    profile = campaign_cases.shortened(name)
    page = campaign_page.campaign_sections(profile, CASES[name](), articles.load(profile.article))
    whole = {form: report.render(form, "t", page).decode() for form in ("html", "markdown", "json")}
    html = re.sub(r"<[^>]*>", " ", whole["html"]).replace("&gt;", ">").replace("&#x27;", "'").replace("&quot;", '"')
    markdown = whole["markdown"].replace("\\", "")
    told = [block for section in page for block in section.blocks if isinstance(block, Table)]
    cells = [" ".join(cell.split()) for table in told for row in (table.header, *table.rows) for cell in row if cell]
    for form, text in (("html", html), ("markdown", markdown)):
        joined = " ".join(text.replace("&amp;", "&").replace("&lt;", "<").split())
        assert [cell for cell in cells if cell.replace("\\", "") not in joined] == [], form
    assert len(json.loads(whole["json"])["sections"]) == len(page)
