# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from report_cases import cut_off, normal, nothing, pairs, sections_of, tables

from rtproof.record.contents import Damage, End, EndReason
from rtproof.report.blocks import Text
from rtproof.report.sections import evidence


def code(blocks: object) -> list[tuple[str, ...]]:
    assert isinstance(blocks, list | tuple)
    return [block.paragraphs for block in blocks if isinstance(block, Text) and block.kind == "code"]


def test_the_command_of_the_user_comes_before_that_of_the_agent() -> None:
    commands = code(sections_of(normal(), "rtproof run --limit 500us --load sched")["repeat"].blocks)
    assert commands[:2] == [
        ("rtproof run --limit 500us --load sched",),
        ("rtproof-agent run -o run.rtrec --duration 20s",),
    ]


def test_without_a_command_the_agent_s_own_is_left() -> None:
    assert code(evidence.repeat_section(normal()))[0] == ("rtproof-agent run -o run.rtrec --duration 20s",)
    assert code(evidence.repeat_section(nothing())) == [
        ("rtproof show RUN", "rtproof report RUN", "rtproof export RUN --help")
    ]


def test_paths_are_quoted_for_the_shell() -> None:
    analysis = normal()
    odd = replace(analysis, record=replace(analysis.record, path="/tmp/my run/it's.rtrec"))
    assert code(evidence.repeat_section(odd))[-1][0] == "rtproof show '/tmp/my run/it'\"'\"'s.rtrec'"
    assert pairs(tables(evidence.repeat_section(odd))["The record"])["file"].startswith("it's.rtrec, ")


def test_a_record_that_was_cut_off_or_damaged_says_so() -> None:
    analysis = cut_off()
    hurt = replace(analysis, record=replace(analysis.record, damage=(Damage(4, 8, "8 bytes at 4 are no chunk"),)))
    rows = tables(evidence.repeat_section(hurt))["The record"].rows
    assert ("damage", "8 bytes at 4 are no chunk") in rows
    assert any(what == "ended" and value.startswith("cut off: ") for what, value in rows)


@pytest.mark.parametrize("reason", EndReason)
def test_every_way_to_end_has_words(reason: EndReason) -> None:
    analysis = normal()
    ended = replace(analysis, record=replace(analysis.record, end=End(5 * 10**9, reason, "so it was", ())))
    rows = pairs(tables(evidence.repeat_section(ended))["The record"])
    assert rows["ended"] == f"{evidence.REASONS[reason]} (so it was), 5.000 s after measuring began"
