# SPDX-License-Identifier: Apache-2.0
"""Fed with the articles' published numbers, the engine objects to their known defects and to no sound row."""

import pytest

from rtproof import articles
from rtproof.judge.objections import Objection, objections

XENOMAI = tuple(f"xenomai-{board}-{stage}" for board in ("g20", "g45", "9263") for stage in ("user", "kernel", "irq"))
DEFECTS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "bootlin": [
        ("samples-missing", ("timer-g20-plain-posix-timer",)),
        ("samples-missing", ("timer-g45-plain-posix-timer",)),
        ("samples-surplus", ("xenomai-g45-user",)),
        ("granularity", ("timer-g45-rt-setitimer",)),
        ("load-unproven", XENOMAI),
    ],
    "ten-ms": [("zero-is-no-bound", ("fifo-stress",))],
    "simple-rt-app": [],
    "toradex": [
        ("samples-missing", ("vybrid-voluntary",)),
        ("unequal-load", ("vybrid-voluntary", "vybrid-preempt", "vybrid-rt")),
    ],
    "akamina": [],
}


def found_in(name: str) -> tuple[Objection, ...]:
    return objections(articles.claims(articles.load(name)))


@pytest.mark.parametrize("name", articles.names())
def test_exactly_the_known_defects_are_objected_to(name: str) -> None:
    assert [(each.code, each.claims) for each in found_in(name)] == DEFECTS[name]


def test_all_articles_together_give_the_same() -> None:
    """Rows of different articles share no group, so nothing is compared that was not."""
    together = objections([claim for name in articles.names() for claim in articles.claims(articles.load(name))])
    assert len(together) == sum(map(len, DEFECTS.values()))


@pytest.mark.parametrize(
    ("name", "place", "figures"),
    [
        ("bootlin", 0, ("31,919,110", "40,140,000", "79.5 %")),
        ("bootlin", 1, ("30,618,980", "39,720,000", "77.1 %")),
        ("bootlin", 2, ("36,022,992", "22,992 more", "10 h")),
        ("bootlin", 3, ("1,000 us", "3,761 us", "2,441 us")),
        ("bootlin", 4, ("';' directly after '&'",)),
        ("ten-ms", 0, ("0 of 11,019", "0.00027", "36.7 s", "95 %")),
        ("toradex", 0, ("554,804", "1,800,000", "30.8 %")),
        ("toradex", 1, ("0.19", "0.05", "4.11", "not like for like")),
    ],
)
def test_an_objection_says_its_figures(name: str, place: int, figures: tuple[str, ...]) -> None:
    what = found_in(name)[place].what
    assert [figure for figure in figures if figure not in what] == []
