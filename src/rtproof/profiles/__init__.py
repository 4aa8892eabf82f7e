# SPDX-License-Identifier: Apache-2.0
"""Profiles: an article's experiment as data, one TOML file each, which ``rtproof run --profile`` repeats.

``docs/profiles.md`` describes the files. A profile is a matrix of cells; a cell is one run with its options.
"""

from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.profiles.profile import (
    Bins,
    CellPlan,
    OptionChange,
    OtherTool,
    Parameter,
    Profile,
    ProfileLimit,
    PublishedFile,
    Way,
    agent_arguments,
    run_options,
)

__all__ = [
    "Bins",
    "CellPlan",
    "OptionChange",
    "OtherTool",
    "Parameter",
    "Profile",
    "ProfileLimit",
    "PublishedFile",
    "Way",
    "agent_arguments",
    "load",
    "names",
    "run_options",
]
SUFFIX = ".toml"


def names() -> list[str]:
    """The profiles that come with the program."""
    return sorted(path.stem for path in _folder().glob(f"*{SUFFIX}"))


def load(name_or_path: str) -> Profile:
    """A profile by its name, or a file of the user's own; UserError with the file and the key where it is wrong."""
    from rtproof.profiles.profile_file import read_profile

    if name_or_path in names():
        return read_profile(_folder() / f"{name_or_path}{SUFFIX}")
    path = Path(name_or_path)
    if path.suffix == SUFFIX or path.exists():
        return read_profile(path)
    known = ", ".join(names())
    raise UserError(f"there is no profile {name_or_path!r}; there are: {known}, or give the path of a {SUFFIX} file")


def _folder() -> Path:
    return Path(__file__).parent
