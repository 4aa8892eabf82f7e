# SPDX-License-Identifier: Apache-2.0

from report_cases import normal, nothing, pairs, row, tables

from rtproof.report.sections import evidence

THREADS = "What each thread really ran as; a change is shown as start > end"
INSIDE = "Counted inside the measured loop"


def test_what_was_asked_stands_above_what_was_so() -> None:
    table = tables(evidence.evidence_section(normal()))[THREADS.split(":", maxsplit=1)[0]]
    assert table.header[:3] == ("thread", "policy (asked: fifo)", "priority (asked: 80)")
    assert table.rows[0][:2] == ("thread 0", "fifo > other")
    assert table.rows[1][:2] == ("thread 1", "unknown")


def test_counts_of_the_loop_are_given_per_thread_with_units() -> None:
    table = tables(evidence.evidence_section(normal()))[INSIDE]
    thread = row(table, "thread 0")
    assert (thread["minor faults"], thread["CPU time"], thread["migrations"]) == ("1,234,567", "139.415 ms", "unknown")


def test_facts_of_the_run_are_in_words() -> None:
    found = tables(evidence.evidence_section(normal()))
    asked = pairs(found["Asked of the whole run"])
    assert (asked["period"], asked["phase"], asked["policy"]) == ("1ms", "even: spread over a period", "fifo")
    assert "args" not in asked
    assert found["In force during the run"].rows == (("memory locked", "yes"),)


def test_events_are_listed_with_their_time() -> None:
    table = tables(evidence.evidence_section(normal()))["What happened during the run"]
    assert table.rows == (
        ("1.000", "thread 0", "kernel", "a line of the log"),
        ("2.000", "whole run", "clock_stepped", "by 1 s"),
    )


def test_a_record_without_facts_has_no_evidence() -> None:
    assert evidence.evidence_section(nothing()) == []
