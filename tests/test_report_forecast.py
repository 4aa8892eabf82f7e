# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from forecast_cases import analysed, smooth
from report_cases import nothing, plots, sections_of, tables, words

from rtproof.judge.analysis_model import Analysis
from rtproof.report import render
from rtproof.report.blocks import Text
from rtproof.report.sections import forecast
from rtproof.schema.analysis_json import analysis_dict
from rtproof.tail.forecast_model import ForecastHorizon


def two_mechanisms() -> Analysis:
    largest, generator = smooth(), np.random.default_rng(3)
    at = generator.random(largest.size) < 0.01
    largest[at] = generator.normal(8e6, 2e5, int(at.sum())).astype(np.int64)
    return analysed(largest, 400_000)


@pytest.fixture(scope="module")
def given() -> Analysis:
    return analysed(smooth(), 400_000)


@pytest.fixture(scope="module")
def refused() -> Analysis:
    return two_mechanisms()


def test_what_is_given_says_what_it_is_not_and_what_holds_without_it(given: Analysis) -> None:
    said, free, *_ = forecast.forecast_section(given)
    assert isinstance(said, Text)
    assert isinstance(free, Text)
    assert said.headline.startswith("once-per-80-h level <= ")
    assert "not a proof" in said.headline
    assert any("cannot know of a mechanism" in line for line in said.paragraphs)
    assert "> 400 us: less often than once per 80 h (95 %, model-based)" in said.paragraphs
    assert free.headline == "What holds without a model"
    assert free.paragraphs[0].startswith("> 245.822 us: less often than once per")
    assert any("may be missing from this run" in line for line in free.paragraphs)


def test_a_refusal_gives_every_reason_and_what_holds_without_it(refused: Analysis) -> None:
    said, free, *_ = forecast.forecast_section(refused)
    assert isinstance(said, Text)
    assert isinstance(free, Text)
    assert said.kind == "doubt"
    assert said.headline.startswith("There is no forecast")
    assert said.paragraphs[0].startswith("FIT: the tail is not one smooth distribution")
    assert free.paragraphs[0].startswith("> ")


def test_the_plots_of_a_given_one(given: Analysis) -> None:
    levels, excess, fit = plots(forecast.forecast_section(given))
    names = [curve.name for curve in levels.curves]
    assert names == ["measured", "fitted", "upper limit, 95 %", "lower limit, 95 %"]
    assert [marker.name for marker in levels.markers] == ["limit 400 us", "measured until here"]
    assert "refused" not in levels.title
    assert max(levels.curves[2].x) == pytest.approx(80)
    assert [marker.name for marker in excess.markers] == ["fits begin here"]
    assert "Anderson-Darling p = " in fit.says


def test_a_refused_one_is_drawn_and_marked_as_refused(refused: Analysis) -> None:
    levels = plots(forecast.forecast_section(refused))[0]
    assert levels.title.endswith("(refused: FIT)")
    assert [marker.name for marker in levels.markers][1] == "refused beyond here: FIT"
    assert "must not be read as a forecast" in levels.says


def test_the_table_has_every_fit_and_whether_it_holds(given: Analysis) -> None:
    table = tables(forecast.forecast_section(given))["Fits of the tail by number of values; limit"]
    assert given.forecast is not None
    assert given.forecast.ladder is not None
    assert [row[0].replace(",", "") for row in table.rows] == [str(rung.k) for rung in given.forecast.ladder.rungs]
    assert {row[-1] for row in table.rows} <= {"yes", "no"}
    assert table.rows[0][-1] == "yes"


def test_a_short_run_has_its_reason_and_no_plot() -> None:
    blocks = forecast.forecast_section(analysed(smooth(0.2)))
    assert plots(blocks) == []
    assert "FEW: 72 tail events" in words(blocks)


def test_nothing_measured_has_no_section() -> None:
    assert "forecast" not in sections_of(nothing())


@pytest.mark.parametrize("horizon_ns", [1, 60 * 10**9, 3600 * 10**9])
def test_a_horizon_within_the_run_is_drawn_to_the_end_of_the_run(given: Analysis, horizon_ns: int) -> None:
    near = analysed(smooth(), 400_000, ForecastHorizon(horizon_ns))
    assert near.forecast is not None
    assert near.forecast.limit_ns == smooth().max() + 1
    levels, *_ = plots(forecast.forecast_section(near))
    assert max(levels.curves[2].x) == pytest.approx(8)
    assert "no less than the largest latency measured" in levels.says
    assert "limit_ns" in analysis_dict(near)["forecast"]["ladder"][0]


def test_latencies_below_0_are_drawn_too() -> None:
    below, above = (plots(forecast.forecast_section(analysed(smooth(3) - shift)))[0] for shift in (10**6, 0))
    assert not below.log_y
    assert above.log_y
    assert max(below.curves[0].y) == pytest.approx(int(smooth(3).max()) / 1000 - 1000)


def test_a_warning_stands_with_a_far_one() -> None:
    far = analysed(smooth(), horizon=ForecastHorizon(400 * 3600 * 10**9, far=True))
    assert "50 times as far" in words(forecast.forecast_section(far))


@pytest.mark.parametrize("form", ["html", "markdown", "text", "json"])
def test_every_format_draws_both(given: Analysis, refused: Analysis, form: str) -> None:
    for analysis in (given, refused):
        drawn = render(form, "t", [sections_of(analysis)["forecast"]]).decode()
        assert "What holds without a model" in drawn
        assert "nan" not in drawn.replace("nanosleep", "").lower()
