# SPDX-License-Identifier: Apache-2.0
"""Release a labgrid place whose rtproof was killed: the coordinator itself would leave it acquired for ever.

The keeper is a process in a session of its own, started before the place is acquired. It reads a pipe whose other end
only rtproof has. The line ``ALL_WELL`` ends it. If the pipe ends without that, the keeper waits the agreed time, in
which ``rtproof attach`` may take the place over, and releases the place if it is still in the same hands.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from rtproof.boards.labgrid_coordinator import ANSWER_S, last_mark

ALL_WELL = b"all well\n"
START = "import sys; sys.path[:] = {path!r}; from rtproof.boards.labgrid_keeper import main; main()"
LOOK_AGAIN_S = 2
ASK_AGAIN_S = 5
GIVE_UP_S = 600
"""A coordinator that was started anew has forgotten who held what, so there is no need to wait for it for ever."""


@dataclass(frozen=True)
class Acquisition:
    """What a keeper must know. address: of the coordinator; reservation: to cancel with it, or ""."""

    address: str
    owner: str
    place: str
    mark: str
    reservation: str
    release_after_s: float


class Keeper:
    """The keeper of one acquisition, from the side of rtproof."""

    def __init__(self, acquisition: Acquisition) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-c", START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self._popen.stdin
        self._popen.stdin.write(json.dumps(asdict(acquisition)).encode() + b"\n")

    def all_well(self) -> None:
        """There is nothing left to release."""
        assert self._popen.stdin
        with suppress(BrokenPipeError):
            self._popen.stdin.write(ALL_WELL)
        self._popen.stdin.close()
        self._popen.wait()

    def leave(self) -> None:
        """Let it release the place, after its time."""
        assert self._popen.stdin
        self._popen.stdin.close()


def main() -> None:
    """The keeper itself."""
    told = sys.stdin.buffer.readline()
    if not told.endswith(b"\n") or sys.stdin.buffer.readline() == ALL_WELL:
        return
    acquisition = Acquisition(**json.loads(told))
    due = time.monotonic() + acquisition.release_after_s
    done = False
    while not done and time.monotonic() < due + GIVE_UP_S:
        done = _is_settled(acquisition, due)
        time.sleep(0 if done else ASK_AGAIN_S)


def _is_settled(acquisition: Acquisition, due: float) -> bool:
    """Release the place at that time, if it is ours now and then; False if the coordinator does not answer.

    A place without a mark must not have changed meanwhile: its user may have released it, and acquired it by hand.
    """
    import grpc
    from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
    from labgrid.remote.generated.labgrid_coordinator_pb2_grpc import CoordinatorStub
    from labgrid.util.proxy import proxymanager

    def ours() -> Any:
        places = stub.GetPlaces(messages.GetPlacesRequest(), timeout=ANSWER_S).places
        return next((place for place in places if _is_ours(place, acquisition)), None)

    address = proxymanager.get_grpc_address(acquisition.address, default_port=20408)
    try:
        with grpc.insecure_channel(address) as channel:
            stub = CoordinatorStub(channel)
            before = now = ours()
            while now and (left_s := due - time.monotonic()) > 0:
                time.sleep(min(left_s, LOOK_AGAIN_S))
                now = ours()
            if now and (now.allowed or now.changed == before.changed):
                wanted = messages.ReleasePlaceRequest(placename=now.name, fromuser=acquisition.owner)
                stub.ReleasePlace(wanted, timeout=ANSWER_S)
                if token := acquisition.reservation:
                    stub.CancelReservation(messages.CancelReservationRequest(token=token), timeout=ANSWER_S)
    except grpc.RpcError:
        return False
    return True


def _is_ours(place: Any, acquisition: Acquisition) -> bool:
    """Whether it is still held by the acquisition. A place that rtproof had no time to mark has no mark at all."""
    same = place.name == acquisition.place and place.acquired == acquisition.owner
    return same and last_mark(place.allowed) in ("", acquisition.mark)
