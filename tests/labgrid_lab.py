# SPDX-License-Identifier: Apache-2.0
"""labgrid on loopback: its coordinator, an exporter, and places whose boards are a real sshd (``board_servers``)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from board_runs import wait_until
from board_servers import Board

from rtproof.boards.labgrid_place import LabgridSession

PLACES = {"desk-a": {"board": "alpha", "shelf": "top"}, "desk-b": {"board": "beta", "shelf": "top"}}
"""The places and their tags."""


@dataclass(frozen=True)
class Lab:
    """What runs. options: of the target labgrid, without a place; switch: the log of desk-b's power switch.

    gRPC joins the connections of one process, and the coordinator wants one of each client, so there is only one here.
    """

    session: LabgridSession
    options: tuple[str, ...]
    switch: Path

    def at(self, place: str, *more: str) -> tuple[str, ...]:
        """The words for a run on a place."""
        return (*self.options, *(word for each in (f"place={place}", *more) for word in ("--target-option", each)))

    def place(self, name: str) -> Any:
        """The place as the coordinator tells it."""
        return self.session.places()[name]

    def holder(self, name: str) -> str:
        """Who holds the place; "" for nobody."""
        return self.place(name).acquired or ""


@contextmanager
def _started(folder: Path, name: str, *words: str) -> Iterator[Path]:
    """A module as a program, until the context ends; the file with what it prints."""
    log = folder / f"{name}.log"
    command = [sys.executable, "-u", "-m", name, *words]
    with log.open("wb") as writing:
        process = subprocess.Popen(command, cwd=folder, stdout=writing, stderr=writing, start_new_session=True)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def _printed(log: Path, pattern: str) -> str:
    """The group of the pattern, once a program has printed that."""
    wait_until(lambda: bool(re.search(pattern, log.read_text())), f"{log.name} says nothing of {pattern}")
    return str(re.findall(pattern, log.read_text())[0])


@contextmanager
def lab(folder: Path, machine: Board) -> Iterator[Lab]:
    """A lab whose two places are the same machine. Skips the test without labgrid."""
    pytest.importorskip("labgrid", reason="labgrid is not installed (pip install 'rtproof[labgrid]')")
    text = "".join(
        f"{name}:\n  NetworkService:\n    address: {machine.cable.address}\n    username: root\n" for name in PLACES
    )
    (folder / "power-1").touch()
    with (
        _started(folder, "http.server", "0", "--bind", "127.0.0.1") as switch,
        _started(folder, "labgrid.remote.coordinator", "-l", "127.0.0.1:0") as log,
    ):
        url = _printed(switch, r"\((http:.*)/\)")
        power = f"{{model: simplerest, host: '{url}/power-{{value}}', index: 0}}"
        (folder / "resources.yaml").write_text(f"{text}  NetworkPowerPort: {power}\n")
        address = _printed(log, r"listening on (\S+)")
        words = ("-c", address, "-n", "bench", "--hostname", "127.0.0.1", "resources.yaml")
        with _started(folder, "labgrid.remote.exporter", *words), closing(LabgridSession(address)) as session:
            _add_places(session)
            key = machine.options[-1].partition("=")[2].removesuffix("config") + "key"
            options = ("--target", "labgrid", "--target-option", f"coordinator={address}")
            yield Lab(session, (*options, "--target-option", f"key={key}"), switch)


def _add_places(session: LabgridSession) -> None:
    for name, tags in PLACES.items():
        session.ask("AddPlace", name=name)
        session.ask("AddPlaceMatch", placename=name, pattern=f"bench/{name}/*")
        session.ask("SetPlaceTags", placename=name, tags=tags)

    def exported() -> bool:
        session.lend()
        return set(PLACES) <= set(session.client.resources.get("bench", {}))

    wait_until(exported, "the exporter does not export")
