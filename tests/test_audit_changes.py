# SPDX-License-Identifier: Apache-2.0
"""What changed in the setup between two records, in a comparison and in a history."""

import errno
from collections.abc import Mapping
from dataclasses import replace

import history_cases
import msgspec
import pytest
from audit_checks import CHECKS, COUNT, LOUD, SPEED, THP, audited, few_checks, made_check
from report_cases import whole_record

from rtproof.audit import check_file
from rtproof.audit.check import Severity
from rtproof.audit.setup_changes import SettingChange, Setup, lacking_sentence, setup_changes, setup_of
from rtproof.compare.history import analyse_history
from rtproof.compare.run_metrics import facts_of

__all__ = ["few_checks"]
pytestmark = pytest.mark.usefixtures("few_checks")
BASE = whole_record(1, 30)


def setup(files: Mapping[str, str] | None = None, end: Mapping[str, str] | None = None) -> Setup:
    return setup_of(audited(BASE, files, end))


def test_a_setting_that_differs_is_named_with_both_texts() -> None:
    (change,) = setup_changes([setup()], [setup({THP: "always\n"})])
    assert (change.check, change.severity, change.outcomes) == ("memory.thp", Severity.HIGH, "good -> finding")
    assert change.settings == (SettingChange(THP, "never", "always"),)
    assert change.shown == f"{THP}: never -> always"


def test_the_most_severe_comes_first() -> None:
    other = setup({LOUD: "7\n", COUNT: "1\n", THP: "always\n", SPEED.replace("*", "0"): "slow\n"})
    found = setup_changes([setup()], [other])
    assert [one.check for one in found] == ["hardware.count", "memory.thp", "power.speed", "console.loud"]


def without(path: str, number: int) -> Setup:
    """The same record, where a file could not be read."""
    whole = audited(BASE)
    files = [replace(file, errno=number, content=b"") if file.path == path else file for file in whole.files]
    return setup_of(replace(whole, files=tuple(files)))


def test_what_could_not_be_read_is_no_change_of_a_setting() -> None:
    """Only the outcome differs: nobody knows what the setting was."""
    (change,) = setup_changes([setup()], [without(LOUD, errno.EACCES)])
    assert (change.outcomes, change.shown) == ("good -> unknown", "")


def test_a_file_of_no_such_name_is_not_there_whatever_pattern_was_looked_for() -> None:
    path = SPEED.replace("*", "1")
    (change,) = setup_changes([setup({path: "\n"})], [without(path, errno.ENOENT)])
    assert change.shown == f"{path}: (empty) -> not there"
    gone = audited(BASE)
    fewer = setup_of(replace(gone, files=tuple(file for file in gone.files if file.path != path)))
    assert not [one.shown for one in setup_changes([fewer], [without(path, errno.ENOENT)]) if one.settings]


def test_what_changes_by_itself_is_no_setting() -> None:
    """A count differs in every run; only whether the check is a finding is compared."""
    assert setup_changes([setup({COUNT: "3\n"}, {COUNT: "5\n"})], [setup({COUNT: "9\n"}, {COUNT: "11\n"})]) == ()
    (change,) = setup_changes([setup()], [setup({COUNT: "3\n"}, {COUNT: "5\n"})])
    assert (change.outcomes, change.shown) == ("good -> finding", "")


def test_a_volatile_check_is_compared_by_its_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (*CHECKS[:3], msgspec.structs.replace(CHECKS[3], volatile=True))
    monkeypatch.setattr(check_file, "all_checks", lambda: checks)
    assert setup_changes([setup({COUNT: "3\n"})], [setup({COUNT: "9\n"})]) == ()
    assert [one.shown for one in setup_changes([setup({COUNT: "0\n"})], [setup({COUNT: "9\n"})])] == [""]


def test_a_table_is_no_setting() -> None:
    assert setup_changes([setup({LOUD: "4\n5\n"})], [setup({LOUD: "7\n8\n"})]) == ()


def test_the_whole_command_line_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its words is one, of the checks that read it."""
    line = made_check("boot.line", "/proc/cmdline", "x")
    word = made_check("boot.word", "boot:quiet", "")
    monkeypatch.setattr(check_file, "all_checks", lambda: (line, word))
    (change,) = setup_changes([setup({"/proc/cmdline": "a=1\n"})], [setup({"/proc/cmdline": "a=1 quiet=2\n"})])
    assert (change.check, change.shown) == ("boot.word", "quiet: (it is not given) -> 2")


def test_runs_of_a_side_that_differ_are_counted() -> None:
    sides = [setup(), setup()], [setup(), setup({THP: "always\n"}), setup({THP: "always\n"})]
    (change,) = setup_changes(*sides)
    assert change.settings[0].b == "always (2 runs); never (1 run)"
    assert change.outcome_b == "finding (2 runs); good (1 run)"


def test_a_record_without_facts_is_not_compared() -> None:
    assert setup_of(BASE) == {}
    assert setup_changes([{}], [setup()]) == ()
    assert lacking_sentence([{}], [setup()], ("old", "new")).endswith("no record of old has the facts of an audit.")
    assert lacking_sentence([{}], [{}]) == lacking_sentence([setup()], [setup()]) == ""


def test_a_file_that_the_other_agent_did_not_look_for_is_no_change() -> None:
    older = audited(BASE)
    older = replace(older, files=tuple(file for file in older.files if file.path != LOUD))
    assert setup_changes([setup_of(older)], [setup()]) == ()
    assert [one.check for one in setup_changes([setup_of(older)], [setup({THP: "always\n", LOUD: "7\n"})])] == [
        "memory.thp"
    ]


def test_a_count_is_no_fact_of_a_run() -> None:
    """It would differ between any two runs."""
    told = facts_of(audited(BASE, {COUNT: "3\n"}, {COUNT: "5\n"}))
    assert COUNT not in told
    assert facts_of(audited(BASE, {COUNT: "3\n"}, {COUNT: "3\n"}))[COUNT] == "3"


def test_a_history_names_the_setup_that_changed_with_the_latency() -> None:
    calm, loud = setup(), setup({THP: "always\n"})
    runs = [replace(run, setup=calm if at < 25 else loud) for at, run in enumerate(history_cases.stepped())]
    found = analyse_history(runs)
    (sequence,) = found.sequences
    (place,) = sequence.places
    assert [(step.at, step.change.check) for step in place.setup] == [(25, "memory.thp")]


def test_a_setup_that_changed_elsewhere_is_not_blamed() -> None:
    calm, loud = setup(), setup({THP: "always\n"})
    runs = [replace(run, setup=calm if at < 10 else loud) for at, run in enumerate(history_cases.stepped())]
    (place,) = analyse_history(runs).sequences[0].places
    assert place.setup == ()
