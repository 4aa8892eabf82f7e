# SPDX-License-Identifier: Apache-2.0
"""The rows as JUnit XML, which every CI service reads: one test suite, a test case for each run and limit.

PROVEN passes, REFUTED is a failure, INVALID and what could not be read is an error. UNDECIDED is skipped with its
reason: the run has not failed, it was too short to tell. With ``strict`` it is a failure, as is a run without a limit.
"""

import xml.etree.ElementTree as ET  # writing only
from collections.abc import Sequence

from rtproof.analysis.model import State
from rtproof.report.ci.rows import Claim, Row
from rtproof.report.words import clean

SUITE = "rtproof judge"
KINDS = {State.PROVEN: "", State.REFUTED: "failure", State.INVALID: "error"}
COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit(rows: Sequence[Row], *, strict: bool = False) -> bytes:
    """A whole document in UTF-8."""
    suite = ET.Element("testsuite", name=SUITE)
    for row in rows:
        for claim in row.claims or (None,):
            _case(suite, row, claim, strict)
    for attribute, number in _counts(suite).items():
        suite.set(attribute, str(number))
    suite.set("time", _seconds(sum(row.measured_ns or 0 for row in rows)))
    root = ET.Element("testsuites", {"name": "rtproof", **_counts_as_text(suite)})
    root.append(suite)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(suite: ET.Element, row: Row, claim: Claim | None, strict: bool) -> None:
    name = claim.text if claim else "verdict"
    case = ET.SubElement(suite, "testcase", classname=clean(row.name), name=clean(name))
    case.set("time", _seconds(row.measured_ns or 0))
    kind, why = _outcome(row, claim, strict)
    if kind:
        state = claim.state.value if claim else row.verdict
        outcome = ET.SubElement(case, kind, message=clean(f"{state}: {why}"))
        if kind != "skipped":
            outcome.set("type", state)
            outcome.text = _body(row, claim)
    ET.SubElement(case, "system-out").text = _body(row, claim)


def _outcome(row: Row, claim: Claim | None, strict: bool) -> tuple[str, str]:
    if claim is None:
        return "error", row.error
    other = "failure" if strict else "skipped"
    longer = f"; how much longer: {claim.longer}" if claim.longer and claim.state is State.UNDECIDED else ""
    return KINDS.get(claim.state, other), claim.reason + longer


def _body(row: Row, claim: Claim | None) -> str:
    lines = claim.said if claim else (row.error,)
    return "\n".join(clean(line) for line in (*lines, *(f"doubt: {doubt}" for doubt in row.doubts)))


def _counts(suite: ET.Element) -> dict[str, int]:
    found = {name: len(suite.findall(f"testcase/{kind}")) for kind, name in COUNTED.items()}
    return {"tests": len(suite.findall("testcase")), **found}


def _counts_as_text(suite: ET.Element) -> dict[str, str]:
    return {name: str(number) for name, number in _counts(suite).items()}


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"
