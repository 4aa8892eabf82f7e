# SPDX-License-Identifier: Apache-2.0
"""What the stressor ``cyclic`` of stress-ng prints.

It prints the mean, minimum, maximum and some percentiles of its first samples, 10,000 unless --cyclic-samples says
otherwise; later samples are in no figure. The YAML of stress-ng holds none of them. (Format: stress-ng,
stress-cyclic.c.)
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import LARGEST_COUNT, LARGEST_NS, UNCOUNTABLE, microseconds, whole_number
from rtproof.summary.imported_histogram import ImportedHistogram

TOOL = "stress-ng cyclic"
USUAL_SAMPLES = 10_000
AT_CAP = (
    "its figures are of the first {0:,} samples, which is as many as it keeps (--cyclic-samples): how many came later "
    "is unknown"
)
FIRST_ONLY = "its figures are of the first {0:,} samples only, and the run had {1:,}"
PERCENTILES = "beside minimum, mean and maximum it prints percentiles, which stand below as it printed them"

_LINE = r"cyclic: +"
_SETTING = re.compile(_LINE + r"sched (\w{1,40}): (\d{1,12}) ns delay, (\d{1,12}) samples")
_MEAN = re.compile(_LINE + r"mean: (\d{1,15}(?:\.\d{1,9})?) ns, mode: (-?\d{1,15}) ns")
_ENDS = re.compile(_LINE + r"min: (-?\d{1,15}) ns, max: (-?\d{1,15}) ns, std\.dev\. ")
_PERCENTILE = re.compile(_LINE + r"(\d{1,2}\.\d{1,4})%: +(-?\d{1,15}) ns")
_NEEDED = re.compile(r"--cyclic-samples needed to be (\d{1,12}) to capture")

LINES = tool_lines(
    r".*cyclic: +(?:mean|min|\d+\.\d+%):", [rf".*{each.pattern}.*" for each in (_MEAN, _ENDS, _PERCENTILE)]
)


def looks_like(text: str) -> bool:
    return bool(_SETTING.search(text))


def read(text: str) -> ImportedHistogram:
    """The figures in the text; UserError if some are missing or contradict each other."""
    settings = _SETTING.findall(text)
    mean, ends = _MEAN.search(text), _ENDS.search(text)
    if len(settings) > 1:
        raise UserError("it has more than one run of cyclic")
    if not mean or not ends:
        raise UserError("its minimum, mean or maximum is missing: cyclic was ended before it had measured")
    policy, delay, samples = settings[0]
    low, high, middle = whole_number(ends[1]), whole_number(ends[2]), round(microseconds(mean[1]))
    count = whole_number(samples)
    needed = _NEEDED.search(text)
    whole = whole_number(needed[1]) if needed else count
    if max(count, whole) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    if not -LARGEST_NS <= low <= middle <= high <= LARGEST_NS:
        raise UserError("its mean does not lie between its minimum and its maximum")
    percentiles = sorted(_PERCENTILE.findall(text), key=lambda each: float(each[0]))
    capped = whole == count == USUAL_SAMPLES
    return ImportedHistogram(
        TOOL,
        policy,
        count=count,
        min_ns=low,
        mean_ns=middle,
        max_ns=high,
        left_out=max(whole - count, 0),
        lossy=True,
        facts=(
            ("policy", policy),
            ("delay", f"{whole_number(delay):,} ns"),
            *((f"{share} %", f"{whole_number(value):,} ns") for share, value in _PERCENTILE.findall(text)),
        ),
        faults=tuple(_faults(low, high, [whole_number(value) for _, value in percentiles])),
        notes=(
            PERCENTILES,
            *([FIRST_ONLY.format(count, whole)] if whole > count else [AT_CAP.format(count)] if capped else []),
        ),
    )


def _faults(low: int, high: int, percentiles: Sequence[int]) -> Iterator[str]:
    """A sentence for each contradiction between the ends and the values at increasing shares."""
    if any(first > then for first, then in pairwise(percentiles)):
        yield "a percentile is below that of a smaller share"
    if percentiles and not low <= min(percentiles) <= max(percentiles) <= high:
        yield "a percentile does not lie between its minimum and its maximum"
