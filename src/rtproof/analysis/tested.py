# SPDX-License-Identifier: Apache-2.0
"""The figures of one limit's test: how far both bets have come, what they bound, and how much longer it takes."""

from dataclasses import dataclass

from rtproof.analysis import sequential
from rtproof.analysis.sequential import Decision


@dataclass(frozen=True)
class Tested:
    """What ``model.Verdict`` tells of a limit that was tested; rates are per nanosecond. limits: tested in all.

    inside_ns: how long the episodes lasted, of measured_ns.
    """

    episodes: int
    measured_ns: int
    inside_ns: int
    limits: int
    alpha: float
    tau: float
    log_e_proven: float
    log_e_refuted: float
    decision: Decision
    low: float
    high: float
    high_fixed: float
    needed_ns: int
    needed_with_one_more_ns: int

    @property
    def more_ns(self) -> int:
        """To PROVEN if there is no further episode."""
        return max(self.needed_ns - self.measured_ns, 0)

    @property
    def more_with_one_more_ns(self) -> int:
        """To PROVEN if one more episode comes."""
        return max(self.needed_with_one_more_ns - self.measured_ns, 0)

    @property
    def chance(self) -> float:
        """Of being PROVEN after ``more_ns``; 0 if all of the run was one episode."""
        outside = self.measured_ns - self.inside_ns
        return sequential.chance_of_none(self.episodes, outside, self.more_ns) if outside > 0 else 0.0

    @property
    def chance_with_one_more(self) -> float:
        """Of being PROVEN after ``more_with_one_more_ns``: no episode for the shorter time, or one and no other."""
        outside, more = self.measured_ns - self.inside_ns, (self.more_ns, self.more_with_one_more_ns)
        return self.chance + sequential.chance_of_one(self.episodes, outside, *more) if outside > 0 else 0.0
