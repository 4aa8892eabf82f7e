# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab``: real kernels under QEMU, in a virtual time that is the same on every machine.

Each module of this folder is one of its commands, by the contract of the folder above.
"""

import signal
import sys
import threading

import click

from rtproof.cli import main


@click.group("lab", cls=main.command_group(sys.modules[__name__]))
def command() -> None:
    """Compare real kernels under QEMU, in virtual time."""
    # SIGTERM ends these commands as Ctrl-C does: they end their guests, and leave no scratch folder.
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        click.get_current_context().call_on_close(lambda: signal.signal(signal.SIGTERM, before))
