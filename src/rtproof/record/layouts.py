# SPDX-License-Identifier: Apache-2.0
"""The fields of fixed width that payloads begin with, in the order of docs/record-format.md."""

import struct

MAJOR = 1
MINOR = 3

BEGIN = struct.Struct("<HH16sqq")
FACT = struct.Struct("<qHB")
FILE = struct.Struct("<qBBH")
SERIES = struct.Struct("<HHiBqq")
SAMPLES = struct.Struct("<HHQq")
SUMMARY = struct.Struct("<HBBqqQQqqqQQQQQQ")
SECONDS = struct.Struct("<HHI")
TOP = struct.Struct("<HH")
COUNTER = struct.Struct("<HBB")
TICK = struct.Struct("<qH")
TICK_ENTRY = struct.Struct("<Hq")
EVENT = struct.Struct("<qH")
END = struct.Struct("<qB")
TOTALS = struct.Struct("<HQQQ")
LEVEL = struct.Struct("<HBBqqIQ")
ABOVE = struct.Struct("<HHI")
EXCEEDED = struct.Struct("<HH")
CONDITIONS = struct.Struct("<HHI")
DEVIATION = struct.Struct("<BI")
SHORT_COUNT = struct.Struct("<H")
LONG_COUNT = struct.Struct("<I")

ON_GRID = 1
HAS_SAMPLES = 2
EXTERNAL = 4
LOOP = 8
"""Flags of a SERIES."""
