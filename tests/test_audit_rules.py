# SPDX-License-Identifier: Apache-2.0
"""Rules of checks: what the files of checks say is understood, and each kind of word judges."""

import re

import pytest
from audit_cases import REFUSED, made_facts
from audit_systems import stored_names, stored_record

from rtproof.audit import boot_words, check_file, judgement
from rtproof.audit.boot_words import read_cpu_word
from rtproof.audit.check import Check, CheckResult, Outcome
from rtproof.audit.check_file import all_checks, parse_checks
from rtproof.audit.conditions import CONDITIONS
from rtproof.audit.facts import AuditRequest, Facts, kernel_version, split_command_line, split_word
from rtproof.audit.fitted_advice import fitted
from rtproof.audit.presets import PURPOSES
from rtproof.audit.rules import sentences

CHECK = """
title = "Memory"
[[check]]
id = "mem.made"
title = "Made"
read = ["/proc/sys/vm/one", "/proc/sys/vm/two", "boot:one"]
severity = "low"
why = "It is made up."
source = ["https://docs.kernel.org/"]
advice = "None."
part = { word = { of = "two", find = "a(.)" } }
rule = [
    RULES
]
"""


def made(rules: str) -> str:
    return CHECK.replace("RULES", rules)


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id)
def test_what_a_check_says_is_understood(check: Check) -> None:
    """Each rule judges a case elsewhere, which tries its verbs, its terms and its sentence."""
    assert re.fullmatch(r"[a-z0-9]+(\.[a-z0-9_]+)+", check.id)
    assert check.source
    assert {*check.needs} <= CONDITIONS.keys()
    assert {*check.severity_for} <= {*PURPOSES}
    assert bool(check.rule) is not bool(check.function)
    assert None not in [kernel_version(text) for text in (check.since, check.until) if text]
    for rule in check.rule:
        ways = [text is not None for _, text in sentences(rule)]
        assert sum(ways) + sum(map(bool, (rule.known, rule.there, rule.odd))) == 1
    always_hold = [not (rule.when or rule.known or rule.there or rule.odd) for rule in check.rule]
    assert not check.rule or always_hold[-1]


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            '{ when = ["word is b"], finding = "It is {word} of {two|path}." }, { good = "" }',
            "It is b of /proc/sys/vm/two.",
        ),
        ('{ when = ["word absent"], finding = "None." }, { finding = "One." }', "One."),
        ('{ known = ["/proc/sys/vm/one"] }, { good = "" }', "/proc/sys/vm/one could not be read"),
        ('{ when = ["kernel since 6.12", "kernel not before 6.12"], finding = "New." }, { good = "" }', "New."),
        ('{ when = ["two other-than {boot:one}"], finding = "Apart." }, { good = "" }', "Apart."),
    ],
)
def test_the_first_rule_that_holds_judges(rules: str, sentence: str) -> None:
    check = parse_checks(made(rules).encode(), "memory").check[0]
    facts = made_facts({"/proc/sys/vm/one": REFUSED, "/proc/sys/vm/two": "ab\n", "/proc/cmdline": "one=x\n"})
    assert judgement.judge_check(facts, check).sentence.startswith(sentence)


# The command line: misspelt words, contradictions, lost words, single parameters.


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
