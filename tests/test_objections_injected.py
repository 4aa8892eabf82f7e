# SPDX-License-Identifier: Apache-2.0
"""Measured runs: a defect put into a sound record is objected to by its own name, and sound records never are."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, block, fact, file, record
from doubt_cases import FACTS, FILES, OF_A_THREAD

from rtproof import articles
from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import ResultClaim, claim_of
from rtproof.record.contents import WHOLE_RUN, Counter, Event, Fact, Int64Array, Moment, Record

SOUND = 120
"""Random sound records, whose false alarms are counted."""
ONLINE = "/sys/devices/system/cpu/online"
LOADAVG = "/proc/loadavg"


def drawn(random: np.random.Generator, n: int) -> Int64Array:
    """Latencies as of a disturbed system: most near each other, and a tail that ends below a period."""
    low = random.integers(500, 50_000)
    tail = (random.pareto(random.uniform(1.2, 4), n) * random.integers(1, 20_000)).astype(np.int64)
    early = -int(random.integers(0, 3_000))
    latencies: Int64Array = np.clip(low + random.normal(0, low / 20, n).astype(np.int64) + tail, early, 900_000)
    return latencies


def facts(cpus: tuple[int, ...], length_ns: int, changes: Mapping[str, str]) -> Iterator[Fact]:
    """Of a run with threads on these CPUs, thread 0 with some changed at its end."""
    asked = {"duration_ns": str(length_ns), "loads": "cpu"}
    for (key, moment), text in FACTS.items():
        if key not in OF_A_THREAD or moment is Moment.ASKED:
            yield fact(key, asked.get(key, text), moment)
            continue
        for thread, cpu in enumerate(cpus):
            told = str(cpu) if key == "cpu" else text
            yield fact(key, changes.get(key, told) if (thread, moment) == (0, Moment.END) else told, moment, thread)


Shaped = Callable[[Int64Array], tuple[list[int], dict[int, int]]]


@dataclass(frozen=True)
class Run:
    """What is told of a sound run of one to four threads on four CPUs with a load, or what is wrong with it.

    values: of thread 0, with the gaps behind them. of_a_thread: facts of thread 0 at the end. rounds: of the load each
    second. cpus: where threads ran; several on one are as many threads. events: what happened.
    """

    values: Shaped | None = None
    of_a_thread: Mapping[str, str] = field(default_factory=dict)
    loadavg: str = "1.00 0.90 0.80 1/99 1"
    rounds: int = 1_000
    cpus: tuple[int, ...] = (0, 1, 2, 3)
    events: tuple[Event, ...] = ()


def run(seed: int, said: Run = Run()) -> Record:
    """Some seconds of it, with random latencies."""
    random = np.random.default_rng(seed)
    n, shared = int(random.integers(1_000, 2_500)), len(set(said.cpus)) < len(said.cpus)
    threads = len(said.cpus) if shared else int(random.integers(1, 5))
    series = [replace(SERIES, id=at, thread=at, cpu=said.cpus[at]) for at in range(threads)]
    latencies = [drawn(random, n) for _ in series]
    plain: list[tuple[list[int], dict[int, int]]] = [(each.tolist(), {}) for each in latencies]
    if said.values:
        plain[0] = said.values(latencies[0])
    work = np.arange(3) * SECOND
    told = [file(path, content, moment) for (path, moment), content in FILES.items()]
    return record(
        [block(*each, series=one) for each, one in zip(plain, series, strict=True)],
        series,
        facts=tuple(facts(said.cpus[:threads], n * MS, said.of_a_thread)),
        files=(*told, file(ONLINE, "0-3"), file(LOADAVG, said.loadavg, Moment.END)),
        counters=(Counter(0, True, "load.cpu", "rounds", work, work // SECOND * said.rounds),),
        events=said.events,
        size=1000,
    )


def claim(made: Record, name: str = "run", group: str = "") -> ResultClaim:
    return claim_of(analyse(made, workers=1), name, group)


def codes(*claims: ResultClaim) -> set[str]:
    return {each.code for each in doubts_about_rows(claims)}


def test_no_sound_record_is_objected_to() -> None:
    """Alone or beside one that was loaded alike."""
    claims = [claim(run(seed), str(seed), "g") for seed in range(SOUND)]
    alarms = [found.whole for each in claims for found in doubts_about_rows([each])]
    assert (len(alarms), SOUND) == (0, SOUND), alarms[:3]
    assert doubts_about_rows(claims) == ()


def gaps(values: Int64Array) -> tuple[list[int], dict[int, int]]:
    """Every fourth period never ran."""
    some = values[: values.size * 3 // 4]
    return some.tolist(), dict.fromkeys(range(2, some.size, 3), 1)


def crowd(values: Int64Array) -> tuple[list[int], dict[int, int]]:
    """Two clocks: more activations than the time has room for."""
    return [*values.tolist(), *values[: values.size // 10].tolist()], {}


def ticks(values: Int64Array) -> tuple[list[int], dict[int, int]]:
    """A timer of 250 Hz: late by anything up to a tick of four periods."""
    return [(3 - at % 4) * MS + 2_000 for at in range(values.size)], {}


def lattice(values: Int64Array) -> tuple[list[int], dict[int, int]]:
    """A clock of 32,768 Hz."""
    return (np.arange(values.size) % 25 * 30_518 + 5).tolist(), {}


def log(line: str) -> Run:
    return Run(events=(Event(SECOND, WHOLE_RUN, "kernel", line),))


DEFECTS: dict[str, list[Run]] = {
    "samples-missing": [Run(gaps)],
    "samples-surplus": [Run(crowd)],
    "granularity": [Run(ticks), Run(lattice)],
    "placement": [Run(cpus=(1, 1)), Run(cpus=(0, 2, 2, 3))],
    "cpu": [Run(of_a_thread={"cpu": "3"})],
    "policy": [Run(of_a_thread={"policy": "other"})],
    "priority": [Run(of_a_thread={"priority": "1"})],
    "page-faults": [Run(of_a_thread={"minor_faults": "3"}), Run(of_a_thread={"major_faults": "1"})],
    "throttled": [log("sched: RT throttling activated"), log("CPU0: Core temperature above threshold")],
    "clock-changed": [log("clocksource: Switched to clocksource hpet")],
    "kernel-log": [
        log("BUG: scheduling while atomic: swapper/0/0/0x00010000"),
        log("INFO: task kworker/0:1:12 blocked for more than 120 seconds."),
        log("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!"),
    ],
    "load-died": [Run(events=(Event(SECOND, WHOLE_RUN, "load_died", "cpu: killed by signal 9"),))],
}


@pytest.mark.parametrize(("code", "said"), [(code, each) for code, some in DEFECTS.items() for each in some])
def test_a_defect_is_objected_to_by_its_name_and_by_no_other(code: str, said: Run) -> None:
    for seed in range(4):
        assert codes(claim(run(seed, said))) == {code}, seed


def test_a_load_that_did_no_work_is_idle_and_unproven() -> None:
    assert codes(claim(run(0, Run(rounds=0)))) == {"load-idle", "load-unproven"}


@pytest.mark.parametrize(
    ("times", "done", "code"), [((), (), "load-unproven"), ((0, 1, 4), (0, 1_000, 1_000), "load-idle")]
)
def test_a_load_that_was_never_seen_to_work_or_stopped_is_objected_to(
    times: tuple[int, ...], done: tuple[int, ...], code: str
) -> None:
    made = run(5)
    (load,) = made.counters
    counters = (replace(load, time_ns=np.array(times) * SECOND, value=np.array(done)),) if times else ()
    assert codes(claim(replace(made, counters=counters))) == {code}


# Fed with the articles' published numbers, the engine objects to their known defects and to no sound row.


XENOMAI = tuple(f"xenomai-{board}-{stage}" for board in ("g20", "g45", "9263") for stage in ("user", "kernel", "irq"))
DEFECTS_ACCEPTANCE: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "bootlin": [
        ("samples-missing", ("timer-g20-plain-posix-timer",)),
        ("samples-missing", ("timer-g45-plain-posix-timer",)),
        ("samples-surplus", ("xenomai-g45-user",)),
        ("granularity", ("timer-g45-rt-setitimer",)),
        ("load-unproven", XENOMAI),
        ("command", ("timer-g20-rt-clock-nanosleep",)),
        ("command", tuple(f"timer-{row}-posix-timer" for row in ("g20-rt", "g20-plain", "g45-rt", "g45-plain"))),
        ("command", ("timer-g20-rt-nanosleep", "timer-g45-rt-nanosleep")),
        ("command", ("timer-g45-rt-setitimer",)),
        ("unlike", ("gpio-g45-rt", "gpio-g45-plain")),
        ("unlike", ("timer-g45-rt-posix-timer", "timer-g45-plain-posix-timer")),
    ],
    "ten-ms": [("zero-is-no-bound", ("fifo-stress",))],
    "simple-rt-app": [("sums", ("rt",))],
    "toradex": [
        ("samples-missing", ("vybrid-voluntary",)),
        ("unequal-load", ("vybrid-voluntary", "vybrid-preempt", "vybrid-rt")),
    ],
    "akamina": [
        ("zero-is-no-bound", (f"{row}-{load}",)) for row in ("rtai", "lxrt") for load in ("unloaded", "loaded")
    ],
}


@pytest.mark.parametrize("name", articles.names())
def test_exactly_the_known_defects_are_objected_to(name: str) -> None:
    assert [
        (each.code, each.rows) for each in doubts_about_rows(articles.claims(articles.load(name)))
    ] == DEFECTS_ACCEPTANCE[name]


def test_an_unequal_length_is_told_with_what_the_shorter_run_bounds() -> None:
    """12 h beside 4 h: 4 h / -ln(0.05). The mean of three figures does not tell an even spread, so none is claimed."""
    told = [each.detail for each in doubts_about_rows(articles.claims(articles.load("bootlin")))]
    assert [each for each in told if "once per 1 h 21 min (95 %)" in each and "12 h; gpio-g45-plain: 4 h" in each]
    assert not [each for each in told if "evenly" in each]
