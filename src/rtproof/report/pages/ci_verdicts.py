# SPDX-License-Identifier: Apache-2.0
"""Verdicts on several runs: one row for each run, for continuous integration as text, Markdown and JUnit XML."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import TextWrapper

from rtproof.core.phrases import capitalised, duration, percent, quantity, sure
from rtproof.core.printable import clean
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Outcome, State, Verdict
from rtproof.judge.histogram_only import exceeding_text
from rtproof.judge.verdict import deciding_verdict
from rtproof.judge.worst_first import worst_first
from rtproof.report.blocks import Table
from rtproof.report.formats.markdown import block_markdown, words
from rtproof.report.number_format import US, PrintedUnit
from rtproof.report.text_table import lay_out, page_width
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.summary_model import Doubt

ERROR, ERROR_CODE = "ERROR", 2
WORST_FIRST = (ERROR_CODE, 3, 1, 4, 0)
"""Exit codes, worst first: unreadable, INVALID, EXCEEDED or REFUTED, UNDECIDED, HELD or PROVEN or no limit."""


@dataclass(frozen=True)
class RunRow:
    """One of several runs. It is small and survives pickling.

    verdicts: one for each limit; () if there is no result. doubts: about the run. failure: why there is no result, or
    why it is not whole. in_band: it has figures of Linux beside a co-kernel. cells, times_ns: further cells of a table,
    None for a time that is not known. unit: of the times in its own limit.
    """

    name: str
    verdicts: tuple[Verdict, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    failure: str = ""
    in_band: bool = False
    cells: tuple[str, ...] = ()
    times_ns: tuple[float | None, ...] = ()
    unit: PrintedUnit = US

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that decides; None if there is no result."""
        return deciding_verdict(self.verdicts) if self.verdicts else None

    @property
    def state(self) -> State | None:
        return None if self.verdict is None else self.verdict.state

    @property
    def word(self) -> str:
        return self.state.word if self.state else ERROR

    @property
    def exit_code(self) -> int:
        return self.state.exit_code if self.state else ERROR_CODE

    @property
    def measured_ns(self) -> int:
        return (None if self.verdict is None else self.verdict.measured_ns) or 0

    @property
    def exceeded(self) -> bool:
        """Whether a limit was exceeded, whatever the verdict is."""
        return any(verdict.exceeded for verdict in self.verdicts)


def run_row(name: str, analysis: Analysis) -> RunRow:
    """Return the row of a run, or of a histogram of another tool."""
    return RunRow(
        name, analysis.verdicts or (analysis.verdict,), worst_first(analysis.doubts), in_band=bool(analysis.core)
    )


def worst_exit_code(rows: Iterable[RunRow]) -> int:
    """Return the exit code of the worst row; 0 without rows."""
    return min((row.exit_code for row in rows), key=WORST_FIRST.index, default=0)


def worst_row(rows: Sequence[RunRow]) -> str:
    """Return the verdict on all runs together. Runs without a limit do not count as HELD or PROVEN."""
    found = [row.word for row in rows if row.exit_code == worst_exit_code(rows)]
    if worst_exit_code(rows) == ERROR_CODE:
        return f"ERROR, {len(found)} of {quantity(len(rows), 'run')} could not be read"
    unasked = found.count(State.NOT_ASKED.word)
    asked = [word for word in dict.fromkeys(found) if word != State.NOT_ASKED.word]
    if 0 < unasked < len(found):
        return f"{' and '.join(asked)}, but for {quantity(unasked, 'run')} without a limit"
    return " and ".join(asked) or State.NOT_ASKED.word


def _reason(verdict: Verdict) -> str:
    first, *others = verdict.reasons or (verdict_sentences.NO_LIMIT,)
    return ". ".join((first, *map(capitalised, others)))


def _said(row: RunRow, verdict: Verdict) -> list[str]:
    """The sentences of a verdict. With several limits, those about the run are with the first limit."""
    first = verdict is row.verdicts[0]
    of_the_run = () if first else verdict_sentences.sentences_of_run(verdict.sentences)
    return [f"{label} {text}".strip() for label, text in verdict.sentences if (label, text) not in of_the_run]


def _doubts(row: RunRow) -> list[str]:
    return [f"doubt: {doubt.what}" for doubt in row.doubts]


def claim_text(verdict: Verdict, *, in_band: bool = False) -> str:
    """Return the claim at the confidence of its own test, which is higher where several limits share the error.

    A run in virtual time has no confidence.
    """
    asked = verdict.requirement
    if asked is None:
        text = "no limit"
    elif verdict.deterministic:
        text = f"{verdict_sentences.requested_limit_sentence(asked)}, virtual time"
    elif verdict_sentences.shares_error(verdict, asked):
        own = f"{sure(verdict_sentences.own_alpha(verdict, asked))} ({percent(asked.confidence)} for all limits)"
        text = f"{verdict_sentences.requested_limit_sentence(asked)}, confidence {own}"
    else:
        text = verdict_sentences.limit_sentence(asked)
    return f"{text}, {IN_BAND}" if in_band else text


def _seen(verdict: Verdict) -> str:
    requirement = verdict.requirement
    if requirement is None:
        return ""
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


def ci_text(rows: Sequence[RunRow]) -> bytes:
    """Return the table, with the reasons of each verdict and the doubts about each run below it."""
    parts = [_title(rows), lay_out(_table(rows)), *_each_by_itself(rows)]
    wrapper = TextWrapper(page_width(), initial_indent="  ", subsequent_indent="    ")
    wrapper.break_on_hyphens = wrapper.break_long_words = False
    for row in rows:
        said = [] if row.verdicts else [f"{row.word}: {row.failure}"]
        said += [f"{verdict.state.word}: {_reason(verdict)}" for verdict in row.verdicts]
        said += _doubts(row)
        parts.append("\n".join([clean(row.name), *(wrapper.fill(clean(line)) for line in said)]))
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def ci_markdown(rows: Sequence[RunRow], stated: str = "") -> bytes:
    """Return Markdown for a pull request or a job's summary. stated: what the user says, unchecked."""
    parts = [f"## {words(_title(rows))}", block_markdown(_table(rows))]
    parts += [words(line) for line in _each_by_itself(rows)]
    parts += [f"> {words(stated)}"] if stated else []
    for row in rows:
        said = [line for verdict in row.verdicts for line in _said(row, verdict)] or [row.failure]
        listed = "\n".join(f"- {words(line)}" for line in (*said, *_doubts(row)))
        # GitHub needs an empty line after the summary.
        parts.append(f"<details><summary>{words(row.name)}: {row.word}</summary>\n\n{listed}\n\n</details>")
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def _title(rows: Sequence[RunRow]) -> str:
    differ = worst_exit_code(rows) != ERROR_CODE and len({row.exit_code for row in rows}) > 1
    worst = "the worst of " if differ else ""
    return f"rtproof: {worst_row(rows)} - {worst}{quantity(len(rows), 'run')}"


def _each_by_itself(rows: Sequence[RunRow]) -> list[str]:
    """Return a note for several verdicts: each may be wrong, so the chance that one of them is wrong is larger."""
    decided = sum(row.state in (State.PROVEN, State.REFUTED) for row in rows)
    told = (
        "Each confidence holds for one run by itself. "
        f"The chance that one or more of the {decided} verdicts PROVEN or REFUTED are wrong is larger."
    )
    return [told] if decided > 1 else []


def _table(rows: Sequence[RunRow]) -> Table:
    cells = [found for row in rows for found in _cells(row)]
    kept = [at for at, name in enumerate(HEADER) if name != LONGER or any(found[at] for found in cells)]
    header, *body = (tuple(found[at] for at in kept) for found in (HEADER, *cells))
    return Table("One line for each limit", header, tuple(body))


def _cells(row: RunRow) -> Iterator[tuple[str, ...]]:
    name, doubts = row.name, f"{len(row.doubts) or 'none'}"
    if not row.verdicts:
        yield name, row.word, "", row.failure, "", ""
    for verdict in row.verdicts:
        longer = verdict_sentences.more_time_of_verdict(verdict) if verdict.requirement else ""
        claim = claim_text(verdict, in_band=row.in_band)
        yield name, verdict.state.word, claim, _seen(verdict), longer, doubts
        name, doubts = "", ""


# The next functions write JUnit XML, which every CI service reads: one test suite, with a test case for each run and
# limit.
#
# HELD and PROVEN pass, EXCEEDED and REFUTED are failures, INVALID and an unreadable file are errors. UNDECIDED is a
# failure if the limit was exceeded. Else it is skipped with its reason: the run has not failed. With ``strict``,
# UNDECIDED and a run without a limit are failures.


KINDS = {
    Outcome.PASSED: "",
    Outcome.FAILED: "failure",
    Outcome.INVALID: "error",
    Outcome.SKIPPED: "skipped",
    Outcome.UNKNOWN: "skipped",
}


def ci_junit(rows: Sequence[RunRow], *, strict: bool = False) -> bytes:
    """Return a whole document in UTF-8."""
    suite = ET.Element("testsuite", name="rtproof judge")
    for row in rows:
        if not row.verdicts:
            outcome = ("error", row.word, f"{row.word}: {row.failure}")
            junit_case(suite, (row.name, "verdict"), outcome, [row.failure])
        for verdict in row.verdicts:
            kind, state, reason = KINDS[verdict.outcome], verdict.state.word, _reason(verdict)
            kind = "failure" if strict and kind == "skipped" else kind
            longer = verdict_sentences.more_time_of_verdict(verdict) if verdict.state is State.UNDECIDED else ""
            message = f"{state}: {reason}{f'; how much longer: {longer}' if longer else ''}"
            name, said = claim_text(verdict, in_band=row.in_band), [*_said(row, verdict), *_doubts(row)]
            junit_case(suite, (row.name, name), (kind, state, message), said, row.measured_ns)
    return junit_document(suite, sum(row.measured_ns for row in rows))


def junit_case(
    suite: ET.Element, names: tuple[str, str], outcome: tuple[str, str, str], lines: Iterable[str], ns: int = 0
) -> None:
    """Add a test case. names: of its class and itself. lines: its output.

    outcome: failure, error or skipped, or "" for one that passed; the type; the message.
    """
    classname, name = map(clean, names)
    case = ET.SubElement(suite, "testcase", classname=classname, name=name, time=f"{ns / 1e9:.3f}")
    kind, of_type, message = outcome
    body = "\n".join(map(clean, lines))
    if kind:
        element = ET.SubElement(case, kind, message=clean(message))
        if kind != "skipped":
            element.set("type", of_type)
            element.text = body
    ET.SubElement(case, "system-out").text = body


def junit_document(suite: ET.Element, ns: int = 0) -> bytes:
    """Return a whole document in UTF-8 with this suite, whose test cases are counted. ns: how long they took."""
    counts = {"tests": len(suite)}
    counts |= {name: len(suite.findall(f"testcase/{name.removesuffix('s')}")) for name in ("failures", "errors")}
    root = ET.Element("testsuites", {"name": "rtproof", **{name: str(number) for name, number in counts.items()}})
    for name, number in (counts | {"skipped": len(suite.findall("testcase/skipped"))}).items():
        suite.set(name, str(number))  # Jenkins' junit-10.xsd allows no count of the skipped ones around the suite.
    suite.set("time", f"{ns / 1e9:.3f}")
    root.append(suite)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"
