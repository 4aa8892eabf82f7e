# SPDX-License-Identifier: Apache-2.0
"""A board out of reach between two runs: the commands wait for it, and nothing is started twice."""

from collections.abc import Callable

import pytest
from test_boards_text import ScriptedChannel

from rtproof.boards import background_run
from rtproof.boards.background_run import BackgroundRun, Place
from rtproof.boards.board_target import PatientShell
from rtproof.boards.shell import Answer, Channel, Shell
from rtproof.core import patience
from rtproof.core.errors import LinkError

PLACE = Place("/agents/rtproof-agent", "/runs/1")


class FlakyShell(Shell):
    """Loses its link as often as it is told, before or after the command ran. asked: the commands that ran."""

    name, binary = "board", True

    def __init__(self, *answers: Answer | None) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def start(self, command: str) -> Channel:
        raise NotImplementedError(command)

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
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
    assert PatientShell(flaky, 60, said.append).ask("uname -n").output == b"here\n"
    assert len(flaky.asked) == 3
    assert said[0] == "rtproof: no connection to board (no route); waiting for it"
    assert said[1].startswith("rtproof: connected to board again after")
    assert len(said) == 2


class LostChannel:
    """One that is lost at once. It takes what is sent, as a program does that still tries to connect."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def send(self, content: bytes) -> None: ...

    def end_input(self) -> None: ...

    def receive(self, timeout_s: float) -> bytes | None:
        self._then()
        raise LinkError("no route")

    def finish(self, timeout_s: float) -> Answer:
        raise AssertionError("it is lost")

    def close(self) -> None: ...


class ChannelShell(FlakyShell):
    """Has these channels, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.channels: list[Channel] = []

    def start(self, command: str) -> Channel:
        return self.channels.pop(0)


def followed(shell: ChannelShell) -> BackgroundRun:
    return BackgroundRun(shell, PLACE, 60, lambda: PLACE.agent)


def test_a_signal_that_was_lost_with_its_connection_is_sent_again() -> None:
    shell = ChannelShell()
    run = followed(shell)
    end = ScriptedChannel(b"")
    shell.channels = [LostChannel(run.interrupt), LostChannel(lambda: None), end]
    assert len(list(run.lines())) == 2  # the link was lost, and found again
    assert end.sent == [b"signal int\n"]
    assert run.wait() == 0


def test_a_kill_while_it_connects_gives_the_connection_up() -> None:
    shell = ChannelShell()
    run = followed(shell)
    shell.channels = [LostChannel(run.kill), ScriptedChannel(b"")]
    with pytest.raises(LinkError, match="no connection to board: no route"):
        list(run.lines())
    assert len(shell.channels) == 1


def test_a_run_whose_first_answer_was_lost_is_not_started_twice() -> None:
    there = Answer(1, b"", b"rtproof-agent: the folder /runs/1 cannot be made: File exists\n")
    flaky = FlakyShell(None, there)
    background_run.start(PatientShell(flaky, 60, lambda _: None), PLACE, ("run", "-o", "/runs/1/run.rtrec"))
    assert len(flaky.asked) == 2
