# SPDX-License-Identifier: Apache-2.0
"""Pages made by hand, as the kernel's ring buffer lays them out; real ones are read in test_agent_trace.py."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_cases import HEADER_PAGE, PRINT_FORMAT, TEXT, traced

from rtproof.core.errors import UserError
from rtproof.summary.kernel_trace import PageLayout, page_events, page_layout, print_addresses

MARK_ID = 5
OTHER_ID = 312
ADDRESS = 0xFFFFFFFF81498950
LAYOUTS = [PageLayout(order, 4096, 8, size, 8 + size) for order in "<>" for size in (4, 8)]
PAYLOADS = st.lists(st.integers(1, 60).map(lambda words: bytes(range(4)) * words), max_size=40)


def head(of: PageLayout, kind: int, delay: int = 1) -> bytes:
    return struct.pack(f"{of.order}I", kind << 27 | delay if of.big else delay << 5 | kind)


def entry(of: PageLayout, content: bytes) -> bytes:
    """An event: short ones tell their words in the head, others their bytes behind it."""
    words = len(content) // 4
    if words <= 28:
        return head(of, words) + content
    return head(of, 0) + struct.pack(f"{of.order}I", len(content) + 4) + content


def page(of: PageLayout, *entries: bytes, flags: int = 0) -> bytes:
    content = b"".join(entries)
    code = "I" if of.commit_size == 4 else "Q"
    start = struct.pack(f"{of.order}Q{code}", 1_000, len(content) | flags)
    return (start + content).ljust(of.page, b"\xff")


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


def test_a_record_tells_the_layout_or_is_refused() -> None:
    assert page_layout(traced()) == PageLayout("<", 4096, 8, 8, 16)
    assert page_layout(
        traced(about="endian big\n", header_page=HEADER_PAGE.replace("size:8;\tsigned:1", "size:4;"))
    ) == (PageLayout(">", 4096, 8, 4, 16))
    with pytest.raises(UserError, match="does not tell how the pages"):
        page_layout(traced(header_page="nothing"))


def mark(of: PageLayout, address: int) -> bytes:
    return entry(of, struct.pack(f"{of.order}HxxIQ4s", MARK_ID, 7601, address, b"work"))


def other(of: PageLayout) -> bytes:
    return entry(of, struct.pack(f"{of.order}HxxI8x", OTHER_ID, 7601))


def marked(raw: bytes, text: str) -> dict[int, str]:
    changes = {"events/ftrace/print/format": PRINT_FORMAT, "cpu0/raw": raw.decode("latin-1"), "text": text}
    return print_addresses(traced(**changes, encoding="latin-1"))


def test_marks_have_the_name_that_the_text_gives_their_address() -> None:
    of = LAYOUTS[1]
    lines = [line for line in TEXT.splitlines() if "[000]" in line]
    text = "\n".join([lines[0], lines[1].split(": ")[0] + ": tracing_mark_write: work 1"])
    assert marked(page(of, other(of), mark(of, ADDRESS)), text) == {ADDRESS: "tracing_mark_write"}
    assert marked(page(of, other(of), mark(of, ADDRESS), other(of)), text) == {}, "nobody knows which is which"
    assert marked(page(of, other(of), mark(of, ADDRESS)), TEXT) == {}, "no mark in the text"
