# SPDX-License-Identifier: Apache-2.0
"""What the loop of the probe app did, by its own account: what its outputs, its sensor and its sieve had to say."""

from rtproof.analysis.accounts import accounts
from rtproof.analysis.model import Analysis
from rtproof.report.blocks import Block, Table

WORDS = {
    "loops": "loops",
    "slept": "slept first",
    "shifted": "targets moved",
    "pulses_work": "pulses: work",
    "pulses_sleep": "pulses: sleep",
    "pulses_no_sleep": "pulses: no sleep",
    "primes": "primes found",
    "sensed": "last reading",
}
"""Of the account, and how a column calls them. What was not asked for is 0 or nothing, and no column."""


def render(analysis: Analysis) -> list[Block]:
    told = accounts(analysis.record, "app")
    did = [word for word in WORDS if any(each.get(word, "0") not in ("", "0") for each in told.values())]
    if not did:
        return []
    rows = tuple((f"thread {thread}", *(each.get(word, "") for word in did)) for thread, each in told.items())
    header = ("", *(WORDS[word] for word in did))
    return [Table("By the probe's own account, warm-up included", header, rows, tuple(range(1, len(header))))]
