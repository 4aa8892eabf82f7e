# SPDX-License-Identifier: Apache-2.0

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from rtproof.core.errors import TargetError
from rtproof.vm.qemu_process import Monitor

GREETING: dict[str, Any] = {"QMP": {"version": {}}}


class FakeQemu:
    """Answers each command with the next of its messages, and remembers what it was asked."""

    def __init__(self, connection: socket.socket) -> None:
        self.asked: list[Any] = []
        self._connection = connection

    def answer(self, *answers: list[dict[str, Any]]) -> threading.Thread:
        thread = threading.Thread(target=self._serve, args=(answers,), daemon=True)
        thread.start()
        return thread

    def _serve(self, answers: tuple[list[dict[str, Any]], ...]) -> None:
        self.send(GREETING)
        with self._connection.makefile("r") as requests:
            for messages in ([{"return": {}}], *answers):
                request = requests.readline()
                if not request:
                    return
                self.asked.append(json.loads(request))
                self.send(*messages)
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def send(self, *messages: dict[str, Any]) -> None:
        self._connection.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


@pytest.fixture
def pair() -> Iterator[tuple[Monitor, FakeQemu]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Monitor(ours), FakeQemu(theirs)


def test_a_command_gives_its_answer_and_events_wait(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"event": "STOP"}, {"return": {"status": "paused"}}])
    assert monitor.command("query-status", key=1) == {"status": "paused"}
    assert [request["execute"] for request in fake.asked] == ["qmp_capabilities", "query-status"]
    assert fake.asked[1]["arguments"] == {"key": 1}
    assert monitor.happened("STOP", 0)
    assert not monitor.happened("STOP", 0)


def test_a_refusal_is_a_sentence(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"error": {"class": "GenericError", "desc": "no such thing"}}])
    with pytest.raises(TargetError, match="QEMU refuses to migrate: no such thing"):
        monitor.command("migrate")


def test_silence_is_a_sentence(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([], [])
    with pytest.raises(TargetError, match=r"does not answer to cont within 0.01 s"):
        monitor.command("cont", timeout_s=0.01)


def test_an_end_is_known_and_is_no_event(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"return": {}}])
    monitor.command("quit")
    assert not monitor.happened("STOP", 60)
    assert monitor.closed
    with pytest.raises(TargetError, match="QEMU ended"):
        monitor.command("cont")
