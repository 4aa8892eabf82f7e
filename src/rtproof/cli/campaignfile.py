# SPDX-License-Identifier: Apache-2.0
"""``campaign.json``: what a campaign's folder keeps besides the records of its cells, so that its page can be remade.

docs/json-schema.md describes it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from rtproof import __version__, files
from rtproof.articles import Article
from rtproof.errors import UserError
from rtproof.profiles import CellPlan, Profile
from rtproof.record.rundir import INFO_NAME, RECORD_NAME
from rtproof.report.campaign import Given, Outcome

NAME = "campaign.json"
SCHEMA = "rtproof.campaign-folder"
VERSION = 1


@dataclass(frozen=True)
class Cell:
    """How a cell ended. sha256: of its run, "" if there is none that can be read; way: place of the one taken.

    refused: the sentence of each way before. report: it got one of its own; files: what else was kept of it, as paths
    from the page.
    """

    key: str
    sha256: str = ""
    way: int | None = None
    refused: tuple[str, ...] = ()
    failure: str = ""
    report: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Campaign:
    """profile: as the user wanted it. system: that was measured. cells: those that have ended, in order."""

    command: str
    profile: Profile
    article: Article
    system: str
    percentiles: tuple[float, ...]
    cells: tuple[Cell, ...] = ()
    given: tuple[Given, ...] = ()


def cell_of(outcome: Outcome, run: Path) -> Cell:
    """What its run folder does not tell."""
    ways, taken = outcome.cell.ways, outcome.way
    return Cell(
        outcome.cell.key,
        digest(run) if outcome.analysis else "",
        None if taken is None else next(at for at, way in enumerate(ways) if way is taken),
        tuple(why for _, why in outcome.passed),
        outcome.failure,
        bool(outcome.link),
        outcome.kept,
    )


def digest(run: Path) -> str:
    """SHA-256 of the record and of what the host wrote beside it; UserError if they cannot be read."""
    found = hashlib.sha256()
    try:
        for name in (RECORD_NAME, INFO_NAME):
            files.refuse_what_waits(run / name)
            with (run / name).open("rb") as file:
                while block := file.read(1 << 20):
                    found.update(block)
    except OSError as problem:
        raise UserError(f"cannot read {run / name}: {problem.strerror}") from None
    return found.hexdigest()


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """sha256: of the campaign without white space."""

    schema: str
    version: int
    rtproof_version: str
    sha256: str
    campaign: msgspec.Raw


def write(folder: Path, campaign: Campaign) -> None:
    """In place of the last one, whole or not at all; OSError if that cannot be."""
    told = json.dumps(msgspec.to_builtins(campaign), ensure_ascii=False, separators=(",", ":"))
    content = told.encode(errors="replace")
    file = _File(
        schema=SCHEMA,
        version=VERSION,
        rtproof_version=__version__,
        sha256=hashlib.sha256(content).hexdigest(),
        campaign=msgspec.Raw(content),
    )
    files.write_whole(folder / NAME, msgspec.json.format(msgspec.json.encode(file)) + b"\n")


def read(folder: Path) -> Campaign:
    """UserError with one sentence if it is missing, not a campaign's, from a newer rtproof or no longer as written."""
    place = folder / NAME
    try:
        files.refuse_what_waits(place)
        file = msgspec.json.decode(place.read_bytes(), type=_File)
        if file.schema == SCHEMA and file.version > VERSION:
            known = f"newer than {VERSION}, the last known here: use a newer rtproof"
            raise UserError(f"{place} has version {file.version}, {known}")
        content = msgspec.json.format(bytes(file.campaign), indent=-1)
        if file.schema != SCHEMA or hashlib.sha256(content).hexdigest() != file.sha256:
            raise UserError(f"{place} is no longer what the run wrote, so nothing shows what was asked of its cells")
        found = msgspec.json.decode(content, type=Campaign)
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UserError(f"{place} is not what a campaign leaves: {problem}") from None
    return replace(found, profile=replace(found.profile, cells=tuple(map(_with_tuples, found.profile.cells))))


def _with_tuples(cell: CellPlan) -> CellPlan:
    """JSON has lists only."""
    ways = tuple(replace(way, options=_tuples(way.options)) for way in cell.ways)
    return replace(cell, options=_tuples(cell.options), ways=ways)


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
