# SPDX-License-Identifier: Apache-2.0
"""The checksum of the program ``cksum``, which also small boards have."""


def posix_checksum(content: bytes) -> int:
    """What ``cksum`` prints (POSIX.1-2017, cksum): a CRC of the bytes and then of their number."""
    length, count = len(content), bytearray()
    while length:
        count.append(length & 255)
        length >>= 8
    crc = 0
    for byte in content + bytes(count):
        crc = (crc << 8 & 0xFFFFFFFF) ^ _CRC_TABLE[crc >> 24 ^ byte]
    return crc ^ 0xFFFFFFFF


def _crc_row(byte: int) -> int:
    crc = byte << 24
    for _ in range(8):
        crc = crc << 1 ^ (0x104C11DB7 if crc & 0x80000000 else 0)
    return crc


_CRC_TABLE = [_crc_row(byte) for byte in range(256)]
