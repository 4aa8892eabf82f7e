# SPDX-License-Identifier: Apache-2.0
"""Guests with one processor: the same bytes from an older checkout of rtproof, and the figures under two QEMUs.

    python bench/one_processor_versions.py OLD_CHECKOUT AGENT --keep FOLDER [--load idle ...] [--duration-ms 500]

The cells of the README are measured by the older checkout, by this one, and by this one under the fetched QEMU. All
get the same file of the agent. Each has a cache of its own in the folder; only what Debian's packages contain is
shared. An interrupted measurement goes on where it ended. A cell whose record differs is measured AGAIN times more by
both, because a guest sometimes differs from itself. Exit code 1 if no record of one is a record of the other.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtproof.experiment import guest_runner
from rtproof.lab import systems
from rtproof.lab.guest_cell import (
    CellSetting,
    GuestCell,
    cell_store_folder,
    job_digest,
    machine_identity,
    parse_guest_load,
)
from rtproof.vm.cache_folders import lab_cache

KERNELS = ("debian-6.1-rt", "debian-6.1")
PREEMPTS = ("none", "full")
LOADS = ("idle", "mmap", "net", "dd")
SHARED = ("apt", "busybox", "kernels", "qemu")
"""Parts of the lab's cache that hold unpacked packages of Debian."""
HERE = Path(__file__).resolve().parents[1]
RECORD = "run.rtrec"
AGAIN = 3


def measured_cells(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the cells with the rtproof that this process imports: an older one has other modules."""
    setting = CellSetting(duration_ns=wanted.duration_ms * 1_000_000, warmup_ns=wanted.warmup_ms * 1_000_000)
    kernels = guest_runner.named_kernels(KERNELS, (), setting.probe)
    found = systems.systems(kernels, PREEMPTS)
    if wanted.qemu:
        found = tuple(replace(each, machine=replace(each.machine, qemu=wanted.qemu)) for each in found)
    loads = [parse_guest_load(name) for name in wanted.load]
    cells = [GuestCell(system, load, setting, wanted.agent.resolve()) for load in loads for system in found]
    if wanted.anew:
        cells = [cell for cell in cells if cell.name == wanted.anew]
        shutil.rmtree(cell_store_folder() / cells[0].key(), ignore_errors=True)
    ran = guest_runner.run_guest_cells(cells, 1, ("bench",))
    rows = []
    for result in ran.results:
        if result.kept is None or result.reading is None:
            raise SystemExit(f"{result.cell.name}: {result.failure}")
        record = result.kept.folder / RECORD
        rows.append(
            {
                "system": result.cell.system.name,
                "load": result.cell.load.name,
                "machine_sha256": machine_identity(result.cell.system.machine),
                "job_sha256": job_digest(setting, result.cell.load, 0),
                "record_sha256": hashlib.sha256(record.read_bytes()).hexdigest(),
                "min_us": result.reading.min_ns / 1e3,
                "mean_us": result.reading.mean_ns / 1e3,
                "max_us": result.reading.max_ns / 1e3,
                "missed_count": result.reading.missed,
                "host_s": result.kept.cost.host_s,
            }
        )
    return rows


def measure_with(
    checkout: Path, cache: Path, wanted: argparse.Namespace, qemu: str = "", anew: str = ""
) -> list[dict[str, Any]]:
    """Run this file with the modules of a checkout and with a cache of its own; the rows that it prints.

    ``anew``: the name of the only cell to measure, although it was measured.
    """
    ours, theirs = lab_cache(), cache / "rtproof" / "lab"
    theirs.mkdir(parents=True, exist_ok=True)
    for part in SHARED:
        (ours / part).mkdir(parents=True, exist_ok=True)
        if not (theirs / part).is_symlink():
            (theirs / part).symlink_to(ours / part)
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(cache.resolve()),
        "PYTHONPATH": str(checkout.resolve() / "src"),
        "ZIG_GLOBAL_CACHE_DIR": os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(Path.home() / ".cache" / "zig")),
    }
    lengths = ["--duration-ms", str(wanted.duration_ms), "--warmup-ms", str(wanted.warmup_ms)]
    loads = [word for name in wanted.load for word in ("--load", name)]
    command = [sys.executable, str(Path(__file__).resolve()), str(checkout), str(wanted.agent), "--only", *lengths]
    command += [*loads, "--qemu", qemu, "--anew", anew]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [dict(row) for row in json.loads(done.stdout)]


def different_cells(before: list[dict[str, Any]], now: list[dict[str, Any]], wanted: argparse.Namespace) -> list[str]:
    """The names of the cells that an older rtproof measures otherwise. Says what differs."""
    found = []
    for old, new in zip(before, now, strict=True):
        name = f"{old['system']}, {old['load']}"
        inputs = [key for key in ("machine_sha256", "job_sha256") if old[key] != new[key]]
        if inputs:
            print(f"{name}: {', '.join(inputs)} differ", flush=True)
            found.append(name)
        elif old["record_sha256"] != new["record_sha256"] and not _same_again(name, old, new, wanted):
            found.append(name)
    return found


def _same_again(name: str, old: dict[str, Any], new: dict[str, Any], wanted: argparse.Namespace) -> bool:
    """Whether further measurements of a cell have a record in common."""
    records = {"before": [old["record_sha256"]], "now": [new["record_sha256"]]}
    for _ in range(AGAIN):
        for side, checkout in (("before", wanted.checkout), ("now", HERE)):
            (row,) = measure_with(checkout, wanted.keep / side, wanted, anew=name)
            records[side].append(row["record_sha256"])
    for side, digests in records.items():
        print(f"{name}, {side}: {' '.join(digest[:8] for digest in digests)}", flush=True)
    return bool(set(records["before"]) & set(records["now"]))


def figures(row: dict[str, Any]) -> str:
    """Min, mean and max in microseconds, and how many periods were missed."""
    missed = f" ({row['missed_count']})" if row["missed_count"] else ""
    return f"{row['min_us']:,.1f} / {row['mean_us']:,.1f} / {row['max_us']:,.1f}{missed}"


def table(now: list[dict[str, Any]], fetched: list[dict[str, Any]]) -> str:
    """The figures under both QEMUs as a table of Markdown."""
    lines = [
        "| load, min / mean / max in us | system | QEMU of the system | fetched QEMU | max | host s |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for one, other in zip(now, fetched, strict=True):
        change = f"{100 * (other['max_us'] / one['max_us'] - 1):+.1f} %"
        cost = f"{one['host_s']:.0f}, {other['host_s']:.0f}"
        lines.append(f"| {one['load']} | {one['system']} | {figures(one)} | {figures(other)} | {change} | {cost} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("agent", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("build/one-processor"))
    parser.add_argument("--load", action="append")
    parser.add_argument("--duration-ms", type=int, default=2_000)
    parser.add_argument("--warmup-ms", type=int, default=1_000)
    parser.add_argument("--qemu", default="")
    parser.add_argument("--anew", default="", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    wanted.load = wanted.load or list(LOADS)
    if wanted.only:
        print(json.dumps(measured_cells(wanted)))
        return 0
    before = measure_with(wanted.checkout, wanted.keep / "before", wanted)
    now = measure_with(HERE, wanted.keep / "now", wanted)
    different = different_cells(before, now, wanted)
    print(f"{len(now) - len(different)} of {len(now)} cells have the bytes of {wanted.checkout}", flush=True)
    fetched = measure_with(HERE, wanted.keep / "fetched", wanted, "fetched")
    print(table(now, fetched))
    (wanted.keep / "rows.json").write_text(json.dumps({"before": before, "now": now, "fetched": fetched}, indent=1))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
