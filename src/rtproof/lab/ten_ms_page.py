# SPDX-License-Identifier: Apache-2.0
"""The loop of 10 ms in words, tables and JSON, each scenario beside the article's figures."""

import json
from typing import Any

from rtproof.analysis import cycles
from rtproof.analysis.model import Cycles
from rtproof.analysis.phrases import duration
from rtproof.lab.comparison import VIRTUAL_TIME
from rtproof.lab.matrix import Ran
from rtproof.lab.page import Making, made_of
from rtproof.lab.ten_ms import IGNORED, NOTE, PERIOD_NS, Found, Line
from rtproof.report import figures
from rtproof.report.blocks import Block, Section, Table, Text

TITLE = "rtproof lab: the 10 ms loop of article 2 in virtual time"
SCHEMA = "rtproof.lab.ten-ms"
VERSION = 1
MS = figures.Unit("ms", 1_000_000, 3)
HEADER = ("scenario", "where", "cycles", "below 8 ms", "above 12 ms", "max [ms]", "min [ms]", "stalled")


def sections(results: list[Found]) -> list[Section]:
    """What a terminal shows."""
    return [
        Section("cycles", "Lengths of the cycles", (table(results), Text((VIRTUAL_TIME, NOTE)))),
        Section("known", "What this tells of cycles that nobody saw", tuple(_known(results))),
        *_faults(results),
    ]


def page_sections(results: list[Found], ran: Ran, making: Making) -> list[Section]:
    """What the terminal shows, and how it was made."""
    read = [(each.cell.system, result.reading) for each, result in zip(results, ran.results, strict=True)]
    return [*sections(results), made_of(making, read, [ran])]


def table(results: list[Found]) -> Table:
    """Two rows for each scenario: here, and in the article."""
    rows = [row for each in results for row in (_here(each), _article(each.scenario.article))]
    ignored = " or ".join(figures.count(n) for n in sorted({each.cycles.ignored for each in results if each.cycles}))
    caption = f"Cycles of a kernel task's loop of 10 ms; the first {ignored or IGNORED} are not counted"
    return Table(caption, HEADER, tuple(rows), (2, 3, 4, 5, 6, 7))


def _here(each: Found) -> tuple[str, ...]:
    if each.cycles is None:
        return (each.scenario.name, "here", "failed", "", "", "", "", "")
    found = each.cycles
    counts = map(figures.count, (found.counted, found.short, found.long))
    name = f"{each.scenario.name} (INVALID)" if each.invalid else each.scenario.name
    return (name, "here", *counts, MS.show(found.max_ns), MS.show(found.min_ns), _stalled(each))


def _stalled(each: Found) -> str:
    return f"STALLED {duration(each.stalled_ns)}" if each.stalled_ns else "no"


def _article(line: Line) -> tuple[str, ...]:
    counts = map(figures.count, (line.counted, line.short, line.long))
    return ("", "article", *counts, f"{line.max_ms:.2f}", f"{line.min_ms:.2f}", "no")


def _known(results: list[Found]) -> list[Block]:
    lines = tuple(f"{each.scenario.name}: {cycles.says(each.cycles)}" for each in results if each.cycles)
    caught = tuple(f"{each.scenario.name}: {_catching_up(each.cycles)}" for each in results if _catches_up(each.cycles))
    return [Text(words) for words in (lines, caught) if words]


def _catches_up(found: Cycles | None) -> bool:
    return bool(found and found.catch_up_pairs)


def _catching_up(found: Cycles | None) -> str:
    assert found is not None
    related = "" if found.correlation is None else f"; correlation of neighbouring cycles {found.correlation:.2f}"
    return (
        f"{figures.count(found.catch_up_pairs)} times a long cycle was followed by a short one, to catch up{related}."
    )


def _faults(results: list[Found]) -> list[Section]:
    failed = tuple(f"{each.scenario.name}: {each.failure}" for each in results if each.failure)
    invalid = tuple(f"{each.scenario.name}: {what}" for each in results for what in each.invalid)
    blocks = [Text(words, kind) for words, kind in ((failed, "bad"), (invalid, "doubt")) if words]
    return [Section("faults", "Failed and doubtful scenarios", tuple(blocks))] if blocks else []


def encode(results: list[Found], making: Making) -> bytes:
    """UTF-8, indented by two; docs/lab.md describes it."""
    found = {
        "schema": SCHEMA,
        "version": VERSION,
        "time": "virtual",
        "notes": [VIRTUAL_TIME, NOTE],
        "command": making.command,
        "rtproof_version": making.version,
        "qemu": dict(making.qemu),
        "agents_sha256": dict(making.agents),
        "period_ns": PERIOD_NS,
        "scenarios": [_scenario(each) for each in results],
    }
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"


def _scenario(each: Found) -> dict[str, Any]:
    article = each.scenario.article
    return {
        "name": each.scenario.name,
        "system": each.cell.system.name,
        "load": each.scenario.load.name,
        "failure": each.failure or None,
        "invalid": list(each.invalid),
        "here": _cycles(each) if each.cycles else None,
        "article": {
            "cycles_count": article.counted,
            "short_count": article.short,
            "long_count": article.long,
            "max_ns": round(article.max_ms * 1e6),
            "min_ns": round(article.min_ms * 1e6),
        },
    }


def _cycles(each: Found) -> dict[str, Any]:
    found = each.cycles
    assert found is not None
    return {
        "ignored_count": found.ignored,
        "cycles_count": found.counted,
        "short_count": found.short,
        "long_count": found.long,
        "max_ns": found.max_ns,
        "min_ns": found.min_ns,
        "stalled_ns": each.stalled_ns,
        "catch_up_pairs_count": found.catch_up_pairs,
        "correlation_ratio": found.correlation,
        "share_upper_ratio": cycles.most_out_of_band(found),
    }
