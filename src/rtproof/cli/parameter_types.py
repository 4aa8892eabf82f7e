# SPDX-License-Identifier: Apache-2.0
"""Types of the values of options, such as durations and CPU lists. A value that a parser refuses is a usage error."""

import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from rtproof.core import units
from rtproof.core.errors import UserError

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:
    _Base = click.ParamType  # takes no parameter before click 8.4

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
USUAL_FOLDER = "runs"
LARGEST_DMA_LATENCY_US = 1_000_000


class ParsedValue(_Base):
    """A parameter whose text one function turns into a value; values that are no text pass through."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except UserError as error:
            self.fail(str(error), param, ctx)


def _length(text: str) -> str:
    return units.format_duration(units.parse_length(text))


def _span(text: str) -> str:
    return units.format_duration(units.parse_duration(text))


def _phase(text: str) -> str:
    if text == "even":
        return text
    try:
        return _span(text)
    except UserError as problem:
        raise UserError(f"{problem}; or write even") from None


def _cpus(text: str) -> str:
    return units.format_cpus(units.parse_cpus(text))


def _dma_latency(text: str) -> str:
    """Microseconds, as the kernel takes them (Documentation/power/pm_qos_interface.rst), also as a duration."""
    if text == "off":
        return text
    try:
        duration_ns = units.parse_duration(text if text.strip("0123456789") else text + "us")
    except UserError as problem:
        raise UserError(f"{problem}; or write off") from None
    if duration_ns % 1_000 or duration_ns > LARGEST_DMA_LATENCY_US * 1_000:
        raise UserError(f"{text!r} is not off or a number of whole microseconds up to {LARGEST_DMA_LATENCY_US}")
    return str(duration_ns // 1_000)


def _option_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"{text!r} is not of the form key=value")
    return key, value


def count_up_to(most: int) -> click.IntRange:
    return click.IntRange(1, most)


LENGTH = ParsedValue("duration", _length)
"""A duration above 0 in its shortest form, for the agent."""
SPAN = ParsedValue("duration", _span)
"""A duration that may be 0 in its shortest form, for the agent."""
CPUS = ParsedValue("cpus", _cpus)


class SectionOption(click.Option):
    """An option that names sections. Its help lists them; only who asks for the help waits for all of them to load."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from rtproof.report.section_list import SECTION_NAMES

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} Names: {', '.join(SECTION_NAMES)}.")


def new_folder(context: click.Context, parameter: click.Parameter, folder: Path | None) -> Path | None:
    """The value of ``--output DIR``. BadParameter if its parent is missing and is not in USUAL_FOLDER.

    A typing error would otherwise make a tree of folders.
    """
    if folder and not folder.parent.exists() and folder.parts[0] != USUAL_FOLDER:
        raise click.BadParameter(f"there is no folder {folder.parent} to make it in", context, parameter)
    return folder


def folder_option(of_what: str) -> Callable[[Command], Command]:
    text = f"New folder for {of_what} (default: in {USUAL_FOLDER})."
    return option("-o --output DIR", text, PATH, callback=new_folder)


def two_sides(
    context: click.Context, _parameter: click.Parameter, pair: tuple[str, str] | None
) -> tuple[str, str] | None:
    """The value of ``--abba``. UsageError if an option of the command stands where B should be: B was left out."""
    options = {name for each in context.command.params if not getattr(each, "is_flag", False) for name in each.opts}
    if pair and pair[1] in options:
        raise click.UsageError("--abba takes two sets of options, A and B, each in quotes, and B is missing", context)
    return pair


PHASE = ParsedValue("even|duration", _phase)
DMA_LATENCY = ParsedValue("us|off", _dma_latency)
LENGTH_NS = ParsedValue("duration", units.parse_length)
DURATION_NS = ParsedValue("duration", units.parse_duration)
AT_MOST_NS = ParsedValue("1/time|never", units.parse_judged_rate)
RATE_NS = ParsedValue("1/time", units.parse_at_most)
GAP_NS = ParsedValue("duration", units.parse_gap)
LONGEST_NS = ParsedValue("duration", units.parse_longest_episode)
BUNCHES = ParsedValue("number", units.parse_bunches)
CONFIDENCE = ParsedValue("share", units.parse_confidence)
SHARE = ParsedValue("percent", lambda text: float(units.parse_percentage(text)))
"""A percentage as a share from 0 to 1."""
KEY_VALUE = ParsedValue("key=value", _option_pair)


PLUGINS = {
    "export formats": "rtproof.exporters",
    "report formats": "rtproof.report.formats",
    "targets": "rtproof.targets",
}
OF_AGENT = {"methods": ("method", 2), "probes": ("probe", 1), "loads": ("load", 1)}
"""The rows of the agent's list, and the place of the name in them."""
LIST_TIMEOUT_S = 2


def offer(kind: str) -> Callable[..., list[CompletionItem]]:
    """What a shell offers for a value of this kind, for click. It imports what it needs when a shell asks."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in _offered(kind) if word.startswith(incomplete)]

    return complete


def _offered(kind: str) -> list[str]:
    """The words of a kind. Completion must be quick and silent, so an agent is asked only if one has been built."""
    from rtproof import loads, profiles
    from rtproof.core import plugins

    if kind in PLUGINS:
        return plugins.plugin_names(import_module(PLUGINS[kind]))
    if kind == "profiles":
        return profiles.names()
    if kind == "sections":
        from rtproof.report.section_list import SECTION_NAMES

        return list(SECTION_NAMES)
    from rtproof.agents import build

    (row, at), agent = OF_AGENT[kind], build.built_agent()
    of_files = list(loads.names()) if kind == "loads" else []
    if agent is None:
        return of_files
    words = [str(agent), "list"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIST_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return of_files
    return [*of_files, *(each[at] for each in build.listed_rows(done.stdout, row))]


def option(declared: str, text: str, kind: Any = None, complete: str = "", **more: Any) -> Callable[[Command], Command]:
    """An option of a command, as its help shows it, in one line of a table.

    declared: the names; a word in lower letters for the parameter, if it has another name; what stands for the value;
    and "..." if the option may be repeated. Without value and kind it is a flag. complete: for ``offer``.
    """
    words = declared.split()
    if words[-1] == "...":
        words, more = words[:-1], {"multiple": True, **more}
    names = [word for word in words if word.startswith("-") or (word.isidentifier() and word.islower())]
    metavar = " ".join(words[len(names) :])
    if not metavar and kind is None and "/" not in declared:
        more = {"is_flag": True, **more}
    more["shell_complete"] = offer(complete) if complete else None
    return click.option(*names, type=kind, metavar=metavar or None, help=text, **more)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
