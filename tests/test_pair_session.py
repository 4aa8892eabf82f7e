# SPDX-License-Identifier: Apache-2.0
"""Sessions with two agents that behave as they are told: who starts, who ends whom, and what is kept."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import fake_agent
import pytest
from run_folders import INFO
from test_run_session import Seen

from rtproof.core.errors import TargetError, UserError
from rtproof.record import run_folder, unfinished_run
from rtproof.record.contents import EndReason
from rtproof.record.reading import open_record
from rtproof.run import pair_session
from rtproof.run.live_view import LiveView
from rtproof.run.pair_session import PairOutcome, run_pair
from rtproof.run.session import RunPlan
from rtproof.targets.local import LocalProcess, LocalTarget


class Counted(LocalTarget):
    """This machine; ``processes`` are those that were started."""

    def __init__(self) -> None:
        self.processes: list[LocalProcess] = []

    def start(self, arguments: Sequence[str]) -> LocalProcess:
        self.processes.append(super().start(arguments))
        return self.processes[-1]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_session, "LEAVE_S", 300.0)


@pytest.fixture
def machine() -> Iterator[Counted]:
    """Both boards. Nothing of what was started on it is left."""
    made = Counted()
    yield made
    for process in made.processes:
        assert process._popen.poll() is not None, process._popen.args
        with pytest.raises(ProcessLookupError):
            os.killpg(process._popen.pid, 0)


def sides(tmp_path: Path, responder: str, generator: str, machine: LocalTarget) -> tuple[RunPlan, RunPlan]:
    agents = [fake_agent.install(tmp_path, each) for each in (responder, generator)]
    plan = RunPlan(machine, tmp_path / "run", agents[0], (), INFO)
    giving = replace(plan, agent=agents[1], record_name=run_folder.GENERATOR_NAME)
    return plan, giving


def run(tmp_path: Path, responder: str, generator: str, machine: LocalTarget, seen: Seen | None = None) -> PairOutcome:
    return run_pair(*sides(tmp_path, responder, generator, machine), LiveView(seen or Seen(), "0:00:01", False))


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "run").iterdir())


def end_of(tmp_path: Path, name: str) -> EndReason | None:
    end = open_record(tmp_path / "run" / name).end
    return end.reason if end else None


def test_the_responder_is_told_to_finish_when_the_generator_has(tmp_path: Path, machine: Counted) -> None:
    seen = Seen()
    outcome = run(tmp_path, "until_interrupted", "good", machine, seen)
    assert outcome.lost == ()
    assert names(tmp_path) == ["agent.log", "generator.log", "generator.rtrec", "run.json", "run.rtrec"]
    assert end_of(tmp_path, "run.rtrec") is EndReason.INTERRUPTED
    assert end_of(tmp_path, "generator.rtrec") is EndReason.AS_ASKED
    assert "measured as asked" in seen.getvalue()
    assert "ready" not in seen.getvalue()
    first, second = ([str(word) for word in process._popen.args] for process in machine.processes)  # type: ignore[union-attr]
    assert "until_interrupted" in first[0]
    assert "good" in second[0]


@pytest.mark.parametrize(
    ("responder", "generator", "begun"), [("until_interrupted", "refuses", 2), ("refuses", "good", 1)]
)
def test_who_refuses_leaves_nothing_and_no_generator_begins_without_its_responder(
    responder: str, generator: str, begun: int, tmp_path: Path, machine: Counted
) -> None:
    with pytest.raises(UserError, match=r"^there is no CPU 99 on this machine$"):
        run(tmp_path, responder, generator, machine)
    assert not (tmp_path / "run").exists()
    assert len(machine.processes) == begun


class Absent(Counted):
    """A machine on which the second program cannot be started."""

    def start(self, arguments: Sequence[str]) -> LocalProcess:
        if self.processes:
            raise TargetError("the board is gone")
        return super().start(arguments)


def test_a_generator_that_cannot_be_started_ends_the_responder(tmp_path: Path) -> None:
    machine = Absent()
    with pytest.raises(TargetError, match="the board is gone"):
        run(tmp_path, "until_interrupted", "good", machine)
    assert machine.processes[0]._popen.poll() is not None
    assert not (tmp_path / "run").exists()


def test_a_responder_that_dies_ends_the_generator(tmp_path: Path, machine: Counted) -> None:
    outcome = run(tmp_path, "dies_beside_another", "until_interrupted", machine)
    assert end_of(tmp_path, "generator.rtrec") is EndReason.INTERRUPTED
    assert outcome.responder is not None
    assert outcome.responder.killed_by == "SIGKILL"
    assert outcome.generator is not None
    assert not outcome.generator.interrupted


class LostProcess(LocalProcess):
    """A process on a board whose link is lost for good once it has said something."""

    def lines(self) -> Iterator[str]:
        for line in super().lines():
            yield line
            raise TargetError("no connection to the board: it is gone")

    def where(self) -> dict[str, str]:
        return {"record": "/there/run.rtrec"}

    def ended_how(self) -> str:
        return ""

    def stream_into(self, record: Path) -> bool:
        return False


class Lost(Counted):
    """A board with such a link."""

    def start(self, arguments: Sequence[str]) -> LostProcess:
        process = LostProcess(arguments)
        self.processes.append(process)
        return process

    def where(self, arguments: Sequence[str]) -> dict[str, str]:
        return {"record": "/there/run.rtrec"}

    def take_up(self, where: Mapping[str, str]) -> LostProcess:
        raise AssertionError(where)


def test_a_generator_whose_link_is_lost_can_be_fetched_later(tmp_path: Path, machine: Counted) -> None:
    """What the responder measured is here. The generator goes on without this host."""
    responder, generator = sides(tmp_path, "until_interrupted", "until_terminated", machine)
    lost = Lost()
    try:
        outcome = run_pair(responder, replace(generator, target=lost), LiveView(Seen(), "0:00:01", False))
        assert lost.processes[0]._popen.poll() is None
    finally:
        for process in lost.processes:
            process.kill()
            process.wait()
    assert outcome.lost == ("no connection to the board: it is gone",)
    assert outcome.generator is None
    assert end_of(tmp_path, "run.rtrec") is EndReason.INTERRUPTED
    assert unfinished_run.is_there(tmp_path / "run", run_folder.GENERATOR_NAME)
    assert not unfinished_run.is_there(tmp_path / "run")
    kept = unfinished_run.read(tmp_path / "run", run_folder.GENERATOR_NAME)
    assert kept.where == {"record": "/there/run.rtrec"}
