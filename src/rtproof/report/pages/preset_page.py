# SPDX-License-Identifier: Apache-2.0
"""The setup list of an article beside a system: for a terminal, and as a table in Markdown."""

from collections.abc import Iterator
from textwrap import wrap

from rtproof.audit.audit_model import Outcome
from rtproof.audit.preset_file import PresetResult, SettingResult

WIDTH = 110
_AS_ASKED = {
    Outcome.GOOD: "yes",
    Outcome.FINDING: "no",
    Outcome.UNKNOWN: "not known",
    Outcome.NOT_APPLICABLE: "does not apply",
    Outcome.CONFLICTING: "contradicts itself",
}


def preset_text(result: PresetResult) -> str:
    """Each line of the list: what the article did, what this system has, and where today's knowledge differs."""
    return "\n".join([result.preset.title, *(line for one in result.settings for line in _lines(one))]) + "\n"


def _lines(one: SettingResult) -> Iterator[str]:
    yield ""
    yield f"  {one.setting.asked}: {_AS_ASKED[one.outcome]}"
    yield from _wrapped("article", f"{one.setting.said} ({one.setting.where})")
    yield from _wrapped("this system", one.has or _AS_ASKED[one.outcome])
    if one.check:
        yield from _wrapped("check", _says(one))
    for sentence in one.differs:
        yield from _wrapped("differs", sentence)


def _says(one: SettingResult) -> str:
    assert one.check
    severity = f", {one.check.severity.value}" if one.check.outcome is Outcome.FINDING else ""
    return f"{one.check.check.id}: {one.check.outcome.value}{severity}"


def _wrapped(label: str, text: str) -> Iterator[str]:
    indent = " " * 16
    yield from wrap(text, WIDTH, initial_indent=f"    {label:12}", subsequent_indent=indent, break_on_hyphens=False)


def preset_markdown(result: PresetResult) -> str:
    """A table: what the article did, whether the system has it, the check, and where today's knowledge differs."""
    rows = ["| the article | has it | this system | check | today |", "|---|---|---|---|---|"]
    for one in result.settings:
        article = f"`{one.setting.asked}`: {one.setting.said} ({one.setting.where})"
        check = f"`{one.check.check.id}`: {one.check.outcome.value}" if one.check else "none"
        cells = (article, _AS_ASKED[one.outcome], one.has, check, " ".join(one.differs))
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"
