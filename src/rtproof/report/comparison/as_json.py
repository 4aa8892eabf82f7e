# SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON; docs/json-schema.md describes it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from typing import Any

from rtproof.analysis.comparison.figures import Reading, RunFigures
from rtproof.analysis.comparison.model import Comparison, Side
from rtproof.report.comparison.told import Told

SCHEMA = "rtproof.comparison"
ALONE = "rtproof.runs"
VERSION = 1


def encode(found: Comparison, told: Told) -> bytes:
    """UTF-8, indented by two."""
    plain = {
        "schema": SCHEMA,
        "version": VERSION,
        "command": told.command or None,
        "finding": found.finding,
        "sentences": [{"label": label, "text": text} for label, text in found.sentences],
        "unit": found.unit,
        "sides": [_side(side, what) for side, what in zip((found.a, found.b), told.what, strict=True)],
        "metrics": [_with(asdict(one), "runs_for", _runs_for(one.runs_for)) for one in found.effects],
        "impossible": [asdict(one) for one in found.impossible],
        "levels": list(found.levels),
        "shift": asdict(found.shift),
        "order": asdict(found.order),
        "differences": [asdict(one) for one in found.differences],
        "left_out": [asdict(one) for one in found.left_out],
        "not_read": list(told.complaints),
    }
    return _encoded(plain)


def encode_alone(runs: Sequence[RunFigures], told: Told) -> bytes:
    """Of runs of the same thing."""
    common = {"schema": ALONE, "version": VERSION, "command": told.command or None, "what": told.what[0]}
    return _encoded({**common, "runs": [run_json(run) for run in runs], "not_read": list(told.complaints)})


def _encoded(plain: dict[str, Any]) -> bytes:
    return json.dumps(_clean(plain), indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"


def _with(found: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    return {**found, key: value}


def _runs_for(pairs: tuple[tuple[float, int | None], ...]) -> list[dict[str, Any]]:
    return [{"ratio": ratio, "runs": runs} for ratio, runs in pairs]


def _side(side: Side, what: str) -> dict[str, Any]:
    return {
        "name": side.name,
        "what": what,
        "n": side.counts.total + side.overflow,
        "overflow": side.overflow,
        "runs": [run_json(run) for run in side.runs],
        "varying": [
            {"key": one.key, "texts": [{"text": text, "runs": runs} for text, runs in one.texts]}
            for one in side.varying
        ],
    }


def run_json(run: RunFigures) -> dict[str, Any]:
    """One run in figures; null where it does not carry one."""
    return {
        "name": run.name,
        "run_id": run.run_id or None,
        "n": run.n,
        "span_ns": run.span_ns,
        "missed": run.missed,
        "lost": run.lost,
        "largest": run.largest,
        "quantiles": {f"{100 * p:g}": _size(run.quantile(p)) for p in (0.5, 0.99, 0.999)},
        "second_maxima": _size(run.second_maxima),
        "facts": dict(run.facts),
    }


def _size(reading: Reading) -> float | None:
    return None if reading.ln is None else math.exp(reading.ln)


def _clean(found: Any) -> Any:
    """Names of states, lists, and null for what no JSON number is."""
    if isinstance(found, Enum):
        return found.value
    if isinstance(found, Mapping):
        return {key: _clean(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_clean(value) for value in found]
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found
