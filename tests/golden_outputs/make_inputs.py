# SPDX-License-Identifier: Apache-2.0
"""Makes the inputs of the golden corpus that are not copies.

``PYTHONPATH=tests python tests/golden_outputs/make_inputs.py FOLDER [FUNCTION...]``

It was run once, and what it wrote is stored in inputs/: no test runs it, so that a change of the code cannot change
the inputs in silence. It stays to say how they came about, and to make a further one.
"""

import gzip
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import analyses_by_verdict
import doubt_cases
import explain_cases
import export_cases
import make_planted_inputs
import numpy as np
import report_cases
import run_folders
import system_records
import trace_dat_cases
from analysis_records import BEGIN, MS, SECOND, SERIES, block, fact, record
from store_inputs import WANTED, run_profile, store, store_run

from rtproof.cli.main import main
from rtproof.record.contents import (
    Event,
    Moment,
)
from rtproof.record.run_folder import RequirementInfo

# The inputs.


def run_folders_by_verdict(place: Path) -> None:
    slow = RequirementInfo(limit_ns=500_000, at_most_ns=100 * SECOND, confidence=0.95, gap_ns=5 * SECOND)
    ten = RequirementInfo(limit_ns=500_000, at_most_ns=10 * SECOND, confidence=0.95, gap_ns=SECOND)
    low = RequirementInfo(limit_ns=1_000, at_most_ns=SECOND, confidence=0.95, gap_ns=SECOND)
    store_run(place / "proven", analyses_by_verdict.measured(), WANTED, note="before the change")
    store_run(place / "refuted", analyses_by_verdict.measured(0, 2_000, 4_000), slow)
    store_run(place / "undecided", analyses_by_verdict.measured(3_000), ten)
    store_run(place / "several-limits", analyses_by_verdict.measured(1_000, 5_000), WANTED, ten, low)
    store_run(place / "invalid", analyses_by_verdict.invalid().record, WANTED)
    store_run(place / "lost-values", analyses_by_verdict.lost_values().record, WANTED)
    store(place / "no-limit.rtrec", analyses_by_verdict.measured(2_500))
    plain, loose = (RequirementInfo(limit_ns=limit_ns, confidence=0.95) for limit_ns in (500_000, 2 * MS))
    store_run(place / "plain-held", analyses_by_verdict.measured(), plain)
    store_run(place / "plain-exceeded", analyses_by_verdict.measured(1_000, 2_000, 3_000, 5_000), plain)
    store_run(place / "plain-both", analyses_by_verdict.measured(1_000), loose, plain, slow)
    store_run(place / "plain-lost", analyses_by_verdict.lost_values().record, loose)
    store_run(place / "plain-invalid", analyses_by_verdict.invalid().record, plain)


def edited_limit(place: Path) -> None:
    """A run.json in which somebody changed 500 us to 1 ms."""
    made = analyses_by_verdict.measured(0, 2_000, 4_000)
    store_run(
        place / "edited-limit",
        replace(made, facts=(*made.facts, fact("limits_ns", 500_000))),
        RequirementInfo(limit_ns=MS, at_most_ns=SECOND, confidence=0.95, gap_ns=SECOND // 20),
    )


def records_of_every_shape(place: Path) -> None:
    names = (
        "missed one_sample negative all_equal wide nothing cut_off off_the_grid hostile summary_only "
        "several_fields several_summaries loop response normal"
    )
    for name in names.split():
        store(place / f"{name.replace('_', '-')}.rtrec", report_cases.CASES[name]().record, (500_000,))
    store(place / "many-threads.rtrec", report_cases.whole_record(threads=20, count=60), (500_000,))
    store(place / "two-threads-limits.rtrec", export_cases.small_record(), (1_000_000, 50_000))
    store(place / "board.rtrec", replace(system_records.TOLD, series=(SERIES,)))


def doubted_run(place: Path) -> None:
    """A run against which as much as possible is to be said."""
    changes: doubt_cases.Changes = {
        ("policy", Moment.END): "other",
        ("priority", Moment.START): "12",
        ("cpu", Moment.END): "3",
        ("memory_locked", Moment.START): "no: Operation not permitted",
        ("minor_faults", Moment.END): "41",
        ("major_faults", Moment.END): "3",
        ("clock_read_ns", Moment.START): "3100",
        ("loads", Moment.ASKED): "sched",
        ("dma_latency", Moment.START): "no: Permission denied",
        ("kmsg", Moment.START): "no: Permission denied",
        ("warmup_ns", Moment.ASKED): "0",
        ("cpu_time_ns", Moment.END): str(2_990 * MS),
        ("duration_ns", Moment.ASKED): str(60 * SECOND),
    }
    files = {
        (doubt_cases.CLOCK, Moment.END): "hpet\n",
        ("/proc/stat", Moment.END): "cpu  9 0 9 99 0 0 0 905 0 0\ncpu0 9 0 9 99 0 0 0 905 0 0\n",
    }
    events = (
        Event(SECOND, 0xFFFF, "kernel", "sched: RT throttling activated"),
        Event(2 * SECOND, 0xFFFF, "clock_stepped", "by 1 s"),
    )
    made = doubt_cases.clean(facts=doubt_cases.facts(changes), files=doubt_cases.files(files), events=events)
    store_run(place / "doubted", made, WANTED)


def traced_records(place: Path) -> None:
    """Late activations with the events of the kernel: an interrupt-off section with its stack, another thread, more."""
    stacked = explain_cases.begun().timer(
        300_000, stack=(explain_cases.RESTORE, explain_cases.HOLDS, explain_cases.CALLS)
    )
    kallsyms = "".join(f"{address:x} t {name}\n" for address, name in sorted(explain_cases.FUNCTIONS.items()))
    store(
        place / "explained-stacks.rtrec",
        explain_cases.traced_run([310_000], stacked.to_victim(308_000), kallsyms=kallsyms),
    )
    busy = explain_cases.begun().timer(1_000)
    busy.softirq(20_000, 3, 150_000).switch(160_000, explain_cases.OTHER, explain_cases.URGENT)
    busy.to_victim(260_000)
    store(place / "explained-urgent-thread.rtrec", explain_cases.traced_run([270_000], busy))
    slept = trace_dat_cases.traced(trace_dat_cases.sleeping((0, 0, 9_000, 0, 90_000, 0)))
    asked = (fact("probe", "foreign"), fact("probe_options", "thread=victim"))
    store(place / "foreign.rtrec", replace(slept, facts=asked, chunk_refs=(), series=()))
    (place / "sleeping.dat").write_bytes(trace_dat_cases.version_7(slept, "zlib"))


def simulated_runs(place: Path) -> None:
    """Run folders of the simulated target: a long one, and two sides in turn."""
    simulated = ["--target", "simulated", "--record", "summary", "--no-report", "--target-option", "episodes=600/h"]
    long_run = ["--duration", "8h", "--limit", "500us", "--at-most", "1/h"]
    assert main(["run", *simulated, *long_run, "-o", str(place / "eight-hours")]) == 0
    turns = ["--duration", "1min", "--abba", "", "--period 2ms", "--repeat", "5", "--order-seed", "7"]
    assert main(["run", *simulated, *turns, "-o", str(place / "abba")]) == 0


def summaries(place: Path) -> None:
    """Runs with the summary of their samples: a history whose latencies grow at run 15, and two sides in turn."""
    for number in range(24):
        _summary(place / "history" / f"run-{number:02}", number, factor=1.0 if number < 15 else 1.6)
    for number in range(5):
        _summary(place / "sides" / "rt" / f"run-{number}", 2 * number)
        _summary(place / "sides" / "stock" / f"run-{number}", 2 * number + 1, factor=2.0)


def _summary(folder: Path, day: int, factor: float = 1.0) -> None:
    values = run_folders.latencies(day, 3_000, factor * float(np.exp(0.03 * np.random.default_rng(day).normal())))
    series = replace(SERIES, has_samples=False)
    begin = replace(BEGIN, run_id=bytes([day, *range(15)]), origin_realtime_ns=(20_000 + day) * 86_400 * SECOND)
    folder.parent.mkdir(parents=True, exist_ok=True)
    store_run(folder, record([block(values.tolist(), series=series)], (series,), begin=begin))


def campaign(place: Path) -> None:
    """A profile of four cells: good, late, refused, dead; and the output of another tool beside them."""
    more = ("--set", "colour=red", "--given", "latency.txt", "--priority", "50")
    run_profile(place, "campaign", "campaign_profile.toml", *more)


def damaged_files(place: Path) -> None:
    """A record that was cut off, one with a wrong byte, and files that are none."""
    whole = (Path(__file__).parent.parent / "data" / "golden" / "x86_64-1.3.rtrec").read_bytes()
    (place / "torn.rtrec").write_bytes(whole[: len(whole) * 3 // 5])
    middle = len(whole) // 2
    (place / "flipped.rtrec").write_bytes(whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :])
    (place / "empty.rtrec").write_bytes(b"")
    (place / "unknown.bin").write_bytes(struct.pack("<64I", *range(64)))
    (place / "unknown.txt").write_text("Dear reader,\nthis is no measurement.\n")


MAKERS: tuple[Callable[[Path], None], ...] = (
    run_folders_by_verdict,
    edited_limit,
    records_of_every_shape,
    doubted_run,
    make_planted_inputs.planted_conditions,
    make_planted_inputs.planted_loads,
    make_planted_inputs.busy_guest,
    make_planted_inputs.planted_ends,
    make_planted_inputs.planted_article,
    make_planted_inputs.article_that_concludes,
    traced_records,
    make_planted_inputs.causes,
    make_planted_inputs.waiting_chain,
    make_planted_inputs.coincidence,
    make_planted_inputs.in_band,
    make_planted_inputs.accounts,
    simulated_runs,
    summaries,
    campaign,
    damaged_files,
)


def make(place: Path, wanted: Iterable[str] = ()) -> None:
    """Make all inputs, or those of some functions, in a new folder. Single records are packed."""
    place.mkdir(parents=True)
    for maker in MAKERS:
        if not set(wanted) or maker.__name__ in set(wanted):
            maker(place)
    for path in place.glob("*.rtrec"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2:])
