# SPDX-License-Identifier: Apache-2.0
"""What is known of one series from one source, samples or slices, before it becomes a Summary. Parts add up."""

from collections.abc import Iterable
from dataclasses import dataclass

from rtproof.analysis import blockcounts, lag, persecond, tally, tops
from rtproof.analysis.blockcounts import BlockCounts
from rtproof.analysis.model import NO_LAG, Lag
from rtproof.analysis.persecond import NONE
from rtproof.analysis.tally import NOTHING, Tallied
from rtproof.record import Seconds, Top


@dataclass(frozen=True)
class Reach:
    """Due times of the first and the last activation that a source knows of, missed ones included."""

    first_due_ns: int
    last_due_ns: int


@dataclass(frozen=True)
class Part:
    """Numbers of some activations of one series. lost: those whose value the source says it could not keep."""

    observed: Tallied = NOTHING
    charged: Tallied = NOTHING
    lost: int = 0
    lag: Lag = NO_LAG
    seconds: Seconds = NONE
    top: Top = tops.NONE
    reach: Reach | None = None
    blocks: BlockCounts | None = None


def add_up(parts: Iterable[Part]) -> Part:
    """All parts of one series together."""
    some = list(parts) or [Part()]
    return Part(
        tally.add_up(part.observed for part in some),
        tally.add_up(part.charged for part in some),
        sum(part.lost for part in some),
        lag.merge(part.lag for part in some),
        persecond.merge(part.seconds for part in some),
        tops.merge(part.top for part in some),
        hull(part.reach for part in some),
        blockcounts.merge(part.blocks for part in some),
    )


def hull(reaches: Iterable[Reach | None]) -> Reach | None:
    """From the earliest first to the latest last."""
    known = [reach for reach in reaches if reach]
    if not known:
        return None
    return Reach(min(r.first_due_ns for r in known), max(r.last_due_ns for r in known))
