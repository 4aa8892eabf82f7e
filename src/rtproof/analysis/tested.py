# SPDX-License-Identifier: Apache-2.0
"""The figures of one limit's test: how far both bets have come, what they bound, and how much longer it takes."""

import math
from dataclasses import dataclass

from rtproof.analysis import claim, sequential
from rtproof.analysis.bounds import mean_upper
from rtproof.analysis.bunches import Spacing
from rtproof.analysis.claim import Course, Decision
from rtproof.analysis.model import NO_LONGEST, Requirement


@dataclass(frozen=True)
class Tested:
    """What is known of a limit that was tested. limits: tested in all. provable: no value was lost.

    The course holds the episodes and the quiet time; rates are per nanosecond.
    """

    requirement: Requirement
    course: Course
    decision: Decision
    limits: int
    alpha: float
    provable: bool = True

    @property
    def episodes(self) -> int:
        """As a proof counts them."""
        return self.course.episodes

    @property
    def episodes_refuting(self) -> int:
        """As a refutation counts them: fewer where only seconds are known."""
        return int(self.course.refuting_begins_ns.size)

    @property
    def vague_from_ns(self) -> int | None:
        """Since when late times are known to the second only, where the gap is shorter; nothing is PROVEN later."""
        until = claim.provable_until(self.course, None)
        return until if until < self.measured_ns else None

    @property
    def measured_ns(self) -> int:
        return self.course.measured_ns

    @property
    def live_ns(self) -> int:
        """Quiet time."""
        return self.course.live_ns

    @property
    def tau(self) -> float:
        return self.measured_ns / self.requirement.at_most_ns

    @property
    def log_e_proven(self) -> float:
        scale = self.requirement.bunches * self.requirement.at_most_ns
        return sequential.log_e_proven(self.episodes, self.live_ns / scale)

    @property
    def log_e_refuted(self) -> float:
        return sequential.log_e_refuted(self.episodes_refuting, self.tau)

    @property
    def low(self) -> float:
        """Lower limit of the rate, of all measured time."""
        return sequential.rate_lower(self.episodes_refuting, self.measured_ns, self.alpha)

    @property
    def high(self) -> float:
        """Upper limit of the rate, of quiet time; infinite without any, or where not provable."""
        if not self.provable:
            return math.inf
        return self.requirement.bunches * sequential.rate_upper(self.episodes, self.live_ns, self.alpha)

    @property
    def high_fixed(self) -> float:
        """The same, had the length been fixed beforehand."""
        if not self.provable or not self.live_ns:
            return math.inf
        return self.requirement.bunches * mean_upper(self.episodes, 1 - self.alpha) / self.live_ns

    @property
    def bunches_bound(self) -> float:
        """PROVEN holds if episodes come in bunches of up to so many on average."""
        needed = sequential.tau_needed(self.episodes, self.alpha) * self.requirement.at_most_ns
        return self.live_ns / needed

    @property
    def spacing(self) -> Spacing | None:
        """The bunch test at the end."""
        return claim.spacing_at_end(self.course)

    @property
    def refuted_at_latest_ns(self) -> int | None:
        """Measured time at which the episode that may go on is REFUTED if it does; None if none is open."""
        since = self.course.open_since_ns
        if since is None or self.requirement.longest_ns >= NO_LONGEST:
            return None
        return since + self.requirement.longest_ns

    @property
    def more_ns(self) -> int:
        """To PROVEN if there is no further episode."""
        lacking = max(self._live_needed_ns(self.episodes) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns if lacking else 0

    @property
    def more_with_one_more_ns(self) -> int:
        """To PROVEN if one more episode comes, a short one; the gap behind it is not quiet."""
        lacking = max(self._live_needed_ns(self.episodes + 1) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns + self.requirement.gap_ns if lacking else 0

    @property
    def needed_ns(self) -> int:
        """Measured time in all to PROVEN if there is no further episode."""
        return self.measured_ns + self.more_ns if self.more_ns else self._decided_or_measured()

    @property
    def needed_with_one_more_ns(self) -> int:
        return self.measured_ns + self.more_with_one_more_ns

    @property
    def chance(self) -> float:
        """Of being PROVEN after ``more_ns``; 0 without quiet time."""
        return sequential.chance_of_none(self.episodes, self.live_ns, self.more_ns) if self.live_ns else 0.0

    @property
    def chance_with_one_more(self) -> float:
        """Of being PROVEN after ``more_with_one_more_ns``: no episode for the shorter time, or one and no other."""
        if not self.live_ns:
            return 0.0
        more = self.more_ns, self.more_with_one_more_ns
        return self.chance + sequential.chance_of_one(self.episodes, self.live_ns, *more)

    def _live_needed_ns(self, episodes: int) -> int:
        scale = self.requirement.bunches * self.requirement.at_most_ns
        return math.ceil(sequential.tau_needed(episodes, self.alpha) * scale)

    def _decided_or_measured(self) -> int:
        proven = self.decision.proven_at_ns
        return self.measured_ns if proven is None else proven


def limit_tested(requirement: Requirement, course: Course, limits: int, provable_until_ns: int | None = None) -> Tested:
    """All figures of a limit's test.

    provable_until_ns: nothing is PROVEN later, as values were lost, which may have been episodes; 0: nothing is at all.
    """
    alpha = (1 - requirement.confidence) / limits
    decision = claim.decide_course(requirement, course, alpha, provable_until_ns)
    known = claim.provable_until(course, None) == course.measured_ns
    return Tested(requirement, course, decision, limits, alpha, known and provable_until_ns != 0)
