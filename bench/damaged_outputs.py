# SPDX-License-Identifier: Apache-2.0
"""Damaged outputs of every tool that can be read, as many of each: is each read, or refused with a sentence?

    .venv/bin/python bench/damaged_outputs.py                # 100,000 of each tool, about twenty minutes
    .venv/bin/python bench/damaged_outputs.py --number 1000 rtla oslat

``bench/fuzz.py`` draws from all files together and also judges and draws what it read. This calls the readers alone, so
that rare tools get as many inputs as common ones. Exit code 1 if one ended in anything but a result or a UserError.
"""

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType

from fuzzing import mutations
from fuzzing.targets import tool_outputs

from rtproof import importers
from rtproof.core import plugins
from rtproof.core.errors import UserError

LARGEST_BYTES = 60_000
"""Longer seeds are cut, most of the time, because they would take the time of all others."""
MOST_KEPT = 3
FINDINGS = Path("build/fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", help="names of tools, as docs/formats.md has them; all by default")
    parser.add_argument("--number", type=int, default=100_000, help="inputs of each tool (default 100000)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    readers = [module for module in plugins.load_plugins(importers) if not asked.tools or module.TOOL in asked.tools]
    seeds = seeds_of(readers)
    found = [read_damaged(module, seeds[module.TOOL], asked.number, random.Random(asked.seed)) for module in readers]  # noqa: S311
    return 1 if any(found) else 0


def seeds_of(readers: list[ModuleType]) -> dict[str, list[bytes]]:
    """Real outputs of each tool, by its name."""
    seeds: dict[str, list[bytes]] = defaultdict(list)
    for content in tool_outputs():
        text = content.decode(errors="replace")
        for module in readers:
            if module.looks_like(text):
                seeds[module.TOOL].append(content)
    return seeds


def read_damaged(module: ModuleType, seeds: list[bytes], number: int, dice: random.Random) -> int:
    """Read so many damaged outputs and print a line of what came of them; the number of findings."""
    came: Counter[str] = Counter()
    started, slowest = time.process_time(), 0.0
    for _ in range(number):
        content = damaged(seeds, dice)
        before = time.process_time()
        outcome = outcome_of(module, content.decode(errors="replace"))
        slowest = max(slowest, time.process_time() - before)
        came[outcome] += 1
        if outcome not in OUTCOMES and came[outcome] <= MOST_KEPT:
            keep(module.TOOL, outcome, came[outcome], content)
    print(
        f"{module.TOOL}: {len(seeds)} seeds; {', '.join(f'{came[name]:,} {name}' for name in sorted(came))}; "
        f"{time.process_time() - started:.0f} s, the slowest {slowest:.2f} s",
        flush=True,
    )
    return sum(count for outcome, count in came.items() if outcome not in OUTCOMES)


OUTCOMES = {"read", "refused", "not known as this tool's"}


def outcome_of(module: ModuleType, text: str) -> str:
    """One of OUTCOMES, or the name of an exception that no reader may raise."""
    try:
        if not module.looks_like(text):
            return "not known as this tool's"
        module.read(text)
    except UserError:
        return "refused"
    except Exception as problem:
        return repr(problem)
    return "read"


def keep(tool: str, outcome: str, number: int, content: bytes) -> None:
    FINDINGS.mkdir(parents=True, exist_ok=True)
    place = FINDINGS / f"histogram-{''.join(filter(str.isalnum, tool))}-{number}"
    place.write_bytes(content)
    print(f"{tool}: {outcome}: {place}", file=sys.stderr)


def damaged(seeds: list[bytes], dice: random.Random) -> bytes:
    """A seed after one to three damages, some of them such as editors, shells and terminals make."""
    content = dice.choice(seeds)
    if len(content) > LARGEST_BYTES and dice.random() < 0.9:
        content = content[: dice.randrange(2_000, LARGEST_BYTES)]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        way = dice.random()
        if way < 0.03:
            content = content.replace(b"\n", b"\r\n")
        elif way < 0.05:
            content = b"\xef\xbb\xbf" + content
        elif way < 0.08:
            content = b"[sudo] password for me:\n" + content
        elif way < 0.11:
            content += dice.choice(seeds)
        elif content:
            content = dice.choice(mutations.WAYS)(content, dice)
    return content


if __name__ == "__main__":
    sys.exit(main())
