# SPDX-License-Identifier: Apache-2.0
"""Hold a labgrid place while rtproof runs there, by name or as the reservation finds one, and give it back."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rtproof.boards.labgrid_coordinator import OVER, Coordinator, Place, RefusedError, SilentError, last_mark, new_mark
from rtproof.boards.labgrid_keeper import Acquisition, Keeper
from rtproof.core.ending_signals import ended_by_signals
from rtproof.core.errors import TargetError, UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean

ANY = "+"
"""The name of a place that a reservation finds."""
LOOK_AGAIN_S = 1


@dataclass(frozen=True)
class Wish:
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
def holding(coordinator: Coordinator, wish: Wish) -> Iterator[Held]:
    """A place, from its acquisition to its release; UserError or TargetError if it cannot be had.

    SIGTERM and SIGHUP end the work as Ctrl-C does, so that the place is released.
    """
    with ended_by_signals(), _found(coordinator, wish) as (name, reservation):
        place = _free_place(coordinator, wish, name)
        if place.acquired and not last_mark(place.allowed):
            yield Held(name, "")
            return
        with _acquired(coordinator, wish, place, reservation) as held:
            yield held


@contextmanager
def _found(coordinator: Coordinator, wish: Wish) -> Iterator[tuple[str, str]]:
    """The name of the place, and the token of the reservation that found it, which is cancelled at the end."""
    if wish.name != ANY or not wish.tags:
        yield _known_name(coordinator, wish.name), ""
        return
    token = coordinator.reserve(wish.tags)
    try:
        yield _reserved(coordinator, wish, token), token
    finally:
        # It is no error that a reservation is gone, and one whose place is left acquired has done its work.
        coordinator.cancel(token)


def _known_name(coordinator: Coordinator, asked: str) -> str:
    """The name of a place by its name or alias, or of the place that the reservation in LG_TOKEN has got."""
    places = coordinator.places()
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


def _reserved(coordinator: Coordinator, wish: Wish, token: str) -> str:
    """The place that the reservation gets in time. UserError if no place has the tags, TargetError if none is free."""
    end = time.monotonic() + wish.wait_s
    while not (name := coordinator.reserved_place(token)):
        if time.monotonic() >= end:
            raise _no_free_place(coordinator, wish)
        time.sleep(LOOK_AGAIN_S)
    return name


def _no_free_place(coordinator: Coordinator, wish: Wish) -> UserError | TargetError:
    tags = " ".join(f"{key}={value}" for key, value in wish.tags.items())
    fitting = [place for place in coordinator.places().values() if wish.tags.items() <= _tags(place).items()]
    if not fitting:
        return UserError(clean(f"no labgrid place has the tags {tags}"))
    who = ", ".join(f"{place.name} by {_holder(coordinator, place) or 'nobody any more'}" for place in fitting)
    return TargetError(clean(f"every labgrid place with the tags {tags} is held: {who}; wait=TIME waits for one"))


def _tags(place: Place) -> dict[str, str]:
    """What a reservation can ask for: the tags, and the name."""
    return {"name": place.name, **place.tags}


def _free_place(coordinator: Coordinator, wish: Wish, name: str) -> Place:
    """The place once it can be held. TargetError that names who holds it, if that takes longer than the wait."""
    end = time.monotonic() + wish.wait_s
    while True:
        place = coordinator.places().get(name)
        if not place:
            raise TargetError(f"the labgrid place {name} is gone")
        holder = "" if wish.mark and wish.mark in place.allowed else _holder(coordinator, place)
        if not holder or (place.acquired == coordinator.owner and not last_mark(place.allowed)):
            return place
        if time.monotonic() >= end:
            hint = "try again once it is free" if wish.mark else "wait=TIME waits for it"
            raise TargetError(clean(f"the labgrid place {name} is held by {holder}; {hint}"))
        time.sleep(LOOK_AGAIN_S)


def _holder(coordinator: Coordinator, place: Place) -> str:
    """Who keeps us from the place: its owner, or who has reserved it; "" for nobody."""
    if place.acquired:
        of_run = " for another run of rtproof" if last_mark(place.allowed) else ""
        return f"{place.acquired}{of_run}"
    if place.reservation:
        owner = coordinator.reservation_owner(place.reservation)
        return f"a reservation of {owner}" if owner not in ("", coordinator.owner) else ""
    return ""


@contextmanager
def _acquired(coordinator: Coordinator, wish: Wish, place: Place, reservation: str) -> Iterator[Held]:
    """The place under a new mark, with a keeper; a place that is acquired already is taken over."""
    if place.acquired and place.acquired != coordinator.owner:
        raise TargetError(
            clean(
                f"the labgrid place {place.name} is held by {place.acquired}; set LG_HOSTNAME and LG_USERNAME to that"
            )
        )
    held = Held(place.name, new_mark(place.allowed))
    keeper = Keeper(
        Acquisition(coordinator.address, coordinator.owner, place.name, held.mark, reservation, wish.release_after_s)
    )
    try:
        if not place.acquired:
            _acquire(coordinator, place, held)
        coordinator.mark(place.name, held.mark)
        yield held
    except BaseException:
        held.left = held.left or (bool(place.acquired) and _handed_back(coordinator, held))
        raise
    finally:
        if held.left or _released(coordinator, held):
            keeper.all_well()
        else:
            keeper.leave()


def _acquire(coordinator: Coordinator, place: Place, held: Held) -> None:
    """TargetError with who was faster, if somebody was. Then there is nothing to release."""
    try:
        coordinator.acquire(place.name)
    except SilentError:
        raise
    except RefusedError as refused:
        held.left = True
        now = coordinator.places().get(place.name)
        holder = _holder(coordinator, now) if now else ""
        raise TargetError(clean(f"the labgrid place {place.name} is held by {holder}")) if holder else refused from None


def _handed_back(coordinator: Coordinator, held: Held) -> bool:
    """Leave the place to whom it was taken over from, by making our mark void. Whether that worked.

    The other may go on with the run, as when two take it up at once; and a run that was left keeps its place.
    """
    with suppress(RefusedError):
        coordinator.mark(held.name, f"{held.mark}{OVER}")
        return True
    return False


def _released(coordinator: Coordinator, held: Held) -> bool:
    """Release the place, unless it is in other hands meanwhile. Whether there is nothing more to do."""
    with suppress(RefusedError):
        place = coordinator.places().get(held.name)
        if place and place.acquired == coordinator.owner and last_mark(place.allowed) in ("", held.mark):
            coordinator.release(held.name)
        return True
    return False
