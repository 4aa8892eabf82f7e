# SPDX-License-Identifier: Apache-2.0
"""Release a labgrid place whose rtproof was killed: the coordinator itself would leave it acquired for ever.

The keeper is a process in a session of its own, started before the place is acquired. It reads a pipe whose other end
only rtproof has. When the pipe ends, it waits the agreed time, in which ``rtproof attach`` may take the place over, and
releases the place if it is still in the same hands.
"""

import subprocess
import sys
import time
from contextlib import closing, suppress

from rtproof.boards.labgrid_session import LabgridSession, last_mark
from rtproof.core.errors import TargetError

START = "import sys; sys.path[:] = {path!r}; from rtproof.boards.labgrid_keeper import main; main()"
LOOK_AGAIN_S = 2
ASK_AGAIN_S = 5
GIVE_UP_S = 600
"""A coordinator that was started anew has forgotten who held what, so there is no need to wait for it for ever."""
Keeper = subprocess.Popen[bytes]


def start_keeper(address: str, place: str, mark: str, reservation: str, release_after_s: float) -> Keeper:
    """A keeper of one acquisition. reservation: to cancel with it, or ""."""
    return subprocess.Popen(
        [sys.executable, "-c", START.format(path=sys.path), address, place, mark, reservation, str(release_after_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def stop_keeper(keeper: Keeper) -> None:
    """There is nothing left to release."""
    keeper.terminate()
    keeper.communicate()


def leave_keeper(keeper: Keeper) -> None:
    """Let it release the place, after its time."""
    assert keeper.stdin
    keeper.stdin.close()


def main() -> None:
    """The keeper itself."""
    address, place, mark, reservation, release_after_s = sys.argv[1:]
    sys.stdin.read()
    due = time.monotonic() + float(release_after_s)
    while time.monotonic() < due + GIVE_UP_S:
        with suppress(TargetError), closing(LabgridSession(address)) as session:
            _settle(session, place, mark, due)
            session.cancel(reservation)
            return
        time.sleep(ASK_AGAIN_S)


def _settle(session: LabgridSession, name: str, mark: str, due: float) -> None:
    """Release the place at that time if it is in the same hands until then.

    A place without a mark is released at once: rtproof was killed before anything ran there.
    """
    while place := session.held(name, mark):
        left_s = due - time.monotonic()
        if left_s <= 0 or not last_mark(place.allowed):
            session.release(name)
            return
        time.sleep(min(left_s, LOOK_AGAIN_S))
