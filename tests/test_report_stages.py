# SPDX-License-Identifier: Apache-2.0

from analysis_records import record
from report_cases import loop, normal, nothing, response, row, several_fields, several_summaries, tables, words
from stage_records import staged, usual

from rtproof.judge.analyse import analyse
from rtproof.report.sections import stages

STAGES = "Lateness of each stage"
SWITCHES = "From stage to stage of the same activation, each difference exact"
ACCOUNT = "The kernel's own account, also of values that were lost on the way to the record"


def test_every_stage_has_a_row_and_so_has_every_difference() -> None:
    made = staged({"irq": [1_000, 2_500], "thread": [3_000, 4_000], "user": [9_000, 9_001]})
    found = tables(stages.stages_section(analyse(made)))
    interrupt, user = row(found[STAGES], "irq"), row(found[STAGES], "user")
    assert list(interrupt.values())[2:5] == ["2", "1.000", "1.750"]
    assert interrupt["max [us]"] == "2.500"
    assert (user["clock read"], user["max [us]"]) == ("in the task of user space", "9.001")
    assert [each[0] for each in found[SWITCHES].rows] == ["irq to thread", "thread to user"]
    assert row(found[SWITCHES], "irq to thread")["min [us]"] == "1.500"


def test_a_percentile_that_n_does_not_carry_is_unknown() -> None:
    few = row(tables(stages.stages_section(several_fields()))[STAGES], "irq")
    assert (few["p99.999 [us]"], few["p99 [us]"] == "unknown") == ("unknown", False)
    many = row(tables(stages.stages_section(analyse(staged(usual(120_000)))))[STAGES], "task")
    assert float(many["p99 [us]"]) < float(many["p99.999 [us]"]) <= float(many["max [us]"])


def test_the_kernels_own_account_stands_beside() -> None:
    account = row(tables(stages.stages_section(several_fields()))[ACCOUNT], "thread 0")
    assert (account["stage"], account["counted"], account["lost"], account["max [us]"]) == (
        "irq",
        "3,003",
        "3",
        "9.000",
    )


def test_without_samples_the_differences_are_not_known() -> None:
    blocks = stages.stages_section(several_summaries())
    assert SWITCHES not in tables(blocks)
    assert "is not known" in words(blocks)


def test_one_field_has_no_stages_and_responses_have_their_own_section() -> None:
    assert [stages.stages_section(each) for each in (normal(), nothing(), loop(), response())] == [[]] * 4
    assert stages.stages_section(analyse(record([], ()))) == []
