# SPDX-License-Identifier: Apache-2.0
"""Verdicts on several runs for continuous integration: one row for each run, as text, Markdown and JUnit XML."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import TextWrapper

from rtproof.core.phrases import capitalised, duration, limit_value, percent, quantity, sure
from rtproof.core.printable import clean
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Outcome, State, Verdict
from rtproof.judge.histogram_only import exceeding_text
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Table
from rtproof.report.formats.markdown import block_markdown, words
from rtproof.report.text_table import lay_out, page_width
from rtproof.summary.measured_kernel import IN_BAND

ERROR_CODE = 2
WORST_FIRST = (ERROR_CODE, 3, 1, 4, 0)
"""Exit codes, worst first: unreadable, INVALID, EXCEEDED or REFUTED, UNDECIDED, HELD or PROVEN or no limit."""


@dataclass(frozen=True)
class CiClaim:
    """One limit and its verdict.

    text: the claim. outcome: of the test case. seen: what was counted. longer: how much more time the verdict needs.
    reason: of the verdict. said: its sentences; with several limits, those about the run are with the first limit.
    """

    text: str
    state: State
    outcome: Outcome
    reason: str
    seen: str = ""
    longer: str = ""
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class CiRow:
    """One run. state: None if the run could not be read; ``error`` then says why."""

    name: str
    state: State | None
    claims: tuple[CiClaim, ...] = ()
    doubts: tuple[str, ...] = ()
    measured_ns: int | None = None
    error: str = ""

    @property
    def exit_code(self) -> int:
        return ERROR_CODE if self.state is None else self.state.exit_code

    @property
    def verdict(self) -> str:
        return "ERROR" if self.state is None else self.state.word


def ci_exit_code(rows: Iterable[CiRow]) -> int:
    """Return the exit code of the worst row; 0 without rows."""
    return min((row.exit_code for row in rows), key=WORST_FIRST.index, default=0)


def worst_row(rows: Sequence[CiRow]) -> str:
    """Return the verdict on all runs together. Runs without a limit do not count as HELD or PROVEN."""
    found = [row.verdict for row in rows if row.exit_code == ci_exit_code(rows)]
    if ci_exit_code(rows) == ERROR_CODE:
        return f"ERROR, {len(found)} of {quantity(len(rows), 'run')} could not be read"
    unasked = found.count(State.NOT_ASKED.word)
    asked = [word for word in dict.fromkeys(found) if word != State.NOT_ASKED.word]
    if 0 < unasked < len(found):
        return f"{' and '.join(asked)}, but for {quantity(unasked, 'run')} without a limit"
    return " and ".join(asked) or State.NOT_ASKED.word


def unread_row(name: str, error: str) -> CiRow:
    return CiRow(name, None, error=error)


def run_row(name: str, analysis: Analysis) -> CiRow:
    """Return the row of a run, or of a histogram of another tool."""
    verdicts = analysis.verdicts or (analysis.verdict,)
    mark = f", {IN_BAND}" if analysis.core else ""
    return CiRow(
        name,
        analysis.verdict.state,
        tuple(_claim(verdict, mark, first=number == 0) for number, verdict in enumerate(verdicts)),
        tuple(doubt.what for doubt in analysis.doubts),
        analysis.verdict.measured_ns,
    )


def _claim(verdict: Verdict, mark: str, *, first: bool) -> CiClaim:
    first_reason, *others = verdict.reasons or (verdict_sentences.NO_LIMIT,)
    reason = ". ".join((first_reason, *map(capitalised, others)))
    of_the_run = () if first else verdict_sentences.sentences_of_run(verdict.sentences)
    said = tuple(f"{label} {text}".strip() for label, text in verdict.sentences if (label, text) not in of_the_run)
    asked = verdict.requirement
    if asked is None:
        return CiClaim(f"no limit{mark}", verdict.state, verdict.outcome, reason, said=said)
    more = verdict_sentences.more_time_of_verdict(verdict)
    text = f"{claim_text(verdict, asked)}{mark}"
    return CiClaim(text, verdict.state, verdict.outcome, reason, _seen(verdict, asked), more, said)


def claim_text(verdict: Verdict, asked: Requirement) -> str:
    """Return the claim at the confidence of its own test, which is higher where several limits share the error.

    A run in virtual time has no confidence.
    """
    limit, once = limit_value(asked.limit_ns), duration(asked.at_most_ns)
    text = f"never above {limit}" if asked.plain else f"above {limit} at most once per {once}"
    if verdict.deterministic:
        return f"{text}, virtual time"
    if asked.plain:
        return text
    wanted = percent(asked.confidence)
    if verdict_sentences.shares_error(verdict, asked):
        wanted = f"{sure(verdict_sentences.own_alpha(verdict, asked))} ({wanted} for all limits)"
    return f"{text}{verdict_sentences.longest(asked)}, {wanted}"


def _seen(verdict: Verdict, requirement: Requirement) -> str:
    if verdict.untimed:
        return exceeding_text(verdict.above, requirement.limit_ns) if verdict.above else ""
    count, span = verdict.exceeded_count, f" in {duration(verdict.measured_ns)}" if verdict.measured_ns else ""
    if not count:
        return f"not exceeded{span}" if span else ""
    episodes = "" if requirement.plain else f", {quantity(len(verdict.episodes), 'episode')}"
    return f"exceeded {'once' if count == 1 else f'{count:,} times'}{span}{episodes}"


LONGER = "how much longer"
"""The column is left out where no verdict needs more time."""
HEADER = ("run", "verdict", "claim", "seen", LONGER, "doubts")


def ci_text(rows: Sequence[CiRow]) -> bytes:
    """Return the table, with the reasons below it."""
    parts = [_title(rows), lay_out(_table(rows)), *_each_by_itself(rows), *_reasons(rows)]
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def ci_markdown(rows: Sequence[CiRow], stated: str = "") -> bytes:
    """Return Markdown for a pull request or a job's summary. stated: what the user says, unchecked."""
    parts = [f"## {words(_title(rows))}", block_markdown(_table(rows))]
    parts += [words(line) for line in _each_by_itself(rows)]
    parts += [f"> {words(stated)}"] if stated else []
    parts += [_details(row) for row in rows]
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def _title(rows: Sequence[CiRow]) -> str:
    differ = ci_exit_code(rows) != ERROR_CODE and len({row.exit_code for row in rows}) > 1
    worst = "the worst of " if differ else ""
    return f"rtproof: {worst_row(rows)} - {worst}{quantity(len(rows), 'run')}"


def _each_by_itself(rows: Sequence[CiRow]) -> list[str]:
    """Return a note for several verdicts: each may be wrong, so the chance that one of them is wrong is larger."""
    decided = sum(row.state in (State.PROVEN, State.REFUTED) for row in rows)
    told = (
        "Each confidence holds for one run by itself. "
        f"The chance that one or more of the {decided} verdicts PROVEN or REFUTED are wrong is larger."
    )
    return [told] if decided > 1 else []


def _table(rows: Sequence[CiRow]) -> Table:
    cells = [found for row in rows for found in _cells(row)]
    kept = [at for at, name in enumerate(HEADER) if name != LONGER or any(found[at] for found in cells)]
    header, *body = (tuple(found[at] for at in kept) for found in (HEADER, *cells))
    return Table("One line for each limit", header, tuple(body))


def _cells(row: CiRow) -> Iterator[tuple[str, ...]]:
    if row.state is None:
        yield row.name, row.verdict, "", row.error, "", ""
    for number, claim in enumerate(row.claims):
        doubts = str(len(row.doubts)) if row.doubts else "none"
        name = row.name if number == 0 else ""
        yield name, claim.state.word, claim.text, claim.seen, claim.longer, doubts if number == 0 else ""


def _reasons(rows: Sequence[CiRow]) -> Iterator[str]:
    """Yield the reason of each verdict, and the doubts about each run."""
    for row in rows:
        said = [f"{row.verdict}: {row.error}"] if row.error else []
        said += [f"{claim.state.word}: {claim.reason}" for claim in row.claims]
        said += [f"doubt: {doubt}" for doubt in row.doubts]
        wrapper = TextWrapper(page_width(), initial_indent="  ", subsequent_indent="    ")
        wrapper.break_on_hyphens = wrapper.break_long_words = False
        yield "\n".join([clean(row.name), *(wrapper.fill(clean(line)) for line in said)])


def _details(row: CiRow) -> str:
    """Return the sentences as a folded list. GitHub needs an empty line after the summary."""
    said = [line for claim in row.claims for line in claim.said] or [row.error]
    said += [f"doubt: {doubt}" for doubt in row.doubts]
    listed = "\n".join(f"- {words(line)}" for line in said)
    return f"<details><summary>{words(row.name)}: {row.verdict}</summary>\n\n{listed}\n\n</details>"


# The next functions write the rows as JUnit XML, which every CI service reads: one test suite, with a test
# case for each run and limit.
#
# HELD and PROVEN pass, EXCEEDED and REFUTED are failures, INVALID and an unreadable file are errors. UNDECIDED is a
# failure if the limit was exceeded. Else it is skipped with its reason: the run has not failed. With ``strict``,
# UNDECIDED and a run without a limit are failures.


SUITE = "rtproof judge"
KINDS = {
    Outcome.PASSED: "",
    Outcome.FAILED: "failure",
    Outcome.INVALID: "error",
    Outcome.SKIPPED: "skipped",
    Outcome.UNKNOWN: "skipped",
}
COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def ci_junit(rows: Sequence[CiRow], *, strict: bool = False) -> bytes:
    """Return a whole document in UTF-8."""
    suite = ET.Element("testsuite", name=SUITE)
    for row in rows:
        for claim in row.claims or (None,):
            _case(suite, row, claim, strict)
    return junit_document(suite, sum(row.measured_ns or 0 for row in rows))


def junit_document(suite: ET.Element, ns: int = 0) -> bytes:
    """Return a whole document in UTF-8 with this suite, whose test cases are counted. ns: how long they took."""
    for attribute, number in _counts(suite).items():
        suite.set(attribute, str(number))
    suite.set("time", _seconds(ns))
    root = ET.Element("testsuites", {"name": "rtproof", **_counts_as_text(suite)})
    root.append(suite)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(suite: ET.Element, row: CiRow, claim: CiClaim | None, strict: bool) -> None:
    name = claim.text if claim else "verdict"
    case = ET.SubElement(suite, "testcase", classname=clean(row.name), name=clean(name))
    case.set("time", _seconds(row.measured_ns or 0))
    kind, why = _outcome(row, claim, strict)
    if kind:
        state = claim.state.word if claim else row.verdict
        outcome = ET.SubElement(case, kind, message=clean(f"{state}: {why}"))
        if kind != "skipped":
            outcome.set("type", state)
            outcome.text = _body(row, claim)
    ET.SubElement(case, "system-out").text = _body(row, claim)


def _outcome(row: CiRow, claim: CiClaim | None, strict: bool) -> tuple[str, str]:
    if claim is None:
        return "error", row.error
    kind = KINDS[claim.outcome]
    kind = "failure" if strict and kind == "skipped" else kind
    longer = f"; how much longer: {claim.longer}" if claim.longer and claim.state is State.UNDECIDED else ""
    return kind, claim.reason + longer


def _body(row: CiRow, claim: CiClaim | None) -> str:
    lines = claim.said if claim else (row.error,)
    return "\n".join(clean(line) for line in (*lines, *(f"doubt: {doubt}" for doubt in row.doubts)))


def _counts(suite: ET.Element) -> dict[str, int]:
    found = {name: len(suite.findall(f"testcase/{kind}")) for kind, name in COUNTED.items()}
    return {"tests": len(suite.findall("testcase")), **found}


def _counts_as_text(suite: ET.Element) -> dict[str, str]:
    """The counts that Jenkins' junit-10.xsd allows around the suite: all but the skipped ones."""
    return {name: str(number) for name, number in _counts(suite).items() if name != "skipped"}


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"
