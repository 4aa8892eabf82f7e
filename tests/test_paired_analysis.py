# SPDX-License-Identifier: Apache-2.0
"""What is said of a run on two boards: the records of two guests, whose relay delayed 11 edges and dropped one."""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from run_folders import INFO

from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.experiment.stored_runs import AnalysedRun
from rtproof.record import run_folder
from rtproof.record.contents import EndReason, Record
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.summary.two_board_edges import edges_of_boards

RECORDS = Path(__file__).parent / "data" / "two_boards"
MS = 1_000_000
EDGES = 217
DELAYED = range(81, 92)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "run"
    shutil.copytree(RECORDS, place)
    return place


def limited(folder: Path, limit_ns: int) -> AnalysedRun:
    """Judged by a limit of which the user states that it was fixed before."""
    return stored_runs.read_run(folder, (Requirement(limit_ns, 60_000 * MS),), stated=True)


def text(result: AnalysedRun, form: str = "text") -> str:
    return " ".join(result.report(form).decode().split())


@pytest.mark.parametrize("limits", [(), (20 * MS,), (4 * MS, 60 * MS)])
def test_the_generators_record_alone_decides(folder: Path, limits: tuple[int, ...]) -> None:
    """A responder's record with other times changes neither a verdict nor the forecast."""
    asked = tuple(Requirement(limit, 60_000 * MS) for limit in limits)
    found = stored_runs.read_run(folder, asked, stated=True).analysis
    shutil.copy(folder / run_folder.GENERATOR_NAME, folder / run_folder.RECORD_NAME)
    other = stored_runs.read_run(folder, asked, stated=True).analysis
    assert other.pooled.observed.max > 100 * found.pooled.observed.max
    assert (other.verdict, other.verdicts, other.forecast) == (found.verdict, found.verdicts, found.forecast)


def test_the_verdict_is_of_the_generators_times(folder: Path) -> None:
    """The responder's own part was never above 10 ms. The dropped edge was waited for longer than 5 s."""
    analysis = limited(folder, 20 * MS).analysis
    assert analysis.pooled.observed.max < 10 * MS
    assert analysis.pooled.series.method == "respond_pattern"
    assert analysis.verdict.exceedances_observed is not None
    assert analysis.verdict.exceedances_observed >= len(DELAYED) + 1
    assert limited(folder, 1_000 * MS).analysis.verdict.exceedances_observed == 1


@pytest.mark.parametrize(
    ("limit_ns", "says"),
    [
        (60 * MS, "60 ms was exceeded once in 18.0 s"),
        (3 * MS, f"All {EDGES} edges in 18.0 s were above 3 ms"),
        (11 * MS, f"11 ms was exceeded by 132 of {EDGES} edges in 18.0 s"),
        (4_999 * MS, "4,999 ms was exceeded once"),
    ],
)
def test_only_edges_that_were_given_are_counted(folder: Path, limit_ns: int, says: str) -> None:
    """While the generator waited for the dropped edge, 83 more were due. They have no latency."""
    result = stored_runs.read_run(folder, (Requirement(limit_ns),), stated=True)
    told = text(result)
    assert says in told
    assert f"83 edges of {EDGES + 83} due were never given, and no latency is charged for them" in told


def test_a_limit_that_no_unanswered_edge_is_above_is_refused(folder: Path) -> None:
    """The dropped edge was given up after 5 s. A limit of 6 s would hold."""
    assert limited(folder, 4_999 * MS).analysis.verdict.exceedances_observed == 1
    with pytest.raises(UserError, match=r"^a limit of 5s cannot be judged with --generator"):
        limited(folder, 5_000 * MS)


def test_the_record_of_another_board_is_not_judged(folder: Path) -> None:
    """As when the two were swapped, or one was copied over the other."""
    shutil.copy(folder / run_folder.RECORD_NAME, folder / run_folder.GENERATOR_NAME)
    with pytest.raises(UserError, match="a board that gave the edges: its method is respond_pattern"):
        stored_runs.read_run(folder)


def account_with(record: Record, line: str) -> Record:
    """The record, with one more line in the account of its lines."""
    changed = [
        replace(each, content=each.content + line.encode()) if each.path == "gpio/thread0" else each
        for each in record.files
    ]
    return replace(record, files=tuple(changed))


def never_answered_at(record: Record) -> list[int]:
    responder = stored_runs.read_run(RECORDS).analysis.pooled
    return [int(ns) for ns in edges_of_boards(record, 0, responder).never_answered_ns]


def test_the_last_edge_is_unanswered_only_if_the_agent_says_so(folder: Path) -> None:
    """An edge of the warm-up without an answer is counted too, and is not in the record."""
    record = open_record(folder / run_folder.GENERATOR_NAME)
    (dropped,) = never_answered_at(record)
    assert never_answered_at(account_with(record, "unanswered 2\n")) == [dropped]
    assert never_answered_at(account_with(record, "cut_off 1\n"))[0] == dropped
    assert len(never_answered_at(account_with(record, "cut_off 1\n"))) == 2


def test_the_responder_is_not_doubted_for_ending_with_the_generator(folder: Path) -> None:
    analysis = stored_runs.read_run(folder).analysis
    assert analysis.record.end is not None
    assert analysis.record.end.reason is EndReason.INTERRUPTED
    assert not {"ended-early", "stalled"} & {doubt.code for doubt in analysis.doubts}


def test_what_is_wrong_with_the_generators_record_is_a_sentence(folder: Path) -> None:
    (folder / "generator.rtrec").write_bytes(b"nothing of the kind")
    with pytest.raises(UserError, match=r"generator\.rtrec is not a record"):
        stored_runs.read_run(folder)


@pytest.mark.parametrize("empty", [True, False])
def test_without_the_generators_record_nothing_is_judged(folder: Path, empty: bool) -> None:
    """The limits are about the response, which the responder's record does not have."""
    run_folder.write_run_info(folder, msgspec.structs.replace(INFO, generator="ssh"))
    (folder / "generator.rtrec").unlink()
    if empty:
        (folder / "generator.rtrec").touch()
    with pytest.raises(UserError, match=r"of the board that gave the edges is not in .* alone has"):
        stored_runs.read_run(folder)


def test_a_generators_record_that_was_cut_off_is_used_as_far_as_it_goes(folder: Path) -> None:
    place = folder / "generator.rtrec"
    content = place.read_bytes()
    place.write_bytes(content[: len(content) * 2 // 3])
    analysis = stored_runs.read_run(folder).analysis
    assert any(doubt.code == "truncated" and doubt.what.startswith("generator: ") for doubt in analysis.doubts)
    assert analysis.edges is not None
    assert 0 < analysis.edges.given < EDGES


def test_an_empty_record_of_the_generator_is_no_run_on_one_board(folder: Path) -> None:
    """100 ms was HELD by the responder's own times, without run.json. The generator had waited 5 s for an edge."""
    (folder / run_folder.GENERATOR_NAME).write_bytes(b"")
    with pytest.raises(UserError, match="the record of the board that gave the edges is not in"):
        limited(folder, 100 * MS)
