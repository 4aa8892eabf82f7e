# SPDX-License-Identifier: Apache-2.0
"""What is compressed inside kernels and modules, unpacked with what Python brings."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol


class _Decompressor(Protocol):
    def decompress(self, data: bytes) -> bytes: ...


_KINDS: tuple[tuple[bytes, Callable[[], _Decompressor]], ...] = (
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    (b"\x1f\x8b\x08", lambda: zlib.decompressobj(wbits=31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\x5d\x00\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
)


def unpack(data: bytes) -> bytes | None:
    """The content of the stream that the data begin with (xz, gzip, bzip2, lzma); what follows it is left out.

    None if they begin with no such stream or it is broken.
    """
    for magic, decompressor in _KINDS:
        if data.startswith(magic):
            try:
                return decompressor().decompress(data)
            except (lzma.LZMAError, zlib.error, OSError, EOFError):
                return None
    return None


def find(data: bytes, wanted: Callable[[bytes], bool]) -> bytes | None:
    """The first stream anywhere in the data whose content is as wanted."""
    for magic, _ in _KINDS[:3]:
        at = data.find(magic)
        while at >= 0:
            content = unpack(data[at:])
            if content is not None and wanted(content):
                return content
            at = data.find(magic, at + 1)
    return None
