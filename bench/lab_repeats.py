# SPDX-License-Identifier: Apache-2.0
"""Whether guests with several processors give the same bytes again: from fresh boots, and with other work beside.

    python bench/lab_repeats.py --keep FOLDER [--cpus 2] [--row NAME] [--repeats 3] [--duration-ms 500]

Each repeat has a cache of its own, so that it boots its guests anew; only what Debian's packages contain and the agents
are shared. During the last repeat a busy process runs on each CPU of this host. An interrupted measurement goes on
where it ended. Writes build/bench-lab-repeats.json. Exit code 1 if a record differs between repeats.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.vm.cache_folders import lab_cache

BUILD = Path(__file__).parent.parent / "build"
SHARED = ("apt", "busybox", "kernels", "qemu")
"""Parts of the lab's cache that hold unpacked packages of Debian."""
BUSY_S = 3600
"""The busy processes end by themselves after this time."""
BUSY = f"import time\nend = time.monotonic() + {BUSY_S}\nwhile time.monotonic() < end: pass"
ISOLATED = "isolcpus=domain,managed_irq,{last} irqaffinity=0 rcu_nocbs={last}"


@dataclass(frozen=True)
class Row:
    """A command ``rtproof lab compare``. ``measured``: CPUs, {last} is the last one of the guest; "" for all."""

    name: str
    kernels: tuple[str, ...]
    loads: tuple[str, ...]
    preempts: tuple[str, ...] = ("none",)
    boot: str = ""
    measured: str = ""

    def words(self, cpus: int) -> list[str]:
        """The command's words, without what differs between repeats."""
        last = str(cpus - 1)
        boot = ["--boot", self.boot.format(last=last)] if self.boot else []
        on = ["--measured-cpus", self.measured.format(last=last)] if self.measured else []
        lists = (("--kernel", self.kernels), ("--preempt", self.preempts), ("--load", self.loads))
        return [
            "--processors",
            str(cpus),
            *on,
            *boot,
            *(word for name, values in lists for v in values for word in (name, v)),
        ]


ROWS = (
    Row("plain", ("debian-6.1-rt", "debian-6.1", "debian-6.12"), ("idle", "mmap")),
    Row("rt-6.12", ("debian-6.12-rt",), ("idle", "mmap"), ("full", "lazy")),
    Row("isolated", ("debian-6.1-rt", "debian-6.1"), ("idle", "mmap@0"), boot=ISOLATED, measured="{last}"),
)


@contextmanager
def other_work() -> Iterator[None]:
    """A busy process for each CPU of this host, within the context."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def cache_of_its_own(folder: Path) -> dict[str, str]:
    """An environment with a cache in the folder, in which nothing was booted yet."""
    lab = folder / "rtproof" / "lab"
    lab.mkdir(parents=True, exist_ok=True)
    for place, target in ((folder / "rtproof" / "agents", lab_cache().parent / "agents"), *shared_parts(lab)):
        if not place.is_symlink():
            place.symlink_to(target)
    zig = os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(Path.home() / ".cache" / "zig"))
    return {**os.environ, "XDG_CACHE_HOME": str(folder.resolve()), "ZIG_GLOBAL_CACHE_DIR": zig}


def shared_parts(lab: Path) -> Iterator[tuple[Path, Path]]:
    """The parts of a cache that are links, and where they lead."""
    for name in SHARED:
        (lab_cache() / name).mkdir(parents=True, exist_ok=True)
        yield lab / name, lab_cache() / name


def measured(row: Row, cpus: int, folder: Path, lengths: Sequence[str]) -> list[dict[str, Any]]:
    """Run the command once in a cache in the folder; for each cell its figures and the digest of its record."""
    out = folder / f"{row.name}-{cpus}"
    command = [sys.executable, "-m", "rtproof", "lab", "compare", *row.words(cpus), *lengths, "--shifts", "1"]
    if not (out / "result.json").exists():
        told = [*command, "--jobs", "1", "--json", "-o", str(out)]
        done = subprocess.run(told, env=cache_of_its_own(folder), stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(f"{row.name} with {cpus} processors ended with exit code {done.returncode}")
    cells = json.loads((out / "result.json").read_text())["cells"]
    records = {path.parent.name: path for path in out.glob("cells/*/run.rtrec")}
    if len(records) != len(cells):
        raise SystemExit(f"{out} has {len(records)} records of {len(cells)} cells")
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(records.items())}
    return [
        {
            "cells": [{key: cell[key] for key in ("system", "load", "shifts")} for cell in cells],
            "sha256": digests,
        }
    ]


def repeats(row: Row, cpus: int, wanted: argparse.Namespace) -> dict[str, Any]:
    """Measure a row several times, and say whether all repeats gave the same bytes."""
    lengths = ["--duration", f"{wanted.duration_ms}ms", "--warmup", f"{wanted.warmup_ms}ms"]
    found = []
    for number in range(wanted.repeats):
        beside = other_work() if number == wanted.repeats - 1 else nullcontext()
        with beside:
            found += measured(row, cpus, wanted.keep / str(number), lengths)
    cells = found[0]["sha256"]
    different = [name for name in cells if len({each["sha256"][name] for each in found}) > 1]
    command = " ".join(["rtproof", "lab", "compare", *row.words(cpus), *lengths])
    return {
        "row": row.name,
        "cpus_count": cpus,
        "command": command,
        "repeats_count": len(found),
        "same": not different,
        "different_cells": different,
        "sha256_of_each_repeat": [each["sha256"] for each in found],
        "cells": found[0]["cells"],
    }


def show(found: dict[str, Any]) -> None:
    """Print a row: its command and its figures in microseconds."""
    print(f"\n{found['command']}")
    different = ", ".join(found["different_cells"])
    print(f"{found['repeats_count']} repeats: {f'THE BYTES DIFFER: {different}' if different else 'same bytes'}")
    for cell in found["cells"]:
        for shift in cell["shifts"]:
            figures = [(f"CPU {each['cpu']}", each) for each in shift.get("cpus", [])] or [("all", shift)]
            told = "; ".join(f"{name} {' / '.join(us(each, key) for key in KEYS)}" for name, each in figures)
            print(f"  {cell['system']}, {cell['load']}: {told}; missed {shift['missed_count']}", flush=True)


KEYS = ("min_ns", "mean_ns", "max_ns")


def us(figures: dict[str, Any], key: str) -> str:
    """A figure in microseconds."""
    return f"{figures[key] / 1e3:,.1f}"


def main() -> int:
    """Measure the rows, print them, and keep what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--cpus", type=int, action="append")
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--duration-ms", type=int, default=500)
    parser.add_argument("--warmup-ms", type=int, default=500)
    wanted = parser.parse_args()
    chosen = [row for row in ROWS if not wanted.row or row.name in wanted.row]
    found = []
    for cpus in wanted.cpus or (2, 4):
        for row in chosen:
            found.append(repeats(row, cpus, wanted))
            show(found[-1])
            BUILD.mkdir(exist_ok=True)
            (BUILD / "bench-lab-repeats.json").write_text(json.dumps(found, indent=1))
    return 0 if all(each["same"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
