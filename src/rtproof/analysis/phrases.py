# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them, always with their unit."""

from datetime import UTC, datetime

_US, _MS, _SECOND, _MINUTE, _HOUR = 10**3, 10**6, 10**9, 60 * 10**9, 3600 * 10**9
_FEW = 10
"""A value keeps its smaller unit up to this many of the larger one: 1,106 us, but 402.666 ms."""


def duration(ns: float) -> str:
    """How long something took, to about three digits: "350 ms", "20.0 s", "9 min 05 s", "96 h 12 min"."""
    if ns < _MINUTE:
        return _scaled(ns, _SECOND, "s", 1) if ns >= _SECOND else value(round(ns))
    whole = round(ns)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE // _SECOND:02} s"
    return f"{whole // _HOUR:,} h {whole % _HOUR // _MINUTE:02} min"


def value(ns: int) -> str:
    """A latency, exact below 10 ms and to the microsecond below 10 s: "850 ns", "231.412 us", "402.666 ms"."""
    size = abs(ns)
    if size < _US:
        return f"{ns} ns"
    if size < _FEW * _MS:
        return _scaled(ns, _US, "us", 3, strip=True)
    if size < _FEW * _SECOND:
        return _scaled(ns, _MS, "ms", 3, strip=True)
    return _scaled(ns, _SECOND, "s", 3, strip=True)


def quantity(n: int, noun: str) -> str:
    """A number and its noun: "1 episode", "196,190,335 activations"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def percent(share: float) -> str:
    """A share without digits that say nothing: "95 %", "99.9 %"."""
    return f"{share * 100:.6g} %"


def wall_clock(origin_realtime_ns: int, time_ns: int) -> str:
    """An instant of the run by the target's clock, in UTC to a tenth of a second."""
    whole, tenth = divmod((origin_realtime_ns + time_ns) // (_SECOND // 10), 10)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%d %H:%M:%S}.{tenth} UTC"


def _scaled(ns: float, unit_ns: int, unit: str, digits: int, *, strip: bool = False) -> str:
    text = f"{ns / unit_ns:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if strip else text} {unit}"
