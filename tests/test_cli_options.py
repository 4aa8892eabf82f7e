# SPDX-License-Identifier: Apache-2.0
"""Several limits on the command line, and what is refused."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from forecast_cases import HOUR, smooth
from msgspec import structs
from record_cases import BEGIN
from trace_cases import events_of_text, traced

from rtproof import profiles
from rtproof.cli import option_values
from rtproof.cli.main import main
from rtproof.cli.option_values import take_requirements
from rtproof.core.errors import UserError
from rtproof.experiment import exported_files
from rtproof.experiment.profile_campaign import profile_requirements
from rtproof.judge.analyse import analyse
from rtproof.record.contents import End, EndReason, Series
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter

SECOND = 10**9
HOUR_REQUIREMENT = 3600 * SECOND


def taken(limits: tuple[int, ...], at_most: tuple[int, ...] = (), **given: float) -> tuple[Requirement, ...]:
    rest = dict.fromkeys(("gap", "confidence", "longest", "bunches", "shows"))
    values = {"limits": limits, "at_most": at_most, **rest, **given, "other": 1}
    found = take_requirements(values)
    assert values == {"other": 1}
    return found


def test_one_time_for_all_or_one_for_each() -> None:
    hour = HOUR_REQUIREMENT
    assert taken((1, 2)) == (Requirement(1), Requirement(2))
    assert taken((1, 2), (90,), gap=7, confidence=0.9) == (Requirement(1, 90, 0.9, 7), Requirement(2, 90, 0.9, 7))
    assert taken((1, 1), (hour, 0)) == (Requirement(1, hour), Requirement(1))


def test_gap_and_longest_length_follow_the_time_that_is_asked_for() -> None:
    times = (10 * SECOND, 60 * SECOND, 20 * 60 * SECOND, 24 * HOUR_REQUIREMENT)
    found = taken((1, 2, 3, 4), times)
    assert [each.gap_ns / SECOND for each in found] == [0.5, 3, 60, 60]
    assert [each.longest_ns / SECOND for each in found] == [2.5, 15, 300, 600]
    assert taken((1,), (HOUR_REQUIREMENT,), longest=20 * 60 * SECOND, bunches=3.0) == (
        Requirement(1, HOUR_REQUIREMENT, gap_ns=60 * SECOND, longest_ns=20 * 60 * SECOND, bunches=3.0),
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--gap 10s", "--gap, --longest and --bunches need a --limit"),
        ("--limit 1us --gap 601s", "'601s' is not a gap between episodes from 1ms to 600s"),
        ("--limit 1us --at-most 1/10s --gap 2s", "give a gap of 1s or less, or leave it out"),
        ("--limit 1us --at-most 1/min --gap 1min", "give a gap of 6s or less, or leave it out"),
        ("--limit 1us --at-most 1/h --longest 30min", "give --longest 29min or less, or a shorter --gap"),
        ("--limit 1us --at-most 1/h --longest 59s", "--longest 59s is shorter than the gap of 1min"),
        ("--limit 1us --longest 100us", "'100us' is too short for the longest episode"),
        ("--limit 1us --horizon 0s", "longer than 0"),
        ("--limit 1us --bunches nan", "'nan' is not a number of episodes that a bunch may bring"),
        ("--limit 1us --at-most 1/999ms", "'1/999ms' is too often: ask for once per 1s or longer"),
        ("--limit 1us --limit 2us --limit 3us --at-most 1/h --at-most 1/d", "--at-most is given 2 times for 3 limits"),
        ("--limit 1us --limit 1us", "a --limit is given twice"),
        (" ".join(f"--limit {n}us" for n in range(1, 10)), "9 limits are given, and at most 8 can be judged"),
    ],
)
def test_refusals(words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path), *words.split()]) == 2
    assert sentence in capsys.readouterr().err


def test_the_requirements_of_all_profiles_can_be_judged() -> None:
    known = [profiles.load(name) for name in profiles.names()]
    asked = [profile_requirements(profile, ()) for profile in known]
    assert any(asked)
    (akamina,) = profile_requirements(profiles.load("akamina"), ())
    assert (akamina.gap_ns, akamina.longest_ns) == (51 * SECOND, 255 * SECOND)


def test_a_profile_may_fix_gap_length_and_bunches() -> None:
    profile = profiles.load("akamina")
    (claim,) = profile.claims
    odd = structs.replace(profile, claims=(replace(claim, gap_ns=SECOND, longest_ns=20 * SECOND, bunches=2.0),))
    (asked,) = profile_requirements(odd, ())
    assert (asked.gap_ns, asked.longest_ns, asked.bunches) == (SECOND, 20 * SECOND, 2)
    with pytest.raises(UserError, match="the requirement of the profile akamina: with --gap 10min twice as many"):
        profile_requirements(structs.replace(profile, claims=(replace(claim, gap_ns=600 * SECOND),)), ())


# How far a forecast looks, on the command line.


Forecast = Callable[..., dict[str, object]]
SERIES_HORIZON = Series(0, 0, 2, True, True, SECOND, 0, "timer", "clock_nanosleep", "latency", "ns")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of three hours."""
    path = tmp_path_factory.mktemp("horizon") / "run.rtrec"
    largest = smooth(3)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.series(SERIES_HORIZON)
        feed = SeriesWriter(writer, SERIES_HORIZON, checkpoint_ns=600 * SECOND)
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


def test_a_horizon_is_what_was_asked_and_its_limit_is_nearer(forecast: Forecast) -> None:
    near, usual = forecast("--horizon", "6h"), forecast()
    assert near["horizon_ns"] == 6 * HOUR * SECOND
    assert isinstance(near["limit_ns"], int)
    assert isinstance(usual["limit_ns"], int)
    assert near["limit_ns"] < usual["limit_ns"]


def test_far_has_a_warning_and_too_far_is_refused(forecast: Forecast) -> None:
    refusals = forecast("--horizon", "20d")["refusals"]
    assert isinstance(refusals, list)
    assert [each["code"] for each in refusals] == ["FAR"]
    far = forecast("--horizon", "2d")
    assert far["refusals"] == []
    assert far["warnings"]


NOTHING = {"trace": None, "trace_blocks": None, "duration": None, "samples": None, "period": None}


def observed(given: dict[str, object]) -> dict[str, str]:
    return option_values.with_trace_options({**NOTHING, **given}, None, True, virtual=False)


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ({}, "250ms"),
        ({"duration": "1h"}, "2s"),
        ({"duration": "1s"}, "100ms"),
        ({"samples": 10_000, "period": "5ms"}, "625ms"),
        ({"trace_blocks": "3s"}, "3s"),
    ],
)
def test_the_observer_traces_by_turns_in_as_many_blocks_as_the_length_allows(
    given: dict[str, object], blocks: str
) -> None:
    found = observed(given)
    assert found["trace_blocks"] == blocks


def test_chance_orders_the_turns_anew_in_each_run_unless_a_seed_is_given() -> None:
    drawn = {observed({})["trace"] for _ in range(20)}
    assert len(drawn) == 20
    assert all(0 <= int(trace.removeprefix("seed=")) < 1 << 32 for trace in drawn)
    assert observed({"trace": "seed=5"})["trace"] == "seed=5"


@pytest.mark.parametrize(
    ("explain", "trace", "expected"),
    [
        ("on", None, "recorder,optional"),
        ("threshold=200us,top=5,ordinary=0", None, "recorder,optional,threshold=200us,top=5,ordinary=0"),
        ("strict,stacks", None, "recorder,stacks"),
        ("on", "events=sched_switch", "events=sched_switch,recorder"),
        ("top=3", "on", "recorder,top=3"),
    ],
)
def test_to_explain_the_flight_recorder_is_switched_on(explain: str, trace: str | None, expected: str) -> None:
    """The run goes on without a trace unless the user insists, with ``strict`` or with ``--trace`` as well."""
    assert option_values.with_explain({**NOTHING, "trace": trace}, explain)["trace"] == expected


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ({"duration": "60s"}, "300ms"),
        ({"duration": "20s"}, "100ms"),
        ({"duration": "8s"}, "100ms"),
        ({"duration": "7s"}, None),
        ({"samples": 60_000}, "300ms"),
        ({"duration": "10h"}, "500ms"),
        ({"duration": "10h", "trace_blocks": "1s"}, "1s"),
    ],
)
def test_an_explained_run_begins_with_turns_that_take_little_of_it(
    given: dict[str, object], blocks: str | None
) -> None:
    values = {**NOTHING, **given}
    found = option_values.with_trace_options(values, "on", None, virtual=False)
    assert found["trace_blocks"] == blocks
    turns = re.fullmatch(r"recorder,optional(?:,turns=40,seed=\d+)?", found["trace"])
    assert turns
    assert ("turns=" in found["trace"]) == (blocks not in (None, "1s"))
    assert found["duration"] == values["duration"]


def test_turns_can_be_refused_and_virtual_time_draws_no_order() -> None:
    long = {**NOTHING, "duration": "60s"}
    refused = option_values.with_trace_options(long, "on", False, virtual=False)
    assert (refused["trace"], refused["trace_blocks"]) == ("recorder,optional", None)
    virtual = option_values.with_trace_options(long, "on", None, virtual=True)
    assert virtual["trace"] == "recorder,optional,turns=40"
    given = option_values.with_trace_options({**long, "trace": "seed=5"}, "on", None, virtual=False)
    assert given["trace"] == "seed=5,recorder,turns=40"
    assert option_values.with_trace_options(long, None, None, virtual=False) == long


def test_trace_and_samples_stand_beside_the_record(tmp_path: Path) -> None:
    sentences = exported_files.export_trace_files(tmp_path, analyse(traced()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["samples.csv", "trace.dat", "trace.txt"]
    assert len(events_of_text((tmp_path / "trace.txt").read_text())) == 5
    assert (tmp_path / "samples.csv").read_text().count("\n") == 4
    assert len(sentences) == 3


def test_what_cannot_be_written_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("mine")
    said = exported_files.export_trace_files(tmp_path, analyse(traced(**{"cpu0/raw": "no page"})))
    assert (tmp_path / "samples.csv").read_text() == "mine"
    assert (tmp_path / "trace.txt").exists()
    missing = {sentence.partition(":")[0] for sentence in said if sentence.startswith("no ")}
    assert missing == {"no samples.csv", "no trace.dat"}
