# SPDX-License-Identifier: Apache-2.0
"""``make bench-stats``: check that statements hold as often as they claim; writes build/bench-stats.json.

Every number is measured now. Arguments choose benchmarks by the beginnings of their keys.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from acceptance import Benchmark, Result, benchmarks

BUILD = Path(__file__).parent.parent / "build"


def main(arguments: list[str]) -> int:
    """Measure, print and write; 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the form of the tests")
    parser.add_argument("names", nargs="*", help="keys, or beginnings of keys, of the benchmarks to measure")
    asked = parser.parse_args(arguments)
    chosen = [one for one in benchmarks() if not asked.names or one.key.startswith(tuple(asked.names))]
    found = {one.key: _measured(one, asked.short) for one in chosen}
    BUILD.mkdir(exist_ok=True)
    place = BUILD / "bench-stats.json"
    entries = {key: {"value": one.value, "goal": one.goal, "holds": one.holds} for key, one in found.items()}
    if asked.names and place.exists():
        entries = json.loads(place.read_text()) | entries
    place.write_text(json.dumps(dict(sorted(entries.items())), indent=2) + "\n")
    missed = [key for key, one in found.items() if not one.holds]
    print(f"{len(found) - len(missed)} of {len(found)} goals hold; {place}")
    return bool(missed)


def _measured(one: Benchmark, short: bool) -> Result:
    start = time.monotonic()
    result = one.measure(short)
    state = "holds" if result.holds else "MISSED"
    print(f"{one.key}: {one.title}: {state} ({time.monotonic() - start:.0f} s)\n    goal: {result.goal}")
    print(f"    measured: {json.dumps(result.value)}", *(f"    | {line}" for line in result.says), sep="\n", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
