# SPDX-License-Identifier: Apache-2.0
"""Whether there is an agent for this machine, or a compiler that can build it."""

from collections.abc import Iterator

from rtproof.agents import build
from rtproof.agents.architectures import host_architecture
from rtproof.core.errors import UserError
from rtproof.doctor.checks.disk import OTHER_CACHE, why_nothing_fits
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages

FEATURES = ("measure", "explain", "audit", "loads", "kernel-module", "peer-tools")


def check(host: Host) -> Iterator[Finding]:
    """Run the agent that is there, or look for a compiler that links statically."""

    if lost := _why_not_kept():
        yield Finding("agent", FEATURES, State.MISSING, lost, OTHER_CACHE)
        return
    try:
        arch = host_architecture()
        program = build.built_agent()
        if program:
            meaning = f"The agent {build.agent_version(program)} for {arch.name} runs."
        else:
            compiler = build.choose_compiler(arch).command[0]
            meaning = f"No agent is built yet; {compiler} builds it at the first use, which takes some seconds."
    except UserError as refusal:
        command = packages(host, "static-compiler")
        yield Finding("agent", FEATURES, State.MISSING, f"There is no agent to measure with: {refusal}.", command)
        return
    yield Finding("agent", FEATURES, State.OK, meaning)


def _why_not_kept() -> str:
    """Why the agent that is built on this machine cannot be kept; "" if it can, or if rtproof came with an agent."""
    try:
        if build.packaged_agent(host_architecture().name).exists():
            return ""
        cache = build.cache_dir()
    except UserError as refusal:
        return f"There is no agent to measure with: {refusal}."
    why = why_nothing_fits(cache)
    return f"There is no agent to measure with, because none can be kept in {cache} ({why})." if why else ""
