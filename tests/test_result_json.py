# SPDX-License-Identifier: Apache-2.0
"""The JSON of a record and of a campaign: its numbers, and its page in docs/."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import json_schema
import pytest
from analysis_records import SERIES, block, fact, record
from stage_records import LOOP

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Event, Series
from rtproof.record.requirement import Requirement
from rtproof.schema import encoder
from rtproof.schema.encoder import Shape, encode, plain
from rtproof.schema.published import ANALYSIS_SCHEMA, ANALYSIS_VERSION, analysis_dict

DOCS = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()


def test_the_committed_page_is_the_one_that_the_tables_make(tmp_path: Path) -> None:
    page = tmp_path / "json-schema.md"
    page.write_text(re.sub(r"(writes from here: .*-->\n).*?(?=<!-- to here)", r"\1", DOCS, flags=re.DOTALL))
    json_schema.write(page)
    if page.read_text() != DOCS:
        pytest.fail("published keys have changed: run python tools/json_schema.py")


def test_a_value_without_a_table_is_refused() -> None:
    with pytest.raises(TypeError, match="Series has no form in JSON without a table of keys"):
        plain(SERIES)
    with pytest.raises(AttributeError, match="Series has no high_ns or high"):
        encode(SERIES, Shape("series", Series) | {"high_ns": "nothing"})


def test_no_key_is_left_out_of_a_list_in_silence() -> None:
    with pytest.raises(ValueError, match="not among the names: other"):
        encoder.table(Series, "one two=three", other="never published")


def test_what_is_not_finite_is_null() -> None:
    assert plain({"a": [1.5, float("inf"), float("nan")]}) == {"a": [1.5, None, None]}


UNITS = ("_ns", "_s", "_per_s", "_count", "_bytes", "_ratio", "_ppm")
NUMBERS_OF_THINGS = {"version", "exit_code", "id", "thread", "threads", "cpu", "series", "index", "tau"}
LOGARITHMS = {"log_e_proven", "log_e_refuted"}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    other = replace(SERIES, id=1, thread=1, on_grid=False)
    values = [9000 + i for i in range(999)] + [400_200_000]
    blocks = [block(values, {999: 400}), block(values[:99], series=other)]
    made = record(blocks, [SERIES, other], facts=(fact("warmup_ns", 0),))
    return analyse(made, Requirement(500_000, 3_600_000_000_000))


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
    assert (back["schema"], back["version"]) == (ANALYSIS_SCHEMA, ANALYSIS_VERSION) == ("rtproof.analysis", 8)
    assert back["verdict"]["state"] == "REFUTED"
    assert back["threads"][0]["schedule"]["values_count"] == 1400
    assert back["threads"][0]["observed"]["max_ns"] == 400_200_000
    assert [doubt["code"] for doubt in back["doubts"]] == ["samples-missing", "warm-up"]
    assert back["pooled"]["top"][0] == {"series": 0, "index": 999, "due_ns": 999_000_000, "value_ns": 400_200_000}


def test_every_number_has_its_unit_in_its_key(analysis: Analysis) -> None:
    for key, value in keys(analysis_dict(analysis)):
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert key.endswith(UNITS) or key in NUMBERS_OF_THINGS | LOGARITHMS, key


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
