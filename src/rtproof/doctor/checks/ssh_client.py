# SPDX-License-Identifier: Apache-2.0
"""Whether ssh is here, by which most boards are reached."""

from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages

FEATURES = ("boards",)


def check(host: Host) -> Iterator[Finding]:
    """Run ``ssh -V``."""
    answer = host.ask("ssh", "-V")
    if answer.fault:
        meaning = f"ssh {answer.fault}, so boards can be reached by a console or another program only."
        yield Finding(
            "ssh", FEATURES, State.LIMITED, meaning, "" if answer.path else packages(host, "ssh"), needed=False
        )
    else:
        yield Finding("ssh", FEATURES, State.OK, f"ssh is here ({answer.line}).")
