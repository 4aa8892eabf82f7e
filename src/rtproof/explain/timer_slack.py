# SPDX-License-Identifier: Apache-2.0
"""When the timer that a thread set for itself was due, and how much later the kernel may let it expire."""

from bisect import bisect_right
from collections.abc import Sequence

from rtproof.explain.cpu_contexts import Change, Slack, TimerStart

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
    begin_ns = timer.entered_ns - since_due_ns if since_due_ns >= 0 else start.time_ns  # no timer expires before
    return Slack(start.slack_ns, begin_ns, timer.time_ns - late_ns)
