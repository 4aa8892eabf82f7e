# SPDX-License-Identifier: Apache-2.0
"""Damaged records whose checksums are right, so that the decoders behind the checksum see the damage."""

import random
import struct
import zlib
from collections.abc import Callable

from fuzzing.mutations import mutated
from rtproof.record import chunks
from rtproof.record.chunks import CHUNK_HEADER, SHORT_COUNT, ChunkType
from rtproof.record.encoding import MalformedError, decode_array, encode_array

Chunk = tuple[int, bytes]
"""The type and the payload of a chunk."""
Dice = random.Random
BITS = (0, 7, 8, 15, 16, 31, 32, 40, 53, 62, 63)
ODD_INTEGERS = (
    *(sign * (1 << bits) + more for bits in BITS for sign in (1, -1) for more in (-1, 0, 1)),
    *(0, 2, 3, 1_000, 1_000_000_000, 10**15, 10**18),
)
FIELDS: dict[ChunkType, struct.Struct] = {
    kind: layout for kind in ChunkType if (layout := getattr(chunks, f"{kind.name}_FIELDS", None))
}
"""The fixed fields at the beginning of each payload."""
TEXTS = (ChunkType.FACT, ChunkType.FILE, ChunkType.EVENT, ChunkType.COUNTER)


def chunks_of(record: bytes) -> list[Chunk]:
    """The chunks of a whole record, without their checksums."""
    found, at = [], 0
    while at + CHUNK_HEADER.size <= len(record):
        magic, length, kind, _, _, _ = CHUNK_HEADER.unpack_from(record, at)
        start = at + CHUNK_HEADER.size
        if magic != chunks.CHUNK_MAGIC or start + length > len(record):
            break
        found.append((kind, record[start : start + length]))
        at = start + chunks.padded(length)
    return found


def record_of(parts: list[Chunk]) -> bytes:
    """The record that holds these chunks in this order, each with its right number and checksum."""
    return b"".join(chunks.frame_bytes(kind, number, payload) for number, (kind, payload) in enumerate(parts))


def mutated_record(record: bytes, other: bytes, seed: int) -> bytes:
    """The record after one to four damages, one in five without a right checksum. other: lends chunks."""
    dice = Dice(seed)
    parts = chunks_of(record)
    if not parts or dice.random() < 0.2:
        return mutated(record, seed)
    lent = chunks_of(other)
    for _ in range(dice.choice((1, 1, 2, 4))):
        dice.choice(WAYS)(parts, lent or parts, dice)
        if not parts:
            break
    return record_of(parts)


def mutated_trace(record: bytes, other: bytes, seed: int) -> bytes:
    """The record after one to four damages of its windows and of the files of its trace, with right checksums."""
    dice = Dice(seed)
    parts = chunks_of(record)
    files = [at for at, (kind, payload) in enumerate(parts) if kind == ChunkType.FILE and b"trace/" in payload[:32]]
    places = [at for at, (kind, _) in enumerate(parts) if kind == ChunkType.SNAPSHOT] + files
    for _ in range(dice.choice((1, 1, 2, 4)) if places else 0):
        at = dice.choice(places)
        kind, payload = parts[at]
        parts[at] = kind, _changed_file(payload, dice) if kind == ChunkType.FILE else _odd_word(payload, dice)
    return record_of(parts)


def _changed_file(payload: bytes, dice: Dice) -> bytes:
    """The payload of a FILE whose content is damaged: as text, or as the words of ring-buffer pages."""
    path = chunks.FILE_FIELDS.size + SHORT_COUNT.size
    behind = path + SHORT_COUNT.unpack_from(payload, chunks.FILE_FIELDS.size)[0]
    head = behind + chunks.LONG_COUNT.size
    content = payload[head:]
    if payload[:behind].endswith(b"/raw"):
        return payload[:head] + _odd_word(_odd_word(content, dice), dice)
    if payload[:behind].endswith(chunks.DEFLATED.encode()) and dice.random() < 0.5:
        return _changed_packed(payload[:behind], content, dice)
    return payload[:head] + mutated(content, dice.randrange(1 << 32))


def _changed_packed(head: bytes, content: bytes, dice: Dice) -> bytes:
    """The same for a packed file: what is packed is damaged, and is packed again."""
    try:
        plain = zlib.decompress(content, -zlib.MAX_WBITS)
    except zlib.error:
        plain = content
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packing.compress(_odd_word(_odd_word(plain, dice), dice)) + packing.flush()
    return head + chunks.LONG_COUNT.pack(len(packed)) + packed


def _odd_word(payload: bytes, dice: Dice) -> bytes:
    """The payload with an odd number of 1 to 8 bytes somewhere, more often at its beginning."""
    size = dice.choice((1, 2, 4, 8))
    if len(payload) < size:
        return payload + bytes(size)
    reach = len(payload) - size + 1
    at = dice.randrange(min(reach, 64) if dice.random() < 0.5 else reach)
    number = dice.choice(ODD_INTEGERS) % (1 << 8 * size)
    return payload[:at] + number.to_bytes(size, dice.choice(("little", "big"))) + payload[at + size :]


def _odd_field(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    """One fixed field of a chunk gets an odd value that fits it."""
    at = _some_place(parts, dice)
    kind, payload = parts[at]
    layout = FIELDS.get(ChunkType(kind)) if kind in set(ChunkType) else None
    if layout is None or len(payload) < layout.size:
        return
    values = list(layout.unpack_from(payload))
    field = dice.randrange(len(values))
    if not isinstance(values[field], int):
        return
    for _ in range(20):
        values[field] = dice.choice((*ODD_INTEGERS, values[field] + 1, values[field] - 1))
        try:
            parts[at] = kind, layout.pack(*values) + payload[layout.size :]
        except struct.error:
            continue
        return


def _odd_array(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    """The first packed array of a block of samples gets odd values, and may be longer or shorter."""
    places = [at for at, (kind, _) in enumerate(parts) if kind == ChunkType.SAMPLES]
    if not places:
        return
    at = dice.choice(places)
    payload = parts[at][1]
    head = chunks.SAMPLES_FIELDS.size
    try:
        values, end = decode_array(payload, head)
    except (MalformedError, struct.error):
        return
    numbers = values.tolist()
    for _ in range(dice.randrange(1, 4)):
        number = dice.choice([each for each in ODD_INTEGERS if -(1 << 63) <= each < 1 << 63])
        numbers.insert(dice.randrange(len(numbers) + 1), number)
        del numbers[dice.randrange(len(numbers))]
    if dice.random() < 0.3:
        numbers = numbers[: dice.randrange(len(numbers) + 1)] * dice.choice((0, 1, 1, 2))
    parts[at] = ChunkType.SAMPLES, payload[:head] + encode_array(numbers[:4096]) + payload[end:]


def _odd_payload(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    at = _some_place(parts, dice)
    parts[at] = parts[at][0], _odd_word(parts[at][1], dice)


def _cut_payload(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    at = _some_place(parts, dice)
    kind, payload = parts[at]
    parts[at] = kind, payload[: dice.randrange(len(payload) + 1)]


def _longer_payload(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    at = _some_place(parts, dice)
    kind, payload = parts[at]
    where = dice.randrange(len(payload) + 1)
    parts[at] = kind, payload[:where] + dice.randbytes(dice.randrange(1, 40)) + payload[where:]


def _odd_text(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    """A fact, a file, an event or the name of a counter is damaged as text; its lengths stay right where they can."""
    places = [at for at, (kind, payload) in enumerate(parts) if kind in TEXTS and len(payload) > 16]
    if not places:
        return
    at = dice.choice(places)
    kind, payload = parts[at]
    if kind == ChunkType.FILE:
        parts[at] = kind, _changed_file(payload, dice)
        return
    head = FIELDS[ChunkType(kind)].size
    changed = mutated(payload[head:], dice.randrange(1 << 32))
    parts[at] = kind, payload[:head] + changed.ljust(len(payload) - head, b" ")[: len(payload) - head]


def _lend(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    parts.insert(_some_place(parts, dice), dice.choice(lent))


def _drop(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    del parts[_some_place(parts, dice)]


def _drop_kind(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    """Every chunk of one type is gone."""
    gone = parts[_some_place(parts, dice)][0]
    parts[:] = [part for part in parts if part[0] != gone]


def _repeat(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    parts.insert(_some_place(parts, dice), parts[_some_place(parts, dice)])


def _move(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    parts.insert(_some_place(parts, dice), parts.pop(_some_place(parts, dice)))


def _other_kind(parts: list[Chunk], lent: list[Chunk], dice: Dice) -> None:
    at = _some_place(parts, dice)
    parts[at] = dice.choice((*ChunkType, 0, 17, 65_535)), parts[at][1]


def _some_place(parts: list[Chunk], dice: Dice) -> int:
    """A place in the record. Each type is equally likely, because most chunks are of few types."""
    kind = dice.choice(sorted({kind for kind, _ in parts}))
    return dice.choice([at for at, part in enumerate(parts) if part[0] == kind])


WAYS: tuple[Callable[[list[Chunk], list[Chunk], Dice], None], ...] = (
    *(*[_odd_field] * 5, *[_odd_payload] * 3, *[_odd_array] * 2, *[_odd_text] * 3),
    *(_cut_payload, _longer_payload, _lend, _drop, _drop_kind, _repeat, _move, _other_kind),
)
