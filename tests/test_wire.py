# SPDX-License-Identifier: Apache-2.0
"""Strings and LEB128 numbers, and what runs past the end."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.encoding import Cursor, MalformedError, leb128_decode, leb128_encode, text_bytes

UINT64 = st.integers(0, 64).flatmap(lambda bits: st.integers(0, max(2**bits - 1, 0)))


def by_the_book(number: int) -> bytes:
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@given(st.lists(UINT64, max_size=50))
def test_leb128(numbers: list[int]) -> None:
    stored = leb128_encode(np.array(numbers, dtype=np.uint64))
    assert stored == b"".join(map(by_the_book, numbers))
    assert leb128_decode(stored, len(numbers)).tolist() == numbers


@pytest.mark.parametrize(
    ("stored", "count"),
    [(b"\x80", 0), (b"\x80", 1), (b"\x01", 2), (b"\x01\x02", 1), (b"\xff" * 9 + b"\x02", 1), (b"\x80" * 10 + b"\0", 1)],
    ids=["only begun", "no end", "too few", "too many", "65 bits", "eleven bytes"],
)
def test_no_leb128(stored: bytes, count: int) -> None:
    with pytest.raises(MalformedError):
        leb128_decode(stored, count)


@given(st.text())
def test_text(text: str) -> None:
    cursor = Cursor(text_bytes(text) + b"x")
    assert cursor.text() == text.encode("utf-8", "replace").decode()
    assert cursor.at == len(cursor.data) - 1


def test_long_text_is_cut_at_a_whole_character() -> None:
    cut = Cursor(text_bytes("x" + "ä" * 40_000)).text()
    assert cut == "x" + "ä" * 32_767


def test_wrong_utf8_is_kept_visible() -> None:
    assert Cursor(b"\x02\0a\xff").text() == "a\N{REPLACEMENT CHARACTER}"


def test_past_the_end() -> None:
    with pytest.raises(MalformedError, match="ends within the 4 bytes at 0"):
        Cursor(b"abc").take(struct.Struct("<I"))
    with pytest.raises(MalformedError, match="ends within the 9 bytes at 2"):
        Cursor(b"\x09\0abc").text()


def test_left_over() -> None:
    cursor = Cursor(b"abc")
    cursor.raw(2)
    with pytest.raises(MalformedError, match="1 bytes are left over"):
        cursor.finish()
