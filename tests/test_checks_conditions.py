# SPDX-License-Identifier: Apache-2.0
"""What threads noted about themselves while they measured, and the doubts that come of it."""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analysis_records import MS, SECOND, block, fact
from doubt_cases import N, clean, facts, said_of

from rtproof.record.chunks import ChunkType
from rtproof.record.contents import WHOLE_RUN, Condition, Conditions, Counter, Deviation, Event, Fact, Moment, Record
from rtproof.record.decoding import decode_payload
from rtproof.record.encoding import MalformedError
from rtproof.summary.summary_model import Severity

INVALID, WARNING = Severity.INVALID, Severity.WARNING
COLUMNS = (
    *("time_ns", "noted", "elsewhere", "checks", "other_policy", "other_priority", "other_affinity"),
    *("run_delay_ns", "involuntary_switches"),
)


def noted(*deviations: Deviation, **changes: list[int]) -> Conditions:
    """Three seconds of thread 0, as asked but for the changes."""
    columns = {name: [0, 0, 0] for name in COLUMNS}
    columns |= {"time_ns": [SECOND, 2 * SECOND, 3 * SECOND], "noted": [1000] * 3, "checks": [20] * 3, **changes}
    arrays = {name: np.array(column, np.int64) for name, column in columns.items()}
    return Conditions(thread=0, deviations=deviations, **arrays)


def made(found: Conditions, *more: Fact, **parts: Any) -> Record:
    return clean(conditions={0: found}, facts=(*facts({}), *more), **parts)


TRACED = tuple(fact("tracer", "4711 strace", moment, 0) for moment in (Moment.START, Moment.DURING, Moment.END))


@pytest.mark.parametrize(
    ("whole", "expected", "says"),
    [
        (made(noted(run_delay_ns=[300_000] * 3, involuntary_switches=[1, 0, 2])), None, ""),
        (
            made(noted(Deviation(Condition.CPU, 1300, "1"), elsewhere=[0, 1000, 300])),
            ("cpu", INVALID),
            "1.3 s of 3.0 s",
        ),
        (
            made(
                noted(Deviation(Condition.CPU, 6, "0"), noted=[20] * 3, elsewhere=[6, 0, 0]),
                fact("cpu_checks", "random activations", Moment.START, 0),
            ),
            ("cpu", INVALID),
            "(6 of 60 checks)",
        ),
        (
            clean(
                conditions={0: noted(Deviation(Condition.CPU, 1300, "1"), elsewhere=[0, 1000, 300])},
                facts=facts({("cpu", Moment.END): "1"}),
            ),
            ("cpu", INVALID),
            "1,300 of 3,000",
        ),
        (made(noted(), fact("migrations", "2", Moment.END, 0)), ("affinity", WARNING), "2 times"),
        (made(noted(), fact("migrations", "0", Moment.END, 0)), None, ""),
        (made(noted(), fact("migrations", "unavailable: the kernel does not tell", Moment.END, 0)), None, ""),
        (
            made(
                noted(Deviation(Condition.CPU, 5, "1"), elsewhere=[5, 0, 0]),
                fact("migrations", "2", Moment.END, 0),
            ),
            ("cpu", INVALID),
            "",
        ),
        (
            made(noted(Deviation(Condition.AFFINITY, 2, "0-3"), other_affinity=[0, 1, 1])),
            ("affinity", WARNING),
            "CPUs 0-3",
        ),
        (made(noted(), fact("affinity", "0-3", Moment.END, 0)), ("affinity", WARNING), ""),
        (made(noted(), fact("affinity", "2", Moment.END, 0)), None, ""),
        (
            made(noted(Deviation(Condition.POLICY, 3, "other"), other_policy=[1, 2, 0])),
            ("policy-between", INVALID),
            "3 of 60 (5 %)",
        ),
        (
            made(noted(Deviation(Condition.PRIORITY, 1, "3"), other_priority=[1, 0, 0])),
            ("priority-between", INVALID),
            "priority 80",
        ),
        (made(noted(run_delay_ns=[0, 140 * MS, 20 * MS])), ("run-delay", WARNING), "5.3 % of the time"),
        (made(noted(run_delay_ns=[0, 140 * MS, 0])), None, ""),
        *((made(noted(), each, fact("tracer", "none", Moment.END, 0)), ("traced", None), "4711") for each in TRACED),
        (made(noted(), fact("tracer", "none", Moment.START, 0)), None, ""),
        (made(noted(), fact("tracer", "unavailable: the kernel does not tell", Moment.START, 0)), None, ""),
    ],
)
def test_what_a_thread_noted(whole: Record, expected: tuple[str, Severity | None] | None, says: str) -> None:
    found = said_of(whole)
    assert set(found) == ({expected[0]} if expected else set())
    if expected:
        assert expected[1] in (None, found[expected[0]].severity)
        assert says in found[expected[0]].whole


def raw_clock(ppm: Callable[[int], float], seconds: int = 60) -> Counter:
    """Raw minus monotonic once a second, with a few microseconds of noise, while the latter gains so many ppm."""
    noise = np.random.default_rng(5).integers(-5_000, 5_000, seconds)
    gained = np.cumsum([0, *(ppm(at) * SECOND / 1_000_000 for at in range(1, seconds))])
    return Counter(0, False, "clock.raw", "ns", np.arange(seconds) * SECOND, (-gained + noise).astype(np.int64))


@pytest.mark.parametrize(
    ("ppm", "severity"),
    [
        (lambda _: 0, None),
        (lambda _: 120, None),
        (lambda _: -300, Severity.WARNING),
        (lambda _: 100_000, Severity.INVALID),
        (lambda _: -100_000, Severity.INVALID),
        (lambda at: 100_000 if at == 30 else 0, Severity.INVALID),
    ],
)
def test_a_clock_that_is_slewed(ppm: Callable[[int], float], severity: Severity | None) -> None:
    found = said_of(made(noted(), counters=(raw_clock(ppm),)))
    assert found.keys() == ({"clock-slewed"} if severity else set())
    if severity:
        assert found["clock-slewed"].severity is severity
        assert "CLOCK_MONOTONIC_RAW shows its rate" in found["clock-slewed"].detail


def stopped(
    length_ms: float,
    period_s: float = 1.0,
    stops: int = 7,
    first_s: float = 0.4,
    other_ms: dict[int, int] | None = None,
    **parts: Any,
) -> Record:
    """A run of 1 kHz in which the thread is stopped again and again; the due times in a stop are missed.

    other_ms: activations that are late for other reasons, and by how much.
    """
    values, gaps, end = np.full(8000, 9000, np.int64), {}, first_s
    for _ in range(stops):
        last = round(end * 1000)
        begin = last - int(length_ms)
        values[begin] = int(length_ms * MS)
        gaps[begin] = max(int(length_ms) - 1, 0)
        end += period_s
    for at, late_ms in (other_ms or {}).items():
        values[at] = late_ms * MS
    keep = np.ones(8000, np.bool_)
    for begin, missed in gaps.items():
        keep[begin + 1 : begin + 1 + missed] = False
    places = np.cumsum(keep) - 1
    one = block(values[keep].tolist(), {int(places[at]): m for at, m in gaps.items() if m})
    whole = clean((one,), facts=facts({("duration_ns", Moment.ASKED): str(8 * SECOND)}))
    waited = noted(run_delay_ns=[int(length_ms * MS * stops), 0, 0])
    found = fact("run_delay", "schedstat", Moment.START, 0)
    whole = replace(whole, conditions={0: waited}, facts=(*whole.facts, found))
    return replace(whole, **parts)


def kernel(release: str, whole: Record, **files: str) -> Record:
    more = tuple(
        replace(whole.files[0], path=path.replace("_", "-"), content=text.encode()) for path, text in files.items()
    )
    return replace(whole, begin=replace(whole.begin, kernel_release=release), files=(*whole.files, *more))


def stops_of(whole: Record) -> Any:
    return said_of(whole, None).get("budget-stops")


GROUPS = "/sys/fs/cgroup/cpu/a b 300000 1000000\n/sys/fs/cgroup/cpu 950000 1000000\n"
OTHER_SERVER = "cpu0 50000000 1000000000\ncpu2 10000000 500000000\n"


@pytest.mark.parametrize(
    ("whole", "severity", "words"),
    [
        (kernel("6.12.1", stopped(50)), INVALID, "7 times, by up to 50 ms"),
        (kernel("6.12.1", stopped(50)), INVALID, "fair server may take up to 50 ms"),
        (kernel("6.1.0", stopped(50)), INVALID, "the kernel's throttling of real-time threads"),
        (kernel("6.18.0", stopped(699), rt_group=GROUPS), INVALID, "/sys/fs/cgroup/cpu/a b may take up to 700 ms"),
        (kernel("6.12.1", stopped(20)), WARNING, ""),  # shorter than the budget: may be chance
        (kernel("6.12.1", stopped(10, period_s=0.5), fair_server=OTHER_SERVER), None, "500 ms"),
        # A longer delay of another cause, with the first stop or between two, hides no budget; nor do many short ones.
        (kernel("6.18.1", stopped(50, other_ms={350: 69})), INVALID, "up to 50 ms"),
        (kernel("6.18.1", stopped(50, other_ms={1600: 900})), INVALID, "up to 50 ms"),
        (kernel("6.18.1", stopped(50, other_ms=dict.fromkeys(range(500, 7000, 8), 3))), INVALID, "7 times"),
    ],
)
def test_stops_by_a_budget(whole: Record, severity: Severity | None, words: str) -> None:
    found = stops_of(whole)
    assert severity in (None, found.severity)
    assert words in found.whole


@pytest.mark.parametrize(
    "whole",
    [
        stopped(50, stops=2),
        stopped(50, period_s=0.83),
        stopped(80),
        stopped(50, conditions={0: noted(run_delay_ns=[10 * MS, 0, 0])}),
        stopped(50, other_ms=dict.fromkeys((700, 1700, 2700), 80)),
        kernel("", stopped(50), fair_server=OTHER_SERVER),
        kernel("", stopped(50), fair_server="cpu2 0 1000000000\n"),
    ],
    ids=[
        "twice",
        "another rhythm",
        "too long",
        "not ready: a late timer",
        "many longer ones",
        "another server",
        "none",
    ],
)
def test_other_delays_are_nobodys_budget(whole: Record) -> None:
    assert stops_of(kernel("6.12.1", whole)) is None


def test_without_a_budget_nothing_is_stopped() -> None:
    endless = kernel("6.1.0", stopped(50))
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    files = tuple(replace(one, content=b"-1\n") if one.path == path else one for one in endless.files)
    assert stops_of(replace(endless, files=files)) is None


def test_delays_at_random_times_are_nobodys_budget() -> None:
    """50 delays of up to 50 ms in each of 200 runs, at any time: by chance the last ones are in step in hardly any."""
    random, wrong = np.random.default_rng(11), 0
    for _ in range(200):
        values = np.full(N, 9000, np.int64)
        for at in random.choice(N, 12, replace=False):
            values[at] = int(random.uniform(2 * MS, 50 * MS))
        wrong += stops_of(kernel("6.12.1", clean((block(values.tolist()),)))) is not None
    assert wrong <= 2


def event(kind: str, time_ns: int) -> Event:
    return Event(time_ns=time_ns, thread=WHOLE_RUN, kind=kind, text="")


def continued(*events: Event, late_ns: int = 800 * MS) -> Record:
    """The activation after 1 s is late."""
    values = np.full(N, 9000, np.int64)
    values[1000] = late_ns
    return clean((block(values.tolist()),), events=events)


def test_a_delay_that_ends_as_somebody_lets_the_agent_go_on() -> None:
    found = said_of(continued(event("continued", 1810 * MS)))["stopped"]
    assert found.severity is Severity.INVALID
    assert "800 ms late" in found.whole


@pytest.mark.parametrize(
    "whole",
    [
        continued(),
        continued(event("continued", 900 * MS)),
        continued(event("continued", 2900 * MS)),
        continued(event("continued", 1003 * MS), late_ns=3 * MS),
        continued(event("interrupted", 1805 * MS), event("continued", 1810 * MS)),
    ],
    ids=["no signal", "a signal before", "a signal long after", "a short delay", "systemd ends it"],
)
def test_sigcont_alone_is_no_stop(whole: Record) -> None:
    assert "stopped" not in said_of(whole)


def niced(*values: str, policy: str = "other") -> Record:
    changes = {("policy", moment): policy for moment in Moment}
    told = [fact("nice", text, Moment.DURING, 0) for text in values]
    return clean(facts=(*facts(changes), *told))


def test_nice_values() -> None:
    assert said_of(niced("0", "15", "0"))["nice-changed"].severity is INVALID
    assert said_of(niced("10"))["nice"].severity is WARNING
    assert not {"nice", "nice-changed"} & set(said_of(niced("0")))
    assert not {"nice", "nice-changed"} & set(said_of(niced("0", "15", policy="fifo")))


HEAD = struct.pack("<HHI", 2, 1, 2)
SEEN = struct.pack("<BIH", 0, 300, 1) + b"1"
ROWS = bytes([5, 100, 30, 4, 1, 2, 3, 7, 9]) + bytes([0xE8, 0x07, 100, 0, 4, 0, 0, 0, 0, 0])


def rows_of(some: Conditions) -> list[list[int]]:
    return [getattr(some, name).tolist() for name in COLUMNS]


def test_by_hand() -> None:
    found = decode_payload(ChunkType.CONDITIONS, memoryview(HEAD + SEEN + ROWS))
    assert isinstance(found, Conditions)
    assert (found.thread, found.deviations) == (2, (Deviation(Condition.CPU, 300, "1"),))
    assert rows_of(found) == [
        *([5_000_000, 1_005_000_000], [100, 100], [30, 0], [4, 4], [1, 0], [2, 0], [3, 0], [7_000, 0], [9, 0]),
    ]


def test_too_long_or_too_short() -> None:
    whole = HEAD + SEEN + ROWS
    for payload in (whole + b"\0", *(whole[:length] for length in range(len(whole)))):
        with pytest.raises(MalformedError):
            decode_payload(ChunkType.CONDITIONS, memoryview(payload))


IMPOSSIBLE = {
    "kind": HEAD + b"\4" + SEEN[1:] + ROWS,
    "elsewhere more often than at all": HEAD + SEEN + bytes([5, 10, 30, *ROWS[3:]]),
    "more policies than checks": HEAD + SEEN + bytes([*ROWS[:4], 5, *ROWS[5:]]),
    "34 years": struct.pack("<HHI", 2, 0, 1) + bytes([*[0xFF] * 5, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    with pytest.raises(MalformedError):
        decode_payload(ChunkType.CONDITIONS, memoryview(IMPOSSIBLE[name]))
