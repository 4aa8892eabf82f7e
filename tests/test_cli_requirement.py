# SPDX-License-Identifier: Apache-2.0
"""Several limits on the command line, and what is refused."""

from pathlib import Path

import pytest

from rtproof.analysis.model import Requirement
from rtproof.cli.main import main
from rtproof.cli.requirement import take_requirements

HOUR = 3600 * 10**9


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
    assert taken((1, 2), (5,), 7, 0.9) == (Requirement(1, 5, 0.9, 7), Requirement(2, 5, 0.9, 7))
    assert taken((1, 2), (5, 6)) == (Requirement(1, 5), Requirement(2, 6))
    assert taken((1, 1), (5, 6)) == (Requirement(1, 5), Requirement(1, 6))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--gap 10s", "--at-most, --confidence and --gap need a --limit to speak of"),
        ("--at-most 1/h", "--at-most, --confidence and --gap need a --limit to speak of"),
        ("--limit 1us --gap 601s", "'601s' is not a gap between episodes from 1s to 600s"),
        ("--limit 1us --gap 10ms", "'10ms' is not a gap between episodes from 1s to 600s"),
        ("--limit 1us --limit 2us --limit 3us --at-most 1/h --at-most 1/d", "--at-most is given 2 times for 3 limits"),
        ("--limit 1us --limit 1us", "a --limit is given twice"),
        (" ".join(f"--limit {n}us" for n in range(1, 10)), "9 limits are given, and at most 8 can be judged"),
    ],
)
def test_refusals(words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path), *words.split()]) == 2
    assert sentence in capsys.readouterr().err
