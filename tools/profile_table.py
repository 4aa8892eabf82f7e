# SPDX-License-Identifier: Apache-2.0
"""usage: profile_table.py [FOLDER]    puts what `rtproof lab profile` measures into docs/profiles.md

Without FOLDER it measures everything, with JOBS guests at once (default 3), and leaves the results in runs/. This takes
some minutes. With FOLDER it takes the results that are there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab_table import put

PAGE = Path(__file__).parent.parent / "docs" / "profiles.md"
BEGIN = "<!-- tools/profile_table.py writes from here -->\n"
END = "<!-- to here: the profiles -->"
COMMANDS = {
    "bootlin-gpio": "",
    "bootlin-timer": "--set method=clock_nanosleep,posix_timer",
    "bootlin-xenomai": "--set stage=user",
    "akamina": "--set load=loaded",
    "ten-ms": "--duration 20s --set load=stress",
    "simple-rt-app": "",
    "toradex": "--set load=loaded",
}
"""What is asked of each profile; 5 s a cell where nothing else is said."""
MEASURED = (0, 1, 4)
"""Exit codes: without a limit, REFUTED, UNDECIDED."""
PLAIN = {"plain", "voluntary", "preempt"}
"""Words in the keys of an article's rows that are not of PREEMPT_RT."""
Json = Mapping[str, Any]


def largest(analysis: Json) -> str:
    """Of the stage that is judged, in microseconds."""
    return f"{analysis['pooled']['observed']['max_ns'] / 1000:,.1f}"


def top(analysis: Json) -> str:
    """How late the loop began at worst, in microseconds."""
    (stage,) = (stage for stage in analysis["stages"] if stage["field"] == "top")
    return f"{stage['observed']['max_ns'] / 1000:,.1f}"


def out_of_band(analysis: Json) -> str:
    cycles = analysis["cycles"]
    return f"{cycles['short_count'] + cycles['long_count']:,} of {cycles['counted_count']:,}"


def article_largest(figures: Json) -> str | None:
    return _largest_of(figures, "max")


def article_top(figures: Json) -> str | None:
    return _largest_of(figures, "top.max")


def _largest_of(figures: Json, name: str) -> str | None:
    """Of several threads the largest."""
    found = [each for key, each in figures.items() if key == name or (name == "max" and key.endswith(".max"))]
    if not found:
        return None
    most = max(found, key=lambda figure: int(figure["value"]))
    return ("> " if most["at_least"] else "") + f"{most['value'] / 1000:,.0f}"


def article_out_of_band(figures: Json) -> str | None:
    below, above, count = (figures.get(name, {}).get("value") for name in ("below", "above", "count"))
    return None if below is None or above is None else f"{below + above:,} of {count:,}"


@dataclass(frozen=True)
class Row:
    """rt, plain: keys of the cells for the columns, where these are not the same."""

    label: str
    profile: str
    rt: str
    plain: str
    here: Callable[[Json], str] = largest
    article: Callable[[Json], str | None] = article_largest


ROWS = (
    Row("bootlin-gpio, edge to answer", "bootlin-gpio", "loaded", "loaded"),
    Row("bootlin-timer, clock_nanosleep", "bootlin-timer", "clock-nanosleep", "clock-nanosleep"),
    Row("bootlin-timer, POSIX timer", "bootlin-timer", "posix-timer", "posix-timer"),
    Row("bootlin-xenomai, task of user space (article: Xenomai)", "bootlin-xenomai", "user", "user"),
    Row("akamina, preemption latency under communication", "akamina", "loaded", "loaded"),
    Row("simple-rt-app, top of loop", "simple-rt-app", "loaded", "loaded", top, article_top),
    Row("toradex, random interrupts (plain: voluntary, full)", "toradex", "loaded", "loaded"),
    Row(
        "ten-ms, cycles out of 8 to 12 ms under stress (RT: fifo; plain: other, in the article on the same kernel)",
        *("ten-ms", "fifo--stress", "other--stress"),
        *(out_of_band, article_out_of_band),
    ),
)


def cells_of(row: Row, result: Json) -> list[str]:
    """A row: PREEMPT_RT, the plain kernel in its models, the article's rows of the one and of the other."""
    cells = {each["key"]: each for each in result["cells"]}
    rt, *_ = cells[row.rt]["results"]
    _, *others = cells[row.plain]["results"]
    here = [row.here(rt["analysis"]), ", ".join(row.here(each["analysis"]) for each in others)]
    same = row.rt == row.plain
    realtime = [each for each in cells[row.rt]["article"] if not (same and is_plain(each["key"]))]
    without = [each for each in cells[row.plain]["article"] if not same or is_plain(each["key"])]
    return [row.label, *here, *(span([row.article(each["figures"]) for each in rows]) for rows in (realtime, without))]


def is_plain(key: str) -> bool:
    return bool(PLAIN & set(key.split("-")))


def span(found: Sequence[str | None]) -> str:
    """From the smallest to the largest of those that are told."""
    told = sorted(
        {each for each in found if each}, key=lambda each: float(each.strip("> ").split()[0].replace(",", ""))
    )
    return " to ".join(dict.fromkeys((told[0], told[-1]))) if told else ""


def table(results: Mapping[str, Json]) -> str:
    """Markdown, with what was typed above it and what made it below."""
    typed = "\n".join(f"    {command(name)}" for name in COMMANDS)
    rows = [["profile, us", "PREEMPT_RT", "plain", "article, RT", "article, plain"], ["---", *["---:"] * 4]]
    rows += [cells_of(row, results[row.profile]) for row in ROWS]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{typed}\n\n{lines}\n\nMade with {', '.join(releases(results))}.\n"


def releases(results: Mapping[str, Json]) -> list[str]:
    analyses = [each["analysis"] for result in results.values() for cell in result["cells"] for each in cell["results"]]
    return sorted({analysis["record"]["kernel_release"] for analysis in analyses})


def command(name: str) -> str:
    return f"rtproof lab profile {name} {COMMANDS[name]}".rstrip()


def measure(folder: Path) -> None:
    """One profile after the other; ends the program if a cell fails."""
    folder.mkdir(parents=True)
    for name in COMMANDS:
        print(command(name), flush=True)
        words = [*command(name).split()[1:], "--jobs", os.environ.get("JOBS", "3"), "--output", str(folder / name)]
        code = subprocess.run(
            [sys.executable, "-m", "rtproof", *words], stdout=subprocess.DEVNULL, check=False
        ).returncode
        if code not in MEASURED:
            raise SystemExit(f"{name} ended with exit code {code}")


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-profile-table"
    if not arguments:
        measure(folder)
    results = {name: json.loads((folder / name / "result.json").read_bytes()) for name in COMMANDS}
    put(PAGE, table(results), BEGIN, END)


if __name__ == "__main__":
    main(sys.argv[1:])
