# SPDX-License-Identifier: Apache-2.0
"""Several limits on the command line, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.cli.option_values import take_requirements
from rtproof.core.errors import UserError
from rtproof.experiment.profile_setup import profile_requirements
from rtproof.judge.analysis_model import Requirement

SECOND = 10**9
HOUR = 3600 * SECOND


def taken(limits: tuple[int, ...], at_most: tuple[int, ...] = (), **given: float) -> tuple[Requirement, ...]:
    rest = dict.fromkeys(("gap", "confidence", "longest", "bunches"))
    values = {"limits": limits, "at_most": at_most, **rest, **given, "other": 1}
    found = take_requirements(values)
    assert values == {"other": 1}
    return found


def test_one_time_for_all_or_one_for_each() -> None:
    assert taken(()) == ()
    assert taken((1, 2)) == (Requirement(1), Requirement(2))
    assert taken((1, 2), (90,), gap=7, confidence=0.9) == (Requirement(1, 90, 0.9, 7), Requirement(2, 90, 0.9, 7))
    assert taken((1, 2), (HOUR, 2 * HOUR)) == (Requirement(1), Requirement(2, 2 * HOUR))
    assert taken((1, 1), (HOUR, 2 * HOUR)) == (Requirement(1), Requirement(1, 2 * HOUR))


def test_gap_and_longest_length_follow_the_time_that_is_asked_for() -> None:
    times = (10 * SECOND, 60 * SECOND, 20 * 60 * SECOND, 24 * HOUR)
    found = taken((1, 2, 3, 4), times)
    assert [each.gap_ns / SECOND for each in found] == [0.5, 3, 60, 60]
    assert [each.longest_ns / SECOND for each in found] == [2.5, 15, 300, 600]
    assert taken((1,), (HOUR,), longest=20 * 60 * SECOND, bunches=3.0) == (
        Requirement(1, HOUR, gap_ns=60 * SECOND, longest_ns=20 * 60 * SECOND, bunches=3.0),
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--gap 10s", "--gap, --longest and --bunches need a --limit to speak of"),
        ("--at-most 1/h", "--gap, --longest and --bunches need a --limit to speak of"),
        ("--limit 1us --gap 601s", "'601s' is not a gap between episodes from 1ms to 600s"),
        ("--limit 1us --gap 10us", "'10us' is not a gap between episodes from 1ms to 600s"),
        ("--longest 10s", "--gap, --longest and --bunches need a --limit to speak of"),
        ("--limit 1us --at-most 1/10s --gap 2s", "give a gap of 1s or less, or leave it out"),
        ("--limit 1us --at-most 1/min --gap 1min", "give a gap of 6s or less, or leave it out"),
        (
            "--limit 1us --at-most 1/min --gap 10s --longest 29s",
            "give a gap of 6s or less, and --longest 24s or less, or leave it out",
        ),
        ("--limit 1us --limit 2us --at-most 1/h --at-most 1/59s --gap 6s", "with --gap 6s twice as many episodes"),
        ("--limit 1us --at-most 1/h --longest 30min", "give --longest 29min or less, or a shorter --gap"),
        ("--limit 1us --at-most 1/h --longest 59s", "--longest 59s is shorter than the gap of 1min"),
        ("--limit 1us --longest 100us", "'100us' is too short for the longest episode"),
        ("--limit 1us --bunches 0.5", "'0.5' is not a number of episodes that a bunch may bring"),
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


def test_a_gap_shorter_than_two_periods_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--limit", "1us", "--at-most", "1/s", "--period", "50ms", "--output", str(tmp_path / "run")]
    assert main(["run", *words]) == 2
    assert "the gap of 50ms is shorter than two periods (100ms)" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_the_requirements_of_all_profiles_can_be_judged() -> None:
    known = [profiles.load(name) for name in profiles.names()]
    asked = [profile_requirements(profile, ()) for profile in known]
    assert any(asked)
    (akamina,) = profile_requirements(profiles.load("akamina"), ())
    assert (akamina.gap_ns, akamina.longest_ns) == (51 * SECOND, 255 * SECOND)


def test_a_profile_may_fix_gap_length_and_bunches() -> None:
    profile = profiles.load("akamina")
    (claim,) = profile.claims
    odd = replace(profile, claims=(replace(claim, gap_ns=SECOND, longest_ns=20 * SECOND, bunches=2.0),))
    (asked,) = profile_requirements(odd, ())
    assert (asked.gap_ns, asked.longest_ns, asked.bunches) == (SECOND, 20 * SECOND, 2)
    with pytest.raises(UserError, match="the requirement of the profile akamina: with --gap 10min twice as many"):
        profile_requirements(replace(profile, claims=(replace(claim, gap_ns=600 * SECOND),)), ())
