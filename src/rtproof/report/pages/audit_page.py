# SPDX-License-Identifier: Apache-2.0
"""The result of an audit as text, the most severe first."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rtproof.audit.audit_model import Audit, CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import NOT_GIVEN
from rtproof.core.phrases import capitalised, quantity
from rtproof.core.printable import clean
from rtproof.report.text_table import page_width, wrapped

LABEL = 11
"""Columns of the label of a line: now, boot, risk and so on."""
MOST_READ = 3
MOST_IDS = 6
MOST_WORST = 5
"""Findings with their meaning on the first screen."""
SCREEN = 40
"""Lines of the first screen."""
MOST_LINES = 3
"""Lines of a sentence or a command there."""
SHORT_LABEL = 8
"""Columns of the severity there."""
_WAYS = ("now", "boot", "build", "application", "firmware")
_KINDS = {"application": "program"}
_SHORT_KINDS = {"now": "run", "boot": "boot", "build": "build"}
_CLAUSE_END = re.compile(r"[.:;](?= )|, (?=(?:and|so|which|if|each|where) )")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Za-z])")
_HINTS = (
    ("debugfs is not mounted", "mount -t debugfs none /sys/kernel/debug"),
    ("tracefs is not mounted", "mount -t tracefs none /sys/kernel/tracing"),
    ("securityfs is not mounted", "mount -t securityfs none /sys/kernel/security"),
    ("EACCES", "collect the facts as root"),
    ("EPERM", "collect the facts as root, and without kernel lockdown"),
    (NOT_GIVEN, "give it with --cmdline, --kernel-config, --sysctl or --proc-dump"),
    ("did not look for it", "collect the facts again with this version of rtproof"),
    (
        "no configuration of this kernel",
        "copy its configuration to /boot/config-{release}",
    ),
    ("--cpus", "name the CPUs that shall be isolated with --cpus"),
)
"""What makes an unknown check known, by a part of the reason."""


def audit_text(
    result: Audit,
    fail_on: Severity = Severity.HIGH,
    *,
    full: bool = False,
    verbose: bool = False,
    screen: int = SCREEN,
) -> str:
    """The worst findings with what to type, and a line for each other one, on one screen.

    full: each finding with its advice, then what is not decided. verbose: also what is good or does not apply, and all
    of each reason. screen: lines of that screen at most, as long as there is room for the worst findings.
    """
    lines = _full(result, verbose) if full or verbose else _screen(result, fail_on, screen)
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def _full(result: Audit, verbose: bool) -> list[str]:
    lines = [*_head(result), *wrapped("", f"{counts_sentence(result)}.", 2), *_findings(result, verbose)]
    lines += [*_undecided(result), *_unknown(result), *_measured_advice(result)]
    if verbose:
        lines += [*_listed(result, Outcome.NOT_APPLICABLE), *_listed(result, Outcome.GOOD)]
    return lines


def _head(result: Audit) -> Iterator[str]:
    machine, kernel = result.machine or "a machine that is not known", result.kernel or "that is not known"
    yield from wrapped("Audit of ", f"{machine}, Linux {kernel}, purpose: {result.purpose}", LABEL, most=2)
    for note in result.notes:
        yield from wrapped("", note, 2)


def _screen(result: Audit, fail_on: Severity, screen: int) -> list[str]:
    found = result.of(Outcome.FINDING)
    worst, others = found[:MOST_WORST], found[MOST_WORST:]
    lines = [*_head(result), f"{_finding_counts(result)}{'. The worst first:' if others else ':' if worst else '.'}"]
    lines += [line for one in worst for line in _in_short(one)]
    end = wrapped("Not known: ", _severe_unknown(result, fail_on), 2, most=MOST_LINES)
    end += wrapped("Also ", f"{_other_counts(result) or 'nothing'}. More: --all, --explain ID.", 2)
    room = max(screen - len(lines) - len(end), 0)
    shown = [_lines_of(one) for one in others]
    while sum(map(len, shown)) + (len(shown) < len(others)) > room and shown:
        shown.pop()
    if len(shown) < len(others):
        more = quantity(len(others) - len(shown), "more finding")
        end.insert(0, f"{'':{SHORT_LABEL}}and {more}, none more severe")
    return [*lines, *(line for of in shown for line in of), *end]


def _in_short(one: CheckResult) -> Iterator[str]:
    """The fact, what it means, and the first way to change it that is not too long."""
    ways = ((kind, getattr(one.check.change, kind)) for kind in _WAYS)
    kind, text = next(((kind, text) for kind, text in ways if text and _is_short(text)), ("", one.check.advice))
    lines = [
        (one.severity.value, f"{one.check.id}: {one.sentence}"),
        ("", _SENTENCE_END.split(one.check.why)[0]),
        (f"  {_SHORT_KINDS.get(kind, 'do')}", text),
    ]
    if one.contradicted:
        lines.append(("", "What was measured contradicts this advice: see --all."))
    for label, words in lines:
        yield from wrapped(f"{label:<{SHORT_LABEL}}", words, SHORT_LABEL, most=MOST_LINES)


def _is_short(command: str) -> bool:
    return len(wrapped("", command, SHORT_LABEL)) <= MOST_LINES


def _lines_of(one: CheckResult) -> list[str]:
    """A finding in a line: as much of its sentence as is a whole clause. More lines if its first clause needs them."""
    begin = f"{one.severity.value:<{SHORT_LABEL}}{one.check.id}: "
    room = page_width() - len(begin)
    ends = [len(one.sentence), *(match.start() for match in _CLAUSE_END.finditer(one.sentence))]
    most = max((end for end in ends if end <= room), default=min(ends))
    return wrapped(begin, one.sentence[:most].rstrip("."), SHORT_LABEL)


def _severe_unknown(result: Audit, fail_on: Severity) -> str:
    """The checks that may be as severe as what makes the exit code 1."""
    undecided = [*result.of(Outcome.CONFLICTING), *result.of(Outcome.UNKNOWN)]
    severe = [one for one in undecided if one.severity.rank <= fail_on.rank]
    if not severe:
        return ""
    reason = unknown_reason(severe[0])
    return f"{quantity(len(severe), 'severe check')}; {severe[0].check.id}: {reason}.{_hint(result, reason)}"


def _other_counts(result: Audit) -> str:
    words = {
        Outcome.GOOD: "fine",
        Outcome.NOT_APPLICABLE: "not applicable",
        Outcome.UNKNOWN: "not known",
        Outcome.CONFLICTING: "contradictory",
    }
    counted = Counter(one.outcome for one in result.results)
    return ", ".join(f"{counted[outcome]} {word}" for outcome, word in words.items() if counted[outcome])


def _finding_counts(result: Audit) -> str:
    severities = Counter(one.severity for one in result.of(Outcome.FINDING))
    told = ", ".join(f"{severities[each]} {each.value}" for each in Severity if severities[each])
    return f"{quantity(sum(severities.values()), 'finding')} ({told})" if told else "no finding"


def counts_sentence(result: Audit) -> str:
    """How many findings each severity has, and how many checks each other outcome."""
    parts = filter(None, (_finding_counts(result), _other_counts(result)))
    return f"{', '.join(parts)}; of {quantity(len(result.results), 'check')}"


def _findings(result: Audit, verbose: bool) -> Iterator[str]:
    for severity in Severity:
        found = [one for one in result.of(Outcome.FINDING) if one.severity is severity]
        if found:
            yield from ("", f"{capitalised(severity.value)}: {quantity(len(found), 'finding')}")
        for one in found:
            yield from ("", *_result_lines(one, verbose))


def _result_lines(one: CheckResult, verbose: bool) -> Iterator[str]:
    check = one.check
    yield from wrapped(f"{check.id}: ", one.sentence, 2)
    for value in one.read[: None if verbose else MOST_READ]:
        yield from _labelled("read", f"{value.path} = {value.value}", 3)
    more = 0 if verbose else len(one.read) - MOST_READ
    if more > 0:
        yield from _labelled("", f"and {more} more")
    yield from _labelled("why", check.why if verbose else _SENTENCE_END.split(check.why)[0])
    yield from _labelled("advice", check.advice)
    for kind in (*_WAYS, "risk"):
        yield from _labelled(_KINDS.get(kind, kind), getattr(check.change, kind))
    yield from _evidence(one)
    if verbose:
        for effect in check.effect:
            yield from _labelled("effect", f"{effect.text} ({effect.source})")
        for source in check.source:
            yield from _labelled("source", source)


def _evidence(one: CheckResult) -> Iterator[str]:
    """What the lab measured of the advice."""
    for measured in one.check.measured:
        word = "The lab contradicts this advice" if measured.contradicts else "Measured in the lab"
        yield from _labelled("lab", f"{word}: {measured.text} To repeat: {measured.command}")


def _measured_advice(result: Audit) -> Iterator[str]:
    """What the lab measured against the advice of checks that are no findings."""
    told = [one for one in result.results if one.outcome is not Outcome.FINDING and one.contradicted]
    if told:
        yield from ("", f"Measured of checks that are no finding: {quantity(len(told), 'check')}")
    for one in told:
        yield from wrapped(f"{one.check.id}: ", one.check.advice, 2)
        yield from _evidence(one)


def _undecided(result: Audit) -> Iterator[str]:
    found = result.of(Outcome.CONFLICTING)
    if found:
        yield from ("", f"Conflicting evidence: {quantity(len(found), 'check')}")
    for one in found:
        yield from wrapped(f"{one.check.id} ({one.severity.value}): ", one.sentence, 2)
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
        yield from wrapped("", f"{many} unknown: {_ids(found)}. Reason: {reason}.{_hint(result, reason)}", 2)


def _hint(result: Audit, reason: str) -> str:
    hint = next((words for part, words in _HINTS if part in reason), "").replace("{release}", _release(result))
    return f" What to do: {hint}." if hint else ""


def _release(result: Audit) -> str:
    """The kernel's release, as the names of its files have it."""
    return result.kernel.partition(" ")[0]


def _ids(found: Sequence[CheckResult]) -> str:
    named = ", ".join(f"{one.check.id} ({one.severity.value})" for one in found[:MOST_IDS])
    return f"{named} and {len(found) - MOST_IDS} more" if len(found) > MOST_IDS else named


def _listed(result: Audit, outcome: Outcome) -> Iterator[str]:
    found = result.of(outcome)
    if found:
        yield from ("", f"{capitalised(outcome.value)}: {quantity(len(found), 'check')}")
    for one in found:
        read = "; ".join(f"{value.path} = {value.value}" for value in one.read[:MOST_READ])
        yield from wrapped(f"{one.check.id}: ", " ".join(filter(None, (one.sentence or one.check.title, read))), 2)


def _labelled(label: str, text: str, most: int | None = None) -> list[str]:
    """A text behind a label; nothing for no text."""
    return wrapped(f"  {label:<{LABEL - 2}}", text, LABEL, most=most) if text else []
