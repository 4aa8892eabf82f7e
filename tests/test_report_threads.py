# SPDX-License-Identifier: Apache-2.0

from report_cases import nothing, tables, words
from system_records import TOLD, target

from rtproof.judge.analyse import analyse
from rtproof.report.blocks import Table
from rtproof.report.sections import system

BLOCKS = system.threads_section(analyse(TOLD))


def test_the_most_urgent_comes_first_and_all_are_folded() -> None:
    urgent, every = (block for block in BLOCKS if isinstance(block, Table))
    assert [row[-1] for row in urgent.rows] == [
        *("a (strange) name", "rtproof-0", "[irq/24-eth0]", "[irq/25-mmc0]", "[ktimers/0]"),
    ]
    assert (urgent.folded, every.folded) == (False, True)
    assert len(every.rows) == 7
    assert ("70", "70", "TS", "-", "-20", "1", "[kworker/1:0H-kblockd]") in every.rows


def test_handlers_of_interrupts_are_counted_with_their_priorities() -> None:
    assert words(BLOCKS) == (
        "\n7 threads, 5 of them with a real-time policy; 2 are handlers of interrupts, with priority 50, 40."
    )


def test_without_a_list_there_is_no_section() -> None:
    assert system.threads_section(nothing()) == []


def test_the_system_section_has_model_facts_and_the_log() -> None:
    found = tables(system.system_section(analyse(TOLD)))
    built, effective, core = found["Preemption model"].rows
    assert (built[1], effective[1], core[1]) == ("rt", "rt", "none")
    assert "threads that only PREEMPT_RT has: ktimers/0" in built[3]
    assert len(found["What the target says of itself"].rows) == 11
    assert len(found["The kernel's log before the run"].rows) == 2


def test_disagreements_are_said_under_the_table() -> None:
    blocks = system.system_section(analyse(target("#1 PREEMPT x", release="6.6.1-rt3")))
    assert "the release is called 6.6.1-rt3" in words(blocks)
