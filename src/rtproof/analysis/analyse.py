# SPDX-License-Identifier: Apache-2.0
"""From a record to everything that is said about it."""

from dataclasses import replace

from rtproof.analysis.cycles import cycles
from rtproof.analysis.doubts import doubts
from rtproof.analysis.evidence import gather
from rtproof.analysis.fields import by_field, judged, of_field
from rtproof.analysis.forecast import wording
from rtproof.analysis.forecast.model import Horizon
from rtproof.analysis.forecast.predict import forecast
from rtproof.analysis.model import Analysis, Cycles, Requirement
from rtproof.analysis.pool import pooled
from rtproof.analysis.scan import summarise
from rtproof.analysis.switches import switches
from rtproof.analysis.verdict import judge
from rtproof.record import Record


def analyse(
    record: Record, requirement: Requirement | None = None, workers: int | None = None, horizon: Horizon | None = None
) -> Analysis:
    """Numbers, doubts and verdict. workers: processes for reading a large record, by default one per CPU.

    horizon: how far a forecast looks, by default ten times the measured time. RecordError if the samples cannot
    be read or claim what no clock can show.
    """
    every = summarise(record, workers)
    fields = by_field(record)
    summaries = of_field(every, judged(record))
    together = pooled(summaries)
    between = switches(record, fields)
    found = doubts(record, every, requirement, between)
    predicted = forecast(record, together, found, horizon)
    evidence = replace(gather(record, requirement, summaries, together, found), forecast=wording.lines(predicted))
    return Analysis(
        record,
        summaries,
        together,
        found,
        judge(requirement, evidence),
        every=every,
        stages=tuple(pooled(of_field(every, field)) for field in fields),
        switches=between,
        cycles=_cycles(record),
        forecast=predicted,
    )


def _cycles(record: Record) -> Cycles | None:
    return cycles(record) if any(series.loop for series in judged(record)) else None
