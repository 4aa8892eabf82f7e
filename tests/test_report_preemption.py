# SPDX-License-Identifier: Apache-2.0

from report_cases import loop, normal, response, row, several_summaries, tables
from stage_records import staged

from rtproof.judge.analyse import analyse
from rtproof.report.sections import stages

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


def test_without_samples_only_the_bins_tell() -> None:
    found = tables(stages.preemption_section(several_summaries()))[SWITCH]
    assert [each[0] for each in found.rows] == ["interrupt latency", "preemption latency", "from one bin to the other"]


def test_only_what_begins_in_an_interrupt_has_this_section() -> None:
    assert [stages.preemption_section(each) for each in (normal(), loop(), response())] == [[], [], []]
