# SPDX-License-Identifier: Apache-2.0
"""Several runs one after another, with agents that behave as they are told."""

import errno
import io
from pathlib import Path

import fake_agent
import pytest
from test_session import INFO

from rtproof.experiment import local_runner
from rtproof.experiment.local_runner import TargetCell, TargetCellEnd
from rtproof.run import session
from rtproof.run.live_view import LiveView
from rtproof.run.session import RunPlan
from rtproof.targets.local import LocalTarget


def cell(folder: Path, name: str, *behaviours: str) -> TargetCell:
    """A cell with a way for each behaviour of the agent."""
    ways = [
        (behaviour, RunPlan(folder / name, fake_agent.install(folder, behaviour), (), INFO)) for behaviour in behaviours
    ]
    return TargetCell(name, ways)


def run(*cells: TargetCell) -> tuple[list[TargetCellEnd], str]:
    out = io.StringIO()
    found = list(
        local_runner.run_cells(LocalTarget(), cells, lambda at, each: LiveView(out, f"{at} {each.name}", False))
    )
    return found, out.getvalue()


def test_the_first_way_that_can_be_had_is_taken(tmp_path: Path) -> None:
    (ended,), said = run(cell(tmp_path, "a", "refuses", "good", "late"))
    assert (ended.way, ended.refused, ended.failure) == (1, ("there is no CPU 99 on this machine",), "")
    assert "refuses can't be had here (there is no CPU 99 on this machine); good is tried instead" in said
    assert (tmp_path / "a" / "run.rtrec").exists()


@pytest.mark.parametrize(
    ("behaviours", "failure"),
    [
        (("refuses",), "there is no CPU 99 on this machine"),
        (("refuses", "refuses"), "there is no CPU 99 on this machine"),
        (("dies_early", "good"), "the agent was killed by SIGSEGV before it measured anything"),
    ],
)
def test_a_cell_that_cannot_be_measured_is_a_sentence_and_the_next_goes_on(
    behaviours: tuple[str, ...], failure: str, tmp_path: Path
) -> None:
    (failed, good), _ = run(cell(tmp_path, "a", *behaviours), cell(tmp_path, "b", "good"))
    assert (failed.outcome, failed.failure) == (None, failure)
    assert not (tmp_path / "a").exists()
    assert good.failure == ""
    assert good.outcome is not None


def test_different_refusals_are_all_told(tmp_path: Path) -> None:
    (ended,), _ = run(cell(tmp_path, "a", "refuses", "can_not_here"))
    assert ended.failure == (
        "none of its ways can be had here (refuses: there is no CPU 99 on this machine; "
        "can_not_here: the method can't run here: there is no tracer)"
    )


def test_where_the_last_way_lacks_nothing_its_reason_is_the_one(tmp_path: Path) -> None:
    (ended,), _ = run(cell(tmp_path, "a", "can_not_here", "refuses"))
    assert ended.failure == "there is no CPU 99 on this machine"


def test_an_agent_that_fails_in_the_end_is_kept_with_its_sentence(tmp_path: Path) -> None:
    (ended, killed), _ = run(cell(tmp_path, "a", "runs_out_of_space"), cell(tmp_path, "b", "dies"))
    assert ended.outcome is not None
    assert ended.failure == "no space left for the record"
    assert killed.failure.startswith("the agent was killed by SIGKILL; what it measured")


def test_a_cell_whose_files_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> session.AgentOutcome:
        raise OSError(errno.ENOSPC, "No space left on device", "agent.log")

    monkeypatch.setattr(session, "run_session", full)
    ended, _ = run(cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert [(each.outcome, each.failure) for each in ended] == [(None, "agent.log: No space left on device")] * 2


def test_ctrl_c_in_a_cell_skips_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "run_session", lambda *_: session.AgentOutcome(0, "", interrupted=True))
    (first, second), _ = run(cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert first.outcome is not None
    assert (second.outcome, second.failure) == (None, local_runner.NOT_MEASURED_INTERRUPTED)


def test_ctrl_c_between_cells_skips_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> session.AgentOutcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run_session", interrupted)
    ended, _ = run(cell(tmp_path, "a", "good"), cell(tmp_path, "b", "good"))
    assert [(each.outcome, each.failure) for each in ended] == [(None, local_runner.NOT_MEASURED_INTERRUPTED)] * 2
