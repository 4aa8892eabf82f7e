# SPDX-License-Identifier: Apache-2.0
"""The page of a tuning, its JSON, and what the terminal shows while it measures."""

import io
import json
import math
import sys
from pathlib import Path

import pytest

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import target_runner, tuning_report, tuning_screen
from rtproof.experiment.target_runner import Cell
from rtproof.report.blocks import Table, Text
from rtproof.report.pages.tuning_page import encode_tuning, tuning_sections
from rtproof.schema.encoder import json_bytes
from rtproof.tune.effects import LEAST_DEVIATION, Effect
from rtproof.tune.knobs import KnobOnTarget, all_knobs, chosen_knobs
from rtproof.tune.stored_tuning import StoredTuning, stored_tuning
from rtproof.tune.tuning import MAXIMA, WORK, KnobResult, Plan, Tuning

NAMES = ("governor", "printk", "swappiness", "perf")


def result(kept: tuple[str, ...] | None, effects: dict[str, float], *, unfinished: str = "") -> StoredTuning:
    """A tuning of four knobs, in which these have been tried alone. effects: the logarithms, by the knob's name."""
    found = Tuning(Plan(NAMES, ("aspm",), 16, 4, 8), MAXIMA, deviation=0.2, runs=100, lost=2, unfinished=unfinished)
    found.untouched = math.log(200_000)
    found.knobs = tuple(
        KnobResult(name, {MAXIMA: Effect(ln, 0.05, 60)}, 0.0125, confirmed=True, kept=name in (kept or ()))
        for name, ln in effects.items()
    )
    found.blocks, found.kept = 8 if effects else 0, kept
    if kept:
        found.together = {MAXIMA: Effect(sum(effects[name] for name in kept), 0.05, 60), WORK: Effect(-0.03, 0.01, 60)}
    knobs = [KnobOnTarget(knob) for knob in chosen_knobs((*NAMES, "aspm", "turbo", "uncore"))]
    absent = [KnobOnTarget(each.knob, missing="not here") for each in knobs if each.knob.name in ("turbo", "uncore")]
    return stored_tuning(found, [*knobs[:-2], *absent], ["cmdline.txt"] if kept else [], "rtproof tune", 1)


def page(found: StoredTuning) -> dict[str, tuple[str, list[Table]]]:
    """The words of the texts, and the tables, by the title of the section."""
    sections = {}
    for section in tuning_sections(found):
        texts = [block for block in section.blocks if isinstance(block, Text)]
        words = " ".join(part for text in texts for part in (text.headline, *text.paragraphs))
        sections[section.title] = words.strip(), [block for block in section.blocks if isinstance(block, Table)]
    return sections


def keep(table: Table) -> dict[str, str]:
    return {row[0]: row[-1] for row in table.rows}


def test_the_page_answers_first_and_in_order() -> None:
    found = page(result(("governor", "printk"), {"governor": -0.5, "printk": -0.3, "swappiness": 0.4, "perf": -0.01}))
    assert list(found) == [
        "Which knobs to keep",
        "What they cost",
        "How to keep them",
        "What this tuning could find",
        "No result",
    ]
    words, (table,) = found["Which knobs to keep"]
    assert words.startswith(
        "-55 % maximum of a second: keep governor, printk 200 us maximum of a second with no knob on, 89.866 us with "
        "governor and printk on: means, so the maximum of a run is higher. Each run put"
    )
    assert table.header == ("knob", MAXIMA, "keep?")
    assert table.rows[0][:2] == ("governor + printk", "-55 % (-59 to -50)")
    assert keep(table) == {
        "governor + printk": "keep together",
        "governor": "keep",
        "printk": "keep",
        "perf": "no: no effect shown",
        "swappiness": "no: it hurts",
    }
    costs, _ = found["What they cost"]
    assert "governor (CPU frequency: the governor performance): More power and heat." in costs
    assert "With these on, work of the loads (less is worse): -3 % (-5 to -1)." in costs
    assert found["How to keep them"][1][0].rows[0][0] == "permanent/cmdline.txt"
    assert found["What this tuning could find"][0].startswith("16 % or more off the maximum of a second: ")
    assert found["No result"][1][0].rows == (("Not here", "turbo, uncore"), ("No time in this budget", "aspm"))


def test_a_knob_that_helps_alone_and_is_not_kept_adds_nothing() -> None:
    for kept, reason in ((("governor",), "no: adds nothing to the kept"), (None, "no: not shown with the others on")):
        _, (table,) = page(result(kept, {"governor": -0.5, "printk": -0.3}))["Which knobs to keep"]
        assert keep(table)["printk"] == reason


def test_a_tuning_that_ended_early_has_no_answer() -> None:
    found = page(result(None, {}, unfinished="the budget ended first"))
    assert found["Which knobs to keep"] == (
        "No answer The budget ended first. Each run put its settings back: rtproof makes nothing permanent.",
        [],
    )
    assert "tunings that reach the end of this plan" in found["What this tuning could find"][0]
    assert ("The tuning ended before its result", ", ".join(NAMES)) in found["No result"][1][0].rows


def test_the_page_says_when_its_scatter_is_assumed() -> None:
    for deviation, said in ((LEAST_DEVIATION, "by less than 1 %. The tuning reckons with 1 %."), (0.2, "of 1.22 (")):
        found = stored_tuning(Tuning(Plan(NAMES, (), 0, 4, 8), MAXIMA, deviation, runs=6), [], [], "rtproof tune", 1)
        assert said in page(found)["What this tuning could find"][0]


def test_a_change_beyond_all_bounds_is_still_a_number() -> None:
    found = result(("governor",), {"governor": -0.5, "printk": 900.0})
    assert json.loads(json_bytes(encode_tuning(found)))["knobs"][1]["effects"][0]["ratio"] > 1e20


def test_show_prints_what_tuning_json_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = result(("governor",), {"governor": -0.5, "printk": -0.01})
    encoded = json_bytes(encode_tuning(found))
    (tmp_path / "tuning.json").write_bytes(encoded)
    assert main(["show", str(tmp_path)]) == 0
    assert "keep governor" in capsys.readouterr().out
    assert main(["show", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out.encode() == encoded
    assert main(["show", str(tmp_path), "--section", "verdict"]) == 2
    assert "takes no option but --json" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b"[1]", b'{"knobs": 3}', b"\xff"])
def test_a_broken_file_of_a_tuning_gets_a_sentence(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tuning.json").write_bytes(content)
    with pytest.raises(UserError, match=r"tuning\.json is not that of a tuning"):
        tuning_report.print_tuning(tmp_path)
    assert main(["show", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_plan_and_each_run_have_their_lines() -> None:
    plan = Plan(tuple(f"knob{number}" for number in range(25)), ("aspm",), 36, 4, 6)
    first, second = tuning_screen.plan_sentences(plan, 9, 3_000_000_000, 5.0)
    assert first == "25 knobs of 35 will be tried, in at most 174 runs of 3.0 s. That takes at most 14 min 30 s."
    assert second.startswith(
        "First 6 with no knob on, then 72 with half of the knobs on, then at most 96 with the 4 best"
    )
    one = Plan(("printk",), (), 0, 1, 8)
    first, second = tuning_screen.plan_sentences(one, 0, 3_000_000_000, 5.0)
    assert first.startswith("1 knob will be tried, in at most 22 runs")
    assert "then at most 16 with the knob on or off." in second
    assert tuning_screen.detectable_sentences(Tuning(plan, MAXIMA)) == []
    line, _ = tuning_screen.detectable_sentences(Tuning(plan, MAXIMA, deviation=0.2))
    assert line.startswith("33 % or more off the maximum of a second: ")
    _, alike = tuning_screen.detectable_sentences(Tuning(plan, MAXIMA, deviation=LEAST_DEVIATION))
    assert alike.endswith("changes by less than 1 %. The tuning reckons with 1 %.")
    assert tuning_screen.run_line(3, 174, 62.0, (), 25).endswith(
        "run 3 of at most 174, at most 0:01:02 left, on: no knob"
    )
    assert tuning_screen.run_line(3, 174, 62.0, {"b", "a"}, 25).endswith("on: a, b")
    assert tuning_screen.run_line(3, 174, 62.0, plan.knobs[:12], 25).endswith("on: 12 of 25 knobs")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_brief_cell_shows_one_line_which_goes_on_a_terminal(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    cell = Cell("0001", tmp_path, (), "run 1 of at most 174, on: no knob", brief=True)
    with target_runner._view_of(cell) as view:
        view.say("nothing of it is shown")
    if stream.isatty():
        line, erased = stream.getvalue()[:-4], stream.getvalue()[-4:]
        assert len(line) < 20
        assert erased == "\r\x1b[K"
    else:
        assert stream.getvalue() == "run 1 of at most 174, on: no knob\n"


def test_the_advice_of_the_audit_names_the_knobs_that_measure_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--explain", "con.printk"]) == 0
    assert "rtproof tune --knobs printk" in capsys.readouterr().out
    for knob in all_knobs():
        if knob.check:
            assert main(["audit", "--explain", knob.check]) == 0
            assert knob.name in " ".join(capsys.readouterr().out.split()).replace(", ", ",")
