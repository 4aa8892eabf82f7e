# SPDX-License-Identifier: Apache-2.0
"""What a maximum, a threshold and a length of time are worth, from plain numbers: no record is needed for these lines.

They hold without any model of the latencies. Whatever is said of the largest value takes them as exchangeable, which
means that a run as long as this one might as well have come first, and the length as fixed before the run.
"""

from dataclasses import dataclass

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.statistics.exact_bounds import binomial_at_most, mean_upper, share_lower, share_upper
from rtproof.statistics.sequential_test import tau_needed

USUAL_CONFIDENCE = 0.95
DAY_NS = 24 * 3_600_000_000_000
PREDICTION = 0.05
FIXED = "fixed-time"
FOR_EACH_LENGTH = "the upper and the lower limit hold so each by itself, not both together"


@dataclass(frozen=True)
class ShareThreshold:
    """The value that a share of the measured ones exceeds, and what is known of the share behind it.

    exceeding: how many of the n values are above it. low, high: two-sided interval of the true share. rank: counted
    from the largest (1), the value that is an upper limit of the true threshold, one-sided; None if n is too small.
    """

    share: float
    n: int
    exceeding: int
    low: float
    high: float
    rank: int | None
    confidence: float


def chance_exceeded(past: float, coming: float) -> float:
    """At most how likely the largest of the coming units exceeds that of the past ones, all in the same unit.

    m / (n + m), if no two values are equal. Equal maxima (coarse clocks, few values) make it less.
    """
    return coming / (past + coming)


def predicted_until(past: float, chance: float = PREDICTION) -> float:
    """How long the largest value so far stays the largest but for this chance: T / 19 for 5 %."""
    return past * chance / (1 - chance)


def rarest_ns(duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, anytime: bool = False) -> float:
    """The mean time between events that such a run shows at least once with this probability: T / 3.00, or T / 3.48.

    anytime: the run may have been ended whenever one liked.
    """
    return duration_ns / (tau_needed(0, 1 - confidence) if anytime else mean_upper(0, confidence))


def share_threshold(share: float, n: int, confidence: float = USUAL_CONFIDENCE) -> ShareThreshold:
    """share: of the values that are above the threshold, such as 1e-5 for the 99.999th percentile."""
    exceeding, tail = round(share * n), (1 - confidence) / 2
    low, high = share_lower(exceeding, n, 1 - tail), share_upper(exceeding, n, 1 - tail)
    return ShareThreshold(share, n, exceeding, low, high, _rank(share, n, confidence), confidence)


def _rank(share: float, n: int, confidence: float) -> int | None:
    """The largest j with P(Bin(n, p) <= j - 1) <= 1 - confidence (Wilks 1941), by bisection."""
    low, high = 0, round(share * n) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if binomial_at_most(middle - 1, n, share) <= 1 - confidence else (low, middle)
    return low or None


def largest_value_sentences(
    max_ns: int, duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, length_was_fixed: bool = True
) -> tuple[str, str, str]:
    """What the largest value of a run is worth: for a second run, for the time to come, and as a bound."""
    again, later = chance_exceeded(1, 1), duration(predicted_until(duration_ns))
    unless = "" if length_was_fixed else ", had the length been fixed beforehand, which it was not"
    return (
        f"a second, equally long run will exceed this with a probability of at most {percent(again)}, if it is alike "
        "(an equal maximum does not exceed it)",
        f"within the next {later} it is exceeded with a probability of at most {percent(PREDICTION)}, if conditions "
        "stay alike; at most m/(n+m) for m more after n",
        f"> {value(max_ns)}: less often than once per {duration(rarest_ns(duration_ns, confidence))} "
        f"({percent(confidence)}, {FIXED}{unless})",
    )


def unseen_event_sentences(duration_ns: int, confidence: float = USUAL_CONFIDENCE) -> tuple[str, ...]:
    """What may exist although a run of this length shows nothing of it."""
    fixed, anytime = (duration(rarest_ns(duration_ns, confidence, anytime=free)) for free in (False, True))
    short = (f"a run of {duration(duration_ns)} cannot have seen what comes once a day",)
    return (
        f"anything rarer than once per {fixed} may be missing from this run "
        f"({percent(confidence)}, {FIXED}; once per {anytime} if it could have ended at any time)",
        *(short if duration_ns < DAY_NS else ()),
        "1 boot cannot show what differs from boot to boot",
    )


def threshold_rank_sentence(found: ShareThreshold) -> str:
    """What is known of the share behind a threshold, in words."""
    p = percent(1 - found.share)
    rank = f"the {_ordinal(found.rank)} largest value" if found.rank else "none: n is too small"
    return (
        f"the {p} threshold of {quantity(found.n, 'activation')} ({found.exceeding} above it): between "
        f"{found.low:.2g} and {found.high:.3g} of all activations exceed it ({percent(found.confidence)}, {FIXED}); "
        f"upper limit of the true {p} threshold ({percent(found.confidence)}): {rank}"
    )


def _ordinal(n: int) -> str:
    """1st, 22nd, 113th."""
    last = {1: "1st", 2: "2nd", 3: "3rd"}.get(n % 10)
    return f"{n}th" if last is None or n // 10 % 10 == 1 else f"{n // 10 or ''}{last}"
