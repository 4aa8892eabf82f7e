# SPDX-License-Identifier: Apache-2.0
"""The setup list of an article: what it did, and what a system has of it. Read from ``presets/NAME.toml``."""

from dataclasses import dataclass

import msgspec

from rtproof.audit import check_file, judgement, presets
from rtproof.audit.check import Check, CheckResult, Outcome, Part, Rule, Severity
from rtproof.audit.facts import Facts
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.toml import read_toml

_OPPOSED = {Outcome.FINDING, Outcome.CONFLICTING}
_CONTENT = {Outcome.GOOD, Outcome.NOT_APPLICABLE}


class SettingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the article's list.

    said: what the article did, in our words. where: where the article says so. asked: the setting, as the article gives
    it.
    check: the id of the check on the same matter, "" if there is none.
    read, if_absent, needs: as in a check. good: the test of the article's value, such as ``is y``: of the first source
    that is there; with ``every``, of all. Without it, the system has the setting if the check is good.
    today: how today's knowledge differs, if so.
    """

    said: str
    where: str
    asked: str
    check: str = ""
    read: tuple[str, ...] = ()
    every: bool = False
    good: str = ""
    if_absent: Outcome = Outcome.FINDING
    needs: tuple[str, ...] = ()
    today: str = ""


class PresetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file.

    title: of the list. article: the name of its figures, for a page. purpose: of PURPOSES, by which the checks are
    judged.
    """

    title: str
    article: str
    purpose: str
    setting: tuple[SettingFile, ...]


@dataclass(frozen=True)
class SettingResult:
    """A line of the list on a system.

    outcome: ``good`` if the system has what the article asked for, ``finding`` if not. has: what the system has.
    check: what the check says of the same matter, None if there is no check.
    differs: sentences in which the check, or what is known today, does not say what the article says.
    """

    setting: SettingFile
    outcome: Outcome
    has: str
    check: CheckResult | None
    differs: tuple[str, ...]


@dataclass(frozen=True)
class PresetResult:
    """The list of an article on a system.

    settings: each line of the list.
    """

    preset: PresetFile
    settings: tuple[SettingResult, ...]


def read_preset(name: str) -> PresetFile:
    """The setup list of this name. UserError if there is none."""
    if name not in presets.preset_names():
        raise UserError(unknown_name("setup list", name, presets.preset_names()))
    return read_toml(presets.preset_folder() / f"{name}{presets.SUFFIX}", PresetFile)


def purpose_of(name: str) -> str:
    """The purpose by which the checks are judged, of a name that ``--for`` takes."""
    return name if name in presets.PURPOSES else read_preset(name).purpose


def judge_preset(facts: Facts, preset: PresetFile) -> PresetResult:
    """What a system has of the list. UserError if the list names a check that does not exist."""
    return PresetResult(preset, tuple(_judge(facts, setting) for setting in preset.setting))


def _judge(facts: Facts, setting: SettingFile) -> SettingResult:
    check = judgement.judge_check(facts, check_file.find_check(setting.check)) if setting.check else None
    found = judgement.judge_check(facts, _as_check(setting)) if setting.good else check
    assert found
    differs = [setting.today] if setting.today else []
    if check and setting.good and found.outcome is Outcome.GOOD and check.outcome in _OPPOSED:
        differs.append(f"{check.check.id} ({check.severity.value}) is not content with it: {check.sentence}")
    if check and setting.good and found.outcome is Outcome.FINDING and check.outcome in _CONTENT:
        why = f": {check.sentence}" if check.sentence else "."
        differs.append(f"{check.check.id} is content without it{why}")
    return SettingResult(setting, found.outcome, _has(found), check, tuple(differs))


def _as_check(setting: SettingFile) -> Check:
    rules = (
        Rule(there=("all",)),
        Rule(when=(f"value {setting.good}",), good="", show=("value.here",)),
        Rule(known=("value",)),
        Rule(finding="", show=("value.here",)),
    )
    terms = tuple(setting.read)
    part = {"all": Part(each=terms), "value": Part(each=terms) if setting.every else Part(first=terms)}
    return Check(
        "article", setting.asked, setting.read, Severity.INFO, setting.said, (setting.where,), "",
        rule=rules, part=part, if_absent=setting.if_absent, needs=setting.needs,
    )  # fmt: skip


def _has(found: CheckResult) -> str:
    """What the system has: the values that were read, or the sentence that says why there are none."""
    read = [one for one in found.read if not one.value.startswith("(")]
    values = [f"{one.path}: {one.value}" if one.value else one.path for one in read]
    if found.outcome is Outcome.GOOD and any("value lacks" in test for rule in found.check.rule for test in rule.when):
        return f"{found.read[0].path} has nothing of it"
    if found.outcome in (Outcome.UNKNOWN, Outcome.NOT_APPLICABLE) or not values:
        return found.sentence or "; ".join(f"{one.path} {one.value}" for one in found.read)
    return "; ".join(values[:2])
