# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a run: the agent is asked to finish, and everything it measured is kept."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rtproof.targets import Process

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        yield forwarder
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
