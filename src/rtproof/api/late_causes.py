# SPDX-License-Identifier: Apache-2.0
"""Why activations were late, for users of the Python API."""

from dataclasses import dataclass, field

from rtproof.core.notebook import html_table, number_text, time_text
from rtproof.explain.budget import TimeBudget as Budget
from rtproof.explain.coincidence import MovedCount as Coincidence
from rtproof.explain.explanation import CauseRow as Cause


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
                (one.words(), f"{one.share:.0%}", number_text(one.late), time_text(one.total_ns)) for one in self.causes
            )
            return html_table(f"causes of {self.late:,} late activations", ("cause", "share", "in", "time"), rows)
        found = ((one.words, f"{one.late:g}", f"{one.ordinary:g}", f"{one.chance:.2g}") for one in self.coincidences)
        head = ("count", "in late seconds", "in others", "chance")
        return html_table("no trace: what coincides with late seconds, and is no cause", head, found)
