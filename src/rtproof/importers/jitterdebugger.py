# SPDX-License-Identifier: Apache-2.0
"""The file ``results.json`` of jitterdebugger, versions 2 and 3.

The histogram has a fixed number of bins, up to a millisecond. Larger values are counted but are in no bin, and one
value of each CPU is lost at the end. The file does not hold period, priority and duration. Unlike cyclictest,
jitterdebugger also measures the activations that follow a late one, each with its lateness. (Format:
jitterdebugger.c, dump_stats and write_stats.)
"""

import msgspec

from rtproof.core.errors import UserError
from rtproof.importers._tool_output import decode_json, imported_measurement, printed_thread
from rtproof.summary.imported_histogram import ImportedHistogram

TOOL = "jitterdebugger"
SCALE_NS = 1_000_000
"""End of the scale of the histogram: a millisecond, at any resolution."""
SILENT = "it says neither its period nor its priority nor how long it ran"


class Cpu(msgspec.Struct, frozen=True):
    count: int
    min: int
    max: int
    avg: float
    histogram: dict[int, int] = {}


class JitterdebuggerResult(msgspec.Struct, frozen=True):
    cpu: dict[int, Cpu]
    sysinfo: dict[str, str | int] = {}


def looks_like(text: str) -> bool:
    return text.lstrip().startswith("{") and '"cpu"' in text and '"count"' in text and '"histogram"' in text


def read(text: str) -> ImportedHistogram:
    """The measurement in the document; UserError if the document has another form."""
    document = decode_json(text, JitterdebuggerResult)
    if not document.cpu:
        raise UserError("it has no CPU")
    width_ns = document.sysinfo.get("resolution_in_ns", 1_000)
    if not isinstance(width_ns, int) or not 0 < width_ns <= SCALE_NS:
        raise UserError(f"its resolution of {width_ns!r} ns makes no sense")
    # It numbers its threads. Only with one on each CPU are these the CPUs.
    everywhere = document.sysinfo.get("cpus_online") in (None, len(document.cpu))
    parts = [
        printed_thread(
            cpu,
            cpu if everywhere else None,
            one.count,
            (one.min, one.avg, one.max),
            width_ns,
            bins=one.histogram,
            scale_ns=SCALE_NS,
        )
        for cpu, one in sorted(document.cpu.items())
    ]
    facts = tuple((key, str(value)) for key, value in document.sysinfo.items() if str(value))
    return imported_measurement(
        TOOL, "results", parts, width_ns, scale_ns=SCALE_NS, left_out=len(parts), facts=facts, notes=(SILENT,)
    )
