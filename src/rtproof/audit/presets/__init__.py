# SPDX-License-Identifier: Apache-2.0
"""What a system can be for: a purpose that the checks know, or the setup list of an article, one TOML file each.

A file ``NAME.toml`` gives its name to ``rtproof audit --for NAME``. Its keys are those of ``setup_list.py``.
"""

from pathlib import Path

PURPOSES = ("default", "control-loop", "audio", "telecom")
"""For which a check may have a severity or a good value of its own."""
SUFFIX = ".toml"


def preset_names() -> tuple[str, ...]:
    """The names of the setup lists."""
    return tuple(sorted(path.stem for path in preset_folder().glob(f"*{SUFFIX}")))


def names() -> tuple[str, ...]:
    """All that ``--for`` takes."""
    return (*PURPOSES, *preset_names())


def preset_folder() -> Path:
    """Where the setup lists are."""
    return Path(__file__).parent
