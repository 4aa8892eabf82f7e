# SPDX-License-Identifier: Apache-2.0
"""The plots alone, as SVG and PNG: every plot is there with its words, and what cannot be drawn is refused."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_cases import missed, normal, several_fields
from run_folders import latencies, write_record

from rtproof import report
from rtproof.cli.main import main
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Curve, HeatMap, Marker, Plot, Section
from rtproof.report.formats import svg

pytest.importorskip("matplotlib", reason="there is no matplotlib")

pytestmark = pytest.mark.filterwarnings("error")

NAMESPACE = "{http://www.w3.org/2000/svg}"


def words_of(drawn: bytes) -> str:
    return " ".join("".join(each.itertext()) for each in ElementTree.fromstring(drawn).iter(f"{NAMESPACE}text"))


def drawn_sections(analysis: Analysis, name: str = "") -> bytes:
    sections = [each for each in report.compose(analysis) if each.name == name or not name]
    return report.render("svg", report.title(analysis), sections)


@pytest.mark.parametrize("name", ["histogram", "ccdf", "timeline"])
def test_of_one_section_every_plot_is_drawn(name: str) -> None:
    analysis = missed()
    plots = [
        block
        for section in report.compose(analysis)
        if section.name == name
        for block in section.blocks
        if isinstance(block, Plot | HeatMap)
    ]
    words = words_of(drawn_sections(analysis, name))
    assert len(plots) > 0
    assert all(plot.title in words for plot in plots)
    assert "limit 500 us" in words
    assert "$" not in words


def test_the_title_with_the_verdict_and_the_kind_of_time_is_in_the_picture() -> None:
    analysis = several_fields()
    assert report.title(analysis) in words_of(drawn_sections(analysis, "histogram")).replace("  ", " ")
    assert report.title(analysis).endswith(", virtual time")
    assert analysis.verdict.state.word in report.title(analysis)


def test_the_labels_of_a_logarithmic_axis_are_numbers() -> None:
    plot = Plot("a tail", "", "latency", "share", (Curve("one", (1.0, 5e4), (1.0, 0.001)),), log_x=True, log_y=True)
    words = words_of(svg.draw("a title", [Section("tail", "A tail", (plot,))]))
    assert "mathdefault" not in words
    assert {"10", "1,000", "10,000", "0.1", "0.01"} <= set(words.split())


def test_an_axis_of_dates_has_dates() -> None:
    days = tuple(86_400.0 * day for day in range(20_458, 20_518))
    marks = (Marker("kernel release 6.12", "x", days[20], "note"), Marker("limit 9 us", "y", 9.0))
    plot = Plot("a history", "", "start", "us", (Curve("one", days, days),), marks, style="dots", x_dates=True)
    words = words_of(svg.draw("a title", [Section("plots", "Plots", (plot,))]))
    assert {"Feb", "Mar", "6.12"} <= set(words.split())


def test_the_same_plots_are_the_same_bytes() -> None:
    assert drawn_sections(normal()) == drawn_sections(normal())


def test_bars_are_drawn_with_the_gaps_between_them() -> None:
    curve = Curve("one", (0.0, 1.0, 5.0), (3.0, 4.0, 1.0))
    assert svg._bins(curve, 1.0) == ([0.0, 1.0, 2.0, 5.0, 6.0], [3.0, 4.0, 0.0, 1.0])
    assert svg._bins(Curve("one", (1.0, 10.0, 100.0), (3.0, 4.0, 0.0)), 0.0) == ([1.0, 10.0, 100.0], [3.0, 4.0])


@pytest.mark.parametrize("style", ["bars", "step", "line"])
def test_a_thread_without_samples_leaves_the_others_drawn(style: str) -> None:
    curves = (Curve("none", (), ()), Curve("one", (1.0, 2.0), (1.0, 2.0)))
    plot = Plot("title", "says", "x", "y", curves, style=style)
    assert "title" in words_of(svg.draw("t", [Section("s", "S", (plot,))]))


def test_words_that_matplotlib_would_take_for_formulas_are_words() -> None:
    plot = Plot(
        "$\\frac{", "says", "x_$^", "y", (Curve("_$}{", (1.0, 2.0), (1.0, 2.0)), Curve("b", (1.0,), (2.0,))),
        (Marker("$limit$ 5 us", "x", 1.5), Marker("100 %", "y", 1.5, "note")), y_words=("$a is later", "b$ is later"),
    )  # fmt: skip
    words = words_of(svg.draw("t", [Section("s", "S", (plot,))]))
    assert "$\\frac{" in words
    assert "$limit$ 5 us" in words
    assert "↑ b$ is later" in words


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_record(Path("x.rtrec"), latencies(1, 2_000))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--section", "percentile"], "there is no section 'percentile' (did you mean 'percentiles'?); there are: "),
        (["--format", "svg", "--section", "verdict"], "there is no plot to draw as SVG"),
        (["--format", "sgv"], "did you mean 'svg'?"),
    ],
)
def test_refusals(run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert main(["report", str(run), *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err
    assert [each.name for each in Path().iterdir()] == ["x.rtrec"]
