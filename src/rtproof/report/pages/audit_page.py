# SPDX-License-Identifier: Apache-2.0
"""The result of an audit as text, the most severe first."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rtproof.audit.audit_model import Audit, CheckResult, Outcome, ReadValue
from rtproof.audit.check import Check, Severity
from rtproof.core.phrases import capitalised, quantity
from rtproof.core.printable import clean
from rtproof.report.text_table import page_width

LABEL = 11
"""Columns of the label of a line: now, boot, risk and so on."""
MOST_READ = 3
MOST_IDS = 6
MOST_NEXT_LINES = 6
"""Lines of the next action on the first screen."""
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_HINTS = (
    ("debugfs is not mounted", "mount -t debugfs none /sys/kernel/debug"),
    ("tracefs is not mounted", "mount -t tracefs none /sys/kernel/tracing"),
    ("securityfs is not mounted", "mount -t securityfs none /sys/kernel/security"),
    ("EACCES", "collect the facts as root"),
    ("EPERM", "collect the facts as root, and without kernel lockdown"),
    ("did not look for it", "collect the facts again with this version of rtproof"),
    ("no configuration of this kernel", "see that /proc/config.gz or the file /boot/config-RELEASE is there"),
    ("--cpus", "name the CPUs that shall be isolated with --cpus"),
)
"""What makes an unknown check known, by a part of the reason."""


def audit_text(result: Audit, fail_on: Severity = Severity.HIGH, *, verbose: bool = False) -> str:
    """What matters most on the first screen, then each finding with its advice, then what is not decided.

    verbose: also what is good or does not apply, and all of each reason.
    """
    lines = [*_first_screen(result, fail_on), *_findings(result, verbose), *_undecided(result), *_unknown(result)]
    lines += _measured_advice(result)
    if verbose:
        lines += [*_listed(result, Outcome.NOT_APPLICABLE), *_listed(result, Outcome.GOOD)]
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def _first_screen(result: Audit, fail_on: Severity) -> Iterator[str]:
    yield from _wrapped("Audit of ", f"{result.machine}, Linux {result.kernel}, for: {result.purpose}", LABEL, 2)
    for note in result.notes:
        yield from _labelled("note", note)
    yield from _labelled("worst", _worst(result), 2)
    yield from _labelled("counts", counts_sentence(result))
    yield from _labelled("next", _next_action(result, fail_on), MOST_NEXT_LINES)
    first = result.worst
    if first:
        yield from _changes(first.check, first.read, ("now", "boot", "build", "application", "firmware"), most=1)


def _worst(result: Audit) -> str:
    found = result.worst
    if found:
        return f"{found.severity.value}: {found.check.id}: {found.sentence}"
    return "there is no finding"


def counts_sentence(result: Audit) -> str:
    """How many checks have each outcome, and how many findings each severity."""
    severities = Counter(one.severity for one in result.of(Outcome.FINDING))
    told = ", ".join(f"{severities[each]} {each.value}" for each in Severity if severities[each])
    findings = quantity(sum(severities.values()), "finding")
    parts = [f"{findings} ({told})" if told else "no finding"]
    parts += [
        f"{len(result.of(outcome))} {words}"
        for outcome, words in (
            (Outcome.CONFLICTING, "with conflicting evidence"),
            (Outcome.UNKNOWN, "unknown"),
            (Outcome.GOOD, "good"),
            (Outcome.NOT_APPLICABLE, "that do not apply"),
        )
        if result.of(outcome)
    ]
    return f"{', '.join(parts)}; of {quantity(len(result.results), 'check')}"


def _next_action(result: Audit, fail_on: Severity) -> str:
    """The one thing to do next: the advice of the worst finding, or else how to learn what is not known."""
    found = result.worst
    if found and found.severity.rank <= Severity.MEDIUM.rank:
        return found.check.advice
    undecided = [*result.of(Outcome.CONFLICTING), *result.of(Outcome.UNKNOWN)]
    severe = [one for one in undecided if one.severity.rank <= fail_on.rank]
    if severe:
        reason = unknown_reason(severe[0])
        many = f"{quantity(len(severe), 'check')} of severity {fail_on.value} or above"
        return f"{many} could not be decided, the first: {severe[0].check.id}: {reason}.{_hint(reason)}"
    return found.check.advice if found else "nothing"


def _findings(result: Audit, verbose: bool) -> Iterator[str]:
    for severity in Severity:
        found = [one for one in result.of(Outcome.FINDING) if one.severity is severity]
        if found:
            yield from ("", f"{capitalised(severity.value)}: {quantity(len(found), 'finding')}")
        for one in found:
            yield from ("", *_result_lines(one, verbose))


def _result_lines(one: CheckResult, verbose: bool) -> Iterator[str]:
    check = one.check
    yield from _wrapped(f"{check.id}: ", one.sentence, 2)
    for value in one.read[: None if verbose else MOST_READ]:
        yield from _labelled("read", f"{value.path} = {value.value}", 3)
    more = 0 if verbose else len(one.read) - MOST_READ
    if more > 0:
        yield from _labelled("", f"and {more} more")
    yield from _labelled("why", check.why if verbose else _SENTENCE_END.split(check.why)[0])
    yield from _labelled("advice", check.advice)
    yield from _changes(check, one.read, ("now", "boot", "build", "application", "firmware", "risk"))
    yield from _evidence(one)
    if verbose:
        for effect in check.effect:
            yield from _labelled("effect", f"{effect.text} ({effect.source})")
        for source in check.source:
            yield from _labelled("source", source)


def _changes(check: Check, read: Sequence[ReadValue], kinds: Iterable[str], most: int = 9) -> Iterator[str]:
    """How to change it, a line for each way there is, at most so many."""
    told = [(kind, getattr(check.change, kind)) for kind in kinds if getattr(check.change, kind)]
    for kind, text in told[:most]:
        yield from _labelled(_KINDS.get(kind, kind), with_path(text, read))


_KINDS = {"application": "program"}


def with_path(text: str, read: Sequence[ReadValue]) -> str:
    """A command with the path of the file that was read in the place of {path}."""
    return text.replace("{path}", read[0].path if read else "FILE")


def _evidence(one: CheckResult) -> Iterator[str]:
    """What was measured of the advice, in the lab and in the user's own runs."""
    for measured in one.check.measured:
        word = "The lab contradicts this advice" if measured.contradicts else "Measured in the lab"
        yield from _labelled("lab", f"{word}: {measured.text} To repeat: {measured.command}")
    for own in one.own_runs:
        yield from _labelled("own runs", own.sentence)


def _measured_advice(result: Audit) -> Iterator[str]:
    """What was measured of the advice of checks that are no findings: what contradicts it, and all the user's runs."""
    told = [one for one in result.results if one.outcome is not Outcome.FINDING and (one.contradicted or one.own_runs)]
    if told:
        yield from ("", f"Measured of checks that are no finding: {quantity(len(told), 'check')}")
    for one in told:
        yield from _wrapped(f"{one.check.id}: ", one.check.advice, 2)
        yield from _evidence(one)


def _undecided(result: Audit) -> Iterator[str]:
    found = result.of(Outcome.CONFLICTING)
    if found:
        yield from ("", f"Conflicting evidence: {quantity(len(found), 'check')}")
    for one in found:
        yield from _wrapped(f"{one.check.id} ({one.severity.value}): ", one.sentence, 2)
        for value in one.read[:MOST_READ]:
            yield from _labelled("read", f"{value.path} = {value.value}", 2)


def unknown_reason(one: CheckResult) -> str:
    """Why a check is unknown, without its path, so that checks with the same reason are told together."""
    hidden = next((value.value for value in one.read if _is_reason(value.value)), "")
    return hidden[1:-1] if hidden and hidden[1:-1] in one.sentence else one.sentence.rstrip(".")


def _is_reason(value: str) -> bool:
    return value.startswith("(") and value.endswith(")") and len(value) > len("()")


def _unknown(result: Audit) -> Iterator[str]:
    """The checks that are unknown, those with one reason together; the reason with the most severe check first."""
    by_reason: dict[str, list[CheckResult]] = {}
    for one in result.of(Outcome.UNKNOWN):
        by_reason.setdefault(unknown_reason(one), []).append(one)
    if by_reason:
        yield from ("", f"Unknown: {quantity(len(result.of(Outcome.UNKNOWN)), 'check')}")
    for reason, found in by_reason.items():
        many = "1 check is" if len(found) == 1 else f"{len(found)} checks are"
        why = f" because {reason}" if reason[:1].islower() else f": {reason}"
        yield from _wrapped("", f"{many} unknown{why}.{_hint(reason)} {_ids(found)}.", 2)


def _hint(reason: str) -> str:
    hint = next((words for part, words in _HINTS if part in reason), "")
    return f" To know: {hint}." if hint else ""


def _ids(found: Sequence[CheckResult]) -> str:
    named = ", ".join(f"{one.check.id} ({one.severity.value})" for one in found[:MOST_IDS])
    return f"{named} and {len(found) - MOST_IDS} more" if len(found) > MOST_IDS else named


def _listed(result: Audit, outcome: Outcome) -> Iterator[str]:
    found = result.of(outcome)
    if found:
        yield from ("", f"{capitalised(outcome.value)}: {quantity(len(found), 'check')}")
    for one in found:
        read = "; ".join(f"{value.path} = {value.value}" for value in one.read[:MOST_READ])
        yield from _wrapped(f"{one.check.id}: ", " ".join(filter(None, (one.sentence or one.check.title, read))), 2)


def _labelled(label: str, text: str, most: int | None = None) -> list[str]:
    """A text behind a label; nothing for no text."""
    return _wrapped(f"  {label:<{LABEL - 2}}", text, LABEL, most) if text else []


def _wrapped(first: str, text: str, indent: int, most: int | None = None) -> list[str]:
    """The text behind its first words, further lines indented, cut after ``most`` lines."""
    return textwrap.wrap(
        clean(text),
        page_width(),
        initial_indent=first,
        subsequent_indent=" " * indent,
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
    )
