# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab``: real kernels under QEMU, in a virtual time that is the same on every machine.

Each module of this folder is one of its commands, by the contract of the folder above.
"""

import sys

import click

from rtproof.cli import main


@click.group("lab", cls=main.command_group(sys.modules[__name__]))
def command() -> None:
    """Boot real kernels under QEMU, in virtual time, and compare them."""
