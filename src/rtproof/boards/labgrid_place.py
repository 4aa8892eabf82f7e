# SPDX-License-Identifier: Apache-2.0
"""Hold a labgrid place while rtproof runs there, by name or as the reservation finds one, and give it back."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rtproof.boards.labgrid_keeper import leave_keeper, start_keeper, stop_keeper
from rtproof.boards.labgrid_session import OVER, LabgridSession, RefusedError, last_mark, new_mark
from rtproof.core.ending_signals import ended_by_signals
from rtproof.core.errors import TargetError, UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean

ANY = "+"
"""The name of a place that a reservation finds."""
LOOK_AGAIN_S = 1


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
    """A place that is held. mark: of the acquisition; "" if the user had acquired the place before, by hand.

    left: set to leave it acquired at the end.
    """

    name: str
    mark: str
    left: bool = False


@contextmanager
def holding(session: LabgridSession, request: PlaceRequest) -> Iterator[Held]:
    """A place, from its acquisition to its release; UserError or TargetError if it cannot be had.

    SIGTERM and SIGHUP end the work as Ctrl-C does, so that the place is released.
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
        yield _reserved(session, request, token), token
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


def _reserved(session: LabgridSession, request: PlaceRequest, token: str) -> str:
    """The place that the reservation gets in time. UserError if no place has the tags, TargetError if none is free."""
    end = time.monotonic() + request.wait_s
    # Asking keeps the reservation from lapsing.
    while not (name := session.ask("PollReservation", token=token).reservation.allocations.get("main")):
        if time.monotonic() >= end:
            raise _no_free_place(session, request)
        time.sleep(LOOK_AGAIN_S)
    return str(name)


def _no_free_place(session: LabgridSession, request: PlaceRequest) -> UserError | TargetError:
    tags = " ".join(f"{key}={value}" for key, value in request.tags.items())
    fitting = [place for place in session.places().values() if request.tags.items() <= _tags(place).items()]
    if not fitting:
        return UserError(clean(f"no labgrid place has the tags {tags}"))
    who = ", ".join(f"{place.name} by {_holder(session, place) or 'nobody any more'}" for place in fitting)
    return TargetError(clean(f"every labgrid place with the tags {tags} is held: {who}; wait=TIME waits for one"))


def _tags(place: Any) -> dict[str, str]:
    """What a reservation can ask for: the tags, and the name."""
    return {"name": place.name, **place.tags}


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
    """The place under a new mark, with a keeper; a place that is acquired already is taken over."""
    held = Held(place.name, new_mark(place.allowed))
    keeper = start_keeper(session.address, place.name, held.mark, reservation, request.release_after_s)
    try:
        if not place.acquired:
            _acquire(session, held)
        session.ask("AllowPlace", placename=held.name, user=held.mark)
        yield held
    except BaseException:
        held.left = held.left or (bool(place.acquired) and _handed_back(session, held))
        raise
    finally:
        if held.left or _released(session, held):
            stop_keeper(keeper)
        else:
            leave_keeper(keeper)


def _acquire(session: LabgridSession, held: Held) -> None:
    """TargetError with who was faster, if somebody was. Then there is nothing to release."""
    try:
        session.ask("AcquirePlace", placename=held.name)
    except RefusedError as refused:
        held.left = True
        now = session.places().get(held.name)
        holder = _holder(session, now) if now else ""
        raise TargetError(clean(f"the labgrid place {held.name} is held by {holder}")) if holder else refused from None


def _handed_back(session: LabgridSession, held: Held) -> bool:
    """Leave the place to whom it was taken over from, by making our mark void. Whether that worked.

    The other may go on with the run, as when two take it up at once; and a run that was left keeps its place.
    """
    with suppress(TargetError):
        session.ask("AllowPlace", placename=held.name, user=f"{held.mark}{OVER}")
        return True
    return False


def _released(session: LabgridSession, held: Held) -> bool:
    """Release the place, unless it is in other hands meanwhile. Whether there is nothing more to do."""
    with suppress(TargetError):
        if session.held(held.name, held.mark):
            session.release(held.name)
        return True
    return False
