# SPDX-License-Identifier: Apache-2.0

from report_cases import missed, negative, normal, nothing, off_the_grid, one_sample, row, summary_only, tables, words

from rtproof.report.sections import numbers

DUE = "Activations"
OBSERVED = "Observed"
SCHEDULE = "Schedule"
SPREAD = "Offset"


def test_threads_and_their_pool_are_counted() -> None:
    due = tables(numbers.numbers_section(normal()))[DUE]
    assert [each[0] for each in due.rows] == ["thread 0", "thread 1", "all threads"]
    assert row(due, "thread 1")["CPU"] == "1"
    pooled = row(due, "all threads")
    assert (pooled["due"], pooled["ran"], pooled["missed"], pooled["missed of due"]) == ("6,000", "6,000", "0", "0 %")


def test_missed_activations_bring_the_schedule_view() -> None:
    found = tables(numbers.numbers_section(missed()))
    thread = row(found[DUE], "thread 0")
    assert (thread["due"], thread["ran"], thread["missed"], thread["missed of due"]) == (
        "3,810",
        "3,012",
        "798",
        "20.94 %",
    )
    assert row(found[OBSERVED], "thread 0")["n"] == "3,012"
    assert row(found[SCHEDULE], "thread 0")["n"] == "3,810"
    assert row(found[SCHEDULE], "thread 0")["max [us]"] == "400,000.000"


def test_without_missed_ones_the_schedule_is_not_repeated() -> None:
    blocks = numbers.numbers_section(normal())
    assert SCHEDULE not in tables(blocks)
    assert "No activation was missed" in words(blocks)


def test_values_before_their_time_stay_negative() -> None:
    thread = row(tables(numbers.numbers_section(negative()))[OBSERVED], "thread 0")
    assert (thread["min [us]"], thread["max [us]"]) == ("-3.835", "9.000")


def test_one_value_has_no_deviation() -> None:
    thread = row(tables(numbers.numbers_section(one_sample()))[OBSERVED], "thread 0")
    assert (thread["n"], thread["mean [us]"], thread["deviation [us]"]) == ("1", "4.321", "unknown")


def test_nothing_has_no_numbers() -> None:
    pooled = row(tables(numbers.numbers_section(nothing()))[OBSERVED], "all threads")
    assert (pooled["n"], pooled["min [ns]"], pooled["max [ns]"]) == ("0", "unknown", "unknown")


def test_a_summary_alone_gives_the_same_kinds_of_numbers() -> None:
    thread = row(tables(numbers.numbers_section(summary_only()))[OBSERVED], "thread 0")
    assert (thread["n"], thread["min [us]"], thread["mean [us]"], thread["max [us]"]) == (
        "3",
        "1.000",
        "27.000",
        "75.000",
    )


def test_offset_and_jitter_are_apart_and_drift_is_named_off_the_grid() -> None:
    assert "drift [ppm]" not in tables(numbers.numbers_section(normal()))[SPREAD].header
    thread = row(tables(numbers.numbers_section(off_the_grid()))[SPREAD], "thread 0")
    assert float(thread["drift [ppm]"].replace(",", "")) > 0
    assert float(thread["offset [us]"]) > 3
