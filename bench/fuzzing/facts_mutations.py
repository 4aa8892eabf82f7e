# SPDX-License-Identifier: Apache-2.0
"""Damaged facts of a system: files that are missing, refused, cut, exchanged, garbage or there twice."""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzzing.mutations import mutated
from fuzzing.record_mutations import Chunk, chunks_of, mutated_record, record_of
from rtproof.record.chunks import FILE_FIELDS, LONG_COUNT, SHORT_COUNT, ChunkType

Dice = random.Random
NUMBERS = (
    *(errno.ENOENT, errno.EPERM, errno.EACCES, errno.EIO, errno.ETIMEDOUT, errno.EBUSY, errno.ENODEV, errno.ENXIO),
    *(errno.ENOTDIR, errno.EINVAL, errno.ENOMEM, errno.EPROTO, 0, 999),
)
GARBAGE = (
    *(b"", b"\n", b"\0", b"\0" * 4096, b"-1\n", b"99999999999999999999\n", b"0x\n", b"0-\n", b"0-3,8-\n", b"nan\n"),
    *(b"always madvise never\n", b"[always] madvise never\n", b"\xff\xfe\n", b"y\n", b"n/a\n", b"\x1b[2J", b"0\n1\n"),
    *(
        b"yes",
        b"no: 1 Operation not permitted\n",
        b"0\t0\t0\t0\n",
        b"(null)\n",
        b"fffffffff\n",
        b"1" * 5000,
        b"isolated\n",
    ),
)
NONSENSE = b"\x7f? garbage ]\x01\n"
MOMENTS = 4


@dataclass(frozen=True)
class StoredFile:
    """A file of a record, as its chunk has it."""

    time_ns: int
    moment: int
    cut: int
    number: int
    path: bytes
    content: bytes

    @classmethod
    def of(cls, payload: bytes) -> "StoredFile | None":
        """None if the payload is that of no whole file."""
        head = FILE_FIELDS.size + SHORT_COUNT.size
        if len(payload) < head:
            return None
        time_ns, moment, cut, number = FILE_FIELDS.unpack_from(payload)
        begin = head + SHORT_COUNT.unpack_from(payload, FILE_FIELDS.size)[0]
        if len(payload) < begin + LONG_COUNT.size:
            return None
        length = LONG_COUNT.unpack_from(payload, begin)[0]
        content = payload[begin + LONG_COUNT.size :]
        if len(content) < length:
            return None
        return cls(time_ns, moment, cut, number, payload[head:begin], content[:length])

    def payload(self) -> bytes:
        """The payload of its chunk."""
        head = FILE_FIELDS.pack(self.time_ns, self.moment, self.cut, self.number)
        path = SHORT_COUNT.pack(len(self.path)) + self.path
        return head + path + LONG_COUNT.pack(len(self.content)) + self.content


def mutated_facts(record: bytes, other: bytes, seed: int) -> bytes:
    """The record after one to eight damages of its files; one in five is damaged as any record is."""
    dice = Dice(seed)
    if dice.random() < 0.2:
        return mutated_record(record, other, seed)
    parts, lent = chunks_of(record), _files(chunks_of(other))
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        places = [at for at, (kind, _) in enumerate(parts) if kind == ChunkType.FILE]
        if not places:
            break
        at = dice.choice(places)
        file = StoredFile.of(parts[at][1])
        if file:
            parts[at : at + 1] = [
                (ChunkType.FILE, each.payload()) for each in dice.choice(WAYS)(file, lent or [file], dice)
            ]
    return record_of(parts)


def without(record: bytes, is_gone: Callable[[str], bool]) -> bytes:
    """The record without some files, at any moment. is_gone: tells of a path."""
    return _with_others(record, is_gone, lambda _: [])


def garbled(record: bytes, is_garbled: Callable[[str], bool]) -> bytes:
    """The record with garbage in some files that were read."""
    return _with_others(record, is_garbled, lambda file: [replace(file, number=0, cut=0, content=NONSENSE)])


def _with_others(
    record: bytes, chosen: Callable[[str], bool], others: Callable[["StoredFile"], list["StoredFile"]]
) -> bytes:
    parts: list[Chunk] = []
    for kind, payload in chunks_of(record):
        file = StoredFile.of(payload) if kind == ChunkType.FILE else None
        if file and chosen(file.path.decode(errors="replace")):
            parts += [(kind, each.payload()) for each in others(file)]
        else:
            parts.append((kind, payload))
    return record_of(parts)


def _files(parts: list[Chunk]) -> list[StoredFile]:
    found = (StoredFile.of(payload) for kind, payload in parts if kind == ChunkType.FILE)
    return [file for file in found if file]


Way = Callable[[StoredFile, list[StoredFile], Dice], list[StoredFile]]


def _drop(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return []


def _refuse(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, number=dice.choice(NUMBERS), content=b"" if dice.random() < 0.9 else file.content)]


def _truncate(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    content = file.content[: dice.randrange(len(file.content) + 1)]
    return [replace(file, content=content, cut=dice.choice((0, 1)))]


def _garbage(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, content=dice.choice((*GARBAGE, dice.randbytes(dice.randrange(1, 64)))), number=0)]


def _text(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, content=mutated(file.content, dice.randrange(1 << 32)))]


def _swap(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    other = dice.choice(lent)
    return [replace(file, content=other.content, number=other.number, cut=other.cut)]


def _cut_flag(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, cut=dice.choice((1, 1, 2, 255)))]


def _twice(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    other = dice.choice(lent)
    both = [file, replace(file, content=other.content, number=other.number)]
    return both if dice.random() < 0.5 else both[::-1]


def _rename(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, path=dice.choice(lent).path)]


def _other_moment(file: StoredFile, lent: list[StoredFile], dice: Dice) -> list[StoredFile]:
    return [replace(file, moment=dice.randrange(MOMENTS + 1))]


WAYS: tuple[Way, ...] = (
    *(*[_drop] * 3, *[_refuse] * 3, *[_text] * 3, *[_garbage] * 2, *[_swap] * 2),
    *(_truncate, _cut_flag, _twice, _rename, _other_moment),
)
