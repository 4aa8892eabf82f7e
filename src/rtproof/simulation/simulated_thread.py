# SPDX-License-Identifier: Apache-2.0
"""Parse the request for a simulated run, and play each thread as the chunks of a record.

The chunks are those that an agent would write.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.record import histogram_bins
from rtproof.record.activations import Activations, exact_dot
from rtproof.record.contents import Int64Array, Seconds, Series, SeriesTotals, Slice, View
from rtproof.record.writing import LevelWriter, RecordWriter, TopWriter, write_seconds
from rtproof.simulation import events
from rtproof.simulation.events import EVENT_KINDS, KnownTail, event_rate

SECOND_NS = 1_000_000_000
PROCESS_OPTIONS = {
    "seed": "number that all randomness follows from (1)",
    "kind": f"how events come: {', '.join(EVENT_KINDS)} (poisson)",
    "episodes": "how often something new begins that exceeds, such as 2/h (1/h); 0/h: never",
    "above": "latency that every event exceeds (100us)",
    "scale": "how far beyond it, on average where the shape is 0 (20us)",
    "shape": "of the tail, -0.5 to 0.9: below 0 it ends, above 0 it is heavier than exponential (0)",
    "step": "simulated time between two looks of whoever watches, whole seconds (1s)",
}
USUAL_EPISODES = "1/h"
USUAL_TAIL = KnownTail(threshold_ns=100_000.0, scale_ns=20_000.0)
MOST_THREADS = 256
MOST_SECONDS = 40_000_000
MOST_SAMPLES = 200_000_000
"""Most samples of a run that keeps every sample: 400 MB. A longer run must keep the summary only."""


@dataclass(frozen=True)
class SimulatedProcess:
    """The simulated process. ``clusters_per_s``: rate in the whole system; each event hits one thread at random."""

    seed: int = 1
    kind: str = "poisson"
    clusters_per_s: float = 1 / 3600
    tail: KnownTail = USUAL_TAIL
    step_s: int = 1
    episodes: str = USUAL_EPISODES

    @property
    def events_per_s(self) -> float:
        return event_rate(self.kind, self.clusters_per_s)


@dataclass(frozen=True)
class SimulationRequest:
    """The requested run. limits_ns: of ``over`` lines. keep_samples: every sample; otherwise only the summary."""

    output: str
    duration_ns: int
    period_ns: int = 1_000_000
    cpus: tuple[int, ...] = (0,)
    limits_ns: tuple[int, ...] = ()
    keep_samples: bool = False
    tells_progress: bool = False
    stops_with_input: bool = False
    until_decided: bool = False
    claims: str = ""


def parse_process(options: Mapping[str, str]) -> SimulatedProcess:
    """The process that the options describe (see ``PROCESS_OPTIONS``). UserError if they make no sense."""
    usual = SimulatedProcess()
    tail = KnownTail(
        threshold_ns=_length_ns("above", options.get("above", "100us")),
        scale_ns=_length_ns("scale", options.get("scale", "20us")),
        shape=_number("shape", options.get("shape", "0"), -0.5, 0.9),
    )
    step_ns = _length_ns("step", options.get("step", "1s"))
    if step_ns % SECOND_NS:
        raise UserError(f"the simulation's step {options['step']!r} is not a number of whole seconds")
    kind = options.get("kind", usual.kind)
    if kind not in EVENT_KINDS:
        raise UserError(unknown_name("kind of process", kind, EVENT_KINDS))
    seed = _whole("seed", options.get("seed", "1"), 2**63)
    episodes = options.get("episodes", USUAL_EPISODES).replace(" ", "")
    return SimulatedProcess(seed, kind, rate_per_s(episodes), tail, step_ns // SECOND_NS, episodes)


def rate_per_s(text: str) -> float:
    """The events per second of a rate such as "2/h", "0.5/min" or "1/12h". UserError if the text is no rate."""
    count, slash, period = text.partition("/")
    if not slash:
        raise UserError(f"{text!r} is not a rate of episodes: write how many per time, such as 2/h")
    return _number("episodes", count, 0, 1e6) / (units.parse_at_most(f"1/{period}") / SECOND_NS)


OPTIONS_WITH_VALUE = (
    *("-o", "--duration", "--samples", "--period", "--limit", "--claims", "--record", "--progress"),
    *("--cpus", "--threads"),
)
STOP_ON_EOF, UNTIL_DECIDED = "--stop-on-eof", "--until-decided"


def _given_options(words: Sequence[str]) -> dict[str, list[str]]:
    """The values of each of the agent's options. UserError for one that has no meaning in a simulation."""
    given: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in (STOP_ON_EOF, UNTIL_DECIDED):
            given[word] = []
        elif word not in OPTIONS_WITH_VALUE:
            raise UserError(f"a simulated target has no use for {word}: leave it out")
        elif not rest:
            raise UserError(f"{word} needs a value")
        else:
            given.setdefault(word, []).append(rest.pop(0))
    return given


def parse_request(words: Sequence[str]) -> SimulationRequest:
    """Parse the agent's arguments. UserError if they make no sense. The duration is rounded up to whole seconds."""
    given = _given_options(words)

    def last(name: str, usual: str = "") -> str:
        return given[name][-1] if name in given else usual

    period_ns = units.parse_length(last("--period", "1ms"))
    length_ns = units.parse_length(last("--duration")) if "--duration" in given else 0
    if "--samples" in given:
        length_ns = _whole("samples", last("--samples"), 2**62) * period_ns
    threads = _whole("threads", last("--threads"), MOST_THREADS) if "--threads" in given else 0
    cpus = units.parse_cpus(last("--cpus")) if "--cpus" in given else tuple(range(threads or 1))
    asked = SimulationRequest(
        output=last("-o"),
        duration_ns=math.ceil(length_ns / SECOND_NS) * SECOND_NS,
        period_ns=period_ns,
        cpus=tuple(cpus[at % len(cpus)] for at in range(threads or len(cpus))),
        limits_ns=tuple(map(units.parse_length, given.get("--limit", ()))),
        keep_samples=last("--record") == "samples",
        tells_progress="--progress" in given and units.parse_length(last("--progress")) > 0,
        stops_with_input=STOP_ON_EOF in given,
        until_decided=UNTIL_DECIDED in given,
        claims=last("--claims"),
    )
    if not asked.output or not asked.duration_ns:
        raise UserError("a simulated run needs a file to write and a length")
    if asked.duration_ns > MOST_SECONDS * SECOND_NS:
        raise UserError(f"a simulated run of {asked.duration_ns // SECOND_NS} s is too long: {MOST_SECONDS} s at most")
    if len(asked.cpus) > MOST_THREADS:
        raise UserError(f"a simulated target has at most {MOST_THREADS} threads")
    total = asked.duration_ns // asked.period_ns * len(asked.cpus)
    if asked.keep_samples and total > MOST_SAMPLES:
        raise UserError(f"{total:,} samples are too many to simulate one by one: leave --record samples out")
    return asked


def _length_ns(name: str, text: str) -> int:
    try:
        return units.parse_length(text)
    except UserError as problem:
        raise UserError(f"{name}: {problem}") from None


def _whole(name: str, text: str, most: int) -> int:
    number = units.whole_number(text)
    if not number or number > most:
        raise UserError(f"{name}={text!r} is not a whole number from 1 to {most}")
    return number


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise UserError(f"{name}={text!r} is not a number from {low:g} to {high:g}")
    return number


BODY_NS = np.arange(5_000, 21_000, 1_000, dtype=np.int64)
"""The possible latencies of an activation without an event."""
BODY_SHARE = np.exp(-np.arange(BODY_NS.size) / 3.0)
BODY_SHARE /= BODY_SHARE.sum()


def _late(series: Series, index: Int64Array, value: Int64Array) -> Activations:
    """Activations that an event made late, by increasing index. None is missed."""
    return Activations(index, series.first_due_ns + index * series.period_ns, value, np.zeros_like(value))


def series_of(asked: SimulationRequest) -> tuple[Series, ...]:
    """One series for each thread. The threads' first due times are spread evenly over one period."""
    period, count = asked.period_ns, len(asked.cpus)
    return tuple(
        Series(
            at, at, cpu, True, asked.keep_samples, period, at * period // count, "simulated", "none", "latency", "ns"
        )
        for at, cpu in enumerate(asked.cpus)
    )


def system_events(process: SimulatedProcess, seconds: int) -> tuple[NDArray[np.float64], Int64Array]:
    """The times in seconds and the latencies in nanoseconds of all events of the run, not yet assigned to threads."""
    generator = np.random.default_rng((process.seed, 0))
    time_s, stretch = events.events(process.kind, process.events_per_s, seconds, generator)
    return time_s, process.tail.draw_ns(stretch, generator)


def late_activations(
    process: SimulatedProcess, asked: SimulationRequest, series: tuple[Series, ...]
) -> list[Activations]:
    """The late activations of each thread. Each event delays the next one of a random thread, by less than a period."""
    time_s, value = system_events(process, asked.duration_ns // SECOND_NS)
    time_ns = (time_s * SECOND_NS).astype(np.int64)
    thread = np.random.default_rng((process.seed, 1)).integers(len(series), size=time_ns.size)
    value = np.minimum(value, asked.period_ns - 1)
    return [_of_thread(one, time_ns[thread == one.thread], value[thread == one.thread], asked) for one in series]


def _of_thread(series: Series, time_ns: Int64Array, value: Int64Array, asked: SimulationRequest) -> Activations:
    index = np.maximum(-((series.first_due_ns - time_ns) // series.period_ns), 0)
    inside = index < due_before(series, asked.duration_ns)
    index, value = index[inside], value[inside]
    order = np.lexsort((-value, index))
    index, first = np.unique(index[order], return_index=True)
    return _late(series, index, value[order][first])


def due_before(series: Series, time_ns: int) -> int:
    return max(-((series.first_due_ns - time_ns) // series.period_ns), 0)


@dataclass(frozen=True)
class PlayedStretch:
    """The activations of one thread in consecutive seconds.

    body[s, v]: how many activations of second s have the latency BODY_NS[v]. late: those that an event delayed. values:
    the latency of each activation, in their order; None if only the summary is kept.
    """

    series: Series
    first_second: int
    body: Int64Array
    late: Activations
    values: Int64Array | None = None

    @property
    def first_index(self) -> Int64Array:
        edges = range(self.first_second, self.first_second + len(self.body) + 1)
        return np.array([due_before(self.series, second * SECOND_NS) for second in edges], np.int64)

    def until(self, seconds: int) -> "PlayedStretch":
        """The stretch cut to its first ``seconds`` seconds."""
        end_ns = (self.first_second + seconds) * SECOND_NS
        inside = self.late.due_ns < end_ns
        late = self.late.where(inside)
        values = None if self.values is None else self.values[: int(self.obtained()[:seconds].sum())]
        return PlayedStretch(self.series, self.first_second, self.body[:seconds], late, values)

    def obtained(self) -> Int64Array:
        return np.diff(self.first_index)

    def most(self) -> Int64Array:
        """The largest latency of each second; 0 if no activation was due."""
        some = self.body > 0
        top = BODY_NS.size - 1 - np.argmax(some[:, ::-1], axis=1)
        most = np.where(some.any(axis=1), BODY_NS[top], 0)
        np.maximum.at(most, self.late.due_ns // SECOND_NS - self.first_second, self.late.value)
        return most

    def above(self, limit_ns: int) -> Activations:
        """The activations above a limit. Without samples, those of the body have the places of ``largest_of_body``."""
        if self.values is not None:
            at = np.flatnonzero(self.values > limit_ns)
            index, value = due_before(self.series, self.first_second * SECOND_NS) + at, self.values[at]
        else:
            over = self.late.value > limit_ns
            index, value = self.late.index[over], self.late.value[over]
            count = int(self.body[:, limit_ns < BODY_NS].sum())
            if count:
                more = largest_of_body(self, count)
                index, value = np.concatenate((index, more[0])), np.concatenate((value, more[1]))
                order = np.argsort(index)
                index, value = index[order], value[order]
        return _late(self.series, index, value)

    def total(self) -> Int64Array:
        total = self.body @ BODY_NS
        np.add.at(total, self.late.due_ns // SECOND_NS - self.first_second, self.late.value)
        return total


def play_stretch(
    series: Series, late: Activations, first_second: int, seconds: int, generator: np.random.Generator
) -> PlayedStretch:
    """Draw the next seconds of a thread. An activation that no event delays gets a random latency of the body."""
    end_ns = (first_second + seconds) * SECOND_NS
    low, high = np.searchsorted(late.due_ns, [first_second * SECOND_NS, end_ns])
    mine = late.part(low, high)
    empty = PlayedStretch(series, first_second, np.zeros((seconds, BODY_NS.size), np.int64), mine)
    there = np.bincount(mine.due_ns // SECOND_NS - first_second, minlength=seconds)
    body = generator.multinomial(empty.obtained() - there, BODY_SHARE)
    return PlayedStretch(series, first_second, body.astype(np.int64), mine)


def with_values(some: PlayedStretch, generator: np.random.Generator) -> PlayedStretch:
    """The stretch with the latency of each activation. Their order within a second is random."""
    edges = some.first_index
    values = np.zeros(int(edges[-1] - edges[0]), np.int64)
    late = some.late.index - edges[0]
    values[late] = some.late.value
    body = np.ones(values.size, np.bool_)
    body[late] = False
    second = np.repeat(np.arange(len(some.body)), some.body.sum(axis=1))
    drawn = np.repeat(np.tile(BODY_NS, len(some.body)), some.body.ravel())
    values[body] = drawn[np.lexsort((generator.random(drawn.size), second))]
    return replace(some, values=values)


class SummaryThread:
    """Writes only the summary of a thread, and the activations above the limits."""

    def __init__(self, writer: RecordWriter, series: Series, limits_ns: tuple[int, ...] = ()) -> None:
        self._writer = writer
        self._series = series
        self._top = TopWriter(writer, series.id)
        self._lowest_ns = min(limits_ns, default=int(BODY_NS[-1]))
        self._levels = LevelWriter(writer, series, limits_ns)
        self._obtained = 0

    def add(self, some: PlayedStretch) -> None:
        obtained = some.obtained()
        if not obtained.sum():
            return
        seconds = some.first_second + np.arange(obtained.size)
        write_seconds(self._writer, self._series.id, Seconds(seconds, obtained, 0 * obtained, some.most()))
        late = some.above(self._lowest_ns)
        self._levels.add(late)
        self._add_top(some)
        self._writer.summary(slice_of(some))
        self._obtained += int(obtained.sum())

    def finish(self) -> SeriesTotals:
        return SeriesTotals(self._series.id, self._obtained, 0, 0)

    def _add_top(self, some: PlayedStretch) -> None:
        """Add the largest values. Late activations come first, because they are later than all others."""
        late, series = some.late, self._series
        index, value = late.index, late.value
        if self._top.lacks > value.size:
            body_index, body = largest_of_body(some, self._top.lacks)
            index, value = np.concatenate((index, body_index)), np.concatenate((value, body))
        if value.size:
            self._top.add(index, series.first_due_ns + index * series.period_ns, value)


def largest_of_body(some: PlayedStretch, count: int) -> tuple[Int64Array, Int64Array]:
    """The indices and latencies of the largest activations of the body: in each second, they come first."""
    size = np.arange(len(some.body) * BODY_NS.size)
    second, place = size % len(some.body), BODY_NS.size - 1 - size // len(some.body)
    counts = some.body[second, place]
    reach = int(np.searchsorted(np.cumsum(counts), count)) + 1
    second, place, counts = second[:reach], place[:reach], counts[:reach]
    free = []  # the first activations of each second that are not late, as many as are taken
    for at in range(len(some.body)):
        first, most = int(some.first_index[at]), int(counts[second == at].sum())
        there = np.arange(first, first + most + some.late.index.size)
        free.append(there[~np.isin(there, some.late.index)][:most])
    taken = np.zeros(len(some.body), np.int64)
    index = [np.zeros(0, np.int64)]
    for at, n in zip(second.tolist(), counts.tolist(), strict=True):
        index.append(free[at][taken[at] : taken[at] + n])
        taken[at] += n
    return np.concatenate(index)[:count], np.repeat(BODY_NS[place], counts)[:count]


def slice_of(some: PlayedStretch) -> Slice:
    """The SUMMARY slice of a stretch. At least one activation must be due in the stretch."""
    edges, series = some.first_index, some.series
    value = np.concatenate((BODY_NS, some.late.value))
    count = np.concatenate((some.body.sum(axis=0), np.ones_like(some.late.value)))
    value, count = value[count > 0], count[count > 0]
    places, which = np.unique(histogram_bins.bin_of(value), return_inverse=True)
    return Slice(
        series=series.id,
        view=View.OBSERVED,
        first_due_ns=series.first_due_ns + int(edges[0]) * series.period_ns,
        last_due_ns=series.first_due_ns + (int(edges[-1]) - 1) * series.period_ns,
        count=int(count.sum()),
        lost=0,
        min=int(value.min()),
        max=int(value.max()),
        sum=exact_dot(value, count),
        sum_squares=sum(v * v * n for v, n in zip(value.tolist(), count.tolist(), strict=True)),
        pairs=0,
        sum_products=0,
        catch_up_pairs=0,
        stored=histogram_bins.histogram_bytes(places, np.bincount(which, weights=count).astype(np.int64)),
    )
