# SPDX-License-Identifier: Apache-2.0
"""Whether the files are here that a report is made of."""

from collections.abc import Iterator
from pathlib import Path

import rtproof
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host

FEATURES = ("reports",)


def check(_host: Host) -> Iterator[Finding]:
    """Read the script that draws the plots in a report."""
    folder = Path(rtproof.__file__).parent / "report" / "vendor"
    name = "report's parts"
    try:
        good = any(file.read_bytes() for file in folder.glob("*/*.js"))
        why = "" if good else "its script is missing"
    except OSError as error:
        why = error.strerror or "error"
    if why:
        yield Finding(name, FEATURES, State.MISSING, f"A report cannot be made ({why}): install rtproof again.")
    else:
        yield Finding(name, FEATURES, State.OK, "A report is one HTML file for any browser, without a network.")
