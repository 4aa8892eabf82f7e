# SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON, with what was typed and what could not be read; docs/json-schema.md describes it."""

import json
from collections.abc import Sequence
from typing import Any

from rtproof.analysis.comparison.as_json import VERSION, run_dict, to_dict
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.model import Comparison
from rtproof.report.comparison.told import Told

ALONE = "rtproof.runs"


def encode(found: Comparison, told: Told) -> bytes:
    """UTF-8, indented by two."""
    plain = to_dict(found)
    for side, what in zip(plain["sides"], told.what, strict=True):
        side["what"] = what
    return _encoded(plain, told)


def encode_alone(runs: Sequence[RunFigures], told: Told) -> bytes:
    """Of runs of the same thing."""
    plain = {"schema": ALONE, "version": VERSION, "what": told.what[0], "runs": [run_dict(run) for run in runs]}
    return _encoded(plain, told)


def _encoded(plain: dict[str, Any], told: Told) -> bytes:
    whole = {**plain, "command": told.command or None, "not_read": list(told.complaints)}
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False).encode(errors="replace") + b"\n"
