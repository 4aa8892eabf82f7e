# SPDX-License-Identifier: Apache-2.0
"""Whether plots can be drawn as SVG and PNG."""

from collections.abc import Iterator

from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package, requirement

FEATURES = ("plots",)


def check(host: Host) -> Iterator[Finding]:
    """Load matplotlib as the format does."""
    from rtproof.report.formats.svg import require

    try:
        require("svg")
    except UserError as refusal:
        command = python_package(host, requirement("plot"), "matplotlib")
        yield Finding("matplotlib", FEATURES, State.MISSING, f"No plot can be drawn as a file: {refusal}.", command)
        return
    import matplotlib as mpl

    yield Finding("matplotlib", FEATURES, State.OK, f"matplotlib {mpl.__version__} draws plots as SVG and PNG.")
