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

from rtproof.boards.labgrid_coordinator import Coordinator

PLACES = {"desk-a": {"board": "alpha", "shelf": "top"}, "desk-b": {"board": "beta", "shelf": "top"}}
"""The places and their tags."""


@dataclass(frozen=True)
class Lab:
    """What runs. options: of the target labgrid, without a place.

    gRPC joins the connections of one process, and the coordinator wants one of each client, so there is only one here.
    """

    coordinator: Coordinator
    options: tuple[str, ...]

    def at(self, place: str, *more: str) -> tuple[str, ...]:
        """The words for a run on a place."""
        return (*self.options, *(word for each in (f"place={place}", *more) for word in ("--target-option", each)))

    def place(self, name: str) -> Any:
        """The place as the coordinator tells it."""
        return self.coordinator.places()[name]

    def holder(self, name: str) -> str:
        """Who holds the place; "" for nobody."""
        return self.place(name).acquired or ""


@contextmanager
def _started(folder: Path, name: str, *words: str) -> Iterator[Path]:
    """A module of labgrid as a program, until the context ends; the file with what it prints."""
    log = folder / f"{name}.log"
    with log.open("wb") as writing:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", f"labgrid.remote.{name}", *words],
            cwd=folder,
            stdout=writing,
            stderr=writing,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def lab(folder: Path, machine: Board) -> Iterator[Lab]:
    """A lab whose two places are the same machine. Skips the test without labgrid."""
    pytest.importorskip("labgrid", reason="labgrid is not installed (pip install 'rtproof[labgrid]')")
    text = "".join(
        f"{name}:\n  NetworkService:\n    address: {machine.cable.address}\n    username: root\n" for name in PLACES
    )
    (folder / "resources.yaml").write_text(text)
    with _started(folder, "coordinator", "-l", "127.0.0.1:0") as log:
        wait_until(lambda: "listening on" in log.read_text(), "the coordinator does not start")
        found = re.search(r"listening on (\S+)", log.read_text())
        assert found
        address = found[1]
        words = ("-c", address, "-n", "bench", "--hostname", "127.0.0.1", "resources.yaml")
        with _started(folder, "exporter", *words), closing(Coordinator(address)) as coordinator:
            _add_places(coordinator)
            key = machine.options[-1].partition("=")[2].removesuffix("config") + "key"
            options = ("--target", "labgrid", "--target-option", f"coordinator={address}")
            yield Lab(coordinator, (*options, "--target-option", f"key={key}"))


def _add_places(coordinator: Coordinator) -> None:
    for name, tags in PLACES.items():
        coordinator._ask("AddPlace", name=name)
        coordinator._ask("AddPlaceMatch", placename=name, pattern=f"bench/{name}/*")
        coordinator._ask("SetPlaceTags", placename=name, tags=tags)

    def exported() -> bool:
        coordinator.refresh()
        return set(PLACES) <= set(coordinator.session.resources.get("bench", {}))

    wait_until(exported, "the exporter does not export")
