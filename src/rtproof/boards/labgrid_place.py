# SPDX-License-Identifier: Apache-2.0
"""Hold a labgrid place while rtproof runs there, and give it back, also if rtproof is killed.

The coordinator would leave the place of a killed program acquired for ever. So a keeper is started before: a process in
a session of its own, which reads a pipe whose other end only rtproof has. When that ends, it waits the agreed time, in
which ``rtproof attach`` may take the place over, and releases the place if that is still in the same hands.

Any process may use a place that is held under HOST/USER. So each acquisition adds a mark to the names that the place
allows, which labgrid forgets at the release. A later mark takes the place over; ``OVER`` behind a mark makes it void.
"""

import asyncio
import importlib.util
import logging
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean, one_line
from rtproof.core.processes import ended_by_signals

ANSWER_S = 30
"""How long the coordinator may take for an answer. It asks exporters, and gives each of them 10 s."""
MARK = re.compile(r"rtproof/(\d+)-([0-9a-f]+)")
OVER = "-over"
GRPC_SETTINGS = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "ERROR"}
"""Without them gRPC prints a line for each program that is started. It reads them when it is imported."""


class RefusedError(TargetError):
    """The coordinator answered that it does not do what it was asked."""


def require_labgrid() -> None:
    if not importlib.util.find_spec("labgrid"):
        raise UserError("labgrid is not installed here: pip install 'rtproof[labgrid]'")


@contextmanager
def without_log() -> Iterator[None]:
    """labgrid logs what it also reports as an error; the sentence of the error is enough."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def labgrid_fails(what: str) -> Iterator[None]:
    """labgrid raises exceptions of many kinds, and those of the libraries below it: one sentence for each."""
    try:
        yield
    except RtproofError:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        raise TargetError(f"labgrid: {what}: {one_line(str(cause), 300) or type(cause).__name__}") from None


def new_mark(allowed: Iterable[str]) -> str:
    """A mark that takes the place over from those before."""
    numbers = [int(found[1]) for name in allowed if (found := MARK.match(name))]
    return f"rtproof/{max(numbers, default=0) + 1}-{secrets.token_hex(6)}"


def last_mark(allowed: Iterable[str]) -> str:
    """The mark in whose hands the place is; "" if no rtproof has it."""
    names = set(allowed)
    valid = [found for name in names if (found := MARK.fullmatch(name)) and f"{name}{OVER}" not in names]
    return max(valid, key=lambda found: (int(found[1]), found[2]))[0] if valid else ""


class LabgridSession:
    """A ClientSession of labgrid, used from code that is not asynchronous. owner: the name that holds places here."""

    def __init__(self, address: str) -> None:
        """address: HOST:PORT. TargetError if nobody answers there."""
        require_labgrid()
        for variable, value in GRPC_SETTINGS.items():
            os.environ.setdefault(variable, value)
        from labgrid.remote import client
        from labgrid.util.proxy import proxymanager

        self.address = address
        self.messages = client.labgrid_coordinator_pb2
        self._runner = asyncio.Runner()

        async def connect() -> Any:
            where = proxymanager.get_grpc_address(address, default_port=20408)
            session = client.ClientSession(where, asyncio.get_running_loop())
            await session.start()
            return session

        try:
            self.client = self._run(connect())
        except Exception as problem:
            with without_log():
                self._runner.close()
            known = isinstance(problem, TimeoutError | client.ServerError)
            why = "" if known else f" ({one_line(str(problem), 300)})"
            raise TargetError(f"no labgrid coordinator answers at {clean(address)}{why}") from None
        self.owner: str = f"{self.client.gethostname()}/{self.client.getuser()}"

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        with without_log():
            return self._runner.run(asyncio.wait_for(work, ANSWER_S))

    def ask(self, method: str, **fields: Any) -> Any:
        """Call a method of labgrid's stub. RefusedError with the coordinator's words; TargetError without an answer."""
        import grpc

        async def call() -> Any:
            return await getattr(self.client.stub, method)(getattr(self.messages, f"{method}Request")(**fields))

        try:
            return self._run(call())
        except grpc.aio.AioRpcError as error:
            gone = error.code() is grpc.StatusCode.UNAVAILABLE
            words = one_line(error.details() or error.code().name)
            raise (TargetError if gone else RefusedError)(f"labgrid: {words}") from None
        except TimeoutError:
            raise TargetError(f"the labgrid coordinator at {self.address} does not answer") from None

    def places(self) -> dict[str, Any]:
        """All places by their names, each as labgrid's Place."""
        from labgrid.remote.common import Place

        return {each.name: Place.from_pb2(each) for each in self.ask("GetPlaces").places}

    def held(self, name: str, mark: str) -> Any:
        """The place if it is in the hands of this mark, or acquired and not marked yet; None otherwise."""
        place = self.places().get(name)
        ours = place and place.acquired == self.owner and last_mark(place.allowed) in ("", mark)
        return place if ours else None

    def release(self, name: str) -> None:
        """Nothing happens if somebody else holds the place."""
        self.ask("ReleasePlace", placename=name, fromuser=self.owner)

    def cancel(self, reservation: str) -> None:
        """Nothing happens if the reservation is gone, or ""."""
        with suppress(RefusedError):
            self.ask("CancelReservation", token=reservation)

    def lend(self) -> None:
        """Give this session to labgrid's places, as labgrid-client does, once it knows what was just acquired."""
        from labgrid.resource.remote import RemotePlaceManager

        with labgrid_fails("the coordinator"):
            self._run(self.client.sync_with_coordinator())
        manager = RemotePlaceManager.get()
        manager.session, manager.loop = self.client, self.client.loop

    def power_on(self, place: str) -> bool:
        """Give an acquired place power, by labgrid's table of drivers. False if labgrid does not have its power."""
        from argparse import Namespace

        from labgrid.remote.client import UserError as NoPowerError

        self.client.args = Namespace(place=place, action="on", delay=None, name=None)
        with suppress(NoPowerError):
            self.client.power()
            return True
        return False

    def close(self) -> None:
        """End the connection. What is held stays held."""
        with suppress(Exception):
            self._run(self.client.stop())
            self._run(self.client.close())
        with without_log():
            self._runner.close()


ANY = "+"
"""The name of a place that a reservation finds."""
LOOK_AGAIN_S = 1
ASK_AGAIN_S = 5
GIVE_UP_S = 600
"""A coordinator that was started anew has forgotten who held what, so the keeper does not wait for it for ever."""
KEEPER = "import sys; sys.path[:] = {path!r}; from rtproof.boards.labgrid_place import keep; keep(*sys.argv[1:])"


@dataclass(frozen=True)
class PlaceRequest:
    """What to hold. name: of a place, or ``ANY``; tags: to reserve one with them; wait_s: for others to release it.

    mark: of the acquisition in which a run was left, to take that over; "" for a new run.
    """

    name: str
    tags: Mapping[str, str]
    wait_s: float
    release_after_s: float
    mark: str = ""


@dataclass
class Held:
    """A place that is held. mark: of the acquisition; "" if the user did it by hand. left: leave it acquired."""

    name: str
    mark: str
    left: bool = False


@contextmanager
def holding(session: LabgridSession, request: PlaceRequest) -> Iterator[Held]:
    """A place, from its acquisition to its release, also after SIGTERM.

    UserError or TargetError if it cannot be had.
    """
    with ended_by_signals(), _found(session, request) as (name, reservation):
        place = _free_place(session, request, name)
        if place.acquired and not last_mark(place.allowed):
            yield Held(name, "", left=True)
            return
        with _acquired(session, request, place, reservation) as held:
            yield held


@contextmanager
def _found(session: LabgridSession, request: PlaceRequest) -> Iterator[tuple[str, str]]:
    """The name of the place, and the token of the reservation that found it, which is cancelled at the end."""
    if request.name != ANY or not request.tags:
        yield _known_name(session, request.name), ""
        return
    wanted = {"main": session.messages.Reservation.Filter(filter=dict(request.tags))}
    token = session.ask("CreateReservation", filters=wanted, prio=0.0).reservation.token
    try:
        end = time.monotonic() + request.wait_s
        # Asking keeps the reservation from lapsing.
        while not (name := session.ask("PollReservation", token=token).reservation.allocations.get("main")):
            if time.monotonic() >= end:
                tags = " ".join(f"{key}={value}" for key, value in request.tags.items())
                raise TargetError(clean(f"no labgrid place with the tags {tags} is free; wait=TIME waits for one"))
            time.sleep(LOOK_AGAIN_S)
        yield str(name), token
    finally:
        with suppress(TargetError):
            session.cancel(token)


def _known_name(session: LabgridSession, asked: str) -> str:
    """The name of a place by its name or alias, or of the place that the reservation in LG_TOKEN has got."""
    places = session.places()
    if asked == ANY:
        token = os.environ.get("LG_TOKEN", "")
        found = [name for name, place in places.items() if token and place.reservation == token]
        if not found:
            raise UserError("place=+ needs reserve=KEY=VALUE, or the token of a reservation in LG_TOKEN")
        return found[0]
    for name, place in places.items():
        if asked == name or asked in place.aliases:
            return name
    raise UserError(clean(unknown_name("labgrid place", asked, sorted(places))))


def _free_place(session: LabgridSession, request: PlaceRequest, name: str) -> Any:
    """The place once it can be held. TargetError that names who holds it, if that takes longer than the wait."""
    end = time.monotonic() + request.wait_s
    while True:
        place = session.places().get(name)
        if not place:
            raise TargetError(f"the labgrid place {name} is gone")
        ours = place.acquired == session.owner
        left_here = request.mark in place.allowed
        holder = _holder(session, place)
        if not holder or (ours and (left_here or not last_mark(place.allowed))):
            return place
        if left_here:
            words = f"{place.acquired}; set LG_HOSTNAME and LG_USERNAME to that"
            raise TargetError(clean(f"the labgrid place {name} is held by {words}"))
        if time.monotonic() >= end:
            hint = "try again once it is free" if request.mark else "wait=TIME waits for it"
            raise TargetError(clean(f"the labgrid place {name} is held by {holder}; {hint}"))
        time.sleep(LOOK_AGAIN_S)


def _holder(session: LabgridSession, place: Any) -> str:
    """Who keeps us from the place: its owner, or who has reserved it; "" for nobody."""
    if place.acquired:
        return f"{place.acquired}{' for another run of rtproof' if last_mark(place.allowed) else ''}"
    reservations = session.ask("GetReservations").reservations if place.reservation else ()
    owner = next((each.owner for each in reservations if each.token == place.reservation), session.owner)
    return f"a reservation of {owner}" if owner != session.owner else ""


@contextmanager
def _acquired(session: LabgridSession, request: PlaceRequest, place: Any, reservation: str) -> Iterator[Held]:
    """The place under a new mark, with a keeper. A place that is taken over stays acquired if that fails."""
    held = Held(place.name, new_mark(place.allowed))
    words = (session.address, held.name, held.mark, reservation, str(request.release_after_s))
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER.format(path=sys.path), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        if not place.acquired:
            _acquire(session, held)
        session.ask("AllowPlace", placename=held.name, user=held.mark)
        yield held
    except BaseException:
        if place.acquired and not held.left:
            with suppress(TargetError):
                session.ask("AllowPlace", placename=held.name, user=f"{held.mark}{OVER}")
                held.left = True
        raise
    finally:
        if held.left or _released(session, held):
            keeper.terminate()
            keeper.communicate()
        elif keeper.stdin:
            keeper.stdin.close()


def _acquire(session: LabgridSession, held: Held) -> None:
    """TargetError with who was faster, if somebody was. Then there is nothing to release."""
    try:
        session.ask("AcquirePlace", placename=held.name)
    except RefusedError as refused:
        held.left = True
        now = session.places().get(held.name)
        holder = _holder(session, now) if now else ""
        raise TargetError(clean(f"the labgrid place {held.name} is held by {holder}")) if holder else refused from None


def _released(session: LabgridSession, held: Held) -> bool:
    """Release the place, unless it is in other hands meanwhile. Whether there is nothing more to do."""
    with suppress(TargetError):
        if session.held(held.name, held.mark):
            session.release(held.name)
        return True
    return False


def keep(address: str, place: str, mark: str, reservation: str, release_after_s: str) -> None:
    """The keeper itself: waits until rtproof is gone, and then releases the place and cancels the reservation."""
    sys.stdin.read()
    due = time.monotonic() + float(release_after_s)
    while time.monotonic() < due + GIVE_UP_S:
        with suppress(TargetError), closing(LabgridSession(address)) as session:
            while (held := session.held(place, mark)) and last_mark(held.allowed) and time.monotonic() < due:
                time.sleep(LOOK_AGAIN_S)
            if held:
                session.release(place)
            session.cancel(reservation)
            return
        time.sleep(ASK_AGAIN_S)
