# SPDX-License-Identifier: Apache-2.0
"""``make bench``, the virtual lab: what a cell and a matrix cost, and how exact the timer probe is beside its peers.

    python bench/lab.py [PART...]    all parts, or some: peers cells matrix processors shares

Writes build/bench-lab.json; parts that were not run keep their figures there. Costs are of this host, now; the figures
of the guests are virtual time, the same anywhere. ``make bench-lab`` runs the parts of guests with several processors.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import guest_peers
import lab_processors
from goals import Goal, show

from rtproof.agents.build import build_agent, cache_dir
from rtproof.core.errors import RtproofError
from rtproof.lab import kernel_catalogue

BUILD = Path(__file__).parent.parent / "build"
SYSTEMS = {"debian-6.1-rt": (), "debian-6.1": ("preempt=none",)}
#: beside it one with net, a cell of which takes twice as long as others: no order of cells mends that
LOADS = ("idle", "mmap", "fork")
UNEVEN = ("idle", "mmap", "net")
#: those whose cost in host time is told one by one
COSTED = ("idle", "mmap", "fork", "net", "files", "dd", "sched")
SECONDS = 2
CORES = 4
SHARED = ("kernels", "busybox", "vmlinux", "modules", "apt")
GOALS = (
    Goal("idle_host_s_per_virtual_s", "idle cell, host seconds per virtual second"),
    Goal("loaded_host_s_per_virtual_s", "the same under load, mean over loads"),
    Goal("loaded_host_s_per_virtual_s_most", "the same, costliest load"),
    Goal("matrix_s", f"2 x 3 matrix of {SECONDS} virtual s each, s", "at most 60", (0, 60)),
    Goal("matrix_one_after_the_other_s", "the same with --jobs 1, s"),
    Goal("matrix_speed_up", "ratio of the two", "at least 2.5", (2.5, CORES)),
    Goal("uneven_matrix_s", "with net, one cell of which takes twice as long, s", "at most 60", (0, 60)),
    Goal("matrix_again_s", "the same once more, all cells cached, s"),
    *(
        Goal(f"{which}_ratio_to_{peer}_{system}", f"{which} latency, ratio to {peer}, {system}", "at most 1", (0, 1))
        for system in SYSTEMS
        for peer in guest_peers.PEERS
        for which in ("min", "p1", "median")
    ),
    *(
        Goal(f"host_{kind}_s_per_virtual_s_{cpus}_cpus_{load}", f"{cpus} CPUs, {load}, {words} s per virtual second")
        for cpus in lab_processors.CPUS
        for load in lab_processors.LOADS
        for kind, words in (("wall", "wall"), ("cpu", "CPU"))
    ),
)


def in_cache_of_its_own(scratch: Path) -> dict[str, str]:
    """An environment in which kernels are fetched and nothing else is done yet."""
    lab = scratch / "rtproof" / "lab"
    lab.mkdir(parents=True)
    (scratch / "rtproof" / "agents").symlink_to(cache_dir())
    for name in SHARED:
        place = cache_dir().parent / "lab" / name
        if place.exists():
            (lab / name).symlink_to(place)
    return {**os.environ, "XDG_CACHE_HOME": str(scratch)}


def compare(
    jobs: int, loads: tuple[str, ...], output: Path, environment: dict[str, str]
) -> tuple[float, dict[str, object]]:
    """Seconds that ``rtproof lab compare`` takes, and its result."""
    words = [f"--kernel={name}" for name in SYSTEMS] + [f"--load={load}" for load in loads]
    command = [
        sys.executable,
        "-m",
        "rtproof",
        "lab",
        "compare",
        *words,
        "--preempt=none",
        "--shifts=1",
        f"--duration={SECONDS}s",
    ]
    began = time.monotonic()
    done = subprocess.run(
        [*command, f"--jobs={jobs}", f"--output={output}"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"rtproof lab compare ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return time.monotonic() - began, json.loads((output / "result.json").read_text())


def matrix() -> dict[str, float]:
    """The 2 x 3 matrix in parallel, again from the cache, and one after the other; boots included, kernels fetched."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        environment = in_cache_of_its_own(Path(one))
        parallel, _ = compare(CORES, LOADS, Path(one) / "first", environment)
        again, _ = compare(CORES, LOADS, Path(one) / "again", environment)
        serial, _ = compare(1, LOADS, Path(other) / "first", in_cache_of_its_own(Path(other)))
    with tempfile.TemporaryDirectory() as third:
        uneven, _ = compare(CORES, UNEVEN, Path(third) / "first", in_cache_of_its_own(Path(third)))
    print(f"2 x 3 matrix: {parallel:.1f} s with {CORES} jobs, {serial:.1f} s one after the other, {again:.1f} s cached")
    return {
        "matrix_s": parallel,
        "matrix_one_after_the_other_s": serial,
        "matrix_speed_up": serial / parallel,
        "uneven_matrix_s": uneven,
        "matrix_again_s": again,
    }


def cell_costs() -> dict[str, float]:
    """Of each load alone on the host, one cell at a time, on the plain kernel."""
    costs: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        environment = in_cache_of_its_own(Path(scratch))
        for load in COSTED:
            _, result = compare(1, (load,), Path(scratch) / load, environment)
            cost = result["cost"]
            assert isinstance(cost, dict)
            costs[load] = cost["host_s"] / cost["virtual_s"]
            print(f"{load:8} {costs[load]:6.2f} host seconds per virtual second")
    loaded = [cost for load, cost in costs.items() if load != "idle"]
    return {
        "idle_host_s_per_virtual_s": costs["idle"],
        "loaded_host_s_per_virtual_s": sum(loaded) / len(loaded),
        "loaded_host_s_per_virtual_s_most": max(loaded),
    }


def beside_peers() -> tuple[dict[str, float], dict[str, object]]:
    """Ratios of the timer probe's figures to its peers', and the figures themselves."""
    ratios: dict[str, float] = {}
    figures: dict[str, object] = {}
    agent = build_agent("x86_64")
    for system, boot in SYSTEMS.items():
        with tempfile.TemporaryDirectory() as scratch:
            found = guest_peers.compare(kernel_catalogue.fetch_kernel(system), boot, agent, Path(scratch))
        ours = found["rtproof"]
        for peer in guest_peers.PEERS:
            ratios[f"min_ratio_to_{peer}_{system}"] = ours.min_ns / found[peer].min_ns
            ratios[f"p1_ratio_to_{peer}_{system}"] = ours.p1_ns / found[peer].p1_ns
            ratios[f"median_ratio_to_{peer}_{system}"] = ours.median_ns / found[peer].median_ns
        figures[system] = {name: asdict(one) for name, one in found.items()}
        for name, one in found.items():
            print(
                f"{system:14} {name:15} n = {one.n}, "
                f"min {one.min_ns}, 1 % {one.p1_ns}, median {one.median_ns}, max {one.max_ns} ns"
            )
    return ratios, figures


def peers_part() -> dict[str, Any]:
    """The timer probe beside its peers: ratios, and the figures themselves."""
    for name in SYSTEMS:
        kernel_catalogue.fetch_kernel(name)
    ratios, figures = beside_peers()
    return {**ratios, "figures": figures}


def processors_part() -> dict[str, Any]:
    """What guests with 1, 2 and 4 processors cost."""
    found = lab_processors.costs()
    return {**lab_processors.goals_of(found), "processors": found}


def shares_part() -> dict[str, Any]:
    """How processors that take turns share the instructions."""
    return {"shares": lab_processors.shares()}


PARTS = {
    "peers": peers_part,
    "cells": cell_costs,
    "matrix": matrix,
    "processors": processors_part,
    "shares": shares_part,
}
OUTPUT = BUILD / "bench-lab.json"


def goals_of(parts: list[str]) -> tuple[Goal, ...]:
    """The goals of the parts that run."""
    about: dict[str, Callable[[str], bool]] = {
        "cells": lambda key: key.startswith(("idle_host_s", "loaded_host_s")),
        "matrix": lambda key: "matrix" in key,
        "peers": lambda key: "_ratio_to_" in key,
        "processors": lambda key: "_cpus_" in key,
    }
    return tuple(goal for goal in GOALS if any(name in parts and fits(goal.key) for name, fits in about.items()))


def main() -> int:
    """Exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"{', '.join(PARTS)} (all)")
    parts = list(dict.fromkeys(parser.parse_args().parts)) or list(PARTS)
    BUILD.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    try:
        for name in parts:
            results.update(PARTS[name]())
            kept = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
            OUTPUT.write_text(json.dumps({**kept, **results}, indent=2) + "\n")
    except (RtproofError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if show(goals_of(parts), results) else 1


if __name__ == "__main__":
    sys.exit(main())
