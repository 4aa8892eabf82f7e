# SPDX-License-Identifier: Apache-2.0
"""Torn and corrupted records: nothing but RecordError, and never a sample that was not measured."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases
import slow_verdict
from analysis_records import SERIES, block, record
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_verdict import TICK_NS

from rtproof.core.errors import RecordError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Verdict
from rtproof.record.chunks import CHUNK_HEADER, frame_bytes
from rtproof.record.contents import Block, End, EndReason, Record, Series
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement

SEEDS = 60
SERIES_BROKEN_RECORDS = (cases.ON_GRID, cases.OFF_GRID)
Corruption = Callable[[random.Random, list[bytes]], bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], dict[int, cases.Truth]]:
    path = tmp_path_factory.mktemp("broken") / "whole.rtrec"
    truth = cases.write_small(path)
    return list(cases.chunks(path)), truth


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken") / "broken.rtrec"


def check_samples(record: Record, truth: dict[int, cases.Truth]) -> int:
    """Every sample is the true one of its activation, none comes twice; returns how many there are."""
    count = 0
    for series in SERIES_BROKEN_RECORDS:
        rows = cases.sample_rows(record, series)
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})
        assert set(rows) <= set(cases.true_rows(truth[series.id]))
        count += len(rows)
    return count


def check_rest(record: Record, truth: dict[int, cases.Truth]) -> None:
    """Nothing else says more than was written, and all of it can be looked at."""
    for damage in record.damage:
        assert damage.sentence
        assert "\n" not in damage.sentence
        assert 0 <= damage.offset <= damage.offset + damage.length <= record.size
    for number, top in record.top.items():
        rows = zip(top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)
        assert set(rows) <= set(cases.true_rows(truth[number]))
    for number, seconds in record.seconds.items():
        assert seconds.obtained.sum() <= truth[number].value.size
    for part in record.slices:
        assert int(part.bin_counts.sum()) == part.count <= truth[part.series].value.size
    for number, levels in record.levels.items():
        assert {level.value for level in levels} <= set(cases.LIMITS)
        for level in levels:
            rows = zip(level.index.tolist(), level.due_ns.tolist(), level.above.tolist(), strict=True)
            assert set(rows) <= {row for row in cases.true_rows(truth[number]) if row[2] > level.value}
            assert level.ran.sum() <= np.count_nonzero(truth[number].value > level.value)
    assert set(record.facts) <= set(cases.FACTS)
    assert set(record.files) <= set(cases.FILES)


def test_every_truncation(broken: Path) -> None:
    short = broken.with_name("short.rtrec")
    truth = cases.write_small(short, count=60)
    chunks = list(cases.chunks(short))
    content = b"".join(chunks)
    shortest = len(chunks[0])
    true_rows = {number: cases.true_rows(part) for number, part in truth.items()}
    for rows in true_rows.values():
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})  # so no sample comes twice below
    before = 0
    for length in range(0, len(content), 3):
        broken.write_bytes(content[:length])
        if length < shortest:
            with pytest.raises(RecordError):
                open_record(broken)
            continue
        record = open_record(broken)
        assert record.end is None
        assert "cut off" in record.damage[-1].sentence
        count = 0
        for series in SERIES_BROKEN_RECORDS:
            rows = cases.sample_rows(record, series)
            assert rows == true_rows[series.id][: len(rows)]
            count += len(rows)
        check_rest(record, truth)
        assert count >= before
        before = count
    assert before == sum(part.value.size for part in truth.values())


def flip_bits(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = bytearray(b"".join(chunks))
    for _ in range(chance.randint(1, 12)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def zero_a_hole(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = bytearray(b"".join(chunks))
    start, length = chance.randrange(len(content)), chance.randint(1, 900)
    content[start : start + length] = bytes(len(content[start : start + length]))
    return bytes(content)


def insert_garbage(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.randbytes(chance.randint(1, 300)) + content[at:]


def remove_a_piece(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at = chance.randrange(len(content))
    return content[:at] + content[at + chance.randint(1, 900) :]


def repeat_a_piece(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at, to = chance.randrange(len(content)), chance.randrange(len(content))
    return content[:to] + content[at : at + chance.randint(1, 3000)] + content[to:]


def swap_two_chunks(chance: random.Random, chunks: list[bytes]) -> bytes:
    changed = list(chunks)
    a, b = chance.sample(range(1, len(chunks)), 2)
    changed[a], changed[b] = changed[b], changed[a]
    return b"".join(changed)


def repeat_a_chunk(chance: random.Random, chunks: list[bytes]) -> bytes:
    changed = list(chunks)
    changed.insert(chance.randint(1, len(chunks)), chance.choice(chunks[1:]))
    return b"".join(changed)


def remove_a_chunk(chance: random.Random, chunks: list[bytes]) -> bytes:
    gone = chance.randrange(1, len(chunks))
    return b"".join(chunks[:gone] + chunks[gone + 1 :])


def shuffle_all(chance: random.Random, chunks: list[bytes]) -> bytes:
    return b"".join(chance.sample(chunks, len(chunks)))


CORRUPTIONS: list[Corruption] = [
    *(flip_bits, zero_a_hole, insert_garbage, remove_a_piece, repeat_a_piece),
    *(swap_two_chunks, repeat_a_chunk, remove_a_chunk, shuffle_all),
]


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda function: function.__name__)
def test_corrupted(corrupt: Corruption, whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path) -> None:
    chunks, truth = whole
    all_samples = sum(part.value.size for part in truth.values())
    opened = told = 0
    for seed in range(SEEDS):
        content = corrupt(random.Random(seed), chunks)
        broken.write_bytes(content)
        try:
            record = open_record(broken)
        except RecordError:
            continue
        opened += 1
        told += bool(record.damage)
        count = check_samples(record, truth)
        check_rest(record, truth)
        assert record.damage or count == all_samples
    assert opened >= SEEDS // 2
    assert told >= opened - SEEDS // 10


@pytest.mark.parametrize("corrupt", [swap_two_chunks, repeat_a_chunk, remove_a_chunk], ids=lambda f: f.__name__)
def test_one_chunk_out_of_place_costs_no_other(
    corrupt: Corruption, whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path
) -> None:
    chunks, truth = whole
    series_chunks = [chunk for chunk in chunks if CHUNK_HEADER.unpack_from(chunk)[2] == 4]
    largest_block = 30
    for seed in range(SEEDS):
        content = corrupt(random.Random(seed), chunks)
        broken.write_bytes(content)
        record = open_record(broken)
        if len(record.series) < len(series_chunks):
            continue
        missing = sum(part.value.size for part in truth.values()) - check_samples(record, truth)
        assert missing <= 2 * largest_block


def test_two_records_in_one_file_prove_nothing(broken: Path) -> None:
    """The chunks of one were passed over as there twice, and the other was HELD."""
    golden = Path(__file__).parent / "data" / "golden"
    first, second = ((golden / name).read_bytes() for name in ("x86_64-1.3.rtrec", "x86_64.rtrec"))
    limit = Requirement(1_000_000)
    for content in (first + second, second + first):
        broken.write_bytes(content)
        assert analyse(open_record(broken), (limit,)).verdict.state.value == "INVALID"
    broken.write_bytes(second + second)
    assert analyse(open_record(broken), (limit,)).verdict.state.value == "HELD"


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_wrong_payloads_behind_valid_checksums(
    whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path, data: st.DataObject
) -> None:
    """A chunk may lie with a perfect checksum: everything is readable or a RecordError, and the lie is no traceback."""
    changed = list(whole[0])
    place = data.draw(st.integers(0, len(changed) - 1))
    payload = bytearray(cases.payload_of(changed[place]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    _, _, kind, _, sequence, _ = CHUNK_HEADER.unpack_from(changed[place])
    changed[place] = frame_bytes(kind, sequence, bytes(payload))
    broken.write_bytes(b"".join(changed))
    try:
        record = open_record(broken)
        blocks = list(record.read_blocks(record.chunk_refs))
        totals = [int(part.bin_counts.sum()) - part.count for part in record.slices]
        lists = [level for levels in record.levels.values() for level in levels]
    except RecordError:
        return
    assert set(totals) <= {0}
    for level in lists:
        assert level.index.size == level.due_ns.size == level.above.size
        assert (np.diff(level.second) > 0).all()
        assert (level.ran + level.missed > 0).all()
    assert [block.values.size for block in blocks] == [ref.count for ref in record.chunk_refs]


# Random small records, judged by the program and once more by ``slow_verdict``, have the same verdicts.


PERIOD_NS = TICK_NS
LIMITS_NS = (50_000_000, 120_000_000, 700_000_000, 2_500_000_000)


@dataclass(frozen=True)
class Case:
    """A record, what was late in it as pairs of due time and latency, and what it must say of its length."""

    record: Record
    late: list[tuple[int, int]]
    first_due_ns: int
    measured_ns: int
    whole: bool


def made(rng: np.random.Generator) -> Case:
    """One to three threads that begin at times of their own, with late activations, long ones and bursts."""
    seconds, first_tick = int(rng.integers(1, 150)), int(rng.integers(0, 9))
    lost = bool(rng.random() < 0.15 and seconds > 4)
    rate = rng.choice([0.0, 0.002, 0.01, 0.05])
    series, blocks = [], []
    late: list[tuple[int, int]] = []
    for thread in range(int(rng.integers(1, 4))):
        one = replace(
            SERIES, id=thread, thread=thread, period_ns=PERIOD_NS, first_due_ns=(first_tick + thread) * TICK_NS
        )
        of_it, found = _thread(rng, one, 4 * seconds - thread, rate, lost=lost and thread == 0)
        series.append(one)
        blocks += of_it
        late += found
    end_ns = (first_tick + 4 * seconds) * TICK_NS
    whole = record(blocks, tuple(series))
    assert whole.end is not None
    whole = replace(whole, end=End(end_ns, EndReason.AS_ASKED, "", whole.end.totals))
    return Case(whole, late, first_tick * TICK_NS, 4 * seconds * TICK_NS, not lost)


def _thread(
    rng: np.random.Generator, series: Series, ticks: int, rate: float, *, lost: bool
) -> tuple[list[Block], list[tuple[int, int]]]:
    """The activations of one thread; lost: one in the middle has left no value."""
    values: list[int] = []
    gaps: dict[int, int] = {}
    late: list[tuple[int, int]] = []
    blocks: list[Block] = []
    index = begun = 0
    while index < ticks:
        value = int(rng.integers(1_000, 40_000_000))
        if rng.random() < rate and index < ticks - 40:
            value = int(rng.exponential(600_000_000)) + 50_000_000
        missed = min(value // PERIOD_NS, ticks - index - 2) if value >= PERIOD_NS else 0
        late.append((series.first_due_ns + index * PERIOD_NS, value))
        if missed:
            gaps[len(values)] = missed
        values.append(value)
        index += 1 + missed
        if lost and not blocks and index > ticks // 2 and index < ticks - 3 and not missed:
            blocks.append(block(values, gaps, begun, series))
            values, gaps, index = [], {}, index + 1
            begun = index
    return [*blocks, block(values, gaps, begun, series)], late


def asked(rng: np.random.Generator) -> tuple[Requirement, ...]:
    """One to three limits; confidence and bunches are common, gap and longest length go with T."""
    confidence, bunches = float(rng.choice([0.5, 0.8, 0.95, 0.99])), float(rng.choice([1.0, 1.0, 1.5]))
    limits = rng.choice(LIMITS_NS, size=int(rng.integers(1, 4)), replace=False)
    times = rng.integers(1_000, 60_000, size=limits.size) * 1_000_000
    return tuple(
        Requirement(int(limit), int(at_most), confidence, int(at_most) // int(rng.integers(10, 30)), bunches=bunches)
        for limit, at_most in zip(limits, times, strict=True)
    )


def agrees(case: Case, requirement: Requirement, limits: int, verdict: Verdict) -> str:
    """Asserts that a verdict is what the slow one says; the state."""
    wanted = slow_verdict.Asked(
        requirement.limit_ns,
        requirement.at_most_ns,
        requirement.gap_ns,
        requirement.longest_ns,
        requirement.bunches,
        (1 - requirement.confidence) / limits,
    )
    spans = [
        (begin - case.first_due_ns, end - case.first_due_ns)
        for begin, end in slow_verdict.late_spans(case.late, requirement.limit_ns)
    ]
    found = slow_verdict.decided(spans, case.measured_ns, wanted, whole=case.whole)
    groups = slow_verdict.episodes(spans, requirement.gap_ns)
    told = [(each.begin_ns - case.first_due_ns, each.end_ns - case.first_due_ns) for each in verdict.episodes]
    assert told == [(group[0][0], max(end for _, end in group)) for group in groups]
    assert verdict.measured_ns == case.measured_ns
    assert verdict.state.value in ((found.state,) if case.whole else (found.state, "INVALID"))
    if verdict.state.value == "INVALID":  # which tells nothing of the test
        assert (verdict.kind, verdict.decided_at_ns, verdict.proven_at_ns) == (None, None, None)
        return "INVALID"
    assert verdict.kind == (found.why or None)
    near = pytest.approx(found.at_ns, abs=1e-6 * requirement.at_most_ns) if found.at_ns is not None else None
    assert verdict.decided_at_ns == near
    if near is not None:
        assert verdict.decided_with == found.episodes
    assert (verdict.proven_at_ns is None) == (found.proven_ns is None)
    return f"{found.state} {found.why}"


@pytest.mark.parametrize("part", range(2))
def test_every_verdict_is_the_slow_one(part: int) -> None:
    """Checked to fail: with a mixing of 0.29, with the gap counted as quiet, and with all time for a proof."""
    rng = np.random.default_rng((12, part))
    states: Counter[str] = Counter()
    for _ in range(30):
        case, wanted = made(rng), asked(rng)
        for requirement, verdict in zip(wanted, analyse(case.record, wanted, 1).verdicts, strict=True):
            states[agrees(case, requirement, len(wanted), verdict)] += 1
    assert min(states[state] for state in ("PROVEN ", "REFUTED rate", "REFUTED duration", "UNDECIDED ")) >= 1
