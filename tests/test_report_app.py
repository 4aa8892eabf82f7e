# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import cycle, islice

from app_cases import APP, TABLE, US, app_record, whole
from export_cases import slice_of_values
from hypothesis import given
from hypothesis import strategies as st
from report_cases import normal, nothing, only_plot, row, several_fields, tables, words
from stage_records import fields_of

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report.sections import loops
from rtproof.summary.loops import LOOP_FIELDS

TIMES = "What loops took"
EACH = "Sleep, slack and the sum of the loops"


def summary_only() -> Analysis:
    series = [replace(each, has_samples=False) for each in fields_of(APP, 0, LOOP_FIELDS)]
    columns = [[US * value for value in column] for column in zip(*TABLE, strict=True)]
    slices = tuple(slice_of_values(each, sorted(values)) for each, values in zip(series, columns, strict=True))
    return analyse(replace(app_record(TABLE), series=tuple(series), slices=slices, chunk_refs=(), end=None))


def many(count: int) -> Record:
    return app_record(list(islice(cycle(TABLE), count)))


def test_the_table_is_that_of_the_article() -> None:
    found = tables(loops.app_section(analyse(app_record(TABLE))))[TIMES]
    assert found.header == (
        "",
        "work duration [us]",
        "overall loop time [us]",
        "top of loop timing error [us]",
    )
    assert [each[0] for each in found.rows] == ["minimum", "maximum", "average", "standard deviation"]
    assert list(row(found, "maximum").values())[1:] == ["15,890.000", "6,271.000", "1,311.000"]
    assert list(row(found, "average").values())[1:] == ["3,884.400", "5,065.000", "346.000"]


def test_sleep_and_slack_are_told_and_what_a_limit_judges() -> None:
    overrun = [*TABLE, (11_200, 11_201, 12_000), (7_000, 7_001, 7_500)]
    said = words(loops.app_section(analyse(app_record(overrun))))
    assert "2 of 6 loops with another behind did not sleep; the smallest slack was -11.2 ms." in said
    assert "A limit judges the field end" in said


def test_what_all_tops_share_is_apart_from_what_varies() -> None:
    """Article 3's relation: no loop is off the period by more than the timing error varies."""
    blocks = loops.app_section(analyse(app_record(TABLE)))
    parts = tables(blocks)["How late the top was"]
    assert parts.header == ("", "top of loop timing error [us]")
    assert parts.rows == (
        ("constant: every loop, at least", "38.000"),
        ("varying: beyond that, average", "308.000"),
        ("varying: beyond that, maximum", "1,273.000"),
        ("varying: standard deviation", "551.105"),
    )
    assert "no loop differ from the period by more than 1,273 us." in words(blocks)
    moving = replace(app_record(TABLE), series=tuple(replace(each, external=True) for each in app_record(TABLE).series))
    assert "differ from the period" not in words(loops.app_section(analyse(moving)))
    assert "differ from the period" not in words(loops.app_section(analyse(app_record(TABLE[:1]))))


@given(st.lists(st.integers(0, 20_000), min_size=2, max_size=40))
def test_no_loop_is_off_the_period_by_more_than_tops_vary(late: list[int]) -> None:
    loops = whole(app_record([(top, top, top + 1) for top in late]))
    off = abs(loops.loop_ns[:-1] - APP.period_ns)
    assert off.max() <= loops.error_ns.max() - loops.error_ns.min()


def test_targets_that_move_are_said() -> None:
    made = app_record(TABLE)
    moving = replace(made, series=tuple(replace(each, on_grid=False, external=True) for each in made.series))
    said = [words(loops.app_section(analyse(each))) for each in (made, moving)]
    assert ["Targets kept to no grid" in each for each in said] == [False, True]


def test_each_thread_has_its_sums() -> None:
    found = tables(loops.app_section(analyse(app_record(TABLE, TABLE[:2]))))[EACH]
    first, second = row(found, "thread 0"), row(found, "thread 1")
    assert (first["sum of loop times [us]"], first["difference [us]"]) == ("20,260.000", "0.000")
    assert (second["loops"], second["smallest slack [us]"]) == ("2", "3,950.000")


def test_sums_that_cannot_be_are_said() -> None:
    assert "add up to" not in words(loops.app_section(analyse(app_record(TABLE))))
    said = words(loops.app_section(analyse(app_record(TABLE, gaps={1: 3}))))
    assert "Loop times of thread 0 add up to 16.5 ms, but from its first top to its last 35.2 ms passed: 1 hole" in said


def test_a_thousand_loops_are_points_and_more_an_envelope() -> None:
    plot = only_plot(loops.app_section(analyse(many(1_000))))
    (curve,) = plot.curves
    assert (curve.name, len(curve.x)) == ("thread 0", 999)
    assert plot.says.startswith("The time from the top of each loop to the next.")
    assert plot.y_ends == (3_727 - 2_544 / 20, 6_271 + 2_544 / 20)
    plot = only_plot(loops.app_section(analyse(many(10_000))))
    longest, shortest = plot.curves
    assert (longest.name, shortest.name) == ("thread 0 longest", "thread 0 shortest")
    assert len(longest.x) == len(shortest.x) == 500
    assert (max(longest.y), min(shortest.y)) == (6_271.0, 3_727.0)
    assert "shortest and the longest of each 20 loops" in plot.says


def test_of_many_threads_the_first_are_drawn() -> None:
    plot = only_plot(loops.app_section(analyse(app_record(*[TABLE] * 6))))
    assert [curve.name for curve in plot.curves] == [f"thread {thread}" for thread in range(4)]
    assert "Of 6 threads the first 4 are drawn." in plot.says


def test_a_summary_says_what_cannot_be_told() -> None:
    blocks = loops.app_section(summary_only())
    found = tables(blocks)[TIMES]
    assert list(row(found, "average").values())[1:] == ["3,884.400", "unknown", "346.000"]
    assert list(row(found, "maximum").values())[1:] == ["unknown", "unknown", "1,311.000"]
    assert "nor how many did not sleep" in words(blocks)


def test_one_loop_has_neither_loop_time_nor_slack() -> None:
    blocks = loops.app_section(analyse(app_record(TABLE[:1])))
    assert row(tables(blocks)[TIMES], "average")["overall loop time [us]"] == "unknown"
    assert "Only one loop is known" in words(blocks)


def test_other_runs_have_no_loops() -> None:
    assert [loops.app_section(each) for each in (normal(), nothing(), several_fields())] == [[]] * 3
