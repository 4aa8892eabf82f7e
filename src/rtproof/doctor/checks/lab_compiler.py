# SPDX-License-Identifier: Apache-2.0
"""Whether the one compiler is here whose programs run in guests with the same bytes on every machine."""

from collections.abc import Iterator

from rtproof.agents.architectures import host_architecture
from rtproof.agents.build import PINNED, PINNED_ZIG, choose_compiler
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package, requirement

FEATURES = ("lab", "several-cpus")
NAME = "lab's compiler"


def check(host: Host) -> Iterator[Finding]:
    """Ask for the pinned compiler as the lab does."""

    try:
        choose_compiler(host_architecture(), PINNED)
    except UserError as refusal:
        command = python_package(host, requirement("cross"))
        yield Finding(NAME, FEATURES, State.MISSING, f"The lab cannot build its agent: {refusal}.", command)
        return
    yield Finding(NAME, FEATURES, State.OK, f"zig {PINNED_ZIG} builds the agents of guests.")
