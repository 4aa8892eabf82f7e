# SPDX-License-Identifier: Apache-2.0
"""What a matrix of two kernels and three loads costs this host: in parallel, one cell after the other, and cached."""

import tempfile
from pathlib import Path
from typing import Any

from lab_cells import SECONDS, compare, in_cache_of_its_own
from part import Bound, Figure, Part

LOADS = {"even": ("idle", "mmap", "fork"), "uneven": ("idle", "mmap", "net")}
"""A cell with net takes twice as long as others; no order of the cells mends that."""
CORES = 4


def measure(name: str) -> dict[str, Any]:
    """Boots included, kernels fetched before."""
    loads = LOADS[name]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        environment = in_cache_of_its_own(Path(one))
        parallel_s, _ = compare(CORES, loads, Path(one) / "first", environment)
        if name == "uneven":
            return {"parallel_s": parallel_s}
        again_s, _ = compare(CORES, loads, Path(one) / "again", environment)
        serial_s, _ = compare(1, loads, Path(other) / "first", in_cache_of_its_own(Path(other)))
    return {"parallel_s": parallel_s, "serial_s": serial_s, "speed_up": serial_s / parallel_s, "again_s": again_s}


PART = Part(
    goal=f"a 2 x 3 matrix of {SECONDS} virtual s takes a minute, and {CORES} jobs make it 2.5 times as fast",
    items=lambda: list(LOADS),
    measure=measure,
    figures=(
        Figure("parallel_s", f"2 x 3 matrix of {SECONDS} virtual s each", "s", Bound(most=60)),
        Figure("serial_s", "the same with --jobs 1", "s"),
        Figure("speed_up", "ratio of the two", "", Bound(2.5, CORES)),
        Figure("again_s", "the same once more, all cells cached", "s"),
    ),
)
