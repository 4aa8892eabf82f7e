# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from typing import Any

from test_histogram_only import FILE, HOUR, SATURATED, US

from rtproof import report
from rtproof.judge.analysis_model import Requirement
from rtproof.judge.histogram_only import HistogramOnly, summarise_histogram
from rtproof.report.blocks import Table, Text
from rtproof.report.pages.histogram_page import histogram_sections, histogram_title
from rtproof.schema.histogram_json import histogram_dict
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart


def text(said: HistogramOnly) -> str:
    return " ".join(report.render("text", histogram_title(said), histogram_sections(said)).decode().split())


def test_it_says_what_remains_with_n_and_what_does_not() -> None:
    shown = text(summarise_histogram(SATURATED, [Requirement(100 * US)]))
    assert shown.startswith("rtproof: UNDECIDED")
    for words in (
        "between 1 and 10 of 1,000 samples above 100 us",
        "if samples were independent",
        "the largest of 1,000 samples",
        "at most 50 %",
        "if it is alike (an equal maximum does not exceed it)",
        "95 % each, not both together",
        "5 % for m = 52",
        "at least 50.000",
        "a histogram has no time order",
        "may be missing from this run",
    ):
        assert words in shown, words
    for forbidden in ("worst case is", "guaranteed", "safe"):
        assert forbidden not in shown


def test_clean_histogram_tells_what_it_would_show_if_it_was_whole() -> None:
    shown = text(summarise_histogram(replace(FILE, duration_ns=10 * HOUR), [Requirement(100 * US)]))
    assert "0 of 1,000 samples above 100 us" in shown
    assert "only if it measured without a gap for the 10 h that it tells" in shown
    assert "once per 2 h 52 min" in shown


def test_threads_and_settings_of_the_tool_are_listed() -> None:
    told = replace(
        FILE, parts=(ImportedPart(0, 3, 1_000, 20 * US, 25 * US, 90 * US, 0),), priority=80, facts=(("a", "b"),)
    )
    shown = text(summarise_histogram(told))
    assert "thread 0 3 1,000 0 20.000 25.000 90.000" in shown
    assert "priority 80" in shown


def test_file_of_nothing_but_its_ends_has_a_report() -> None:
    shown = text(summarise_histogram(replace(FILE, histogram=None, count=None)))
    assert "quantiles and shares" in shown


def test_strings_of_the_file_cannot_hide_in_a_page() -> None:
    said = summarise_histogram(replace(FILE, title="<script>alert(1)</script>", facts=(("k", "<img src=x>"),)))
    page = report.render("html", histogram_title(said), histogram_sections(said)).decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_json_has_the_same_figures() -> None:
    told: Any = histogram_dict(summarise_histogram(SATURATED, [Requirement(100 * US)]))
    assert (told["state"], told["exit_code"], told["beyond_scale_count"]) == ("UNDECIDED", 4, 10)
    (limit,) = told["limits"]
    assert (limit["above_least_count"], limit["above_most_count"]) == (1, 10)
    assert [q["beyond_scale"] for q in told["quantiles"]] == [False, False, False, True, True, True, True]


def test_a_file_that_was_cut_off_has_no_bound_where_it_has_no_value() -> None:
    cut = replace(FILE, overflow=None, max_ns=None)
    shown = text(summarise_histogram(cut, [Requirement(100 * US)]))
    assert "an unknown number of 1,000 samples above 100 us" in shown
    assert "no bound of their share" in shown
    assert "at least 0" not in shown
    assert "What it rests on" not in text(summarise_histogram(cut))


def test_what_the_file_lacks_stands_before_its_figures() -> None:
    def first(told: HistogramOnly) -> str:
        (verdict, *_) = histogram_sections(told)
        return " ".join(word for block in verdict.blocks if isinstance(block, Text) for word in block.paragraphs)

    saturated = first(summarise_histogram(replace(SATURATED, notes=("it skips what is late",))))
    assert "10 of 1,000 samples lie beyond its scale" in saturated
    assert "it skips what is late" in saturated
    assert "is not told" in first(summarise_histogram(replace(SATURATED, overflow=None)))
    assert "scale" not in first(summarise_histogram(replace(FILE, overflow=0, notes=())))


def test_nothing_follows_from_the_maximum_of_a_file_that_contradicts_itself() -> None:
    shown = text(summarise_histogram(replace(FILE, faults=("its figures differ",)), [Requirement(100 * US)]))
    assert "so that nothing follows from it" in shown
    assert "probability" not in shown


def test_the_state_is_the_headline_and_the_tool_s_own_figures_are_all_told() -> None:
    given = replace(FILE, min_ns=8_720, mean_ns=32_946, max_ns=106_589, overruns=1, mode_switches=2)
    verdict, remains, *_ = histogram_sections(summarise_histogram(given))
    first = verdict.blocks[0]
    assert isinstance(first, Text)
    assert (first.headline, first.paragraphs) == (
        "NOT ASKED",
        ("The run was measured; no limit was given to judge it by.",),
    )
    (told,) = [block for block in remains.blocks if isinstance(block, Table) and block.caption == "What the tool tells"]
    rows = {row[0]: row[1] for row in told.rows}
    assert [rows[name] for name in ("smallest", "mean", "largest")] == ["8.720 us", "32.946 us", "106.589 us"]
    assert (rows["overruns"], rows["mode switches (msw)"]) == ("1", "2")
    assert "smallest" not in [row[0] for row in _told_of(replace(given, min_ns=None))]


def _told_of(given: ImportedHistogram) -> list[tuple[str, ...]]:
    _, remains, *_ = histogram_sections(summarise_histogram(given))
    return [row for block in remains.blocks if isinstance(block, Table) for row in block.rows if len(row) == 2]
