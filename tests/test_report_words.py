# SPDX-License-Identifier: Apache-2.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.core.printable import clean
from rtproof.report.number_format import whole_number


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(words: str) -> None:
    cleaned = clean(words)
    assert cleaned.isprintable()
    assert len(cleaned) == len(words)
    assert clean(cleaned) == cleaned


def test_words_stay_as_they_are() -> None:
    assert clean("Überläufe: 5 µs\tand\nmore \x1b[31m\u202e") == "Überläufe: 5 µs and more \ufffd[31m\ufffd"


@pytest.mark.parametrize("words", ["", "-1", "1.5", " 1", "²", "\u0661", "1_000", "9" * 5_000, "0x10"])
def test_what_is_no_number(words: str) -> None:
    assert whole_number(words) is None


def test_what_is_a_number() -> None:
    assert (whole_number("007"), whole_number("18446744073709551615")) == (7, 2**64 - 1)
