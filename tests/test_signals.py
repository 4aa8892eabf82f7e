# SPDX-License-Identifier: Apache-2.0
"""A signal is handed on at once, also where Python would tell of it only when the main thread has waited."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtproof.run.session import FORWARDED_SIGNALS, forwarding_signals


class Agent:
    """Says on a pipe that it was interrupted."""

    def __init__(self) -> None:
        self.asked, self._asking = os.pipe()

    def interrupt(self) -> None:
        os.write(self._asking, b"i")

    def terminate(self) -> None:
        os.write(self._asking, b"t")

    kill = terminate

    def lines(self) -> Iterator[str]:
        return iter(())

    def wait(self) -> int:
        return 0

    def close(self) -> None:
        os.close(self.asked)
        os.close(self._asking)


@pytest.mark.parametrize("number", FORWARDED_SIGNALS)
def test_a_signal_that_another_thread_takes_is_handed_on_at_once(number: signal.Signals) -> None:
    agent = Agent()
    with forwarding_signals() as forwarder:
        forwarder.process = agent
        other = threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), number))
        other.start()
        told = select.select([agent.asked], [], [], 30)[0]
        other.join()
    assert told == [agent.asked]
    assert os.read(agent.asked, 9) == b"i"
    agent.close()


def open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


def test_nothing_is_left_behind() -> None:
    handlers = {number: signal.getsignal(number) for number in (*FORWARDED_SIGNALS, signal.SIGURG)}
    threads = threading.active_count()
    files = open_files()
    with forwarding_signals():
        assert threading.active_count() == threads + 1
    assert {number: signal.getsignal(number) for number in handlers} == handlers
    assert threading.active_count() == threads
    assert open_files() == files
    assert signal.set_wakeup_fd(-1) == -1
