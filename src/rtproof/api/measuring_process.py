# SPDX-License-Identifier: Apache-2.0
"""The process in which ``rtproof.run`` measures: the command line, which ends with the process that asked for it."""

import os
import signal
import sys
import threading

from rtproof.__main__ import run

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run the command line with this process's arguments; the exit code.

    The process that asked may ignore or block the signals that end a run, as a shell's background job does. This one
    inherits that, so it is undone.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    asking = os.dup(sys.stdin.fileno())
    threading.Thread(target=_interrupt_at_end_of, args=(asking,), daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    return run()


def _interrupt_at_end_of(asking: int) -> None:
    """Send Ctrl-C to this process once the process that asked has gone. It writes nothing, so any input is the end."""
    os.read(asking, 1)
    os.kill(os.getpid(), signal.SIGINT)
