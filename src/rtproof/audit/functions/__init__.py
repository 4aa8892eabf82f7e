# SPDX-License-Identifier: Apache-2.0
"""Functions that judge what a few declarative lines cannot, one module for each subject that needs any.

A function has the name that ``function`` of a check gives, takes the facts and the check, and returns a Judgement. It
is pure. It never says GOOD of what was not read: ``rtproof.audit.readings`` has the answers for what is missing.
"""

import importlib
from collections.abc import Callable

from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts

JudgeFunction = Callable[[Facts, Check], Judgement]


def find(subject: str, name: str) -> JudgeFunction:
    """The function of this name for checks of a subject."""
    found: JudgeFunction = getattr(importlib.import_module(f"{__name__}.{subject}"), name)
    return found
