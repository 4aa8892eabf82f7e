# SPDX-License-Identifier: Apache-2.0
"""Several limits on the command line, and what is refused."""

from pathlib import Path

import pytest

from rtproof.analysis.model import Requirement
from rtproof.cli.main import main
from rtproof.cli.requirement import take_requirements

SECOND = 10**9
HOUR = 3600 * SECOND


def taken(
    limits: tuple[int, ...], at_most: tuple[int, ...] = (), gap: int | None = None, confidence: float | None = None
) -> tuple[Requirement, ...]:
    values = {"limits": limits, "at_most": at_most, "gap": gap, "confidence": confidence, "other": 1}
    found = take_requirements(values)
    assert values == {"other": 1}
    return found


def test_one_time_for_all_or_one_for_each() -> None:
    assert taken(()) == ()
    assert taken((1, 2)) == (Requirement(1), Requirement(2))
    assert taken((1, 2), (9,), 7, 0.9) == (Requirement(1, 9, 0.9, 7), Requirement(2, 9, 0.9, 7))
    assert taken((1, 2), (HOUR, 2 * HOUR)) == (Requirement(1), Requirement(2, 2 * HOUR))
    assert taken((1, 1), (HOUR, 2 * HOUR)) == (Requirement(1), Requirement(1, 2 * HOUR))


def test_the_usual_gap_is_never_longer_than_the_time_asked_for() -> None:
    times = (SECOND, 10 * SECOND, 60 * SECOND, 61 * SECOND)
    assert [each.gap_ns // SECOND for each in taken((1, 2, 3, 4), times)] == [1, 10, 60, 60]
    assert taken((1,), (60 * SECOND,), 60 * SECOND) == (Requirement(1, 60 * SECOND),)
    assert Requirement.usual(1, 5) == Requirement(1, 5, gap_ns=SECOND)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--gap 10s", "--at-most, --confidence and --gap need a --limit to speak of"),
        ("--at-most 1/h", "--at-most, --confidence and --gap need a --limit to speak of"),
        ("--limit 1us --gap 601s", "'601s' is not a gap between episodes from 1s to 600s"),
        ("--limit 1us --gap 10ms", "'10ms' is not a gap between episodes from 1s to 600s"),
        ("--limit 1us --at-most 1/10s --gap 11s", "nothing could break --at-most 1/10s: give a gap of 10s or less"),
        ("--limit 1us --limit 2us --at-most 1/h --at-most 1/59s --gap 1min", "no two episodes begin within 1min"),
        ("--limit 1us --at-most 1/999ms", "'1/999ms' is too often: episodes are known to the second"),
        ("--limit 1us --limit 2us --limit 3us --at-most 1/h --at-most 1/d", "--at-most is given 2 times for 3 limits"),
        ("--limit 1us --limit 1us", "a --limit is given twice"),
        (" ".join(f"--limit {n}us" for n in range(1, 10)), "9 limits are given, and at most 8 can be judged"),
    ],
)
def test_refusals(words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path), *words.split()]) == 2
    assert sentence in capsys.readouterr().err
