# SPDX-License-Identifier: Apache-2.0
"""An examination as text: a line for each feature first, and then what to do."""

import shutil
import sys
import textwrap
from collections.abc import Iterator

from rtproof.core.printable import clean
from rtproof.doctor.findings import Examination, Finding, Readiness, State

WIDTH = 100
INDENT = "    "
ORDER = (State.MISSING, State.LIMITED, State.CANNOT_TELL)
NOTHING_TO_DO = "Nothing is missing."


def examination_text(found: Examination, verbose: bool) -> str:
    """The features, and what is not ok with its command; with ``verbose`` everything that was looked at."""
    lines = [*_features(found), ""]
    wrong = [each for state in ORDER for each in found.findings if each.state is state]
    lines += [line for each in wrong for line in _finding(each)] or [NOTHING_TO_DO]
    if verbose:
        good = [each for each in found.findings if each.state is State.OK]
        lines += ["", *(line for each in good for line in _finding(each))]
    return "\n".join(lines)


def _features(found: Examination) -> Iterator[str]:
    names = max(len(each.feature) for each in found.features)
    states = max(len(each.value) for each in Readiness)
    for each in found.features:
        lacking = f"see {', '.join(each.lacking)}" if each.lacking else ""
        line = f"{each.feature:{names}}  {each.readiness.value:{states}}  {lacking}"
        yield from _wrapped(line, "", " " * (names + states + 4))


def _finding(each: Finding) -> Iterator[str]:
    yield from _wrapped(f"{each.state.value}: {each.name}: {each.meaning}", "", INDENT)
    if each.command:
        yield f"{INDENT}{clean(each.command)}"


def _wrapped(line: str, first: str, others: str) -> list[str]:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout and sys.stdout.isatty() else WIDTH
    width = min(max(columns, 40), WIDTH)
    return textwrap.wrap(clean(line), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
