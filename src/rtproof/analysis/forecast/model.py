# SPDX-License-Identifier: Apache-2.0
"""What a forecast says, as frozen data."""

from dataclasses import dataclass

from rtproof.analysis.forecast.stationarity import Stationarity

CODES = ("DATA", "FEW", "COARSE", "FIT", "TOP", "HEAVY", "WIDE", "DRIFT", "FAR", "EXTERNAL")
"""The ten reasons to refuse, in the order of docs/forecast.md."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Refusal:
    """A reason why there is no forecast: one of ``CODES`` and a sentence with its figures."""

    code: str
    message: str


@dataclass(frozen=True)
class Horizon:
    """How far to look, None: ten times the measured time. far: up to a hundred times it, with a warning."""

    ns: int | None = None
    far: bool = False
