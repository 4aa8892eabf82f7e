# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import cycle, islice

import pytest
from app_cases import APP, TABLE, app_record, whole
from hypothesis import given
from hypothesis import strategies as st
from report_cases import (
    plots,
    response,
    row,
    several_fields,
    system_file,
    tables,
    words,
)
from stage_records import LOOP, staged, stimuli, usual

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment, Record
from rtproof.report.sections import answers, loops, stages

TIMES = "What loops took"
EACH = "Sleep and slack of each thread"


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
    assert "by at most 1,273 us per loop." in words(blocks)
    moving = replace(app_record(TABLE), series=tuple(replace(each, external=True) for each in app_record(TABLE).series))
    assert "per loop" not in words(loops.app_section(analyse(moving)))
    assert "per loop" not in words(loops.app_section(analyse(app_record(TABLE[:1]))))


@given(st.lists(st.integers(0, 20_000), min_size=2, max_size=40))
def test_no_loop_is_off_the_period_by_more_than_tops_vary(late: list[int]) -> None:
    loops = whole(app_record([(top, top, top + 1) for top in late]))
    off = abs(loops.loop_ns[:-1] - APP.period_ns)
    assert off.max() <= loops.error_ns.max() - loops.error_ns.min()


def test_each_thread_has_its_slack() -> None:
    found = tables(loops.app_section(analyse(app_record(TABLE, TABLE[:2]))))[EACH]
    second = row(found, "thread 1")
    assert (second["loops"], second["smallest slack [us]"]) == ("2", "3,950.000")


def test_a_thousand_loops_are_points_and_more_an_envelope() -> None:
    plot, _top, _work = plots(loops.app_section(analyse(many(1_000))))
    (curve,) = plot.curves
    assert (curve.name, len(curve.x)) == ("thread 0", 999)
    assert plot.says.startswith("The time from the top of each loop to the next.")
    assert plot.y_ends == (3_727 - 2_544 / 20, 6_271 + 2_544 / 20)
    plot, _top, _work = plots(loops.app_section(analyse(many(10_000))))
    longest, shortest = plot.curves
    assert (longest.name, shortest.name) == ("thread 0 longest", "thread 0 shortest")
    assert len(longest.x) == len(shortest.x) == 500
    assert (max(longest.y), min(shortest.y)) == (6_271.0, 3_727.0)
    assert "shortest and the longest of each 20 loops" in plot.says


CAPTION = "Cycles of 10 ms, from one run of the loop to the next; the first 1,000 are not counted"


def test_the_table_of_article_2() -> None:
    late = [0] * 1_001 + [13_000_000, 0] + [0] * 11_016
    blocks = loops.cycles_section(analyse(staged({"task": late}, series=LOOP)))
    table = tables(blocks)[CAPTION]
    assert table.header[:3] == ("cycles", "shorter than 8 ms", "longer than 12 ms")
    assert table.rows == (("11,018", "1", "1", "23.000", "-3.000", "1"),)
    assert "2 of 11,018 cycles were out of the band. That leaves a share of up to 0.00057 possible" in words(blocks)
    assert "1 long cycle had a short one directly behind" in words(blocks)
    (plot,) = plots(blocks)
    assert ([marker.at for marker in plot.markers], plot.foremost) == ([8.0, 12.0], True)
    assert plot.y_ends is not None
    assert (plot.y_ends[0] < -3, plot.y_ends[1] > 23) == (True, True)


STAGES = "Lateness of each stage"
INTERRUPT, SCHEDULER = "due time to irq: interrupt latency", "irq to task: rest of the handler, scheduler"
DURATIONS = "Duration of each stage of the same activation, of all activations"


def test_every_stage_has_a_row_and_so_has_every_difference() -> None:
    made = staged({"irq": [1_000, 2_500], "thread": [3_000, 4_000], "user": [9_000, 9_001]})
    found = tables(stages.stages_section(analyse(made)))
    interrupt, user = row(found[STAGES], "irq"), row(found[STAGES], "user")
    assert list(interrupt.values())[2:5] == ["2", "1.000", "1.750"]
    assert interrupt["max [us]"] == "2.500"
    assert (user["clock read"], user["max [us]"]) == ("in the task of user space", "9.001")
    to_interrupt, to_scheduler, to_user = found[DURATIONS].rows
    assert [to_interrupt[0], to_scheduler[0], to_user[0]] == [
        "due time to irq: interrupt latency",
        "irq to thread: rest of the handler, scheduler",
        "thread to user: way to user space",
    ]
    assert (to_interrupt[-1], to_scheduler[2], to_user[2]) == ("2.500", "1.500", "5.001")


@pytest.mark.parametrize(("late", "planted_us"), [(INTERRUPT, 400), (SCHEDULER, 300)])
def test_a_planted_delay_is_in_its_own_stage_of_all_activations(late: str, planted_us: int) -> None:
    """One of a thousand: in the largest value and in the 99.9 %, and not in the median of the stage or in the other."""
    irq, task = [2_000] * 5_000, [5_000] * 5_000
    for at in range(0, 5_000, 500):
        irq[at] += 400_000 * (late == INTERRUPT)
        task[at] = irq[at] + 3_000 + 300_000 * (late == SCHEDULER)
    found = tables(stages.stages_section(analyse(staged({"irq": irq, "task": task}))))[DURATIONS]
    for name, median in {INTERRUPT: 2.0, SCHEDULER: 3.0}.items():
        most = median + planted_us if name == late else median
        told = row(found, name)
        assert told["n"] == "5,000"
        assert [float(told[f"{key} [us]"]) for key in ("median", "p99", "p99.9", "max")] == [median, median, most, most]


def test_a_percentile_that_n_does_not_carry_is_unknown() -> None:
    few = row(tables(stages.stages_section(several_fields()))[STAGES], "irq")
    assert (few["p99.999 [us]"], few["p99 [us]"] == "unknown") == ("unknown", False)
    many = row(tables(stages.stages_section(analyse(staged(usual(120_000)))))[STAGES], "task")
    assert float(many["p99 [us]"]) < float(many["p99.999 [us]"]) <= float(many["max [us]"])


EDGES = "Edges"
TIMES_RESPONSE = "How long answers took"


def test_answers_split_at_the_task() -> None:
    times = tables(answers.response_section(analyse(stimuli([(0, 20_000, 33_000), (31_000_000, 25_000, 30_000)]))))[
        TIMES_RESPONSE
    ]
    assert [each[0] for each in times.rows] == ["edge to task", "task to output", "edge to output"]
    assert [row(times, "task to output")[f"{key} [us]"] for key in ("min", "avg", "median", "p99.9", "max")] == [
        *("5.000", "9.000", "5.000", "unknown", "13.000")
    ]
    assert row(times, "edge to output")["max [us]"] == "33.000"


def test_an_edge_without_an_answer_took_longer_than_the_period() -> None:
    found = tables(answers.response_section(response()))
    assert found[EDGES].rows == (("100", "99", "1", "1 %", "0"),)
    unanswered = row(found[TIMES_RESPONSE], "edge to answer, unanswered")
    assert (unanswered["n"], unanswered["max [us]"]) == ("1", "> 30,000.000")


def test_an_unanswered_edge_waited_until_the_next_one_came_and_not_for_the_period_asked() -> None:
    often = [(at * 3_100_000, 20_000, 33_000) for at in range(101)]
    found = tables(answers.response_section(analyse(stimuli(often, unanswered=40))))
    assert row(found[TIMES_RESPONSE], "edge to answer, unanswered")["max [us]"] == "> 3,100.000"


SWITCH = (
    "Context switch from the bins that most samples lie in, 0.5 us wide for the interrupt and 2 us for the task, and "
    "exactly, event by event"
)


def test_the_context_switch_by_bins_and_by_events() -> None:
    values = {"irq": [2_100] * 97 + [5_000] * 3, "task": [10_500] * 97 + [11_000] * 3}
    found = tables(stages.preemption_section(analyse(staged(values))))[SWITCH]
    assert row(found, "interrupt latency")["dominant bin [us]"] == "2 to 2.5"
    latency = row(found, "preemption latency")
    assert (latency["dominant bin [us]"], latency["share of samples"]) == ("10 to 12", "100 %")
    assert row(found, "from one bin to the other")["dominant bin [us]"] == "7.5 to 10"
    event = row(found, "each event, irq to task")
    assert (event["dominant bin [us]"], event["share of samples"]) == ("8 to 10", "97 %")
    assert (event["min [us]"], event["max [us]"]) == ("6.000", "8.400")


LATMON = """\
role latmus
address 192.168.1.20:2306
client
outcome latmon sent all its figures
period_us 31000
bulks 1
samples 3
sum_ns 96000
min_ns 30900
max_ns 33700
overruns 2
sent 0
refused 0
dropped 0
strange 1
cell_30 1
"""


def spoken_by_latmon(account: str) -> Analysis:
    files = (system_file("latmon/thread0", account, Moment.END),)
    return analyse(stimuli([(0, 20_000, 33_000), (31_000_000, 25_000, 30_000)], files=files))


def test_what_latmon_measured_stands_beside_ours() -> None:
    blocks = answers.response_section(spoken_by_latmon(LATMON))
    table = tables(blocks)["Edge to answer, here and as the board with latmon measured it"]
    assert table.rows == (
        ("this run", "2", "30.000", "31.500", "33.000"),
        ("latmon at 192.168.1.20:2306", "3", "30.900", "32.000", "33.700"),
        ("difference", "", "0.900", "0.500", "0.700"),
    )
    said = words(blocks)
    assert "How it ended: latmon sent all its figures." in said
    assert "2 periods passed before an answer, or edges had none (overruns)." in said
    assert "1 of latmon's parts contradict themselves." in said
    assert "clients" not in said
    assert "sent away" not in said
