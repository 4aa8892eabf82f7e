# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from pathlib import Path

import click
import pytest
from analysis_records import SERIES, block, record
from trace_cases import TEXT, traced

from rtproof.cli import option_values
from rtproof.cli.main import main
from rtproof.experiment import exported_files
from rtproof.judge.analyse import analyse

NOTHING = {"trace": None, "trace_blocks": None, "duration": None, "samples": None, "period": None}


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ({}, "250ms"),
        ({"duration": "1h"}, "2s"),
        ({"duration": "1s"}, "100ms"),
        ({"samples": 10_000, "period": "5ms"}, "625ms"),
        ({"trace_blocks": "3s"}, "3s"),
    ],
)
def test_the_observer_traces_by_turns_in_as_many_blocks_as_the_length_allows(
    given: dict[str, object], blocks: str
) -> None:
    found = option_values.with_observer({**NOTHING, **given}, of_profile=False)
    assert found["trace_blocks"] == blocks


def test_chance_orders_the_turns_anew_in_each_run_unless_a_seed_is_given() -> None:
    drawn = {option_values.with_observer(NOTHING, of_profile=False)["trace"] for _ in range(20)}
    assert len(drawn) == 20
    assert all(0 <= int(trace.removeprefix("seed=")) < 1 << 32 for trace in drawn)
    assert option_values.with_observer({**NOTHING, "trace": "seed=5"}, of_profile=False)["trace"] == "seed=5"


def test_the_observer_keeps_what_shall_be_traced() -> None:
    found = option_values.with_observer({**NOTHING, "trace": "events=sched_switch"}, of_profile=False)
    assert found["trace"].startswith("events=sched_switch,seed=")


def test_the_observer_is_not_for_profiles() -> None:
    with pytest.raises(click.UsageError, match="not for a --profile"):
        option_values.with_observer(NOTHING, of_profile=True)


def test_a_profile_and_the_observer_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--observer", "--profile", "akamina"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_trace_and_samples_stand_beside_the_record(tmp_path: Path) -> None:
    sentences = exported_files.export_trace_files(tmp_path, analyse(traced()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["samples.csv", "trace.dat", "trace.txt"]
    assert (tmp_path / "trace.txt").read_text() == TEXT
    assert (tmp_path / "samples.csv").read_text().count("\n") == 4
    assert len(sentences) == 3


def test_what_cannot_be_written_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("mine")
    said = exported_files.export_trace_files(tmp_path, analyse(traced(**{"cpu0/raw": "no page"})))
    assert (tmp_path / "samples.csv").read_text() == "mine"
    assert (tmp_path / "trace.txt").exists()
    assert "no trace.dat: the record lost a part of its trace, so there is no trace.dat to be made of it" in said
    assert any(sentence.startswith("no samples.csv: ") and "exists already" in sentence for sentence in said)


def test_a_run_without_a_trace_leaves_no_files_beside_it(tmp_path: Path) -> None:
    assert exported_files.export_trace_files(tmp_path, analyse(record([block([1_000])]))) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_kept_no_samples_has_no_csv(tmp_path: Path) -> None:
    plain = replace(traced(), series=(replace(SERIES, has_samples=False),))
    exported_files.export_trace_files(tmp_path, analyse(plain))
    assert not (tmp_path / "samples.csv").exists()
