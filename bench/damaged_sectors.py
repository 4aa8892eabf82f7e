# SPDX-License-Identifier: Apache-2.0
"""usage: damaged_sectors.py [--each N] [--seed N] RECORD ...    damages sectors of records, and judges what is left

Prints how the verdicts ended, and each that became better than that of the whole record. Exit code 1 if there is one.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory

from rtproof.core.errors import RtproofError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.requirement import Requirement
from rtproof.judge.verdict import STATE_ORDER
from rtproof.record.reading import open_record
from rtproof.tail.forecast_model import NOWHERE

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


def one_record(path: Path, each: int, seed: int) -> Counter[str]:
    with TemporaryDirectory() as folder:
        return tried(path, drawn(path, each, seed), seed, Path(folder))


def main(arguments: list[str]) -> int:
    """Damage all records, several at once; 1 if a verdict became better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=5_000, help="damages of each record (default 5000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=None, help="processes at a time (default: one for each CPU)")
    parser.add_argument("records", nargs="+", type=Path)
    asked = parser.parse_args(arguments)
    ends: Counter[str] = Counter()
    with Pool(asked.jobs) as pool:
        for found in pool.imap(partial(one_record, each=asked.each, seed=asked.seed), asked.records):
            ends += found
    for end, count in sorted(ends.items()):
        print(f"{count:>8,}  {end}")
    better = sum(count for end, count in ends.items() if end.startswith(BETTER))
    print(f"{len(asked.records)} records, {len(asked.records) * asked.each:,} damages, {better:,} verdicts better")
    return 1 if better else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
