# SPDX-License-Identifier: Apache-2.0
"""What single chunks say, where that is only a part of what ``Record`` has."""

from typing import NamedTuple

from rtproof.record import Begin, Conditions, End, Event, Fact, Series, SystemFile
from rtproof.record.stored import StoredSlice


class SamplesHead(NamedTuple):
    """What the scan keeps of a SAMPLES chunk. ``next_index``: the first that a later chunk may begin with."""

    series: int
    first_index: int
    first_due_ns: int
    samples: int
    next_index: int


class SeriesSeconds(NamedTuple):
    """A whole SECONDS payload, which only ``many`` decodes; so are the three below."""

    series: int
    payload: bytes


class SeriesTop(NamedTuple):
    series: int
    payload: bytes


class SeriesAbove(NamedTuple):
    series: int
    payload: bytes


class SeriesExceeding(NamedTuple):
    series: int
    payload: bytes


class SeriesLevel(NamedTuple):
    """What a level is; ``share`` in millionths."""

    series: int
    number: int
    learned: bool
    value: int
    since_ns: int
    share: int
    taught: int


class CounterName(NamedTuple):
    id: int
    grows: bool
    name: str
    unit: str


class Tick(NamedTuple):
    """``entries``: pairs of a counter's id and value, still as bytes, since there is one of these per second."""

    time_ns: int
    entries: bytes


class Newer(NamedTuple):
    """BEGIN of a major version that this reader does not know."""

    major: int
    minor: int


Item = (
    Begin | Newer | Fact | SystemFile | Series | SamplesHead | StoredSlice | SeriesSeconds | SeriesTop
    | SeriesLevel | SeriesAbove | SeriesExceeding | CounterName | Tick | Event | End | Conditions
)  # fmt: skip
