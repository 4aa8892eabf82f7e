# SPDX-License-Identifier: Apache-2.0
"""The published keys of ``rtproof doctor --json``. docs/json-schema.md is made of them."""

import json

from rtproof.doctor.findings import Examination, FeatureState, Finding
from rtproof.schema.encoder import Key, Shape, document, encode

DOCTOR_SCHEMA, DOCTOR_VERSION = "rtproof.doctor", 1

FINDING = Shape("thing that was looked at", Finding) | {
    "name": Key("of the thing"),
    "features": Key("the features that need it"),
    "state": Key("`ok`, `limited`, `missing` or `cannot tell`"),
    "needed": Key("whether a feature cannot be used at all without it"),
    "meaning": Key("one sentence on what the state means"),
    "command": Key("what brings it, for this system and user; `null` if no command can", or_null=True),
}
FEATURE = Shape("feature", FeatureState) | {
    "feature": Key("its name"),
    "readiness": Key("`ready`, `limited` (a part of it is lost, or nobody can tell) or `not ready`"),
    "lacking": Key("the names of the things that are not ok"),
}
DOCTOR = Shape("examination", Examination) | {
    **document(DOCTOR_SCHEMA, DOCTOR_VERSION),
    "asked": Key("the features that decide about the exit code"),
    "exit_code": Key("of `rtproof doctor`: 0, or 5 if an asked feature is not ready"),
    "features": Key("each feature that was looked at", each=FEATURE),
    "things": Key("each thing that was looked at", "findings", each=FINDING),
}


def doctor_json(found: Examination) -> str:
    """Return an examination as JSON."""
    return json.dumps(encode(found, DOCTOR), indent=2)
