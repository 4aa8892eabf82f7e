# SPDX-License-Identifier: Apache-2.0
"""The application's loops in the JSON form; test_as_json.py holds the keys to their page."""

import json
from dataclasses import replace

from analysis_records import SERIES, record
from app_cases import APP, TABLE, US, app_record
from stage_records import fields_of

from rtproof.schema.analysis_json import app_dict, moments_dict
from rtproof.summary import loops
from rtproof.summary.summary_model import NO_MOMENTS


def test_the_table_of_article_3_is_in_it_for_all_threads_and_for_each() -> None:
    found = app_dict(app_record(TABLE, [(7, 8, 9)] * 4))
    assert found is not None
    first, second = found["threads"]
    assert (first["thread"], first["work"]["min_ns"], first["work"]["max_ns"]) == (0, 780 * US, 15_890 * US)
    assert (first["loop"]["values_count"], first["loop"]["max_ns"]) == (4, 6_271 * US)
    assert (second["thread"], second["error"]["mean_ns"], second["no_sleep_count"]) == (1, 7 * US, 0)
    assert first["loops_sum_ns"] == first["elapsed_ns"] == 20_260 * US
    assert found["work"]["values_count"] == 9
    assert (found["elapsed_ns"], found["holes_count"]) == (first["elapsed_ns"] + second["elapsed_ns"], 0)


def test_a_hole_is_counted_and_loops_without_sleep_are() -> None:
    found = app_dict(app_record([(0, 0, 4_999), (0, 0, 5_000), (1, 1, 5_001), (2, 2, 3)], gaps={2: 1}))
    assert found is not None
    assert (found["holes_count"], found["slack"]["values_count"], found["no_sleep_count"]) == (1, 2, 1)
    assert found["loops_sum_ns"] != found["elapsed_ns"]


def test_other_probes_and_summaries_have_none() -> None:
    made = app_record(TABLE)
    kept = replace(made, series=tuple(replace(each, has_samples=False) for each in made.series))
    assert [app_dict(each) for each in (record([]), record([], [SERIES]), kept)] == [None, None, None]


def test_of_no_loop_everything_is_unknown_and_still_json() -> None:
    found = app_dict(record([], fields_of(APP, 0, loops.LOOP_FIELDS)))
    assert found is not None
    assert json.loads(json.dumps(found, allow_nan=False))["work"] == moments_dict(NO_MOMENTS, "ns")
    assert (found["work"]["min_ns"], found["work"]["mean_ns"], found["threads"]) == (None, None, [])
