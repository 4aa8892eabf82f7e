# SPDX-License-Identifier: Apache-2.0
"""Every figure of every article, edited into nonsense: one sentence with file, row and key, or an objection."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof import articles
from rtproof.articles import article
from rtproof.core.errors import UserError
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.summary.summary_model import Doubt

HEAD = 'title = "T"\nsource = "S"\nabout = "A"\n'
FIGURE = re.compile(
    r"\b(?P<key>duration|asked|loadavg|priority|period|count|low|high|below|above|min|actual|mean|max|deviation|bins"
    r'|bin_width|bin_from|bin_to|bin_share) = (?P<value>"[^"]*"|\d+)'
)
NOT_NUMBERS = ("nan", "inf", "true", "[1]", "{ a = 1 }", '""', '"soon"', '"nan us"', '"-inf us"', '"1 2 us"', "1e400")
UNITS = ("ns", "us", "ms", "s", "min", "h")


@dataclass(frozen=True)
class Place:
    """A figure in the text of a row."""

    article: str
    row: str
    key: str
    value: str
    at: tuple[int, int]
    block: str

    @property
    def field(self) -> str:
        """Name of the thread or field that the figure is of; empty for one of the whole row."""
        before: list[str] = re.findall(r'{ name = "(.*?)"', self.block[: self.at[0]])
        return before[-1] if before else ""

    def with_value(self, value: str) -> str:
        return HEAD + self.block[: self.at[0]] + f"{self.key} = {value}" + self.block[self.at[1] :]


def places(name: str) -> Iterator[Place]:
    for part in (article.FOLDER / f"{name}.toml").read_text().split("[[row]]")[1:]:
        block = f"[[row]]{part}"
        found = re.search(r'^key = "(.*)"', block, re.M)
        assert found
        for match in FIGURE.finditer(block):
            yield Place(name, found[1], match["key"], match["value"].strip('"'), match.span(), block)


def whole(place: Place) -> bool:
    """Whether the row tells enough to know its figures by each other."""
    return all(f"{key} = " in place.block for key in ("period", "count", "min", "mean", "max")) and (
        "\nduration = " in place.block or "\nasked = " in place.block
    )


def read(folder: Path, text: str) -> articles.Article:
    path = folder / "mine.toml"
    path.write_text(text)
    return articles.read(path)


@cache
def usual(name: str) -> frozenset[Doubt]:
    return frozenset(doubts_about_rows(articles.claims(articles.load(name))))


def refused_or_objected(folder: Path, place: Place, text: str) -> bool:
    """A refusal has to name the file, the row and the key, and an objection the row."""
    try:
        article = read(folder, text)
    except UserError as error:
        told = str(error)
        assert told.startswith(f"{folder}/mine.toml, row {place.row!r}: "), told
        assert "\n" not in told
        return True
    found: tuple[Doubt, ...] = doubts_about_rows(articles.claims(article))
    return any(each not in usual(place.article) and place.row in each.rows for each in found)


def nonsense(place: Place) -> Iterator[str]:
    """Values that can be no figure of any row."""
    yield from NOT_NUMBERS
    if place.value.isdigit():
        yield from (f"-{int(place.value) + 1}", f"{place.value}.5", f'"{place.value}"', "9" * 40, f'"{place.value} us"')
        return
    number = re.sub(r"[^0-9. ]", "", place.value).strip()
    yield from (f'"{number} parsec"', "5", f'"{"9" * 40} h"', f'"{number}..1 us"')
    if place.key != "loadavg":
        yield f'"{number}"'
    if place.key != "min":
        yield f'"-{place.value}"'
    if place.key not in ("max", "duration"):
        yield f'">{place.value}"'


@pytest.mark.parametrize("name", articles.names())
def test_what_is_no_number_is_refused(tmp_path: Path, name: str) -> None:
    for place in places(name):
        for value in nonsense(place):
            with pytest.raises(UserError) as caught:
                read(tmp_path, place.with_value(value))
            told = str(caught.value)
            assert told.startswith(f"{tmp_path}/mine.toml, row {place.row!r}: "), (value, told)
            assert place.key in told, (place.row, place.key, value, told)
            assert "\n" not in told


def wrong(place: Place) -> Iterator[str]:
    """Values that make a whole row contradict itself."""
    if place.key == "count":
        yield from (str(int(place.value) * 1_000), str(int(place.value) // 1_000), "0")
    elif place.key in ("period", "mean", "duration", "asked"):
        for unit in UNITS:
            other = re.sub(r"\b(ns|us|ms|s|min|h)\b", unit, place.value)
            if other != place.value and (place.key != "mean" or not place.value.startswith("0")):
                yield f'"{other}"'
    elif place.key == "max":
        yield from (f'"{place.value.split()[0]} {unit}"' for unit in ("ns", "s", "min", "h"))


@pytest.mark.parametrize("name", ["bootlin", "toradex"])
def test_a_wrong_unit_or_count_is_refused_or_objected_to(tmp_path: Path, name: str) -> None:
    """Where the row tells its length, period, count and three figures."""
    tried = 0
    for place in filter(whole, places(name)):
        for value in wrong(place):
            tried += 1
            assert refused_or_objected(tmp_path, place, place.with_value(value)), (place.row, place.key, value)
    assert tried > 200


EDITS = tomllib.loads((Path(__file__).parent / "data" / "article_edits.toml").read_text())


def edited(folder: Path, case: dict[str, Any]) -> list[Doubt]:
    """What is objected to in the edited row, beyond the usual."""
    _, *blocks = (article.FOLDER / f"{case['article']}.toml").read_text().split("[[row]]")
    at = next(at for at, block in enumerate(blocks) if f'key = "{case["row"]}"' in block)
    for before, after in case["edits"]:
        assert before in blocks[at], before
        blocks[at] = blocks[at].replace(before, after)
    text = HEAD + "".join(f"[[row]]{block}" for block in blocks)
    known = usual(case["article"])
    return [each for each in doubts_about_rows(articles.claims(read(folder, text))) if each not in known]


@pytest.mark.parametrize("case", EDITS["defect"], ids=lambda case: case["name"])
def test_a_defect_in_an_article_s_table_is_found(case: dict[str, Any], tmp_path: Path) -> None:
    if case["code"] == "refused":
        with pytest.raises(UserError, match=f"row '{case['row']}'"):
            edited(tmp_path, case)
        return
    assert case["code"] in {each.code for each in edited(tmp_path, case) if case["row"] in each.rows}


@pytest.mark.parametrize("case", EDITS["sound"], ids=lambda case: case["name"])
def test_a_sound_variation_of_an_article_s_table_is_left_alone(case: dict[str, Any], tmp_path: Path) -> None:
    assert edited(tmp_path, case) == []


# The articles' numbers as data: all are there, and nonsense in a file is refused in one sentence.


ROW = """title = "T"
source = "S"
about = "A"
[[row]]
key = "a"
label = "A"
section = "s"
board = "b"
kernel = "k"
"""
LIMIT = '[[statement]]\nkey = "s"\nrows = ["a"]\nfield = "latency"\nsays = "below"\nlimit = "9 us"\n'
NUMBERS = 'numbers = [{ name = "latency", count = 5, min = "1 us", mean = "2 us", max = "3 us" }]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        ("bootlin", {"count": 954_912_912, "min": 378.568, "mean": 4_167.934, "max": 192_943.585 + 61_419}),
        ("ten-ms", {"count": 44_370, "below": 2_948, "above": 1_396, "min": 29_730, "max": 63_740}),
        ("simple-rt-app", {"min": 10_588, "mean": 12_648, "max": 17_399, "deviation": 661.7}),
        ("toradex", {"count": 24_014_686, "min": 194, "actual": 533, "mean": 581, "max": 82_027, "period": 26_500}),
        ("akamina", {"count": 16 * 1_500_000, "bins": 8 * 4_500, "bin_from": 42, "bin_to": 50}),
    ],
)
def test_figures_add_up_to_those_of_the_articles(name: str, sums: dict[str, float]) -> None:
    """Sums over the pages themselves, times in microseconds: no figure can be changed or lost unseen."""
    parts = [numbers.figures for row in articles.load(name).rows for numbers in row.numbers]
    for key, total in sums.items():
        found = [figures[key] for figures in parts if key in figures]
        summed = sum(each.value / (1_000 if each.unit == "ns" else 1) for each in found)
        assert summed == pytest.approx(total, rel=1e-9), key


def test_lengths_and_load_averages_add_up_to_those_of_the_articles() -> None:
    bootlin, toradex = articles.load("bootlin").rows, articles.load("toradex").rows
    minutes = [round(row.duration.value / 60e9) for row in bootlin if row.duration]
    assert sum(minutes) == 16_200 + (12 + 4 + 11 + 11 + 3 * 3) * 60
    assert sum(row.asked.value for row in toradex if row.asked) == 240 * 60e9
    assert sum(sum(row.loadavg) for row in toradex) == pytest.approx(83.72)


def test_a_printed_duration_is_only_as_exact_as_its_last_digit() -> None:
    claims = {claim.name: claim for claim in articles.claims(articles.load("bootlin"))}
    minute, exact = claims["timer-g20-rt-clock-nanosleep"].span, claims["xenomai-g45-user"].span
    assert minute is not None
    assert exact is not None
    assert (minute.told_ns, minute.shortest_ns, minute.longest_ns) == (
        160_200 * 10**9,
        160_170 * 10**9,
        160_260 * 10**9,
    )
    assert exact.shortest_ns == exact.longest_ns == 36_000 * 10**9
    assert claims["xenomai-9263-irq"].span is None


def test_fields_of_the_same_activations_have_their_number_in_common(tmp_path: Path) -> None:
    assert articles.load("simple-rt-app").rows[0].figures["count"].value == 1000
    two = 'numbers = [{{ name = "a", count = 5 }}, {{ name = "b", count = {} }}]\n'
    for count, found in ((5, True), (6, False)):
        (row,) = articles.read(written(tmp_path, ROW + two.format(count))).rows
        assert ("count" in row.figures) is found


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (NUMBERS.replace('"2 us"', '"4 us"'), "mean: it is larger than max"),
        (NUMBERS.replace('"1 us"', '"3500 ns"'), "min: it is larger than mean"),
        (NUMBERS.replace("count = 5", "count = -5"), "count: -5 is a negative count"),
        (NUMBERS.replace("count", "cuont"), "there is no key 'cuont'"),
        (NUMBERS.replace("3 us", "3"), "max: '3' is not a time"),
        (NUMBERS.replace("1 us", ">1 us"), "min: only a maximum can be a lower bound"),
        (NUMBERS.replace("count = 5", "count = 5, below = 4, above = 2"), "below and above: together more than count"),
        (NUMBERS.replace("count = 5", f"count = {10**30}"), "row 'a'"),
        (NUMBERS.replace("count = 5", 'kind = "x"'), "kind: 'x' is none of latency"),
        ('loadavg = "1 2 ²"\n', "loadavg: '1 2 ²' is not three numbers"),
        ('duration = "0 h"\n', "duration: it has to be longer than 0"),
        ("priority = 100\n", "priority: it lies between 0 and 99"),
        (NUMBERS + ROW.partition('A"\n')[2], "key: another row has the same one"),
        ('[[statement]]\nkey = "s"\nrows = ["b", "a"]\nfield = "f"\nsays = "same"\n', "rows: there is no row 'b'"),
        (NUMBERS + LIMIT.replace('limit = "9 us"\n', ""), "limit: 'below' has one"),
        (NUMBERS + LIMIT.replace('"below"', '"same"'), "rows: 'same' is said of 2"),
        (NUMBERS + LIMIT.replace('"9 us"', '">9 us"'), "limit: it has to be more than 0, and exact"),
        (NUMBERS + LIMIT.replace('["a"]', "[]"), "rows: 'below' is said of some"),
    ],
)
def test_nonsense_is_refused_with_file_row_and_key(tmp_path: Path, wrong: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        articles.read(written(tmp_path, ROW + wrong))
    assert str(caught.value).startswith(f"{tmp_path}/mine.toml, ")
    assert sentence in str(caught.value), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "x", "title = 1", f"a = {'9' * 5000}", "row = 3", "a = " + "[" * 100_000])
def test_what_is_no_article_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"/mine\.toml"):
        articles.read(written(tmp_path, text))


@given(st.text(max_size=20))
def test_a_time_is_read_or_refused(text: str) -> None:
    try:
        figure = article.printed_time(text)
    except UserError:
        return
    assert figure.unit == "ns"


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [
        ("44 h 30 min", 160_200 * 10**9, 60 * 10**9),
        ("8.720 us", 8_720, 1),
        ("195.8 us", 195_800, 100),
        ("-3.835 us", -3_835, 1),
        (">30 ms", 30_000_000, 1_000_000),
    ],
)
def test_a_number_knows_the_unit_of_its_last_digit(text: str, value: int, step: int) -> None:
    figure = article.printed_duration(text)
    assert (figure.value, figure.step, figure.at_least) == (value, step, text.startswith(">"))
