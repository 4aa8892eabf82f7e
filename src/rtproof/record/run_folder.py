# SPDX-License-Identifier: Apache-2.0
"""The run folder. It holds the agent's record, and ``run.json``: what the host knew when the run started."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rtproof.core import files, scratch
from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import RecordError, UserError
from rtproof.record import unfinished_run
from rtproof.record.requirement import LONGEST_GAP_NS, NO_LONGEST, Requirement

if TYPE_CHECKING:
    from rtproof.record.contents import Record

RECORD_NAME, GENERATOR_NAME = unfinished_run.RECORD_NAME, unfinished_run.GENERATOR_NAME
"""The record of the board that gave the edges, in the folder of the run that answered them."""
INFO_NAME = "run.json"
SCHEMA_VERSION = 4


def stored_requirement(asked: Requirement) -> dict[str, int | float]:
    """What means something of a requirement, by its names in ``run.json`` and in the record's fact ``claims``."""
    names = ("limit_ns", "confidence", "shows_ns") if asked.plain else RATED_NAMES
    return {name: getattr(asked, name) for name in names}


RATED_NAMES = ("limit_ns", "at_most_ns", "confidence", "gap_ns", "longest_ns", "bunches")
LEAST = {"limit_ns": 1, "at_most_ns": 1, "confidence": 0.5, "gap_ns": 1, "longest_ns": 1, "bunches": 1, "shows_ns": 1}
MOST = {"confidence": math.nextafter(1, 0), "bunches": 100}
"""Of other numbers: the largest of 64 bits. The sequential test works only for a confidence in this range."""
NULL_IF_NOT_ASKED = ("at_most_ns", "longest_ns")


def _read_requirement(stored: dict[str, Any]) -> Requirement:
    """The way back. Up to schema 2 no longest episode was fixed; the gap was a minute where a claim has none."""
    if "confidence" not in stored:
        raise msgspec.ValidationError("a requirement names no confidence")
    given = {name: each for name, each in stored.items() if each is not None or name not in NULL_IF_NOT_ASKED}
    found = msgspec.convert({"gap_ns": LONGEST_GAP_NS, "longest_ns": NO_LONGEST} | given, Requirement)
    for name in LEAST.keys() & given.keys():
        if not LEAST[name] <= given[name] <= MOST.get(name, NO_LONGEST):
            raise msgspec.ValidationError(f"the {name} of a requirement cannot be {given[name]}")
    return found


def claims_text(requirements: Sequence[Requirement]) -> str:
    """The requirements as the text that the agent keeps of them in the record."""
    return msgspec.json.encode([stored_requirement(each) for each in requirements]).decode()


def claims_of_record(record: "Record") -> tuple[Requirement, ...] | None:
    """The requirements that the agent kept; None if it was given none, or if they cannot be read."""
    text = record.fact("claims")
    try:
        return tuple(map(_read_requirement, decode_json(text, list[dict[str, Any]], "no claims"))) if text else None
    except (UserError, msgspec.ValidationError):
        return None


class TurnInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a run in a series of two sides. ``order_seed``: drew the order. ``number``: of the run, from 1."""

    order_seed: int
    number: int


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``run.json``.

    ``started``: ISO 8601 with the offset from UTC. ``command``: as typed. ``note``: free text of the user.
    ``requirements``: those fixed before the run, in the order given; schema 1 had a single ``requirement``.
    ``until_decided``: whether the run should end as soon as all requirements were decided. ``generator``: target of the
    board that gave the edges, of a run on two boards; "" of any other. ``turn``: None but for a run of ``--abba``.
    """

    command: list[str]
    started: str
    host: str
    user: str
    rtproof_version: str
    agent_sha256: str
    agent_arch: str
    target: str
    requirements: tuple[Requirement, ...] = ()
    until_decided: bool = False
    note: str = ""
    generator: str = ""
    turn: TurnInfo | None = None
    schema_version: int = SCHEMA_VERSION


class Run(msgspec.Struct, frozen=True):
    """A record, and what the host wrote beside it. ``info`` is None for a record without a ``run.json``.

    ``generator``: the record of the board that gave the edges, of a run on two boards.
    """

    record: "Record"
    info: RunInfo | None
    generator: "Record | None" = None


def create_run_folder(path: str | os.PathLike[str]) -> Path:
    """Make a new run folder and return its path. UserError if the path exists, because no run replaces another.

    Every run begins here, so what killed ones left in the folder for temporary files goes here too.
    """
    scratch.sweep()
    folder = Path(path)
    try:
        new = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{folder} exists already; a run never writes over another") from None
    except OSError as problem:
        raise UserError(f"cannot make the folder {folder}: {problem.strerror}") from None
    for each in new:
        files.flush_folder(each.parent)
    return folder


def write_run_info(folder: Path, info: RunInfo) -> None:
    """Write ``run.json`` whole or not at all. UserError if the file exists or cannot be written."""
    place = folder / INFO_NAME
    if place.exists():
        raise UserError(f"{place} exists already and is never written over")
    try:
        command = [_replaced(word) for word in info.command]
        stored = msgspec.structs.asdict(msgspec.structs.replace(info, command=command, note=_replaced(info.note)))
        stored["requirements"] = [stored_requirement(each) for each in info.requirements]
        files.write_whole(place, msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
    except OSError as problem:
        raise UserError(f"cannot write {place}: {problem.strerror}") from None


def _replaced(word: str) -> str:
    return word.encode(errors="replace").decode()


def read_run_info(folder: Path) -> RunInfo | None:
    """What ``run.json`` of a folder says; None without one. UserError if it is wrong."""
    return _read_info(folder / INFO_NAME)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run folder or a single record. UserError if there is no record or ``run.json`` is wrong."""
    from rtproof.record.reading import open_record  # whoever only makes a folder does not wait for it

    place = Path(path)
    if not place.is_dir():
        return Run(open_record(place), None)
    if not (place / RECORD_NAME).exists():
        without = "is a run without its record" if (place / INFO_NAME).exists() else "is not a run folder"
        raise RecordError(f"{place} {without}: it has no {RECORD_NAME}{unfinished_run.way_back(place)}")
    info = _read_info(place / INFO_NAME)
    giving = place / GENERATOR_NAME
    there = giving.exists() and giving.stat().st_size > 0
    if not there and (giving.exists() or (info and info.generator)):
        raise UserError(
            f"the record of the board that gave the edges is not in {place}"
            f"{unfinished_run.way_back(place, GENERATOR_NAME)}; "
            f"{place / RECORD_NAME} alone has the responder's part of the times"
        )
    return Run(open_record(place / RECORD_NAME), info, open_record(giving) if there else None)


def _read_info(place: Path) -> RunInfo | None:
    try:
        content = read_bounded(place)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    wrong = f"{place} is not a file that a run writes"
    stored = decode_json(content, dict[str, Any], wrong)
    try:
        version = msgspec.convert(stored.get("schema_version"), int)
        if version > SCHEMA_VERSION:
            raise UserError(
                f"{place} has schema {version}, and this version reads up to {SCHEMA_VERSION}: use a newer rtproof"
            )
        first = [stored["requirement"]] if stored.get("requirement") else []  # of schema 1, which had a single one
        asked = msgspec.convert(stored.get("requirements") or first, list[dict[str, Any]])
        return msgspec.convert({**stored, "requirements": tuple(map(_read_requirement, asked))}, RunInfo)
    except msgspec.ValidationError as problem:
        raise UserError(f"{wrong}: {problem}") from None
