# SPDX-License-Identifier: Apache-2.0
"""The test of the claim "episodes above LIMIT come at most once per T, and none lasts longer than D".

Late times that are no further apart than the gap g are one episode. Time is quiet if nothing was late during the last
g. N is the number of episodes, and m the number of episodes that a bunch may bring on average.

* REFUTED by duration: one episode is seen to last longer than D. This is a fact and needs no share of alpha.
* REFUTED by rate: E-(N, t/T) >= 1/alpha when the N-th episode begins. t is all measured time up to then.
* PROVEN: E+(N, quiet time/(m T)) >= 1/alpha, and the episodes do not look bunched (``episode_spacing``).

REFUTED prevails even if it comes after PROVEN, because each of the bets E+ and E- keeps its own alpha.

Some late times are known only within bounds. Then each rule uses the bounds that work against it. PROVEN joins only
stretches that are surely within the gap. REFUTED by rate joins all that are possibly within the gap. A duration joins
only what is surely within the gap, and counts from the latest possible start to the earliest possible end.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtproof import statistics
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Int64Array
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS

# Late times: instants at which at least one activation has waited longer than the limit.
#
# Let an activation be due at s and run with a latency v above LIMIT. Then all due times from s to s + v - LIMIT are
# late, also those of the activations that were missed behind it. If only the second of an exceedance is known, both
# ends of its stretch have bounds that are a second apart.


@dataclass(frozen=True, eq=False)
class LateStretches:
    """Late stretches in any order: four arrays of equal length, in nanoseconds of measured time.

    A stretch begins in [begin_lo, begin_hi] and ends in [end_lo, end_hi]. The two bounds of an exact time are equal.
    """

    begin_lo: Int64Array
    begin_hi: Int64Array
    end_lo: Int64Array
    end_hi: Int64Array

    @classmethod
    def exact(cls, begin_ns: ArrayLike, end_ns: ArrayLike) -> "LateStretches":
        """Stretches whose first and last late times are known exactly."""
        begin, end = np.asarray(begin_ns, np.int64), np.asarray(end_ns, np.int64)
        return cls(begin, begin, end, end)

    @classmethod
    def of_seconds(cls, start_ns: ArrayLike, beyond_ns: ArrayLike = 0) -> "LateStretches":
        """One stretch for each second from start_ns. beyond_ns: by how much its largest latency exceeds the limit."""
        start = np.asarray(start_ns, np.int64)
        last = start + np.asarray(beyond_ns, np.int64)
        return cls(start, start + SECOND_NS, last, last + SECOND_NS)

    @classmethod
    def joined(cls, begin_ns: ArrayLike, last_ns: ArrayLike) -> "LateStretches":
        """Stretches of late times that are known only to lie between a first, which is exact, and a last one."""
        begin, last = np.asarray(begin_ns, np.int64), np.asarray(last_ns, np.int64)
        return cls(begin, begin, begin, last)

    @classmethod
    def together(cls, some: "Iterable[LateStretches]") -> "LateStretches":
        """The stretches of several objects in one object."""
        parts = list(some)
        if not parts:
            return NOTHING_LATE
        columns = zip(*((one.begin_lo, one.begin_hi, one.end_lo, one.end_hi) for one in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def since(self, start_ns: int) -> "LateStretches":
        """The same stretches in time that begins at start_ns. A time before that becomes 0."""
        begin_lo = np.maximum(self.begin_lo - start_ns, 0)
        later = (np.maximum(each - start_ns, begin_lo) for each in (self.begin_hi, self.end_lo, self.end_hi))
        return LateStretches(begin_lo, *later)

    @property
    def size(self) -> int:
        """The number of stretches."""
        return int(self.begin_lo.size)

    @property
    def is_exact(self) -> bool:
        """Whether every stretch has exact times."""
        return bool(np.all(self.begin_lo == self.begin_hi) and np.all(self.end_lo == self.end_hi))


_NO_TIMES = np.empty(0, np.int64)
NOTHING_LATE = LateStretches(_NO_TIMES, _NO_TIMES, _NO_TIMES, _NO_TIMES)


def merge_late_stretches(begin_ns: Int64Array, end_ns: Int64Array, gap_ns: int) -> tuple[Int64Array, Int64Array]:
    """Join exact stretches that are no further apart than the gap; return their starts and ends, ascending."""
    if not begin_ns.size:
        return begin_ns, end_ns
    order = np.argsort(begin_ns, kind="stable")
    begin, reach = begin_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate(([True], begin[1:] - reach[:-1] > gap_ns))
    last = np.append(np.flatnonzero(first)[1:] - 1, begin.size - 1)
    return begin[first], reach[last]


# Do episodes come in bunches? This weak test needs at least three episodes. It can only withhold PROVEN.
#
# n episodes divide the quiet time until now into n + 1 spacings; u is a spacing's share. If episodes come independently
# and at a steady rate, the shares are those of a stick broken at random. Moran's G = (n + 1) sum u^2 (Moran 1947) is
# large if a few spacings are long, L = -mean ln((n + 1) u) (Darling 1953) if many are short. Episodes are bunched if G
# or L is above its simulated 97.5 % point. Both together reject 4 to 5 % of the runs with independent episodes.


LEAST_EPISODES = 3
"""With fewer episodes nobody can see whether they come in bunches."""
_N = np.log([3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 100, 400])
_G = np.array([2.72, 2.85, 2.88, 2.92, 2.96, 2.91, 2.87, 2.83, 2.71, 2.53, 2.42, 2.21])
_L = np.array([1.361, 1.278, 1.233, 1.198, 1.129, 1.070, 0.985, 0.932, 0.875, 0.790, 0.735, 0.656])
_MOST = 400
_G_FOREVER, _L_FOREVER = 2.0, float(np.euler_gamma)
"""The values that G and L tend to as n grows. Their spread shrinks with the square root of n."""
_CLIP = 1e-9


def look_bunched(starts_ns: ArrayLike, now_ns: float) -> bool:
    """Whether the episodes look bunched; False with fewer than ``LEAST_EPISODES`` episodes.

    starts_ns: when each episode begins, ascending. All times are nanoseconds of quiet time. 97.5 % of runs with
    independent episodes stay below each critical value.
    """
    starts = np.asarray(starts_ns, np.float64)
    n = starts.size
    if n < LEAST_EPISODES or now_ns <= 0:
        return False
    shares = np.diff(np.concatenate(([0.0], starts, [max(now_ns, float(starts[-1]))])))
    shares /= shares.sum()
    moran = (n + 1) * float(shares @ shares)
    log_mean = -float(np.log((n + 1) * np.maximum(shares, _CLIP)).mean())
    return moran > _critical(n, _G, _G_FOREVER) or log_mean > _critical(n, _L, _L_FOREVER)


def _critical(n: int, table: NDArray[np.float64], forever: float) -> float:
    if n > _MOST:
        return forever + (float(table[-1]) - forever) * math.sqrt(_MOST / n)
    return float(np.interp(math.log(n), _N, table))


BUNCHED_WHEN_REFUTED = 4
"""From this number of episodes on, a refutation also says whether the episodes look bunched."""
_NEAR = 1e-6


class RefutingRule(Enum):
    """The rule that refuted the claim."""

    RATE = "rate"
    DURATION = "duration"


@dataclass(frozen=True)
class Decision:
    """The result of a limit's test over all measured time. All times are nanoseconds of measured time.

    at_ns, episodes, kind: when the state was reached, with how many episodes, and by which refuting rule. While the
    state is UNDECIDED, at_ns is None and episodes counts all. proven_at_ns, proven_with: when a proof was reached and
    with how many episodes, even if a later refutation prevailed.
    withheld: E+ has reached its threshold, but the episodes look bunched. bunched: whether the episodes before a
    refutation by rate look bunched; None with too few episodes.
    """

    state: State
    at_ns: int | None
    episodes: int
    kind: RefutingRule | None = None
    proven_at_ns: int | None = None
    proven_with: int | None = None
    withheld: bool = False
    bunched: bool | None = None

    @property
    def refuted_at_ns(self) -> int | None:
        """When the first refutation came."""
        return self.at_ns if self.state is State.REFUTED else None

    @property
    def first(self) -> State:
        """The state that was reached first."""
        return State.PROVEN if self.proven_at_ns is not None else self.state


@dataclass(frozen=True, eq=False)
class EpisodeCourse:
    """The episodes and the quiet time that late stretches make with one gap, in nanoseconds of measured time.

    quiet_begin_ns, quiet_end_ns: the quiet stretches. live_before_ns: the quiet time before each of them.
    episodes_before: the number of episodes that began before each of them. starts_live_ns: the quiet time before each
    episode. first_ns, last_ns: two times between which all late times of each episode surely lie. All these arrays
    count episodes as PROVEN does. refuting_begins_ns: the latest possible start of each episode, ascending, with
    episodes counted as REFUTED by rate does. late: the stretches from which all of this was computed.
    """

    gap_ns: int
    measured_ns: int
    quiet_begin_ns: Int64Array
    quiet_end_ns: Int64Array
    live_before_ns: Int64Array
    episodes_before: Int64Array
    starts_live_ns: Int64Array
    first_ns: Int64Array
    last_ns: Int64Array
    refuting_begins_ns: Int64Array
    late: LateStretches

    @property
    def episodes(self) -> int:
        """The number of episodes, as PROVEN counts them."""
        return int(self.first_ns.size)

    @cached_property
    def live_ns(self) -> int:
        """All quiet time in nanoseconds."""
        return int((self.quiet_end_ns - self.quiet_begin_ns).sum())

    @property
    def missing_quiet_ns(self) -> int:
        """How much of the gap after the last late time is still to come. No quiet time begins before its end."""
        if not self.late.size:
            return 0
        return max(int(self.late.end_hi.max()) + self.gap_ns - self.measured_ns, 0)

    @property
    def open_for_ns(self) -> int:
        """How long the last episode has surely lasted, if it may still go on; otherwise 0."""
        if not self.late.size or not self.missing_quiet_ns:
            return 0
        _, begin, reach = self._surely
        return max(int(reach[-1]) - int(begin[-1]), 0)

    @property
    def open_since_ns(self) -> int | None:
        """The latest possible start of the episode that may still go on; None if no episode may."""
        return int(self._surely[1][-1]) if self.late.size and self.missing_quiet_ns else None

    @cached_property
    def _surely(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Three arrays over all stretches in the order of their latest starts, for what is surely joined.

        They hold each stretch's latest start, the latest start of its episode, and the last surely late time so far.
        """
        order = np.argsort(self.late.begin_hi, kind="stable")
        begin, reach, first = _joined(self.late.begin_hi[order], self.late.end_lo[order], self.gap_ns)
        return begin, begin[first][np.cumsum(first) - 1], reach

    def too_long_at(self, longest_ns: int) -> int | None:
        """The instant at which an episode was first seen to last longer than longest_ns; None if none was."""
        if not self.late.size:
            return None
        begin, episode_begin, reach = self._surely
        over = np.flatnonzero(reach - episode_begin > longest_ns)
        if not over.size:
            return None
        return int(np.maximum(begin[over], episode_begin[over] + longest_ns).min())

    @property
    def longest_ns(self) -> int:
        """How long the longest episode surely lasted."""
        if not self.late.size:
            return 0
        _, episode_begin, reach = self._surely
        return max(int((reach - episode_begin).max()), 0)

    @property
    def longest_at_most_ns(self) -> int:
        """How long the longest episode may have lasted, by the outer bounds of its times."""
        return int((self.last_ns - self.first_ns).max()) if self.episodes else 0


def episode_course(late: LateStretches, measured_ns: int, gap_ns: int, *, quiet_from_ns: int = 0) -> EpisodeCourse:
    """Join late stretches to episodes and compute the quiet time of a measurement of this length.

    quiet_from_ns: no time before this counts as quiet. The cost is a few sorts of the stretches.
    """
    if not late.size:
        quiet = np.array([[min(quiet_from_ns, measured_ns)], [measured_ns]], np.int64)
        none = np.empty(0, np.int64)
        zero = np.zeros(1, np.int64)
        return EpisodeCourse(gap_ns, measured_ns, quiet[0], quiet[1], zero, zero, none, none, none, none, late)
    order = np.argsort(late.begin_lo, kind="stable")
    begin, cover = late.begin_lo[order], np.maximum.accumulate(late.end_hi[order] + gap_ns)
    first = np.concatenate(([True], begin[1:] > cover[:-1]))
    loud_begin = begin[first]
    loud_end = cover[np.append(np.flatnonzero(first)[1:] - 1, begin.size - 1)]
    quiet_begin = np.minimum(np.maximum(np.concatenate(([0], loud_end)), quiet_from_ns), measured_ns)
    quiet_end = np.minimum(np.append(loud_begin, measured_ns), measured_ns)
    quiet_end = np.maximum(quiet_end, quiet_begin)
    live_before = np.concatenate(([0], np.cumsum(quiet_end - quiet_begin)[:-1]))

    order = np.argsort(late.begin_hi, kind="stable")
    _, _, starts = _joined(late.begin_hi[order], late.end_lo[order], gap_ns)
    places = np.flatnonzero(starts)
    first_ns = np.minimum.reduceat(late.begin_lo[order], places)
    last_ns = np.maximum.reduceat(late.end_hi[order], places)
    loud = np.searchsorted(loud_begin, first_ns, side="right") - 1
    sort = np.argsort(loud, kind="stable")
    loud, first_ns, last_ns = loud[sort], first_ns[sort], last_ns[sort]
    episodes_before = np.searchsorted(loud, np.arange(loud_begin.size + 1), side="left")

    order = np.argsort(late.begin_lo, kind="stable")
    _, _, starts = _joined(late.begin_lo[order], late.end_hi[order], gap_ns)
    refuting = np.minimum.reduceat(late.begin_hi[order], np.flatnonzero(starts))
    return EpisodeCourse(
        gap_ns,
        measured_ns,
        quiet_begin,
        quiet_end,
        live_before,
        episodes_before,
        live_before[loud] + (quiet_end - quiet_begin)[loud],
        first_ns,
        last_ns,
        np.sort(refuting),
        late,
    )


def _joined(begin: Int64Array, end: Int64Array, gap_ns: int) -> tuple[Int64Array, Int64Array, NDArray[np.bool_]]:
    """For stretches in the order of their starts: the start, the largest end so far, and which begin an episode."""
    reach = np.maximum.accumulate(end)
    return begin, reach, np.concatenate(([True], begin[1:] - reach[:-1] > gap_ns))


def decide(
    requirement: Requirement, late: LateStretches, measured_ns: int, alpha: float, provable_until_ns: int | None = None
) -> Decision:
    """Judge one limit, as ``decide_course``. alpha: this limit's share of the probability of error."""
    return decide_course(requirement, episode_course(late, measured_ns, requirement.gap_ns), alpha, provable_until_ns)


def decide_course(
    requirement: Requirement, found: EpisodeCourse, alpha: float, provable_until_ns: int | None = None
) -> Decision:
    """Judge one limit as ``decide`` does, from a course that is known already."""
    until = provable_until(found, provable_until_ns)
    proven, withheld = _proven(requirement, found, alpha, until)
    by_rate = _refuted_by_rate(requirement, found, alpha)
    by_duration = found.too_long_at(requirement.longest_ns)
    refuted = [each for each in (by_rate[0] if by_rate else None, by_duration) if each is not None]
    if not refuted:
        if proven:
            return Decision(State.PROVEN, proven[0], proven[1], None, *proven)
        return Decision(State.UNDECIDED, None, found.episodes, withheld=withheld)
    at_ns = min(refuted)
    kind = RefutingRule.RATE if by_rate and by_rate[0] == at_ns else RefutingRule.DURATION
    before = proven if proven and proven[0] < at_ns else None
    episodes, flagged = int(np.searchsorted(found.refuting_begins_ns, at_ns, side="right")), None
    if by_rate and kind is RefutingRule.RATE:
        episodes = by_rate[1]
        if episodes >= BUNCHED_WHEN_REFUTED:  # Of the episodes before the one that refuted, in quiet time.
            quiet_ns = np.minimum(found.quiet_end_ns, at_ns) - found.quiet_begin_ns
            starts_ns = found.starts_live_ns[found.first_ns < at_ns][: episodes - 1]
            flagged = look_bunched(starts_ns, int(np.maximum(quiet_ns, 0).sum()))
    before_ns, before_with = before or (None, None)
    return Decision(State.REFUTED, at_ns, episodes, kind, before_ns, before_with, bunched=flagged)


def provable_until(found: EpisodeCourse, told_ns: int | None) -> int:
    """The last instant at which a proof may come. told_ns: from then on values were lost; None if none were.

    With a gap below one second, a second may hold several episodes, and nobody can count them. So no proof comes after
    the first late time that is known only to the second, or in a stretch.
    """
    until = found.measured_ns if told_ns is None else min(told_ns, found.measured_ns)
    if found.gap_ns >= SECOND_NS or found.late.is_exact:
        return until
    late = found.late
    vague = late.begin_lo[(late.begin_lo != late.begin_hi) | (late.end_lo != late.end_hi)]
    return min(until, int(vague.min())) if vague.size else until


def _proven(
    requirement: Requirement, found: EpisodeCourse, alpha: float, until_ns: int
) -> tuple[tuple[int, int] | None, bool]:
    """When a proof came and with how many episodes, or None; and whether a proof is withheld at the end."""
    scale = requirement.bunches * requirement.at_most_ns
    live_end = found.live_before_ns + np.maximum(np.minimum(found.quiet_end_ns, until_ns) - found.quiet_begin_ns, 0)
    at = np.flatnonzero((found.quiet_begin_ns <= until_ns) & _near(found.episodes_before, live_end / scale, alpha, 1))
    withheld = False
    for place in at.tolist():
        n, begun, now = int(found.episodes_before[place]), int(found.live_before_ns[place]), int(live_end[place])
        if statistics.log_e_proven(n, now / scale) < -math.log(alpha) - _NEAR:
            continue
        needed = math.ceil(statistics.tau_needed(n, alpha) * scale)
        if needed > now:
            continue
        starts = found.starts_live_ns[:n]
        for look in (needed, now) if needed > begun or not n else (now,):
            if not look_bunched(starts, look):
                return (int(found.quiet_begin_ns[place]) + look - begun, n), False
        withheld = place == found.quiet_begin_ns.size - 1
    return None, withheld


def _refuted_by_rate(requirement: Requirement, found: EpisodeCourse, alpha: float) -> tuple[int, int] | None:
    """When the rate refuted the claim and with how many episodes; None if it never did."""
    begins = found.refuting_begins_ns
    counts = np.arange(1, begins.size + 1)
    near = _near(counts, begins / requirement.at_most_ns, alpha, -1)
    for place in np.flatnonzero(near).tolist():
        count, begun = place + 1, int(begins[place])
        if statistics.log_e_refuted(count, begun / requirement.at_most_ns) >= -math.log(alpha):
            return begun, count
    return None


def _near(episodes: Int64Array, tau: NDArray[np.float64], alpha: float, side: int) -> NDArray[np.bool_]:
    """Where the best of all bets, b = N / tau, has won on this side: 1 for E+, -1 for E-.

    E+ and E- mix many bets and win less than the best one. So only these places need E+ or E-, which saves most work.
    """
    n = episodes.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = tau - n + np.where(n > 0, n * np.log(n / tau), 0.0)
        won = (best >= -math.log(alpha) - _NEAR) & (side * (tau - n) > 0)
    if side > 0:
        return won
    return won | ((tau <= 0) & (n > 0))
