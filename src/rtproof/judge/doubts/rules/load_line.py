# SPDX-License-Identifier: Apache-2.0
"""The claimed load cannot have run, or nothing shows that it ran."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.summary.summary_model import Doubt

# Can a line be a shell command at all? This is no shell. It knows operators, quotes, and words that open and close.
#
# It takes what it does not know as correct, so that it never calls a valid line faulty.


_TOKEN = re.compile(
    r"""[ \t\r]+ | \\\n | (?<![^\s;&|()<>])\#[^\n]*
    | (?P<operator> && | \|\| | ;; | &>>? | >> | <<<? | >& | <& | >\| | [;&|()<>\n] )
    | (?P<word> (?: \\. | '[^']*' | "(?:\\.|[^"\\])*" | [^\s;&|()<>'"\\] )+ )""",
    re.VERBOSE | re.DOTALL,
)
_ENDS = ("&", ";", "|", "&&", "||")
"""Each needs a command in front of it."""
_GO_ON = ("|", "&&", "||")
"""Each needs a command behind it as well."""
_BEGIN = ("do", "then", "else", "elif", "if", "while", "until", "{", "(")
"""A command has to follow each of these."""
_CLOSE = {"done": "do", "fi": "if", "}": "{", ")": "("}
_BEYOND = ("case", "esac", "function", "select", "[[", "((", "<<", "coproc")
"""A line with one of these is taken as correct, because this module does not know their syntax."""


def shell_fault(line: str) -> str | None:
    """The fault in the syntax of a line, in a few words; None if there is none."""
    tokens = shell_tokens(line)
    if tokens is None:
        return "a quotation mark is not closed"
    if any(token in _BEYOND for token in tokens):
        return None
    return _order(tokens) or _pairs(tokens)


def shell_tokens(line: str) -> list[str] | None:
    """The operators and words of a line, each line end included; None if a quotation is not closed."""
    tokens, at = [], 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            return None
        tokens += [token for token in (found["operator"], found["word"]) if token]
        at = found.end()
    return tokens


def _order(tokens: list[str]) -> str | None:
    """A fault in the order of operators and words; None if there is none.

    before: the token after which a command has to begin; empty once it has begun.
    """
    before = start = "the start"
    for token in tokens:
        if token in _ENDS and before:
            return f"{token!r} directly after {before if before is start else repr(before)}"
        if token in _ENDS or (before and token in _BEGIN):
            before = token
        elif token == "\n":  # noqa: S105
            before = before or start
        else:
            before = ""
    return f"nothing after {before!r}" if before in _GO_ON else None


def _pairs(tokens: list[str]) -> str | None:
    """A fault in what opens and closes; None if there is none.

    Words open and close only where a command can stand. After a parenthesis this place is hard to find. So in a line
    with parentheses only these are checked.
    """
    plain = "(" not in tokens and ")" not in tokens
    opened: list[str] = []
    at_command = True
    for token in tokens:
        counts = at_command if plain else token in ("(", ")")
        if counts and token in ("do", "if", "{", "("):
            opened.append(token)
        if counts and token in _CLOSE and (not opened or opened.pop() != _CLOSE[token]):
            return f"{token!r} closes nothing"
        at_command = token in (*_ENDS, "\n") or (at_command and token in (*_BEGIN, *_CLOSE))
    return f"{opened[-1]!r} is not closed" if opened else None


ORDER = 40
CODE = "load-unproven"
REMEDY = "correct it, measure again"
DOUBTS = ("load-died", "load-idle", "load-paused", "load-late", "load-part-idle", "load-slight", "load-unproven")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Rows whose lines have the same fault share one objection."""
    faulty: dict[str, list[ResultClaim]] = defaultdict(list)
    for claim in claims:
        fault = shell_fault(claim.load_line) if claim.load_line else None
        if fault:
            faulty[fault].append(claim)
    for fault, same in faulty.items():
        names = tuple(claim.name for claim in same)
        detail = f"{fault}, so nothing shows that there was any load: {same[0].load_line}"
        yield Doubt(CODE, WARNING, "the load's line is no shell command", REMEDY, detail, names)
