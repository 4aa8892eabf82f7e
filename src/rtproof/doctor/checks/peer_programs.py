# SPDX-License-Identifier: Apache-2.0
"""Which other tools are here that can measure for rtproof (``--probe exec``)."""

from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host, ProgramAnswer
from rtproof.doctor.remedies import packages

FEATURES = ("peer-tools",)
PACKAGE_OF = {"cyclictest": "rt-tests", "rtla": "rtla"}
"""Packages of tools. Xenomai's and EVL's come with their kernels, and nobody misses them elsewhere."""


def check(host: Host) -> Iterator[Finding]:
    """Ask each tool for its version."""
    from rtproof.experiment.foreign_tools import TOOLS

    answers = {name: host.ask(name, "--version") for name in TOOLS}
    good = [name for name, answer in answers.items() if not answer.fault]
    for name in good:
        yield Finding(name, FEATURES, State.OK, f"{TOOLS[name].help} is here ({answers[name].path}).")
    bad = {name: answer for name, answer in answers.items() if answer.fault and (answer.path or name in PACKAGE_OF)}
    for name, answer in bad.items():
        yield _without(host, name, answer, not good)


def _without(host: Host, name: str, answer: ProgramAnswer, none: bool) -> Finding:
    """A tool that does not answer. The feature needs one of them."""
    command = packages(host, PACKAGE_OF[name]) if name in PACKAGE_OF and not answer.path else ""
    meaning = f"{name} {answer.fault}: --probe exec:tool={name} cannot measure here."
    state = State.MISSING if none and name == next(iter(PACKAGE_OF)) else State.LIMITED
    return Finding(name, FEATURES, state, meaning, command, needed=state is State.MISSING)
