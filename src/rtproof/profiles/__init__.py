# SPDX-License-Identifier: Apache-2.0
"""Profiles: one TOML file describes the experiment of one article, and ``rtproof run --profile`` repeats it.

``docs/reference/profile-files.md`` describes the files. A profile is a matrix of cells; a cell is one run.
"""

from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.profiles.profile import (
    Bins,
    CellPlan,
    OptionChange,
    Parameter,
    Profile,
    PublishedFile,
    Way,
    agent_arguments,
    run_options,
)

__all__ = [
    "Bins",
    "CellPlan",
    "OptionChange",
    "Parameter",
    "Profile",
    "PublishedFile",
    "Way",
    "agent_arguments",
    "load",
    "names",
    "run_options",
]
SUFFIX = ".toml"


def names() -> list[str]:
    """The names of the profiles that come with the program."""
    return sorted(path.stem for path in _folder().glob(f"*{SUFFIX}"))


def load(name_or_path: str) -> Profile:
    """The profile with this name, or the one in the user's file; UserError with the file and the wrong key."""
    from rtproof.profiles.profile_file import read_profile

    if name_or_path in names():
        return read_profile(_folder() / f"{name_or_path}{SUFFIX}")
    path = Path(name_or_path)
    if path.suffix == SUFFIX or path.exists():
        return read_profile(path)
    raise UserError(unknown_name("profile", name_or_path, names(), f", or give the path of a {SUFFIX} file"))


def _folder() -> Path:
    return Path(__file__).parent
