# SPDX-License-Identifier: Apache-2.0
"""Damaged sectors of records: no verdict of what is left is better than that of the whole record."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from part import ROOT, Bound, Figure, Part

from rtproof.core.errors import RtproofError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.verdict import STATE_ORDER
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.tail.forecast import NOWHERE

SECTOR = 512
BETTER = "BETTER: "
Spoil = Callable[[random.Random, bytes, int], bytes]


def zero(_chance: random.Random, content: bytes, at: int) -> bytes:
    return content[:at] + bytes(len(content[at : at + SECTOR])) + content[at + SECTOR :]


def flip(chance: random.Random, content: bytes, at: int) -> bytes:
    place = at + chance.randrange(len(content[at : at + SECTOR]))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def leave_out(_chance: random.Random, content: bytes, at: int) -> bytes:
    return content[:at] + content[at + SECTOR :]


def end_before(_chance: random.Random, content: bytes, at: int) -> bytes:
    return content[:at]


def repeat(chance: random.Random, content: bytes, at: int) -> bytes:
    to = chance.randrange(0, len(content) + 1, SECTOR)
    return content[:to] + content[at : at + SECTOR] + content[to:]


def misplace(chance: random.Random, content: bytes, at: int) -> bytes:
    """A sector lies over another one, too."""
    sector, to = content[at : at + SECTOR], chance.randrange(0, len(content), SECTOR)
    return content[:to] + sector + content[to + len(sector) :]


SPOILS: dict[str, Spoil] = {
    "zero": zero,
    "flip": flip,
    "leave out": leave_out,
    "end before": end_before,
    "repeat": repeat,
    "misplace": misplace,
}


def asked_of(path: Path) -> tuple[Requirement, ...]:
    """Limits at the largest latency, just below it, and at the mean: never, and as often as the run can decide."""
    pooled = analyse(open_record(path), None, 1, NOWHERE).pooled
    largest_ns = int(pooled.top.value[0]) if pooled.top.value.size else 1_000
    limits = {max(each, 1) for each in (largest_ns, largest_ns - 1, int(pooled.observed.mean or 0))}
    at_most_ns = max(pooled.span_ns // 8, 20)
    gap_ns = min(max(2 * pooled.series.period_ns, 1), at_most_ns // 10)
    rated = [Requirement(each, at_most_ns, gap_ns=gap_ns) for each in sorted(limits)]
    return (*map(Requirement, sorted(limits)), *rated)


def judged(path: Path, asked: Sequence[Requirement]) -> Analysis | None:
    """None where the file is refused."""
    try:
        return analyse(open_record(path), tuple(asked), 1, NOWHERE)
    except RtproofError:
        return None


def tried(path: Path, damages: Sequence[tuple[str, int]], seed: int, folder: Path) -> Counter[str]:
    """How many damages, each a kind and a sector, ended how. What became better is named, and begins with BETTER.

    Nobody knows what came behind a cut, so that the verdict there is UNDECIDED at best.
    """
    content, damaged, asked = path.read_bytes(), folder / f"{path.stem}-damaged.rtrec", asked_of(path)
    whole = judged(path, asked)
    assert whole
    chance = random.Random(seed)  # noqa: S311 - draws damages, and keeps no secret
    ends: Counter[str] = Counter()
    for kind, sector in damages:
        damaged.write_bytes(SPOILS[kind](chance, content, sector * SECTOR))
        found = judged(damaged, asked)
        if found is None:
            ends["refused"] += 1
            continue
        cut_off = found.record.end is None
        ends["cut off: " * cut_off + found.verdict.state.value] += 1
        for before, now in zip(whole.verdicts, found.verdicts, strict=True):
            most = State.UNDECIDED if cut_off else before.state
            if STATE_ORDER.index(now.state) > STATE_ORDER.index(most):
                limit = f"{now.requirement}: {before.state.value} became {now.state.value}"
                ends[f"{BETTER}{path.name}, {kind}, sector {sector}, {limit}"] += 1
    return ends


def drawn(path: Path, each: int, seed: int) -> list[tuple[str, int]]:
    chance = random.Random(f"{seed} {path.name}")  # noqa: S311 - draws damages, and keeps no secret
    sectors = -(-path.stat().st_size // SECTOR)
    return [(chance.choice(list(SPOILS)), chance.randrange(sectors)) for _ in range(each)]


GOLDEN = ROOT / "tests" / "data" / "golden"
EACH, SEED = 5_000, 1


def measure(name: str) -> dict[str, Any]:
    """How the verdicts of one record with damages ended; prints what became better."""
    path = GOLDEN / name
    with TemporaryDirectory() as folder:
        ends = tried(path, drawn(path, EACH, SEED), SEED, Path(folder))
    better = [end for end in ends if end.startswith(BETTER)]
    print(*(f"    {end}" for end in better), sep="\n", end="", flush=True)
    return {"damages": EACH, "better": len(better), "ends": ends}


PART = Part(
    goal="no damaged sector makes a verdict better than that of the whole record",
    items=lambda: sorted(path.name for path in GOLDEN.glob("[!f]*-1.[23].rtrec")),
    measure=measure,
    figures=(Figure("better", "verdicts that became better", bound=Bound(0, 0), of="damages"),),
)
