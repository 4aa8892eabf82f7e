# SPDX-License-Identifier: Apache-2.0
"""A load line, or a part of it in the background, that ends by itself before the run does.

Only parts are judged of which every command says how long it runs. If one may run for longer, nothing is said.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from rtproof.core.phrases import duration
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.rules.load_line import shell_fault, shell_tokens
from rtproof.summary.summary_model import Doubt

ORDER = 44
CODE = "load-shorter"
REMEDY = "let it last as long"
DOUBTS: tuple[str, ...] = ()
SLACK = 0.01
"""A load may end by this part of the run too early: both are started by hand."""
SLACK_NS = 2_000_000_000
UNITS_NS = {"": 10**9, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9, "y": 31556926 * 10**9}
TIMEOUT_OPTIONS = {
    "stress": ("-t", "--timeout"),
    "stress-ng": ("-t", "--timeout"),
    "iperf": ("-t", "--time"),
    "iperf3": ("-t", "--time"),
    "sysbench": ("--time", "--max-time"),
    "stressapptest": ("-s",),
    "ping": ("-w",),
    "rteval": ("-d", "--duration"),
}
"""By program, the options that say after what time it ends."""
PREFIXES = ("nohup", "sudo", "exec", "time", "nice", "ionice", "taskset", "chrt")
PREFIX_VALUE = re.compile(r"-.*|[0-9]+|0x[0-9a-fA-F]+|[0-9]+[-,0-9]*")
"""What may stand between a prefix and its command: options, priorities, and sets of CPUs."""
TIMEOUT_VALUES = ("-k", "--kill-after", "-s", "--signal")
"""The options of timeout that take a value of their own."""
MOST_NS = 100 * UNITS_NS["y"]
BESIDE = re.compile(r"[^&]&\s*[^&\s]")
"""One command is started beside another one."""
CONTROL = ("do", "while", "until", "for", "if", "case", "(", "{")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        lasts = load_length_ns(claim.load_line) if claim.load_line else None
        if lasts is not None and claim.span is not None:
            shortest = claim.span.shortest_ns
            if lasts < shortest * (1 - SLACK) - SLACK_NS:
                load = "a part of the load" if BESIDE.search(claim.load_line) else "the load"
                what = f"{load} ended after {duration(lasts)} of {duration(claim.span.told_ns)}"
                yield Doubt(CODE, WARNING, what, REMEDY, f"at the latest: {claim.load_line}", (claim.name,))


def load_length_ns(line: str) -> int | None:
    """The time after which the first part of a load line has ended; None if every part may last longer.

    Parts run side by side: "&" stands between them. A part that only sleeps is no load.
    """
    tokens = shell_tokens(line)
    if tokens is None or shell_fault(line) is not None:
        return None
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in CONTROL:  # what a loop starts, it may start again
            parts.pop()
            break
        if token == "&":  # noqa: S105
            parts.append([])
        else:
            parts[-1].append(token)
    lengths = [length for part in parts if (length := _part_ns(part)) is not None]
    return min(lengths, default=None)


def _part_ns(tokens: list[str]) -> int | None:
    """The longest time that these commands take one after the other; None if any may take longer, or all sleep."""
    commands: list[list[str]] = [[]]
    for token in tokens:
        if re.fullmatch(r"[;&|\n]+", token):
            commands.append([])
        else:
            commands[-1].append(token.strip("'\""))
    commands = [command for command in commands if command]
    if all(command[0] == "sleep" for command in commands):
        return None
    lengths = [_command_ns(command) for command in commands]
    known = [length for length in lengths if length is not None]
    return sum(known) if known and len(known) == len(lengths) else None


def _command_ns(words: list[str]) -> int | None:
    """How long a command runs; None if it does not say so."""
    names = [PurePosixPath(word).name for word in words]
    for at, name in enumerate(names):
        if name == "timeout":
            return _timeout_ns(words[at + 1 :])
        if name == "sleep":
            lengths = [_time_ns(word) for word in words[at + 1 :]]
            return sum(filter(None, lengths)) if lengths and all(lengths) else None
        if name in TIMEOUT_OPTIONS:
            return _option_ns(words[at + 1 :], TIMEOUT_OPTIONS[name])
        # Whatever a program that is not known here does with the words behind it, it may run for longer.
        if name not in PREFIXES and not (at and PREFIX_VALUE.fullmatch(words[at])):
            return None
    return None


def _timeout_ns(words: list[str]) -> int | None:
    """How long the command behind timeout runs, with what it has left to end after a signal."""
    left = iter(words)
    after = 0
    for word in left:
        name, _, told = word.partition("=")
        if not word.startswith("-"):
            lasts = _time_ns(word)
            return None if lasts is None else lasts + after
        if name in TIMEOUT_VALUES:
            told = told or next(left, "")
        if name.startswith(("-k", "--kill-after")):
            after = _time_ns(told or word.removeprefix("-k")) or 0
    return None


def _option_ns(words: list[str], options: tuple[str, ...]) -> int | None:
    for at, word in enumerate(words):
        for option in options:
            if word == option and at + 1 < len(words):
                return _time_ns(words[at + 1])
            if option.startswith("--") and word.startswith(f"{option}="):
                return _time_ns(word.removeprefix(f"{option}="))
            if not option.startswith("--") and re.fullmatch(re.escape(option) + r"[0-9].*", word):
                return _time_ns(word.removeprefix(option))
    return None


def _time_ns(text: str) -> int | None:
    """A time such as 60, 60s or 1.5h; None if it is none, has no end (0), or is longer than any run."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdy]?)", text)
    ns = float(found[1]) * UNITS_NS[found[2]] if found else 0
    return round(ns) if 0 < ns <= MOST_NS else None
