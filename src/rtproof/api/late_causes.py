# SPDX-License-Identifier: Apache-2.0
"""Why activations were late, as frozen data for users of the Python API."""

from dataclasses import dataclass, field

from rtproof.core.notebook import html_table, number_text, time_text

__all__ = ["Budget", "BudgetPart", "Cause", "Coincidence", "Explanation"]


@dataclass(frozen=True)
class Cause:
    """What took time of late activations.

    Attributes:
        cause: Its name, as ``rtproof explain --explain-at-most`` takes it.
        name: The thread, the interrupt, the softirq or the function; None where it has no name.
        words: The cause in words.
        share: Its part of the time of all late activations, from 0 to 1.
        total_ns: The time that it took of all late activations.
        late: In how many late activations it has a part.
        first_in: In how many it took the most.
        advice: What helps; None where nothing is known.
        waits_for: For most of its time, the threads that it kept, each of which kept the one before waiting; empty if
            it kept the late thread itself.
    """

    cause: str
    name: str | None
    words: str
    share: float
    total_ns: int
    late: int
    first_in: int
    advice: str | None
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class BudgetPart:
    """A part of the time of one late activation, and who took it.

    Attributes:
        from_ns: When it begins, from the origin of the record.
        to_ns: When it ends.
        phase: "A": until the thread was woken. "B": until it ran. "C": until the end.
        cpu: Where; -1 if that is not known.
        cause: The name of the cause.
        name: The thread, the interrupt, the softirq or the function; None where it has no name.
        words: The cause in words.
        stack: Functions of the kernel, the innermost first; empty if they are not known.
        waits_for: The threads that the cause kept, each of which kept the one before waiting; empty if it kept the late
            thread itself.
    """

    from_ns: int
    to_ns: int
    phase: str
    cpu: int
    cause: str
    name: str | None
    words: str
    stack: tuple[str, ...]
    waits_for: tuple[str, ...] = ()

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class Budget:
    """Where the time of one late activation went.

    Attributes:
        thread: The measuring thread.
        index: The number of the activation.
        due_ns: When it was due, from the origin of the record.
        latency_ns: How late it was. The parts add up to it.
        whole: Whether the trace explains all of its time.
        parts: In order of time, without gaps.
    """

    thread: int
    index: int
    due_ns: int
    latency_ns: int
    whole: bool
    parts: tuple[BudgetPart, ...]


@dataclass(frozen=True)
class Coincidence:
    """What the kernel counted more of in the seconds with late activations. It coincides, and is no cause.

    Attributes:
        name: Of the count, as in the record.
        words: What it is.
        late: Its median in late seconds.
        ordinary: Its median in the other seconds.
        chance: The chance that any of all counts would move so without a reason.
    """

    name: str
    words: str
    late: float
    ordinary: float
    chance: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a run was late. A run without a trace has no causes, but may have coincidences.

    Attributes:
        traced: Whether the run has a trace of the kernel.
        limit_ns: Activations above this were explained; None: the largest were.
        late: How many late activations there are.
        explained: How many of them have a budget.
        outside: How many the trace does not hold.
        causes: The largest share first.
        budgets: Of late activations, the largest latency first.
        coincidences: Of a run without a trace, the smallest chance first.
        why_none: Why nothing can coincide, or why there is no trace; None if that is not so.
    """

    traced: bool
    limit_ns: int | None
    late: int
    explained: int
    outside: int
    causes: tuple[Cause, ...]
    budgets: tuple[Budget, ...]
    coincidences: tuple[Coincidence, ...]
    why_none: str | None
    _json: str = field(compare=False)

    def to_json(self) -> str:
        """The JSON that ``rtproof explain --json`` prints."""
        return self._json

    def __repr__(self) -> str:
        """How many activations were late, and what was found."""
        found = f"{len(self.causes)} causes" if self.traced else f"no trace, {len(self.coincidences)} coincidences"
        return f"<Explanation of {self.late:,} late activations: {found}>"

    def _repr_html_(self) -> str:
        if self.traced:
            rows = (
                (one.words, f"{one.share:.0%}", number_text(one.late), time_text(one.total_ns)) for one in self.causes
            )
            return html_table(f"causes of {self.late:,} late activations", ("cause", "share", "in", "time"), rows)
        found = ((one.words, f"{one.late:g}", f"{one.ordinary:g}", f"{one.chance:.2g}") for one in self.coincidences)
        head = ("count", "in late seconds", "in others", "chance")
        return html_table("no trace: what coincides with late seconds, and is no cause", head, found)
