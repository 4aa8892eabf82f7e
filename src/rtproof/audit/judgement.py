# SPDX-License-Identifier: Apache-2.0
"""Judge the checks: a pure function of the facts and of what the user asks."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rtproof.audit import check_file, conditions, fitted_advice, functions, readings, rules
from rtproof.audit.check import Audit, Check, CheckResult, Judgement, Outcome
from rtproof.audit.facts import GIVEN_NOTE, Facts, kernel_version
from rtproof.core.phrases import capitalised, quantity
from rtproof.core.printable import clean
from rtproof.summary import recorded_facts, system_facts

LONGEST_SENTENCE = 2000


def audit(facts: Facts, checks: Sequence[Check] | None = None) -> Audit:
    """Judge all checks, or these."""
    begin = facts.record.begin
    judged = judge_checks(facts, check_file.all_checks() if checks is None else checks)
    results = tuple(fitted_advice.fitted(facts, one) for one in judged)
    collected = recorded_facts.is_collected(facts.record)
    kernel = f"{begin.kernel_release} {begin.kernel_version}".strip()
    return Audit(
        results,
        facts.request.purpose,
        begin.machine,
        kernel,
        begin.origin_realtime_ns,
        collected,
        tuple(_notes(facts, results, collected=collected)),
    )


def _notes(facts: Facts, results: Sequence[CheckResult], *, collected: bool) -> Iterator[str]:
    """What a reader must know of the record and the machine before the results."""
    if facts.given is not None:
        decided = sum(one.outcome not in (Outcome.UNKNOWN, Outcome.NOT_APPLICABLE) for one in results)
        yield f"Given: {facts.given}. This answers {decided} of {quantity(len(results), 'check')}."
        notes = (fact.value for fact in facts.record.facts if fact.key == GIVEN_NOTE)
        yield from (f"{capitalised(note)}." for note in notes)
    if facts.record.damage:
        sentences = [one.sentence for one in facts.record.damage]
        said = next((sentence for sentence in sentences if "cut off" in sentence), sentences[0])
        yield f"The record is not whole, and a check of what is gone is unknown: {said}."
    if not collected and facts.given is None:
        yield "This record has no facts for an audit: its agent is older than the audit, or another tool measured."
    if recorded_facts.virtual_time_clock(facts.record):
        yield "This is a guest of the lab in virtual time: what the audit says of its hardware is true of no machine."
    elif system_facts.is_guest(facts.record):
        yield "This is a virtual machine: the audit does not see the settings of its host."


def judge_checks(facts: Facts, checks: Sequence[Check]) -> Iterator[CheckResult]:
    """The results, with the checks' general advice; a finding whose cause another finding tells of does not apply."""
    results = [judge_check(facts, check) for check in checks]
    found = {one.check.id for one in results if one.outcome is Outcome.FINDING}
    for one in results:
        first = next((name for name in one.check.told_by if name in found), "")
        if first and one.outcome is Outcome.FINDING:
            sentence = f"The same cause as {first}: {one.sentence}"
            yield CheckResult(one.check, Outcome.NOT_APPLICABLE, one.severity, sentence, one.read)
        else:
            yield one


def judge_check(facts: Facts, check: Check) -> CheckResult:
    """Judge one check."""
    judge: Callable[[Facts, Check], Judgement] = rules.judge
    if check.function:
        module, _, name = check.function.partition(".")
        judge = getattr(importlib.import_module(f"{functions.__name__}.{module}"), name)
    found = why_not_applicable(facts, check) or judge(facts, check)
    severity = check.severity_for.get(facts.request.purpose, found.severity or check.severity)
    # A hostile file may have filled the sentence with anything.
    sentence = f"{found.sentence[:LONGEST_SENTENCE]}..." if len(found.sentence) > LONGEST_SENTENCE else found.sentence
    read = tuple(replace(one, path=clean(one.path)) for one in found.read)
    return CheckResult(check, found.outcome, severity, clean(sentence), read, named=found.named)


def why_not_applicable(facts: Facts, check: Check) -> Judgement | None:
    """NOT_APPLICABLE or UNKNOWN, if a condition of the check or its versions say so; None if it applies."""
    doubt = None
    for need in check.needs:
        holds, sentence = conditions.CONDITIONS[need](facts)
        if holds is False:
            return Judgement(Outcome.NOT_APPLICABLE, sentence, ())
        if holds is None:
            doubt = doubt or Judgement(Outcome.UNKNOWN, sentence, ())
    since, until = kernel_version(check.since), kernel_version(check.until)
    if not since and not until:
        return doubt
    if facts.kernel is None:
        return Judgement(Outcome.UNKNOWN, "The version of the kernel is not known.", ())
    this_one = f"and this one is {'.'.join(map(str, facts.kernel))}."
    # A feature that is there was brought back into an older version, as RHEL and Android do.
    brought_back = any(one.here for one in readings.read_source(facts, check.read[0]))
    if since and facts.kernel < since and not brought_back:
        return Judgement(Outcome.NOT_APPLICABLE, f"Kernels have this since {check.since}, {this_one}", ())
    if until and until < facts.kernel:
        return Judgement(Outcome.NOT_APPLICABLE, f"Kernels have this until {check.until}, {this_one}", ())
    return doubt
