# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds: the state of each thing, and of each feature that needs it; as text and as JSON."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial

from rtproof.core.printable import clean
from rtproof.schema.encoder import Scope, by_model, document, encode, table

FEATURES = (
    *("measure", "explain", "audit", "loads", "boards", "labgrid", "lab", "several-cpus", "kernel-module", "reports"),
    *("plots", "exports"),
)
"""In the order in which they are listed. docs/how-to/doctor.md says what each is for."""
DEFAULT_FEATURE = "measure"
"""The feature whose state is the exit code if the user names none."""
NOT_READY_CODE = 5
"""The exit code where an asked feature is not ready. No verdict has this number."""


class State(Enum):
    """The state of one thing on this machine."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"
    CANNOT_TELL = "cannot tell"


class Readiness(Enum):
    """Whether a feature can be used on this machine."""

    READY = "ready"
    LIMITED = "limited"
    NOT_READY = "not ready"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. The table of checks fills in the name and the features that a check left empty.

    state: ``ok``, ``limited``, ``missing`` or ``cannot tell``. meaning: one sentence on what the state means for the
    user. command: what brings the thing; empty if nothing is to be done or no command can. needed: without it the
    feature cannot be used at all; otherwise only a part of the feature is lost. name: of the thing. features: those
    that need it.
    """

    state: State
    meaning: str
    command: str = ""
    needed: bool = True
    name: str = ""
    features: tuple[str, ...] = ()


ok = partial(Finding, State.OK)
limited = partial(Finding, State.LIMITED, needed=False)
missing = partial(Finding, State.MISSING)


@dataclass(frozen=True)
class FeatureState:
    """A feature.

    feature: its name. readiness: ``ready``, ``limited`` (a part of it is lost or unknown) or ``not ready``.
    lacking: the names of things that are missing, limited or unknown.
    """

    feature: str
    readiness: Readiness
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Examination:
    """What was found.

    findings: each thing that was looked at, in the order of the features. features: the state of each feature that was
    looked at. asked: the features that decide about the exit code.
    """

    findings: tuple[Finding, ...]
    features: tuple[FeatureState, ...]
    asked: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Of ``rtproof doctor``: 0, or 5 if an asked feature is not ready."""
        states = [each.readiness for each in self.features if each.feature in self.asked]
        return NOT_READY_CODE if Readiness.NOT_READY in states else 0


def feature_state(feature: str, findings: Iterable[Finding]) -> FeatureState:
    """The state of a feature, from the findings of all features."""
    worse = [each for each in findings if feature in each.features and each.state is not State.OK]
    if any(each.needed and each.state is State.MISSING for each in worse):
        readiness = Readiness.NOT_READY
    else:
        readiness = Readiness.LIMITED if worse else Readiness.READY
    return FeatureState(feature, readiness, tuple(dict.fromkeys(each.name for each in worse)))


WIDTH = 100
INDENT = "    "


def examination_text(found: Examination, verbose: bool) -> str:
    """The features, and what is not ok with its command; with ``verbose`` everything that was looked at."""
    names = max(len(each.feature) for each in found.features)
    states = max(len(each.value) for each in Readiness)
    lines: list[str] = []
    for each in found.features:
        lacking = f"see {', '.join(each.lacking)}" if each.lacking else ""
        line = f"{each.feature:{names}}  {each.readiness.value:{states}}  {lacking}"
        lines += _wrapped(line, " " * (names + states + 4))
    worse = (State.MISSING, State.LIMITED, State.CANNOT_TELL)
    wrong = [line for state in worse for line in _things(found, state)] or ["Nothing is missing."]
    good = ["", *_things(found, State.OK)] if verbose else []
    return "\n".join([*lines, "", *wrong, *good])


def _things(found: Examination, state: State) -> Iterator[str]:
    for each in found.findings:
        if each.state is state:
            yield from _wrapped(f"{state.value}: {each.name}: {each.meaning}", INDENT)
            if each.command:
                yield f"{INDENT}{clean(each.command)}"


def _wrapped(line: str, others: str) -> list[str]:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout and sys.stdout.isatty() else WIDTH
    width = min(max(columns, 40), WIDTH)
    return textwrap.wrap(clean(line), width, subsequent_indent=others, break_on_hyphens=False)


TABLES = by_model(
    table(Finding, "name features state needed meaning command?"), table(FeatureState, "feature readiness lacking")
)
DOCTOR = table(Examination, "schema version asked exit_code features things=findings", **document("rtproof.doctor", 1))
"""The published keys of ``rtproof doctor --json``. docs/json-schema.md is made of them."""


def doctor_json(found: Examination) -> str:
    """Return an examination as JSON."""
    return json.dumps(encode(found, DOCTOR, Scope(tables=TABLES)), indent=2)
