# SPDX-License-Identifier: Apache-2.0
"""Papers that are none of the five, entered from their text alone: the files hold what they say."""

from pathlib import Path

import pytest

from rtproof import profiles
from rtproof.experiment.profile_campaign import published_article
from rtproof.profiles import agent_arguments

PAPERS = Path(__file__).parent / "data" / "other_papers"


@pytest.mark.parametrize(
    ("name", "command", "rows"),
    [
        ("rpi3", "--period 200us --policy fifo --priority 90 --samples 100000000", {"standard", "real-time"}),
        ("task-isolation", "--period 100us --cpus 2", {"plain-1", "isolated-1", "plain-4", "isolated-4"}),
    ],
)
def test_a_paper_is_entered_by_its_text_alone(name: str, command: str, rows: set[str]) -> None:
    profile = profiles.load(str(PAPERS / f"{name}.toml"))
    article = published_article(profile)
    (cell,) = profile.cells
    assert command in " ".join(agent_arguments(cell))
    assert {row.key for row in article.rows} == set(cell.article_rows) == rows


def test_a_mean_keeps_the_digits_that_a_tool_printed() -> None:
    """Of oslat's mean of 1.002206 us the last three digits are parts of a nanosecond."""
    row = published_article(profiles.load(str(PAPERS / "task-isolation.toml"))).row("plain-1")
    assert row is not None
    mean = row.figures["mean"]
    assert (mean.text, mean.value, mean.step) == ("1.002206 us", 1002, 1)
