# SPDX-License-Identifier: Apache-2.0
import json
import re
from pathlib import Path

import pytest

from rtproof.cli.main import main

PAGE = (Path(__file__).parent.parent / "docs" / "json-schema.md").read_text()
DAILY = ("--limit", "500us", "--at-most", "1/day")


def test_it_says_how_long_a_run_has_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DAILY]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +0  83 h 34 min +83 h 34 min +-$", out, re.MULTILINE)
    assert re.search(r"^ +1  163 h 17 min +163 h 17 min +5 min 03 s$", out, re.MULTILINE)
    assert re.search(r"^once per 24 h +4\.3 % +2\.0 % ", out, re.MULTILINE)
    assert "limits" not in out
    assert "One episode that lasts longer than 10 min refutes at once" in " ".join(out.split())


def test_bunches_take_as_many_times_as_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DAILY, "--bunches", "3", "--longest", "20min", "--gap", "2min"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "250 h 42 min" in out
    assert "none longer than 20 min, in bunches of 3 on average, confidence 95 %" in out
    assert "so a proof takes 3 times as long as of single ones" in out


def test_several_limits_are_told_of_each_with_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DAILY, "--limit", "1ms", "--at-most", "1/7d"]) == 0
    out = capsys.readouterr().out
    assert out.count("This is one of 2 limits. Each is tested at 97.5 %") == 2
    assert "1,000 us, at most once per 168 h, none longer than 10 min, confidence 95 %" in out


def test_what_was_measured_already_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DAILY, "--episodes-so-far", "1", "--measured", "20h", "--rate", "1/7d"]) == 0
    out = capsys.readouterr().out
    assert "1 episode in 20 h so far: UNDECIDED" in out
    assert re.search(r"^ +1  163 h 17 min +143 h 17 min +-$", out, re.MULTILINE)
    assert len(re.findall(r"^once per ", out, re.MULTILINE)) == 1
    assert main(["plan", *DAILY, "--episodes-so-far", "3", "--measured", "2h"]) == 0
    assert "3 episodes in 2 h so far: REFUTED, and that stands" in " ".join(capsys.readouterr().out.split())


def test_json_has_every_key_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DAILY, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (limit,) = found["limits"]
    assert (found["schema"], limit["already"], len(limit["chances"])) == ("rtproof.plan", "UNDECIDED", 10)
    keys = {*found, *limit, *limit["needs"][0], *limit["chances"][0]}
    assert keys <= set(re.findall(r"`([a-z_]+)`", PAGE))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "a plan needs a --limit"),
        ([*DAILY, "--measured", "2h"], "--episodes-so-far and --measured belong together"),
        ([*DAILY, "--measured", "2h", "--episodes-so-far", "1001"], "1001 is not in the range 0<=x<=1000"),
        ([*DAILY, "--episodes-so-far", "2"], "--episodes-so-far and --measured belong together"),
        ([*DAILY, "--limit", "1us", "--measured", "2h", "--episodes-so-far", "2"], "give that one alone"),
        ([*DAILY, "--rate", "2/h"], "'2/h' is not a rate"),
    ],
)
def test_refusals(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 2
    assert sentence in capsys.readouterr().err
