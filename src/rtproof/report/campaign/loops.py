# SPDX-License-Identifier: Apache-2.0
"""What article 2's cycles tell."""

from collections.abc import Sequence

from rtproof.analysis import cycles as counting
from rtproof.articles import Article
from rtproof.profiles import Profile
from rtproof.report.blocks import Block, Text
from rtproof.report.campaign.outcome import Outcome


def cycles(_profile: Profile, outcomes: Sequence[Outcome], _article: Article | None) -> list[Block]:
    """What the counted cycles leave possible, and whether late ones were caught up."""
    found = [(each, each.analysis.cycles) for each in outcomes if each.analysis and each.analysis.cycles]
    lines = tuple(f"{each.cell.label}, {each.system}: {counting.says(told)}" for each, told in found)
    caught = tuple(
        f"{each.cell.label}, {each.system}: {told.catch_up_pairs:,} times a long cycle was followed by a short one, to "
        f"catch up{'' if told.correlation is None else f'; neighbouring cycles correlate by {told.correlation:.2f}'}."
        for each, told in found
        if told.catch_up_pairs
    )
    return [Text(words) for words in (lines, caught) if words]
