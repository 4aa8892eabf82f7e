# SPDX-License-Identifier: Apache-2.0
"""How far a forecast looks, on the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forecast_cases import HOUR, smooth
from record_cases import BEGIN

from rtproof.cli.main import main
from rtproof.record.contents import End, EndReason, Series
from rtproof.record.writing import RecordWriter, SeriesWriter

Forecast = Callable[..., dict[str, object]]
SECOND = 10**9
SERIES = Series(0, 0, 2, True, True, SECOND, 0, "timer", "clock_nanosleep", "latency", "ns")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of three hours."""
    path = tmp_path_factory.mktemp("horizon") / "run.rtrec"
    largest = smooth(3)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES)
        feed = SeriesWriter(writer, SERIES, checkpoint_ns=600 * SECOND)
        feed.add(largest)
        totals = (feed.finish(),)
        writer.end(End(3 * HOUR * SECOND, EndReason.AS_ASKED, "as asked", totals))
    return path


@pytest.fixture
def forecast(run: Path, capsys: pytest.CaptureFixture[str]) -> Forecast:
    """What ``show`` says with these options."""

    def of(*options: str) -> dict[str, object]:
        main(["show", str(run), "--json", *options])
        found: dict[str, object] = json.loads(capsys.readouterr().out)["forecast"]
        return found

    return of


def test_the_usual_is_ten_times_the_run(forecast: Forecast) -> None:
    assert forecast()["horizon_ns"] == 10 * 3 * HOUR * SECOND


def test_a_horizon_is_what_was_asked_and_its_limit_is_nearer(forecast: Forecast) -> None:
    near, usual = forecast("--horizon", "6h"), forecast()
    assert near["horizon_ns"] == 6 * HOUR * SECOND
    assert isinstance(near["limit_ns"], int)
    assert isinstance(usual["limit_ns"], int)
    assert near["limit_ns"] < usual["limit_ns"]


def test_too_far_is_refused_unless_it_is_asked_for(forecast: Forecast) -> None:
    refusals = forecast("--horizon", "2d")["refusals"]
    assert isinstance(refusals, list)
    assert [each["code"] for each in refusals] == ["FAR"]
    far = forecast("--horizon", "2d", "--far")
    assert far["refusals"] == []
    assert far["warnings"]


def test_a_horizon_of_a_second_is_no_stumbling_block(forecast: Forecast) -> None:
    near = forecast("--horizon", "1s")
    assert near["refusals"] == []
    assert near["limit_ns"] == smooth(3).max() + 1


def test_the_report_has_it_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run), "--horizon", "6h", "--format", "text", "--output", "-"]) == 0
    assert "once-per-6-h level" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [(("--far",), "--far needs a --horizon"), (("--horizon", "0s"), "longer than 0"), (("--horizon", "9"), "no unit")],
)
def test_bad_input_is_told(run: Path, options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), *options]) == 2
    assert says in capsys.readouterr().err
