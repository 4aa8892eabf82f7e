# SPDX-License-Identifier: Apache-2.0
from report_cases import loop, normal, response, row, several_fields, several_summaries, tables
from stage_records import staged, usual

from rtproof.analysis.analyse import analyse
from rtproof.report.sections import preemption

LATENCIES = "From the due time to the interrupt handler, and to the task"
SWITCH = "Context switch from the bins of 2 us that most samples lie in, and exactly, event by event"
SHARE = "99.999 % are not above [us]"


def test_the_threshold_is_given_where_n_carries_it() -> None:
    few = tables(preemption.render(several_fields()))[LATENCIES]
    assert row(few, "interrupt latency")[SHARE] == "n = 6,000 does not carry it"
    many = tables(preemption.render(analyse(staged(usual(120_000)))))[LATENCIES]
    latency = row(many, "preemption latency")
    assert 0 < float(latency[SHARE]) < float(latency["maximum [us]"])


def test_the_context_switch_by_bins_and_by_events() -> None:
    values = {"irq": [2_100] * 97 + [5_000] * 3, "task": [10_500] * 97 + [11_000] * 3}
    found = tables(preemption.render(analyse(staged(values))))[SWITCH]
    assert row(found, "interrupt latency")["dominant bin [us]"] == "2 to 4"
    latency = row(found, "preemption latency")
    assert (latency["dominant bin [us]"], latency["share of samples"]) == ("10 to 12", "100 %")
    assert row(found, "difference of the two bins")["dominant bin [us]"] == "8, give or take 2"
    event = row(found, "each event, irq to task")
    assert (event["dominant bin [us]"], event["share of samples"]) == ("8 to 10", "97 %")
    assert (event["min [us]"], event["max [us]"]) == ("6.000", "8.400")


def test_without_samples_only_the_bins_tell() -> None:
    found = tables(preemption.render(several_summaries()))[SWITCH]
    assert [each[0] for each in found.rows] == ["interrupt latency", "preemption latency", "difference of the two bins"]


def test_only_what_begins_in_an_interrupt_has_this_section() -> None:
    assert [preemption.render(each) for each in (normal(), loop(), response())] == [[], [], []]
