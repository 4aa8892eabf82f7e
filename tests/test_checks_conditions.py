# SPDX-License-Identifier: Apache-2.0
"""What threads noted about themselves while they measured, and the doubts that come of it."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import MS, SECOND, block, fact
from doubt_cases import N, clean, facts, said_of
from record_cases import BEGIN

from rtproof.record.chunks import ChunkType
from rtproof.record.contents import WHOLE_RUN, Condition, Conditions, Counter, Deviation, Event, Fact, Moment, Record
from rtproof.record.decoding import decode_payload
from rtproof.record.encoding import MalformedError
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter
from rtproof.summary.summary_model import Severity

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


def test_a_thread_as_asked_leaves_no_doubt() -> None:
    assert said_of(made(noted(run_delay_ns=[300_000] * 3, involuntary_switches=[1, 0, 2]))) == {}


def test_another_cpu_for_a_part_of_the_run() -> None:
    found = said_of(made(noted(Deviation(Condition.CPU, 1300, "1"), elsewhere=[0, 1000, 300])))
    assert set(found) == {"cpu"}
    assert found["cpu"].severity is Severity.INVALID
    assert found["cpu"].what == (
        "thread 0 ran on CPU 1 instead of CPU 2 for about 1.3 s of 3.0 s (1,300 of 3,000 activations)"
    )


def test_a_thread_that_was_moved_where_no_check_saw_it() -> None:
    found = said_of(made(noted(), fact("migrations", "2", Moment.END, 0)))
    assert (set(found), found["moved"].severity) == ({"moved"}, Severity.WARNING)
    assert found["moved"].what == (
        "the kernel moved thread 0 between CPUs 2 times (warm-up included), although it is bound to CPU 2"
    )
    for told in ("0", "unavailable: the kernel does not tell"):
        assert said_of(made(noted(), fact("migrations", told, Moment.END, 0))) == {}
    seen = noted(Deviation(Condition.CPU, 5, "1"), elsewhere=[5, 0, 0])
    assert set(said_of(made(seen, fact("migrations", "2", Moment.END, 0)))) == {"cpu"}


def test_where_the_cpu_is_read_at_the_checks_only_these_are_counted() -> None:
    some = noted(Deviation(Condition.CPU, 6, "0"), noted=[20] * 3, elsewhere=[6, 0, 0])
    found = said_of(made(some, fact("cpu_checks", "random activations", Moment.START, 0)))
    assert "(6 of 60 checks)" in found["cpu"].what


def test_the_cpu_at_the_end_is_not_told_twice() -> None:
    some = noted(Deviation(Condition.CPU, 1300, "1"), elsewhere=[0, 1000, 300])
    found = said_of(clean(conditions={0: some}, facts=facts({("cpu", Moment.END): "1"})))
    assert "1,300 of 3,000" in found["cpu"].what


def test_an_affinity_that_moved_nothing_is_a_warning() -> None:
    found = said_of(made(noted(Deviation(Condition.AFFINITY, 2, "0-3"), other_affinity=[0, 1, 1])))
    assert found["affinity"].severity is Severity.WARNING
    assert "allowed on CPUs 0-3, although" in found["affinity"].what
    assert "(2 times in looks" in found["affinity"].what


def test_an_affinity_of_the_end_alone_is_told() -> None:
    found = said_of(made(noted(), fact("affinity", "0-3", Moment.END, 0)))
    assert set(found) == {"affinity"}
    assert said_of(made(noted(), fact("affinity", "2", Moment.END, 0))) == {}


def test_another_policy_between_two_looks() -> None:
    found = said_of(made(noted(Deviation(Condition.POLICY, 3, "other"), other_policy=[1, 2, 0])))
    assert set(found) == {"policy-between"}
    assert found["policy-between"].severity is Severity.INVALID
    assert found["policy-between"].what == (
        "policy fifo was asked for, but random checks found another: thread 0 had other at 3 of 60 (5 %)"
    )


def test_another_priority_between_two_looks() -> None:
    found = said_of(made(noted(Deviation(Condition.PRIORITY, 1, "3"), other_priority=[1, 0, 0])))
    assert set(found) == {"priority-between"}
    assert "priority 80 was asked for" in found["priority-between"].what


def test_a_real_time_thread_that_waits_for_a_cpu() -> None:
    found = said_of(made(noted(run_delay_ns=[0, 140 * MS, 20 * MS])))
    assert set(found) == {"run-delay"}
    assert found["run-delay"].what.startswith("thread 0 was ready to run and waited for a CPU 5.3 % of the time")
    assert said_of(made(noted(run_delay_ns=[0, 140 * MS, 0]))) == {}


@pytest.mark.parametrize("moment", [Moment.START, Moment.DURING, Moment.END])
def test_a_tracer_at_any_time(moment: Moment) -> None:
    found = said_of(made(noted(), fact("tracer", "4711 strace", moment, 0), fact("tracer", "none", moment, 0)))
    assert set(found) == {"traced"}
    assert found["traced"].what == "a debugger or tracer was attached: thread 0 by process 4711 strace"


def test_no_tracer() -> None:
    assert said_of(made(noted(), fact("tracer", "none", Moment.START, 0))) == {}
    assert said_of(made(noted(), fact("tracer", "unavailable: the kernel does not tell", Moment.START, 0))) == {}


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


def test_how_fast_a_clock_ran_is_told() -> None:
    what = said_of(made(noted(), counters=(raw_clock(lambda at: 100_000 if at > 50 else 0),)))["clock-slewed"].what
    assert "ppm too fast against the hardware's clock, beyond the 500 ppm of NTP for 9.0 s of 59.0 s" in what


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


def test_stops_of_the_fair_server() -> None:
    found = stops_of(kernel("6.12.1", stopped(50)))
    assert found.severity is Severity.INVALID
    assert found.what == (
        "thread 0 was stopped 7 times for up to 50 ms, in step with a period of 1.0 s: "
        "the kernel's fair server may take up to 50 ms of each"
    )


def test_stops_of_throttling_before_the_fair_server() -> None:
    assert "the kernel's throttling of real-time threads" in stops_of(kernel("6.1.0", stopped(50))).what


def test_stops_of_a_control_group() -> None:
    groups = "/sys/fs/cgroup/cpu/a b 300000 1000000\n/sys/fs/cgroup/cpu 950000 1000000\n"
    found = stops_of(kernel("6.18.0", stopped(699), rt_group=groups))
    assert "the throttling of the control group /sys/fs/cgroup/cpu/a b may take up to 700 ms" in found.what


def test_stops_that_are_shorter_than_the_budget_may_be_chance() -> None:
    assert stops_of(kernel("6.12.1", stopped(20))).severity is Severity.WARNING


def test_a_fair_server_that_somebody_changed_has_its_own_figures() -> None:
    other = "cpu0 50000000 1000000000\ncpu2 10000000 500000000\n"
    assert "500 ms" in stops_of(kernel("6.12.1", stopped(10, period_s=0.5), fair_server=other)).what
    assert stops_of(kernel("6.12.1", stopped(50), fair_server=other)) is None
    assert stops_of(kernel("6.12.1", stopped(50), fair_server="cpu2 0 1000000000\n")) is None


@pytest.mark.parametrize(
    "whole",
    [
        stopped(50, stops=2),
        stopped(50, period_s=0.83),
        stopped(80),
        stopped(50, conditions={0: noted(run_delay_ns=[10 * MS, 0, 0])}),
    ],
    ids=["twice only", "another rhythm", "too long", "not ready: the timer itself was late"],
)
def test_other_delays_are_nobodys_budget(whole: Record) -> None:
    assert stops_of(kernel("6.12.1", whole)) is None


@pytest.mark.parametrize("late_ms", [69, 900])
@pytest.mark.parametrize("at", [350, 1600], ids=["with the first stop", "between two stops"])
def test_one_longer_delay_hides_no_budget(late_ms: int, at: int) -> None:
    """A hypervisor took the CPU in one of the stops too, or the thread was late between them for another reason."""
    found = stops_of(kernel("6.18.1", stopped(50, other_ms={at: late_ms})))
    assert found.severity is Severity.INVALID
    assert "for up to 50 ms, in step with a period of 1.0 s" in found.what


def test_many_short_delays_between_hide_no_budget() -> None:
    """A delay that is much shorter than the stops has another cause."""
    found = stops_of(kernel("6.18.1", stopped(50, other_ms=dict.fromkeys(range(500, 7000, 8), 3))))
    assert found.severity is Severity.INVALID
    assert found.what.startswith("thread 0 was stopped 7 times for up to 50 ms")


def test_many_longer_delays_are_of_no_budget() -> None:
    assert stops_of(kernel("6.18.1", stopped(50, other_ms=dict.fromkeys((700, 1700, 2700), 80)))) is None


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
    assert (
        found.what
        == "thread 0 was 800 ms late because somebody had stopped the agent and let it go on (SIGCONT at 1.8 s)"
    )


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


def test_a_nice_value_that_somebody_changed() -> None:
    found = said_of(niced("0", "15", "0"))["nice-changed"]
    assert found.severity is Severity.INVALID
    assert found.what.endswith("during the run: thread 0 had 0, 15, 0")


def test_another_nice_value_all_the_time_is_a_warning() -> None:
    assert said_of(niced("10"))["nice"].severity is Severity.WARNING
    assert not {"nice", "nice-changed"} & set(said_of(niced("0")))
    assert not {"nice", "nice-changed"} & set(said_of(niced("0", "15", policy="fifo")))


# CONDITIONS chunks: laid out by hand from the format page, written and read back, and those that cannot be.


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


def conditions(thread: int, rows: list[list[int]], *deviations: Deviation) -> Conditions:
    columns = dict(zip(COLUMNS, (np.array(column, np.int64) for column in zip(*rows, strict=True)), strict=True))
    return Conditions(thread=thread, deviations=deviations, **columns)


def test_what_is_written_is_read_back_and_put_together(tmp_path: Path) -> None:
    second = 1_000_000_000
    first = conditions(
        1,
        [[second, 1000, 0, 20, 0, 0, 0, 5_000, 1], [2 * second, 1000, 400, 20, 1, 0, 1, 0, 0]],
        *(Deviation(Condition.CPU, 400, "3"), Deviation(Condition.POLICY, 1, "other")),
    )
    later = conditions(1, [[3 * second, 1000, 7, 20, 0, 0, 0, 0, 0]], Deviation(Condition.CPU, 7, "3"))
    other = conditions(0, [[second, 10, 0, 2, 0, 0, 0, 0, 0]])
    with RecordWriter(tmp_path / "record") as writer:
        writer.begin(BEGIN)
        for some in (first, other, later):
            writer.conditions(some)
    found = open_record(tmp_path / "record").conditions
    assert set(found) == {0, 1}
    assert rows_of(found[0]) == rows_of(other)
    assert rows_of(found[1]) == [a + b for a, b in zip(rows_of(first), rows_of(later), strict=True)]
    assert found[1].deviations == (Deviation(Condition.CPU, 407, "3"), Deviation(Condition.POLICY, 1, "other"))


def test_a_wrong_one_is_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "record") as writer:
        writer.begin(BEGIN)
        writer.chunk(ChunkType.CONDITIONS, IMPOSSIBLE["kind"])
        writer.chunk(ChunkType.CONDITIONS, HEAD + SEEN + ROWS)
    record = open_record(tmp_path / "record")
    sentence = record.damage[0].sentence
    assert sentence.startswith("the CONDITIONS chunk at offset ")
    assert sentence.endswith(" was not used: 4 is no Condition")
    assert record.conditions[2].checks.tolist() == [4, 4]
