# SPDX-License-Identifier: Apache-2.0
"""Which loads cannot run here, and what they lack."""

from collections.abc import Iterator, Sequence

from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages

FEATURES = ("loads",)
PACKAGE_OF = {"hackbench": "rt-tests", "iperf3": "iperf3", "ping": "ping", "stress-ng": "stress-ng"}
"""The package of each program that a load of ours needs. Every system has the other programs."""


def check(host: Host) -> Iterator[Finding]:
    """Ask the agent for its loads, and look for the programs of the others."""
    from rtproof.agents import build
    from rtproof.experiment.load_list import agent_loads, load_rows, missing_programs

    agent = build.built_agent()
    try:
        rows = load_rows(list(agent_loads(agent)) if agent else [])
    except UserError as refusal:
        yield Finding("loads", FEATURES, State.CANNOT_TELL, f"The agent does not list its loads: {refusal}.")
        return
    programs = missing_programs()
    lacking = [f"{row.name} ({row.missing})" for row in rows if row.missing and (agent or row.name in programs)]
    good = len(rows) - len(lacking)
    if not lacking:
        yield Finding("loads", FEATURES, State.OK, f"All {good} loads can run here.")
        return
    meaning = f"{good} of {len(rows)} loads can run here; the others cannot: {'; '.join(lacking)}."
    yield Finding("loads", FEATURES, State.LIMITED, meaning, _command(host, list(programs.values())), needed=False)


def _command(host: Host, programs: Sequence[str]) -> str:
    known = [PACKAGE_OF[each] for each in programs if each in PACKAGE_OF]
    return packages(host, *known) if known else ""
