# SPDX-License-Identifier: Apache-2.0
"""The result of an audit for programs: JSON, and JUnit XML for continuous integration."""

import json
import xml.etree.ElementTree as ET

from rtproof.audit.audit_model import Audit, CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.setup_list import PresetResult, SettingResult
from rtproof.core.printable import clean
from rtproof.report.pages import ci_verdicts
from rtproof.report.pages.setup_list_page import AS_ASKED
from rtproof.schema.published import audit_dict

SUITE = "rtproof audit"


def audit_json(result: Audit, fail_on: Severity, preset: PresetResult | None = None) -> bytes:
    """Return the JSON as UTF-8, indented by two; see docs/json-schema.md. preset: the setup list of an article."""
    plain = audit_dict(result, fail_on, preset)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False).encode(errors="replace") + b"\n"


def audit_junit(result: Audit, fail_on: Severity, preset: PresetResult | None = None) -> bytes:
    """Return JUnit XML: a test case for each check, and for each line of the setup list of an article.

    A finding at or above ``fail_on`` is a failure, so that the file agrees with the exit code. A finding below it is
    skipped, and so is a check that is unknown, has conflicting evidence or does not apply, each with its reason: a
    check passes only if what it reads was read and is good. A line of a setup list passes if the system has it, and
    is skipped if not: it is no reason to fail.
    """
    suite = ET.Element("testsuite", name=SUITE)
    for one in result.results:
        _case(suite, one, fail_on)
    for line in preset.settings if preset else ():
        _setting_case(suite, line)
    return ci_verdicts.junit_document(suite)


def _case(suite: ET.Element, one: CheckResult, fail_on: Severity) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"audit.{one.check.subject}", name=clean(one.check.id))
    case.set("time", "0.000")
    body = _body(one)
    if one.outcome is not Outcome.GOOD:
        failed = one.outcome is Outcome.FINDING and one.severity.rank <= fail_on.rank
        words = f"{one.outcome.value}, severity {one.severity.value}: {one.sentence}"
        outcome = ET.SubElement(case, "failure" if failed else "skipped", message=clean(words))
        if failed:
            outcome.set("type", one.severity.value)
            outcome.text = body
    ET.SubElement(case, "system-out").text = body


def _setting_case(suite: ET.Element, one: SettingResult) -> None:
    case = ET.SubElement(suite, "testcase", classname="audit.setup-list", name=clean(one.setting.asked), time="0.000")
    if one.outcome is not Outcome.GOOD:
        ET.SubElement(case, "skipped", message=clean(f"{AS_ASKED[one.outcome]}: {one.has}"))
    lines = (f"{one.setting.said} ({one.setting.where})", f"this system: {one.has}", *one.differs)
    ET.SubElement(case, "system-out").text = "\n".join(clean(line) for line in lines)


def _body(one: CheckResult) -> str:
    change = one.check.change
    ways = (("now", change.now), ("boot", change.boot), ("build", change.build), ("application", change.application))
    lines = [one.check.title, *(f"{value.path} = {value.value}" for value in one.read)]
    if one.outcome is Outcome.FINDING:
        lines += [f"why: {one.check.why}", f"advice: {one.check.advice}"]
        lines += [f"{kind}: {text}" for kind, text in ways if text]
    return "\n".join(clean(line) for line in (*lines, *(f"source: {source}" for source in one.check.source)))
