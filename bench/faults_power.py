# SPDX-License-Identifier: Apache-2.0
"""What a medium may hold of a record after a power cut, built from the log of an agent's writes and flushes.

What was written before the last flush that succeeded is there. Of every block that was written since, the medium has
any of the versions. The length of the file may be any that it had since. Blocks that never got there are zeros.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from faults_calls import AGENT_RUN, Fault, NoFaultsHereError, run_faulty
from part import Bound, Details, Figure, Part

from rtproof.agents.build import find_agent
from rtproof.core.errors import RecordError
from rtproof.judge.analyse import analyse
from rtproof.record.contents import End, Record
from rtproof.record.reading import open_record

BLOCKS = (512, 4096)
SUMMARISED = 25
"""Of so many states one is also summarised, as ``rtproof show`` does."""


@dataclass(frozen=True)
class Step:
    """A write of bytes at an offset; a cut to a length, without bytes; or a flush, with neither."""

    offset: int | None
    content: bytes | None


def read_log(path: Path) -> list[Step]:
    """The steps of a log of ``faults.c``."""
    steps = []
    for line in path.read_text().splitlines():
        kind, *words = line.split(" ")
        if kind == "w":
            steps.append(Step(int(words[0]), bytes.fromhex(words[1])))
        else:
            steps.append(Step(int(words[0]) if kind == "t" else None, None))
    return steps


def versions(steps: list[Step]) -> list[bytes]:
    """The file before the first step, and after each."""
    found, content = [b""], bytearray()
    for step in steps:
        if step.content is not None and step.offset is not None:
            content.extend(bytes(max(0, step.offset - len(content))))
            content[step.offset : step.offset + len(step.content)] = step.content
        elif step.offset is not None:
            del content[step.offset :]
            content.extend(bytes(step.offset - len(content)))
        found.append(bytes(content))
    return found


@dataclass(frozen=True)
class CrashState:
    """What a medium may hold. flushed: what was written before the last flush that succeeded."""

    content: bytes
    flushed: bytes


def crash_states(steps: list[Step], n: int, seed: int) -> Iterator[CrashState]:
    """``n`` states after cuts at random steps, drawn with a seed."""
    chance = random.Random(seed)  # noqa: S311 - draws states, and keeps no secret
    files = versions(steps)
    flushes = [0, *(number + 1 for number, step in enumerate(steps) if step.offset is None)]
    spans = [*pairwise(flushes), (flushes[-1], len(steps))]
    for _ in range(n):
        first, last = chance.choice(spans)
        yield _one_state(chance, files[first : chance.randint(first, last) + 1])


def _one_state(chance: random.Random, files: list[bytes]) -> CrashState:
    """``files``: the version that was flushed, and those after it."""
    block = chance.choice(BLOCKS)
    length = len(chance.choice([files[0], files[-1], chance.choice(files)]))
    likely = chance.choice((0.1, 0.5, 0.9))
    content = bytearray()
    for at in range(0, length, block):
        file = files[-1] if chance.random() < likely else chance.choice([files[0], chance.choice(files)])
        content += file[at : at + block].ljust(block, b"\0")
    return CrashState(bytes(content[:length]), files[0])


@dataclass(frozen=True)
class Read:
    """Everything of a record that must be true if it is there, as sets of rows."""

    rows: frozenset[tuple[object, ...]]
    seconds: dict[tuple[int, int], tuple[int, int, int]]

    @classmethod
    def of(cls, record: Record) -> "Read":
        rows: set[tuple[object, ...]] = set()
        for series in record.series:
            rows.add(("series", series))
            for block in record.blocks(series.id):
                index, due_ns = block.first_index, block.first_due_ns
                missed = dict(zip(block.gap_position.tolist(), block.gap_missed.tolist(), strict=True))
                for place, value in enumerate(block.values.tolist()):
                    rows.add(("sample", series.id, index, due_ns if series.on_grid else None, value))
                    index += 1 + missed.get(place, 0)
                    due_ns += (1 + missed.get(place, 0)) * series.period_ns
        rows |= {("fact", one) for one in record.facts} | {("event", one) for one in record.events}
        for one in record.slices:
            rows.add(("slice", one.series, one.view, one.first_due_ns, one.last_due_ns, one.count, one.min, one.max))
        for counter in record.counters:
            rows |= {
                ("tick", counter.name, *pair)
                for pair in zip(counter.time_ns.tolist(), counter.value.tolist(), strict=True)
            }
        if record.end is not None:
            rows.add(("end", record.end))
        seconds = {}
        for number, some in record.seconds.items():
            columns = (some.second, some.obtained, some.missed, some.max)
            for second, obtained, missed, most in zip(*(column.tolist() for column in columns), strict=True):
                seconds[number, second] = (obtained, missed, most)
        return cls(frozenset(rows), seconds)

    def contradicts(self, truth: "Read") -> str:
        """What this says that the truth does not say; empty if nothing."""
        wrong = sorted(map(str, self.rows - truth.rows))
        if wrong:
            return f"not in the whole record: {wrong[0]}"
        for key, mine in self.seconds.items():
            if key not in truth.seconds or any(
                one > other for one, other in zip(mine, truth.seconds[key], strict=True)
            ):
                return f"second {key} has {mine}, and {truth.seconds.get(key)} is true"
        return ""

    def lacks(self, flushed: "Read") -> str:
        """What was flushed and is not here; empty if nothing."""
        return next((f"flushed and gone: {row}" for row in sorted(map(str, flushed.rows - self.rows))), "")


@dataclass
class Replay:
    """What the states of one log led to."""

    steps: int = 0
    tried: int = 0
    different: int = 0
    unreadable: int = 0
    whole: int = 0
    analysed: int = 0
    flushes: int = 0
    findings: list[str] = field(default_factory=list)


def replay(log: Path, scratch: Path, n: int, seed: int) -> Replay:
    """Read ``n`` crash states of a log, and say which broke a promise."""
    steps = read_log(log)
    done = Replay(steps=len(steps), tried=n, flushes=sum(step.offset is None for step in steps))
    whole = versions(steps)[-1]
    truth = _Truth(whole, Read.of(_record(scratch, whole)), scratch, done)
    known: dict[bytes, Read | None] = {}
    seen: set[bytes] = set()
    for number, state in enumerate(crash_states(steps, n, seed)):
        if state.content in seen:
            continue
        seen.add(state.content)
        if state.flushed not in known:
            known[state.flushed] = Read.of(_record(scratch, state.flushed)) if state.flushed else None
        found = _judge(state, known[state.flushed], truth)
        if found:
            done.findings.append(f"state {number} of seed {seed}: {found}")
    done.different = len(seen)
    return done


def _record(scratch: Path, content: bytes) -> Record:
    place = scratch / "state.rtrec"
    place.write_bytes(content)
    return open_record(place)


@dataclass(frozen=True)
class _Truth:
    """The whole record, as bytes and as read; the folder for the states; and what is counted."""

    whole: bytes
    read: Read
    scratch: Path
    done: Replay


def _judge(state: CrashState, flushed: Read | None, all_of: _Truth) -> str:
    truth, done = all_of.read, all_of.done
    try:
        record = _record(all_of.scratch, state.content)
        read = Read.of(record)
    except RecordError as error:
        done.unreadable += 1
        return "" if flushed is None else f"what was flushed cannot be read: {error}"
    if state.content == all_of.whole:
        done.whole += 1
        return f"a whole record is called damaged: {record.damage[0]}" if record.damage else ""
    if not record.damage:
        return "the damage is not told"
    found = read.contradicts(truth) or (read.lacks(flushed) if flushed else "")
    if not found and record.series and done.analysed < done.tried // SUMMARISED:
        done.analysed += 1
        found = _numbers(record, truth)
    return found


def _numbers(record: Record, truth: Read) -> str:
    """Whether a summary counts more than ran, or has a maximum that is no sample where samples were kept."""
    samples: dict[int, set[int]] = {}
    ran: dict[int, int] = {}
    for kind, *row in truth.rows:
        if kind == "sample" and isinstance(row[0], int) and isinstance(row[3], int):
            samples.setdefault(row[0], set()).add(row[3])
        elif kind == "end" and isinstance(row[0], End):
            ran = {total.series: total.obtained for total in row[0].totals}
    for summary in analyse(record).summaries:
        number, most = summary.series.id, summary.observed.max
        if summary.obtained > ran[number]:
            return f"series {number} has {summary.obtained} activations, and {ran[number]} ran"
        if summary.observed.count and most not in samples.get(number, {most}):
            return f"series {number} has a maximum of {most}, which is no sample"
    return ""


LOGGED = {
    "two threads": ("--period", "200us"),
    "limits": ("--limit", "20us", "--limit", "1ms"),
    "summary": ("--record", "summary"),
}
"""Options of the runs whose writes are replayed, by name."""
STATES, SEED = 3000, 13


def logged_run(scratch: Path, options: Sequence[str]) -> Path:
    """The log of all writes of the record of an agent's run."""
    record, log = scratch / "logged.rtrec", scratch / "log"
    record.unlink(missing_ok=True)
    end = run_faulty(scratch, (find_agent(), *options, "-o", record), Fault("write"), str(record), str(log))
    if end.exit_code != 0:
        raise NoFaultsHereError(f"the run to be logged failed: {end.said}")
    return log


def measure(item: str) -> dict[str, Any]:
    """Replay the writes of a run; prints what broke a promise."""
    options = (*AGENT_RUN, "--duration", "3s", "--checkpoint", "500ms", *LOGGED[item])
    with tempfile.TemporaryDirectory(prefix="rtproof-faults-") as folder:
        done = replay(logged_run(Path(folder), options), Path(folder), STATES, SEED)
    print(*(f"    {finding}" for finding in done.findings), sep="\n", end="", flush=True)
    return {**asdict(done), "broken": len(done.findings)}


def row(item: str, one: Details) -> list[str]:
    keys = ("flushes", "tried", "different", "unreadable", "analysed", "broken")
    return [f"| {item} | {one['steps'] - one['flushes']} | {' | '.join(str(one[key]) for key in keys)} |"]


PART = Part(
    goal="what a medium may hold after a power cut has all that was flushed, and nothing else",
    items=lambda: list(LOGGED),
    measure=measure,
    figures=(Figure("broken", "broken promises", bound=Bound(0, 0), of="tried"),),
    head="| log | writes and cuts | flushes | states tried | of them different | before the first flush, unreadable "
    "| summaries made | findings |",
    rows=row,
)
