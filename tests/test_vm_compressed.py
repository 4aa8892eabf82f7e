# SPDX-License-Identifier: Apache-2.0

import bz2
import gzip
import lzma

import pytest

from rtproof.vm import kernel_files

TEXT = b"content " * 100
STREAMS = {
    "xz": lzma.compress(TEXT),
    "xz for x86": lzma.compress(
        TEXT,
        check=lzma.CHECK_CRC32,
        filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}],
    ),
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
}


@pytest.mark.parametrize("packed", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_is_unpacked_and_what_follows_it_is_left_out(packed: bytes) -> None:
    assert kernel_files.unpack_stream(packed + b"\x01\x02\x03\x04") == TEXT


@pytest.mark.parametrize("data", [b"", b"something", b"\xfd7zXZ\x00broken....", b"\x1f\x8b\x08\xff\xff\xff"])
def test_what_is_no_stream_gives_nothing(data: bytes) -> None:
    assert not kernel_files.unpack_stream(data)


def test_the_first_stream_with_the_wanted_content_is_found() -> None:
    other, wanted = gzip.compress(b"other"), lzma.compress(b"wanted")
    data = b"head" + other + b"between" + wanted + b"end"
    assert kernel_files.find_stream(data, lambda content: content == b"wanted") == b"wanted"
    assert kernel_files.find_stream(data, lambda content: content == b"absent") is None
