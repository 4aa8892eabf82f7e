# SPDX-License-Identifier: Apache-2.0
"""Parameter types of the command line: each turns the sentence of a parser's UserError into a usage error of its option."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rtproof import units
from rtproof.errors import UserError

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:
    _Base = click.ParamType  # takes no parameter before click 8.4


class Parsed(_Base):
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


def _positive_duration(text: str) -> int:
    duration_ns = units.parse_duration(text)
    if duration_ns == 0:
        raise UserError(f"the duration {text!r} must be longer than 0")
    return duration_ns


def _phase(text: str) -> str:
    return text if text == "even" else units.format_duration(units.parse_duration(text))


def _dma_latency(text: str) -> str:
    """Microseconds as the kernel takes them (Documentation/power/pm_qos_interface.rst): a bare number or a duration."""
    if text == "off" or (text.isascii() and text.isdigit() and len(text) <= 9):
        return text
    duration_ns = units.parse_duration(text)
    if duration_ns % 1_000:
        raise UserError(f"the DMA latency {text!r} is not a whole number of microseconds")
    return str(duration_ns // 1_000)


def _option_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"{text!r} is not of the form key=value")
    return key, value


DURATION = Parsed("duration", units.parse_duration)
POSITIVE_DURATION = Parsed("duration", _positive_duration)
AT_MOST = Parsed("1/time", units.parse_at_most)
CPUS = Parsed("list", units.parse_cpus)
PERCENTAGE = Parsed("percent", units.parse_percentage)
PHASE = Parsed("even|duration", _phase)
DMA_LATENCY = Parsed("us|off", _dma_latency)
KEY_VALUE = Parsed("key=value", _option_pair)
