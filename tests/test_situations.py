# SPDX-License-Identifier: Apache-2.0
"""Whether a limit was kept, in every situation and in every output: all say the same, with the same number."""

import pytest
from situations import SITUATIONS, outputs

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
