# SPDX-License-Identifier: Apache-2.0
"""The probe app in a guest with PREEMPT_RT, in virtual time: one boot.

Its outputs are on the module's chip without hardware, which wires line 0 to line 1; there another agent, of a lower
priority than the loop, collects the edges.
"""

import re

import numpy as np
import probe_guest
import pytest
from app_cases import account, sieve_alone, whole
from probe_guest import Guest, invalid

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array
from rtproof.record.reading import open_record
from rtproof.summary.fields import aligned_fields
from rtproof.summary.loops import Loops, loops_of_threads, relation_holds

US, MS = 1_000, 1_000_000
LOOPS, EVERY, BUSY_NS, PERIOD_NS = 200, 50, 3_500 * US, MS
OVERRUN = f"app:work=busy,busy_us={BUSY_NS // US},busy_every={EVERY}"
SCRIPT = f"""\
T=/sys/kernel/tracing
app() {{ # NAME PROBE OPTION...
    name=$1; probe=$2; shift 2
    run $name --probe $probe --samples {LOOPS} --period 1ms "$@"
}}
insmod /rtproof.ko gpio=1 || exit
app sieve app:work=sieve --period 5ms
/sieve_alone 100000 {LOOPS} 5000 > /out/alone || exit
app late {OVERRUN}
app shift {OVERRUN} --method shift
app shift-option {OVERRUN},shift=yes
app increment app:work=usleep,increment=10us
echo 42000 > /sensor
app all app:work=outputs+sensor+usleep+sieve+memory+lock,sensor=/sensor,sieve_to=1000,comment=all --threads 2
app limit {OVERRUN},stop_above=2ms
app limit-other {OVERRUN},stop_above=2ms --threads 2

echo 1024 > $T/buffer_size_kb
echo mono > $T/trace_clock
echo 1 > $T/tracing_on
app marks {OVERRUN.replace("work=", "work=outputs+")},marks=yes
echo 0 > $T/tracing_on
cat $T/trace > /out/trace

watch="--probe gpio:chip=0,in=1,out=6 --priority 50"
/agent run --warmup 10ms --duration 1h $watch -o /out/edges 2> /out/edges.said & edges=$!
usleep 300000
app lines app:work=outputs+usleep,usleep_us=200,chip=rtproof-loop,lines=0+2+4
app lines-busy app:work=outputs,chip=0,lines=1+2+4
kill -INT $edges
wait
app lines-many app:work=outputs,chip=0,lines=0+2+8
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    program = sieve_alone(tmp_path_factory.mktemp("alone") / "sieve_alone")
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory, 1, ("/sieve_alone", program))


def slept(loops: Loops) -> list[bool]:
    """Whether each loop but the last slept behind its work."""
    return [slack > 0 for slack in loops.slack_ns[loops.followed].tolist()]


def test_work_takes_as_long_as_the_same_code_alone(guest: Guest) -> None:
    by_itself = np.array(guest.text("alone").split(), np.int64)
    work = whole(guest.record("sieve")).work_ns
    assert work.size == by_itself.size == LOOPS
    assert np.median(work) == pytest.approx(np.median(by_itself), rel=0.01)
    assert account(guest.record("sieve"))["primes"] == "9592"


def marked(guest: Guest, mark: str) -> Int64Array:
    """Times at which the kernel's trace got a mark, in nanoseconds of its own clock, good to a microsecond."""
    times = re.findall(rf" (\d+)\.(\d{{6}}): .*: {mark}$", guest.text("trace"), re.MULTILINE)
    return np.array([1_000_000 * int(s) + int(us) for s, us in times], np.int64) * US


def test_loop_times_add_up_to_the_time_that_the_kernels_trace_saw(guest: Guest) -> None:
    """Each mark is made just behind the top of its loop, so both ends are off by as much."""
    record = guest.record("marks")
    loops = whole(record)
    begins = marked(guest, "work 1")[-LOOPS:]
    seen_ns = int(begins[-1] - begins[0])
    assert begins.size == LOOPS
    assert abs(int(loops.loop_ns.sum()) - seen_ns) <= US * (LOOPS - 1)
    assert begins - record.begin.origin_monotonic_ns == pytest.approx(loops.start_ns, abs=10 * US)
    (told,) = loops_of_threads(record).values()
    assert relation_holds(LOOPS - 1, told.loop.sum, seen_ns)
    assert (told.loop.sum, told.apart) == (told.elapsed_ns, 0)


def test_a_late_loop_catches_up_without_sleep(guest: Guest) -> None:
    """Three due times pass in the overrun: the loop behind it and the next two begin at once, the third is in time."""
    loops = whole(guest.record("late"))
    busy = range(EVERY - 1, LOOPS - 4, EVERY)
    assert np.array_equal(np.diff(loops.target_ns), np.full(LOOPS - 1, PERIOD_NS))
    assert np.flatnonzero(loops.work_ns >= BUSY_NS).tolist() == [*range(EVERY - 1, LOOPS, EVERY)]
    for at in busy:
        assert slept(loops)[at - 1 : at + 4] == [True, False, False, False, True]
        assert loops.loop_ns[at] > BUSY_NS
        assert (loops.loop_ns[at + 1 : at + 3] < PERIOD_NS // 10).all()
        assert PERIOD_NS // 4 < loops.loop_ns[at + 3] < PERIOD_NS
        assert loops.loop_ns[at : at + 4].sum() == pytest.approx(4 * PERIOD_NS, abs=50 * US)
        assert loops.error_ns[at + 1] > 2 * PERIOD_NS
        assert loops.error_ns[at + 4] < PERIOD_NS // 10


@pytest.mark.parametrize("name", ["shift", "shift-option"])
def test_a_target_that_was_missed_moves_and_the_next_loop_is_whole(guest: Guest, name: str) -> None:
    record = guest.record(name)
    loops = whole(record)
    delays = np.diff(loops.target_ns)
    busy = [*range(EVERY - 1, LOOPS - 1, EVERY)]
    assert np.flatnonzero(loops.slack_ns[loops.followed] <= 0).tolist() == busy
    assert np.delete(delays, busy).tolist() == [PERIOD_NS] * (LOOPS - 1 - len(busy))
    for at in busy:
        assert loops.target_ns[at + 1] == loops.end_ns[at]
        assert loops.error_ns[at + 1] < PERIOD_NS // 10
        assert loops.loop_ns[at + 1] == pytest.approx(PERIOD_NS, rel=0.05)
    assert int(account(record)["shifted"]) == len(busy) + 1
    assert invalid(record) == []


def test_delays_grow(guest: Guest) -> None:
    record = guest.record("increment")
    loops = whole(record)
    assert np.diff(loops.target_ns).tolist() == [PERIOD_NS + 10 * US * at for at in range(LOOPS - 1)]
    assert all(slept(loops))
    assert record.series[0].method == "increment"
    assert invalid(record) == []


def test_no_due_time_is_skipped(guest: Guest) -> None:
    for name in ("sieve", "late", "all", "marks", "lines"):
        record = guest.record(name)
        assert record.end is not None
        assert {(t.obtained, t.missed, t.lost) for t in record.end.totals} == {(LOOPS, 0, 0)}
        assert invalid(record) == []


@pytest.mark.parametrize("name", ["limit", "limit-other"])
def test_a_limit_ends_the_run_as_asked(guest: Guest, name: str) -> None:
    record = guest.record(name)
    assert record.end is not None
    event, *others = (event for event in record.events if event.kind == "limit")
    assert re.fullmatch(r"a loop began \d+\.\d{3} us late, and stop_above is 2ms", event.text)
    assert (record.end.reason.name, record.end.text) == ("AS_ASKED", event.text)
    assert len(others) == len(record.series) // 3 - 1
    loops = whole(record, event.thread)
    assert loops.index.tolist() == [*range(EVERY + 1)]
    assert loops.error_ns[-1] > 2 * MS >= loops.error_ns[:-1].max()
    assert invalid(record) == []
    assert "limit" in {doubt.code for doubt in analyse(record).doubts}


def test_edges_on_a_line_are_the_work(guest: Guest) -> None:
    """The kernel's own times of the edges, on the other end of the wire."""
    record, edges = guest.record("lines"), open_record(guest.folder / "edges")
    loops, shift_ns = whole(record), edges.begin.origin_monotonic_ns - record.begin.origin_monotonic_ns
    due = np.concatenate([part.due_ns for part in aligned_fields(edges, edges.series[:1])]) + shift_ns
    measured = due[due >= loops.start_ns[0]]
    assert measured.size == 2 * LOOPS
    assert measured[::2] == pytest.approx(loops.start_ns, abs=20 * US)
    assert measured[1::2] == pytest.approx(loops.end_ns, abs=20 * US)
    assert (np.diff(measured) > 0).all()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lines-busy", "line 1 of gpiochip0 is in use by 'rtproof'"),
        ("lines-many", "GPIO chip gpiochip0 (rtproof-loop) has the lines 0 to 7, and no 8"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(guest: Guest, name: str, why: str) -> None:
    said = guest.said(name)
    assert said.startswith(f"rtproof-agent: {why}")
    assert said.endswith("\nexit 2\n")
    assert said.count("\n") == 2
    assert not (guest.folder / name).exists()
