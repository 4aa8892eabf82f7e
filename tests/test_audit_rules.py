# SPDX-License-Identifier: Apache-2.0
"""Rules of checks: what the files of checks say is understood, and each kind of word judges."""

import re

import pytest
from audit_cases import REFUSED, made_facts

from rtproof.audit import judgement
from rtproof.audit.check import Check
from rtproof.audit.check_file import all_checks, parse_checks
from rtproof.audit.conditions import CONDITIONS
from rtproof.audit.facts import kernel_version
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
