# SPDX-License-Identifier: Apache-2.0
"""The JSON of a record and of a campaign: its numbers, and its page in docs/."""

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
from stage_records import LOOP
from test_summary_trace import run
from trace_cases import traced

from rtproof import articles
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Event, Series
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome
from rtproof.schema import encoder, published
from rtproof.schema.encoder import Scope, Shape, encode, plain
from rtproof.schema.published import ANALYSIS_SCHEMA, ANALYSIS_VERSION, analysis_dict
from rtproof.summary.summary_model import Dependence, Quantile

DOCS = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()


def encoded(name: str, outcomes: Sequence[CellOutcome]) -> dict[str, Any]:
    profile = campaign_cases.shortened(name)
    told: dict[str, Any] = json.loads(
        encode_campaign(profile, outcomes, articles.load(profile.article), CampaignExtras())
    )
    return told


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
    assert [row[at] for row in table.rows] == largest


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


def test_the_committed_page_is_the_one_that_the_tables_make(tmp_path: Path) -> None:
    page = tmp_path / "json-schema.md"
    page.write_text(re.sub(r"(writes from here: .*-->\n).*?(?=<!-- to here)", r"\1", DOCS, flags=re.DOTALL))
    json_schema.write(page)
    if page.read_text() != DOCS:
        pytest.fail("published keys have changed: run python tools/json_schema.py")


@dataclass(frozen=True)
class Span:
    """A stretch of time, of which: nothing is known.

    begin, end: its ends; None: not known. begins and
    ends are whole. width: from the one to the other: in ns. why: "" if known

    Attributes:
        note: What the user says. It has
            two lines.
    """

    begin: int | None
    end: int | None
    width: int
    why: str
    note: str

    @property
    def half(self) -> int:
        """The half of it.

        Rounded.
        """
        return self.width // 2

    def words(self) -> str:
        """The whole in words."""
        return f"{self.begin} to {self.end}"


def test_a_docstring_says_what_attributes_mean() -> None:
    ends = "its ends; `null`: not known. begins and ends are whole"
    assert json_schema.attribute_meanings(Span) == {
        "begin": ends,
        "end": ends,
        "width": "from the one to the other: in ns",
        "why": '"" if known',
        "note": "what the user says. It has two lines",
        "half": "the half of it",
        "words": "the whole in words",
    }
    page = json_schema.keys_table(encoder.table(Span, "begin_ns half_ns=half words why?", half_ns="a half"))
    assert page.splitlines()[2:] == [
        f"| `begin_ns` | integer, null | {ends} |",
        "| `half_ns` | integer | a half |",
        "| `words` | text | the whole in words |",
        "| `why` | text, null | `null` if known |",
    ]


def test_a_model_within_another_is_written_by_the_table_of_its_class() -> None:
    pair = encoder.row(tuple[Span, str], "pair", span="the first", text="the second")
    tables = encoder.by_model(encoder.table(Span, "begin_ns words why? note?"))
    found = encode((Span(1, None, 3, "", "x"), ""), pair, Scope(tables=tables))
    assert found == {"span": {"begin_ns": 1, "words": "1 to None", "why": None, "note": "x"}, "text": ""}


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


def test_virtual_time_leaves_out_the_intervals_of_quantiles() -> None:
    found = Quantile(0.5, 100, 7, 6, 8, 0.95, 0, 90, Dependence.ESTIMATED)
    board, virtual = (encode(found, published.MODELS[Quantile], Scope(deterministic=each)) for each in (False, True))
    assert (board["low_ns"], board["dependence"], board["value_ns"]) == (6, "estimated", 7)
    gone = ("low_ns", "high_ns", "confidence_ratio", "effective_count", "dependence")
    assert virtual == {**board, **dict.fromkeys(gone)}


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
    assert (back["schema"], back["version"]) == (ANALYSIS_SCHEMA, ANALYSIS_VERSION) == ("rtproof.analysis", 7)
    assert back["verdict"]["state"] == "REFUTED"
    assert back["threads"][0]["schedule"]["values_count"] == 1400
    assert back["threads"][0]["observed"]["max_ns"] == 400_200_000
    assert [doubt["code"] for doubt in back["doubts"]] == ["samples-missing", "warm-up"]
    assert back["pooled"]["top"][0] == {"series": 0, "index": 999, "due_ns": 999_000_000, "value_ns": 400_200_000}


def test_every_number_has_its_unit_in_its_key(analysis: Analysis) -> None:
    for key, value in keys(analysis_dict(analysis)):
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert key.endswith(UNITS) or key in NUMBERS_OF_THINGS | LOGARITHMS, key


def test_what_n_does_not_carry_is_null(analysis: Analysis) -> None:
    quantiles = analysis_dict(analysis, (0.5, 0.9999))["threads"][0]["observed"]["quantiles"]
    assert [q["share_ratio"] for q in quantiles] == [0.5, 0.9999]
    assert quantiles[0]["value_ns"] == 9499
    assert (quantiles[1]["value_ns"], quantiles[1]["high_ns"]) == (None, None)


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
