# SPDX-License-Identifier: Apache-2.0
"""What ``rtproof run --trace`` and ``--observer`` add to a run: its options, and the files beside the record."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof import exporters, plugins, units
from rtproof.cli import measuring
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Analysis

BLOCKS = 80
"""Blocks that ``--observer`` aims at: enough for an interval, each long enough to hold many activations."""
SHORTEST_BLOCK_NS = 100_000_000
LONGEST_BLOCK_NS = 2_000_000_000
MOST_LINES = 5_000_000
"""Samples beyond which a text of them is no use to anybody and fills the disk."""

SEED = "seed="
"""What ``--trace`` calls the number from which the agent makes the order of the turns."""

FILES = {"trace-txt": "trace.txt", "trace-dat": "trace.dat"}

observer_option = click.option(
    "--observer", is_flag=True, help="Trace by turns, and tell by how much that alone changes the latency."
)


def observed(values: dict[str, Any], of_profile: bool) -> dict[str, Any]:
    """The options of a run in which tracing is on and off by turns, in an order that chance draws here.

    A load that has turns of its own, and begins with the run, would meet the same order in the same way each time.
    """
    if of_profile:
        raise click.UsageError("--observer is for one run and not for a --profile: say --probe and its options")
    block_ns = max(SHORTEST_BLOCK_NS, min(LONGEST_BLOCK_NS, measuring.length_ns(values) // BLOCKS))
    given = [option for option in (values["trace"] or "on").split(",") if option != "on"]
    if not any(option.startswith(SEED) for option in given):
        given.append(f"{SEED}{secrets.randbelow(1 << 32)}")
    whole_ms = units.format_duration(block_ns // 1_000_000 * 1_000_000)
    return {**values, "trace": ",".join(given), "trace_blocks": values["trace_blocks"] or whole_ms}


def keep_beside(folder: Path, analysis: "Analysis") -> list[str]:
    """Write the trace and the samples for other programs into the run folder: what was written, or why not."""
    from rtproof.analysis.tracefile import has_trace

    if not has_trace(analysis.record):
        return []
    names = {**FILES, **_samples(analysis)}
    return [export(name, folder / file, analysis) for name, file in names.items()]


def _samples(analysis: "Analysis") -> dict[str, str]:
    """The exporter that makes lines of the samples, and its file."""
    from rtproof.analysis import app

    if too_many(analysis) or not all(series.has_samples for series in analysis.record.series):
        return {}
    return {"app-csv" if app.is_app(analysis.record) else "csv": "samples.csv"}


def too_many(analysis: "Analysis") -> bool:
    """Whether a line for each sample is more than anybody can use."""
    return analysis.pooled.obtained > MOST_LINES


def export(name: str, path: Path, analysis: "Analysis", options: Mapping[str, str] | None = None) -> str:
    """Write the file in a format: what was written, or why not."""
    try:
        sentence: str = plugins.load(exporters, name).export(analysis, path, dict(options or {}))
    except UserError as problem:
        return f"no {path.name}: {problem}"
    except OSError as problem:
        return f"no {path.name}: {problem.strerror}"
    return sentence
