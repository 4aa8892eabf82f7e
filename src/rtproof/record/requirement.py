# SPDX-License-Identifier: Apache-2.0
"""What is asked of a run, and kept with it: a limit, and how often it may be exceeded."""

from collections.abc import Iterable
from dataclasses import dataclass

from rtproof.core.units import NEVER

HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True)
class Requirement:
    """A limit, and how often it may be exceeded.

    A plain limit is never to be exceeded. Any other claim is: episodes above the limit come at most once per
    ``at_most_ns``, and none lasts longer than ``longest_ns``.

    Attributes:
        limit_ns: The latency above which an activation is late.
        at_most_ns: Episodes come at most once per this time; 0: the limit is plain.
        confidence: 1 minus the probability of error of all limits together; of a plain limit, by itself.
        gap_ns: Late times that are no further apart are one episode; 0 becomes the usual value for ``at_most_ns``.
        longest_ns: No episode lasts longer; 0 becomes the usual value. ``fixed_longest_ns`` tells if none was fixed.
        bunches: Episodes that a bunch may bring on average.
        shows_ns: Of a plain limit: a run is long enough if it rules out more than one exceedance per this time.
    """

    limit_ns: int
    at_most_ns: int = NEVER
    confidence: float = 0.95
    gap_ns: int = 0
    longest_ns: int = 0
    bunches: float = 1.0
    shows_ns: int = HOUR_NS

    def __post_init__(self) -> None:
        """Replace a gap and a longest length of 0 by the usual ones; a plain limit has none of what means nothing."""
        if self.plain:
            for name, none in (("gap_ns", 0), ("longest_ns", 0), ("bunches", 1.0)):
                object.__setattr__(self, name, none)
            return
        if not self.gap_ns:
            object.__setattr__(self, "gap_ns", usual_gap_ns(self.at_most_ns))
        if not self.longest_ns:
            object.__setattr__(self, "longest_ns", usual_longest_ns(self.at_most_ns, self.gap_ns))

    @property
    def plain(self) -> bool:
        """Whether the limit is never to be exceeded. Then gap, longest length and bunches mean nothing."""
        return self.at_most_ns == NEVER

    @property
    def fixed_longest_ns(self) -> int | None:
        """How long an episode may last; None if nothing was fixed, as for a plain limit."""
        return None if self.plain or self.longest_ns == NO_LONGEST else self.longest_ns

    @property
    def goal_ns(self) -> int:
        """T of "once per T": what HELD shall show of a plain limit, else what is asked."""
        return self.shows_ns if self.plain else self.at_most_ns


def rated(requirements: Iterable[Requirement]) -> list[Requirement]:
    """The limits that may be exceeded at some rate. Only these share the probability of error."""
    return [each for each in requirements if not each.plain]


LONGEST_GAP_NS = 60_000_000_000


NO_LONGEST = 2**63 - 1
"""Stands for no longest length of an episode. Runs from before schema 3 of run.json had fixed none."""


def usual_gap_ns(at_most_ns: int) -> int:
    """The usual gap: a twentieth of at_most_ns, and at most a minute.

    Once per minute gives 3 s. Once per 20 minutes or less often gives a minute.
    """
    return max(min(LONGEST_GAP_NS, at_most_ns // 20), 1)


def usual_longest_ns(at_most_ns: int, gap_ns: int) -> int:
    """The usual longest length: ten gaps, and at most a quarter of at_most_ns.

    With the usual gap, once per minute gives 15 s, and once per 40 minutes or less often gives 10 minutes.
    """
    return max(min(10 * gap_ns, at_most_ns // 4), gap_ns)
