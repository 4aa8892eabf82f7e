# SPDX-License-Identifier: Apache-2.0
"""For which architectures an agent is here, or can be built."""

from collections.abc import Iterator

from rtproof.agents.architectures import ARCHITECTURES
from rtproof.agents.build import choose_compiler, packaged_agent
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package, requirement

FEATURES = ("boards",)


def check(host: Host) -> Iterator[Finding]:
    """Look for a packaged agent of each architecture, then for a compiler."""

    name = "agents for boards"
    here: list[str] = []
    refused: list[str] = []
    for arch in ARCHITECTURES:
        try:
            if not packaged_agent(arch.name).exists():
                choose_compiler(arch)
            here.append(arch.name)
        except UserError:
            refused.append(arch.name)
    if not refused:
        yield Finding(name, FEATURES, State.OK, f"There is an agent, or a compiler for it, for {', '.join(here)}.")
        return
    command = python_package(host, requirement("cross"))
    meaning = f"Nothing here can build the agent for {', '.join(refused)}."
    state = State.LIMITED if here else State.MISSING
    yield Finding(name, FEATURES, state, meaning, command, needed=not here)
