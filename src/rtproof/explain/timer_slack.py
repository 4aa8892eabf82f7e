# SPDX-License-Identifier: Apache-2.0
"""How much later than it is due the timer of a thread may expire: the kernel joins timers within their slack."""

from bisect import bisect_right
from collections.abc import Sequence

from rtproof.explain.cpu_contexts import Change, Slack, TimerStart

LEAST_NS = 1_000
"""A shorter slack makes nobody late. Who has set PR_SET_TIMERSLACK to its least value has one of 1 ns."""


def with_slack(changes: Sequence[Change], starts: Sequence[TimerStart]) -> list[Change]:
    """The changes of a thread, its wakings with the slack of the timer that the thread had started.

    Both in order of time.
    """
    return [change._replace(slack=_slack(change, starts)) if change.timer else change for change in changes]


def _slack(waking: Change, starts: Sequence[TimerStart]) -> Slack | None:
    timer = waking.timer
    if timer is None:
        return None
    begun = bisect_right(starts, timer.time_ns, key=lambda start: start.time_ns)
    start = next((start for start in reversed(starts[:begun]) if start.timer == timer.timer), None)
    if start is None or start.slack_ns < LEAST_NS:
        return None
    late_ns = max(0, timer.now_ns - start.expires_ns)
    return Slack(start.slack_ns, timer.time_ns - late_ns)
