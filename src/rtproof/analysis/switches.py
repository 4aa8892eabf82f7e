# SPDX-License-Identifier: Apache-2.0
"""The time from one stage of an activation to the next, such as a context switch: differences, not of averages.

Both values belong to the same activation, found by its index, so the result is exact for each, whereas two averages, or
two dominant bins as in article 5, say only how far apart the two distributions lie.
"""

from itertools import pairwise

from rtproof.analysis.aligned import aligned
from rtproof.analysis.fields import Fields
from rtproof.analysis.model import Switch
from rtproof.analysis.tally import Tally
from rtproof.record import Record, Series


def switches(record: Record, fields: Fields) -> tuple[Switch, ...]:
    """Between neighbouring fields, over all threads; nothing where samples were not recorded.

    Memory is bounded by the pieces in which samples are read, whatever the length of the run.
    """
    if not all(series.has_samples for group in fields for series in group):
        return ()
    return tuple(_switch(record, earlier, later) for earlier, later in pairwise(fields))


def _switch(record: Record, earlier: tuple[Series, ...], later: tuple[Series, ...]) -> Switch:
    tally, unpaired = Tally(), 0
    by_thread = {series.thread: series for series in earlier}
    for series in later:
        before = by_thread.get(series.thread)
        for part in aligned(record, (before, series)) if before else ():
            tally.add(part.values[1] - part.values[0])
            unpaired += part.alone
    counted = tally.result()
    backwards = int(counted.counts.n[counted.counts.hi < 0].sum())
    return Switch(earlier[0].field, later[0].field, counted.counts, counted.moments, backwards, unpaired)
