# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain``: measures whether the causes of lateness are right, and writes build/bench-explain.json.

    python bench/explain.py [--parts NAME,NAME...] [ITEM...]

Without --parts all parts are measured but the long ones. Items choose some of a part, such as the system 6.1-rt. The
file is written after each item, so an interrupted run keeps what it has. Items that are not measured now keep what an
earlier run wrote, with its date and commit. Exit codes: 1 when a bound is missed or an item has no numbers, 130 when
the run was interrupted.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import explain_applications
import explain_applications_here
import explain_foreign
import explain_hour
import explain_matrix
import explain_novel
import explain_observer
import explain_senders
import explain_truth
from explain_parts import ROOT, Figure, Items, Part

from rtproof.core.errors import RtproofError, UserError
from rtproof.core.files import write_whole

PLACE = ROOT / "build" / "bench-explain.json"
PARTS: Mapping[str, Part] = {
    "matrix": explain_matrix.PART,
    "applications": explain_applications.PART,
    "applications-here": explain_applications_here.PART,
    "truth": explain_truth.PART,
    "hour": explain_hour.PART,
    "observer": explain_observer.PART,
    "foreign": explain_foreign.PART,
    "novel": explain_novel.PART,
    "further": explain_novel.FURTHER_PART,
    "senders": explain_senders.PART,
}


@dataclass(frozen=True)
class Work:
    """The items of a part that are to be measured. why_not: why nobody can tell its items."""

    name: str
    part: Part
    items: tuple[str, ...]
    why_not: str = ""


@dataclass
class Store:
    """The file. It is replaced as a whole, so it can be read at any time."""

    place: Path
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def opened(cls, place: Path) -> "Store":
        """With what an earlier run wrote. A file that is no such file is left out, and this is told."""
        try:
            found = json.loads(place.read_text(encoding="utf-8"))
            kept = {name: one for name, one in found.items() if isinstance(one, dict) and "items" in one}
        except FileNotFoundError:
            return cls(place)
        except (OSError, ValueError, AttributeError) as error:
            print(f"{place} cannot be read, and is written anew: {error}", file=sys.stderr)
            return cls(place)
        for name in found.keys() - kept.keys():
            print(f"{place}: {name!r} is from another version, and is left out", file=sys.stderr)
        return cls(place, kept)

    def part(self, name: str, part: Part) -> dict[str, Any]:
        """What the file says of a part, to be changed."""
        one = self.parts.setdefault(name, {"items": {}})
        one["asked"] = part.asked
        return one

    def write(self) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.place, (json.dumps(self.parts, indent=2) + "\n").encode())


def main(arguments: list[str]) -> int:
    """Exit code: as in the text of this file."""
    try:
        names, items = _asked(arguments)
        works = chosen_work(names, items)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    store = Store.opened(PLACE)
    try:
        fine = [measure_part(store, work) for work in works]
    except KeyboardInterrupt:
        print(f"interrupted; what was measured until then is in {PLACE}", file=sys.stderr)
        return 130
    for name, part in PARTS.items():
        if part.long and not names and not items:
            tell_long(store, name, part)
    print(f"\n{PLACE}")
    return 0 if all(fine) else 1


def tell_long(store: Store, name: str, part: Part) -> None:
    """Say that a part was left out; in the file too, if it has no numbers of an earlier run."""
    why = f"{part.long}; --parts {name} measures it"
    print(f"\n{name}: left out: {why}")
    one = store.part(name, part)
    if not one["items"]:
        one["not_measured"] = why
        store.write()


def _asked(arguments: list[str]) -> tuple[list[str], list[str]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = ",".join(name for name, part in PARTS.items() if not part.long)
    long = "; ".join(f"{name} is not among them: {part.long}" for name, part in PARTS.items() if part.long)
    parser.add_argument("--parts", default="", help=f"of {', '.join(PARTS)}; default {usual}. {long}")
    parser.add_argument("items", nargs="*", help="of these parts, or of all if --parts is not given")
    asked = parser.parse_args(arguments)
    names = [name.strip() for name in asked.parts.split(",")]
    if asked.parts and not all(names):
        raise UserError(f"--parts {asked.parts!r} has an empty name; there are: {', '.join(PARTS)}")
    return [name for name in names if name], asked.items


def chosen_work(names: Sequence[str], items: Sequence[str]) -> list[Work]:
    """The parts, with the items to measure. UserError for a name of a part or an item that there is not."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise UserError(f"there is no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    wanted = names or [name for name, part in PARTS.items() if items or not part.long]
    works = [_work(name) for name in dict.fromkeys(wanted)]
    known = [item for work in works for item in work.items]
    strange = [item for item in items if item not in known]
    if strange:
        raise UserError(f"there is no {strange[0]!r} in {', '.join(wanted)}; there are: {', '.join(known)}")
    if not items:
        return works
    chosen = [Work(work.name, work.part, tuple(item for item in work.items if item in items)) for work in works]
    return [work for work in chosen if work.items]


def _work(name: str) -> Work:
    part = PARTS[name]
    try:
        return Work(name, part, tuple(part.items()))
    except (RtproofError, OSError) as error:
        return Work(name, part, (), str(error))


def measure_part(store: Store, work: Work) -> bool:
    """Measure the items of a part, and write after each. Returns whether all have numbers and all bounds hold."""
    print(f"\n{work.name}: {work.part.asked}", flush=True)
    one = store.part(work.name, work.part)
    one.pop("not_measured", None)
    if work.why_not:
        one["not_measured"] = work.why_not
        print(f"  not measured: {work.why_not}", flush=True)
    for item in work.items:
        print(f"  {item} ...", flush=True)
        one["under_way"] = item  # stays in the file of a run that ends here
        store.write()
        one["items"][item] = measured_item(work.part, item)
        del one["under_way"]
        put_figures(one, work.part)
        store.write()
    found = [figure for figure in put_figures(one, work.part) if figure.of in (*work.items, "")]
    store.write()
    details = details_of(one)
    print(*figure_lines(found), *(work.part.lines(details) if details else ()), sep="\n", flush=True)
    told = not work.why_not and "no_figures" not in one and all(item in details for item in work.items)
    return told and all(figure.holds is not False for figure in found)


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
    if not isinstance(error, OSError | subprocess.SubprocessError | SystemExit):
        traceback.print_exception(error)
    return " ".join(f"{type(error).__name__}: {error}".split())


def put_figures(one: dict[str, Any], part: Part) -> Sequence[Figure]:
    """Put the figures of all items into what the file says of a part, and whether all bounds hold."""
    details = details_of(one)
    try:
        found = part.figures(details) if details else []
        one.pop("no_figures", None)
    except (KeyError, TypeError, ValueError) as error:
        found, one["no_figures"] = [], f"the items are of different versions: {_reason(error)}"
    one["figures"] = [figure.as_json() for figure in found]
    whole = len(details) == len(one["items"]) and "no_figures" not in one
    one["holds"] = whole and all(figure.holds is not False for figure in found)
    return found


def details_of(one: Mapping[str, Any]) -> Items:
    """The items of a part that have numbers."""
    return {item: told["details"] for item, told in one["items"].items() if "details" in told}


def figure_lines(found: Sequence[Figure]) -> list[str]:
    """A table of figures."""
    lines = []
    for figure in found:
        n, of = f"n = {figure.n:<8,}", figure.of or "all"
        value = "none" if figure.value is None else f"{figure.value:,.3f}".rstrip("0").rstrip(".")
        asked = f"asked {figure.bound}{'' if figure.holds else ', MISSED'}" if figure.bound else ""
        lines.append(f"{of:20} {figure.words:54} {value:>10} {figure.unit:2} {n} {asked}".rstrip())
    return lines


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
