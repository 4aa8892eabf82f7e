# SPDX-License-Identifier: Apache-2.0
"""One row for each run, small enough to come back from another process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtproof.analysis import wording
from rtproof.analysis.cokernels import IN_BAND, core_beside
from rtproof.analysis.histogram_only import HistogramOnly
from rtproof.analysis.model import Analysis, Requirement, State, Verdict
from rtproof.analysis.phrases import duration, percent, quantity, sure, value
from rtproof.report.histogram_only import exceeding, largest, limit_lines

ERROR_CODE = 2
NO_LENGTH = "no length: a histogram has no time order"
WORST_FIRST = (ERROR_CODE, 3, 1, 4, 0)
"""Exit codes: what could not be read, INVALID, REFUTED, UNDECIDED, and what is well or was not asked."""


@dataclass(frozen=True)
class Claim:
    """One limit and its verdict. text: the claim; seen: what was counted; longer: how much more time it takes; reason:
    why the verdict is so. said: its sentences; of several limits the first has those about the run."""

    text: str
    state: State
    reason: str
    seen: str = ""
    longer: str = ""
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One run. state: None if it could not be read, then ``error`` says why."""

    name: str
    state: State | None
    claims: tuple[Claim, ...] = ()
    doubts: tuple[str, ...] = ()
    measured_ns: int | None = None
    error: str = ""

    @property
    def exit_code(self) -> int:
        return ERROR_CODE if self.state is None else self.state.exit_code

    @property
    def verdict(self) -> str:
        return "ERROR" if self.state is None else self.state.value


def exit_code(rows: Iterable[Row]) -> int:
    """That of the worst."""
    return min((row.exit_code for row in rows), key=WORST_FIRST.index, default=0)


def worst(rows: Sequence[Row]) -> str:
    """The verdict on all runs together; those without a limit are none of the proven ones."""
    found = [row.verdict for row in rows if row.exit_code == exit_code(rows)]
    if exit_code(rows) == ERROR_CODE:
        return f"ERROR, {len(found)} of {quantity(len(rows), 'run')} could not be read"
    unasked = found.count(State.NOT_ASKED.value)
    if 0 < unasked < len(found):
        return f"{State.PROVEN.value}, but for {quantity(unasked, 'run')} without a limit"
    return found[0] if found else State.NOT_ASKED.value


def unread(name: str, error: str) -> Row:
    return Row(name, None, error=error)


def of_run(name: str, analysis: Analysis) -> Row:
    """A run that was measured with time order."""
    verdicts = analysis.verdicts or (analysis.verdict,)
    mark = f", {IN_BAND}" if core_beside(analysis.record) else ""
    return Row(
        name,
        analysis.verdict.state,
        tuple(_claim(verdict, mark, first=number == 0) for number, verdict in enumerate(verdicts)),
        tuple(doubt.what for doubt in analysis.doubts),
        analysis.verdict.measured_ns,
    )


def _claim(verdict: Verdict, mark: str, *, first: bool) -> Claim:
    reason = ". ".join(verdict.reasons) or "no limit was given"
    of_the_run = () if first else wording.of_the_run(verdict.sentences)
    said = said_of([line for line in verdict.sentences if line not in of_the_run])
    if verdict.requirement is None:
        return Claim(f"no limit{mark}", verdict.state, reason, said=said)
    asked = verdict.requirement
    text = in_virtual_time(asked) if verdict.deterministic else _tested(verdict, asked)
    return Claim(f"{text}{mark}", verdict.state, reason, _seen(verdict, asked), _longer(verdict), said)


def _seen(verdict: Verdict, requirement: Requirement) -> str:
    """One episode may be all of the run, and what was decided may be of its first part only."""
    episodes = f"{quantity(len(verdict.episodes), 'episode')} in {duration(verdict.measured_ns)}"
    if wording.mostly_late(verdict):
        seconds = wording.late_seconds(verdict.late_seconds or 0, verdict.measured_ns)
        return f"exceeded in {seconds}: {episodes}"
    if wording.only_at_first(verdict):
        first = wording.decided_after(verdict, requirement)
        return f"{episodes}; decided by the first {first}, all of it would not be {verdict.state.value}"
    return episodes


def said_of(lines: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Labels and texts as lines."""
    return tuple(f"{label} {text}".strip() for label, text in lines)


def in_virtual_time(requirement: Requirement) -> str:
    """Of a run that has no confidence."""
    return f"above {value(requirement.limit_ns)} at most once per {duration(requirement.at_most_ns)}, virtual time"


def claim(requirement: Requirement) -> str:
    return f"{_without_confidence(requirement)}, {percent(requirement.confidence)}"


def _without_confidence(requirement: Requirement) -> str:
    at_most = duration(requirement.at_most_ns)
    return f"above {value(requirement.limit_ns)} at most once per {at_most}{wording.longest(requirement)}"


def _tested(verdict: Verdict, requirement: Requirement) -> str:
    """The claim at the confidence of its own test, which is higher where several limits share the error."""
    if not wording.shares(verdict, requirement):
        return claim(requirement)
    own, wanted = sure(wording.own_alpha(verdict, requirement)), percent(requirement.confidence)
    return f"{_without_confidence(requirement)}, {own} ({wanted} for all limits)"


def _longer(verdict: Verdict) -> str:
    if verdict.state is not State.UNDECIDED or not verdict.more_ns or not verdict.more_with_one_more_ns:
        return ""
    more, with_one = (duration(ns, up=True) for ns in (verdict.more_ns, verdict.more_with_one_more_ns))
    return f"{more} with no further episode, {with_one} with one more"


def of_histogram(name: str, said: HistogramOnly) -> Row:
    """A file without time order."""
    imported = said.imported
    about = tuple(largest(imported))
    claims = tuple(
        Claim(
            claim(one.requirement),
            one.state,
            one.reason,
            exceeding(one.above, one.requirement.limit_ns) if one.above else "",
            NO_LENGTH if one.state is State.UNDECIDED else "",
            said_of(
                [
                    ("VERDICT", f"{one.state.value} - {one.reason}"),
                    *limit_lines(one, imported.duration_ns),
                    *(about if number == 0 else ()),
                ]
            ),
        )
        for number, one in enumerate(said.judged)
    )
    why = imported.faults[0] if imported.faults else "no limit was given"
    return Row(
        name,
        said.state,
        claims or (Claim("no limit", said.state, why, said=said_of(about)),),
        (*said.doubts, *imported.faults, *imported.notes),
        imported.duration_ns,
    )
