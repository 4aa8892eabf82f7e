# SPDX-License-Identifier: Apache-2.0
"""Whether this machine's clock is fine and quick enough to measure with."""

import time
from collections.abc import Iterator

from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host

FEATURES = ("measure",)
NAME = "clock"
COARSEST_NS = 1_000
"""A coarser clock has no high-resolution timers behind it: it counts ticks."""


def check(host: Host) -> Iterator[Finding]:
    """Ask for the resolution of the clock and read the clock source."""
    from rtproof.audit.functions.clocks import CURRENT, SLOW_SOURCES

    resolution_ns = round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9)
    source = one_line(host.text(CURRENT), 60)
    if resolution_ns > COARSEST_NS:
        meaning = f"The clock counts steps of {resolution_ns:,} ns: this kernel has no high-resolution timers."
        yield Finding(NAME, FEATURES, State.MISSING, meaning)
    elif not source:
        meaning = f"{CURRENT} cannot be read, so it is unknown how long it takes to read the clock."
        yield Finding(NAME, FEATURES, State.CANNOT_TELL, meaning, needed=False)
    elif source in SLOW_SOURCES:
        meaning = f"The time is read from {source}, {SLOW_SOURCES[source]}, which adds to each latency: see clk.source."
        command = "rtproof audit --explain clk.source"
        yield Finding(NAME, FEATURES, State.LIMITED, meaning, command, needed=False)
    else:
        yield Finding(NAME, FEATURES, State.OK, f"The clock source is {source}, in steps of {resolution_ns} ns.")
