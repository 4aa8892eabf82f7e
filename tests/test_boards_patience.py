# SPDX-License-Identifier: Apache-2.0
"""A board out of reach between two runs: the commands wait for it, and nothing is started twice."""

import pytest

from rtproof.boards import background_run
from rtproof.boards.background_run import Place
from rtproof.boards.patient_shell import PatientShell
from rtproof.boards.shell import Answer, Channel, ask
from rtproof.core import patience
from rtproof.core.errors import LinkError, TargetError

PLACE = Place("/agents/rtproof-agent", "/runs/1")


class FlakyShell:
    """Loses its link as often as it is told, before or after the command ran. asked: the commands that ran."""

    name, binary = "board", True

    def __init__(self, *answers: Answer | None) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def start(self, command: str) -> Channel:
        raise NotImplementedError(command)

    def ask(self, command: str, given: bytes, timeout_s: float) -> Answer:
        self.asked.append(command)
        answer = self._answers.pop(0)
        if answer is None:
            raise LinkError("no route")
        return answer


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0.0,))


def test_a_command_waits_for_the_link_and_says_so_once() -> None:
    said: list[str] = []
    flaky = FlakyShell(None, None, Answer(0, b"here\n", b""))
    assert ask(PatientShell(flaky, 60, said.append), "uname -n").output == b"here\n"
    assert len(flaky.asked) == 3
    assert said[0] == "rtproof: no connection to board (no route); waiting for it"
    assert said[1].startswith("rtproof: connected to board again after")
    assert len(said) == 2


def test_a_link_that_stays_away_ends_it() -> None:
    with pytest.raises(LinkError, match="no connection to board: no route"):
        ask(PatientShell(FlakyShell(*[None] * 100_000), 0.01, lambda _: None), "uname -n")


def test_a_run_whose_first_answer_was_lost_is_not_started_twice() -> None:
    there = Answer(1, b"", b"rtproof-agent: the folder /runs/1 cannot be made: File exists\n")
    flaky = FlakyShell(None, there)
    background_run.start(PatientShell(flaky, 60, lambda _: None), PLACE, ("run", "-o", "/runs/1/run.rtrec"))
    assert len(flaky.asked) == 2


def test_a_run_that_cannot_be_started_says_why() -> None:
    full = Answer(1, b"", b"rtproof-agent: the folder /runs/1 cannot be made: No space left on device\n")
    with pytest.raises(TargetError, match=r"^board: the folder /runs/1 cannot be made: No space left on device$"):
        background_run.start(FlakyShell(full), PLACE, ("run",))
