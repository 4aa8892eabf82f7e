# SPDX-License-Identifier: Apache-2.0
"""Options that a plug-in declares as data (``OPTIONS``) and the user gives as key=value."""

from collections.abc import Mapping

from rtproof.errors import UserError


def checked_options(owner: str, known: Mapping[str, str], given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The options given, each known and given once; UserError with the list of what there is otherwise."""
    options = once(owner, given)
    for key in options:
        if key not in known:
            raise UserError(f"{owner} has no option {key!r}; there are: {_listed(known)}")
    return options


def once(owner: str, given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The pairs, of which no key may stand twice."""
    options: dict[str, str] = {}
    for key, value in given:
        if key in options:
            raise UserError(f"the option {key!r} of {owner} is given twice")
        options[key] = value
    return options


def _listed(known: Mapping[str, str]) -> str:
    return ", ".join(f"{key} ({text})" for key, text in known.items()) or "none"
