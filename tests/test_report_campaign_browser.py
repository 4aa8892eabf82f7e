# SPDX-License-Identifier: Apache-2.0
"""The page of a profile's cells in a real browser: silent, whole, as narrow as its window."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import campaign_cases
import chromium
import pytest
import report_cases
from test_report_html_browser import PAINTED, SCROLLS_SIDEWAYS

from rtproof import articles, report
from rtproof.report.blocks import Plot
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_outcomes import CellOutcome

pytestmark = pytest.mark.skipif(chromium.program() is None, reason="there is no chromium")

SYSTEMS = ("debian-6.1-rt on a board with a rather long name", "preempt=none", "preempt=voluntary", "preempt=full")
LOWEST = """(() => {
  const found = [...document.querySelectorAll("#result > .text")].filter((each) => each.textContent.includes(%s));
  return found.length === 1 ? found[0].getBoundingClientRect().bottom : NaN;
})()"""


def many() -> list[CellOutcome]:
    """Four systems with five cells each, of which one failed; the loops of all are INVALID."""
    profile = campaign_cases.shortened("ten-ms")
    case = report_cases.loop()
    told = [campaign_cases.outcome(profile, cell.key, case, name) for cell in profile.cells for name in SYSTEMS]
    return [replace(told[0], analysis=None, failure="there is no load 'pingflood'", link=""), *told[1:]]


def applications() -> list[CellOutcome]:
    return [replace(each, system=name) for name in SYSTEMS[:2] for each in campaign_cases.simple_rt_app()]


CASES: dict[str, tuple[Callable[[], Sequence[CellOutcome]], str, str]] = {
    "akamina": (campaign_cases.akamina, "akamina", "at most once per 1 h"),
    "ten-ms": (campaign_cases.ten_ms, "ten-ms", "Cycles out of the band"),
    "simple-rt-app": (applications, "simple-rt-app", "Loop time"),
    "bootlin-timer": (campaign_cases.bootlin, "bootlin", "Largest latency"),
    "many": (many, "ten-ms", "1 of 20 cells failed"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """Where each page lies, and how many plots it has."""
    folder = tmp_path_factory.mktemp("campaigns")
    found = {}
    for name, (make, article, _) in CASES.items():
        profile, told = campaign_cases.shortened(name if name != "many" else "ten-ms"), make()
        sections = campaign_page.campaign_sections(profile, told, articles.load(article))
        (folder / f"{name}.html").write_bytes(
            report.render("html", campaign_page.campaign_title(profile, told), sections)
        )
        plots = sum(isinstance(block, Plot) for section in sections for block in section.blocks)
        found[name] = folder / f"{name}.html", plots
    return found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    with chromium.browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_in_sight_and_the_page_is_silent_and_fits(
    started: chromium.Browser, pages: dict[str, tuple[Path, int]], name: str, width: int, scheme: str
) -> None:
    path, plots = pages[name]
    page = chromium.load(started, path, width, scheme)
    assert page.messages() == []
    assert [url for url in page.requests() if url != "data:,"] == [path.as_uri()]
    assert page.evaluate(LOWEST % repr(CASES[name][2])) <= 800
    assert page.evaluate(SCROLLS_SIDEWAYS) is False
    painted = page.evaluate(PAINTED)
    assert len(painted) == plots
    assert all(pixels > 1_000 and colours > 2 for pixels, colours in painted)


def test_every_table_can_be_scrolled_by_keyboard(started: chromium.Browser, pages: dict[str, tuple[Path, int]]) -> None:
    page = chromium.load(started, pages["many"][0], 400, "light")
    wide = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{wide}.length") > 0
    assert page.evaluate(f"{wide}.every((box) => box.tabIndex === 0)") is True


def test_long_names_of_rows_leave_room_for_what_is_said_of_them(
    started: chromium.Browser, pages: dict[str, tuple[Path, int]]
) -> None:
    """Of a table of two columns neither is squeezed, nor pushed out of its box."""
    page = chromium.load(started, pages["bootlin-timer"][0], 1280, "light")
    boxes = "[...document.querySelectorAll('#objections .scroll')]"
    assert page.evaluate(f"{boxes}.length") == 2
    assert page.evaluate(f"{boxes}.every((box) => box.scrollWidth <= box.clientWidth)") is True
    cells = f"{boxes}.flatMap((box) => [...box.querySelectorAll('td')]).map((cell) => cell.clientWidth)"
    assert min(page.evaluate(cells)) > 500
