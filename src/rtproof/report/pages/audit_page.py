# SPDX-License-Identifier: Apache-2.0
"""The audit for a terminal, and as JUnit XML: its findings, the page of one check, an article's setup list."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import shorten, wrap

from rtproof.audit.check import Audit, Check, CheckFile, CheckResult, Outcome, Severity
from rtproof.audit.facts import NOT_GIVEN
from rtproof.audit.fitted_advice import ANY_MACHINE, filled
from rtproof.audit.setup_list import PresetResult
from rtproof.core.phrases import capitalised, quantity
from rtproof.core.printable import clean
from rtproof.report.pages.ci_verdicts import junit_case, junit_document
from rtproof.report.text_table import page_width
from rtproof.tune.knobs import all_knobs

MOST_READ, LONGEST_READ = 3, 180
MOST_IDS = 6
MOST_WORST = 5
"""Findings with their meaning on the first screen."""
SCREEN = 40
"""Lines of the first screen."""
MOST_LINES = 3
"""Lines of a sentence or a command there."""
SHORT_LABEL = 8
"""Columns of the severity there."""
LABEL = 17
"""Columns of the labels of a check's page."""
_CLAUSE_END = re.compile(r"[.:;](?= )|, (?=(?:and|so|which|if|each|where) )|$")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Za-z])")
_HINTS = (
    ("debugfs is not mounted", "mount -t debugfs none /sys/kernel/debug"),
    ("tracefs is not mounted", "mount -t tracefs none /sys/kernel/tracing"),
    ("securityfs is not mounted", "mount -t securityfs none /sys/kernel/security"),
    ("EACCES", "collect the facts as root"),
    ("EPERM", "collect the facts as root, and without kernel lockdown"),
    (NOT_GIVEN, "give it with --cmdline, --kernel-config, --sysctl or --proc-dump"),
    ("did not look for it", "collect the facts again with this version of rtproof"),
    ("no configuration of this kernel", "copy its configuration to /boot/config-{release}"),
    ("--cpus", "name the CPUs that shall be isolated with --cpus"),
)
"""What makes an unknown check known, by a part of the reason."""
_CHANGES = {
    "now": "change now",
    "boot": "at boot",
    "build": "at build",
    "application": "in the program",
    "firmware": "elsewhere",
    "risk": "risk",
}
_SHORT_CHANGES = {"now": "run", "boot": "boot", "build": "build", "application": "do", "firmware": "do"}
_OTHERS = {
    Outcome.GOOD: "fine",
    Outcome.NOT_APPLICABLE: "not applicable",
    Outcome.UNKNOWN: "not known",
    Outcome.CONFLICTING: "contradictory",
}


def audit_text(
    result: Audit, fail_on: Severity = Severity.HIGH, *, full: bool = False, verbose: bool = False, screen: int = SCREEN
) -> str:
    """The worst findings with what to type, and a line for each other one, on one screen.

    full: each finding with its advice, then what is not decided. verbose: also what is good or does not apply, and all
    of each reason. screen: lines of that screen at most, as long as there is room for the worst findings.
    """
    machine, kernel = result.machine or "a machine that is not known", result.kernel or "that is not known"
    lines = _wrapped("Audit of ", f"{machine}, Linux {kernel}, purpose: {result.purpose}", 11, most=2)
    for note in result.notes:
        lines += _wrapped("", note, 2)
    lines += _full(result, verbose) if full or verbose else _screen(result, fail_on, screen - len(lines))
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def _screen(result: Audit, fail_on: Severity, screen: int) -> list[str]:
    found = result.of(Outcome.FINDING)
    worst, others = found[:MOST_WORST], found[MOST_WORST:]
    lines = [f"{_finding_counts(result)}{'. The worst first:' if others else ':' if worst else '.'}"]
    for one in worst:
        lines += _in_short(one)
    end = _wrapped("Not known: ", _severe_unknown(result, fail_on), 2, most=MOST_LINES)
    end += _wrapped("Also ", f"{_other_counts(result) or 'nothing'}. More: --all, --explain ID.", 2)
    room = max(screen - len(lines) - len(end), 0)
    shown = [_in_a_line(one) for one in others]
    while sum(map(len, shown)) + (len(shown) < len(others)) > room and shown:
        shown.pop()
    if len(shown) < len(others):
        more = quantity(len(others) - len(shown), "more finding")
        end.insert(0, f"{'':{SHORT_LABEL}}and {more}, none more severe")
    return [*lines, *(line for of in shown for line in of), *end]


def _in_short(one: CheckResult) -> list[str]:
    """The fact, what it means, and the first way to change it that is not too long."""
    ways = ((label, getattr(one.check.change, kind)) for kind, label in _SHORT_CHANGES.items())
    short = ((label, text) for label, text in ways if text and len(_wrapped("", text, SHORT_LABEL)) <= MOST_LINES)
    label, text = next(short, ("do", one.check.advice))
    told = [
        (one.severity.value, f"{one.check.id}: {one.sentence}"),
        ("", _SENTENCE_END.split(one.check.why)[0]),
        (f"  {label}", text),
        ("", "What was measured contradicts this advice: see --all." if one.contradicted else ""),
    ]
    return [line for label, text in told for line in _wrapped(label.ljust(SHORT_LABEL), text, SHORT_LABEL, MOST_LINES)]


def _in_a_line(one: CheckResult) -> list[str]:
    """A finding in a line: as much of its sentence as is a whole clause. More lines if its first clause needs them."""
    begin = f"{one.severity.value:<{SHORT_LABEL}}{one.check.id}: "
    ends = [match.start() for match in _CLAUSE_END.finditer(one.sentence)]
    fitting = [end for end in ends if end <= page_width() - len(begin)]
    return _wrapped(begin, one.sentence[: max(fitting, default=ends[0])].rstrip("."), SHORT_LABEL)


def _severe_unknown(result: Audit, fail_on: Severity) -> str:
    """The checks that may be as severe as what makes the exit code 1."""
    severe = [one for one in undecided(result) if one.severity.rank <= fail_on.rank]
    if not severe:
        return ""
    reason = unknown_reason(severe[0])
    return f"{quantity(len(severe), 'severe check')}; {severe[0].check.id}: {reason}.{_hint(result, reason)}"


def undecided(result: Audit) -> list[CheckResult]:
    return [*result.of(Outcome.CONFLICTING), *result.of(Outcome.UNKNOWN)]


def _other_counts(result: Audit) -> str:
    counted = Counter(one.outcome for one in result.results)
    return ", ".join(f"{counted[outcome]} {word}" for outcome, word in _OTHERS.items() if counted[outcome])


def _finding_counts(result: Audit) -> str:
    severities = Counter(one.severity for one in result.of(Outcome.FINDING))
    told = ", ".join(f"{severities[each]} {each.value}" for each in Severity if severities[each])
    return f"{quantity(sum(severities.values()), 'finding')} ({told})" if told else "no finding"


def counts_sentence(result: Audit) -> str:
    """How many findings each severity has, and how many checks each other outcome."""
    parts = filter(None, (_finding_counts(result), _other_counts(result)))
    return f"{', '.join(parts)}; of {quantity(len(result.results), 'check')}"


def _full(result: Audit, verbose: bool) -> list[str]:
    lines = _wrapped("", f"{counts_sentence(result)}.", 2)
    for severity in Severity:
        found = [one for one in result.of(Outcome.FINDING) if one.severity is severity]
        lines += _heading(severity.value, found, "finding")
        for one in found:
            rows = [
                *_read(one, None if verbose else MOST_READ),
                *advice_rows(one.check, whole=verbose),
            ]
            lines += ["", *_of_check(one.check.id, one.sentence, rows)]
    conflicting = result.of(Outcome.CONFLICTING)
    lines += _heading("Conflicting evidence", conflicting)
    for one in conflicting:
        lines += _of_check(f"{one.check.id} ({one.severity.value})", one.sentence, _read(one, MOST_READ))
    lines += _unknown(result)
    measured = [one for one in result.results if one.outcome is not Outcome.FINDING and one.contradicted]
    lines += _heading("Measured of checks that are no finding", measured)
    for one in measured:
        lines += _of_check(one.check.id, one.check.advice, _measured(one.check))
    for outcome in (Outcome.NOT_APPLICABLE, Outcome.GOOD) if verbose else ():
        lines += _heading(outcome.value, result.of(outcome))
        for one in result.of(outcome):
            lines += _of_check(one.check.id, one.sentence or one.check.title, _read(one, MOST_READ))
    return lines


def _heading(words: str, found: Sequence[CheckResult], noun: str = "check") -> list[str]:
    return ["", f"{capitalised(words)}: {quantity(len(found), noun)}"] if found else []


def _of_check(check: str, sentence: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """A sentence and labelled texts. Addresses and commands are not broken, so that they can be copied."""
    lines = _wrapped(f"{check}: ", sentence, 2)
    for label, text in rows:
        lines += _wrapped(f"  {label}".ljust(LABEL), text, LABEL, whole_words=True)
    return lines


def _wrapped(label: str, text: str, indent: int, most: int | None = None, *, whole_words: bool = False) -> list[str]:
    """A text behind a label, its further lines indented, cut after ``most`` lines; nothing for no text."""
    return wrap(
        clean(text),
        page_width(),
        initial_indent=label,
        subsequent_indent=" " * indent,
        max_lines=most,
        placeholder=" ...",
        break_on_hyphens=False,
        break_long_words=not whole_words,
    )


def _read(one: CheckResult, most: int | None) -> list[tuple[str, str]]:
    """What the check read. most: so many readings, and of each so many characters as are a few lines; None for all."""
    if most is None:
        return [("read", f"{value.path} = {value.value}") for value in one.read]
    told = [("read", shorten(f"{value.path} = {value.value}", LONGEST_READ)) for value in one.read[:most]]
    return [*told, ("", f"and {len(one.read) - most} more" if len(one.read) > most else "")]


def unknown_reason(one: CheckResult) -> str:
    """Why a check is unknown, without its path, so that checks with the same reason are told together."""
    reasons = (value.value for value in one.read if re.fullmatch(r"\(.+\)", value.value, re.DOTALL))
    hidden = next(reasons, "")
    return hidden[1:-1] if hidden and hidden[1:-1] in one.sentence else one.sentence.rstrip(".")


def _unknown(result: Audit) -> list[str]:
    """The checks that are unknown, those with one reason together; the reason with the most severe check first."""
    by_reason: dict[str, list[CheckResult]] = {}
    for one in result.of(Outcome.UNKNOWN):
        by_reason.setdefault(unknown_reason(one), []).append(one)
    lines = _heading("Unknown", result.of(Outcome.UNKNOWN))
    for reason, found in by_reason.items():
        many = "1 check is" if len(found) == 1 else f"{len(found)} checks are"
        named = ", ".join(f"{one.check.id} ({one.severity.value})" for one in found[:MOST_IDS])
        more = f" and {len(found) - MOST_IDS} more" if len(found) > MOST_IDS else ""
        lines += _wrapped("", f"{many} unknown: {named}{more}. Reason: {reason}.{_hint(result, reason)}", 2)
    return lines


def _hint(result: Audit, reason: str) -> str:
    hint = next((words for part, words in _HINTS if part in reason), "")
    return f" What to do: {hint.replace('{release}', result.kernel.partition(' ')[0])}." if hint else ""


# One check, and all of them.


def check_text(check: Check, subject: str) -> str:
    """The page of a check for a terminal. subject: its title."""
    rows = [*check_rows(check, subject), *_tunable(check)]
    return "\n".join(_of_check(check.id, check.title, rows)) + "\n"


def _tunable(check: Check) -> list[tuple[str, str]]:
    """The command that measures on a target what the advice of this check does there; nothing without a knob."""
    names = [knob.name for knob in all_knobs() if knob.check == check.id]
    return [("measure it", f"rtproof tune --knobs {','.join(names)}")] if names else []


def list_text(files: Mapping[str, CheckFile]) -> str:
    """All checks with severity and title, by subject."""
    width = max(len(check.id) for file in files.values() for check in file.check)
    lines = []
    for file in files.values():
        lines += [file.title, *(f"  {one.id:{width}}  {one.severity.value:6}  {one.title}" for one in file.check), ""]
    return "\n".join(lines)


def check_rows(check: Check, subject: str) -> list[tuple[str, str]]:
    """Label and text of each row of a check's page. The label is empty where the row goes on with the one above."""
    kernels = (f"since {check.since}" if check.since else "", f"until {check.until}" if check.until else "")
    absent = check.absent_means or check.if_absent is not Outcome.UNKNOWN
    told = (
        ("subject", subject),
        ("severity", severity_text(check)),
        ("only for", ", ".join(need.replace("-", " ") for need in check.needs)),
        ("kernels", " ".join(filter(None, kernels))),
        *_under("reads", check.read),
        ("if not there", f"{check.if_absent.value}. {check.absent_means}".strip() if absent else ""),
        ("no finding if", f"one of these is: {', '.join(check.told_by)}" if check.told_by else ""),
        ("explains", ", ".join(check.explains)),
        *((label, filled(text, {**ANY_MACHINE, "path": check.read[0]})) for label, text in advice_rows(check)),
    )
    return [(label, text) for label, text in told if text]


def advice_rows(check: Check, *, whole: bool = True) -> list[tuple[str, str]]:
    """Label and text of why a check matters, how to change it, and what that does. whole: also who says so."""
    told = [
        ("why", check.why if whole else _SENTENCE_END.split(check.why)[0]),
        ("advice", check.advice),
        *((label, getattr(check.change, kind)) for kind, label in _CHANGES.items()),
        *_measured(check),
    ]
    if whole:
        told += [("effect", f"{effect.text} ({effect.source})") for effect in check.effect]
        told += _under("source", check.source)
    return [(label, text) for label, text in told if text]


def _measured(check: Check) -> list[tuple[str, str]]:
    against = "contradicts the advice: "
    return [("measured", f"{against * each.contradicts}{each.text} ({each.command})") for each in check.measured]


def _under(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [("" if at else label, text) for at, text in enumerate(texts)]


def severity_text(check: Check) -> str:
    others = [f"{purpose}: {severity.value}" for purpose, severity in check.severity_for.items()]
    return check.severity.value + (f" ({', '.join(others)})" if others else "")


# The setup list of an article beside a system.


AS_ASKED = {
    Outcome.FINDING: "no",
    Outcome.CONFLICTING: "contradicts itself",
    Outcome.UNKNOWN: "not known",
    Outcome.GOOD: "yes",
    Outcome.NOT_APPLICABLE: "does not apply",
}
"""Whether the system has a setting, those that it lacks first."""


def preset_text(result: PresetResult, *, short: bool) -> str:
    """Each line of the list: what the article did, what this system has, and where today's knowledge differs.

    short: the names of the settings alone: those that the system lacks, those that are not known, and those it has.
    """
    lines = _wrapped("", f"{result.preset.title}{'; --all explains each setting.' if short else ''}", 2)
    for outcome, word in AS_ASKED.items() if short else ():
        asked = [one.setting.asked for one in result.settings if one.outcome is outcome]
        lines += _wrapped(f"{word} ({len(asked)}): ", "; ".join(asked), 4) if asked else []
    for one in () if short else result.settings:
        severity = f", {one.check.severity.value}" if one.check and one.check.outcome is Outcome.FINDING else ""
        rows = [
            ("article", f"{one.setting.said} ({one.setting.where})"),
            ("this system", one.has or AS_ASKED[one.outcome]),
            ("check", f"{one.check.check.id}: {one.check.outcome.value}{severity}" if one.check else ""),
            *(("differs", sentence) for sentence in one.differs),
        ]
        lines += ["", *_of_check(one.setting.asked, AS_ASKED[one.outcome], rows)]
    return "\n".join(lines) + "\n"


def audit_junit(result: Audit, fail_on: Severity, preset: PresetResult | None = None) -> bytes:
    """Return JUnit XML: a test case for each check, and for each line of the setup list of an article.

    A finding at or above ``fail_on`` is a failure, so that the file agrees with the exit code. A finding below it is
    skipped, and so is a check that is unknown, has conflicting evidence or does not apply, each with its reason: a
    check passes only if what it reads was read and is good. A line of a setup list passes if the system has it, and
    is skipped if not: it is no reason to fail.
    """
    suite = ET.Element("testsuite", name="rtproof audit")
    for one in result.results:
        failed = one.outcome is Outcome.FINDING and one.severity.rank <= fail_on.rank
        kind = "" if one.outcome is Outcome.GOOD else "failure" if failed else "skipped"
        message = f"{one.outcome.value}, severity {one.severity.value}: {one.sentence}"
        lines = [one.check.title, *(f"{value.path} = {value.value}" for value in one.read)]
        if one.outcome is Outcome.FINDING:
            lines += [f"{label or 'source'}: {text}" for label, text in advice_rows(one.check)]
        names = (f"audit.{one.check.subject}", one.check.id)
        junit_case(suite, names, (kind, one.severity.value, message), lines)
    for line in preset.settings if preset else ():
        kind, message = "" if line.outcome is Outcome.GOOD else "skipped", f"{AS_ASKED[line.outcome]}: {line.has}"
        lines = [f"{line.setting.said} ({line.setting.where})", f"this system: {line.has}", *line.differs]
        junit_case(suite, ("audit.setup-list", line.setting.asked), (kind, "", message), lines)
    return junit_document(suite)
