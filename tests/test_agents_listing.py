# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

from agent_process import agent

from rtproof.agents import build
from rtproof.agents.build import agent_prints

LISTED = """probe\ttimer\ta timer
load\trtc\tinterrupts; not here: there is no /dev/rtc0; nor /dev/rtc
load_option\trtc\thz\trate
"""


def test_lines_are_taken_by_their_kind() -> None:
    assert [row[:2] for row in build.listed_rows(LISTED)] == [
        ["probe", "timer"],
        ["load", "rtc"],
        ["load_option", "rtc"],
    ]
    assert build.listed_rows(LISTED, "load_option", "probe") == [
        ["probe", "timer", "a timer"],
        ["load_option", "rtc", "hz", "rate"],
    ]
    assert build.listed_rows(LISTED, "method") == []


def test_lines_of_other_versions_are_left_out() -> None:
    assert build.listed_rows("load\tcpu\nload\tcpu\tbusy\tand more\nthing\ta\tb\n\n") == []


def test_a_help_is_apart_from_what_is_missing() -> None:
    ((*_, text),) = build.listed_rows(LISTED, "load")
    assert build.missing_on_machine(text) == "there is no /dev/rtc0; nor /dev/rtc"
    assert build.help_without_missing(text) == "interrupts"
    assert (build.missing_on_machine("a timer"), build.help_without_missing("a timer")) == (
        "",
        "a timer",
    )


def test_the_agent_tells_kinds_that_are_known() -> None:
    kinds = {row[0] for row in build.listed_rows(agent_prints(Path(agent()), "list"))}
    assert {"probe", "method", "load", "load_option"} <= kinds
