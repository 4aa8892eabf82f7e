# SPDX-License-Identifier: Apache-2.0
"""Whether rtproof may keep CPUs out of deep idle states while it measures."""

import os
from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, container_options

FEATURES = ("measure",)
DEVICE = "/dev/cpu_dma_latency"


def check(host: Host) -> Iterator[Finding]:
    """Open the device as the agent does. It holds nothing before a number is written."""
    name = "idle states"
    try:
        os.close(os.open(host.path(DEVICE), os.O_WRONLY | os.O_CLOEXEC))
    except OSError as error:
        meaning = f"{DEVICE} cannot be opened ({error.strerror}): waking up from a deep idle state adds to latencies."
        gone = isinstance(error, FileNotFoundError)
        command = "" if gone or host.user == 0 else as_root(host, f"chmod a+rw {DEVICE}")
        if host.container:
            command = container_options(host, f"--device {DEVICE}")
        yield Finding(name, FEATURES, State.LIMITED, meaning, command, needed=False)
        return
    yield Finding(name, FEATURES, State.OK, f"{DEVICE} can be opened, so CPUs stay awake while rtproof measures.")
