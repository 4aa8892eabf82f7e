# SPDX-License-Identifier: Apache-2.0
"""Whether labgrid is installed, for boards that several people share."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from rtproof.boards.labgrid_coordinator import require_labgrid
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package, requirement

FEATURES = ("labgrid",)


def check(host: Host) -> Iterator[Finding]:
    """Ask as the target ``labgrid`` does."""

    try:
        require_labgrid()
    except UserError as refusal:
        command = python_package(host, requirement("labgrid"))
        yield Finding("labgrid", FEATURES, State.MISSING, f"The target labgrid cannot be used: {refusal}.", command)
        return
    try:
        said = version("labgrid")
    except PackageNotFoundError:
        said = "of an unknown version"
    yield Finding("labgrid", FEATURES, State.OK, f"labgrid {said} is installed.")
