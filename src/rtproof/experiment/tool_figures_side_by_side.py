# SPDX-License-Identifier: Apache-2.0
"""Files of other tools that hold only minimum, mean and maximum: the figures of both sides, one beside the other.

One maximum of each side tests nothing: the longer a run, the larger its maximum. So nothing is called better here.
"""

from collections.abc import Sequence
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, quantity
from rtproof.experiment import stored_runs
from rtproof.experiment.run_sets import ResultDocument
from rtproof.judge.doubts.registry import contradicted
from rtproof.report import number_format
from rtproof.report.blocks import Section, Table, Text
from rtproof.summary.imported_histogram import ImportedHistogram

NO_TEST = (
    "These files hold no histogram, so no test is made and neither side is called better. A longer run has a larger "
    "maximum: compare the number of samples first."
)


def side_by_side_document(sides: Sequence[tuple[str, Sequence[Path]]], *, as_json: bool) -> ResultDocument | None:
    """The figures of the files of two sides; None unless all were printed by other tools, and one has no histogram.

    UserError for files of different tools, and for JSON, which ``rtproof show`` prints of each file.
    """
    found = [
        (name, path, stored_runs.read_histogram_file(path))
        for name, paths in sides
        for path in stored_runs.find_runs(paths, stored_runs.is_histogram_file)
    ]
    files = [(name, path, imported) for name, path, imported in found if imported]
    if len(files) < len(found) or all(imported.histogram for _, _, imported in files):
        return None
    if as_json:
        raise UserError("files without a histogram are not compared as JSON: rtproof show FILE --json prints each")
    tools = {imported.tool for _, _, imported in files}
    if len(tools) > 1:
        raise UserError(f"the files are of {' and of '.join(sorted(tools))}, which do not measure the same")
    unit = number_format.unit_for([ns for *_, each in files for ns in (each.min_ns, each.mean_ns, each.max_ns)])
    heads = number_format.unit_headings(unit, "min", "mean", "max")
    rows = tuple((name, path.name, *_row(imported, unit)) for name, path, imported in files)
    table = Table(
        "Figures as printed", ("side", "file", "threads", "n", "measured for", *heads), rows, (2, 3, 4, 5, 6, 7)
    )
    faults = [Text((f"{path}: {fault}",)) for _, path, imported in files for fault in contradicted(imported).faults]
    section = Section("ends", "Side by side", (Text((NO_TEST,)), table, *faults))
    title = f"rtproof: {quantity(len(files), 'file')} of {tools.pop()} side by side"
    return ResultDocument(title, [section], [section], b"")


def _row(imported: ImportedHistogram, unit: number_format.PrintedUnit) -> tuple[str, ...]:
    least_ns = imported.at_least_ns
    length = duration(imported.duration_ns) if imported.duration_ns else f">= {duration(least_ns)}" if least_ns else ""
    ends = (imported.min_ns, imported.mean_ns, imported.max_ns)
    return (str(len(imported.parts) or 1), number_format.count_text(imported.count), length, *map(unit.show, ends))
