# SPDX-License-Identifier: Apache-2.0
"""Functions that judge what a few declarative lines cannot.

``function`` of a check names the module and the function, which takes the facts and the check, and returns a Judgement.
It is pure, and never says GOOD of what was not read: ``rtproof.audit.readings`` has the answers for what is missing.
"""

import importlib
from collections.abc import Callable

from rtproof.audit.check import Check, Judgement
from rtproof.audit.facts import Facts

JudgeFunction = Callable[[Facts, Check], Judgement]


def find(name: str) -> JudgeFunction:
    """The function that a check names: MODULE.FUNCTION."""
    module, _, function = name.partition(".")
    found: JudgeFunction = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return found
