# SPDX-License-Identifier: Apache-2.0
"""Kernels for tests that boot: fetched into the user's cache once, so that a second run needs no network."""

import functools
import os
import shutil
from pathlib import Path

import pytest

from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.vm.kernel_files import Kernel

EMULATORS = {"x86_64": "qemu-system-x86_64", "aarch64": "qemu-system-aarch64", "armv7": "qemu-system-arm"}


def kernel(name: str) -> Kernel:
    """A kernel of the catalogue, with its BusyBox in the cache; skips the test if it cannot be had or not be booted."""
    emulator = EMULATORS[kernel_catalogue.catalogue_entry(name).arch]
    if not shutil.which(emulator):
        pytest.skip(f"{emulator} is not installed")
    return fetched(name)


def fetched(name: str) -> Kernel:
    """As ``kernel``, for tests that do not boot it."""
    found = _fetch(name)
    if isinstance(found, str):
        pytest.skip(found)
    return found


def module(name: str, which: str = "rtproof") -> Path:
    """A module of ours for a kernel of the catalogue; skips the test if there is nothing here to build it with."""
    fetched(name)
    for tool in ("make", "gcc"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    return kernel_catalogue.module_for_kernel(name, which)


@functools.cache
def _fetch(name: str) -> Kernel | str:
    """Asked for once in a process, also if the answer is why not: without a network that takes long.

    The short set of tests needs no network but PyPI, so it takes what the cache has.
    """
    if os.environ.get("RTPROOF_TEST_SET") == "short":
        cached = kernel_catalogue.opened_kernel(kernel_catalogue.catalogue_entry(name))
        return cached or f"{name} is not in the cache: rtproof lab kernels fetch {name}"
    try:
        return kernel_catalogue.fetch_kernel(name)
    except UserError as error:
        return f"{name} cannot be had here: {error}"
