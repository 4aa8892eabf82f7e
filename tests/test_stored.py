# SPDX-License-Identifier: Apache-2.0
"""Histograms in their stored form, unpacked when they are asked for."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.core.errors import RecordError
from rtproof.record import histogram_bins
from rtproof.record.contents import View
from rtproof.record.encoding import MalformedError, leb128_encode
from rtproof.record.histogram_bins import (
    StoredSlice,
    histogram_arrays,
    histogram_bytes,
    unpack_histograms,
    unzigzag,
    zigzag,
)

PLACES = st.integers(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN)
COUNTS = st.integers(1, 2**40)


def stored_slice(stored: bytes, count: int) -> StoredSlice:
    numbers = dict.fromkeys(("lost", "min", "max", "sum", "sum_squares", "pairs", "sum_products", "catch_up_pairs"), 0)
    return StoredSlice.of(stored, series=3, view=View.OBSERVED, first_due_ns=0, last_due_ns=1, count=count, **numbers)


def numbers(*values: int) -> bytes:
    return leb128_encode(np.array(values, dtype=np.uint64))


@given(st.dictionaries(PLACES, COUNTS))
def test_round_trip(histogram: dict[int, int]) -> None:
    places = np.array(sorted(histogram), dtype=np.int64)
    counts = np.array([histogram[place] for place in sorted(histogram)], dtype=np.int64)
    part = stored_slice(histogram_bytes(places, counts), sum(histogram.values()))
    assert part.bins.tolist() == places.tolist()
    assert part.bin_counts.tolist() == counts.tolist()


@given(st.integers(-(2**40), 2**40))
def test_zigzag(number: int) -> None:
    assert unzigzag(zigzag(number)) == number


def test_zigzag_begins_as_everywhere() -> None:
    assert [zigzag(number) for number in (0, -1, 1, -2, 2)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "stored",
    [
        numbers(0, 1, 0, 2),
        numbers(0, 0, 1, 3),
        numbers(0, 4),
        numbers(zigzag(histogram_bins.LAST_BIN), 1, 1, 2),
        numbers(zigzag(-2 - histogram_bins.LAST_BIN), 3),
        numbers(0, 2**63, 1, 2**63 + 3),
        numbers(0, 1, 2**63, 2),
    ],
    ids=["same bin twice", "empty bin", "wrong total", "above", "below", "huge counts", "huge step"],
)
def test_impossible_histograms(stored: bytes) -> None:
    with pytest.raises(MalformedError):
        histogram_arrays(stored, 3)
    with pytest.raises(RecordError, match="summary of series 3 is wrong"):
        _ = stored_slice(stored, 3).bins


def test_nobody_can_change_what_is_remembered() -> None:
    part = stored_slice(numbers(10, 3), 3)
    with pytest.raises(ValueError, match="read-only"):
        part.bin_counts[0] = 4


def test_goes_to_other_processes() -> None:
    part = pickle.loads(pickle.dumps(stored_slice(numbers(10, 3), 3)))
    assert part.bins.tolist() == [5]
    assert part.series == 3


def test_other_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="bin_count"):
        _ = stored_slice(b"", 0).bin_count


HISTOGRAM = st.dictionaries(PLACES, st.one_of(st.integers(1, 200), COUNTS), max_size=8)


@given(st.lists(HISTOGRAM, max_size=6))
def test_many_are_unpacked_at_once_like_each_alone(many: list[dict[int, int]]) -> None:
    ordered = [sorted(each.items()) for each in many]
    columns = [np.array(each, dtype=np.int64).reshape(-1, 2).T for each in ordered]
    parts = [stored_slice(histogram_bytes(*column), int(column[1].sum())) for column in columns]
    sizes, places, counts = unpack_histograms(parts)
    assert sizes.tolist() == [len(each) for each in many]
    assert list(zip(places.tolist(), counts.tolist(), strict=True)) == [pair for each in ordered for pair in each]


@pytest.mark.parametrize(
    "stored",
    [
        numbers(0, 1, 0, 2),
        numbers(0, 0, 1, 3),
        numbers(0, 4),
        numbers(zigzag(histogram_bins.LAST_BIN), 1, 1, 2),
        numbers(0, 1),
    ],
    ids=["same bin twice", "empty bin", "wrong total", "above", "too few"],
)
def test_one_impossible_histogram_among_many_is_told(stored: bytes) -> None:
    good = stored_slice(numbers(zigzag(5), 3), 3)
    with pytest.raises(RecordError, match="a summary of series 3 is wrong"):
        unpack_histograms([good, stored_slice(stored, 3), good])
