# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from report_cases import normal, nothing, row, tables, words, work

from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import WHOLE_RUN, Counter, Fact, Moment
from rtproof.report.sections import evidence

WORK = "Work done while measuring; a load that stands still is no load"


def with_counters(*counters: Counter) -> Analysis:
    analysis = normal()
    return replace(analysis, record=replace(analysis.record, counters=counters))


def test_work_is_counted_between_readings_and_per_second() -> None:
    done = row(tables(evidence.loads_section(normal()))[WORK], "load.sched")
    assert list(done.values())[1:] == ["messages", "3,000", "1,500", "1,000", "2,000"]


def test_a_load_that_stands_still_shows() -> None:
    done = row(tables(evidence.loads_section(with_counters(work(5, 5, 5))))[WORK], "load.sched")
    assert (done["work done"], done["per second"]) == ("0", "0")


def test_a_last_reading_that_comes_at_once_is_no_second() -> None:
    counter = replace(work(0, 1_000, 1_000), time_ns=np.array([0, 1_000_000_000, 1_000_000_100]))
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["slowest second"] == "1,000"


def test_a_load_says_how_it_runs_here() -> None:
    analysis = with_counters(work(0, 1))
    note = Fact(0, WHOLE_RUN, Moment.START, "load.sched.lack", "over 127.0.0.1: the kernel has no veth devices")
    noted = replace(analysis, record=replace(analysis.record, facts=(note,)))
    assert "load.sched: over 127.0.0.1: the kernel has no veth devices." in words(evidence.loads_section(noted))
    assert "load.sched:" not in words(evidence.loads_section(analysis))


@pytest.mark.parametrize("counter", [work(7), replace(work(7, 9), time_ns=np.array([5, 5]))])
def test_readings_that_give_no_rate(counter: Counter) -> None:
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["per second"] == "unknown"


def test_gauges_have_smallest_mean_and_largest() -> None:
    gauge = replace(work(40_000, 50_000, 45_000), grows=False, name="temperature.0", unit="millidegree")
    blocks = evidence.loads_section(with_counters(gauge))
    read = row(tables(blocks)["Readings, one a second"], "temperature.0")
    assert list(read.values())[1:] == ["millidegree", "3", "40,000", "45,000", "50,000"]
    assert "No load of rtproof's own ran" in words(blocks)


def test_without_counters_it_is_said_that_no_load_ran() -> None:
    assert words(evidence.loads_section(nothing())).strip() == evidence.NONE
