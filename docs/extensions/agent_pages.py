# SPDX-License-Identifier: Apache-2.0
"""Pages of the agent, of its probes and of the loads, from what the agent of the building machine says of itself.

What that machine lacks is left out, so the pages are the same on every machine.
"""

import functools
import re
from collections.abc import Iterator

from markdown_text import code, escape, inline, option, page, table

from rtproof.agents import build

_OPTION = re.compile(r"^  (?:-(?P<letter>\w), |    )(?P<words>--.*?) {2,}(?P<help>.*)$")


@functools.cache
def _prints(word: str) -> str:
    return build.agent_prints(build.find_agent(), word)


def usage() -> list[str]:
    """The forms of the command ``rtproof-agent``, one a line."""
    head = _prints("help").partition("\n\n")[0]
    return [line.removeprefix("usage:").strip() for line in head.splitlines()]


def options() -> list[tuple[str, str]]:
    """The options of ``rtproof-agent run`` as its help shows them: names with the value, and what it does."""
    found = filter(None, map(_OPTION.match, _prints("help").splitlines()))
    return [
        (f"-{each['letter']}, {each['words']}" if each["letter"] else each["words"], each["help"]) for each in found
    ]


def man_options() -> str:
    """The agent's options, as a part of a page."""
    return "\n\n".join(option(names, inline(text)) for names, text in options()) + "\n"


def man_synopsis() -> str:
    """The forms of the agent's command, as a part of a page."""
    return "\n\n".join(f"**{escape(line)}**" for line in usage()) + "\n"


def _rows(*kinds: str) -> Iterator[list[str]]:
    return (row[1:] for row in build.listed_rows(_prints("list"), *kinds))


def _named(rows: Iterator[list[str]], owner: str) -> list[tuple[str, str]]:
    return [(code(name), inline(build.help_without_missing(text))) for of, name, text in rows if of == owner]


def probe_page() -> str:
    """Every probe with its methods and options."""
    blocks = []
    for name, text in _rows("probe"):
        methods, options = _named(_rows("method"), name), _named(_rows("probe_option"), name)
        blocks += [f"## {name}", inline(text), table(("method", "how it waits, and what it measures"), methods)]
        blocks += [table(("option", "what it sets"), options)] if options else []
    return page(
        "All probes, their methods and options",
        "A probe is what is measured: `rtproof run --probe NAME`. Its options follow the name: "
        "`--probe NAME:key=value,...`. A method is how its thread waits for a due time: `--method NAME`. The first "
        "method of each table is the default.",
        *blocks,
    )


def load_page() -> str:
    """Every load with its options."""
    from rtproof.experiment.load_list import agent_loads, load_rows

    blocks = []
    for row in load_rows(list(agent_loads(build.find_agent()))):
        options = [(code(name), inline(text)) for name, text in row.options]
        blocks += [f"## {row.name}", inline(row.help), table(("option", "what it sets"), options)]
    return page(
        "All loads and their options",
        "A load disturbs the system on purpose while the probe measures: `rtproof run --load NAME:key=value,...`. "
        "[The page on loads](../../loads.md) says how they are counted, and how to bind them to CPUs.",
        *blocks,
    )


def pages() -> dict[str, str]:
    """The pages of probes and loads, by their places below the generated pages."""
    return {"probes.md": probe_page(), "loads.md": load_page()}


def man_names() -> str:
    """The names that ``rtproof-agent list`` prints, with what they mean, as a part of a page."""
    probes = [f"{code(name)}\n: {inline(text)}" for name, text in _rows("probe")]
    own = [f"{code(name)}\n: {inline(build.help_without_missing(text))}" for name, text in _rows("load")]
    return "\n\n".join(["### Probes", *probes, "### Loads", *own]) + "\n"
