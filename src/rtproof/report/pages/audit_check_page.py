# SPDX-License-Identifier: Apache-2.0
"""The page of a check for a terminal, and the list of all checks."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from rtproof.audit.check import Check, CheckFile, Form, Good, Outcome
from rtproof.audit.fitted_advice import ANY_MACHINE, filled
from rtproof.report.text_table import page_width

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
    for label, text in check_rows(check, subject):
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


def check_rows(check: Check, subject: str) -> list[tuple[str, str]]:
    """Label and text of each row of a check's page. The label is empty where the row goes on with the one above."""
    kernels = (f"since {check.since}" if check.since else "", f"until {check.until}" if check.until else "")
    good = f"{_FORMS[check.form]}{', in every file' if check.every else ''}: {_good(check.good)}" if check.good else ""
    absent = check.absent_means or check.if_absent is not Outcome.UNKNOWN
    ways = ((label, getattr(check.change, key)) for key, label in _CHANGES.items())
    told = (
        ("subject", subject),
        ("severity", severity_text(check)),
        ("only for", ", ".join(need.replace("-", " ") for need in check.needs)),
        ("kernels", " ".join(filter(None, kernels))),
        *_under("reads", check.read),
        ("good", good),
        *((f"for {purpose}", _good(each)) for purpose, each in check.good_for.items()),
        ("if not there", f"{check.if_absent.value}. {check.absent_means}".strip() if absent else ""),
        ("why", check.why),
        *(("effect", f"{effect.text} ({effect.source})") for effect in check.effect),
        ("advice", check.advice),
        *((label, filled(text, {**ANY_MACHINE, "path": check.read[0]})) for label, text in ways if text),
        *(("measured", f"{AGAINST * each.contradicts}{each.text} ({each.command})") for each in check.measured),
        ("no finding if", f"one of these is: {', '.join(check.told_by)}" if check.told_by else ""),
        ("explains", ", ".join(check.explains)),
        *_under("source", check.source),
    )
    return [(label, text) for label, text in told if text]


AGAINST = "contradicts the advice: "


def _under(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [("" if at else label, text) for at, text in enumerate(texts)]


def severity_text(check: Check) -> str:
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
