# SPDX-License-Identifier: Apache-2.0
"""Whether the user's shell completes the words of rtproof."""

import os
from collections.abc import Iterator
from pathlib import Path

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host

FEATURES = ("completion",)
NAME = "completion"
SYSTEM_FILES = {
    "bash": ("/usr/share/bash-completion/completions/rtproof", "/etc/bash_completion.d/rtproof"),
    "zsh": ("/usr/share/zsh/vendor-completions/_rtproof", "/usr/share/zsh/site-functions/_rtproof"),
    "fish": ("/usr/share/fish/vendor_completions.d/rtproof.fish",),
}


def check(host: Host) -> Iterator[Finding]:
    """Look for the script of this user's shell where ``rtproof completion`` says that it goes."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SYSTEM_FILES:
        meaning = f"rtproof completes words in {', '.join(SYSTEM_FILES)}, and your shell is {shell or 'unknown'}."
        yield Finding(NAME, FEATURES, State.MISSING, meaning)
        return
    home = os.environ.get("HOME", "/nonexistent")
    own = {
        "bash": f"{home}/.local/share/bash-completion/completions/rtproof",
        "zsh": f"{home}/.zfunc/_rtproof",
        "fish": f"{home}/.config/fish/completions/rtproof.fish",
    }[shell]
    there = [name for name in (own, *SYSTEM_FILES[shell]) if host.path(name).is_file()]
    if there:
        yield Finding(NAME, FEATURES, State.OK, f"{shell} completes words of rtproof ({there[0]}).")
        return
    short = own.replace(home, "~", 1)
    meaning = f"{shell} does not complete words of rtproof: {short} is not there."
    command = f"mkdir -p {Path(short).parent} && rtproof completion {shell} > {short}"
    yield Finding(NAME, FEATURES, State.MISSING, meaning, command)
