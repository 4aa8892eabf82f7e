# SPDX-License-Identifier: Apache-2.0
"""The files that an article kept of each run, beside the run folder of each cell of its profile."""

from pathlib import Path
from typing import TYPE_CHECKING

from rtproof import exporters, plugins
from rtproof.cli import results, tracing
from rtproof.cli.options import checked_options

if TYPE_CHECKING:
    from rtproof.analysis.model import Analysis
    from rtproof.profiles import Bins, Kept, Profile
    from rtproof.report.campaign import Outcome


def check(profile: "Profile") -> None:
    """UserError for a format or an option that there is not, which is better known before hours of measuring."""
    for each in profile.kept:
        known = plugins.load(exporters, each.format).OPTIONS
        checked_options(f"the format {each.format}", known, tuple(each.options.items()))


def keep(profile: "Profile", outcome: "Outcome", run: Path) -> dict[Path, str]:
    """Write them beside the run folder of a cell that was measured: of each path what was written, or why not."""
    if outcome.analysis is None:
        return {}
    binned = {results.beside(run, f".{each.file}"): each for each in profile.bins if each.file}
    others = {results.beside(run, f".{each.name}"): each for each in profile.kept}
    said = {path: _bins(each, outcome, outcome.analysis, path) for path, each in binned.items()}
    return said | {path: _file(each, outcome.analysis, path) for path, each in others.items()}


def _bins(bins: "Bins", outcome: "Outcome", analysis: "Analysis", path: Path) -> str:
    stage = outcome.stage(bins.stage)
    if stage is None:
        return f"no {path.name}: what was measured does not tell the {bins.name}"
    options = {"width": f"{bins.width_ns}ns", "count": str(bins.count), "field": stage.series.field}
    return tracing.export("bins", path, analysis, options)


def _file(file: "Kept", analysis: "Analysis", path: Path) -> str:
    if tracing.too_many(analysis):
        return f"no {path.name}: it would have more than {tracing.MOST_LINES:,} lines; 'rtproof export' writes it"
    return tracing.export(file.format, path, analysis, file.options)
