# SPDX-License-Identifier: Apache-2.0
"""``make fuzz``: damaged files of every kind that rtproof reads. Exit code 1 if one of them breaks a promise.

docs/fuzz.md says what is promised. Findings are saved in build/fuzz, each with the command that repeats it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing import worker
from fuzzing.targets import CORPUS, TARGETS, Target
from fuzzing.worker import FindingError

FINDINGS = Path(__file__).parent.parent / "build" / "fuzz"
QUICK_S = 1.0
"""Seconds of each target with --quick."""
SILENT_S = 60 + 10 * worker.MOST_S
"""A process that reads one input for so long is ended.
That is a finding, as is a process that dies."""


@dataclass(frozen=True)
class Counted:
    """What one process did. counts: inputs by their answers; kinds: of answers; findings: the file of each cause."""

    counts: dict[str, int]
    kinds: int
    findings: dict[str, str]
    died: bool = False


def main(arguments: list[str]) -> int:
    """Fuzz the targets and print what was tried; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="time of all targets together (default 10)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_S:.0f} s for each target, with seed 1")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
    parser.add_argument("--seed", type=int, help="the same inputs as another time (default: another each time)")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="folder for findings")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="read the input of one finding again")
    parser.add_argument("--keep", metavar="NAME", help="with --repeat: add the input to the corpus, if it is mended")
    parser.add_argument("--worker", nargs=3, metavar=("TARGET", "SECONDS", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(each.name for each in TARGETS)}; all by default")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.targets) - {each.name for each in TARGETS}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    seed = 1 if asked.quick else time.time_ns() % 1_000_000 if asked.seed is None else asked.seed
    if asked.repeat:
        if not worker.target_of(asked.repeat) or not asked.repeat.is_file():
            parser.error(f"{asked.repeat} is no input of a finding: its name begins with that of a target")
        return repeat(asked.repeat, asked.keep)
    if asked.worker:
        name, seconds, folder = asked.worker
        worker.run(name, float(seconds), seed, Path(folder), asked.findings)
        return 0
    chosen = [each for each in TARGETS if each.name in asked.targets or not asked.targets]
    jobs = max(1, asked.jobs)
    of_weight = 60 * asked.minutes * min(jobs, len(chosen)) / sum(each.weight for each in chosen)
    lengths = {each.name: QUICK_S if asked.quick else of_weight * each.weight for each in chosen}
    print(f"seed {seed}, {jobs} processes at a time; findings go to {asked.findings}", flush=True)
    print(f"{'target':23} {'inputs':>9} {'read':>9} {'refused':>9} {'kinds':>6} {'findings':>8} {'s':>6}", flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        longest_first = sorted(chosen, key=lambda each: -each.weight)
        found = sum(pool.map(lambda each: fuzz(each, lengths[each.name], seed, asked.findings), longest_first))
    print(f"{found} findings" if found else "no finding")
    return 1 if found else 0


def fuzz(target: Target, seconds: float, seed: int, findings: Path) -> int:
    """Fuzz one target in processes of its own, a new one after each that died; print its row, return its findings."""
    end, begun = time.monotonic() + seconds, time.monotonic()
    counts = {"result": 0, "refused": 0, "finding": 0}
    kinds = 0
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="rtproof-fuzz-") as work:
        while True:
            left = max(end - time.monotonic(), 0.0)
            told = _one_worker(target, left, seed, Path(work), findings)
            for name in counts:
                counts[name] += told.counts.get(name, 0)
            kinds, seed = max(kinds, told.kinds), seed + 1
            found.update(told.findings)
            if not told.died or time.monotonic() >= end:
                break
    took_s = time.monotonic() - begun
    row = (sum(counts.values()), counts["result"], counts["refused"])
    print(
        f"{target.name:23} {row[0]:9} {row[1]:9} {row[2]:9} {kinds:6} {len(found):8} {took_s:6.0f}",
        *(f"    {kind}\n        {path}" for kind, path in found.items()),
        sep="\n",
        flush=True,
    )
    return len(found)


def _one_worker(target: Target, seconds: float, seed: int, work: Path, findings: Path) -> Counted:
    """What one process counted. If it dies or falls silent, the input that it read is a finding."""
    words = ["--worker", target.name, f"{seconds}", str(work), "--seed", str(seed), "--findings", str(findings)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": str(seed % 1_000)}
    counted, current = work / worker.TOLD, work / worker.CURRENT
    counted.unlink(missing_ok=True)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, __file__, *words], stdout=said, stderr=said, env=environment)
        silent = _wait(process, current)
        said.seek(0)
        last = said.read()[-4_000:].decode(errors="replace")
    told: dict[str, Any] = (
        json.loads(counted.read_bytes()) if counted.exists() else {"counts": {}, "kinds": 0, "findings": {}}
    )
    found = Counted(told["counts"], told["kinds"], told["findings"])
    if not silent and process.returncode == 0:
        return found
    how = f"read for {SILENT_S} s" if silent else f"the process ended with {_ending(process.returncode)}"
    finding = FindingError(f"{target.name}: {how}", last)
    content = current.read_bytes() if current.exists() else b""
    path = worker.save(findings, target.name, f"seed {seed}", content, finding)
    counts = found.counts | {"finding": found.counts.get("finding", 0) + 1}
    return Counted(counts, found.kinds, found.findings | {finding.kind: str(path)}, died=True)


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _wait(process: "subprocess.Popen[bytes]", current: Path) -> bool:
    """Wait until the process ends; whether it had to be ended because it read one input for too long."""
    begun = time.time()
    while True:
        try:
            process.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            since = max(current.stat().st_mtime, begun) if current.exists() else begun
        if time.time() - since > SILENT_S:
            process.kill()
            return True


def repeat(path: Path, keep: str | None) -> int:
    """Read a finding's input again and print what comes of it; 1 if it is still a finding.

    keep: the name in the corpus of an input that is none any more.
    """
    with tempfile.TemporaryDirectory(prefix="rtproof-fuzz-") as work:
        try:
            print(worker.repeat(path, Path(work)))
        except FindingError as finding:
            print(f"{finding.kind}\n{finding.text}")
            return 1
    target = worker.target_of(path)
    if keep and target:
        with zipfile.ZipFile(CORPUS, "a", zipfile.ZIP_DEFLATED) as corpus:
            corpus.writestr(f"{target.name}/{keep}", path.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
