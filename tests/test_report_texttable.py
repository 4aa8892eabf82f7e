# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st

from rtproof.report.blocks import Table
from rtproof.report.text_table import FOLDED_ROWS, WIDTH, lay_out

CELLS = st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"]), max_size=200)


def test_numbers_stand_under_each_other() -> None:
    table = Table("Latency", ("thread", "max [us]"), (("thread 0", "5.000"), ("all", "1,250.000")), (1,))
    assert lay_out(table).splitlines() == [
        "Latency",
        "thread     max [us]",
        "--------  ---------",
        "thread 0      5.000",
        "all       1,250.000",
    ]


def test_long_words_are_wrapped_in_their_column() -> None:
    table = Table("What", ("line", "words"), (("A", "word " * 60), ("B", "x" * 250)))
    lines = lay_out(table).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lay_out(table).count("word") == 61
    assert lay_out(table).count("x") == 250
    assert [line[0] for line in lines if line[0] in "AB"] == ["A", "B"]


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5))
def test_no_table_of_few_columns_is_wider_than_the_terminal(rows: list[tuple[str, ...]]) -> None:
    text = lay_out(Table("Caption", ("a", "b", "c"), tuple(rows), (1,)))
    assert all(len(line) <= WIDTH and line.isprintable() for line in text.split("\n"))


def test_a_folded_table_shows_its_first_rows_and_how_many_more_there_are() -> None:
    rows = tuple((str(at), "x") for at in range(1_000, 3_500))
    lines = lay_out(Table("Long", ("n", "x"), rows, folded=True)).splitlines()
    assert lines[-2:] == [f"{1_000 + FOLDED_ROWS - 1}  x", f"... and {2_500 - FOLDED_ROWS:,} more rows"]
    assert "more rows" not in lay_out(Table("Short", ("n", "x"), rows[:FOLDED_ROWS], folded=True))
