# SPDX-License-Identifier: Apache-2.0
"""A record alone, whose agent was given limits by hand: those were fixed before the run, and are judged."""

from pathlib import Path

import pytest
from analysis_records import fact
from click.testing import CliRunner
from record_cases import BEGIN, ON_GRID, latencies

from rtproof.cli.main import cli
from rtproof.experiment import stored_runs
from rtproof.judge.analysis_model import Requirement
from rtproof.record.contents import End, EndReason
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary.recorded_facts import requested_limits_ns

HOUR_NS = 3_600 * 10**9


def written(path: Path, limits: str) -> Path:
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.series(ON_GRID)
        writer.fact(fact("limits_ns", limits))
        feed = SeriesWriter(writer, ON_GRID)
        feed.add(latencies(1, 3_000))
        writer.end(End(3_100_000_000, EndReason.AS_ASKED, "", (feed.finish(),)))
    return path


def test_its_limits_are_judged_with_the_usual_time(tmp_path: Path) -> None:
    found = stored_runs.read_run(written(tmp_path / "a.rtrec", "500000,1000000")).analysis
    asked = [verdict.requirement for verdict in found.verdicts]
    assert asked == [Requirement.usual(limit, HOUR_NS) for limit in (500_000, 1_000_000)]
    assert [verdict.chosen_after for verdict in found.verdicts] == [False, False]
    (doubt,) = [doubt for doubt in found.doubts if doubt.code == "limit-of-record"]
    assert doubt.what == (
        "the agent was given the limits 500 us, 1,000 us before the run, but not how often that may be exceeded: "
        "at most once per 1 h is the usual requirement"
    )


def test_a_time_that_is_given_later_was_chosen_after_the_data(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", "500000")
    later = (Requirement.usual(500_000, HOUR_NS), Requirement.usual(500_000, HOUR_NS // 60))
    assert [v.chosen_after for v in stored_runs.read_run(record, later).analysis.verdicts] == [False, True]


@pytest.mark.parametrize("limits", ["", "x", "-5", "0", "9" * 30, "1e9", ","])
def test_what_is_no_limit_is_none(tmp_path: Path, limits: str) -> None:
    record = written(tmp_path / "a.rtrec", limits)
    assert requested_limits_ns(open_record(record)) == ()
    found = stored_runs.read_run(record).analysis
    assert [verdict.requirement for verdict in found.verdicts] == [None]
    assert "limit-of-record" not in [doubt.code for doubt in found.doubts]


def test_judge_takes_it_and_shows_the_limit(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", "500000")
    done = CliRunner().invoke(cli, ["judge", str(record)])
    assert done.exit_code in (3, 4), done.output
    assert "the limit 500 us before the run, but not how often that may be exceeded" in " ".join(done.output.split())
