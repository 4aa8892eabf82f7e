# SPDX-License-Identifier: Apache-2.0
"""What a run folder holds while its run goes on on a board, so that any host with the folder can take the run up.

Whoever takes it up runs what it names. So it is signed, and others than its writer are asked first.
"""

import shlex
from contextlib import suppress
from pathlib import Path

import msgspec

from rtproof.core import files, own_key
from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import UserError

RECORD_NAME, GENERATOR_NAME = "run.rtrec", "generator.rtrec"
"""The records of a run folder: of the run, and of the second board that gave it its signals."""
NAME = "unfinished.json"
OF_RECORD = {RECORD_NAME: NAME, GENERATOR_NAME: "generator-unfinished.json"}
"""The file for each record of the folder that is still on a board."""


class UnfinishedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of ``unfinished.json``. It is removed when the record has arrived.

    target: name of its plug-in, and target_options for it. where: what the target needs to find the run again.
    goal: how long it measures, for people; length_ns: the same. signature: of all else, by the user who began the run.
    """

    target: str
    target_options: dict[str, str]
    where: dict[str, str]
    goal: str
    length_ns: int
    signature: str = ""

    def content(self) -> bytes:
        """What is signed. Keys that came later are in it only if they say something."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=""))


def write(folder: Path, run: UnfinishedRun, record: str = RECORD_NAME) -> None:
    """Write it whole. UserError if it cannot be written. record: what its record is called in the folder."""
    place = folder / OF_RECORD[record]
    signed = msgspec.structs.replace(run, signature=own_key.sign(run.content()))
    try:
        files.write_whole(place, msgspec.json.format(msgspec.json.encode(signed)) + b"\n")
    except OSError as problem:
        raise UserError(f"cannot write {place}: {problem.strerror}") from None


def read(folder: Path, record: str = RECORD_NAME) -> UnfinishedRun:
    """UserError if the folder has no unfinished run, or what it has cannot be read."""
    place = folder / OF_RECORD[record]
    try:
        run = decode_json(read_bounded(place), UnfinishedRun, f"{place} is not a file that a run writes")
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} is no run that goes on on a board: it has no {NAME}") from None
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    words = (*run.target_options.values(), *run.where.values())
    if any("\0" in word for word in words):
        raise UserError(f"{place} is not a file that a run writes: it has a NUL in a word")
    return run


def is_there(folder: Path, record: str = RECORD_NAME) -> bool:
    """Whether the folder has an unfinished run for this record."""
    return (folder / OF_RECORD[record]).exists()


def is_own(run: UnfinishedRun) -> bool:
    """Whether this user began the run on this computer, by its signature."""
    return own_key.has_signed(run.content(), run.signature)


def way_back(folder: Path, record: str = RECORD_NAME) -> str:
    """What fetches the record, after a colon; nothing of a run that this user did not begin here."""
    with suppress(UserError):
        if is_own(read(folder, record)):
            return f": rtproof attach {shlex.quote(str(folder))} fetches it"
    return ""


def remove(folder: Path, record: str = RECORD_NAME) -> None:
    """The record has arrived."""
    (folder / OF_RECORD[record]).unlink(missing_ok=True)
    files.flush_folder(folder)
