# SPDX-License-Identifier: Apache-2.0
"""A thread that never ran again, and values lost behind the last one kept, are in every table."""

from dataclasses import replace

import pytest
from analysis_records import MS, SECOND, SERIES, block, fact, record
from doubt_cases import clean

from rtproof import report
from rtproof.compare.run_metrics import figures_of
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement
from rtproof.lab.kernel_comparison import reading_of_analysis
from rtproof.record.contents import End, EndReason, Event, Record, SeriesTotals
from rtproof.report.blocks import Text
from rtproof.report.pages.campaign_table import METRICS, largest_latency_ns
from rtproof.report.sections.distribution import ccdf_section, cumulative_section, histogram_section
from rtproof.report.sections.numbers import percentiles_section
from rtproof.report.sections.timeline import timeline_section
from rtproof.schema.analysis_json import analysis_dict

RAN = 910
END_NS = 10 * SECOND
ASKED_NS = 8 * SECOND


def stalled(thread: int = 0, threads: int = 1) -> Record:
    """Ran for 910 ms; was to run for 8 s; the agent gave up at 10 s."""
    series = [replace(SERIES, id=number, thread=number) for number in range(threads)]
    blocks = [block([9_000, 11_000] * (RAN // 2 if one.thread == thread else 4_000), series=one) for one in series]
    totals = tuple(SeriesTotals(b.series, b.values.size, 0, 0) for b in blocks)
    return record(
        blocks,
        series,
        facts=(fact("duration_ns", ASKED_NS),),
        events=(Event(END_NS, thread, "stalled", f"the thread did not run any more; since_ns={RAN * MS}"),),
        end=End(END_NS, EndReason.AS_ASKED, "", totals),
    )


def analysed(made: Record) -> Analysis:
    return analyse(made, Requirement.usual(500_000, 60 * SECOND), 1)


def page(analysis: Analysis) -> str:
    return report.render("markdown", "a title", report.compose(analysis)).decode()


def test_every_due_time_until_the_end_that_was_asked_counts() -> None:
    summary = analysed(stalled()).pooled
    assert (summary.due, summary.obtained, summary.never_ran) == (8_000, RAN, 8_000 - RAN)
    assert summary.stalled_ns == END_NS - RAN * MS


def test_the_tables_of_a_report_have_it() -> None:
    shown = page(analysed(stalled()))
    assert "| thread 0 | 2 | 8,000 | 910 | 7,090 | 0 |" in shown
    assert "at least 9,090" in shown or "at least 9.09" in shown
    assert "No activation was missed" not in shown


@pytest.mark.parametrize("threads", [1, 2])
def test_what_holds_only_those_that_ran_says_so(threads: int) -> None:
    analysis = analysed(stalled(0, threads))
    told = "Not in here: 7,090 due times at the end of the run, for which their thread did not run. The latency"
    sections = (percentiles_section, histogram_section, ccdf_section, cumulative_section, timeline_section)
    for section in sections:
        first = section(analysis)[0]
        assert isinstance(first, Text), section.__name__
        assert first.paragraphs[0].startswith(told), section.__name__
        assert not any("Not in here" in str(block) for block in section(analysed(clean()))), section.__name__


def test_the_largest_is_at_least_the_stall() -> None:
    for made, thread in ((stalled(), 0), (stalled(1, 2), 1)):
        (said,) = [text for label, text in analysed(made).verdict.sentences if label == "MAX"]
        assert said.startswith(f"at least 9,090 ms on thread {thread}, which never ran again; of the activations")


def test_the_json_has_it() -> None:
    pooled = analysis_dict(analysed(stalled()))["pooled"]
    assert (pooled["expected_count"], pooled["missed_count"], pooled["stalled_count"]) == (8_000, 7_090, 7_090)
    assert pooled["stalled_least_ns"] == END_NS - RAN * MS
    assert analysis_dict(analysed(clean()))["pooled"]["stalled_least_ns"] is None


def test_what_was_surely_above_a_limit_counts_in_the_schedule() -> None:
    """Of 7,090 due times, one each ms until 8 s, the last was 2.001 s late when the agent gave up."""
    assert analysed(stalled()).verdict.exceedances_schedule == 7_090
    summary = analysed(stalled()).summaries[0]
    for limit_ns in (0, 2 * SECOND, 3 * SECOND, 9_089 * MS, 9_090 * MS, 9_091 * MS):
        late = [END_NS - (RAN + n) * MS for n in range(7_090)]
        assert summary.stalled_above(limit_ns) == sum(one > limit_ns for one in late)


@pytest.mark.parametrize("name", ["max", "longest"])
def test_profiles_comparisons_and_the_lab_have_it(name: str) -> None:
    found = analysed(stalled())
    assert largest_latency_ns(found.pooled).startswith("at least 9,090,000")
    assert METRICS[name].heading == "max [us]"
    assert figures_of(found).missed == 7_090
    assert (reading_of_analysis(found).missed, reading_of_analysis(found).max_ns) == (7_090, END_NS - RAN * MS)


def test_values_lost_at_the_end_count_as_lost() -> None:
    """The record has no due time behind the last value; the totals of the agent have these activations."""
    made = clean()
    assert made.end
    (total,) = made.end.totals
    lost = replace(made, end=replace(made.end, totals=(replace(total, lost=7),)))
    found = analysed(lost)
    assert (found.pooled.lost, found.pooled.due) == (7, total.obtained + 7)
    assert "lost" in [doubt.code for doubt in found.doubts]
    assert "totals" not in [doubt.code for doubt in found.doubts]


def test_a_run_that_ended_before_its_stall_has_none() -> None:
    made = stalled()
    assert made.end
    early = replace(made, end=replace(made.end, time_ns=RAN * MS))
    assert analysed(early).pooled.stalled == 0
    assert analysed(replace(made, end=None)).pooled.stalled == 0
