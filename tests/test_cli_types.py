# SPDX-License-Identifier: Apache-2.0
import click
import pytest

from rtproof.cli import types


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (types.LENGTH, "1500us", "1500us"),
        (types.LENGTH, "0.5s", "500ms"),
        (types.SPAN, "0s", "0ns"),
        (types.CPUS, "3,1-2", "1-3"),
        (types.PHASE, "even", "even"),
        (types.PHASE, "0.01ms", "10us"),
        (types.DMA_LATENCY, "off", "off"),
        (types.DMA_LATENCY, "0", "0"),
        (types.DMA_LATENCY, "1ms", "1000"),
        (types.LIMIT_NS, "500us", 500_000),
        (types.AT_MOST_NS, "1/min", 60_000_000_000),
        (types.CONFIDENCE, "0.99", 0.99),
        (types.KEY_VALUE, "a=b=c", ("a", "b=c")),
        (types.LIMIT_NS, 5, 5),
        (types.SHARE, "99.999%", 0.99999),
    ],
)
def test_what_is_meant(kind: types.Parsed, text: object, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (types.LENGTH, "0s", "must be longer than 0"),
        (types.SPAN, "5", "has no unit"),
        (types.DMA_LATENCY, "", "is not a duration"),
        (types.DMA_LATENCY, "1500ns", "whole microseconds up to 1000000"),
        (types.DMA_LATENCY, "2s", "whole microseconds up to 1000000"),
        (types.CONFIDENCE, "1", "is not a confidence from 0.5 to 0.999999"),
        (types.CONFIDENCE, "sure", "is not a confidence"),
        (types.KEY_VALUE, "=b", "is not of the form key=value"),
    ],
)
def test_what_makes_no_sense(kind: types.Parsed, text: str, sentence: str) -> None:
    with pytest.raises(click.BadParameter, match=sentence):
        kind.convert(text, None, None)
