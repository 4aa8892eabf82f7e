# SPDX-License-Identifier: Apache-2.0
"""The compiled scanner (scanner/scan.c), loaded with ctypes. Python code is its reference and its fallback."""

import ctypes
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtproof.agents.build import find_scanner
from rtproof.core.errors import UserError
from rtproof.record.contents import Int64Array

ABI = 2
CRC_TABLES = 16 * 256
WALK_COLUMNS = 9
MOST_ROWS = 1024
"""Rows of one call of the walk: more than a window has of chunks but the smallest."""

_POINTERS = ctypes.c_void_p
_FIELDS = """
on_grid by_period chained_cycles period_ns longest_gap_ns n_slice_starts *slice_starts window *counts n_rest
*rest n_gaps *gap_due_ns *gap_value *gap_missed n_seconds *second *obtained *largest k n_top *top_value
*top_index *top_due_ns origin_ns unit_ns units n_levels *levels *above samples pairs catch_up_pairs
products_low products_high has_reach first_due_ns last_due_ns has_previous next_index previous_value
previous_wake_ns previous_due_ns was_long *scratch
"""
"""The fields of ``struct scan`` in their order; a star stands before a pointer."""


class ScanState(ctypes.Structure):
    """``struct scan`` of scanner/scan.h. Each field has 64 bits."""

    _fields_ = [(name.lstrip("*"), _POINTERS if name.startswith("*") else ctypes.c_int64) for name in _FIELDS.split()]


class Scanner:
    """The compiled scanner: its library, and the tables of its checksum."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        for function in (
            self._library.scan_abi,
            self._library.scan_size,
            self._library.scan_blocks,
            self._library.scan_walk,
        ):
            function.restype = ctypes.c_int64
        if self._library.scan_abi() != ABI or self._library.scan_size() != ctypes.sizeof(ScanState):
            raise UserError(f"{library} is a scanner of another version")
        self._tables = np.empty(CRC_TABLES, np.uint32)
        self._library.scan_prepare(_at(self._tables))

    def scan(self, state: ScanState, data: NDArray[np.uint8], start: Int64Array, length: Int64Array, lead: int) -> int:
        """Count the chunks that begin at ``start`` in data. The interpreter runs other threads meanwhile."""
        places = (_at(self._tables), _at(data), _at(start), _at(length))
        return int(
            self._library.scan_blocks(ctypes.byref(state), *places, ctypes.c_int64(start.size), ctypes.c_int64(lead))
        )

    def walk(self, data: memoryview, begin: int, end: int) -> list[list[int]]:
        """What the library tells of each of the next chunks in ``data[begin:end]``: see ``enum walk_column``.

        The list ends at the first chunk that is not whole or not sound, or after ``MOST_ROWS`` chunks.
        """
        part = np.frombuffer(data, np.uint8)[begin:end]
        rows = np.empty((MOST_ROWS, WALK_COLUMNS), np.int64)
        places = (_at(self._tables), _at(part), ctypes.c_int64(part.size), _at(rows), ctypes.c_int64(MOST_ROWS))
        found: list[list[int]] = rows[: self._library.scan_walk(*places)].tolist()
        return found


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@cache
def scanner() -> Scanner | None:
    """The scanner for this machine: the package's, or one compiled on its first use; None if nothing can compile it."""
    with suppress(UserError, OSError):
        return Scanner(find_scanner())
    return None
