# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: it asks for nothing, complains about nothing, draws its plots and fits its window."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from xml.etree import ElementTree

import campaign_cases
import chromium
import pytest
import report_cases
from analyses_by_verdict import FIRST
from history_cases import stepped
from report_cases import CASES, missed, normal

from rtproof import articles, report
from rtproof.compare.history import FEWEST, analyse_history
from rtproof.experiment.stored_runs import read_run
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Curve, Plot, Section, Table
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign
from rtproof.report.pages.comparison_figures import in_own_colours
from rtproof.report.pages.history_page import history_sections

pytestmark = pytest.mark.skipif(chromium.program() is None, reason="there is no chromium")

# How many pixels of each plot are drawn at all, and how many different colours they have.
PAINTED_HTML = """[...document.querySelectorAll(".chart canvas")].map((canvas) => {
  const { width, height } = canvas, data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const colours = new Set();
  let painted = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 200) continue;
    painted++;
    colours.add(data.slice(at, at + 3).join());
  }
  return [painted, colours.size];
})"""
INPUTS = Path(__file__).parent / "golden_outputs" / "inputs"
TEXT_COLOUR = "getComputedStyle(document.body).color"
SCROLLS_SIDEWAYS_HTML = "document.documentElement.scrollWidth > innerWidth"


def write(analysis: Analysis, folder: Path, name: str) -> Path:
    path = folder / f"{name}.html"
    path.write_bytes(report.render("html", report.title(analysis), report.compose(analysis)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def started(folder: Path) -> Iterator[chromium.Browser]:
    with chromium.browser(folder) as running:
        yield running


@pytest.mark.parametrize(("name", "scheme"), list(zip(CASES, cycle(("light", "dark")), strict=False)))
def test_the_page_is_silent_asks_for_nothing_and_draws_every_plot(
    started: chromium.Browser, folder: Path, name: str, scheme: str
) -> None:
    analysis = CASES[name]()
    path = write(analysis, folder, f"{name}-{scheme}")
    page = chromium.load(started, path, 1280, scheme)
    chromium.unfold(page)
    assert page.messages() == []
    assert [url for url in page.requests() if url != "data:,"] == [path.as_uri()]
    painted = page.evaluate(PAINTED_HTML)
    figures = sum(
        block.__class__.__name__ in ("Plot", "HeatMap") for s in report.compose(analysis) for block in s.blocks
    )
    assert len(painted) == figures
    assert all(pixels > 1_000 and colours > 2 for pixels, colours in painted)


@pytest.mark.parametrize("width", [400, 768, 1400])
def test_the_page_never_scrolls_sideways(started: chromium.Browser, folder: Path, width: int) -> None:
    page = chromium.load(started, write(CASES["hostile"](), folder, f"wide-{width}"), width, "light")
    chromium.unfold(page)
    assert page.evaluate("innerWidth") == width
    assert page.evaluate(SCROLLS_SIDEWAYS_HTML) is False


# The lowest pixels of the claim, the pictures, the causes and the cautions; the first picture's top; sizes of text.
FIRST_SCREEN = """(() => {
  const bottom = (element) => element.getBoundingClientRect().bottom;
  const bottoms = (selector) => [...document.querySelectorAll(selector)].map(bottom);
  const size = (element) => parseFloat(getComputedStyle(element).fontSize);
  return { claim: bottoms("#verdict-1"), pictures: bottoms(".pictures canvas"), reasons: bottoms(".reasons > *"),
           picture: document.querySelector(".pictures figure").getBoundingClientRect().top,
           questions: [...document.querySelectorAll(".rest dt")].map((each) => each.textContent),
           large: size(document.querySelector("#verdict-1 .headline")), usual: size(document.body) };
})()"""
SCREEN_PX = 800
SEEN_HEADINGS = "[...document.querySelectorAll('h2')].filter((each) => each.offsetWidth > 1).length"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", FIRST)
def test_the_first_screen_has_the_verdict_pictures_and_cautions(
    started: chromium.Browser, folder: Path, name: str, width: int
) -> None:
    """With the state large. A telephone has room for one of the pictures; the cautions are a link there."""
    page = chromium.load(started, write(FIRST[name](), folder, f"first-{name}-{width}"), width, "light")
    seen = page.evaluate(FIRST_SCREEN)
    assert 0 < seen["claim"][0] <= seen["picture"] <= 440
    assert len(seen["pictures"]) == 2
    assert seen["pictures"][0] <= SCREEN_PX
    assert width == 400 or max(seen["pictures"] + seen["reasons"]) <= SCREEN_PX
    assert seen["large"] > 1.8 * seen["usual"]
    assert "Valid for" in seen["questions"]
    assert page.evaluate(SCROLLS_SIDEWAYS_HTML) is False


def explained(folder: Path) -> Path:
    """The page of a stored run with a trace."""
    record = folder / "explained.rtrec"
    record.write_bytes(gzip.decompress((INPUTS / "explained-urgent-thread.rtrec.gz").read_bytes()))
    return write(read_run(record).analysis, folder, "explained")


def test_the_causes_stand_below_the_pictures_on_the_first_screen(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, explained(folder), 1280, "light")
    seen = page.evaluate(FIRST_SCREEN)
    assert "cause" in page.evaluate("document.querySelector('.reasons table').textContent")
    assert max(seen["pictures"]) < min(seen["reasons"])
    assert max(seen["reasons"]) <= SCREEN_PX


# Where the axis of the bars of causes ends, the last number on it, and the longest bar's end.
BARS_HTML = """(() => {
  const right = (element) => element.getBoundingClientRect().right;
  const ticks = [...document.querySelectorAll(".bars .axis > div > span")];
  const bars = [...document.querySelectorAll(".bars dd")];
  return [ticks.map((each) => Number(each.textContent.replaceAll(",", ""))), right(ticks.at(-1)), right(bars[0]),
          [...document.querySelectorAll(".bars .legend li")].map((each) => each.textContent)];
})()"""


def test_the_bars_of_causes_have_an_axis_and_the_names_of_the_table(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, explained(folder), 1280, "light")
    chromium.unfold(page)
    ticks, axis_end, bars_end, legend = page.evaluate(BARS_HTML)
    assert ticks[0] == 0
    assert len(ticks) >= 3
    assert abs(axis_end - bars_end) <= 1
    causes = page.evaluate("[...document.querySelectorAll('#explained tbody th')].map((each) => each.textContent)")
    assert set(legend) <= {*causes, "1 other cause", *(f"{n} other causes" for n in range(2, 99))}
    assert legend[0] == causes[0]


@pytest.mark.parametrize("width", [400, 1280])
def test_a_folded_page_has_three_screens_and_eight_headings(
    started: chromium.Browser, folder: Path, width: int
) -> None:
    page = chromium.load(started, explained(folder), width, "light")
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * SCREEN_PX
    assert 3 <= page.evaluate(SEEN_HEADINGS) <= 8
    assert chromium.accessibility_faults(page) == []


TOP_AND_HEIGHT = """(() => {
  const { top, height } = document.querySelector("#numbers").getBoundingClientRect();
  return [top, height];
})()"""


def test_a_link_unfolds_its_section_without_a_script(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, write(normal(), folder, "links"), 1280, "light")
    assert page.evaluate("document.querySelector('#numbers').closest('details').open") is False
    started.call("Emulation.setScriptExecutionDisabled", page.session, value=True)
    page.evaluate("document.querySelector('nav a[href=\"#numbers\"]').click()")
    top, height = page.evaluate(TOP_AND_HEIGHT)
    assert page.evaluate("document.querySelector('#numbers').closest('details').open") is True
    assert -1 <= top < SCREEN_PX
    assert height > 100


def test_nothing_is_folded_on_paper(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, write(normal(), folder, "paper"), 1280, "light")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.settle()
    assert page.evaluate("document.querySelectorAll('.group:not([open]), .chart:empty').length") == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('.group[open]').length") == 0


@pytest.mark.parametrize(("name", "width"), list(zip(CASES, cycle((400, 1280)), strict=False)))
def test_every_axis_has_at_least_three_labels(started: chromium.Browser, folder: Path, name: str, width: int) -> None:
    page = chromium.load(started, write(CASES[name](), folder, f"axes-{name}-{width}"), width, "light")
    chromium.unfold(page)
    few = page.evaluate(
        """Object.entries(JSON.parse(document.getElementById("plots").textContent)).flatMap(([id, plot]) => {
          const labels = rtproofPlots.get(id)?.labels() ?? [[0, 0, 0], [0, 0, 0]];
          return labels.filter((axis) => axis.length < 3 || new Set(axis).size < axis.length).map((axis) => [id, axis]);
        })"""
    )
    assert few == []


SWATCHES = """[...document.querySelectorAll("table svg")].map((mark) =>
  [mark.getAttribute("class"), mark.parentElement.textContent.trim()])"""


def test_the_names_of_curves_have_their_colours_in_the_tables(started: chromium.Browser, folder: Path) -> None:
    """One colour for each name in all plots and tables, by heading, by row, and by the first two cells of a row."""
    plots = [
        Plot(title, "says", "x", "y", tuple(Curve(name, (1.0, 2.0), (2.0, 1.0)) for name in names))
        for title, names in (("first", ("a", "b", "idle, rt")), ("second", ("b", "other")))
    ]
    tables = (
        Table("columns", ("load", "a", "b"), (("idle", "1", "2"),)),
        Table("rows", ("cell", "system", "max"), (("1. a", "here", "b"), ("idle", "rt", "1"), ("", "stock", "2"))),
    )
    blocks = tuple(in_own_colours((*plots, *tables), ("a", "b", "idle, rt")))
    file = folder / "colours.html"
    file.write_bytes(report.render("html", "colours", [Section("all", "All", blocks)]))
    page = chromium.load(started, file, 1280, "light")
    assert page.messages() == []
    in_data = [("curve-0", "a"), ("curve-1", "b"), ("curve-2", "idle, rt"), ("curve-1", "b")]
    in_tables = [("curve-0", "a"), ("curve-1", "b"), ("curve-0", "1. a"), ("curve-2", "rt")]
    assert [tuple(one) for one in page.evaluate(SWATCHES)] == [*in_data, *in_tables]


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("length", [FEWEST, 300])
def test_the_axis_of_a_history_has_dates(started: chromium.Browser, folder: Path, length: int, width: int) -> None:
    sections = history_sections(analyse_history(stepped(length, length // 2)))
    file = folder / f"history-{length}-{width}.html"
    file.write_bytes(report.render("html", "a history", sections))
    page = chromium.load(started, file, width, "light")
    assert page.messages() == []
    axes = page.evaluate("[...rtproofPlots.values()].map((plot) => plot.labels()[0])")
    assert axes
    for dates in axes:
        assert len(set(dates)) == len(dates) >= 3
        assert all(date.startswith("202") for date in dates)


@pytest.mark.parametrize("name", ["normal", "missed", "several_fields"])
def test_a_plot_is_saved_as_a_picture_of_lines(started: chromium.Browser, folder: Path, name: str) -> None:
    """The text of every SVG is XML, with the title, the labels, a path for each curve that is shown, and the limits."""
    page = chromium.load(started, write(CASES[name](), folder, f"svg-{name}"), 1280, "light")
    chromium.unfold(page)
    for made, title, curves, markers in page.evaluate(
        """[...rtproofPlots.values()].map(({ svg, plot }) => [svg(), plot.title,
          plot.curves.filter((curve) => curve.y.some((y) => y > 0)).length, plot.markers.map((each) => each.name)])"""
    ):
        drawn = ElementTree.fromstring(made)
        words = [each.text or "" for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert words[0] == title
        paths = [each.get("d") for each in drawn.iter("{http://www.w3.org/2000/svg}path")]
        assert sum(bool(each) for each in paths) >= curves
        assert len(words) > 8
        assert all(any(name in text for text in words) for name in markers)


def test_the_rows_of_the_overlay_have_names_on_the_axis_and_few_cells_in_the_picture(
    started: chromium.Browser, folder: Path
) -> None:
    page = chromium.load(started, write(CASES["response"](), folder, "overlay"), 1280, "light")
    chromium.unfold(page)
    made, labels = page.evaluate(
        """[...rtproofPlots.values()].filter(({ plot }) => plot.rowNames)
          .map(({ svg, labels }) => [svg(), labels()[1]])[0]"""
    )
    words = [each.text for each in ElementTree.fromstring(made).iter("{http://www.w3.org/2000/svg}text")]
    assert labels == ["output old", "answers", "output new", "input old", "input edge", "input new"]
    assert set(labels) < set(words)
    assert len(made) < 60_000


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("hostile", 1280, "light"), ("missed", 1280, "dark"), ("several_fields", 400, "dark"),
        ("nothing", 400, "light"), ("proven", 400, "light"), ("refuted", 1280, "dark"), ("invalid", 1280, "light"),
        ("several", 1280, "light"),
    ],
)  # fmt: skip
def test_axe_finds_no_fault(started: chromium.Browser, folder: Path, name: str, width: int, scheme: str) -> None:
    made = (FIRST[name] if name in FIRST else CASES[name])()
    page = chromium.load(started, write(made, folder, f"axe-{name}"), width, scheme)
    assert chromium.accessibility_faults(page) == []


def test_the_plots_follow_when_the_system_turns_dark(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, write(normal(), folder, "turning"), 1280, "light")
    pixels = "document.querySelector('.chart canvas').toDataURL()"
    light, ink = page.evaluate(pixels), page.evaluate(TEXT_COLOUR)
    page.scheme("dark")
    assert page.evaluate(TEXT_COLOUR) != ink
    assert page.evaluate(pixels) != light
    page.scheme("light")
    assert page.evaluate(pixels) == light


def test_a_plot_follows_the_width_of_the_window(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, write(normal(), folder, "narrowing"), 1280, "light")
    widths = "[...document.querySelectorAll('.chart canvas')].map((canvas) => canvas.clientWidth)"
    assert min(page.evaluate(widths)) > 400
    size = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    started.call("Emulation.setDeviceMetricsOverride", page.session, **size)
    page.settle()
    assert max(page.evaluate(widths)) < 400


def test_a_curve_is_hidden_and_shown_by_its_button(started: chromium.Browser, folder: Path) -> None:
    page = chromium.load(started, write(missed(), folder, "legend"), 1280, "light")
    chromium.unfold(page)
    button = "document.querySelector('#ccdf .legend button')"
    pixels = "document.querySelector('#ccdf canvas').toDataURL()"
    before = page.evaluate(pixels)
    page.evaluate(f"{button}.click()")
    page.settle()
    assert page.evaluate(f"{button}.getAttribute('aria-pressed')") == "false"
    assert page.evaluate(pixels) != before
    page.evaluate(f"{button}.click()")
    page.settle()
    assert page.evaluate(f"{button}.getAttribute('aria-pressed')") == "true"
    assert page.evaluate(pixels) == before


def test_the_network_stack_was_asked_for_nothing(tmp_path: Path) -> None:
    """A page that does ask shows that this would be seen."""
    with chromium.browser(tmp_path) as running:
        chromium.load(running, write(normal(), tmp_path, "quiet"), 1280, "light")
        chromium.load(running, write(CASES["hostile"](), tmp_path, "hostile"), 1280, "light")
        asking = tmp_path / "asking.html"
        asking.write_text('<!doctype html><title>asks</title><img alt="" src="http://control.example/x">')
        page = chromium.load(running, asking, 1280, "light")
        assert "http://control.example/x" in page.requests()
        assert page.messages()
    assert chromium.asked_by_pages(tmp_path) == ["http://control.example/x"]


SYSTEMS = ("debian-6.1-rt on a board with a rather long name", "preempt=none", "preempt=voluntary", "preempt=full")
LOWEST = """(() => {
  const words = (element) => element.textContent.replaceAll("\\u00a0", " ");
  const found = [...document.querySelectorAll("#result > .text")].filter((each) => words(each).includes(%s));
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


CASES_CAMPAIGN: dict[str, tuple[Callable[[], Sequence[CellOutcome]], str, str]] = {
    "akamina": (campaign_cases.akamina, "akamina", "never exceeded"),
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
    for name, (make, article, _) in CASES_CAMPAIGN.items():
        profile, told = campaign_cases.shortened(name if name != "many" else "ten-ms"), make()
        sections = campaign_page.campaign_sections(MeasuredCampaign(profile, told, articles.load(article)))
        (folder / f"{name}.html").write_bytes(
            report.render("html", campaign_page.campaign_title(MeasuredCampaign(profile, told)), sections)
        )
        plots = sum(isinstance(block, Plot) for section in sections for block in section.blocks)
        found[name] = folder / f"{name}.html", plots
    return found


@pytest.mark.parametrize("name", ["ten-ms", "many"])
def test_axe_finds_no_fault_in_a_page_of_cells(
    started: chromium.Browser, pages: dict[str, tuple[Path, int]], name: str
) -> None:
    page = chromium.load(started, pages[name][0], 1280, "light")
    assert chromium.accessibility_faults(page) == []


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [(name, *window) for name, window in zip(CASES_CAMPAIGN, cycle(((400, "dark"), (1280, "light"))), strict=False)],
)
def test_the_answer_is_in_sight_and_the_page_is_silent_and_fits(
    started: chromium.Browser, pages: dict[str, tuple[Path, int]], name: str, width: int, scheme: str
) -> None:
    path, plots = pages[name]
    page = chromium.load(started, path, width, scheme)
    assert page.messages() == []
    assert [url for url in page.requests() if url != "data:,"] == [path.as_uri()]
    assert page.evaluate(LOWEST % repr(CASES_CAMPAIGN[name][2])) <= 800
    assert page.evaluate(SCROLLS_SIDEWAYS_HTML) is False
    painted = page.evaluate(PAINTED_HTML)
    assert len(painted) == plots
    assert all(pixels > 1_000 and colours > 2 for pixels, colours in painted)


def test_every_table_can_be_scrolled_by_keyboard(started: chromium.Browser, pages: dict[str, tuple[Path, int]]) -> None:
    page = chromium.load(started, pages["many"][0], 400, "light")
    wide = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{wide}.length") > 0
    assert page.evaluate(f"{wide}.every((box) => box.tabIndex === 0)") is True
