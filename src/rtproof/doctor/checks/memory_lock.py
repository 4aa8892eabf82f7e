# SPDX-License-Identifier: Apache-2.0
"""Whether the agent can lock its memory, so that no page of it is thrown out while it measures."""

import os
from collections.abc import Iterator

from rtproof.doctor.checks.real_time import FOR_SHELL
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, container_options

FEATURES = ("measure",)
NEEDED_MIB = 16
"""As much as the agent locks for some threads (measured: 9 MiB with two)."""


def check(host: Host) -> Iterator[Finding]:
    """Lock as much memory as the agent needs, for an instant."""
    name, error = "locked memory", host.attempts.lock(NEEDED_MIB << 20)
    if not error:
        yield Finding(name, FEATURES, State.OK, f"The kernel lets this process lock {NEEDED_MIB} MiB of memory.")
        return
    meaning = f"The kernel does not lock {NEEDED_MIB} MiB ({os.strerror(error)}), so page faults add to latencies."
    inside = host.user == 0 or host.container
    command = container_options(host, "--ulimit memlock=-1") if inside else as_root(host, FOR_SHELL)
    yield Finding(name, FEATURES, State.LIMITED, meaning, command, needed=False)
