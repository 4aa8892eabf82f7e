# SPDX-License-Identifier: Apache-2.0
"""What a page of several runs tells besides what was found in them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    """what: each side in words, as the user named it; complaints: on runs that could not be read; command: as typed."""

    what: tuple[str, ...]
    complaints: tuple[str, ...] = ()
    command: str = ""
