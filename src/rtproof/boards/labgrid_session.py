# SPDX-License-Identifier: Apache-2.0
"""labgrid's own session with its coordinator, and the marks by which runs tell their places apart. Needs labgrid.

A place is held under a name, HOST/USER, that any process may use. So each acquisition by rtproof adds a mark to the
names that the place allows; labgrid forgets these when the place is released. A later mark takes the place over, and a
mark is void once ``OVER`` is behind it.
"""

import asyncio
import importlib.util
import logging
import os
import re
import secrets
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.core.printable import clean, one_line

ANSWER_S = 30
"""How long the coordinator may take for an answer. It asks exporters, and gives each of them 10 s."""
MARK = re.compile(r"rtproof/(\d+)-([0-9a-f]+)")
OVER = "-over"
GRPC_SETTINGS = {"GRPC_ENABLE_FORK_SUPPORT": "0", "GRPC_VERBOSITY": "ERROR"}
"""Without them gRPC prints a line for each program that is started. It reads them when it is imported."""


class RefusedError(TargetError):
    """The coordinator answered that it does not do what it was asked."""


def require_labgrid() -> None:
    """UserError without the package."""
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
