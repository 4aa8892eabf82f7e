# SPDX-License-Identifier: Apache-2.0
"""What the user asked the agent for, as numbers."""

from rtproof.record import WHOLE_RUN, Moment, Record


def number(record: Record, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> int | None:
    """A fact that is a whole number; None if the record has none, or the reason why it could not be had."""
    text = record.fact(key, moment, thread)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def probe_options(record: Record) -> dict[str, str]:
    """The options of the probe, by name, as the user gave them."""
    pairs = (record.fact("probe_options") or "").split(",")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def asked_duration_ns(record: Record) -> int | None:
    """How long the run was to be; None if it was to end after a number of samples, or at nothing."""
    return number(record, "duration_ns") or None
