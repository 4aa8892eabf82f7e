# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel tells where its functions are, so that an explanation can name them."""

import re
from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import as_root, own_command

FEATURES = ("explain",)
FILE = "/proc/kallsyms"
HIDING = "/proc/sys/kernel/kptr_restrict"


def check(host: Host) -> Iterator[Finding]:
    """Look for an address that is not 0."""
    name = "kernel symbols"
    try:
        text = host.read(FILE)
    except OSError as error:
        meaning = f"{FILE} cannot be read ({error.strerror}): explanations name no functions of the kernel."
        yield Finding(name, FEATURES, State.LIMITED, meaning, needed=False)
        return
    if re.search(r"^0*[1-9a-f][0-9a-f]* ", text, re.MULTILINE):
        yield Finding(name, FEATURES, State.OK, "The kernel tells the addresses of its functions.")
        return
    hidden_from_all = host.text(HIDING) == "2"
    why = "from everybody (kptr_restrict is 2)" if hidden_from_all else "from a user who is not root"
    meaning = f"The kernel hides addresses {why}: explanations name no functions."
    command = as_root(host, "sysctl kernel.kptr_restrict=0") if hidden_from_all else own_command(host, "run --explain")
    yield Finding(name, FEATURES, State.LIMITED, meaning, command, needed=False)
