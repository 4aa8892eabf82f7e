# SPDX-License-Identifier: Apache-2.0
"""What the user asked the agent for, as numbers."""

import re
from fractions import Fraction

from rtproof.record import WHOLE_RUN, Moment, Record
from rtproof.units import UNITS_NS

_TIME = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([a-z]+)")


def number(record: Record, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> int | None:
    """A fact that is a whole number; None if the record has none, or the reason why it could not be had."""
    return whole(record.fact(key, moment, thread))


def whole(text: str | None) -> int | None:
    """A whole number; None if there is none."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def time_ns(text: str | None) -> int | None:
    """Nanoseconds of a time as the agent reads it, which takes more than people are asked for; None if it is none."""
    match = _TIME.fullmatch(text or "")
    unit = UNITS_NS.get(match[2].replace("day", "d")) if match else None
    return int(Fraction(match[1]) * unit) if match and unit else None


def probe_options(record: Record) -> dict[str, str]:
    """The options of the probe, by name, as the user gave them."""
    pairs = (record.fact("probe_options") or "").split(",")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def asked_duration_ns(record: Record) -> int | None:
    """How long the run was to be; None if it was to end after a number of samples, or at nothing."""
    return number(record, "duration_ns") or None


def limits_ns(record: Record) -> tuple[int, ...]:
    """The limits that the agent was given before the run, in order and each once; what is no limit is passed over."""
    words = (record.fact("limits_ns") or "").split(",")
    found = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]
    return tuple(dict.fromkeys(limit for limit in found if limit > 0))


def until_decided(record: Record) -> bool:
    """Whether who watched the run was to end it as soon as its limits were decided."""
    return record.fact("until_decided") == "yes"
