# SPDX-License-Identifier: Apache-2.0

from functools import partial
from pathlib import Path

import pytest
from run_folders import latencies, write_record, write_run

from rtproof.core.errors import UserError
from rtproof.experiment.stored_runs import AnalysedRun, find_runs, read_run, read_runs, whole_run
from rtproof.judge.analysis_model import Requirement


def largest(run: Path, result: AnalysedRun) -> tuple[str, int]:
    return run.name, result.analysis.pooled.observed.max


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [write_run(tmp_path / name, latencies(at, 2_000)) for at, name in enumerate(("b", "a", "c"))]


def test_a_folder_is_searched_for_runs_and_records_in_order(tmp_path: Path, runs: list[Path]) -> None:
    deep = write_run(tmp_path / "campaign" / "cells" / "1", latencies(7, 1_000))
    bare = write_record(tmp_path / "campaign" / "copied.rtrec", latencies(8, 1_000))
    (tmp_path / "campaign" / "report.html").write_text("no run")
    assert find_runs([tmp_path]) == [runs[1], runs[0], runs[2], deep, bare]


def test_paths_keep_their_order_and_a_run_named_twice_counts_once(tmp_path: Path, runs: list[Path]) -> None:
    assert find_runs([runs[2], tmp_path / "b", runs[2], tmp_path]) == [runs[2], runs[0], runs[1]]


def test_other_files_of_a_folder_are_runs_where_the_caller_says_so(tmp_path: Path) -> None:
    histogram = tmp_path / "one.hist"
    histogram.write_text("0 1\n")
    with pytest.raises(UserError, match="there is no run in the folder"):
        find_runs([tmp_path])
    assert find_runs([tmp_path], lambda path: path.suffix == ".hist") == [histogram]


def test_a_link_that_leads_in_a_circle_is_not_followed(tmp_path: Path, runs: list[Path]) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    assert find_runs([tmp_path]) == sorted(runs)


def test_a_missing_path_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="loop is a link to nothing"):
        find_runs([tmp_path / "loop"])
    with pytest.raises(UserError, match="gone does not exist"):
        find_runs([tmp_path / "gone"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: a run is a folder with a run\.rtrec"):
        find_runs([tmp_path / "empty"])


def test_runs_are_read_as_one_by_one_and_in_order(runs: list[Path]) -> None:
    read = read_runs(runs, largest)
    assert read.wanted == tuple(largest(run, read_run(run)) for run in runs)
    assert read.paths == tuple(runs)
    assert not read.failed


def test_a_whole_result_survives_the_way_between_processes(runs: list[Path]) -> None:
    results = read_runs(runs, whole_run).wanted
    for run, result in zip(runs, results, strict=True):
        assert result.analysis.pooled.observed == read_run(run).analysis.pooled.observed
        assert result.info is not None
        assert next(result.analysis.record.blocks(0)).values.size


def test_a_run_that_cannot_be_read_costs_the_others_nothing(tmp_path: Path, runs: list[Path]) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "run.rtrec").write_bytes(b"no record at all")
    read = read_runs([runs[0], torn, runs[1]], largest)
    assert [name for name, _ in read.wanted] == ["b", "a"]
    ((path, sentence),) = read.failed
    assert path == torn
    assert sentence.startswith(str(torn))
    assert "it has no valid BEGIN chunk" in sentence


def test_a_requirement_given_now_is_handed_on(runs: list[Path]) -> None:
    requirement = Requirement(1_000)
    read = read_runs(runs, whole_run, partial(read_run, later=(requirement,)))
    assert {result.analysis.verdict.requirement for result in read.wanted} == {requirement}


def test_no_runs_are_no_trouble() -> None:
    assert read_runs([], largest).wanted == ()
