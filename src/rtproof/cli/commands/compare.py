# SPDX-License-Identifier: Apache-2.0
"""``rtproof compare``: is one of two things better than the other?"""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from rtproof.cli.shared_options import PATH, option, page_options

AGAINST = "--against"


class AgainstCommand(click.Command):
    """Whatever is named behind ``--against`` belongs to it, as people expect of a list of runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [each for each in self.params if isinstance(each, click.Option) and not each.is_flag]
        with_value = {name for each in options for name in each.opts}
        return super().parse_args(ctx, list(_marked(args, with_value - {AGAINST})))


def _marked(words: Iterable[str], with_value: set[str]) -> Iterator[str]:
    """The words with ``--against`` in front of every path that stands behind it."""
    behind, waiting, value = False, False, False
    for word in words:
        is_path = not value and (not word.startswith("-") or word == "-")
        if word == AGAINST:
            behind = waiting = True
            continue
        behind = behind or word.startswith(AGAINST + "=")
        yield from (AGAINST, word) if behind and is_path else (word,)
        waiting = waiting and not is_path
        value = not value and word in with_value
    if waiting:
        yield AGAINST


@click.command("compare", cls=AgainstCommand)
@click.argument("a", metavar="A...", type=PATH, nargs=-1, required=True)
@option("--against b B... ...", "The runs to compare with.", PATH)
@option("--although keys FACT,.. ...", "Facts that may differ; repeatable.")
@option("--although-different", "All facts may differ.")
@option(
    "--view",
    "Activations that ran (default), or all that were due.",
    click.Choice(["observed", "schedule"]),
    default="observed",
)
@option("--names A,B", "Names of the two sides on the page.")
@page_options("A")
@click.pass_context
def command(ctx: click.Context, /, a: tuple[Path, ...], b: tuple[Path, ...], **values: Any) -> None:
    """Compare runs of one thing, A, with runs of another, B.

    Each A and B is a run folder, a record, a folder that contains these, or another tool's histogram. Only at least 5
    runs on each side can show a difference. Measure the sides in turn (rtproof run --abba): the folder of that command
    needs no --against. For the folder of --repeat, it prints how much the runs differ. The exit code is 0 if a
    comparison was made, whatever it found, and 2 if it was refused or a run could not be read.

    \b
    rtproof compare runs/ab
    rtproof compare runs/rt --against runs/stock
    rtproof compare rt-1 rt-2 rt-3 rt-4 rt-5 --against stock-1 stock-2 stock-3 stock-4 stock-5
    """
    from rtproof.experiment import run_sets

    series = run_sets.runs_of_series(a[0]) if not b and len(a) == 1 else {}
    if not b and not series:
        # Of several paths the first one may have been meant as A.
        rest = [str(each) for each in a[1:]] or ["B..."]
        said = f"it is not said what to compare with: rtproof compare {a[0]} {AGAINST} {' '.join(rest)}"
        raise click.UsageError(said, ctx)
    although = run_sets.facts_that_may_differ(values["keys"], values["although_different"])
    typed = shlex.join(ctx.obj or ("rtproof", "compare"))
    page, form = run_sets.page_of_options(a[0], "compared", values)
    names = run_sets.given_names(values["names"]) if values["names"] else None
    schedule = values["view"] == "schedule"
    if series:
        sides = run_sets.read_series(series, names, schedule=schedule)
        document = run_sets.series_document(sides, typed)
    else:
        names = names or run_sets.names_of_sides(a, b)
        files = [(names[0], a), (names[1], b)]
        if found := run_sets.side_by_side_document(files, as_json=values["as_json"]):
            run_sets.publish_page(found, page, form, as_json=False)
            return
        sides = run_sets.read_sides([(names[0], _words(a), a), (names[1], _words(b), b)], schedule=schedule)
        document = run_sets.comparison_document(sides[0], sides[1], although, typed)
    run_sets.publish_page(document, page, form, as_json=values["as_json"])
    ctx.exit(run_sets.exit_code_of_sides(sides))


def _words(paths: tuple[Path, ...]) -> str:
    return ", ".join(map(str, paths[:3])) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
