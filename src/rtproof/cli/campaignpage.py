# SPDX-License-Identifier: Apache-2.0
"""The page of a campaign in all its forms, and where each goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof.cli import results

if TYPE_CHECKING:
    from rtproof.articles import Article
    from rtproof.profiles import Profile
    from rtproof.report.blocks import Section
    from rtproof.report.campaign import More, Outcome

PAGE, TABLE, RESULT = "report.html", "table.md", "result.json"
FORMS = {PAGE: "html", TABLE: "markdown", RESULT: "json"}
"""Of each file in a campaign's folder."""


@dataclass(frozen=True)
class Found:
    """Everything that a page tells of. made: what page and table end with."""

    profile: "Profile"
    outcomes: "Sequence[Outcome]"
    article: "Article"
    more: "More"
    made: "Sequence[Section]" = ()

    @property
    def exit_code(self) -> int:
        from rtproof.report import campaign as page

        return page.exit_code(self.outcomes)

    @cached_property
    def encoded(self) -> bytes:
        """In the documented schema."""
        from rtproof.report.campaign.as_json import encode

        return encode(self.profile, self.outcomes, self.article, self.more)

    def drawn(self, form: str, *, short: bool = False) -> bytes:
        """In a format of reports, or as JSON in the documented schema. short: for a terminal."""
        from rtproof import report
        from rtproof.report import campaign as page

        if form == FORMS[RESULT]:
            return self.encoded
        sections = self._sections(short=True) if short else self._whole
        return report.render(form, page.title(self.profile, self.outcomes), sections)

    @cached_property
    def _whole(self) -> "list[Section]":
        return [*self._sections(short=False), *self.made]

    def _sections(self, *, short: bool) -> "list[Section]":
        from rtproof.report import campaign as page

        return page.sections(self.profile, self.outcomes, self.article, self.more, short=short)


def show(found: Found, as_json: bool) -> None:
    """Print the result."""
    click.echo(found.encoded if as_json else found.drawn("text", short=True), nl=False)


def write(found: Found, folder: Path, forms: Mapping[str, str]) -> None:
    """The files with these names and formats, which must not be there yet."""
    for name, form in forms.items():
        results.write_new(folder / name, found.drawn(form))


def publish(found: Found, folder: Path, as_json: bool) -> None:
    """Print the result, then write the page, the table and the JSON."""
    show(found, as_json)
    folder.mkdir(parents=True, exist_ok=True)
    write(found, folder, FORMS)
    click.echo(f"\nreport: {folder / PAGE}", err=as_json)
