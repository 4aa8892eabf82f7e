# SPDX-License-Identifier: Apache-2.0
"""The options in a command line of another program, as getopt reads them."""

import re
from collections.abc import Mapping, Sequence

CYCLICTEST_LETTERS = "a::A::b:c:d:D:e:F:g:h:H:i:l:MmNno:O:p:qrRsSt::T:uvxy:"
"""Of rt-tests 0.40 to 2.9. Old versions had no value for some of the rare ones."""
CYCLICTEST_LONG_NAMES = {
    "affinity": "a",
    "loops": "l",
    "threads": "t",
    "nsecs": "N",
    "histogram": "h",
    "histofall": "H",
    "interval": "i",
    "priority": "p",
    "prio": "p",
    "policy": "y",
    "duration": "D",
    "breaktrace": "b",
    "distance": "d",
    "nanosleep": "n",
    "system": "s",
    "posix_timers": "x",
    "smp": "S",
}
_LONG = re.compile(r"--([a-z_-]+)(=?)(.*)", re.S)


def options_of(words: Sequence[str], letters: str, long_names: Mapping[str, str]) -> dict[str, str]:
    """Values of options by their letters; "-qi1000", "-q -i 1000" and "--quiet --interval 1000" mean the same.

    words: those behind the program. letters: as getopt takes them: "q" has no value, "i:" has one, "t::" may have one.
    long_names: the letters of long options; others keep their name. An option without a value has "".
    """
    found: dict[str, str] = {}
    needed, optional = set(re.findall(r"(\w):(?!:)", letters)), set(re.findall(r"(\w)::", letters))
    at = 0
    while at < len(words):
        word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 1
        if match := _LONG.fullmatch(word):
            name, value, told = _letter_of(match[1], long_names), match[3], bool(match[2])
        elif len(word) > 1 and word.startswith("-"):
            last = next((at for at, letter in enumerate(word) if letter in needed | optional), len(word) - 1)
            found |= dict.fromkeys(word[1:last], "")
            name, value = word[last], word[last + 1 :].removeprefix("=")
            told = bool(value)
        else:
            continue
        # Of a long option without a letter nobody knows whether it has a value. The programs take no other words.
        may_follow = (name in optional or len(name) > 1) and not following.startswith("-")
        if not told and (name in needed or may_follow):
            value, at = following, at + 1
        found[name] = value
    return found


def _letter_of(name: str, long_names: Mapping[str, str]) -> str:
    """The letter of a long option, which getopt takes in a short form too; its name if it has none."""
    letters = {letter for long_name, letter in long_names.items() if long_name.startswith(name)}
    return long_names.get(name) or (letters.pop() if len(letters) == 1 else name)
