# SPDX-License-Identifier: Apache-2.0
"""Read what comes from outside: files, pipes, packed streams and JSON. Every bound stands before memory is taken.

No input makes rtproof take more than 1 GiB, but a record: what it counts each second takes memory in proportion to its
size (``record/reading.py``). ``tests/test_bounded.py`` tries it.
"""

from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from rtproof.core import files
from rtproof.core.errors import UserError

Kind = TypeVar("Kind")
MIB = 1 << 20
MOST_BYTES = 640 * MIB
"""Of what is kept of one input. The rest of the 1 GiB is for what is computed from it."""
DOCUMENT_BYTES = 16 * MIB
"""Of a file in JSON. What rtproof writes has less than 1 MiB."""
TOML_BYTES = MIB
TOO_DEEP = "its parts are nested too deeply"

LARGEST_TEXT_BYTES = 64 * 1024 * 1024
"""Of the output of a tool, also when it is unpacked."""


def read_bounded(
    source: Path | BinaryIO | BufferedIOBase, most_bytes: int = DOCUMENT_BYTES, name: object = None
) -> bytes:
    """The whole content of a file or of a stream. name: stands in the message, by default the path.

    UserError if it has more than so many bytes, or if the path is a pipe or a device. OSError if it cannot be read.
    """
    if isinstance(source, Path):
        files.refuse_what_waits(source)
        with source.open("rb") as file:
            return read_bounded(file, most_bytes, name or source)
    content = source.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UserError(f"{name} is larger than {most_bytes // MIB} MiB, more than any file of this kind")
    return content


def decode_json(content: bytes | str, kind: type[Kind], wrong: str) -> Kind:
    """The JSON document as an object of a class of msgspec. wrong: what UserError says of any other content."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise UserError(f"{wrong}: {TOO_DEEP}") from None
    except (msgspec.DecodeError, ValueError) as problem:
        raise UserError(f"{wrong}: {problem}") from None


@dataclass
class Room:
    """So many bytes may still be taken. sentence: what the error says of more."""

    left: int
    sentence: str
    error: type[UserError] = UserError

    def take(self, size: int) -> None:
        """UserError if the bytes do not fit. Call it before they are taken."""
        self.left -= size
        if self.left < 0:
            raise self.error(self.sentence)
