# SPDX-License-Identifier: Apache-2.0

from analysis_records import MS
from report_cases import missed, negative, normal, nothing, one_sample, summary_only, tables, words

from rtproof.report.sections import numbers
from rtproof.report.sections.numbers import Outlier, outliers_together


def outlier(due_ms: float, late_ms: float, thread: str = "thread 0") -> Outlier:
    return Outlier(thread, "0", 0, int(due_ms * MS), int(late_ms * MS))


def test_the_largest_come_first_with_time_thread_and_cpu() -> None:
    table = tables(numbers.outliers_section(normal()))["The largest of 6,000 activations that ran; due at"]
    assert len(table.rows) == numbers.SHOWN
    first = dict(zip(table.header, table.rows[0], strict=True))
    assert first["latency [us]"] == "1,250.000"
    assert (first["thread"], first["CPU"], first["activation"]) == ("thread 1", "1", "1,500")
    assert (first["due at [s]"], first["date and time (UTC)"]) == ("1.500250", "2023-11-14 22:13:21.500")
    latencies = [float(each[1].replace(",", "")) for each in table.rows]
    assert latencies == sorted(latencies, reverse=True)


def test_the_ones_behind_are_folded() -> None:
    rest = tables(numbers.outliers_section(normal()))["Those that follow"]
    assert rest.folded
    assert rest.rows[0][0] == str(numbers.SHOWN + 1)
    assert len(rest.rows) <= numbers.MORE


def test_outliers_that_were_late_at_the_same_time_share_a_letter() -> None:
    a, b, c = outlier(10, 5), outlier(12, 1, "thread 1"), outlier(14.5, 3, "thread 2")
    alone, touching = outlier(30, 1), outlier(31, 2)
    d, e = outlier(50, 2), outlier(51, 2)
    assert outliers_together([a, e, b, alone, touching, c, d]) == {a: "A", b: "A", c: "A", d: "B", e: "B"}


def test_letters_do_not_run_out() -> None:
    pairs = [outlier(at * 10 + shift, 5) for at in range(28) for shift in (0, 1)]
    letters = sorted(set(outliers_together(pairs).values()), key=lambda letter: (len(letter), letter))
    assert letters[0] == "A"
    assert letters[25:] == ["Z", "AA", "AB"]


def test_groups_across_threads_are_counted() -> None:
    said = words(numbers.outliers_section(normal()))
    assert "late at the same time" in said
    assert "across threads" not in words(numbers.outliers_section(missed()))


def test_early_ones_and_single_ones() -> None:
    (table, *_) = tables(numbers.outliers_section(negative())).values()
    assert table.rows[0][1] == "9.000"
    (table,) = tables(numbers.outliers_section(one_sample())).values()
    assert len(table.rows) == 1
    assert words(numbers.outliers_section(one_sample())) == ""


def test_without_any_there_is_no_section() -> None:
    assert numbers.outliers_section(nothing()) == []
    assert numbers.outliers_section(summary_only()) == []
