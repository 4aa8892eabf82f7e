# SPDX-License-Identifier: Apache-2.0
"""The page of a check, for a terminal and for docs/checks, and the list of all checks."""

import re
from collections.abc import Iterator, Mapping
from textwrap import wrap

from rtproof.audit.check import Check, CheckFile, Form, Good, Outcome
from rtproof.audit.fitted_advice import ANY_MACHINE, filled
from rtproof.report.text_table import page_width

MARKDOWN_WIDTH = 130
_LABEL_WIDTH = 16
_FORMS = {
    Form.WORD: "a word",
    Form.NUMBER: "a number",
    Form.BRACKETED: "the word in brackets",
    Form.CPU_LIST: "a list of CPUs",
    Form.CPU_MASK: "a mask of CPUs",
    Form.TEXT: "a text",
}
_CHANGES = {
    "now": "change now",
    "boot": "at boot",
    "build": "at build",
    "application": "in the program",
    "firmware": "elsewhere",
    "risk": "risk",
}


def check_text(check: Check, subject: str) -> str:
    """The page of a check for a terminal. subject: its title."""
    lines = wrap(f"{check.id}: {check.title}", page_width(), subsequent_indent="  ", break_on_hyphens=False)
    for label, text in _rows(check, subject):
        first, *rest = wrap(text, page_width() - _LABEL_WIDTH, break_long_words=False, break_on_hyphens=False)
        lines.append(f"  {label:{_LABEL_WIDTH - 2}}{first}")
        lines += [" " * _LABEL_WIDTH + line for line in rest]
    return "\n".join(lines) + "\n"


def list_text(files: Mapping[str, CheckFile]) -> str:
    """All checks with severity and title, by subject."""
    width = max(len(check.id) for file in files.values() for check in file.check)
    lines = []
    for file in files.values():
        lines += [file.title, *(f"  {one.id:{width}}  {one.severity.value:6}  {one.title}" for one in file.check), ""]
    return "\n".join(lines)


def checks_markdown(file: CheckFile) -> str:
    """The page of a subject in Markdown, with a heading for each check."""
    return "\n".join(f"## {check.id}\n\n{_check_markdown(check, file.title)}" for check in file.check)


def _check_markdown(check: Check, subject: str) -> str:
    rows = [(label, text) for label, text in _rows(check, subject) if label not in ("subject", "why")]
    about = wrap(
        _escaped(f"{check.title}. {check.why}"), MARKDOWN_WIDTH, break_long_words=False, break_on_hyphens=False
    )
    lines = [*about, "", "| | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {_cell(label, text)} |" for label, text in rows)]) + "\n"


def table_markdown(files: Mapping[str, CheckFile]) -> str:
    """A table of all checks in Markdown, with links to their pages."""
    lines = ["| check | what | severity | page |", "|---|---|---|---|"]
    for subject, file in files.items():
        for check in file.check:
            link = f"{subject}.md#{check.id.replace('.', '')}"
            lines.append(f"| `{check.id}` | {_escaped(check.title)} | {_severity(check)} | [{subject}]({link}) |")
    return "\n".join(lines) + "\n"


def _rows(check: Check, subject: str) -> Iterator[tuple[str, str]]:
    yield "subject", subject
    yield "severity", _severity(check)
    yield from _rows_of_reading(check)
    yield "why", check.why
    for effect in check.effect:
        yield "effect", f"{effect.text} ({effect.source})"
    yield "advice", check.advice
    for key, label in _CHANGES.items():
        text = getattr(check.change, key)
        if text:
            yield label, filled(text, {**ANY_MACHINE, "path": check.read[0]})
    yield from _rows_of_evidence(check)


def _rows_of_reading(check: Check) -> Iterator[tuple[str, str]]:
    if check.needs:
        yield "only for", ", ".join(need.replace("-", " ") for need in check.needs)
    if check.since or check.until:
        until = f"until {check.until}" if check.until else ""
        yield "kernels", " ".join(filter(None, (f"since {check.since}" if check.since else "", until)))
    for number, path in enumerate(check.read):
        yield "reads" if not number else "", path
    if check.good:
        yield "good", f"{_FORMS[check.form]}{', in every file' if check.every else ''}: {_good(check.good)}"
    for purpose, good in check.good_for.items():
        yield f"for {purpose}", _good(good)
    if check.absent_means or check.if_absent is not Outcome.UNKNOWN:
        yield "if not there", f"{check.if_absent.value}. {check.absent_means}".strip()


def _rows_of_evidence(check: Check) -> Iterator[tuple[str, str]]:
    for measured in check.measured:
        against = "contradicts the advice: " if measured.contradicts else ""
        yield "measured", f"{against}{measured.text} ({measured.command})"
    if check.told_by:
        yield "no finding if", f"one of these is: {', '.join(check.told_by)}"
    if check.explains:
        yield "explains", ", ".join(check.explains)
    for number, source in enumerate(check.source):
        yield "source" if not number else "", source


def _severity(check: Check) -> str:
    others = [f"{purpose}: {severity.value}" for purpose, severity in check.severity_for.items()]
    return check.severity.value + (f" ({', '.join(others)})" if others else "")


def _good(good: Good) -> str:
    says = {
        "one of": ", ".join(good.one_of),
        "none of": ", ".join(good.none_of),
        "at least": "" if good.at_least is None else f"{good.at_least:,}",
        "at most": "" if good.at_most is None else f"{good.at_most:,}",
        "no part fits": good.lacks,
        "a part fits": good.has,
    }
    found = [f"{name} {value}" for name, value in says.items() if value]
    return "; ".join([*found, *(["no isolated CPU is among them"] if good.cpus else [])])


_CODE = ("reads", "change now", "at boot", "at build", "good")
_SENTENCE = re.compile(r"[A-Z][a-z]* [a-z]")
_COMMAND = re.compile(r"(.*) \((rtproof .*)\)$", re.DOTALL)


def _cell(label: str, text: str) -> str:
    """A cell of a table in Markdown: commands and paths as code, addresses as links."""
    if text.startswith("https://"):
        return f"<{text}>"
    measured = _COMMAND.match(text) if label == "measured" else None
    if measured:
        return f"{_escaped(measured[1])} (`{measured[2]}`)"
    if label in _CODE and _SENTENCE.match(text):
        return _escaped(text)
    if label in _CODE or (not label and " " not in text):
        return f"`{text}`".replace("|", "\\|")
    return _escaped(text)


def _escaped(text: str) -> str:
    """Text in which Markdown sees no marks."""
    for mark in "\\|*_<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text
