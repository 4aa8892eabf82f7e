# SPDX-License-Identifier: Apache-2.0
"""Watch a run while it goes on: is every limit decided, and if not, how much more time does it need?

The test holds at any stopping time (``claim``), so a run may end as soon as it is decided. The watch reads what the
agent reports and has no clock. It counts only whole seconds for which every thread has reported. The agent joins late
times that are less than ``TOLD_APART_NS`` apart. So the watch may decide later than the record, and only the record
shows whether an episode lasted longer than D by less than two seconds. A thread that does not run is late from the due
time on for which it waits. After a lost value nothing is proven.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtproof.core.phrases import duration, how_often, limit_value, quantity, value
from rtproof.core.units import format_duration
from rtproof.judge.analysis_model import State
from rtproof.judge.claim import EpisodeCourse, LateStretches, episode_course, merge_late_stretches
from rtproof.judge.evidence import LimitTest, figures_of_limit
from rtproof.judge.planning import held_after_ns, proven_after_ns, shown_by_ns
from rtproof.judge.verdict_sentences import calm_time_phrase
from rtproof.record.activations import TOLD_APART_NS
from rtproof.record.contents import Int64Array
from rtproof.record.requirement import NO_LONGEST, Requirement, rated
from rtproof.summary.per_second import SECOND_NS

STOOD_NS = SECOND_NS
"""A thread that has not run for this long stands still. The agent waits equally long before it records a stall."""
MOST_EPISODES = 8
"""If the user names no longest duration, a run may last until this many episodes are decided: 19.9 T of quiet time."""
LEAD_NS = SECOND_NS
"""The first due time is at most this long after the origin."""
_MOST_STRETCHES = 4096
"""With more exact stretches than this, those within the gap are joined, which the claim does anyway."""


class Watch:
    """Says for each limit how it stands. The threads are those that have reported.

    from_outside: the due times come from a source that may pause. So a thread that waits is not late. ends_run: the run
    may end once it is decided; otherwise its length was fixed before, and the watch only tells. least_ns: the run does
    not end earlier than this.
    """

    def __init__(
        self,
        requirements: Sequence[Requirement],
        *,
        from_outside: bool = False,
        ends_run: bool = True,
        least_ns: int = 0,
    ) -> None:
        self._from_outside = from_outside
        self.ends_run = ends_run
        self._least_ns = least_ns
        self._invalid = ""
        sharing = len(rated(requirements))
        self._of = [_PlainLimit(each) if each.plain else _OneLimit(each, sharing) for each in requirements]
        self._due_ns: dict[int, int] = {}
        self._first_due_ns: dict[int, int | None] = {}
        self._told_ns: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._all_threads = False
        self._measured_ns = 0

    def invalid(self, reason: str) -> None:
        """Note why the run will be INVALID. Then it may end, and no limit is decided."""
        self._invalid = reason

    def over(
        self, thread: int, limit_ns: int, second: int, worst_ns: int, stretch: tuple[int, int, int] | None = None
    ) -> None:
        """Note that a thread exceeded a limit in a second, with worst_ns as its largest latency there.

        stretch: the first and the last late time, and how many activations were late, 0 if not known; None if the times
        are not known. A second, and the thread's newest stretch, may be reported again before ``progress`` covers it.
        """
        for one in self._of:
            if one.requirement.limit_ns == limit_ns:
                one.over(thread, second, max(worst_ns - limit_ns, 0), stretch)

    def progress(
        self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0, first_due_ns: int | None = None
    ) -> bool:
        """Note that all of a thread's activations due before due_ns are known; return whether the run may end.

        due_ns: the due time for which the thread runs next. lost: how many of its values were lost. time_ns: when this
        was reported. first_due_ns: when its first activation was due; None: unknown. When one thread reports for the
        second time, every thread has reported once.
        """
        self._all_threads = self._all_threads or thread in self._due_ns
        stood_until_ns = self._told_ns.get(thread, 0) if due_ns > 0 and not self._from_outside else 0
        self._due_ns[thread], self._lost[thread], self._told_ns[thread] = due_ns, lost, time_ns
        self._first_due_ns[thread] = first_due_ns
        if stood_until_ns - due_ns >= STOOD_NS:
            self._stands(thread, due_ns, stood_until_ns)
        if self._all_threads:
            self._look(min(self._due_ns.values()) // SECOND_NS * SECOND_NS)
        return self.ends_run and (bool(self._invalid) or (self.decided and self._measured_ns >= self._least_ns))

    def _look(self, known_ns: int) -> None:
        if known_ns > self._measured_ns:
            self._measured_ns = known_ns
            first = [first_due_ns for first_due_ns in self._first_due_ns.values() if first_due_ns is not None]
            since_ns = min(first) if len(first) == len(self._due_ns) else None
            for one in self._of:
                one.look(known_ns, since_ns, lost=any(self._lost.values()))

    def _stands(self, thread: int, since_ns: int, until_ns: int) -> None:
        """Note that a thread has waited since since_ns, which is late for every shorter limit.

        For longer limits nobody knows yet. So the thread counts as known only up to until_ns minus the longest limit.
        """
        for one in self._of:
            if until_ns - since_ns > one.requirement.limit_ns:
                one.stood(since_ns, until_ns - one.requirement.limit_ns)
        longest_ns = max((one.requirement.limit_ns for one in self._of), default=0)
        self._due_ns[thread] = max(since_ns, until_ns - longest_ns)

    @property
    def standings(self) -> tuple[LimitTest, ...]:
        """How every limit with a rate stands, in the order given."""
        return tuple(one.tested for one in self._of if isinstance(one, _OneLimit))

    @property
    def decided(self) -> bool:
        """Whether every limit is HELD or PROVEN, or one is EXCEEDED or REFUTED. Then the run may end."""
        states = {one.state for one in self._of}
        return bool(states & {State.EXCEEDED, State.REFUTED}) or states <= {State.HELD, State.PROVEN}

    def lines(self) -> list[str]:
        """How each limit stands and how long it still takes, with its way below. The slowest limit comes first."""
        if self._invalid:
            return [f"INVALID: {self._invalid}"]
        open_first = sorted(self.standings, key=lambda one: (one.decision.at_ns is not None, -one.more_ns))
        lost = any(self._lost.values())
        plain = [one.lines(self.ends_run) for one in self._of if isinstance(one, _PlainLimit)]
        return [line for some in (*plain, *(progress_lines(one, lost=lost) for one in open_first)) for line in some]


class _PlainLimit:
    """What the watch knows of a limit that is never to be exceeded.

    seconds: those with a late activation. count: how many activations were late. counted: False if the agent does not
    report that. worst_ns: the largest latency so far, of those above the limit. stands: a thread stands still.
    measured_ns: the time up to which everything is known.
    """

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        self.seconds: set[int] = set()
        self.count = 0
        self.counted = True
        self._newest: dict[int, tuple[int, int]] = {}
        self.worst_ns = 0
        self.stands = False
        self.measured_ns = 0
        self.lost = False

    def over(self, thread: int, second: int, beyond_ns: int, stretch: tuple[int, int, int] | None) -> None:
        begin_ns, _, count = stretch or (-1, -1, 0)
        newest_ns, before = self._newest.get(thread, (-1, 0))
        self.count += count - (before if begin_ns == newest_ns else 0)
        self.counted = self.counted and count > 0
        self._newest[thread] = begin_ns, count
        self.seconds.add(second)
        self.worst_ns = max(self.worst_ns, self.requirement.limit_ns + beyond_ns)

    def stood(self, since_ns: int, late_until_ns: int) -> None:
        self.stands = True
        self.worst_ns = max(self.worst_ns, self.requirement.limit_ns + late_until_ns - since_ns)

    def look(self, known_ns: int, first_due_ns: int | None, *, lost: bool) -> None:
        since_ns = LEAD_NS if first_due_ns is None else first_due_ns
        self.measured_ns, self.lost = max(known_ns - since_ns, 0), lost

    @property
    def state(self) -> State:
        if self.seconds or self.stands:
            return State.EXCEEDED
        held = not self.lost and self.measured_ns >= held_after_ns(self.requirement)
        return State.HELD if held else State.UNDECIDED

    def lines(self, ends_run: bool) -> list[str]:
        """How the limit stands; of a run that ends by itself, also how long it still takes."""
        limit, measured = limit_value(self.requirement.limit_ns), duration(self.measured_ns)
        if self.state is State.EXCEEDED:
            largest = f"the largest is {value(self.worst_ns, self.requirement.limit_ns)}"
            # As the verdict counts it; if an older agent does not tell the number of activations, in seconds.
            often = (
                f" {how_often(self.count)}" if self.counted else f", in {quantity(len(self.seconds), 'second')} so far"
            )
            return [f"{limit}: EXCEEDED{often if self.seconds else ''}; {largest}"]
        if self.lost:
            return [f"{limit}: not exceeded so far, but values were lost"]
        more = max(held_after_ns(self.requirement) - self.measured_ns, 0)
        still = [f"  {duration(more, up=True)} more without an exceedance"] if ends_run and more else []
        if self.measured_ns <= self.requirement.limit_ns:
            return [f"{limit}: not exceeded so far", *still]
        rarest = duration(shown_by_ns(self.requirement, self.measured_ns))
        return [f"{limit}: not exceeded in {measured}; rules out more than one per {rarest}", *still]


class _OneLimit:
    """What the watch knows of one limit.

    late_ns: for each exact late stretch, by its first late time, the last late time. joined_ns: the same for each
    stretch that may hold several episodes. beyond_ns: for each second whose late times are not known, by how much the
    largest latency exceeds the limit.
    """

    def __init__(self, requirement: Requirement, limits: int) -> None:
        self.requirement = requirement
        self.limits = limits
        self.beyond_ns: dict[int, int] = {}
        self.late_ns: dict[int, int] = {}
        self.joined_ns: dict[int, int] = {}
        self.tested = figures_of_limit(requirement, self._course(0, None), limits)

    @property
    def state(self) -> State:
        return self.tested.decision.state

    def over(self, _thread: int, second: int, beyond_ns: int, stretch: tuple[int, int, int] | None) -> None:
        if stretch is None:
            self.beyond_ns[second] = max(beyond_ns, self.beyond_ns.get(second, 0))
            return
        first_ns, last_ns, count = stretch
        if count == 1 or self.requirement.gap_ns >= TOLD_APART_NS:
            self.stood(first_ns, last_ns)
        else:
            self.joined_ns[first_ns] = max(last_ns, self.joined_ns.get(first_ns, last_ns))

    def stood(self, since_ns: int, late_until_ns: int) -> None:
        self.late_ns[since_ns] = max(late_until_ns, self.late_ns.get(since_ns, late_until_ns))

    def look(self, known_ns: int, first_due_ns: int | None, *, lost: bool) -> None:
        """Decide anew with everything before known_ns, because a late stretch may have become longer meanwhile."""
        if len(self.late_ns) > _MOST_STRETCHES:
            begin, end = merge_late_stretches(*_columns(self.late_ns), self.requirement.gap_ns)
            self.late_ns = dict(zip(begin.tolist(), end.tolist(), strict=True))
        course = self._course(known_ns, first_due_ns)
        self.tested = figures_of_limit(self.requirement, course, self.limits, 0 if lost else None)

    def _course(self, known_ns: int, first_due_ns: int | None) -> EpisodeCourse:
        seconds, beyond = _columns({s: most for s, most in self.beyond_ns.items() if s * SECOND_NS < known_ns})
        exact = _columns({begin: end for begin, end in self.late_ns.items() if begin < known_ns})
        joined = _columns({begin: end for begin, end in self.joined_ns.items() if begin < known_ns})
        rough = LateStretches.of_seconds(seconds * SECOND_NS, beyond)
        rough = replace(rough, begin_hi=np.minimum(rough.begin_hi, known_ns))
        late = LateStretches.together((rough, LateStretches.exact(*exact), LateStretches.joined(*joined)))
        since_ns, quiet_from_ns = (0, LEAD_NS) if first_due_ns is None else (first_due_ns, 0)
        measured_ns = max(known_ns - since_ns, 0)
        return episode_course(late.since(since_ns), measured_ns, self.requirement.gap_ns, quiet_from_ns=quiet_from_ns)


def _columns(pairs: dict[int, int]) -> tuple[Int64Array, Int64Array]:
    return np.array(list(pairs), np.int64), np.array(list(pairs.values()), np.int64)


WAY_CELLS = 12
"""Characters of the bar that shows how far a proof has come."""


def progress_lines(one: LimitTest, *, lost: bool = False) -> list[str]:
    """How one limit stands; of an open limit also the share of the quiet time that PROVEN takes, as a bar."""
    requirement, once = one.requirement, format_duration(one.requirement.at_most_ns)
    once = once[1:] if once[0] == "1" and not once[1].isdigit() else once  # As on the command line: 1/h, 1/12h.
    asked = f"{limit_value(requirement.limit_ns)}, 1/{once}"
    fewest, most = sorted((one.episodes_refuting, one.episodes))
    seen = quantity(most, "episode") if fewest == most else f"{fewest} to {quantity(most, 'episode')}"
    if one.vague_from_ns is not None:
        seen = f"at least {quantity(one.episodes_refuting, 'episode')}"
    if one.decision.at_ns is not None:
        state = one.decision.state.value
        at = f" at {duration(one.decision.at_ns, up=True)}" if one.decision.at_ns else ""
        exact = one.decision.state is not State.PROVEN or one.course.longest_at_most_ns <= requirement.longest_ns
        unless = "" if exact else f", unless an episode lasted longer than {duration(requirement.longest_ns)}"
        return [f"{asked}: {state}{at} ({seen}){unless}"]
    now = _now(one)
    unprovable = (  # Why more time alone cannot prove the claim.
        (lost, " so far; it cannot be PROVEN any more, because values were lost"),
        (one.decision.withheld, " so far, few enough for PROVEN, but in bunches"),
        (one.vague_from_ns is not None, " so far; verdict at the end"),
    )
    for holds, why in unprovable:
        if holds:
            return [f"{asked}: {seen}{why}{now}"]
    if not one.measured_ns:
        return [f"{asked}: {duration(one.more_ns, up=True)} without an exceedance"]
    share = one.live_ns / (one.live_ns + one.more_ns)
    full = int(share * WAY_CELLS)
    way = f"  {State.PROVEN.value} {'█' * full}{'·' * (WAY_CELLS - full)} {int(100 * share)} %"
    return [f"{asked}: {seen}{now or f' so far; {calm_time_phrase(one)}'}", way]


def _now(one: LimitTest) -> str:
    """That the limit is exceeded now, and how soon this refutes; empty if it is not."""
    since = one.course.open_since_ns
    if since is None or one.requirement.longest_ns >= NO_LONGEST:
        return ""
    lasted = max(one.measured_ns - since, 0)
    left = max(one.requirement.longest_ns - lasted, 0)
    limit = limit_value(one.requirement.limit_ns)
    return f"; above {limit} now, for {duration(lasted)}; REFUTED in {duration(left, up=True)} if it goes on"


def still_needed_ns(requirements: Sequence[Requirement], episodes: int) -> int:
    """How long a run must be until every limit is HELD or PROVEN, with this number of short episodes."""
    sharing = rated(requirements)
    proven = [proven_after_ns(episodes, each, (1 - each.confidence) / len(sharing)) for each in sharing]
    held = [held_after_ns(each) + LEAD_NS for each in requirements if each.plain]
    return max([*proven, *held, 0])
