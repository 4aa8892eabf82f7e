# SPDX-License-Identifier: Apache-2.0
"""Whether a limit was kept, in every situation and in every output: all say the same, with the same number."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

import analyses_by_verdict as verdicts
import numpy as np
import pytest
from analysis_records import MS, SECOND, block, end, record
from msgspec import structs
from stage_records import VIRTUAL

from rtproof import report
from rtproof.exporters import lava, tap
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.record.contents import Event
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Text
from rtproof.report.pages import ci_verdicts
from rtproof.report.pages.first_screen import summary_text, verdict_line
from rtproof.schema.published import analysis_dict
from rtproof.summary.counts import Counts
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

PLAIN = Requirement(500_000)
HELD = Requirement(2 * MS)
RATE = verdicts.LATE
SELDOM = replace(RATE, at_most_ns=10 * SECOND)


def _late(*late: int, asked: tuple[Requirement, ...] | Requirement | None = PLAIN) -> Analysis:
    return analyse(verdicts.measured(*late), asked, 1)


def _stalled() -> Analysis:
    blocks = [block([10] * 5)]
    stood = Event(90 * SECOND, 0, "stalled", "since_ns=5000000")
    return analyse(record(blocks, events=(stood,), end=replace(end(blocks), time_ns=90 * SECOND)), PLAIN, 1)


def _lost() -> Analysis:
    blocks = [block([10] * 4000), block([10] * 4, first_index=4003)]
    ended = end(blocks)
    totals = (structs.replace(ended.totals[0], lost=3),)
    return analyse(record(blocks, end=replace(ended, time_ns=4007 * MS, totals=totals)), PLAIN, 1)


def _virtual(*late: int) -> Analysis:
    values = [10] * 3000
    for at in late:
        values[at] = 900_000
    return analyse(record([block(values)], facts=(VIRTUAL,)), PLAIN, 1)


def _proven_with_an_exceedance() -> Analysis:
    values = np.full(60_000, 9_000)
    values[40_000] = 900_000
    return analyse(record([block([int(each) for each in values])]), replace(RATE, at_most_ns=5 * SECOND), 1)


def _invalid(*late: int) -> Analysis:
    return analyse(replace(verdicts.measured(*late), facts=verdicts.invalid().record.facts), PLAIN, 1)


def _file(largest_us: int, overflow: int | None = 0, limit: Requirement = PLAIN) -> Analysis:
    ends = np.array([20_000, largest_us * 1_000])
    bins = Counts(ends, ends + 1_000, np.array([3_599_999, 1]))
    part = PrintedFigures(count=3_600_000, min_ns=20_000, max_ns=largest_us * 1_000)
    found = ImportedHistogram(
        *("cyclictest", ""),
        duration_ns=3600 * SECOND,
        shortest_period_ns=MS,
        count=3_600_000,
        min_ns=20_000,
        max_ns=None if overflow is None else largest_us * 1_000,
        histogram=bins,
        overflow=overflow,
        resolution_ns=1_000,
        parts=(part,),
    )
    return analyse_histogram(found, [limit])


SITUATIONS: dict[str, Callable[[], Analysis]] = {
    "no limit": lambda: _late(3_000, asked=None),
    "held": _late,
    "exceeded once": lambda: _late(3_000),
    "exceeded ten times": lambda: _late(*range(0, 5_000, 500)),
    "exceeded always": lambda: _late(*range(6_000)),
    "a stall to the end": _stalled,
    "lost values": _lost,
    "cut off": lambda: analyse(replace(verdicts.measured(), end=None), PLAIN, 1),
    "virtual time, held": _virtual,
    "virtual time, exceeded": lambda: _virtual(10),
    "two limits, one exceeded": lambda: _late(3_000, asked=(HELD, PLAIN)),
    "a limit and a rate": lambda: _late(3_000, asked=(HELD, SELDOM)),
    "rate proven": lambda: _late(asked=RATE),
    "rate proven, exceeded once": _proven_with_an_exceedance,
    "rate refuted": verdicts.refuted,
    "rate undecided, not exceeded": lambda: _late(asked=SELDOM),
    "rate undecided, exceeded": lambda: _late(3_000, asked=SELDOM),
    "another tool's file, held": lambda: _file(120),
    "another tool's file, exceeded": lambda: _file(700),
    "another tool's file, scale too short": lambda: _file(120, overflow=None, limit=Requirement(130_000)),
    "invalid": _invalid,
    "invalid, exceeded": lambda: _invalid(3_000),
}


@dataclass(frozen=True)
class Outputs:
    """What each output says. exit_code: of ``run`` and ``judge``. junit, lava, tap: one word for each limit."""

    terminal: str
    quiet: str
    page: str
    exit_code: int
    junit: tuple[str, ...]
    junit_messages: tuple[str, ...]
    lava: tuple[str, ...]
    tap: tuple[str, ...]
    json: dict[str, object]


def outputs(analysis: Analysis) -> Outputs:
    (suite,) = ET.fromstring(ci_verdicts.ci_junit([ci_verdicts.run_row("run", analysis)]))
    kinds = [case.find("*") for case in suite.findall("testcase")]
    with tempfile.TemporaryDirectory() as place:
        lines = {}
        for name, form in (("lava", lava), ("tap", tap)):
            if analysis.imported is None:  # These formats are for runs.
                form.export(analysis, Path(place, name), {})
            lines[name] = Path(place, name).read_text().splitlines() if Path(place, name).exists() else []
    (section,) = [each for each in report.compose(analysis) if each.name == "verdict"]
    first = next(block for block in section.blocks if isinstance(block, Text))
    verdict = analysis_dict(analysis)["verdict"]
    return Outputs(
        " ".join(summary_text(analysis, (), 120).split("\n\n")[0].split()),
        verdict_line(analysis),
        f"{first.headline} {' '.join(first.paragraphs)}",
        analysis.verdict.state.exit_code,
        tuple("passed" if kind is None or kind.tag == "system-out" else kind.tag for kind in kinds),
        tuple(kind.get("message") or "" if kind is not None else "" for kind in kinds),
        tuple(line.split("RESULT=")[1].rstrip(">") for line in lines["lava"] if "TEST_CASE_ID=limit" in line),
        tuple(_tap_word(line) for line in lines["tap"] if line.startswith(("ok", "not ok", "1..0"))),
        {key: verdict[key] for key in ("state", "exceeded_count", "largest_ns", "shown_rate_per_s")},
    )


def _tap_word(line: str) -> str:
    return "skip" if "# SKIP" in line else line[: line.index("ok") + 2]


PASSED = ("passed",), ("pass",), ("ok",)
FAILED = ("failure",), ("fail",), ("not ok",)
SKIPPED = ("skipped",), ("skip",), ("skip",)
INVALID = ("error",), ("unknown",), ("not ok",)
BOTH = ("passed", "failure"), ("pass", "fail"), ("ok", "not ok")
OF_A_FILE = ((), ())
"""LAVA and TAP have the figures of a run's threads."""
EXPECTED = {
    "no limit": ("MEASURED", 0, (("skipped",), (), ("skip",))),
    "held": ("HELD", 0, PASSED),
    "exceeded once": ("EXCEEDED", 1, FAILED),
    "exceeded ten times": ("EXCEEDED", 1, FAILED),
    "exceeded always": ("EXCEEDED", 1, FAILED),
    "a stall to the end": ("EXCEEDED", 1, FAILED),
    "lost values": ("UNDECIDED", 4, SKIPPED),
    "cut off": ("UNDECIDED", 4, SKIPPED),
    "virtual time, held": ("HELD", 0, PASSED),
    "virtual time, exceeded": ("EXCEEDED", 1, FAILED),
    "two limits, one exceeded": ("EXCEEDED", 1, BOTH),
    "a limit and a rate": ("UNDECIDED", 4, BOTH),
    "rate proven": ("PROVEN", 0, PASSED),
    "rate proven, exceeded once": ("PROVEN", 0, PASSED),
    "rate refuted": ("REFUTED", 1, FAILED),
    "rate undecided, not exceeded": ("UNDECIDED", 4, SKIPPED),
    "rate undecided, exceeded": ("UNDECIDED", 4, FAILED),
    "another tool's file, held": ("HELD", 0, (("passed",), *OF_A_FILE)),
    "another tool's file, exceeded": ("EXCEEDED", 1, (("failure",), *OF_A_FILE)),
    "another tool's file, scale too short": ("UNDECIDED", 4, (("skipped",), *OF_A_FILE)),
    "invalid": ("INVALID", 3, INVALID),
    "invalid, exceeded": ("INVALID", 3, INVALID),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_output_says_the_same(name: str) -> None:
    analysis = SITUATIONS[name]()
    said = outputs(analysis)
    label, code, words = EXPECTED[name]
    assert (said.exit_code, said.junit, said.lava, said.tap) == (code, *words)
    fact = said.quiet.removeprefix(f"{label} ")
    assert fact != said.quiet
    assert said.terminal.startswith(f"{label} {fact}")
    assert said.page.startswith(f"{label} {fact}")
    assert said.json["state"] == ("NOT ASKED" if label == "MEASURED" else label)
    if label not in ("MEASURED", "UNDECIDED"):
        assert (
            any(fact.rstrip(".").lower() in message.lower() for message in said.junit_messages)
            or "passed" in said.junit
        )


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_output_for_machines_passes_or_skips_what_was_exceeded(name: str) -> None:
    analysis = SITUATIONS[name]()
    said = outputs(analysis)
    for at, verdict in enumerate(analysis.verdicts or (analysis.verdict,)):
        if verdict.exceeded and verdict.state.value != "PROVEN":
            assert said.junit[at] in ("failure", "error")
            assert (*said.lava, "fail")[at] in ("fail", "unknown")
            assert (*said.tap, "not ok")[at] == "not ok"


def test_the_largest_latency_stands_in_the_first_sentence() -> None:
    """Unless values are missing: the sentence says that first, and the second has the largest."""
    for name, made in SITUATIONS.items():
        said = outputs(made())
        known = "largest" in said.quiet or "stood" in said.quiet
        assert known or said.quiet.startswith(("UNDECIDED", "INVALID")), name
        assert known or "largest" in said.terminal or "scale" in name, name
