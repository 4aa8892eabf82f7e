# SPDX-License-Identifier: Apache-2.0
"""labgrid's coordinator: who holds which place, and the calls that change it. Needs the package labgrid.

A place is held under a name, HOST/USER, that any process may use. So each acquisition by rtproof gets a mark among the
names that the place allows: labgrid forgets these when the place is released. By it a process sees whether a place is
still in the hands that it knows, and not acquired anew by the same user. A later mark takes the place over, and a mark
is void once ``OVER`` is behind it.
"""

import asyncio
import importlib.util
import logging
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.printable import clean, one_line

HOW_TO_GET_IT = "pip install 'rtproof[labgrid]'"
ANSWER_S = 30
"""How long the coordinator may take for an answer. It asks exporters, and gives each of them 10 s."""
MARK = re.compile(r"rtproof/(\d+)-([0-9a-f]+)")
OVER = "-over"
GRPC_SETTINGS = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "ERROR"}
"""Without them gRPC prints a line for each program that is started. It reads them when it is imported."""
Place = Any
"""A place as labgrid tells it: name, aliases, tags, acquired, reservation, allowed."""


class RefusedError(TargetError):
    """The coordinator does not do what it was asked."""


class SilentError(RefusedError):
    """The coordinator is gone or does not answer, so nobody knows whether it did what it was asked."""


def require_labgrid() -> None:
    """UserError without the package."""
    if not importlib.util.find_spec("labgrid"):
        raise UserError(f"labgrid is not installed here: {HOW_TO_GET_IT}")


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


class Coordinator:
    """A connection to a coordinator. address: HOST:PORT; owner: the name under which places are held here."""

    def __init__(self, address: str) -> None:
        """TargetError if nobody answers there."""
        require_labgrid()
        for variable, value in GRPC_SETTINGS.items():
            os.environ.setdefault(variable, value)
        from labgrid.remote import client
        from labgrid.util.proxy import proxymanager

        self.address = address
        self.loop = asyncio.new_event_loop()
        self._messages = client.labgrid_coordinator_pb2

        async def connect() -> Any:
            session = client.ClientSession(proxymanager.get_grpc_address(address, default_port=20408), self.loop)
            await session.start()
            return session

        try:
            self.session = self._run(connect)
        except Exception as problem:
            self._end_loop()
            known = isinstance(problem, TimeoutError | client.ServerError)
            why = "" if known else f" ({one_line(str(problem), 300)})"
            raise TargetError(f"no labgrid coordinator answers at {clean(address)}{why}") from None
        self.owner: str = f"{self.session.gethostname()}/{self.session.getuser()}"

    def _run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        with without_log():
            return self.loop.run_until_complete(asyncio.wait_for(work(), ANSWER_S))

    def _ask(self, method: str, **fields: Any) -> Any:
        """RefusedError with the coordinator's words, also if it takes too long or is gone."""
        import grpc

        kind = "GetPlacesRequest" if method == "GetPlaces" else f"{method}Request"
        request = getattr(self._messages, kind)(**fields)
        try:
            return self._run(lambda: getattr(self.session.stub, method)(request))
        except grpc.aio.AioRpcError as error:
            kind_of_error = SilentError if error.code() is grpc.StatusCode.UNAVAILABLE else RefusedError
            raise kind_of_error(f"labgrid: {one_line(error.details() or error.code().name)}") from None
        except TimeoutError:
            raise SilentError(f"the labgrid coordinator at {self.address} does not answer") from None

    def places(self) -> dict[str, Place]:
        """All places by their names."""
        from labgrid.remote.common import Place as LabgridPlace

        return {each.name: LabgridPlace.from_pb2(each) for each in self._ask("GetPlaces").places}

    def acquire(self, place: str) -> None:
        self._ask("AcquirePlace", placename=place)

    def mark(self, place: str, mark: str) -> None:
        """Put a mark on a place that is held under the owner's name."""
        self._ask("AllowPlace", placename=place, user=mark)

    def release(self, place: str) -> None:
        """Nothing happens if somebody else holds it."""
        self._ask("ReleasePlace", placename=place, fromuser=self.owner)

    def reserve(self, tags: Mapping[str, str]) -> str:
        """The token of a new reservation of any place with these tags."""
        wanted = {"main": self._messages.Reservation.Filter(filter=dict(tags))}
        return str(self._ask("CreateReservation", filters=wanted, prio=0.0).reservation.token)

    def reserved_place(self, token: str) -> str:
        """The place that a reservation has got; "" while it waits. This also keeps the reservation from lapsing."""
        return str(self._ask("PollReservation", token=token).reservation.allocations.get("main", ""))

    def reservation_owner(self, token: str) -> str:
        """Who reserved; "" if the reservation is gone."""
        return next((str(each.owner) for each in self._ask("GetReservations").reservations if each.token == token), "")

    def cancel(self, token: str) -> None:
        """Cancel a reservation, which may be gone already."""
        with suppress(RefusedError):
            self._ask("CancelReservation", token=token)

    def refresh(self) -> None:
        """Take in what the coordinator has told of places, for the objects of labgrid that look at the session."""
        try:
            known = self._run(self.session.sync_with_coordinator)
        except TimeoutError:
            known = False
        if not known:
            raise SilentError(f"the labgrid coordinator at {self.address} does not answer")

    def close(self) -> None:
        """End the connection. What is held stays held."""

        async def end() -> None:
            await self.session.stop()
            await self.session.close()

        with suppress(Exception):
            self._run(end)
        self._end_loop()

    def _end_loop(self) -> None:
        """Without it asyncio complains at the program's end about what was still waiting."""

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.wait(others, timeout=5) if others else None

        with without_log():
            self.loop.run_until_complete(end())
        self.loop.close()
