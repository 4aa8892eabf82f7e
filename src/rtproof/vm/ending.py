# SPDX-License-Identifier: Apache-2.0
"""How a guest came to its end, in one sentence, and its console's log for whoever wants to know more."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtproof.errors import TargetError
from rtproof.vm.mailbox import State
from rtproof.vm.process import Guest

LAST_SECONDS = 10
"""How long QEMU may take to end."""
BOOTS = "does this kernel boot on such a machine?"
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_HELPER = re.compile(r"rtproof-guest: (.*)")


@contextmanager
def keeping_console(guest: Guest, log: Path, before: bytes = b"") -> Iterator[None]:
    """Leave the console's log outside of the scratch folder, and name it in every TargetError.

    ``before``: what the console said before this QEMU took over.
    """
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{error}; the console's log is {log}") from error
    finally:
        log.write_bytes(before + guest.console.read_bytes())


def check_done(guest: Guest, timeout_s: float) -> None:
    """TargetError in one sentence unless the guest has done its job and handed over all results.

    A QEMU that ends closes its monitor first.
    """
    if guest.monitor.closed:
        guest.wait(LAST_SECONDS)
    guest.mailbox.feed()
    letters = guest.mailbox.letters
    if letters.failure:
        raise TargetError(f"the guest says: {' '.join(letters.failure.split())}")
    if not (letters.end and letters.complete):
        raise TargetError(_why(guest, timeout_s))


def _why(guest: Guest, timeout_s: float) -> str:
    console = guest.console.read_text(errors="replace")
    if panic := _PANIC.search(console):
        return f"the guest's kernel panicked ({panic[1].strip()})"
    silent = guest.mailbox.state is State.NOTHING
    if silent and (sentence := _HELPER.search(console)):
        return f"the guest cannot be reached: {sentence[1].strip()}"
    if guest.alive():
        late = f"the guest was not done within {timeout_s:g} s"
        return f"{late} and did not say a word: {BOOTS}" if silent else late
    because = f" ({guest.complaint.splitlines()[-1]})" if guest.complaint else ""
    if silent:
        return f"QEMU ended before the guest said a word{because}: {BOOTS}"
    return f"QEMU ended in the middle of the job{because}"
