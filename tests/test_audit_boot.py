# SPDX-License-Identifier: Apache-2.0
"""Checks of the command line: misspelt words, contradictions, lost words, single parameters."""

import pytest
from audit_cases import made_facts
from audit_systems import stored_names, stored_record

from rtproof.audit import boot_words, check_file
from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.boot_words import read_cpu_word
from rtproof.audit.facts import AuditRequest, Facts, split_command_line, split_word
from rtproof.audit.fitted_advice import fitted

GOOD, FINDING, UNKNOWN = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN


def test_no_known_name_is_taken_for_another() -> None:
    words = boot_words.boot_words()
    for name in (*words.real_time, *words.other):
        assert boot_words.meant_name(name) is None, name


@pytest.mark.parametrize(
    ("a", "b", "letters"), [("psi", "psi", 0), ("isolcpu", "isolcpus", 1), ("ab", "ba", 1), ("", "abc", 3)]
)
def test_distance_counts_changed_letters(a: str, b: str, letters: int) -> None:
    assert boot_words.distance(a, b) == boot_words.distance(b, a) == letters


def test_lists_of_cpus_as_the_kernel_reads_them() -> None:
    four, now = frozenset(range(4)), (6, 12)
    assert read_cpu_word("nohz_full", "0-3:1/2", four, now).cpus == frozenset({0, 2})
    assert read_cpu_word("nohz_full", "1-N", four, now).cpus == frozenset({1, 2, 3})
    assert read_cpu_word("nohz_full", "1-N", None, now).cpus is None
    assert read_cpu_word("isolcpus", "nohz,domain,1", four, now).flags == ("nohz", "domain")
    assert read_cpu_word("nohz_full", "0-99999999999", four, now).trouble


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a="b c" d', ["a=b c", "d"]),
        ('"a=b c" d', ["a=b c", "d"]),
        ("a='b c'", ["a='b", "c'"]),
        ('a="b c', ["a=b c"]),
        (r"BOOT_IMAGE=\EFI\vmlinuz  quiet", [r"BOOT_IMAGE=\EFI\vmlinuz", "quiet"]),
        ("", []),
    ],
)
def test_the_line_is_split_as_the_kernel_does(text: str, words: list[str]) -> None:
    assert split_command_line(text) == words


X86_WORDS = (
    *("idle", "intel_idle.max_cstate", "intel_pstate", "kvm.kvmclock_periodic_sync", "kvm_intel.ple_gap", "mce"),
    *("nosmt", "processor.max_cstate", "tsc"),
)
"""Parameters of checks and guides that no kernel of Arm obeyed when the stored systems were new."""


def boot_advice(facts: Facts) -> dict[str, list[str]]:
    """The names of the boot words of each check, as if the system failed it."""
    checks = [check for file in check_file.check_files().values() for check in file.check]
    results = [CheckResult(check, FINDING, check.severity, "", (), ()) for check in checks]
    return {
        result.check.id: [split_word(word)[0] for word in fitted(facts, result).check.change.boot.split()]
        for result in results
    }


@pytest.mark.parametrize("name", stored_names())
def test_no_system_is_advised_a_boot_word_that_its_architecture_does_not_parse(name: str) -> None:
    facts = Facts(stored_record(name), AuditRequest())
    advice = boot_advice(facts)
    words = {word for names in advice.values() for word in names}
    if facts.record.begin.machine == "x86_64":
        assert "nohlt" not in words
        assert advice["pm.cstate"] == ["intel_idle.max_cstate", "processor.max_cstate"]
        assert advice["clk.watchdog"] == ["tsc"]
    else:
        assert words.isdisjoint(X86_WORDS)
        assert advice["pm.vm.haltpoll"] == ["nohlt"]
        assert advice["pm.cstate"] == advice["clk.watchdog"] == []


@pytest.mark.parametrize(("machine", "word"), [("x86_64", "idle"), ("i686", "idle"), ("aarch64", "nohlt")])
def test_the_word_that_keeps_idle_cpus_awake_is_that_of_the_architecture(machine: str, word: str) -> None:
    assert boot_advice(made_facts(machine=machine))["pm.vm.haltpoll"] == [word]
