# SPDX-License-Identifier: Apache-2.0
"""A run that is watched while it goes on: is every limit decided, and if not, how much longer?

The test may be looked at whenever one likes (analysis.sequential), so a run may end when it is decided. The watch is
fed with what the agent says; it has no clock, and counts only whole seconds of which all threads have told, with the
same episodes as the verdict has afterwards. So whatever it decides is what the record says too. Where the agent could
not keep a value, nothing can be proven any more, by either. Of several limits one may be PROVEN within the gap after an
exceedance: a further one makes a longer episode of the two, whose time speaks for no proof, so that it is open again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rtproof.analysis import sequential
from rtproof.analysis.episodes import joined, lengths_ns, starts_ns
from rtproof.analysis.model import Episode, Requirement, State
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import chance, duration, quantity, value
from rtproof.analysis.sequential import Decision, Known
from rtproof.units import format_duration

MOST_EPISODES = 8
"""How many episodes a run is given to be decided with, unless it is told how long it may last."""
UNDECIDED = Decision(State.UNDECIDED, None, 0)


@dataclass(frozen=True)
class Standing:
    """One limit so far. measured_ns: until when everything is known; inside_ns: how much of it lay within episodes."""

    requirement: Requirement
    alpha: float
    episodes: int
    measured_ns: int
    decision: Decision
    inside_ns: int = 0

    def more_ns(self, further: int) -> int:
        """Until it is PROVEN with so many further episodes."""
        needed = sequential.needed_ns(self.episodes + further, self.requirement.at_most_ns, self.alpha)
        return max(needed + self.inside_ns - self.measured_ns, 0)

    def chance(self, further: int) -> float:
        """Of being PROVEN by then, with so many episodes or fewer (0 or 1), if the past tells of the time to come."""
        outside = self.measured_ns - self.inside_ns
        if outside <= 0:
            return 0.0
        none, one = self.more_ns(0), self.more_ns(1)
        found = sequential.chance_of_none(self.episodes, outside, none)
        if further:
            found += sequential.chance_of_one(self.episodes, outside, none, one)
        return found


class Watch:
    """Knows for each limit how it stands. Threads are those that have told of themselves."""

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        self._of = [_OneLimit(each, (1 - each.confidence) / len(requirements)) for each in requirements]
        self._due_ns: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._all_threads = False
        self._measured_ns = 0

    def over(self, thread: int, limit_ns: int, second: int, worst_ns: int) -> None:
        """A thread was above a limit in a second, at most by worst_ns; told before the progress that covers it."""
        for one in self._of:
            if one.requirement.limit_ns == limit_ns:
                last = second + max(worst_ns - limit_ns, 0) // SECOND_NS
                one.pending.append(Episode(second, last, worst_ns, (thread,)))

    def progress(self, thread: int, due_ns: int, lost: int = 0) -> bool:
        """Everything of a thread that was due before due_ns is known; whether nothing is left to be decided.

        All threads are known when one tells for the second time.
        """
        self._all_threads = self._all_threads or thread in self._due_ns
        self._due_ns[thread], self._lost[thread] = due_ns, lost
        known_ns = min(self._due_ns.values()) // SECOND_NS * SECOND_NS
        if self._all_threads and known_ns > self._measured_ns:
            self._measured_ns = known_ns
            for one in self._of:
                one.look(known_ns, any(self._lost.values()))
        return self.decided

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Every limit, in the order given."""
        return tuple(
            Standing(
                one.requirement,
                one.alpha,
                len(one.known),
                self._measured_ns,
                one.decision,
                min(sum(lengths_ns(one.known)), self._measured_ns),
            )
            for one in self._of
        )

    @property
    def decided(self) -> bool:
        """Whether every limit is PROVEN, or one is REFUTED: then the verdict on the run can't change any more."""
        states = {one.decision.state for one in self._of}
        return State.REFUTED in states or states == {State.PROVEN}

    def lines(self) -> list[str]:
        """How each limit stands and how much longer it takes, the one that takes longest first."""
        open_first = sorted(self.standings, key=lambda one: (one.decision.at_ns is not None, -one.more_ns(0)))
        return [line(one, lost=any(self._lost.values())) for one in open_first]


class _OneLimit:
    """pending: told of, in seconds not all threads have reached. known: episodes before that."""

    def __init__(self, requirement: Requirement, alpha: float) -> None:
        self.requirement = requirement
        self.alpha = alpha
        self.pending: list[Episode] = []
        self.known: list[Episode] = []
        self.decision = UNDECIDED

    def look(self, known_ns: int, lost: bool) -> None:
        """Decide with everything before known_ns, all anew: what an episode began as may have become longer."""
        new = sorted((e for e in self.pending if e.first_second * SECOND_NS < known_ns), key=lambda e: e.first_second)
        if new:
            self.pending = [e for e in self.pending if e.first_second * SECOND_NS >= known_ns]
            self.known[-1:] = joined((*self.known[-1:], *new), self.requirement.gap_ns)
        known = Known(lengths_ns(self.known), not lost)
        self.decision = sequential.decide(
            starts_ns(self.known, 0), known_ns, self.requirement.at_most_ns, self.alpha, known
        )


def line(one: Standing, *, lost: bool = False) -> str:
    """One limit in less than a line of a terminal."""
    asked = f"{value(one.requirement.limit_ns)}, 1/{_once(one.requirement.at_most_ns)}"
    seen = quantity(one.episodes, "episode")
    if one.decision.at_ns is not None:
        return f"{asked}: {one.decision.state.value} at {duration(one.decision.at_ns, up=True)} ({seen})"
    if lost:
        return f"{asked}: {seen}; values were lost, so that it can't be PROVEN any more"
    none, after = (duration(one.more_ns(further), up=True) for further in (0, 1))
    if not one.measured_ns:
        return f"{asked}: PROVEN in {none} without an episode, in {after} with one"
    now, with_one = (chance(one.chance(further)) for further in (0, 1))
    return f"{asked}: {seen}; PROVEN in {none} ({now}), in {after} after 1 more ({with_one})"


def _once(at_most_ns: int) -> str:
    """As on the command line: h, 12h, min."""
    text = format_duration(at_most_ns)
    return text[1:] if text[0] == "1" and not text[1].isdigit() else text


def needed_ns(requirements: Sequence[Requirement], episodes: int) -> int:
    """How long a run must be until every limit is PROVEN, where each has seen so many episodes."""
    return max(
        sequential.needed_ns(episodes, each.at_most_ns, (1 - each.confidence) / len(requirements))
        for each in requirements
    )
