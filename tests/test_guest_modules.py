# SPDX-License-Identifier: Apache-2.0
"""The probe kernel in guests with PREEMPT_RT and without: one boot of each, in virtual time."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lab_kernels
import probe_guest
import pytest
from probe_guest import Guest, values

from rtproof.judge.analyse import analyse
from rtproof.lab import kernel_catalogue
from rtproof.record import histogram_bins
from rtproof.record.contents import Record
from rtproof.summary.recorded_facts import stalled_since_ns
from rtproof.vm.guest import Job, run_job
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow

RT, PLAIN = "debian-6.1-rt", "debian-6.1"
LOADS = ("idle", "mmap")
SCRIPT = f"""\
insmod /rtproof.ko || exit
for load in {" ".join(LOADS)}; do
    [ $load = idle ] && loads= || loads="--load $load"
    for method in timer task user; do run $load-$method $loads --probe kernel --method $method; done
done
for policy in fifo other; do run loop-$policy --probe kernel --method loop --period 5ms --policy $policy; done
run loop-band --probe kernel:ignore=7,high=7ms --method loop --period 5ms
run task-band --probe kernel:ignore=7 --method task
run rr --probe kernel --method task --policy rr --priority 30 --samples 50
/agent run --duration 1500ms --period 100us --probe kernel --method task -o /out/slow 2> /out/slow.said & slow=$!
usleep 1500000
kill -STOP $slow
usleep 700000
kill -CONT $slow
wait $slow
true
"""


@pytest.fixture(scope="module", params=[RT, PLAIN])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory)


def kernel_records(guest: Guest) -> Iterator[Record]:
    for load in LOADS:
        for method in ("timer", "task", "user"):
            yield guest.record(f"{load}-{method}")
    for name in ("loop-fifo", "loop-other", "rr"):
        yield guest.record(name)


def account(record: Record, field: str, thread: int = 0) -> Counter[str]:
    """The module's own account of a stage: numbers by name, bins as "bin N"."""
    path = f"rtproof.ko/thread{thread}/{field}"
    (content,) = (file.content.decode() for file in record.files if file.path == path)
    return Counter({name: int(number) for name, _, number in (line.rpartition(" ") for line in content.splitlines())})


def test_every_due_time_is_accounted_for(guest: Guest) -> None:
    for record in kernel_records(guest):
        assert record.end is not None
        asked = int(record.fact("samples") or 0)
        assert {t.obtained + t.missed for t in record.end.totals} == {asked}
        assert {t.lost for t in record.end.totals} == {0}


def test_no_event_has_its_stages_in_another_order(guest: Guest) -> None:
    for load in LOADS:
        for method, deepest in (("task", "task"), ("user", "user")):
            stages = values(guest.record(f"{load}-{method}"))
            assert list(stages) == ["irq", deepest]
            assert (stages["irq"] <= stages[deepest]).all()


def test_each_stage_is_later_than_the_one_before(guest: Guest) -> None:
    """The shortest way: what a load adds to one run and not to another is no matter of the stage."""
    for load in LOADS:
        task, user = (values(guest.record(f"{load}-{method}")) for method in ("task", "user"))
        assert task["irq"].min() < task["task"].min() < user["user"].min()


def test_the_modules_account_is_that_of_the_record(guest: Guest) -> None:
    for record in kernel_records(guest):
        for field, got in values(record).items():
            if field == "user":
                continue
            told = account(record, field)
            assert (told["count"], told["lost"], told["rests"]) == (got.size, 0, 0)
            assert (told["min"], told["max"], told["sum"]) == (got.min(), got.max(), got.sum())
            assert told["sum_squares"] == sum(int(value) ** 2 for value in got)
            found = Counter(f"bin {place}" for place in histogram_bins.bin_of(got).tolist())
            assert {name: n for name, n in told.items() if name.startswith("bin ")} == found


def test_a_slow_reader_loses_samples_and_not_the_truth(guest: Guest) -> None:
    """The agent was stopped for longer than the module's buffer lasts."""
    record = guest.record("slow")
    assert record.end is not None
    for series, total in zip(record.series, record.end.totals, strict=True):
        told = account(record, series.field)
        assert total.obtained + total.missed + total.lost == 15_000
        assert total.lost > 0
        assert told["count"] + told["missed"] == 15_000
        assert told["lost"] == total.lost


def test_a_loop_is_told_by_cycles_and_its_band_and_the_others_are_not(guest: Guest) -> None:
    record = guest.record("loop-band")
    assert [series.loop for series in record.series] == [True]
    assert [series.loop for series in guest.record("idle-task").series] == [False, False]
    found = analyse(record).cycles
    assert found is not None
    assert (found.ignored, found.counted, found.low_ns, found.high_ns) == (7, 499 - 7, 4_000_000, 7_000_000)
    assert analyse(guest.record("idle-task")).cycles is None
    assert guest.said("task-band") == "rtproof-agent: option 'ignore' is for method loop only\nexit 2\n"


# The kernel module in guests with PREEMPT_RT and without: one boot of each, in virtual time.


SOURCES = Path(__file__).parent.parent / "kmod" / "tests"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-static")

# Every due time of the timer below has a section without interrupts: both are on the same grid of 10 ms.
OFF_US = (100, 300, 1000)
SCRIPT_KMOD = f"""\
insmod /rtproof.ko gpio=1 || exit
/check
echo "checks exit $?"
for mode in timer task user loop; do echo "idle: $(/check figures $mode 1000 500)"; done
(while :; do dd if=/dev/zero of=/load bs=1M count=16 2>/dev/null; rm /load; done) & load=$!
for mode in task user; do echo "load: $(/check figures $mode 1000 500)"; done
kill $load
wait $load
echo "off 0: $(/check figures timer 10000 50)"
for us in {" ".join(map(str, OFF_US))}; do
    insmod /rtproof_irqoff.ko off_us=$us
    echo "off $us: $(/check figures timer 10000 50)"
    rmmod rtproof_irqoff
done
rmmod rtproof && echo unloaded
dmesg > /out/dmesg
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, compiled for the guest."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    program = tmp_path_factory.mktemp("kmod") / "check"
    sources = [*sorted(SOURCES.glob("check*.c")), SOURCES / "figures.c"]
    subprocess.run(["gcc", *FLAGS, "-o", program, *sources], check=True)
    return program


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
def test_the_module_measures_and_refuses_what_it_should(name: str, check: Path, tmp_path: Path) -> None:
    lines = boot(lab_kernels.kernel(name), name, check, tmp_path)
    assert_all_checks_pass(lines)
    assert_stages_are_in_order(lines)
    for us in OFF_US:
        assert_interrupts_off_show(lines, us)
    assert "unloaded" in lines
    log = (tmp_path / "dmesg").read_text()
    assert [line for line in log.splitlines() if "BUG:" in line or "WARNING:" in line or "while atomic" in line] == []


def boot(kernel: Kernel, name: str, check: Path, out: Path) -> list[str]:
    modules = [lab_kernels.module(name, which) for which in ("rtproof", "rtproof_irqoff")]
    files = (("/check", check), *((f"/{path.name}", path) for path in modules))
    return run_job(Machine(kernel), Job(SCRIPT_KMOD, files), out).said.splitlines()


def assert_all_checks_pass(lines: list[str]) -> None:
    assert [line for line in lines if line.startswith(("FAIL", "  "))] == []
    assert "checks exit 0" in lines
    # A guest with one processor has none to switch off.
    assert [line for line in lines if line.startswith("SKIP")] == ["SKIP cpu-gone: one CPU"]


def assert_stages_are_in_order(lines: list[str]) -> None:
    """On the same load: interrupt, kernel task, user task; and in every event t1 is not after t2."""
    for label in ("idle", "load"):
        task, user = figures(lines, f"{label}: task"), figures(lines, f"{label}: user")
        assert task["irq"] < task["task"] < user["task"]
        assert user["irq"] < user["task"]
        assert task["reversed"] == user["reversed"] == task["lost"] == 0


def assert_interrupts_off_show(lines: list[str], us: int) -> None:
    """The section begins just before the due time, so all of it is added to the latency."""
    moved_ns = figures(lines, f"off {us}: timer")["irq"] - figures(lines, "off 0: timer")["irq"]
    assert moved_ns == pytest.approx(us * 1000, rel=0.02)


def figures(lines: list[str], label: str) -> dict[str, int]:
    """Mean of the stages in ns, and the counts, of one line of the test program."""
    (line,) = (line for line in lines if line.startswith(f"{label} "))
    words = line.removeprefix(label).split()
    found = {}
    while words:
        name = words.pop(0)
        values = [int(words.pop(0)) for _ in range(3 if name in ("irq", "task") else 1)]
        found[name] = values[1 if len(values) > 1 else 0]
    return found


# The kernel's probes on two CPUs of a newer kernel: function only, since there two CPUs take turns in virtual time.


NAME = "debian-6.12-rt"
HOG = Path(__file__).parent / "hog.c"

# The hog starves CPU 1 until after the agent has given up; nothing may be left over for those without real-time policy.
# The agent's main thread, which has to see it, is moved to CPU 0 and stopped for a moment, so that its timer follows;
# and no idle CPU leaves its timers to a busy one. The loop has begun when the module's thread of CPU 1 exists.
SCRIPT_PROBE_CPUS = """\
run user --probe timerlat
insmod /rtproof.ko || exit
echo -1 > /proc/sys/kernel/sched_rt_runtime_us
echo 0 > /proc/sys/kernel/timer_migration
for server in /sys/kernel/debug/sched/fair_server/cpu*; do echo 0 > $server/runtime; done
LOOP="--probe kernel --method loop --period 10ms --warmup 100ms --policy other --cpus 1"
/agent run $LOOP --duration 1s -o /out/stalled 2> /out/stalled.said & agent=$!
for try in $(seq 250); do
    grep -qsx rtproof/1 /proc/[0-9]*/comm && break
    usleep 20000
done
usleep 100000
taskset -p 1 $agent > /out/moved && kill -STOP $agent && kill -CONT $agent || exit
usleep 250000
/hog 1 50 7
wait $agent
true
"""


@pytest.fixture(scope="module")
def guest_probe_cpus(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    if kernel_catalogue.cached_kernel(kernel_catalogue.catalogue_entry(NAME)) is None:
        pytest.skip(f"{NAME} is not in the cache: rtproof lab kernels fetch {NAME}")
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    hog = tmp_path_factory.mktemp("hog") / "hog"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", hog, HOG], check=True)
    return probe_guest.run(NAME, SCRIPT_PROBE_CPUS, tmp_path_factory, 2, ("/hog", hog))


def test_a_thread_of_ours_has_three_stages_on_each_cpu(guest_probe_cpus: Guest) -> None:
    record = guest_probe_cpus.record("user")
    assert [(s.thread, s.cpu, s.field) for s in record.series] == [
        (cpu, cpu, stage) for cpu in (0, 1) for stage in ("irq", "thread", "user")
    ]
    assert record.end is not None
    assert [total.obtained + total.missed + total.lost for total in record.end.totals] == [500] * 6
    for thread in (0, 1):
        irq, woken, back = (
            [value for block in record.blocks(s.id) for value in block.values.tolist()]
            for s in record.series
            if s.thread == thread
        )
        assert all(a <= b <= c for a, b, c in zip(irq, woken, back, strict=True))


def test_a_loop_that_stands_still_is_an_event(guest_probe_cpus: Guest) -> None:
    """Since when: within the 50 ms in which the module gathers what it hands out."""
    record = guest_probe_cpus.record("stalled")
    assert record.end is not None
    (since_ns,) = (ns for ns in map(stalled_since_ns, record.events) if ns is not None)
    (total,) = record.end.totals
    assert 0 < total.obtained < 100
    assert since_ns == total.obtained * 10_000_000
