# SPDX-License-Identifier: Apache-2.0
"""A QEMU for tests of guests with several processors: the system's if it can do it, else fetched into the user's cache.

It is fetched once, so that a second run needs no network.
"""

import functools
from pathlib import Path

import pytest

from rtproof.core.errors import RtproofError
from rtproof.lab.debian_packages import fetch_qemu
from rtproof.vm.emulators import Emulator, choose_emulator
from rtproof.vm.machine import ARCHES


def for_several_processors(arch: str = "x86_64") -> Emulator:
    """The QEMU that runs several processors in virtual time; skips the test if there is none and none can be had."""
    found = _for_several(arch)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _for_several(arch: str) -> Emulator | str:
    try:
        return _chosen(arch)
    except RtproofError:
        fetched = _fetch()
    if isinstance(fetched, str):
        return fetched
    try:
        return _chosen(arch)
    except RtproofError as error:
        return str(error)


def _chosen(arch: str) -> Emulator:
    return choose_emulator(ARCHES[arch].qemu, ARCHES[arch].package, cpus_share_time=True)


@functools.cache
def _fetch() -> Path | str:
    """Asked for once in a process, also if the answer is why not: without a network that takes long."""
    try:
        return fetch_qemu().folder
    except RtproofError as error:
        return f"a QEMU for several processors cannot be had here: {error}"
