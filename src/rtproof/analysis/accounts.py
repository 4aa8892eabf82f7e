# SPDX-License-Identifier: Apache-2.0
"""What a probe says of its own threads at the end, in lines of a word and a value (docs/record-format.md)."""

from rtproof.analysis import systemfiles
from rtproof.record import Moment, Record


def accounts(record: Record, probe: str) -> dict[int, dict[str, str]]:
    """Of each thread that left an account, in order; a line without a value has an empty one."""
    threads = sorted({series.thread for series in record.series})
    told = {thread: systemfiles.text(record, f"{probe}/thread{thread}", Moment.END) for thread in threads}
    return {thread: _words(text) for thread, text in told.items() if text}


def _words(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines() if line)
    return {word: value for word, _, value in lines}


def number(account: dict[str, str], word: str) -> int | None:
    """A whole number, None where the account has none such."""
    text = account.get(word, "")
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else None
