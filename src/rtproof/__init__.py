# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F405 - tests/test_api.py reads each name
"""How late does a Linux system react, why, and is that good enough.

The names of ``__all__`` are the Python API (docs/python). Everything else in this package is private and may change.
"""

import sys
from types import ModuleType

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rtproof.api import *  # noqa: F403 - the names of its __all__

__all__ = [
    "Archive",
    "Budget",
    "BudgetPart",
    "Cause",
    "Change",
    "Coincidence",
    "Comparison",
    "Difference",
    "Distribution",
    "Doubt",
    "Effect",
    "Episode",
    "Explanation",
    "Figures",
    "History",
    "LateActivation",
    "NamedCause",
    "Quantile",
    "Requirement",
    "RtproofError",
    "Run",
    "RunInterrupted",
    "SampleChunk",
    "Samples",
    "State",
    "Summary",
    "Thread",
    "Verdict",
    "__version__",
    "compare",
    "history",
    "open",
    "open_archive",
    "run",
]


class _Package(ModuleType):
    """Keeps ``rtproof.run`` and ``rtproof.compare`` the functions, although private packages have these names."""

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore a package of rtproof that Python puts under a public name once something imports it."""
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    """A name of the API, which is imported when it is first used: the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rtproof import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)
