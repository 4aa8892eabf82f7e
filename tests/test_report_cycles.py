# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import block, fact, record
from report_cases import loop, normal, several_fields, tables, words
from stage_records import LOOP, staged

from rtproof.judge.analyse import analyse
from rtproof.report.sections import loops

CAPTION = "Cycles of 10 ms, from one run of the loop to the next; the first 1,000 are not counted"


def test_the_table_of_article_2() -> None:
    late = [0] * 1_001 + [13_000_000, 0] + [0] * 11_016
    blocks = loops.cycles_section(analyse(staged({"task": late}, series=LOOP)))
    table = tables(blocks)[CAPTION]
    assert table.header[:3] == ("cycles", "shorter than 8 ms", "longer than 12 ms")
    assert table.rows == (("11,018", "1", "1", "23.000", "-3.000", "1"),)
    assert "2 of 11,018 cycles were out of the band. That leaves a share of up to 0.00057 possible" in words(blocks)
    assert "1 long cycle had a short one directly behind" in words(blocks)


def test_cycles_of_several_threads_are_told_as_such() -> None:
    """Each leaves its own first cycles out, and each comes by one out of the band that often."""
    second = replace(LOOP, id=1, thread=1)
    blocks = [block([0] * 100, series=LOOP), block([0] * 100, series=second)]
    made = loops.cycles_section(analyse(record(blocks, [LOOP, second])))
    (caption,) = tables(made)
    assert caption.endswith("; the first of each thread, 18 in all, are not counted")
    assert "one every 605 ms of each loop (95 %" in words(made)


def test_a_loop_that_stopped_is_told_first() -> None:
    first = loops.cycles_section(loop())[0]
    assert words([first]).splitlines() == [
        "STALLED",
        "The loop stood still for 30.0 s: thread 0, from 30.000 s after measuring began, until the end.",
    ]


def test_one_that_went_on_is_told_too() -> None:
    late = [0] * 50 + [2_000_000_000 - 10_000_000 * at for at in range(201)] + [0] * 50
    said = words(loops.cycles_section(analyse(staged({"task": late}, series=LOOP))))
    assert "The loop stood still for 2.0 s: thread 0, from 0.490 s after measuring began, then it went on." in said


def test_no_cycle_is_no_number() -> None:
    blocks = loops.cycles_section(analyse(record([], [LOOP])))
    (table,) = tables(blocks).values()
    assert table.rows == (("0", "0", "0", "unknown", "unknown", "0"),)
    assert "nothing is known" in words(blocks)


def test_only_a_loop_has_cycles() -> None:
    assert [loops.cycles_section(each) for each in (normal(), several_fields())] == [[], []]


def test_a_band_of_its_own_is_in_the_header_and_a_proxy_is_called_one() -> None:
    told = (fact("probe_options", "low=9ms,high=15ms"), fact("proxy_of", "something better"))
    blocks = loops.cycles_section(analyse(staged({"task": [0] * 50}, series=LOOP, facts=told)))
    (table,) = tables(blocks).values()
    assert table.header[1:3] == ("shorter than 9 ms", "longer than 15 ms")
    assert "A proxy of something better." in words(blocks)
    assert "proxy" not in words(loops.cycles_section(loop()))
