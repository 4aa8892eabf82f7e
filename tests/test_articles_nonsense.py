# SPDX-License-Identifier: Apache-2.0
"""Every figure of every article, edited into nonsense: one sentence with file, row and key, or an objection."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rtproof import articles
from rtproof.articles import article_file
from rtproof.core.errors import UserError
from rtproof.judge.objections import Objection, objections

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
    for part in (article_file.FOLDER / f"{name}.toml").read_text().split("[[row]]")[1:]:
        block = f"[[row]]{part}"
        found = re.search(r'^key = "(.*)"', block, re.M)
        assert found
        for match in FIGURE.finditer(block):
            yield Place(name, found[1], match["key"], match["value"].strip('"'), match.span(), block)


ALL = [place for name in articles.names() for place in places(name)]


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
def usual(name: str) -> frozenset[str]:
    return frozenset(each.what for each in objections(articles.claims(articles.load(name))))


def refused_or_objected(folder: Path, place: Place, text: str) -> bool:
    """A refusal has to name the file, the row and the key, and an objection the row."""
    try:
        article = read(folder, text)
    except UserError as error:
        told = str(error)
        assert told.startswith(f"{folder}/mine.toml, row {place.row!r}: "), told
        assert "\n" not in told
        return True
    found: tuple[Objection, ...] = objections(articles.claims(article))
    return any(each.what not in usual(place.article) and place.row in each.claims for each in found)


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


def test_all_figures_are_looked_at() -> None:
    assert {name: sum(place.article == name for place in ALL) for name in articles.names()} == {
        "akamina": 84,
        "bootlin": 122,
        "simple-rt-app": 36,
        "ten-ms": 32,
        "toradex": 123,
    }


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


@pytest.mark.parametrize("name", articles.names())
def test_a_key_given_twice_is_one_sentence(tmp_path: Path, name: str) -> None:
    for place in places(name):
        twice = f"{place.block[slice(*place.at)]}{', ' if '{' in place.block[: place.at[0]] else chr(10)}"
        text = HEAD + place.block[: place.at[0]] + twice + place.block[place.at[0] :]
        with pytest.raises(UserError, match=r"/mine\.toml is not TOML: .*line \d+") as caught:
            read(tmp_path, text)
        assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize("name", ["simple-rt-app", "ten-ms"])
def test_the_fields_of_a_row_are_held_against_each_other(tmp_path: Path, name: str) -> None:
    """No length is told here: a factor of 1,000 in a time contradicts the other fields, or the counts out of band."""
    for place in places(name):
        if place.key in ("min", "max", "mean", "deviation", "period", "low", "high"):
            for unit in {"us": ("ns", "ms", "s"), "ms": ("us", "s")}[place.value.split()[1]]:
                text = place.with_value(f'"{place.value.split()[0]} {unit}"')
                if not refused_or_objected(tmp_path, place, text):
                    assert (place.row, place.field, place.key, unit) in PLAUSIBLE, (place, unit)


PLAUSIBLE = {
    *((row, "cycle", "low", "us") for row in ("other-idle", "fifo-stress", "fifo-stress-flood")),
    *((row, "cycle", "high", "s") for row in ("other-idle", "fifo-stress", "fifo-stress-flood")),
    *(("other-stress", "cycle", key, unit) for key, unit in (("period", "us"), ("min", "us"), ("max", "s"))),
    *((row, field, "min", "ns") for row in ("plain", "rt") for field in ("work", "top")),
}
"""A wider band that all cycles kept to, a row with cycles of nearly any length, and one value that is small."""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('threshold = "99.999"', "threshold: '99.999' is not a percentage"),
        ('threshold = "100 %"', "threshold: '100 %' is not a percentage"),
        ('threshold = "-1 %"', "threshold: '-1 %' is not a percentage"),
    ],
)
def test_a_threshold_of_nonsense_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    row = next(place.block for place in ALL if place.article == "akamina")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/mine.toml: {sentence}")):
        read(tmp_path, HEAD + text + "\n" + row)


@pytest.mark.parametrize("value", ["-70 us", "70", "0 us", "70 ms", "70 ns", "70 h", "soon"])
def test_a_value_above_which_nothing_lies_is_refused(tmp_path: Path, value: str) -> None:
    text = (article_file.FOLDER / "akamina.toml").read_text().replace('above = "70 us"', f'above = "{value}"')
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/mine.toml, statement 'preemption-26-24': above: ")):
        read(tmp_path, text)


@pytest.mark.parametrize("value", ["1.3", "130 %", "0 %", "-1 %", "some"])
def test_a_share_of_nonsense_is_refused(tmp_path: Path, value: str) -> None:
    text = (article_file.FOLDER / "akamina.toml").read_text().replace('top_share = "1.3 %"', f'top_share = "{value}"')
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/mine.toml, statement 'preemption-26-24': top_share: ")):
        read(tmp_path, text)
