# SPDX-License-Identifier: Apache-2.0
"""Measure the parts of a group, print their figures beside what is asked, and keep them in build/bench-GROUP.json.

    python bench/run.py GROUP [--parts NAME,NAME...] [ITEM...]

A part is a module ``GROUP_NAME.py``, or a simulation (see part.py). A NAME may be the beginning of several, such as 01
of stats. Without --parts all parts are measured but the long ones. Items choose some of a part, such as the system
6.1-rt. The file is written after each item, so an interrupted run keeps what it has. Items that are not measured now
keep what an earlier run wrote, with its date and commit. Exit codes: 1 when a bound is missed or an item has no
numbers, 130 when the run was interrupted.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acceptance import simulations
from part import BUILD, ROOT, Details, Part

from rtproof.core.errors import RtproofError, UserError
from rtproof.core.files import write_whole

sys.path.append(str(ROOT / "tests"))  # for plants and their helpers
GROUPS = ("cost", "lab", "explain", "audit", "stats", "faults", "inputs")
Work = tuple[str, Part, Sequence[str]]
"""The name of a part, the part, and the items that are to be measured."""


def parts_of(group: str) -> dict[str, Part]:
    """The parts of a group by their names."""
    if group == "stats":
        return {one.key: one.part() for one in simulations()}
    modules = sorted(path.stem for path in Path(__file__).parent.glob(f"{group}_*.py"))
    return {name.removeprefix(f"{group}_").replace("_", "-"): importlib.import_module(name).PART for name in modules}


def main(arguments: list[str]) -> int:
    """Exit code: as in the text of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--parts", default="", help="parts of the group, such as matrix,truth of explain")
    parser.add_argument("items", nargs="*", help="of these parts, or of all if --parts is not given")
    asked = parser.parse_intermixed_args(arguments)
    parts = parts_of(asked.group)
    try:
        works = chosen_work(parts, asked.parts.split(",") if asked.parts else [], asked.items)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    place = BUILD / f"bench-{asked.group}.json"
    kept = read_kept(place)
    try:
        fine = [measure_part(place, kept, *work) for work in works]
    except KeyboardInterrupt:
        print(f"interrupted; what was measured until then is in {place}", file=sys.stderr)
        return 130
    for name, part in parts.items():
        if part.long and not asked.parts and not asked.items:
            print(f"\n{name}: left out: {part.long}; --parts {name} measures it")
    print(f"\n{place}")
    return 0 if all(fine) else 1


def chosen_work(parts: dict[str, Part], names: Sequence[str], items: Sequence[str]) -> list[Work]:
    """The parts, with the items to measure. UserError for a name of a part or an item that there is not."""
    chosen = [name for beginning in names for name in parts if name.startswith(beginning)]
    unknown = [beginning for beginning in names if not any(name.startswith(beginning) for name in parts)]
    if unknown:
        raise UserError(f"there is no part {unknown[0]!r}; there are: {', '.join(parts)}")
    wanted = chosen or [name for name, part in parts.items() if items or not part.long]
    works = [(name, parts[name], parts[name].items()) for name in dict.fromkeys(wanted)]
    known = [item for _, _, own in works for item in own]
    strange = [item for item in items if item not in known]
    if strange:
        raise UserError(f"there is no {strange[0]!r} in {', '.join(wanted)}; there are: {', '.join(known)}")
    asked = [(name, part, [item for item in own if item in items or not items]) for name, part, own in works]
    return [work for work in asked if work[2]]


def read_kept(place: Path) -> dict[str, dict[str, Any]]:
    """What an earlier run wrote. A file that is no such file is left out, and this is said."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return {name: one for name, one in found.items() if "items" in one}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        print(f"{place} cannot be read, and is written anew: {error}", file=sys.stderr)
        return {}


def measure_part(place: Path, kept: dict[str, dict[str, Any]], name: str, part: Part, items: Sequence[str]) -> bool:
    """Measure the items of a part, and write after each. Returns whether all have numbers and all bounds hold."""
    print(f"\n{name}: {part.goal}", flush=True)
    one = kept.setdefault(name, {"items": {}})
    one["goal"] = part.goal
    for item in items:
        print(f"  {item} ...", flush=True)
        one["items"][item] = measured_item(part, item)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, (json.dumps(kept, indent=2) + "\n").encode())
    details = {item: told["details"] for item, told in one["items"].items() if "details" in told}
    fine = print_figures(part, {item: found for item, found in details.items() if item in items})
    try:
        if part.together and len(details) > 1:
            fine &= print_figures(part, {"together": part.together(details)})
        if part.rows and details:
            rows = [row for item, found in details.items() for row in part.rows(item, found)]
            print("", part.head, "|---" * (part.head.count("|") - 1) + "|", *rows, sep="\n", flush=True)
    except (KeyError, TypeError, ValueError) as error:
        print(f"  the items in {place} are of different versions: {_reason(error)}", file=sys.stderr)
        fine = False
    return fine and all(item in details for item in items)


def print_figures(part: Part, details: dict[str, Details]) -> bool:
    """Print the figures of some items; False if a bound does not hold."""
    fine = True
    for item, found in details.items():
        for figure in part.figures_of(found):
            print(figure.line(item, found), flush=True)
            fine &= figure.holds(found)
    return fine


def measured_item(part: Part, item: str) -> dict[str, Any]:
    """The numbers of an item, or why there are none, and under what conditions it was measured."""
    conditions = {"date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "commit": commit(), "machine": machine()}
    begin_s = time.monotonic()
    try:
        found: dict[str, Any] = {"details": part.measure(item)}
    except (Exception, SystemExit) as error:  # whatever it is, it must not take the hours of the other parts with it
        found = {"not_measured": _reason(error)}
        print(f"  {item}: not measured: {found['not_measured']}", file=sys.stderr, flush=True)
    spent = {"seconds": round(time.monotonic() - begin_s, 1), "load_average_at_the_end": os.getloadavg()}
    return {**conditions, **spent, **found}


def _reason(error: BaseException) -> str:
    """In one line. A fault of the program leaves its traceback on the screen."""
    if isinstance(error, RtproofError):
        return str(error)
    if not isinstance(error, OSError | ImportError | subprocess.SubprocessError | SystemExit):
        traceback.print_exception(error)
    return " ".join(f"{type(error).__name__}: {error}".split())


def commit() -> str:
    """Of the project; -dirty behind it where files differ from the commit."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> dict[str, Any]:
    """What of this machine has a bearing on the figures."""
    told: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        told.setdefault(key.strip(), value.strip())
    return {
        "kernel": f"{platform.release()} {platform.version()}",
        "architecture": platform.machine(),
        "processor": told.get("model name", "unknown"),
        "cpus": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in told.get("flags", "").split(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
