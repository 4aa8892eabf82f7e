# SPDX-License-Identifier: Apache-2.0
"""How a record that the tests build in memory becomes an input of the golden corpus: a file or a run folder.

The stored inputs were written once, by ``make_inputs.py`` and ``make_planted_inputs.py`` of commit 527903ee. For a
further one: ``store_run(folder, record, WANTED)``, with ``PYTHONPATH=tests:tests/golden_outputs``.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import run_folders
from analysis_records import SECOND, fact

from rtproof.record import run_folder
from rtproof.record.contents import (
    Block,
    Record,
    Series,
    SeriesTotals,
)
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import RunInfo
from rtproof.record.writing import RecordWriter, SeriesWriter

WANTED = Requirement(500_000, SECOND, gap_ns=SECOND, longest_ns=10 * SECOND)


def store(path: Path, made: Record, limits_ns: tuple[int, ...] = ()) -> None:
    """Write a record with everything that it holds."""
    with RecordWriter(path) as writer:
        writer.begin(made.begin)
        for each in made.facts:
            writer.fact(each)
        for system_file in made.files:
            writer.file(system_file)
        for series in made.series:
            writer.series(series)
        totals = [_store_samples(writer, made, series, limits_ns) for series in made.series]
        for part in made.slices:
            writer.summary(part)
        for conditions in made.conditions.values():
            writer.conditions(conditions)
        for counter in made.counters:
            writer.counter(counter)
            for time_ns, value in zip(counter.time_ns.tolist(), counter.value.tolist(), strict=True):
                writer.tick(time_ns, [(counter.id, value)])
        for event in made.events:
            writer.event(event)
        if made.end:
            writer.end(replace(made.end, totals=tuple(totals) if not made.slices else made.end.totals))


def _store_samples(writer: RecordWriter, made: Record, series: Series, limits_ns: tuple[int, ...]) -> SeriesTotals:
    """With summaries, as the agent writes them, where the samples follow each other without a hole."""
    blocks = list(made.blocks(series.id))
    if _is_whole(series, blocks):
        last = [each for each in made.series if each.thread == series.thread][-1]
        feed = SeriesWriter(writer, series, limits_ns=limits_ns if series == last else None)
        for each in blocks:
            feed.add(each.values, each.gap_position, each.gap_missed)
        return feed.finish()
    for each in blocks:
        writer.samples(each)
    told = made.end.totals if made.end else ()
    return next((each for each in told if each.series == series.id), SeriesTotals(series.id, 0, 0, 0))


def _is_whole(series: Series, blocks: Sequence[Block]) -> bool:
    index = 0
    for each in blocks:
        if each.first_index != index or (series.external and index):
            return False
        index += each.values.size + int(each.gap_missed.sum())
    return bool(blocks) and not series.external


def store_run(folder: Path, made: Record, *wanted: Requirement, note: str = "") -> None:
    """A run folder whose requirements were fixed before."""
    folder.mkdir()
    info: RunInfo = run_folders.INFO
    fields = {name: getattr(info, name) for name in info.__struct_fields__}
    run_folder.write_run_info(folder, RunInfo(**{**fields, "requirements": wanted, "note": note}))
    limits = tuple(each.limit_ns for each in wanted)
    if made.fact("limits_ns") is None:
        claims = [fact("claims", run_folder.claims_text(wanted))] if wanted else []
        made = replace(made, facts=(*made.facts, fact("limits_ns", ",".join(map(str, dict.fromkeys(limits)))), *claims))
    store(folder / run_folder.RECORD_NAME, made, limits)
