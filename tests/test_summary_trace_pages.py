# SPDX-License-Identifier: Apache-2.0
"""The pages of the kernel's ring buffer: every event with its time, in each byte order and word size."""

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_cases import LAYOUTS, entry, head, page

from rtproof.summary.trace_pages import PageLayout, page_events, timed_events, trace_pages

PAYLOADS = st.lists(st.integers(1, 60).map(lambda words: bytes(range(4)) * words), max_size=40)


@pytest.mark.parametrize("of", LAYOUTS)
@given(payloads=PAYLOADS)
def test_every_event_comes_out_as_it_went_in(of: PageLayout, payloads: list[bytes]) -> None:
    pages = b"".join(page(of, *map(of_content(of), payloads[at : at + 8])) for at in range(0, len(payloads), 8))
    assert [bytes(event) for event in page_events(pages, of)] == payloads


def of_content(of: PageLayout) -> Callable[[bytes], bytes]:
    return lambda content: entry(of, content)


@pytest.mark.parametrize("of", LAYOUTS)
def test_what_only_moves_the_clock_or_fills_is_no_event(of: PageLayout) -> None:
    one, word = entry(of, b"abcd"), struct.pack(f"{of.order}I", 8)
    filled = head(of, 29) + word + b"gone"
    later, stamped, rest = head(of, 30) + word, head(of, 31) + word, head(of, 29, 0)
    pages = page(of, later, one, filled, stamped, one, rest, one, flags=1 << 31)
    assert [bytes(event) for event in page_events(pages, of)] == [b"abcd", b"abcd"]


@pytest.mark.parametrize("of", LAYOUTS)
@given(content=st.binary(min_size=0, max_size=300))
def test_whatever_stands_on_a_page_is_read_without_an_end_beyond_it(of: PageLayout, content: bytes) -> None:
    assert sum(map(len, page_events(page(of, content), of))) <= len(content)


def times(pages: bytes, of: PageLayout) -> list[int]:
    return [time_ns for one in trace_pages(pages, of) for time_ns, _ in timed_events(one, of)]


@pytest.mark.parametrize("of", LAYOUTS)
@given(delays=st.lists(st.integers(1, 1 << 40), max_size=30))
def test_times_are_the_sums_of_the_delays(of: PageLayout, delays: list[int]) -> None:
    """A delay of more than 27 bits needs an event of its own before the event."""
    entries = [moved(of, 30, delay) + head(of, 1, 0) + b"abcd" for delay in delays]
    expected = [1_000 + sum(delays[: at + 1]) for at in range(len(delays))]
    assert times(page(of, *entries), of) == expected


def moved(of: PageLayout, kind: int, delay: int) -> bytes:
    return head(of, kind, delay & ((1 << 27) - 1)) + struct.pack(f"{of.order}I", delay >> 27)


@pytest.mark.parametrize("of", LAYOUTS)
@pytest.mark.parametrize("begin_ns", [5_000, (3 << 59) + 5_000])
def test_a_time_stamp_replaces_the_time_and_takes_its_highest_bits_from_the_page(of: PageLayout, begin_ns: int) -> None:
    low = (1 << 59) - 1
    one, stamp = head(of, 1, 7) + b"abcd", begin_ns + 1_000_000_000_000
    assert times(page(of, one, moved(of, 31, stamp & low), one, time_ns=begin_ns), of) == [begin_ns + 7, stamp + 7]
    wrapped = (1 << 59) - 10
    assert times(page(of, moved(of, 31, 3), one, time_ns=wrapped), of) == [(1 << 59) + 10], "the stamp has wrapped"


@pytest.mark.parametrize("of", LAYOUTS)
def test_a_discarded_event_takes_time(of: PageLayout) -> None:
    discarded = head(of, 29, 50) + struct.pack(f"{of.order}I", 8) + b"gone"
    assert times(page(of, discarded, head(of, 1, 5) + b"abcd"), of) == [1_055]


@pytest.mark.parametrize("of", LAYOUTS)
def test_a_page_tells_what_was_lost_before_it(of: PageLayout) -> None:
    one = entry(of, b"abcd")
    stored = (77).to_bytes(of.commit_size, "big" if of.big else "little")
    whole, some = page(of, one), page(of, one, flags=1 << 31)
    counted = page(of, one, flags=(1 << 31) | (1 << 30), behind=stored)
    assert [one.lost for one in trace_pages(whole + some + counted, of)] == [0, None, 77]
    assert len(times(whole + some + counted, of)) == 3


def test_a_hundred_thousand_damaged_pages_are_read_without_an_end_beyond_them() -> None:
    chance = random.Random(15)
    small = [PageLayout(of.order, 256, of.commit, of.commit_size, of.data) for of in LAYOUTS]
    read = 0
    for number in range(100_000):
        of = small[number % len(small)]
        damaged = bytearray(page(of, *(entry(of, b"abcd" * chance.randint(1, 12)) for _ in range(5))))
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 0xFF, 29, 30, 31, chance.randrange(256)))
        for one in trace_pages(bytes(damaged[: chance.choice((256, 256, chance.randrange(256)))]), of):
            sizes = [len(content) for _, content in timed_events(one, of)]
            assert sum(sizes) <= of.page - of.data
            read += len(sizes)
    assert read > 100_000, "most events of the damaged pages are still there"
