# SPDX-License-Identifier: Apache-2.0
"""When the timer that a thread set for itself was due, and how much later the kernel may let it expire."""

from bisect import bisect_right
from collections.abc import Sequence

from rtproof.explain.cpu_contexts import Change, Expiry, Slack, TimerStart

OTHER_CLOCK_NS = 100_000_000
"""Two readings that lie further apart are of different clocks, such as CLOCK_REALTIME and the trace's."""
LEAST_NS = 1_000
"""A shorter slack makes nobody late. Who has set PR_SET_TIMERSLACK to its least value has one of 1 ns."""


def with_slack(changes: Sequence[Change], starts: Sequence[TimerStart]) -> list[Change]:
    """The changes of a thread, its wakings with the times of the timer that the thread had started.

    Both in order of time.
    """
    return [change._replace(slack=_slack(change, starts)) if change.timer else change for change in changes]


def _slack(waking: Change, starts: Sequence[TimerStart]) -> Slack | None:
    timer = waking.timer
    if timer is None:
        return None
    begun = bisect_right(starts, timer.time_ns, key=lambda start: start.time_ns)
    start = next((start for start in reversed(starts[:begun]) if start.timer == timer.timer), None)
    if start is None:
        return None
    late_ns = max(0, timer.now_ns - start.expires_ns)
    since_due_ns = timer.now_ns - start.expires_ns + start.slack_ns
    begin_ns = _read_ns(timer) - since_due_ns if since_due_ns >= 0 else start.time_ns  # no timer expires before
    return Slack(start.slack_ns, begin_ns, timer.time_ns - late_ns)


def _read_ns(timer: Expiry) -> int:
    """When the timer's clock was read, by the clock of the trace.

    Where the two are one clock, that is the time that was read. Otherwise it is at the earliest when the interrupt
    began. Where no event shows that, the interrupt's entry would count as sleep.
    """
    return timer.now_ns if 0 <= timer.time_ns - timer.now_ns < OTHER_CLOCK_NS else timer.entered_ns
