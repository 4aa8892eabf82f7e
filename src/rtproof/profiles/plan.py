# SPDX-License-Identifier: Apache-2.0
"""From a cell to the words that the agent takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rtproof import units
from rtproof.profiles.model import LOAD, PROBE_OPTIONS, CellPlan, Options, Way

Resolve = Callable[[Sequence[str]], Iterable[str]]


def run_options(cell: CellPlan, way: Way | None = None) -> dict[str, Any]:
    """The options of ``rtproof run`` for a cell measured in one of its ways, by default the first."""
    chosen = way or cell.ways[0]
    options = merged(cell.options, chosen.options)
    own = options.pop(PROBE_OPTIONS, {})
    if own:
        pairs = ",".join(f"{name}={value}" for name, value in own.items())
        options["probe"] = f"{options.get('probe', 'timer')}:{pairs}"
    if options.get(LOAD):
        options[LOAD] = tuple(_replaced(load, chosen.replace) for load in options[LOAD])
    return {**options, **_length(cell)}


def merged(first: Options, *others: Options) -> dict[str, Any]:
    """Later options win; loads add up, and so do the probe's own options."""
    found = dict(first)
    for other in others:
        for name, value in other.items():
            if name == LOAD:
                found[name] = (*found.get(name, ()), *value)
            elif name == PROBE_OPTIONS:
                found[name] = {**found.get(name, {}), **value}
            else:
                found[name] = value
    return found


def agent_arguments(
    cell: CellPlan, way: Way | None = None, resolve: Resolve = lambda loads: option_words("--load", tuple(loads))
) -> tuple[str, ...]:
    """The agent's arguments, without where it writes. resolve: what names of loads become on its command line."""
    options = run_options(cell, way)
    loads = options.pop(LOAD, ())
    words = [word for name, value in options.items() for word in option_words("--" + name.replace("_", "-"), value)]
    return (*words, *resolve(loads))


def option_words(option: str, value: Any) -> list[str]:
    """An option and its value as they stand on a command line; nothing for what is not given."""
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [word for each in (value if isinstance(value, tuple) else (value,)) for word in (option, str(each))]


def _length(cell: CellPlan) -> dict[str, Any]:
    if cell.samples:
        return {"samples": cell.samples}
    return {"duration": units.format_duration(cell.duration_ns or 0)}


def _replaced(load: str, other: Mapping[str, str]) -> str:
    """Another load takes none of the options of the one in whose place it runs."""
    return other.get(load.partition(":")[0], load)
