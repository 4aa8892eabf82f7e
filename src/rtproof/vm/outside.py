# SPDX-License-Identifier: Apache-2.0
"""What article 1's second board and its scope do: edges on a guest's input from outside, answered on its output.

A generator inside of the guest would share its only processor, and the measured task would wait for it instead of for
the load. So edges come from this host, over the input of the board's ordinary GPIO chip. When they come is not
determined: they come at this host's pace, so a cell run again answers other edges. How late each answer is counts in
instructions of the guest, as everything does in virtual time. An edge waits until the one before has been answered: a
guest in virtual time can be many times slower than this host, and would be buried under them.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Thread

from rtproof.errors import TargetError
from rtproof.vm.edges import Lines, lines_of
from rtproof.vm.process import Guest

IN, OUT = 0, 1
PROBE = f"gpio:chip=0,in={IN},out={OUT}"
"""Answers on one line of the board's chip what comes on the other."""
PACE_S = 0.002
"""From an answer to the next edge, by this host's clock: some hundred of them in a second of a guest under load."""
PATIENCE_S = 0.5
"""Before the probe has taken the lines, and after, nobody answers."""


@contextmanager
def edges_beside(guest: Guest) -> Iterator[None]:
    """Edges while the caller attends to the guest and ends it."""
    with lines_of(guest) as lines:
        giver = Thread(target=_give, args=(guest, lines), daemon=True)
        giver.start()
        try:
            yield
        finally:
            giver.join(2 * PATIENCE_S)


def _give(guest: Guest, lines: Lines) -> None:
    with suppress(TargetError, OSError):
        for number in count(1):
            if not guest.alive():
                return
            lines.answer(IN, number % 2 == 1, OUT, PATIENCE_S)
            _rest(lines)


def _rest(lines: Lines) -> None:
    """Other changes of outputs that come meanwhile are of no interest."""
    while lines.change(PACE_S):
        pass
