# SPDX-License-Identifier: Apache-2.0
"""A check as data: what it reads, what is good, how severe it is otherwise, why, who says so; and what it found.

``checks/SUBJECT.toml`` has a list ``check`` of these. docs/audit.md says how to add one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

from rtproof.audit.facts import Reading


class Severity(Enum):
    """How much a finding may cost, from the most."""

    FATAL = "fatal"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the most severe."""
        return list(Severity).index(self)


class Outcome(Enum):
    """What a check found. UNKNOWN: what it reads could not be read. CONFLICTING: what it reads contradicts itself."""

    FINDING = "finding"
    CONFLICTING = "conflicting evidence"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"
    GOOD = "good"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A term of rules that is no source: a part of a text, or several terms.

    of, find: what the pattern's first group fits in the readings of a term. line: in place of find, a pattern for the
    line of a log; the part is the whole line without its level. text: in place of what fits, with that for
    {}. every: all that fits, not only the first. shown: its path, "" for that of the reading. change: how much a number
    grew between the two moments, or the numbers of a row with the same first field. first: the first of several terms
    that is there. each: all readings of several terms. where: tests of fields, all of which hold of the readings.
    most, least: a field; the part is the reading with the largest or the smallest number there.

    A pattern with names for its groups makes a row of all that fits, with a field for each group.
    """

    of: str = ""
    find: str = ""
    line: str = ""
    text: str = ""
    every: bool = False
    shown: str = ""
    change: str = ""
    first: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    most: str = ""
    least: str = ""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a check's list of rules, of which the first that holds judges. ``rules.py`` has the words of tests.

    when: tests, all of which must hold. good, finding, conflicting, unknown, not_applicable: the sentence of this
    outcome; {TERM} in it is what was read. show: terms that the result shows; by default those of the tests. named: the
    term whose words the check's change needs. known: in place of an outcome, terms of which a hidden one makes the
    check UNKNOWN. there: terms that must be there, or else the check's if_absent counts. odd: tests that hold of a text
    that nobody understands, which makes the check UNKNOWN.
    """

    when: tuple[str, ...] = ()
    good: str | None = None
    finding: str | None = None
    conflicting: str | None = None
    unknown: str | None = None
    not_applicable: str | None = None
    severity: Severity | None = None
    show: tuple[str, ...] | None = None
    named: str = ""
    known: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to change it. Each is empty where it is not the way.

    now: a command for this machine. boot: words for the kernel's command line. build: options of the kernel's build.
    application: in the program or its service. firmware: in the firmware. risk: what may go wrong, in a sentence.

    {path} is the file that was read, {cpus} the CPUs to be isolated, {others} the rest, {mask} the rest as a mask.
    {irq}, {tid}, {pid}, {cpu}, {state}, {device}, {driver}, {node}, {timer}, {group}, {clock}: what the finding names.
    """

    now: str = ""
    boot: str = ""
    build: str = ""
    application: str = ""
    firmware: str = ""
    risk: str = ""


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An effect that somebody published.

    text: with its numbers and units. source: who published it.
    """

    text: str
    source: str


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What rtproof's lab measured of the advice.

    text: what it measured. command: the command that measures it again. contradicts: the advice did not help there, or
    made it worse.
    """

    text: str
    command: str
    contradicts: bool = False


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One check, by the keys of its TOML table.

    id: its name. subject: what it is about. title: its title. source: who says so. why: why it matters. advice: what to
    do about a finding. change: how to change it.
    effect: effects that were published. measured: what the lab measured. since: the first kernel that has it. until:
    the last kernel that has it.
    read: paths, patterns, ``config:OPTION`` or ``boot:PARAMETER``. rule: what judges, with sources that only the rules
    read (also) and parts of texts (part). function: MODULE.FUNCTION of ``functions/``, in place of rules.
    names, meaning: lists of names, and what single names mean, for the check's function.
    severest: of a finding, if its function can make one more severe than severity.
    if_absent: the outcome if the system has none of what the check reads. absent_means: the sentence of that.
    needs: names in ``conditions.py`` that must hold.
    explains: causes of lateness, as ``rtproof explain`` names them, that the finding would explain; CAUSE:PATTERN if
    only those whose name the pattern fits.
    told_by: ids of checks with the same cause: while one of them is a finding, this one is none.
    """

    id: str
    title: str
    read: tuple[str, ...]
    severity: Severity
    why: str
    source: tuple[str, ...]
    advice: str
    function: str = ""
    severest: Severity | None = None
    rule: tuple[Rule, ...] = ()
    also: tuple[str, ...] = ()
    part: dict[str, Part] = {}
    names: dict[str, tuple[str, ...]] = {}
    meaning: dict[str, str] = {}
    if_absent: Outcome = Outcome.UNKNOWN
    absent_means: str = ""
    needs: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    severity_for: dict[str, Severity] = {}
    change: Change = Change()
    effect: tuple[Effect, ...] = ()
    measured: tuple[Measured, ...] = ()
    explains: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()
    subject: str = ""


class CheckFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of ``checks/``. title: of the subject, for a page."""

    title: str
    check: tuple[Check, ...] = ()


# The result of an audit.

FOUND_CODE, NOT_DECIDED_CODE = 1, 4
"""Exit codes: the same as those of a verdict that is REFUTED or UNDECIDED."""


@dataclass(frozen=True)
class Judgement:
    """What one check found. sentence: what that rests on. severity: None for the severity of the check itself.

    Of an outcome that is no finding, the severity says how severe a finding would have been. named: the interrupts,
    threads, devices or files that a finding is about, for the commands of the check's change.
    """

    outcome: Outcome
    sentence: str
    read: Sequence[Reading]
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
    read: tuple[Reading, ...]
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
