# SPDX-License-Identifier: Apache-2.0
"""What the checks read in a record, in a small form, and what changed in it between records.

Only settings are compared: texts of one line that a machine does not change by itself. Of everything else, such as
counts and tables, only the outcome of the check is compared.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rtproof.audit import check_file, judgement, readings
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, Reading, State
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import is_collected

NOT_THERE = "not there"
MOST_SHOWN = 3
NO_SETTING = ("/proc/cmdline",)
"""Its words are settings, and each check of a word reads that word."""


class CheckSetup(NamedTuple):
    """What one record says of one check. settings: the text of each by its path; None for what is no setting."""

    outcome: Outcome
    severity: Severity
    settings: Mapping[str, str | None]


Setup = Mapping[str, CheckSetup]
"""What one record says of every check, by the id of the check."""


def setup_of(record: Record) -> Setup:
    """Return what a record says of all checks; {} for a record without the facts of an audit.

    A check is left out if the agent looked for nothing that it reads: another agent may have.
    """
    if not is_collected(record):
        return {}
    facts = Facts(record)
    found = {}
    for check in check_file.all_checks():
        read = [(source, reading) for source in check.read for reading in readings.read_source(facts, source)]
        if read and all(reading.state is State.NOT_COLLECTED for _, reading in read):
            continue
        judged = judgement.judge_check(facts, check)
        settings = {_name(source, reading): _setting_of(facts, check, source, reading) for source, reading in read}
        found[check.id] = CheckSetup(judged.outcome, judged.severity, settings)
    return found


def _setting_of(facts: Facts, check: Check, source: str, reading: Reading) -> str | None:
    """The text of a setting, or that there is none; None for a table, and for what changes by itself.

    Also None if it could not be read: unknown is not a change.
    """
    later = facts.read(reading.path, Moment.END)
    moved = reading.here and later.here and later.word != reading.word
    no_setting = check.volatile or reading.path in NO_SETTING
    if no_setting or moved or "\n" in reading.word or not (reading.here or reading.absent):
        return None
    if reading.absent and source.startswith("/"):
        return NOT_THERE
    return readings.read_value(reading).value or ("(given)" if source.startswith("boot:") else "(empty)")


def _name(source: str, reading: Reading) -> str:
    """The path, without the name of the file that holds the kernel's options or its command line."""
    kind, colon, name = source.partition(":")
    return {"config": f"CONFIG_{name}", "boot": name}.get(kind, reading.path) if colon else clean(reading.path)


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs; of several runs, each text with its number of runs.

    path: the file, the kernel's option or the parameter. a: what it is on side A, or before. b: what it is on side B,
    or after.
    """

    path: str
    a: str
    b: str


@dataclass(frozen=True)
class SetupChange:
    """A check whose settings or outcome differ between two sides.

    check: its id. title: its title. severity: how severe a finding is. outcome_a: in words, on side A, or before.
    outcome_b: on side B, or after.
    settings: the settings that differ; empty if only the outcome does.
    """

    check: str
    title: str
    severity: Severity
    outcome_a: str
    outcome_b: str
    settings: tuple[SettingChange, ...]

    @property
    def outcomes(self) -> str:
        """The outcome before and after, or the one that stayed."""
        a, b = self.outcome_a, self.outcome_b
        return a if a == b else f"{a} -> {b}"

    @property
    def rank(self) -> tuple[bool, int]:
        """The order of changes: the most severe first, and last those of checks that never apply."""
        never = self.outcome_a == self.outcome_b == Outcome.NOT_APPLICABLE.value
        return never, self.severity.rank

    @property
    def shown(self) -> str:
        """The settings that differ in a line. Those that changed alike, such as one of each CPU, are told once."""
        alike: dict[tuple[str, str], list[str]] = {}
        for one in self.settings:
            alike.setdefault((one.a, one.b), []).append(one.path)
        told = []
        for (a, b), (path, *others) in alike.items():
            like_it = f" and {len(others)} like it" if others else ""
            told.append(f"{path}{like_it}: {a} -> {b}")
        more = [f"{len(told) - MOST_SHOWN} more"] if len(told) > MOST_SHOWN else []
        return "; ".join([*told[:MOST_SHOWN], *more])


def setup_changes(a: Sequence[Setup], b: Sequence[Setup]) -> tuple[SetupChange, ...]:
    """Return the checks that differ between two sides, the most severe first.

    Runs whose records have no facts of an audit are left out; () where no run of a side has any.
    """
    sides = [[setup for setup in side if setup] for side in (a, b)]
    if not all(sides):
        return ()
    titles = {check.id: check.title for check in check_file.all_checks()}
    ids = [name for name in sides[0][0] if all(name in setup for side in sides for setup in side)]
    found = [_change(name, titles.get(name, ""), sides) for name in ids]
    return tuple(sorted((one for one in found if one), key=lambda one: one.rank))


def _change(check: str, title: str, sides: Sequence[Sequence[Setup]]) -> SetupChange | None:
    of_check = [[setup[check] for setup in side] for side in sides]
    outcomes = [Counter(outcome.value for outcome, _, _ in side) for side in of_check]
    settings = []
    for path in dict.fromkeys(path for side in of_check for _, _, known in side for path in known):
        texts = [[known.get(path, NOT_THERE) for _, _, known in side] for side in of_check]
        a, b = (Counter(text for text in side if text is not None) for side in texts)
        if None not in (*texts[0], *texts[1]) and set(a) != set(b):
            settings.append(SettingChange(path, texts_of_runs(a), texts_of_runs(b)))
    if set(outcomes[0]) == set(outcomes[1]) and not settings:
        return None
    severity = min((severity for side in of_check for _, severity, _ in side), key=lambda one: one.rank)
    return SetupChange(check, title, severity, texts_of_runs(outcomes[0]), texts_of_runs(outcomes[1]), tuple(settings))


def texts_of_runs(texts: Counter[str]) -> str:
    """The text that all runs have; else each, with how many runs have it."""
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{text} ({quantity(n, 'run')})" for text, n in texts.most_common())


@dataclass(frozen=True)
class SetupStep:
    """A change of the setup from one run of a series to the next.

    at: the first run with the new setup. change: the check that differs from the run before.
    """

    at: int
    change: SetupChange


def setup_steps(setups: Sequence[Setup], places: range) -> tuple[SetupStep, ...]:
    """Return what changed at each of these runs against the run before it, the most severe first."""
    found = [
        SetupStep(at, change)
        for at in places
        if 0 < at < len(setups)
        for change in setup_changes([setups[at - 1]], [setups[at]])
    ]
    return tuple(sorted(found, key=lambda one: (one.change.rank, one.at)))


def lacking_sentence(a: Sequence[Setup], b: Sequence[Setup], names: tuple[str, str] = ("A", "B")) -> str:
    """Return which side has no facts of an audit where the other has some; "" if both have some, or none."""
    known = [any(side) for side in (a, b)]
    if known[0] == known[1]:
        return ""
    without = names[0] if known[1] else names[1]
    return f"The setups cannot be compared: no record of {without} has the facts of an audit."
