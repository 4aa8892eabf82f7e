# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a run: the agent is asked to finish, and everything it measured is kept."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rtproof.targets import Process

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POKE = signal.SIGURG
_PAUSES_S = (0.0, 0.05)
_OVER = b"\0"


class Forwarder:
    """Hands signals of this process on to the agent, each one more firmly: SIGINT, SIGTERM, then SIGKILL."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.received = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        """A signal handler; it prints nothing, because it may have interrupted a print."""
        if self.process is None:
            raise KeyboardInterrupt
        self.received += 1
        firmness = (self.process.interrupt, self.process.terminate, self.process.kill)
        firmness[min(self.received, len(firmness)) - 1]()


@contextmanager
def forwarding() -> Iterator[Forwarder]:
    """Forward signals while this lasts. Only the main thread may install handlers; in others nothing is forwarded."""
    forwarder = Forwarder()
    if threading.current_thread() is not threading.main_thread():
        yield forwarder
        return
    before = {number: signal.signal(number, forwarder.handle) for number in HANDLED}
    try:
        with _poked():
            yield forwarder
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _poked() -> Iterator[None]:
    """End the main thread's waiting at every signal.

    Python's handlers run between two steps of the main thread. A signal that comes when it is about to wait, or that
    another thread takes, would be handled when the wait is over: when the agent says something more.
    """
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    handler = signal.signal(_POKE, lambda number, frame: None)
    before = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    poker = threading.Thread(target=_poke, args=(receiving, threading.get_ident()), daemon=True)
    poker.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(sending, _OVER)
        poker.join()
        os.close(receiving)
        os.close(sending)
        signal.signal(_POKE, handler)


def _poke(receiving: int, thread: int) -> None:
    """Twice, since the first may come before the thread waits, too."""
    for number in iter(lambda: os.read(receiving, 1), _OVER):
        for pause_s in _PAUSES_S if number[0] != _POKE else ():
            time.sleep(pause_s)
            signal.pthread_kill(thread, _POKE)
