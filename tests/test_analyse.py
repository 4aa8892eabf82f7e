# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import numpy as np
from analysis_records import BEGIN, MS, SECOND, block, end, fact, record
from stage_records import KERNEL, LOOP, fields_of, staged

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, State
from rtproof.record.contents import End, EndReason
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, write_series_samples


def test_a_clean_run_below_its_limit() -> None:
    made = record([block([9000] * 4000)], facts=(fact("duration_ns", 4000 * MS), fact("policy", "other")))
    analysis = analyse(made, Requirement(500_000, at_most_ns=1_000_000_000))
    assert analysis.doubts == ()
    assert analysis.verdict.state is State.PROVEN
    assert analysis.pooled.observed == analysis.summaries[0].observed
    assert analysis.record is made


def test_the_same_run_with_a_dead_load() -> None:
    blocks = [block([9000] * 4000)]
    made = record(blocks, end=end(blocks, EndReason.LOAD_DIED, "sched"))
    verdict = analyse(made, Requirement(500_000, at_most_ns=1_000_000_000)).verdict
    assert verdict.state is State.INVALID
    assert "load died" in verdict.reasons[0]


def test_one_late_activation_refutes_an_hourly_limit_in_a_short_run() -> None:
    analysis = analyse(record([block([9000] * 3999 + [600_000])]), Requirement(500_000))
    assert analysis.verdict.state is State.REFUTED


def test_an_empty_record_is_invalid() -> None:
    assert analyse(record([], [])).verdict.state is State.INVALID
    assert analyse(record([])).verdict.state is State.INVALID


def test_a_limit_judges_the_last_field_and_nothing_of_the_others_is_in_its_numbers() -> None:
    late_interrupts = staged({"irq": [600_000] * 3, "task": [5] * 3}, {"irq": [600_000] * 4, "task": [6] * 4})
    analysis = analyse(late_interrupts, Requirement(500_000))
    assert [(s.series.field, s.series.thread) for s in analysis.summaries] == [("task", 0), ("task", 1)]
    assert (analysis.pooled.observed.count, analysis.pooled.observed.max, analysis.pooled.expected) == (7, 6, 7)
    assert (analysis.verdict.exceedances_observed, analysis.verdict.episodes) == (0, ())
    assert "6 ns on thread 1" in dict(analysis.verdict.sentences)["MAX"]


def test_every_field_has_a_summary_and_neighbours_a_difference() -> None:
    analysis = analyse(staged({"irq": [1, 2], "task": [5, 7]}, {"irq": [3, 4], "task": [9, 10]}))
    assert [s.series.id for s in analysis.every] == [0, 1, 2, 3]
    stages = [(stage.series.field, stage.observed.count, stage.observed.max) for stage in analysis.stages]
    assert stages == [("irq", 4, 4), ("task", 4, 10)]
    assert analysis.stages[-1].observed == analysis.pooled.observed
    assert [(s.earlier, s.later, s.moments.max) for s in analysis.switches] == [("irq", "task", 6)]
    assert analysis.cycles is None


def test_one_field_is_the_only_stage() -> None:
    analysis = analyse(record([block([1, 2])]))
    assert [stage.observed for stage in analysis.stages] == [analysis.pooled.observed]
    assert [summary.series for summary in analysis.every] == [summary.series for summary in analysis.summaries]
    assert analysis.switches == ()


def test_a_loop_is_told_by_its_cycles() -> None:
    analysis = analyse(record([block([0] * 30, series=LOOP)], [LOOP]))
    assert analysis.cycles is not None
    assert (analysis.cycles.counted, analysis.cycles.period_ns) == (27, 10 * MS)


def test_a_file_with_several_fields_is_read_back_and_judged(tmp_path: Path) -> None:
    series = [each for thread in (0, 1) for each in fields_of(KERNEL, thread, ("irq", "user"))]
    irq = np.arange(9_000) % 700 + 1_000
    values = [irq, irq + 5_000, irq + 200, irq * 2 + 7_000]
    with RecordWriter(tmp_path / "run.rtrec") as writer:
        writer.begin(BEGIN)
        for each in series:
            writer.series(each)
        gaps = ([100, 8_000], [3, 1])
        totals = [write_series_samples(writer, *each, gaps) for each in zip(series, values, strict=True)]
        writer.end(End(10_000 * MS, EndReason.AS_ASKED, "", tuple(totals)))
    analysis = analyse(open_record(tmp_path / "run.rtrec"), Requirement(9_000, at_most_ns=SECOND))
    assert analysis.doubts == ()
    assert (analysis.pooled.expected, analysis.pooled.missed, analysis.pooled.observed.max) == (18_008, 8, 10_398)
    assert analysis.verdict.exceedances_observed == int((irq * 2 + 7_000 > 9_000).sum())
    (switch,) = analysis.switches
    assert (switch.moments.count, switch.unpaired, switch.backwards) == (18_000, 0, 0)
    assert (switch.moments.min, switch.moments.max) == (5_000, 1_699 + 6_800)
