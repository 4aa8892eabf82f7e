# SPDX-License-Identifier: Apache-2.0
"""Records of a simulated process, written part by part as an agent's summary is."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from analysis_records import BEGIN

from rtproof.record.contents import End, EndReason, Record
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter
from rtproof.simulation import simulated_thread
from rtproof.simulation.simulated_thread import SECOND_NS, SimulatedProcess, SimulationRequest, SummaryThread


def written(
    path: Path,
    process: SimulatedProcess,
    asked: SimulationRequest,
    parts: Sequence[tuple[int, int, int]],
    reason: EndReason,
) -> Record:
    """The record of all threads until the last part's end.

    parts: begin and length in seconds, and the seed of what is not late in it.
    """
    series = simulated_thread.series_of(asked)
    late = simulated_thread.late_activations(process, asked, series)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        for one in series:
            writer.series(one)
        feeds = [SummaryThread(writer, one) for one in series]
        for begin_s, length_s, seed in parts:
            for feed, one, late_one in zip(feeds, series, late, strict=True):
                feed.add(simulated_thread.play_stretch(one, late_one, begin_s, length_s, np.random.default_rng(seed)))
        writer.end(End(sum(parts[-1][:2]) * SECOND_NS, reason, "", tuple(feed.finish() for feed in feeds)))
    return open_record(path)
