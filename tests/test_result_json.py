# SPDX-License-Identifier: Apache-2.0
"""``result.json`` and ``table.md``: held to their schema, to their page in docs/, and to what the other forms say."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import campaign_cases
import json_schema
import pytest
from analysis_records import SERIES, block, fact, record
from report_cases import CASES
from stage_records import LOOP, VIRTUAL, staged
from test_summary_trace import run
from trace_cases import traced

from rtproof import articles, report
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.profiles import ProfileLimit
from rtproof.profiles.profile import with_claims
from rtproof.record.contents import Event, Series
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome, OtherToolResult
from rtproof.schema import published
from rtproof.schema.encoder import Key, Scope, Shape, encode, plain
from rtproof.schema.published import ANALYSIS_SCHEMA, ANALYSIS_VERSION, analysis_dict
from rtproof.summary.summary_model import Dependence, Quantile

DOCS = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()
PAGE = DOCS[DOCS.index("# The JSON form of a profile's cells") : DOCS.index("## A histogram of another tool")]
CASES_REPORT_CAMPAIGN_AS = {
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


@pytest.mark.parametrize("name", CASES_REPORT_CAMPAIGN_AS)
def test_every_result_is_of_the_schema(name: str) -> None:
    more = CampaignExtras(
        [OtherToolResult("user task", "Xenomai latency", 7, 8_720, 32_945.5, None, ("a note",))], "rtproof run"
    )
    assert list(faults(encoded(name, CASES_REPORT_CAMPAIGN_AS[name](), more), SCHEMA)) == []


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


@pytest.mark.parametrize("name", CASES_REPORT_CAMPAIGN_AS)
def test_all_forms_have_every_cell_of_every_table(name: str) -> None:
    """The page, table.md and the terminal's form say the same."""
    profile = campaign_cases.shortened(name)
    page = campaign_page.campaign_sections(profile, CASES_REPORT_CAMPAIGN_AS[name](), articles.load(profile.article))
    whole = {form: report.render(form, "t", page).decode() for form in ("html", "markdown", "json")}
    html = re.sub(r"<[^>]*>", " ", whole["html"]).replace("&gt;", ">").replace("&#x27;", "'").replace("&quot;", '"')
    markdown = whole["markdown"].replace("\\", "")
    told = [block for section in page for block in section.blocks if isinstance(block, Table)]
    cells = [" ".join(cell.split()) for table in told for row in (table.header, *table.rows) for cell in row if cell]
    for form, text in (("html", html), ("markdown", markdown)):
        joined = " ".join(text.replace("&amp;", "&").replace("&lt;", "<").split())
        assert [cell for cell in cells if cell.replace("\\", "") not in joined] == [], form
    assert len(json.loads(whole["json"])["sections"]) == len(page)


# The page is made of the tables of published keys.


def test_the_committed_page_is_the_one_that_the_tables_make(tmp_path: Path) -> None:
    page = tmp_path / "json-schema.md"
    page.write_text(re.sub(r"(writes from here: .*-->\n).*?(?=<!-- to here)", r"\1", DOCS, flags=re.DOTALL))
    json_schema.write(page)
    if page.read_text() != DOCS:
        pytest.fail("published keys have changed: run python tools/json_schema.py")


def test_a_key_that_changes_changes_the_page() -> None:
    changed = replace(published.PLAN, keys={**published.PLAN.keys, "new_count": Key("more", fixed=1)})
    assert json_schema.tables(published.PLAN) in DOCS
    assert json_schema.tables(changed) not in DOCS
    assert "| `new_count` | integer | more |" in json_schema.tables(changed)


@pytest.mark.parametrize("document", json_schema.DOCUMENTS, ids=lambda document: str(document.title))
def test_every_key_has_a_type_and_a_meaning(document: Shape) -> None:
    rows = [row.split(" | ") for row in json_schema.tables(document).splitlines() if row.startswith("| `")]
    assert rows
    for key, kind, meaning in rows:
        assert kind not in ("", "null"), key
        assert len(meaning) > len(" |"), key


def test_a_value_without_a_table_is_refused() -> None:
    with pytest.raises(TypeError, match="Series has no form in JSON without a table of keys"):
        plain(SERIES)
    with pytest.raises(AttributeError, match="Series has no high_ns or high"):
        encode(SERIES, Shape("series", Series) | {"high_ns": "nothing"})


def test_what_is_not_finite_is_null() -> None:
    assert plain({"a": [1.5, float("inf"), float("nan")]}) == {"a": [1.5, None, None]}


def test_virtual_time_leaves_out_the_intervals_of_quantiles() -> None:
    found = Quantile(0.5, 100, 7, 6, 8, 0.95, 0, 90, Dependence.ESTIMATED)
    board, virtual = (encode(found, published.QUANTILE, Scope(deterministic=each)) for each in (False, True))
    assert (board["low_ns"], board["dependence"], board["value_ns"]) == (6, "estimated", 7)
    gone = ("low_ns", "high_ns", "confidence_ratio", "effective_count", "dependence")
    assert virtual == {**board, **dict.fromkeys(gone)}


# The JSON form: strict JSON, units in the keys, and every key on its page.


PAGE_AS = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()
UNITS = ("_ns", "_s", "_per_s", "_count", "_bytes", "_ratio", "_ppm")
NUMBERS_OF_THINGS = {"version", "exit_code", "id", "thread", "threads", "cpu", "series", "index", "tau"}
LOGARITHMS = {"log_e_proven", "log_e_refuted"}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    other = replace(SERIES, id=1, thread=1, on_grid=False)
    values = [9000 + i for i in range(999)] + [400_200_000]
    blocks = [block(values, {999: 400}), block(values[:99], series=other)]
    made = record(blocks, [SERIES, other], facts=(fact("warmup_ns", 0),))
    return analyse(made, Requirement(500_000))


def keys(data: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield key, value
            yield from keys(value)
    elif isinstance(data, list):
        for value in data:
            yield from keys(value)


def test_it_is_strict_json_with_its_name_and_version(analysis: Analysis) -> None:
    text = json.dumps(analysis_dict(analysis), allow_nan=False)
    back = json.loads(text)
    assert (back["schema"], back["version"]) == (ANALYSIS_SCHEMA, ANALYSIS_VERSION) == ("rtproof.analysis", 4)
    assert back["verdict"]["state"] == "REFUTED"
    assert back["threads"][0]["schedule"]["values_count"] == 1400
    assert back["threads"][0]["observed"]["max_ns"] == 400_200_000
    assert [doubt["code"] for doubt in back["doubts"]] == ["warm-up"]
    assert back["pooled"]["top"][0] == {"series": 0, "index": 999, "due_ns": 999_000_000, "value_ns": 400_200_000}


def test_every_number_has_its_unit_in_its_key(analysis: Analysis) -> None:
    for key, value in keys(analysis_dict(analysis)):
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert key.endswith(UNITS) or key in NUMBERS_OF_THINGS | LOGARITHMS, key


def test_every_key_is_on_the_page(analysis: Analysis) -> None:
    named = set(re.findall(r"`([a-zA-Z_]+)`", PAGE_AS))
    for key, _ in keys(analysis_dict(analysis)):
        assert key in named or re.sub("_ns$", "_UNIT", key) in named, key


def test_what_n_does_not_carry_is_null(analysis: Analysis) -> None:
    quantiles = analysis_dict(analysis, (0.5, 0.9999))["threads"][0]["observed"]["quantiles"]
    assert [q["share_ratio"] for q in quantiles] == [0.5, 0.9999]
    assert quantiles[0]["value_ns"] == 9499
    assert (quantiles[1]["value_ns"], quantiles[1]["high_ns"]) == (None, None)


def test_an_empty_record_has_a_form_too() -> None:
    data = analysis_dict(analyse(record([], [])))
    assert json.loads(json.dumps(data, allow_nan=False))["verdict"]["exit_code"] == 3
    assert data["pooled"]["observed"]["mean_ns"] is None


def test_fields_are_told_apart(analysis: Analysis) -> None:
    assert (
        analysis_dict(analysis)["stages"],
        analysis_dict(analysis)["switches"],
        analysis_dict(analysis)["cycles"],
    ) == ([], [], None)
    several = analysis_dict(analyse(staged({"irq": [1_000] * 9, "task": [4_000] * 8 + [3_500]}, facts=(VIRTUAL,))))
    assert several["record"]["virtual_time"] == VIRTUAL.value
    largest = {each["field"]: each["observed"]["max_ns"] for each in several["stages"]}
    assert largest == {"irq": 1_000, "task": 4_000}
    (switch,) = several["switches"]
    assert (switch["earlier"], switch["later"], switch["values_count"]) == ("irq", "task", 9)
    assert (switch["min_ns"], switch["max_ns"]) == (2_500, 3_000)
    assert (switch["backwards_count"], switch["unpaired_count"]) == (0, 0)
    assert switch["quantiles"][0]["value_ns"] == 3_000
    assert [each["series"]["field"] for each in several["threads"]] == ["task"]


def test_cycles_of_a_loop_are_in_it() -> None:
    told = Event(9_000_000_000, 0, "stalled", "gone; since_ns=5000000000")
    found = analysis_dict(analyse(record([block([0, 5_000_000, 0] * 10, series=LOOP)], [LOOP], events=(told,))))[
        "cycles"
    ]
    assert (found["period_ns"], found["band_ratio"]) == (10**7, 0.2)
    assert (found["low_ns"], found["high_ns"]) == (8_000_000, 12_000_000)
    assert (found["ignored_count"], found["counted_count"]) == (2, 27)
    assert (found["short_count"], found["long_count"], found["catch_up_pairs_count"]) == (9, 9, 9)
    assert (found["min_ns"], found["max_ns"]) == (5_000_000, 15_000_000)
    assert found["most_out_of_band_ratio"] > 18 / 27
    stall = {"thread": 0, "since_ns": 5_000_000_000, "duration_ns": 4_000_000_000, "over": False}
    assert found["stalls"] == [stall]


def test_the_trace_and_what_it_adds_are_in_it() -> None:
    found = analysis_dict(analyse(traced()))["trace"]
    assert (found["recorded_count"], found["overwritten_count"], found["dropped_count"]) == (5, 4, 1)
    assert found["kinds"][0] == {"event": "sched_waking", "events_count": 2}
    observer = analysis_dict(analyse(run(1, 2_000)))["observer"]
    assert (observer["sets_count"], observer["refused"]) == (10, None)
    (field,) = observer["fields"]
    assert field["effects"][1]["low_ns"] <= 2_000 <= field["effects"][1]["high_ns"]
    for data in (found, observer):
        assert {
            key
            for key, _ in keys(data)
            if f"`{key.replace('_ns', '_UNIT')}`" not in PAGE_AS and f"`{key}`" not in PAGE_AS
        } == set()


@pytest.mark.parametrize("name", ["several_fields", "loop", "response", "application"])
def test_every_key_of_other_kinds_of_records_is_on_the_page(name: str) -> None:
    unknown = {
        key for key, _ in keys(analysis_dict(CASES[name]())) if f"`{key.replace('_ns', '_UNIT')}`" not in PAGE_AS
    }
    assert {key for key in unknown if f"`{key}`" not in PAGE_AS} == set()
