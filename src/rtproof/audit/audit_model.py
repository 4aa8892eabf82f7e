# SPDX-License-Identifier: Apache-2.0
"""The result of an audit, as frozen data."""

from dataclasses import dataclass

from rtproof.audit.check import Check, Outcome, Severity

__all__ = ["Audit", "CheckResult", "Judgement", "Outcome", "ReadValue"]

FOUND_CODE, NOT_DECIDED_CODE = 1, 4
"""Exit codes: the same as those of a verdict that is REFUTED or UNDECIDED."""


@dataclass(frozen=True)
class ReadValue:
    """What was read.

    path: the file, the kernel's option or the parameter. value: the text, shortened; or in brackets why there is none.
    """

    path: str
    value: str


@dataclass(frozen=True)
class Judgement:
    """What one check found. sentence: what that rests on. severity: None for the severity of the check itself.

    Of an outcome that is no finding, the severity says how severe a finding would have been. named: the interrupts,
    threads, devices or files that a finding is about, for the commands of the check's change.
    """

    outcome: Outcome
    sentence: str
    read: tuple[ReadValue, ...]
    severity: Severity | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """A check and its judgement.

    outcome: what it found; only ``good`` means that all was read and is good.
    severity: for the user's purpose; of an outcome that is no finding, how severe a finding would be.
    sentence: what the outcome rests on. read: what was read.
    named: as in a Judgement.
    """

    check: Check
    outcome: Outcome
    severity: Severity
    sentence: str
    read: tuple[ReadValue, ...]
    named: tuple[str, ...] = ()

    @property
    def contradicted(self) -> bool:
        """Whether the lab contradicts the advice."""
        return any(one.contradicts for one in self.check.measured)


@dataclass(frozen=True)
class Audit:
    """Every check of an audit.

    results: every check, in the order of the subjects. purpose: what the system is for. machine: what the facts are of.
    kernel: its release and version.
    realtime_ns: when the record began, on the machine's own clock.
    collected: whether the record has the facts of an audit at all; a record of an old agent has only some.
    notes: sentences on what the machine is, such as a guest of a host that the audit does not see.
    """

    results: tuple[CheckResult, ...]
    purpose: str
    machine: str
    kernel: str
    realtime_ns: int
    collected: bool
    notes: tuple[str, ...] = ()

    def of(self, outcome: Outcome) -> tuple[CheckResult, ...]:
        """The results with this outcome, the most severe first."""
        found = [result for result in self.results if result.outcome is outcome]
        return tuple(sorted(found, key=lambda result: result.severity.rank))

    @property
    def worst(self) -> CheckResult | None:
        """The most severe finding; None if there is none."""
        return next(iter(self.of(Outcome.FINDING)), None)

    def exit_code(self, fail_on: Severity) -> int:
        """1 for a finding at or above this severity, 4 if there is none but such a check is not decided, else 0."""
        severe = {result.outcome for result in self.results if result.severity.rank <= fail_on.rank}
        if Outcome.FINDING in severe:
            return FOUND_CODE
        return NOT_DECIDED_CODE if severe & {Outcome.UNKNOWN, Outcome.CONFLICTING} else 0
