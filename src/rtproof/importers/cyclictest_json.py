# SPDX-License-Identifier: Apache-2.0
"""The file of ``cyclictest --json`` (rt-tests 2.x), with a histogram if it was run with -h.

The file has the number of cycles of each thread and a histogram of those on the scale. The cycles beyond the scale are
in no bin, and the file does not say how many they are. cyclictest writes the file while the threads still run, so a
thread may have a few cycles more than its histogram. Policy, priority and period are only in the command line. (Format:
rt-tests, src/cyclictest/cyclictest.c and src/lib/rt-utils.c.)
"""

from collections.abc import Mapping

from rtproof.core.command_options import CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES
from rtproof.importers._rt_tests import CLOCK, decode_result, figures_of, looks_like_rt_tests, option_number
from rtproof.importers._tool_output import STOPPED, notes_that_apply
from rtproof.importers.cyclictest import MAX_ONLY, OMITTED
from rtproof.summary.imported_histogram import ImportedHistogram

TOOL = "cyclictest --json"
NO_PRIORITY = "it was started without -p, so it ran without a real-time policy"
WHILE_RUNNING = (
    "{0:,} cycles are counted that its histogram does not have, though its scale has room for them: left out"
)
REAL_TIME = ("fifo", "rr")


def looks_like(text: str) -> bool:
    return looks_like_rt_tests(text, "cyclictest")


def read(text: str) -> ImportedHistogram:
    """The measurement in the document; UserError if the document has another form."""
    document = decode_result(text)
    options = document.options(CYCLICTEST_LETTERS, CYCLICTEST_LONG_NAMES)
    wanted = option_number(options.get("h") or options.get("H"))
    scale_ns = wanted * document.width_ns if wanted is not None else None
    threads = sorted(document.thread.items())
    parts = [figures_of(number, each, document.width_ns, scale_ns) for number, each in threads]
    left_out = sum(each.cycles or 0 for _, each in threads) - sum(part.count or 0 for part in parts)
    period_us = option_number(options.get("i", "1000"))
    return document.measurement(
        TOOL,
        parts,
        options.get("D", ""),
        scale_ns=scale_ns,
        period_ns=period_us * 1_000 if period_us and len(parts) == 1 else None,
        shortest_period_ns=period_us * 1_000 if period_us and not options.get("d", "").startswith("-") else None,
        left_out=max(left_out, 0),
        priority=_priority(options),
        notes=notes_that_apply(
            {
                OMITTED: True,
                CLOCK: True,
                NO_PRIORITY: _priority(options) == 0,
                MAX_ONLY: any(part.histogram is None for part in parts),
                WHILE_RUNNING.format(left_out): left_out > 0,
            }
        ),
        stop=STOPPED.format(f"the first value above {options['b']} us (option -b), if one came")
        if "b" in options
        else "",
    )


def _priority(options: Mapping[str, str]) -> int | None:
    """The priority: 0 without -p. None for -p 0, and without -p for a real-time policy: versions choose differently."""
    if "p" not in options:
        return None if options.get("y", "").lower() in REAL_TIME else 0
    return option_number(options["p"]) or None
