# SPDX-License-Identifier: Apache-2.0
"""The request for a simulated run: the agent's options that make sense here, and the process to play."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rtproof.core import units
from rtproof.core.errors import UserError
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
MOST_EVENTS = 10_000_000
MOST_THREADS = 256
MOST_SECONDS = 40_000_000
MOST_SAMPLES = 200_000_000
"""Of a run that keeps every sample: 400 MB. Longer ones keep the summary."""


@dataclass(frozen=True)
class SimulatedProcess:
    """What the activations show. clusters_per_s: of the whole system, at whichever thread each event falls."""

    seed: int = 1
    kind: str = "poisson"
    clusters_per_s: float = 1 / 3600
    tail: KnownTail = USUAL_TAIL
    step_s: int = 1

    @property
    def events_per_s(self) -> float:
        return event_rate(self.kind, self.clusters_per_s)


@dataclass(frozen=True)
class SimulationRequest:
    """The run. limits_ns: those that ``over`` lines are told of. keep_samples: else the summary only."""

    output: str
    duration_ns: int
    period_ns: int = 1_000_000
    cpus: tuple[int, ...] = (0,)
    limits_ns: tuple[int, ...] = ()
    keep_samples: bool = False
    samples: int = 0
    tells_progress: bool = False
    stops_with_input: bool = False
    until_decided: bool = False


def parse_process(options: Mapping[str, str]) -> SimulatedProcess:
    """The process that these options (see ``OPTIONS``) ask for; UserError for nonsense."""
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
        raise UserError(f"there is no kind of process {kind!r}; there are: {', '.join(EVENT_KINDS)}")
    seed = _whole("seed", options.get("seed", "1"), 2**63)
    return SimulatedProcess(seed, kind, rate_per_s(options.get("episodes", USUAL_EPISODES)), tail, step_ns // SECOND_NS)


def rate_per_s(text: str) -> float:
    """Events per second of "2/h", "0.5/min", "1/12h"."""
    count, slash, period = text.replace(" ", "").partition("/")
    if not slash:
        raise UserError(f"{text!r} is not a rate of episodes: write how many per time, such as 2/h")
    return _number("episodes", count, 0, 1e6) / (units.parse_at_most(f"1/{period}") / SECOND_NS)


def parse_request(words: Sequence[str]) -> SimulationRequest:
    """The agent's words; UserError for one that a simulation can't or need not obey."""
    asked, cpus, threads = SimulationRequest("", 0), None, 0
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _FLAGS:
            asked = _FLAGS[word](asked)
            continue
        if word not in (*_OPTIONS_WITH_VALUE, "--cpus", "--threads"):
            raise UserError(f"a simulated target has no use for {word}: leave it out")
        if not rest:
            raise UserError(f"{word} needs a value")
        value = rest.pop(0)
        if word == "--cpus":
            cpus = units.parse_cpus(value)
        elif word == "--threads":
            threads = _whole("threads", value, MOST_THREADS)
        else:
            asked = _OPTIONS_WITH_VALUE[word](asked, value)
    return _checked(_with_length(replace(asked, cpus=_cpus(cpus, threads))))


def _cpus(cpus: tuple[int, ...] | None, threads: int) -> tuple[int, ...]:
    """A thread for each CPU, or one on CPU 0; more threads than CPUs go round."""
    given = cpus or tuple(range(threads or 1))
    return tuple(given[at % len(given)] for at in range(threads or len(given)))


def _with_length(asked: SimulationRequest) -> SimulationRequest:
    """In whole seconds, up."""
    length = asked.samples * asked.period_ns if asked.samples else asked.duration_ns
    return replace(asked, duration_ns=math.ceil(length / SECOND_NS) * SECOND_NS)


def _checked(asked: SimulationRequest) -> SimulationRequest:
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


def check_together(asked: SimulationRequest, process: SimulatedProcess) -> None:
    """UserError where the process does not fit into the run."""
    if process.tail.threshold_ns >= asked.period_ns:
        raise UserError("the simulation's events must be less than a period late: take a smaller above=")
    if process.events_per_s * asked.duration_ns / SECOND_NS > MOST_EVENTS:
        raise UserError(f"more than {MOST_EVENTS:,} events are too many to simulate: take fewer episodes=")


def _length_ns(name: str, text: str) -> int:
    try:
        return units.parse_length(text)
    except UserError as problem:
        raise UserError(f"{name}: {problem}") from None


def _whole(name: str, text: str, most: int) -> int:
    if not text.isdecimal() or not 0 < int(text) <= most:
        raise UserError(f"{name}={text!r} is not a whole number from 1 to {most}")
    return int(text)


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise UserError(f"{name}={text!r} is not a number from {low:g} to {high:g}")
    return number


_FLAGS: dict[str, Callable[[SimulationRequest], SimulationRequest]] = {
    "--stop-on-eof": lambda asked: replace(asked, stops_with_input=True),
    "--until-decided": lambda asked: replace(asked, until_decided=True),
}
"""Words without a value."""

_OPTIONS_WITH_VALUE: dict[str, Callable[[SimulationRequest, str], SimulationRequest]] = {
    "-o": lambda asked, value: replace(asked, output=value),
    "--duration": lambda asked, value: replace(asked, duration_ns=units.parse_length(value)),
    "--samples": lambda asked, value: replace(asked, samples=_whole("samples", value, 2**62)),
    "--period": lambda asked, value: replace(asked, period_ns=units.parse_length(value)),
    "--limit": lambda asked, value: replace(asked, limits_ns=(*asked.limits_ns, units.parse_length(value))),
    "--record": lambda asked, value: replace(asked, keep_samples=value == "samples"),
    "--progress": lambda asked, value: replace(asked, tells_progress=units.parse_length(value) > 0),
}
"""Words with a value that are taken one by one."""
