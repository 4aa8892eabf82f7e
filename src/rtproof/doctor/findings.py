# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds: the state of each thing that it looked at, and of each feature that needs those things."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


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


FEATURES = {
    "measure": "measure this machine with real-time threads",
    "explain": "say why an activation was late",
    "audit": "read the settings of this machine",
    "loads": "disturb this machine while it is measured",
    "boards": "measure boards over ssh or a console",
    "labgrid": "measure boards that labgrid shares",
    "lab": "boot kernels in virtual time",
    "several-cpus": "boot kernels with several processors in virtual time",
    "kernel-module": "measure with the kernel module",
    "peer-tools": "let another tool measure",
    "reports": "write reports",
    "plots": "draw plots as files",
    "exports": "write other formats",
    "fast-reading": "read large records quickly",
    "completion": "complete words in the shell",
}
"""The features in the order in which they are listed, and what each is for."""
DEFAULT_FEATURE = "measure"
"""The feature whose state is the exit code if the user names none."""
NOT_READY_CODE = 5
"""The exit code where an asked feature is not ready. No verdict has this number."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    name: of the thing. features: what needs it. meaning: one sentence on what the state means for the user. command:
    what brings it; "" if nothing is to be done or no command can. needed: without it the feature cannot be used at all;
    otherwise only a part of the feature is lost.
    """

    name: str
    features: tuple[str, ...]
    state: State
    meaning: str
    command: str = ""
    needed: bool = True


@dataclass(frozen=True)
class FeatureState:
    """A feature. lacking: the names of things that are missing, limited or unknown."""

    feature: str
    readiness: Readiness
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Examination:
    """All findings, in the order of the features, and the state of each feature that was asked for."""

    findings: tuple[Finding, ...]
    features: tuple[FeatureState, ...]
    asked: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 if each asked feature can be used, otherwise NOT_READY_CODE."""
        states = [each.readiness for each in self.features if each.feature in self.asked]
        return NOT_READY_CODE if Readiness.NOT_READY in states else 0


def feature_state(feature: str, findings: Iterable[Finding]) -> FeatureState:
    """The state of a feature, from the findings of all features."""
    own = [each for each in findings if feature in each.features]
    worse = [each for each in own if each.state is not State.OK]
    if any(each.needed and each.state is State.MISSING for each in worse):
        readiness = Readiness.NOT_READY
    else:
        readiness = Readiness.LIMITED if worse else Readiness.READY
    return FeatureState(feature, readiness, tuple(dict.fromkeys(each.name for each in worse)))
