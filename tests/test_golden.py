# SPDX-License-Identifier: Apache-2.0
"""Records of every architecture: those kept in data/golden, and that all write the same bytes from the same input."""

import errno
import hashlib
import importlib.util
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recompute

from rtproof.agents import build
from rtproof.agents.architectures import ARCHITECTURES, Architecture, host_architecture
from rtproof.record.contents import WHOLE_RUN, EndReason, Event, Fact, Moment, Record, Series, SnapshotReason, View
from rtproof.record.reading import open_record
from rtproof.summary.kernel_trace import cpu_pages, page_layout
from rtproof.summary.per_second import stretches
from rtproof.summary.trace_pages import trace_pages

GOLDEN = Path(__file__).parent / "data" / "golden"
VECTORS = (GOLDEN / "vector.rtrec", GOLDEN / "vector-1.1.rtrec", GOLDEN / "vector-1.2.rtrec")
"""Of each version of the format what agent/tests/test_vector.c wrote."""
PERIOD_NS = 1_000_000
VECTOR_UNITS = (
    "measure/capture",
    "measure/above_levels",
    "measure/ring",
    "measure/slice_summary",
    "record/bytes",
    "record/record",
    "system/sys",
    "system/text",
)
# QEMU's ti925t has no v5 instructions, but its `uname -m` speaks of a processor that has.
MACHINES_OF_QEMU = {"arm920t": ("armv5tel",)}

each_architecture = pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda arch: arch.name)
each_version = pytest.mark.parametrize(
    ("suffix", "minor"), [("", 0), ("-1.2", 2), ("-1.3", 3)], ids=["1.0", "1.2", "1.3"]
)
each_vector = pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)


@each_version
@each_architecture
def test_a_golden_record_reads_as_it_was_written(arch: Architecture, suffix: str, minor: int) -> None:
    record = open_record(GOLDEN / f"{arch.name}{suffix}.rtrec")
    assert record.damage == ()
    assert record.begin.machine in MACHINES_OF_QEMU.get(arch.name, arch.machines)
    assert (record.begin.major, record.begin.minor, record.begin.kernel_release) == (1, minor, "6.1.0")
    assert record.end is not None
    assert record.end.reason is EndReason.AS_ASKED
    assert [series.thread for series in record.series] == [0, 1]
    assert {total.obtained + total.missed for total in record.end.totals} == {200}
    recompute.check(record)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@each_architecture
def test_a_golden_record_keeps_what_is_above_limits(arch: Architecture, version: str) -> None:
    """Nothing is later than an hour, and everything than a nanosecond."""
    record = open_record(GOLDEN / f"{arch.name}-{version}.rtrec")
    assert record.end is not None
    assert record.fact("limits_ns") == "3600000000000,200000,1"
    for series, total in zip(record.series, record.end.totals, strict=True):
        never, _, always = record.levels[series.id]
        assert (never.second.size, never.index.size) == (0, 0)
        assert (int(always.ran.sum()), always.index.size) == (total.obtained, total.obtained)


@each_version
@each_architecture
def test_a_golden_record_keeps_its_evidence(arch: Architecture, suffix: str, minor: int) -> None:
    record = open_record(GOLDEN / f"{arch.name}{suffix}.rtrec")
    assert (record.fact("limits_ns") is None) == (minor < 2)
    assert record.fact("samples") == "200"
    assert [record.fact("policy", Moment.END, thread) for thread in (0, 1)] == ["other", "other"]
    assert [record.fact("affinity", Moment.START, thread) for thread in (0, 1)] == ["0", "1"]
    contents = {(file.path, file.moment): file.content for file in record.files if file.errno == 0}
    for moment in (Moment.START, Moment.END):
        assert contents["/proc/stat", moment] == b"cpu  1 0 2 3 0 0 0 0 0 0\nctxt 5\n"
    counters = {counter.name: counter for counter in record.counters}
    assert set(counters) == {"temperature.0", *(["clock.raw"] if minor >= 3 else [])}
    temperature = counters["temperature.0"]
    assert (temperature.unit, *set(temperature.value.tolist())) == ("millidegree", 42000)


@each_architecture
def test_a_golden_record_keeps_what_its_threads_noted(arch: Architecture) -> None:
    record = open_record(GOLDEN / f"{arch.name}-1.3.rtrec")
    assert (record.damage, record.begin.minor) == ((), 3)
    assert record.end is not None
    assert set(record.conditions) == {0, 1}
    for thread, total in zip((0, 1), record.end.totals, strict=True):
        noted = record.conditions[thread]
        every = record.fact("cpu_checks", Moment.START, thread) == "every activation"
        assert noted.noted.sum() == (total.obtained if every else noted.checks.sum())
        assert noted.checks.sum() >= total.obtained // 100  # 99 activations lie between two at most
        assert noted.deviations == ()
    assert "clock.raw" in {counter.name for counter in record.counters}
    recompute.check(record)


def random_bits(state: int) -> tuple[int, int]:
    """The generator of agent/tests/check.h: its next state and number."""
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return state, state ^ state >> 32


def vector_values(by_period: bool, seed: int) -> Iterator[int]:
    """What agent/tests/test_vector.c feeds into a series."""
    state = seed
    for i in range(6000):
        state, first = random_bits(state)
        state, second = random_bits(state)
        low, high = (first >> 16) % 20_000, (second >> 16) % 50_000_000
        if by_period and i % 1503 == 1502:
            yield 2**58 - 1 if i % 2 else -(2**58)
        elif i % 1009 == 1008:
            yield PERIOD_NS + high
        else:
            yield -low if i % 97 == 96 else 40_000 + low


@each_vector
def test_the_vector_holds_what_was_put_in(path: Path) -> None:
    record = open_record(path)
    assert record.damage == ()
    assert [flags(series) for series in record.series[:3]] == ["cpu -1 grid", "cpu 1", "cpu 2 grid no samples"]
    assert [flags(series) for series in record.series[3:]] == ["cpu 3 external loop", "cpu 4 grid"][
        : record.begin.minor
    ]
    for series in record.series:
        values = recompute.ran(record, series).value if series.has_samples else ()
        expected = np.fromiter(vector_values(series.by_period, series.id), np.int64)
        assert np.array_equal(values, expected if series.has_samples else ())
    check_the_rest(record)


def flags(series: Series) -> str:
    words = {"grid": series.on_grid, "external": series.external, "loop": series.loop, "chained": series.chained}
    told = [word for word, holds in {**words, "no samples": not series.has_samples}.items() if holds]
    return " ".join([f"cpu {series.cpu}", *told])


def check_the_rest(record: Record) -> None:
    assert record.begin.run_id == b"0123456789abcdef"
    assert record.begin.origin_realtime_ns == 1_600_000_000_123_456_789
    assert record.facts == (Fact(-5, WHOLE_RUN, Moment.ASKED, "period_ns", "1000000"),)
    assert [(file.errno, file.content) for file in record.files] == [(2, b"")]
    assert record.counters[0].value.tolist() == [0, 1, 4]
    assert record.events == (Event(9_000_000_000, 1, "kernel", "café"),)
    assert record.end is not None
    lost = [1 + 2] * len(record.series[:4]) + [1 + 2 + 60_000] * len(record.series[4:])
    assert [(one.obtained, one.lost) for one in record.end.totals] == [(6000, n) for n in lost]


@pytest.mark.parametrize(("name", "minor", "blocks"), [("timerlat", 0, 4), ("timerlat-1.1", 1, 1)])
def test_due_times_from_outside_are_read_as_the_version_has_them(name: str, minor: int, blocks: int) -> None:
    """Either way they are those of the tracer, which keeps its period; the first version needs more blocks for that."""
    record = open_record(GOLDEN / f"{name}.rtrec")
    assert (record.damage, record.begin.minor) == ((), minor)
    for series in record.series:
        assert flags(series) == f"cpu 0 external{'' if minor else ' chained'}"
        told = list(record.blocks(series.id))
        assert len(told) == blocks
        ((joined, _),) = stretches(series, told)
        due_ns = joined.due_ns
        assert due_ns.tolist() == recompute.ran(record, series).due_ns.tolist()
        off_ns = due_ns - due_ns[0] - np.arange(100) * series.period_ns
        assert (np.abs(off_ns) <= series.period_ns // 16).all()
    recompute.check(record)


@pytest.mark.parametrize(("minor", "kept", "before"), [(4, 4, 1), (5, 2, 0), (6, 1, 0)], ids=["1.4", "1.5", "1.6"])
def test_the_flight_recorders_windows_are_those_of_the_samples(minor: int, kept: int, before: int) -> None:
    """All above the limit but those that came before the trace; each with its page."""
    record = open_record(GOLDEN / f"recorder-1.{minor}.rtrec")
    assert (record.damage, record.begin.minor) == ((), minor)
    ran = recompute.ran(record, record.series[0])
    reasons = Counter(one.reason for one in record.snapshots)
    assert reasons == {SnapshotReason.THRESHOLD: kept, SnapshotReason.TOP: 3, SnapshotReason.ORDINARY: 2}
    late = {index for index, value in zip(ran.index.tolist(), ran.value.tolist(), strict=True) if value > 7_000}
    threshold = {one.index for one in record.snapshots if one.reason is SnapshotReason.THRESHOLD}
    assert late - threshold == set(sorted(late)[:before])
    layout = page_layout(record)
    stamps = {page.time_ns for page in trace_pages(cpu_pages(record, 0, layout), layout)}
    for one in record.snapshots:
        assert (one.value, one.due_ns) == (ran.value[one.index], ran.due_ns[one.index])
        assert (one.from_ns, one.to_ns) == (one.due_ns - 2 * PERIOD_NS, one.due_ns + one.value + PERIOD_NS)
        (pages,) = one.pages
        assert (pages.cpu, pages.whole) == (0, True)
        assert stamps.issuperset(pages.stamps)
        assert pages.stamps[0] <= record.begin.origin_monotonic_ns + one.from_ns
    recompute.check(record)


@each_vector
def test_the_vectors_summaries_are_those_of_its_samples(path: Path) -> None:
    record = open_record(path)
    for series in record.series:
        if not series.has_samples:
            continue
        samples = recompute.ran(record, series)
        recompute.check_slices(record, series, samples)
        recompute.check_seconds(record, series, samples)
        recompute.check_top(record, series, samples)
        recompute.check_totals(record, series, samples)
        recompute.check_levels(record, series, samples)


def test_the_vector_has_limits_and_a_learned_level() -> None:
    levels = open_record(VECTORS[-1]).levels[4]
    assert [(level.value, level.learned) for level in levels[:2]] == [(30_000_000, False), (59_000, False)]
    assert [(level.share, level.taught) for level in levels[2:]] == [(0.001, 5101)]
    assert levels[0].missed.sum() > 0
    assert levels[1].ran.sum() == levels[1].index.size > 256


@each_vector
def test_a_summary_without_samples_has_the_same_numbers(path: Path) -> None:
    record = open_record(path)
    slices = [one for one in record.slices if one.series == 2 and one.view is View.OBSERVED]
    values = np.fromiter(vector_values(True, 2), np.int64)
    edges = [0, 2000, 4000, 6000] if record.begin.minor < 2 else [0, 2000, 6000]
    assert len(slices) == len(edges) - 1
    for one, start, stop in zip(slices, edges[:-1], edges[1:], strict=True):
        recompute.check_numbers(one, values[start:stop])
    assert not list(record.blocks(2))


def compile_vector(arch: Architecture, place: Path) -> Path:
    compiler = build.choose_compiler(arch, "auto" if arch == host_architecture() else "zig")
    sources = [f"{name}.c" for name in ("tests/test_vector", *VECTOR_UNITS)]
    command = [*compiler.command, "@cflags", *sources, "@ldflags", "-o", str(place)]
    done = subprocess.run(command, cwd=build.source_dir(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


def runner(arch: Architecture) -> list[str]:
    if arch == host_architecture():
        return []
    program = shutil.which(f"{arch.qemu[0]}-static") or shutil.which(arch.qemu[0])
    if not program:
        pytest.skip(f"{arch.qemu[0]} is not installed (Debian: qemu-user-static)")
    return [program, *arch.qemu[1:]]


@each_architecture
def test_every_architecture_writes_the_same_bytes(arch: Architecture, tmp_path: Path) -> None:
    if arch != host_architecture() and not importlib.util.find_spec("ziglang"):
        pytest.skip("ziglang is not installed (extra cross)")
    written = tmp_path / "vector.rtrec"
    subprocess.run([*runner(arch), compile_vector(arch, tmp_path / "vector"), written], check=True)
    assert hashlib.sha256(written.read_bytes()).digest() == hashlib.sha256(VECTORS[-1].read_bytes()).digest()


@pytest.mark.parametrize("arch", ["ppc", "x86_64"])
def test_golden_facts_read_as_they_were_written(arch: str) -> None:
    record = open_record(GOLDEN / f"facts-1.7-{arch}.rtrec")
    assert record.damage == ()
    assert (record.begin.major, record.begin.minor, record.begin.kernel_release) == (1, 7, "6.1.0")
    assert record.end is not None
    assert (record.series, record.fact("collected")) == ((), "facts")
    texts = {(file.moment, file.path): file.content for file in record.files if not file.errno}
    assert texts[Moment.START, "/proc/stat"] == texts[Moment.END, "/proc/stat"] == b"cpu  1 0 2 3 0 0 0 0 0 0\nctxt 5\n"
    assert texts[Moment.START, "rt-permitted"] == b"yes\n"
    assert b"status 0x40\n" in texts[Moment.END, "clock-adjust"]
    errors = {file.path: file.errno for file in record.files if file.moment is Moment.START}
    assert errors["/proc/version"] == errno.ENOENT
