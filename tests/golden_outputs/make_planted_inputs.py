# SPDX-License-Identifier: Apache-2.0
"""Inputs of the golden corpus against which something is to be said: doubts, objections and causes; see make_inputs."""

from dataclasses import replace
from pathlib import Path

import audit_systems
import doubt_cases
import explain_cases
import numpy as np
import report_cases
import stage_records
import system_records
from analysis_records import MS, SECOND, SERIES, block, fact, file, record
from store_inputs import WANTED, run_profile, store, store_run

from rtproof.explain.trace_events import BH_OFF, HARDIRQ, IRQS_OFF, NMI
from rtproof.record.contents import (
    WHOLE_RUN,
    Condition,
    Conditions,
    Counter,
    Deviation,
    EndReason,
    Event,
    Int64Array,
    Moment,
)
from rtproof.record.run_folder import RequirementInfo


def planted_conditions(place: Path) -> None:
    """Threads that were moved, changed, traced, stopped and made to wait, on a clock that was slewed."""
    pair = (SERIES, replace(SERIES, id=1, thread=1, cpu=3))
    late = [9_000] * 3_000
    late[1_000] = 50 * MS
    told: doubt_cases.Changes = {
        ("link_bytes", Moment.END): "30000",
        ("link_wakeups", Moment.END): "12",
        ("link_cpu_ns", Moment.END): "2000000",
        ("link_cpus", Moment.END): "2",
        ("link_device", Moment.END): "veth0",
        ("trace_refused", Moment.ASKED): "tracefs is not mounted",
    }
    of_threads = (
        fact("migrations", 3, Moment.END, 1),
        fact("tracer", "4711 strace", Moment.START, 0),
        fact("io_calls", 17, Moment.END, 1),
        fact("policy", "fifo", Moment.START, 1),
    )
    listed = ("50 100 FF 90 0 900000 0-3 urgent\n", "50 100 FF 90 0 1900000 0-3 urgent\n")
    files = tuple(
        file("rt-threads", text, moment) for text, moment in zip(listed, (Moment.START, Moment.END), strict=True)
    )
    dropped = "series=0 first_index=100 samples=50 from_ns=100000000 to_ns=150000000"
    events = (
        Event(1_060 * MS, WHOLE_RUN, "continued", ""),
        Event(SECOND, 0, "policy_changed", "other"),
        Event(SECOND, WHOLE_RUN, "dropped", ""),
        Event(SECOND, 0, "budget", "used all of its CPU for 100 ms"),
        Event(2 * SECOND, WHOLE_RUN, "samples_dropped", dropped),
        Event(2 * SECOND, WHOLE_RUN, "kernel", "BUG: scheduling while atomic: swapper/0/0/0x00010000"),
        Event(
            2 * SECOND, WHOLE_RUN, "kernel", "clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable"
        ),
    )
    counter = Counter(9, False, "clock.raw", "ns", seconds(0, 1, 2), np.array([0, -900_000, -1_800_000], np.int64))
    made = replace(
        record([block(late if each.id == 0 else [9_000] * 3_000, series=each) for each in pair], pair),
        facts=(*doubt_cases.facts(told), *of_threads),
        files=(
            *doubt_cases.files({}),
            *files,
            file("threads", "PID TID CLS RTPRIO NICE PSR COMM\n50 100 FF 90 - 1 urgent\n"),
        ),
        events=events,
        counters=(counter,),
        conditions={
            0: noted(0, CPU=400, POLICY=3, PRIORITY=2),
            1: noted(1, AFFINITY=2, delay_ns=200 * MS, switches=40),
        },
        size=1000,
    )
    store_run(place / "doubted-conditions", made, replace_gap(WANTED, MS))


def seconds(*numbers: int) -> Int64Array:
    return np.array(numbers, np.int64) * SECOND


def replace_gap(wanted: RequirementInfo, gap_ns: int) -> RequirementInfo:
    fields = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    return RequirementInfo(**{**fields, "gap_ns": gap_ns})


def noted(thread: int, **found: int) -> Conditions:
    """What a thread noted in each of three seconds, and what it saw instead. found: how often, by name."""

    def each(number: int) -> Int64Array:
        return np.full(3, number, np.int64)

    seen = dict(zip(Condition, ("1", "other", "1", "0-3"), strict=True))
    deviations = [Deviation(kind, 3 * found[kind.name], text) for kind, text in seen.items() if kind.name in found]
    wrong = [each(found.get(kind, 0)) for kind in ("POLICY", "PRIORITY", "AFFINITY")]
    waited = each(found.get("delay_ns", 0)), each(found.get("switches", 0))
    noted_ones = each(1_000), each(found.get("CPU", 0)), each(10)
    return Conditions(thread, seconds(1, 2, 3), *noted_ones, wrong[0], wrong[1], wrong[2], *waited, tuple(deviations))


def planted_loads(place: Path) -> None:
    """Loads that died, rested, paused, began late, strayed and did little; in virtual time, one that was not steady."""
    times = seconds(0, 1, 2, 3)
    works = {
        "dead": (0, 0, 0, 0), "late": (0, 0, 90, 180), "paused": (0, 50, 50, 90), "mmap": (0, 40, 80, 120),
        "slight": (0, 10, 20, 30),
    }  # fmt: skip
    counters = tuple(
        Counter(at, True, f"load.{name}", "MiB", times, np.array(values, np.int64))
        for at, (name, values) in enumerate(works.items())
    )
    told = (
        fact("loads", "dead, late, paused, mmap, slight, gone"),
        fact("args", "run --load mmap:mib=64"),
        fact("load.mmap.parts", 4, Moment.END),
        fact("load.mmap.idle_parts", 1, Moment.END),
        fact("load.mmap.lack", "only 16 MiB are free", Moment.START),
        fact("load.mmap.strays", 2, Moment.END),
        replace(fact("load.slight.cpu_ms", 0, Moment.DURING), time_ns=0),
        replace(fact("load.slight.cpu_ms", 1, Moment.END), time_ns=3 * SECOND),
    )
    usual = [each for each in doubt_cases.facts({}) if each.key != "loads"]
    died = (Event(SECOND, WHOLE_RUN, "load_died", "dead: killed by signal 9"),)
    store(place / "doubted-loads.rtrec", doubt_cases.clean(facts=(*usual, *told), counters=counters, events=died))
    unsteady = replace(counters[3], value=np.array((0, 40, 80, 200), np.int64))
    virtual = fact("virtual_time", "QEMU, 1 ns an instruction", Moment.START)
    turns = (fact("turn_us", 200, Moment.START), fact("soakers", 2, Moment.START))
    shares = (
        fact("turn_us", 4, Moment.START),
        fact("soakers", 2, Moment.START),
        fact("cpu_shares", "0.667 0.333", Moment.START),
    )
    online = (*doubt_cases.files({}), file("/sys/devices/system/cpu/online", "0-1\n"))
    for name, some in (("long-turns", turns), ("turns", shares)):
        made = doubt_cases.clean(
            facts=(*usual, fact("loads", "mmap"), virtual, *some), files=online, counters=(unsteady,)
        )
        store(place / f"virtual-{name}.rtrec", made)


def busy_guest(place: Path) -> None:
    """A virtual machine with a FIFO thread above, and loads that began late, faded, did little and had an idle part."""
    times = seconds(*range(7))
    works = {
        "late": (0, 0, 90, 180, 270, 360, 450),
        "faded": (0, 2_477, 3_763, 3_858, 3_953, 4_048, 4_143),
        "half": (0, 40, 80, 120, 160, 200, 240),
        "slight": (0, 10, 20, 30, 40, 50, 60),
    }
    counters = tuple(
        Counter(at, True, f"load.{name}", "MiB", times, np.array(values, np.int64))
        for at, (name, values) in enumerate(works.items())
    )
    told = (
        fact("loads", "late, faded, half, slight"),
        fact("load.half.parts", 4, Moment.END),
        fact("load.half.idle_parts", 1, Moment.END),
        replace(fact("load.slight.cpu_ms", 0, Moment.DURING), time_ns=0),
        replace(fact("load.slight.cpu_ms", 1, Moment.END), time_ns=6 * SECOND),
    )
    stolen = "cpu  9 0 9 99 0 0 0 9 0 0\ncpu0 9 0 9 99 0 0 0 9 0 0\n"
    hog = "PID TID CLS RTPRIO PSR RUN_NS CPUS COMM\n50 100 FF 90 0 {} 0-3 hog\n"
    more = (
        file("/proc/cpuinfo", "flags : fpu hypervisor\n"),
        file("/proc/stat", stolen, Moment.END),
        file("rt-threads", hog.format(900_000)),
        file("rt-threads", hog.format(1_900_000), Moment.END),
    )
    usual = [each for each in doubt_cases.facts({}) if each.key != "loads"]
    kept = [
        each for each in doubt_cases.files({}) if (each.path, each.moment) not in {(m.path, m.moment) for m in more}
    ]
    made = doubt_cases.clean(facts=(*usual, *told), files=(*kept, *more), counters=counters)
    store(place / "busy-guest.rtrec", made)


def planted_ends(place: Path) -> None:
    """Runs that ended in other ways than asked, and threads without a real-time policy."""
    whole = doubt_cases.clean()
    assert whole.end
    for reason in (EndReason.INTERRUPTED, EndReason.ERROR, EndReason.GUARD, EndReason.LOAD_DIED):
        end = replace(whole.end, reason=reason, text="a reason")
        store(place / f"ended-{reason.name.lower().replace('_', '-')}.rtrec", replace(whole, end=end))
    reached = (Event(2 * SECOND, WHOLE_RUN, "limit", "thread 0 was 612 us late"),)
    store(place / "ended-at-limit.rtrec", replace(whole, events=reached))
    plain: doubt_cases.Changes = {("allow_unprivileged", Moment.ASKED): "yes"}
    plain = {**plain, **{("policy", moment): "other" for moment in (Moment.START, Moment.END)}}
    nices = tuple(fact("nice", number, Moment.DURING, 0) for number in (0, 5))
    store(place / "unprivileged.rtrec", replace(whole, facts=(*doubt_cases.facts(plain), *nices)))
    nice = {("policy", moment): "other" for moment in Moment}
    store(place / "nice.rtrec", replace(whole, facts=(*doubt_cases.facts(nice), nices[1])))
    stops = [9_000] * 3_000
    for at in (500, 1_500, 2_500):
        stops[at : at + 50] = [(50 - number) * MS for number in range(50)]
    store(place / "budget-stops.rtrec", doubt_cases.clean((block(stops),)))
    store(place / "late-start.rtrec", doubt_cases.clean((block([9_000] * 2_997, first_index=3),)))
    mixed = stage_records.staged({"irq": [5_000] * 1_000, "task": [4_000] * 500 + [9_000] * 400})
    store(place / "stages-mixed.rtrec", mixed)
    built = system_records.config("CONFIG_XENOMAI=y\n")
    store(place / "core-unseen.rtrec", replace(whole, files=(*whole.files, built, *system_records.NO_COKERNEL)))
    pair = [replace(SERIES, id=at, thread=at, cpu=1) for at in range(2)]
    crowded = record([block([9_000] * 1_000, series=each) for each in pair], pair, facts=doubt_cases.facts({}))
    online = file("/sys/devices/system/cpu/online", "0-3\n")
    store(place / "two-on-one-cpu.rtrec", replace(crowded, files=(*doubt_cases.files({}), online)))


def planted_article(place: Path) -> None:
    """A profile beside an article whose rows contradict themselves."""
    run_profile(place, "campaign-with-objections", "planted_profile.toml")


def article_that_concludes(place: Path) -> None:
    """A profile beside an article whose figures bear its conclusions out or contradict them."""
    run_profile(place, "campaign-with-conclusions", "conclusions_profile.toml")


def coincidence(place: Path) -> None:
    """Ten activations a second, one of 5 ms in each late second; an interrupt of the same CPU moves there too.

    The thread waited 4 ms for a CPU in these, and 1 ms in any other.
    """
    late, count = (3, 9, 14, 22), 30
    series = replace(SERIES, period_ns=100 * MS, first_due_ns=0, cpu=2)
    values = np.full(count * 10, 20_000)
    values[[10 * at + 5 for at in late]] = 5 * MS
    random = np.random.default_rng(0)
    rises = {
        "interrupts.36.cpu2": [900 if at in late else 0 for at in range(count)],
        "interrupts.LOC.cpu2": random.integers(0, 1_000, count).tolist(),
        "interrupts.36.cpu1": [900 if at in late else 0 for at in range(count)],
    }
    times = seconds(*range(count + 1))
    counters = [
        Counter(number, True, name, "things", times, np.cumsum([0, *rise]))
        for number, (name, rise) in enumerate(rises.items())
    ]
    heat = np.array([40_000 + 9_000 * (at - 1 in late) for at in range(count + 1)])
    counters.append(Counter(9, False, "temperature.0", "m°C", times, heat))
    waited = np.array([4 * MS if at in late else MS for at in range(count)])
    nothing = np.zeros(count, np.int64)
    conditions = Conditions(0, times[1:] + 3 * MS, *(nothing,) * 6, waited, nothing)
    lines = file(
        "/proc/interrupts", "   CPU0  CPU1\n 36:  9  0  PCI-MSIX-0000:00:02.0  1-edge  eth7\nLOC:  5  6  Local\n"
    )
    made = record([block(values.tolist(), series=series)], (series,), counters=tuple(counters))
    store(place / "coincidence.rtrec", replace(made, conditions={0: conditions}, files=(lines,)), (MS,))


def in_band(place: Path) -> None:
    """Linux beside Xenomai: its thread alone, and with tasks of the co-kernel and mode switches."""
    version = (file("/proc/xenomai/version", "3.2.1\n"), system_records.missing("/proc/xenomai", 21))
    whole = doubt_cases.clean()
    facts = (*whole.facts, fact("agent_pid", 817, Moment.START))
    alone = replace(whole, files=(*whole.files, *version), facts=facts)
    store(place / "in-band.rtrec", alone, (500_000,))
    head = "CPU  PID    CLASS  TYPE      PRI   TIMEOUT       STAT       NAME\n"
    threads = f"{head}  2  900    rt     cobalt     98   -             W          sampler\n"
    tasks = (
        file("/proc/xenomai/sched/threads", threads),
        file("/proc/xenomai/sched/stat", system_records.XENOMAI_3.format(3)),
        file("/proc/xenomai/sched/stat", system_records.XENOMAI_3.format(90), Moment.END),
    )
    store(place / "in-band-tasks.rtrec", replace(alone, files=(*alone.files, *tasks)))


def causes(place: Path) -> None:
    """For each cause the events of one late activation that show it."""
    explain_cases.SYSTEMS.update(
        irq_disable="preemptirq", irq_enable="preemptirq", nmi_handler="nmi", page_fault_user="exceptions",
        sched_migrate_task="sched", sys_enter="raw_syscalls", signal_deliver="signal", rss_stat="kmem",
    )  # fmt: skip
    begun = explain_cases.begun
    eth0 = begun().hard(-5_000, "irq_vectors/irq_work_entry").hard(200_000, "irq_vectors/irq_work_exit")
    eth0.hard(201_000, "irq_handler_entry", irq=9, name="eth0").hard(250_000, "irq_handler_exit", irq=9).timer(252_000)
    other = begun().hard(1_000, "irq_vectors/local_timer_entry")
    other.hard(2_000, "hrtimer_expire_entry", hrtimer=explain_cases.OTHER_TIMER, function=7)
    other.hard(152_000, "hrtimer_expire_exit", hrtimer=explain_cases.OTHER_TIMER)
    other.hard(153_000, "hrtimer_expire_entry", hrtimer=1, function=1).waking(154_000, HARDIRQ)
    other.hard(155_000, "hrtimer_expire_exit", hrtimer=1).hard(187_000, "irq_vectors/local_timer_exit")
    moved = begun(0, task=0).timer(1_000, depth=1)
    moved.add(50_000, "sched_migrate_task", IRQS_OFF, pid=explain_cases.VICTIM, orig_cpu=0, dest_cpu=1)
    there = explain_cases.Cpu(1, explain_cases.HOG).add(-9_000, "hrtimer_start").switch(-5_000, explain_cases.OTHER)
    blocked = begun().timer(1_000).to_victim(7_000).switch(50_000, explain_cases.HOG, state=2)
    fault = (
        begun()
        .timer(1_000)
        .to_victim(7_000)
        .add(9_000, "sys_exit")
        .add(12_000, "page_fault_user")
        .add(62_000, "sys_exit")
    )
    told = begun().timer(1_000).to_victim(7_000).add(9_000, "sys_exit", id=230).add(10_000, "sys_enter", id=1)
    told.add(11_000, "sys_exit", id=1).add(12_000, "page_fault_user").add(15_000, "rss_stat")
    calls = told.add(20_000, "sys_enter", id=0).add(62_000, "sys_exit", id=0)
    calls.add(64_000, "signal_deliver", sig=14, sa_handler=4096).add(76_000, "sys_enter", id=15)
    slack = explain_cases.Cpu(0, explain_cases.VICTIM)
    slack.add(-600_000, "hrtimer_start", hrtimer=explain_cases.OWN_TIMER, softexpires=1_000_000, expires=1_050_000)
    nmi = begun().hard(150_000, "nmi_handler", NMI, handler=5, delta_ns=90_000).timer(200_000)
    off = begun().add(-10_000, "irq_disable").add(200_000, "irq_enable").timer(300_000)
    busy = explain_cases.Cpu(0, explain_cases.HOG).timer(-400_000).to_victim(-390_000).add(50_000, "hrtimer_start")
    silent = explain_cases.Cpu(1, explain_cases.OTHER)
    for time_ns in range(-900_000, 5_000_000, 10_000):
        if not 0 < time_ns < 300_000:
            silent.add(time_ns, "hrtimer_start")
    cases: dict[str, tuple[int, tuple[explain_cases.Cpu, ...]]] = {
        "late-timer": (310_000, (begun().add(100_000, "hrtimer_start").timer(300_000).to_victim(308_000),)),
        "hardirq": (265_000, (eth0.to_victim(260_000),)),
        "other-timers": (190_000, (other.to_victim(189_000),)),
        "preemptoff": (320_000, (begun().timer(1_000, 1).to_victim(315_000),)),
        "softirqs-off": (320_000, (begun().timer(1_000, 0, BH_OFF).to_victim(315_000),)),
        "no-preemption-point": (320_000, (begun().timer(1_000).to_victim(315_000),)),
        "throttled": (505_000, (begun().timer(1_000).switch(101_000, explain_cases.OTHER).to_victim(501_000),)),
        "idle-exit": (310_000, (begun(task=0).timer(300_000, depth=1).to_victim(308_000),)),
        "migration": (95_000, (moved, there.switch(60_000, 0).to_victim(90_000))),
        "blocked": (110_000, (blocked.waking(90_000).to_victim(105_000),)),
        "page-fault": (80_000, (fault.switch(90_000, explain_cases.HOG, state=1),)),
        "system-call": (80_000, (calls.switch(90_000, explain_cases.HOG, state=1),)),
        "timer-slack": (70_000, (slack.switch(-500_000, 0, state=1).timer(55_000, depth=1).to_victim(65_000),)),
        "machine": (310_000, (begun().timer(300_000).to_victim(308_000), silent)),
        "nmi": (210_000, (nmi.to_victim(206_000),)),
        "irqoff": (310_000, (off.to_victim(308_000),)),
        "own-previous": (60_000, (busy.switch(100_000, explain_cases.HOG, state=1),)),
    }
    for name, (latency_ns, cpus) in cases.items():
        made = explain_cases.traced_run([latency_ns], *cpus)
        plain = replace(made.begin, kernel_version="#1 SMP")
        without_rt = name in ("softirqs-off", "no-preemption-point")
        store(place / f"cause-{name}.rtrec", replace(made, begin=plain) if without_rt else made)


def waiting_chain(place: Path) -> None:
    """A thread waits for one that another one keeps from the CPU, and that sleeps then."""
    holder, hog = explain_cases.HOG, explain_cases.OTHER
    cpu = explain_cases.begun().timer(1_000).to_victim(7_000).switch(10_000, holder, state=2)
    cpu.switch(20_000, hog, 50).switch(220_000, holder, state=1).switch(230_000, 0, state=1)
    cpu.timer_wakes(310_000, holder, explain_cases.WAKES).switch(313_000, holder).waking(330_000).to_victim(335_000)
    names = f"{explain_cases.WAKES:x} t {explain_cases.FUNCTIONS[explain_cases.WAKES]}\n"
    store(place / "waiting-chain.rtrec", explain_cases.traced_run([340_000], cpu, kallsyms=names))


IPC_ACCOUNT = """\
sender_cpu 3
sender_policy fifo
sender_priority 80
posts 1020
answered 1019
skipped 2
sender_latest_ns 1234567
"""
APP_ACCOUNT = "loops 1000\nslept 1000\nshifted 2\npulses_work 998\nprimes 78498\nsensed 21500\n"


def accounts(place: Path) -> None:
    """What probes tell of themselves, and runs that were traced by turns or hold the facts for an audit."""
    pair = [replace(SERIES, id=at, thread=at, cpu=at + 2, probe="ipc", method="pipe") for at in range(2)]
    posted = record([block([5_000 + at for at in range(1_000)], series=each) for each in pair], pair)
    told = tuple(file(f"ipc/thread{at}", IPC_ACCOUNT, Moment.END) for at in range(2))
    store(place / "ipc.rtrec", replace(posted, files=told))
    application = report_cases.application().record
    told = (*application.files, file("app/thread0", APP_ACCOUNT, Moment.END))
    store(place / "application.rtrec", replace(application, files=told), (500_000,))
    system = audit_systems.stored_record("debian-6.12")
    whole = doubt_cases.clean()
    mine = [each for each in doubt_cases.files({}) if each.path not in {one.path for one in system.files}]
    store_run(place / "run-with-facts", replace(whole, files=(*system.files, *mine), begin=system.begin), WANTED)
    _traced_by_turns(place / "traced-by-turns.rtrec")


def _traced_by_turns(path: Path, blocks: int = 40, each: int = 100) -> None:
    """Latencies that are 2 us larger in blocks with tracing. Chance gives the order of each four blocks."""
    random = np.random.default_rng(1)
    on = [(at % 4 in (1, 2)) == bool(np.random.default_rng((1, at // 4)).integers(2)) for at in range(blocks)]
    values = 5_000 + random.gamma(2, 1_000, blocks * each) + 2_000 * np.repeat(on, each)
    events = tuple(
        Event(at * each * MS + MS, WHOLE_RUN, "trace_on" if traced else "trace_off", f"block={at}; took_ns={MS}")
        for at, traced in enumerate(on)
    )
    facts = (fact("trace_blocks_ns", each * MS),)
    store(path, record([block(values.astype(np.int64))], facts=facts, events=events))
