# SPDX-License-Identifier: Apache-2.0
from analysis_records import MS, block, end, fact, record

from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Requirement, State
from rtproof.record import EndReason


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
