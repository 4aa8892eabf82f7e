# SPDX-License-Identifier: Apache-2.0
"""Types of the values of options, such as durations and CPU lists. A value that a parser refuses is a usage error."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.units import LEAST_AT_MOST_NS

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:
    _Base = click.ParamType  # takes no parameter before click 8.4

Command = TypeVar("Command", bound=Callable[..., Any])
LARGEST_DMA_LATENCY_US = 1_000_000
LEAST_CONFIDENCE = 0.5
LEAST_GAP_NS, MOST_GAP_NS = 10**6, 600 * 10**9
MOST_BUNCHES = 100.0
MOST_CONFIDENCE = 0.999999


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


def _confidence(text: str) -> float:
    try:
        confidence = float(text)
    except ValueError:
        confidence = -1.0
    if not LEAST_CONFIDENCE <= confidence <= MOST_CONFIDENCE:
        raise UserError(f"{text!r} is not a confidence from {LEAST_CONFIDENCE} to {MOST_CONFIDENCE}, such as 0.95")
    return confidence


def _at_most(text: str) -> int:
    at_most_ns = units.parse_at_most(text)
    if at_most_ns < LEAST_AT_MOST_NS:
        raise UserError(f"{text!r} is too often: ask for once per 1s or longer")
    return at_most_ns


def _gap(text: str) -> int:
    """Nanoseconds. A gap longer than 600s would join events with different causes to one episode."""
    gap_ns = units.parse_duration(text)
    if not LEAST_GAP_NS <= gap_ns <= MOST_GAP_NS:
        raise UserError(f"{text!r} is not a gap between episodes from 1ms to 600s")
    return gap_ns


def _longest_episode(text: str) -> int:
    longest_ns = units.parse_duration(text)
    if longest_ns < LEAST_GAP_NS:
        raise UserError(f"{text!r} is too short for the longest episode: give 1ms or more")
    return longest_ns


def _bunches(text: str) -> float:
    try:
        bunches = float(text)
    except ValueError:
        bunches = 0.0
    if not 1 <= bunches <= MOST_BUNCHES:
        raise UserError(f"{text!r} is not a number of episodes that a bunch may bring on average, from 1 to 100")
    return bunches


def _option_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"{text!r} is not of the form key=value")
    return key, value


def count_up_to(most: int) -> click.IntRange:
    """A whole number from 1 to ``most``."""
    return click.IntRange(1, most)


LENGTH = ParsedValue("duration", _length)
"""A duration above 0 in its shortest form, for the agent."""
SPAN = ParsedValue("duration", _span)
"""A duration that may be 0 in its shortest form, for the agent."""
CPUS = ParsedValue("list", _cpus)


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
LIMIT_NS = ParsedValue("duration", units.parse_length)
LENGTH_NS = ParsedValue("duration", units.parse_length)
DURATION_NS = ParsedValue("duration", units.parse_duration)
AT_MOST_NS = ParsedValue("1/time", _at_most)
GAP_NS = ParsedValue("duration", _gap)
LONGEST_NS = ParsedValue("duration", _longest_episode)
BUNCHES = ParsedValue("number", _bunches)
CONFIDENCE = ParsedValue("share", _confidence)
SHARE = ParsedValue("percent", lambda text: float(units.parse_percentage(text)))
"""A percentage as a share from 0 to 1."""
KEY_VALUE = ParsedValue("key=value", _option_pair)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command several options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
