# SPDX-License-Identifier: Apache-2.0
"""The setup list of an article beside a system, for a terminal."""

from collections.abc import Iterator
from textwrap import wrap

from rtproof.audit.audit_model import Outcome
from rtproof.audit.setup_list import PresetResult, SettingResult
from rtproof.report.text_table import page_width, wrapped

AS_ASKED = {
    Outcome.FINDING: "no",
    Outcome.CONFLICTING: "contradicts itself",
    Outcome.UNKNOWN: "not known",
    Outcome.GOOD: "yes",
    Outcome.NOT_APPLICABLE: "does not apply",
}
"""Whether the system has a setting, those that it lacks first."""


def preset_in_short(result: PresetResult) -> str:
    """The names of the settings that the system lacks, of those that are not known, and of those that it has."""
    lines = wrapped("", f"{result.preset.title}; --all explains each setting.", 2)
    for outcome, word in AS_ASKED.items():
        asked = [one.setting.asked for one in result.settings if one.outcome is outcome]
        lines += wrapped(f"{word} ({len(asked)}): ", "; ".join(asked), 4) if asked else []
    return "\n".join(lines) + "\n"


def preset_text(result: PresetResult) -> str:
    """Each line of the list: what the article did, what this system has, and where today's knowledge differs."""
    title = wrap(result.preset.title, page_width())
    return "\n".join([*title, *(line for one in result.settings for line in _lines(one))]) + "\n"


def _lines(one: SettingResult) -> Iterator[str]:
    yield ""
    yield from wrapped("  ", f"{one.setting.asked}: {AS_ASKED[one.outcome]}", 4)
    yield from wrapped("    article     ", f"{one.setting.said} ({one.setting.where})", 16)
    yield from wrapped("    this system ", one.has or AS_ASKED[one.outcome], 16)
    if one.check:
        yield from wrapped("    check       ", _says(one), 16)
    for sentence in one.differs:
        yield from wrapped("    differs     ", sentence, 16)


def _says(one: SettingResult) -> str:
    assert one.check
    severity = f", {one.check.severity.value}" if one.check.outcome is Outcome.FINDING else ""
    return f"{one.check.check.id}: {one.check.outcome.value}{severity}"
