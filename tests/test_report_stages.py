# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from app_cases import APP, TABLE, app_record, whole
from hypothesis import given
from hypothesis import strategies as st
from report_cases import row, system_file, tables, words
from stage_records import staged, stimuli

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment
from rtproof.report.sections import answers, stages


def test_nothing_is_said_per_loop_of_targets_that_move_or_of_a_single_loop() -> None:
    moving = replace(app_record(TABLE), series=tuple(replace(each, external=True) for each in app_record(TABLE).series))
    assert "per loop" in words(stages.app_section(analyse(app_record(TABLE))))
    assert "per loop" not in words(stages.app_section(analyse(moving)))
    assert "per loop" not in words(stages.app_section(analyse(app_record(TABLE[:1]))))


@given(st.lists(st.integers(0, 20_000), min_size=2, max_size=40))
def test_no_loop_is_off_the_period_by_more_than_tops_vary(late: list[int]) -> None:
    loops = whole(app_record([(top, top, top + 1) for top in late]))
    off = abs(loops.loop_ns[:-1] - APP.period_ns)
    assert off.max() <= loops.error_ns.max() - loops.error_ns.min()


STAGES = "Lateness of each stage"
INTERRUPT, SCHEDULER = "due time to irq: interrupt latency", "irq to task: rest of the handler, scheduler"
DURATIONS = "Duration of each stage of the same activation, of all activations"


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


TIMES_RESPONSE = "How long answers took"


def test_an_unanswered_edge_waited_until_the_next_one_came_and_not_for_the_period_asked() -> None:
    often = [(at * 3_100_000, 20_000, 33_000) for at in range(101)]
    found = tables(answers.response_section(analyse(stimuli(often, unanswered=40))))
    assert row(found[TIMES_RESPONSE], "edge to answer, unanswered")["max [us]"] == "> 3,100.000"


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
