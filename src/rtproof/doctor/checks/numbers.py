# SPDX-License-Identifier: Apache-2.0
"""Whether numpy can be loaded, without which rtproof reads no record."""

import sys
from collections.abc import Iterator

from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package

FEATURES = ("measure", "explain", "reports", "exports", "plots")


def check(host: Host) -> Iterator[Finding]:
    """Import it."""
    try:
        import numpy as np
    except Exception as problem:
        meaning = f"numpy cannot be loaded, so rtproof reads no record: {one_line(str(problem), 120)}."
        yield Finding("numpy", FEATURES, State.MISSING, meaning, python_package(host, "numpy>=1.26"))
        return
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("numpy", FEATURES, State.OK, f"Python {python} loads numpy {np.__version__}.")
