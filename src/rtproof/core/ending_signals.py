# SPDX-License-Identifier: Apache-2.0
"""End as Ctrl-C does when this program is told to end, so that a board is given back and nothing is left behind."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile. A signal that is ignored, as under nohup, stays ignored.

    Only the main thread can have handlers of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    changed = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])
