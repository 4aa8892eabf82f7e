# SPDX-License-Identifier: Apache-2.0
"""The result of an audit, as frozen data."""

from dataclasses import dataclass
from enum import Enum

from rtproof.audit.check import Check, Severity


class Outcome(Enum):
    """What a check found. UNKNOWN: what it reads could not be read. CONFLICTING: what it reads contradicts itself."""

    FINDING = "finding"
    CONFLICTING = "conflicting evidence"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"
    GOOD = "good"


@dataclass(frozen=True)
class ReadValue:
    """What was read. value: the text, shortened; or in brackets why there is none."""

    path: str
    value: str


@dataclass(frozen=True)
class Judgement:
    """What one check found. sentence: what that rests on. severity: None for the severity of the check itself.

    Of an outcome that is no finding, the severity says how severe a finding would have been.
    """

    outcome: Outcome
    sentence: str
    read: tuple[ReadValue, ...]
    severity: Severity | None = None


@dataclass(frozen=True)
class CheckResult:
    """A check and its judgement. severity: for the user's purpose."""

    check: Check
    outcome: Outcome
    severity: Severity
    sentence: str
    read: tuple[ReadValue, ...]


@dataclass(frozen=True)
class Audit:
    """Every check of an audit, in the order of the subjects. taken: the machine and kernel that the facts are of.

    collected: whether the record has the facts of an audit at all; a record of an old agent has only some.
    """

    results: tuple[CheckResult, ...]
    purpose: str
    machine: str
    kernel: str
    realtime_ns: int
    collected: bool

    def of(self, outcome: Outcome) -> tuple[CheckResult, ...]:
        """The results with this outcome, the most severe first."""
        found = [result for result in self.results if result.outcome is outcome]
        return tuple(sorted(found, key=lambda result: result.severity.rank))
