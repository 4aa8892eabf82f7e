# SPDX-License-Identifier: Apache-2.0
"""Rules of checks: what makes no sense is refused before anything is judged, and each kind of word judges."""

import pytest
from audit_cases import REFUSED, made_facts

from rtproof.audit import judgement
from rtproof.audit.check_file import parse_checks
from rtproof.core.errors import UserError

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


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ('{ when = ["two here"], good = "" }', "its last rule must always hold"),
        ('{ known = ["two"], good = "" }, { good = "" }', "each rule needs one outcome, known, there or odd"),
        ('{ when = ["two glows"], good = "" }, { good = "" }', "'two glows' has no verb of a test"),
        ('{ when = ["two above much"], good = "" }, { good = "" }', "'two above much' compares with no number"),
        ('{ when = ["two cpu-list many"], good = "" }, { good = "" }', "'two cpu-list many' asks nothing of CPUs"),
        ('{ when = ["two has ("], good = "" }, { good = "" }', "unterminated subpattern"),
        ('{ when = ["kernel since now"], good = "" }, { good = "" }', "names no version of a kernel"),
        ('{ when = ["kernel after 6.1"], good = "" }, { good = "" }', "'kernel after 6.1' has no verb of a test"),
        ('{ when = ["condition moon"], good = "" }, { good = "" }', "'condition moon' has no verb of a test"),
        ('{ when = ["purpose is fun"], good = "" }, { good = "" }', "'purpose is fun' names no purpose"),
        ('{ when = ["three here"], good = "" }, { good = "" }', "'three' names no source of the check"),
        ('{ when = ["one here"], good = "" }, { good = "" }', "'one' names several sources of the check"),
        ('{ good = "{three}" }', "'three' names no source of the check"),
        ('{ good = "{two|loud}" }', "a sentence has {two|loud}, which shows nothing"),
        ('{ good = "", show = ["three"] }', "'three' names no source of the check"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: str, complaint: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_checks(made(rules).encode(), "memory")
    assert complaint in str(refused.value)


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
