# SPDX-License-Identifier: Apache-2.0
"""A load line that starts more and more tasks: an endless loop whose commands all run in the background.

Such a loop never waits. So the load grows until the machine has no memory or no process left, and is no load that
anybody can repeat. A command in the foreground may wait, so a loop with one is left alone.
"""

from collections.abc import Iterable, Sequence

from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.rules.load_line import shell_fault, shell_tokens
from rtproof.summary.summary_model import Doubt

ORDER = 42
CODE = "load-endless"
REMEDY = "let the loop wait for them"
DOUBTS: tuple[str, ...] = ()
FOREVER = (["while", "true"], ["while", ":"], ["while", "1"], ["until", "false"], ["while", "[", "1", "]"])
AT_ONCE = ("true", ":", "echo", "printf", "false")
"""Commands that end at once, so that they are no wait."""
MAY_WAIT = ("|", "&&", "||", ">", ">>", ">|", "<", "<<<")
"""What joins such a command to others that may wait, or to a file that may be a pipe."""


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        if claim.load_line and starts_without_end(claim.load_line):
            detail = (
                f"its line starts commands in the background in an endless loop and waits for none: {claim.load_line}"
            )
            yield Doubt(CODE, WARNING, "the load starts more and more tasks", REMEDY, detail, (claim.name,))


def starts_without_end(line: str) -> bool:
    """Whether the line has an endless loop whose body has commands in the background and none that can wait."""
    tokens = shell_tokens(line)
    if tokens is None or shell_fault(line) is not None:
        return False
    return any(_grows(body) for body in _bodies(tokens))


def _bodies(tokens: Sequence[str]) -> Iterable[Sequence[str]]:
    for at in range(len(tokens)):
        head = next((each for each in FOREVER if list(tokens[at : at + len(each)]) == each), None)
        behind = (
            [place for place in range(at + len(head), len(tokens)) if tokens[place] not in (";", "\n")] if head else []
        )
        if behind and tokens[behind[0]] == "do":
            body = _to_done(tokens, behind[0] + 1)
            if body is not None:
                yield body


def _to_done(tokens: Sequence[str], start: int) -> Sequence[str] | None:
    """The tokens up to the ``done`` that closes this loop; None for a body with further loops or conditions."""
    for place in range(start, len(tokens)):
        if tokens[place] in ("do", "if", "case", "(", "{", "break", "exit", "return"):
            return None
        if tokens[place] == "done":
            return tokens[start:place]
    return None


def _grows(body: Sequence[str]) -> bool:
    background = False
    command: list[str] = []
    for token in (*body, ";"):
        if token == "&":  # noqa: S105
            background, command = background or bool(command), []
        elif token in (";", "\n"):
            if command and (command[0] not in AT_ONCE or any(_may_wait(word) for word in command)):
                return False
            command = []
        else:
            command.append(token)
    return background


def _may_wait(word: str) -> bool:
    return word in MAY_WAIT or "`" in word or "$(" in word
