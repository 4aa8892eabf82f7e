# SPDX-License-Identifier: Apache-2.0
"""The JSON form: strict JSON, units in the keys, and every key on its page."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from analysis_records import SERIES, block, fact, record
from report_cases import CASES
from stage_records import LOOP, VIRTUAL, staged
from test_observer import run
from trace_cases import traced

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.record.contents import Event
from rtproof.schema.analysis_json import ANALYSIS_SCHEMA, ANALYSIS_VERSION, analysis_dict

PAGE = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()
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
    assert (back["schema"], back["version"]) == (ANALYSIS_SCHEMA, ANALYSIS_VERSION) == ("rtproof.analysis", 3)
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
    named = set(re.findall(r"`([a-zA-Z_]+)`", PAGE))
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
            key for key, _ in keys(data) if f"`{key.replace('_ns', '_UNIT')}`" not in PAGE and f"`{key}`" not in PAGE
        } == set()


@pytest.mark.parametrize("name", ["several_fields", "loop", "response", "application"])
def test_every_key_of_other_kinds_of_records_is_on_the_page(name: str) -> None:
    unknown = {key for key, _ in keys(analysis_dict(CASES[name]())) if f"`{key.replace('_ns', '_UNIT')}`" not in PAGE}
    assert {key for key in unknown if f"`{key}`" not in PAGE} == set()
