# SPDX-License-Identifier: Apache-2.0

import click
import pytest

from rtproof.cli import parameter_types


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (parameter_types.LENGTH, "1500us", "1500us"),
        (parameter_types.LENGTH, "0.5s", "500ms"),
        (parameter_types.SPAN, "0s", "0ns"),
        (parameter_types.CPUS, "3,1-2", "1-3"),
        (parameter_types.PHASE, "even", "even"),
        (parameter_types.PHASE, "0.01ms", "10us"),
        (parameter_types.DMA_LATENCY, "off", "off"),
        (parameter_types.DMA_LATENCY, "0", "0"),
        (parameter_types.DMA_LATENCY, "1ms", "1000"),
        (parameter_types.LIMIT_NS, "500us", 500_000),
        (parameter_types.AT_MOST_NS, "1/min", 60_000_000_000),
        (parameter_types.CONFIDENCE, "0.99", 0.99),
        (parameter_types.KEY_VALUE, "a=b=c", ("a", "b=c")),
        (parameter_types.LIMIT_NS, 5, 5),
        (parameter_types.SHARE, "99.999%", 0.99999),
    ],
)
def test_what_is_meant(kind: parameter_types.ParsedValue, text: object, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (parameter_types.LENGTH, "0s", "must be longer than 0"),
        (parameter_types.SPAN, "5", "has no unit"),
        (parameter_types.DMA_LATENCY, "", "is not a duration"),
        (parameter_types.DMA_LATENCY, "1500ns", "whole microseconds up to 1000000"),
        (parameter_types.DMA_LATENCY, "2s", "whole microseconds up to 1000000"),
        (parameter_types.CONFIDENCE, "1", "is not a confidence from 0.5 to 0.999999"),
        (parameter_types.CONFIDENCE, "sure", "is not a confidence"),
        (parameter_types.KEY_VALUE, "=b", "is not of the form key=value"),
    ],
)
def test_what_makes_no_sense(kind: parameter_types.ParsedValue, text: str, sentence: str) -> None:
    with pytest.raises(click.BadParameter, match=sentence):
        kind.convert(text, None, None)
