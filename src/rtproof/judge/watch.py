# SPDX-License-Identifier: Apache-2.0
"""A run that is watched while it goes on: is every limit decided, and if not, how much longer?

The test may be looked at whenever one likes (analysis.claim), so a run may end when it is decided. The watch is fed
with what the agent says; it has no clock, and counts only whole seconds of which all threads have told. It knows late
times to the second, and takes them as the verdict takes such seconds afterwards: so it decides later than a record
with exact times, by seconds. One thing only a record tells: whether an episode that may have lasted up to two seconds
longer than D did, which refutes; the line of such a limit says so. Where the agent could not keep a value, nothing
can be proven any more, by either. PROVEN falls in quiet time only, so the same episode can't open it again.

A thread that does not run tells no value, only the due time that it waits for. From that time on it is late, as in the
record, which has an event of it; other threads' time goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtproof.core.phrases import chance, duration, quantity, value
from rtproof.core.units import format_duration
from rtproof.judge.analysis_model import NO_LONGEST, Requirement, State
from rtproof.judge.claim import Decision, EpisodeCourse, LateStretches, episode_course
from rtproof.judge.evidence import LimitTest, figures_of_limit
from rtproof.judge.planning import proven_after_ns
from rtproof.summary.per_second import SECOND_NS

STOOD_NS = SECOND_NS
"""A thread that has not run for so long stands. The agent waits as long before it says so in the record."""
MOST_EPISODES = 8
"""How many episodes a run is given to be decided with, unless it is told how long it may last: 19.9 T of quiet time."""
LEAD_NS = SECOND_NS
"""The record's time begins with the first due time, up to a second behind the origin. So proofs come so much later."""


@dataclass(frozen=True)
class Standing:
    """One limit so far."""

    requirement: Requirement
    tested: LimitTest

    @property
    def alpha(self) -> float:
        return self.tested.alpha

    @property
    def episodes(self) -> int:
        return self.tested.episodes

    @property
    def measured_ns(self) -> int:
        """Until when everything is known."""
        return self.tested.measured_ns

    @property
    def live_ns(self) -> int:
        """Quiet time."""
        return self.tested.live_ns

    @property
    def decision(self) -> Decision:
        return self.tested.decision

    def more_ns(self, further: int) -> int:
        """Until it is PROVEN with so many further episodes (0 or 1)."""
        return self.tested.more_with_one_more_ns if further else self.tested.more_ns

    def chance(self, further: int) -> float:
        """Of being PROVEN by then, with so many episodes or fewer (0 or 1), if the past tells of the time to come."""
        return self.tested.chance_with_one_more if further else self.tested.chance


class Watch:
    """Knows for each limit how it stands. Threads are those that have told of themselves.

    from_outside: due times come from something that may pause, so a thread that waits is not late.
    """

    def __init__(self, requirements: Sequence[Requirement], *, from_outside: bool = False) -> None:
        self._from_outside = from_outside
        self._of = [_OneLimit(each, len(requirements)) for each in requirements]
        self._due_ns: dict[int, int] = {}
        self._told_ns: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._all_threads = False
        self._measured_ns = 0

    def over(self, thread: int, limit_ns: int, second: int, worst_ns: int) -> None:
        """A thread was above a limit in a second, at most by worst_ns; told before the progress that covers it.

        The same second may be told again with a larger worst_ns; whichever thread it was makes no difference.
        """
        for one in self._of:
            if one.requirement.limit_ns == limit_ns:
                beyond = max(worst_ns - limit_ns, 0)
                one.beyond_ns[second] = max(beyond, one.beyond_ns.get(second, 0))

    def progress(self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0) -> bool:
        """Everything of a thread that was due before due_ns is known; whether nothing is left to be decided.

        time_ns: when that was told; the thread runs next for due_ns, and all that ran before the time told before
        is known now. All threads are known when one tells for the second time.
        """
        self._all_threads = self._all_threads or thread in self._due_ns
        stood_until_ns = self._told_ns.get(thread, 0) if due_ns > 0 and not self._from_outside else 0
        self._due_ns[thread], self._lost[thread], self._told_ns[thread] = due_ns, lost, time_ns
        if stood_until_ns - due_ns >= STOOD_NS:
            self._stands(thread, due_ns, stood_until_ns)
        known_ns = min(self._due_ns.values()) // SECOND_NS * SECOND_NS
        if self._all_threads and known_ns > self._measured_ns:
            self._measured_ns = known_ns
            for one in self._of:
                one.look(known_ns, lost=any(self._lost.values()))
        return self.decided

    def _stands(self, thread: int, since_ns: int, until_ns: int) -> None:
        """It waits since then: late for every limit that is shorter, and not yet known for the longest limit."""
        for one in self._of:
            if until_ns - since_ns > one.requirement.limit_ns:
                one.stood_ns[thread, since_ns] = until_ns - one.requirement.limit_ns
        longest_ns = max((one.requirement.limit_ns for one in self._of), default=0)
        self._due_ns[thread] = max(since_ns, until_ns - longest_ns)

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Every limit, in the order given."""
        return tuple(Standing(one.requirement, one.tested) for one in self._of)

    @property
    def decided(self) -> bool:
        """Whether every limit is PROVEN, or one is REFUTED: then the verdict on the run can't change any more."""
        states = {one.tested.decision.state for one in self._of}
        return State.REFUTED in states or states == {State.PROVEN}

    def lines(self) -> list[str]:
        """How each limit stands and how much longer it takes, the one that takes longest first."""
        open_first = sorted(self.standings, key=lambda one: (one.decision.at_ns is not None, -one.more_ns(0)))
        return [progress_line(one, lost=any(self._lost.values())) for one in open_first]


class _OneLimit:
    """beyond_ns: by second in which something was late, how much longer than to its end at most.

    stood_ns: until which due time a thread that stood was late, by thread and the first of these due times.
    """

    def __init__(self, requirement: Requirement, limits: int) -> None:
        self.requirement = requirement
        self.limits = limits
        self.beyond_ns: dict[int, int] = {}
        self.stood_ns: dict[tuple[int, int], int] = {}
        self.tested = figures_of_limit(requirement, self._course(0), limits)

    def look(self, known_ns: int, *, lost: bool) -> None:
        """Decide with everything before known_ns, all anew: what an episode began as may have become longer."""
        until_ns = 0 if lost else max(known_ns - LEAD_NS, 1)
        self.tested = figures_of_limit(self.requirement, self._course(known_ns), self.limits, until_ns)

    def _course(self, known_ns: int) -> EpisodeCourse:
        told = sorted(second for second in self.beyond_ns if second * SECOND_NS < known_ns)
        seconds = np.array(told, np.int64)
        beyond = np.array([self.beyond_ns[second] for second in told], np.int64)
        stood = LateStretches.exact([since for _, since in self.stood_ns], list(self.stood_ns.values()))
        late = LateStretches.together((LateStretches.of_seconds(seconds * SECOND_NS, beyond), stood))
        return episode_course(late, known_ns, self.requirement.gap_ns)


def progress_line(one: Standing, *, lost: bool = False) -> str:
    """One limit in less than a line of a terminal, and what goes on above it now."""
    asked = f"{value(one.requirement.limit_ns)}, 1/{_once(one.requirement.at_most_ns)}"
    seen = quantity(one.episodes, "episode")
    if one.decision.at_ns is not None:
        state = one.decision.state.value
        return f"{asked}: {state} at {duration(one.decision.at_ns, up=True)} ({seen}){_unless(one)}"
    now = _now(one)
    if why := _unprovable(one, lost):
        return f"{asked}: {seen}{why}{now}"
    none, after = (duration(one.more_ns(further), up=True) for further in (0, 1))
    if not one.measured_ns:
        return f"{asked}: PROVEN in {none} without an episode, in {after} with one"
    if now:
        return f"{asked}{now}; else PROVEN in {none}"
    by_then, with_one = (chance(one.chance(further)) for further in (0, 1))
    return f"{asked}: {seen}; PROVEN in {none} ({by_then}), in {after} after 1 more ({with_one})"


def _unprovable(one: Standing, lost: bool) -> str:
    """Why more time alone proves nothing; nothing where it may."""
    if lost:
        return "; values were lost, so that it can't be PROVEN any more"
    if one.decision.withheld:
        return ", few enough, but they come in bunches"
    vague = one.tested.vague_from_ns is not None
    return "; a gap below 1 s can't be told by the second, so the end of the run decides" if vague else ""


def _unless(one: Standing) -> str:
    """That exact times may refute what was proven with seconds."""
    longest_ns = one.requirement.longest_ns
    if one.decision.state is not State.PROVEN or one.tested.course.longest_at_most_ns <= longest_ns:
        return ""
    return f", unless the record shows an episode longer than {duration(longest_ns)}"


def _now(one: Standing) -> str:
    """That it is above the limit now, and how long until that refutes; nothing where it is not."""
    since = one.tested.course.open_since_ns
    if since is None or one.requirement.longest_ns >= NO_LONGEST:
        return ""
    lasted = max(one.measured_ns - since, 0)
    left = max(one.requirement.longest_ns - lasted, 0)
    limit = value(one.requirement.limit_ns)
    return f": above {limit} now, for {duration(lasted)}; REFUTED if it goes on for {duration(left, up=True)} more"


def _once(at_most_ns: int) -> str:
    """As on the command line: h, 12h, min."""
    text = format_duration(at_most_ns)
    return text[1:] if text[0] == "1" and not text[1].isdigit() else text


def still_needed_ns(requirements: Sequence[Requirement], episodes: int) -> int:
    """How long a run must be until every limit is PROVEN, where each has seen so many short episodes."""
    return max(proven_after_ns(episodes, each, (1 - each.confidence) / len(requirements)) for each in requirements)
