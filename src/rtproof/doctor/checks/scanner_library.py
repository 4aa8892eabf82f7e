# SPDX-License-Identifier: Apache-2.0
"""Whether the compiled scanner is here, or a compiler for it. Without it large records are read by Python."""

from collections.abc import Iterator

from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages

FEATURES = ("fast-reading",)
NAME = "scanner"


def check(host: Host) -> Iterator[Finding]:
    """Load the library that is there, or look for a compiler."""
    from rtproof.agents import build
    from rtproof.agents.architectures import host_architecture
    from rtproof.record.compiled_scanner import Scanner

    try:
        library = build.built_scanner()
        if library:
            Scanner(library)
            yield Finding(NAME, FEATURES, State.OK, "The compiled scanner can be loaded.")
            return
        compiler = build.choose_compiler(host_architecture(), static=False).command[0]
        yield Finding(NAME, FEATURES, State.OK, f"{compiler} builds the scanner at the first large record.")
    except (UserError, OSError) as refusal:
        meaning = f"Large records are read by Python, which takes longer: {refusal}."
        yield Finding(NAME, FEATURES, State.MISSING, meaning, packages(host, "compiler"))
