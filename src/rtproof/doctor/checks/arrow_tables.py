# SPDX-License-Identifier: Apache-2.0
"""Whether pyarrow is here, with which a script may take samples as tables of Arrow."""

from collections.abc import Iterator

from rtproof.core.printable import one_line
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package

FEATURES = ("exports",)


def check(host: Host) -> Iterator[Finding]:
    """Import it."""
    try:
        import pyarrow  # type: ignore[import-untyped]
    except Exception as problem:
        meaning = f"Python scripts get samples as numpy arrays, not as Arrow: {one_line(str(problem), 120)}."
        command = python_package(host, "pyarrow", "pyarrow")
        yield Finding("pyarrow", FEATURES, State.LIMITED, meaning, command, needed=False)
        return
    yield Finding("pyarrow", FEATURES, State.OK, f"pyarrow {pyarrow.__version__} can be loaded.")
