# SPDX-License-Identifier: Apache-2.0
"""From a record to everything that is said about it."""

from rtproof.analysis.doubts import doubts
from rtproof.analysis.evidence import gather
from rtproof.analysis.model import Analysis, Requirement
from rtproof.analysis.pool import pooled
from rtproof.analysis.scan import summarise
from rtproof.analysis.verdict import judge
from rtproof.record import Record


def analyse(record: Record, requirement: Requirement | None = None, workers: int | None = None) -> Analysis:
    """Numbers, doubts and verdict. workers: processes for reading a large record, by default one per CPU.

    RecordError if the samples cannot be read or claim what no clock can show.
    """
    summaries = summarise(record, workers)
    together = pooled(summaries)
    found = doubts(record, summaries, requirement)
    evidence = gather(record, requirement, summaries, together, found)
    return Analysis(record, summaries, together, found, judge(requirement, evidence))
