# SPDX-License-Identifier: Apache-2.0
"""Further sections that a profile asks for by name. Each takes everything and answers blocks."""

from collections.abc import Callable, Mapping, Sequence

from rtproof.articles import Article
from rtproof.errors import UserError
from rtproof.profiles import Profile
from rtproof.report.blocks import Block, Section
from rtproof.report.campaign import bins, counted, loops, matrix, stages
from rtproof.report.campaign.outcome import Outcome

Extra = Callable[[Profile, Sequence[Outcome], Article | None], list[Block]]
EXTRAS: Mapping[str, tuple[str, Extra]] = {
    "matrix": ("Boards and kernels", matrix.render),
    "thresholds": ("Maximum and 99.999 % threshold", bins.render),
    "switch": ("Context switch from the fullest bins", bins.switches),
    "app": ("Work, loop time and top of loop", loops.render),
    "cycles": ("What the cycles tell", counted.render),
    "stages": ("Stages", stages.render),
    "threads": ("Threads", stages.threads),
}


def check(names: Sequence[str]) -> None:
    """UserError with the list of what there is for a name of none."""
    for name in names:
        if name not in EXTRAS:
            raise UserError(f"extras: there is no section {name!r}; there are: {', '.join(EXTRAS)}")


def sections(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Section]:
    """What the profile asks for; UserError as of ``check``."""
    check(profile.extras)
    found = [(name, *EXTRAS[name]) for name in profile.extras]
    drawn = [Section(name, title, tuple(render(profile, outcomes, article))) for name, title, render in found]
    return [section for section in drawn if section.blocks]
