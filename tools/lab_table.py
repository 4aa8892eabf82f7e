# SPDX-License-Identifier: Apache-2.0
"""usage: lab_table.py RESULT.JSON    puts the largest latencies of `rtproof lab compare` into docs/lab.md"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "lab.md"
BEGIN = "<!-- tools/lab_table.py RESULT.JSON writes from here -->\n"
END = "<!-- to here -->"


def cell(found: Mapping[str, Any]) -> str:
    """Largest latency in microseconds over the shifts, and how many due times were missed."""
    if found["state"] != "measured":
        return str(found["state"])
    shifts = found["shifts"]
    missed = sum(shift["missed_count"] for shift in shifts)
    largest = max(shift["max_ns"] for shift in shifts) / 1000
    return f"{largest:,.1f}" + (f" ({missed})" if missed else "")


def table(result: Mapping[str, Any]) -> str:
    """Markdown: a row for each load, a column for each system; what made it stands above."""
    systems = [system["name"] for system in result["systems"]]
    loads = dict.fromkeys(found["load"] for found in result["cells"])
    cells = {(found["load"], found["system"]): cell(found) for found in result["cells"]}
    command = re.sub(r" --output \S+", "", result["command"])
    rows = [("load, us", *systems), ("---", *("---:" for _ in systems))]
    rows += [(load, *(cells[load, system] for system in systems)) for load in loads]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    made = ", ".join(sorted({*result["qemu"].values(), *(system["release"] for system in result["systems"])}))
    return f"    {command}\n\n" + "\n".join(lines) + f"\n\nMade with {made}.\n"


def put(page: Path, content: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what stands between the marks of a page; ends the program if the marks are gone."""
    before, _, rest = page.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{page.name} does not have the marks any more")
    page.write_text(before + begin + "\n" + content + "\n" + end + after)


if __name__ == "__main__":
    put(PAGE, table(json.loads(Path(sys.argv[1]).read_text())))
