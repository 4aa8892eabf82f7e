# SPDX-License-Identifier: Apache-2.0
"""Numbers as text for people, always with their unit: durations, latencies, shares, probabilities, dates."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_US, _MS, _SECOND, _MINUTE, _HOUR = 10**3, 10**6, 10**9, 60 * 10**9, 3600 * 10**9
_ERROR = Context(prec=3, rounding=ROUND_CEILING)
_MOST_UNITS = 10_000_000
"""Beside a limit in us, 10 s and more are printed in s."""
_MOST_UNITS_OF_A_LIMIT = 1_000
"""Beside a limit in s, less than 1 ms is printed in us: three digits would show 0."""
_FEW = 10
"""A value keeps its unit until it reaches this many of the next larger unit: 1,106 us, but 402.666 ms."""


def capitalised(text: str) -> str:
    """The text with a capital letter at its start; all other letters stay, so that names do."""
    return text[:1].upper() + text[1:]


def duration(ns: float, *, up: bool = False) -> str:
    """A length of time with two or three digits: "350 ms", "20.0 s", "9 min 05 s", "96 h 12 min", "24 h".

    The value is rounded down, so that no run seems longer than it was and no event seems rarer. With ``up`` it is
    rounded up: use that for a time that is still needed.
    """
    if ns < _MINUTE:
        return _short(ns, ROUND_CEILING if up else ROUND_FLOOR)
    large, small = (("min", _MINUTE), ("s", _SECOND)) if ns < _HOUR else (("h", _HOUR), ("min", _MINUTE))
    smalls = (round(ns) + (small[1] - 1 if up else 0)) // small[1]
    count, rest = divmod(smalls, large[1] // small[1])
    return f"{count:,} {large[0]}" + (f" {rest:02} {small[0]}" if rest else "")


def _short(ns: float, rounding: str) -> str:
    """A duration below one minute. Twelve digits are kept first: rounding must not make a float's noise a digit."""
    exact = Decimal(f"{ns:.12g}")
    if ns >= _SECOND:
        seconds = (exact / _SECOND).quantize(Decimal("0.1"), rounding)
        return f"{seconds} s" if seconds < _MINUTE // _SECOND else "1 min"
    unit, size = next((u, s) for u, s in (("ms", _MS), ("us", _US), ("ns", 1)) if ns >= s or s == 1)
    rounded = Context(prec=3, rounding=rounding).divide(exact, Decimal(size))
    return _short(_US * size, rounding) if rounded >= _US else f"{rounded.normalize():f} {unit}"


def value(ns: int, like_ns: int | None = None) -> str:
    """A latency: "850 ns", "231.412 us", "402.666 ms", "5 ms". Exact below 10 ms, to a microsecond below 10 s.

    like_ns: the limit beside which it stands. It then has the limit's unit, if that fits, and so many digits that it is
    on the right side of the limit.
    """
    name, unit = value_unit(ns, like_ns)
    if unit == 1:
        return f"{ns:,} ns"
    digits = 3
    while like_ns is not None and digits < _DIGITS[name] and _side(ns, like_ns, unit, digits) != _sign(ns - like_ns):
        digits += 3
    shown = f"{ns / unit:,.{digits}f}".rstrip("0").rstrip(".")
    return f"{shown} {name}"


def limit_value(ns: int) -> str:
    """A limit, exact: what was asked is not rounded."""
    return value(ns, ns)


_DIGITS = {"us": 3, "ms": 6, "s": 9}
"""More would be finer than a nanosecond."""


def _side(ns: int, limit_ns: int, unit: int, digits: int) -> int:
    """The side of the limit on which the rounded latency lies."""
    return _sign(round(ns / unit, digits) * unit - limit_ns)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def value_unit(ns: int, like_ns: int | None = None) -> tuple[str, int]:
    """The unit in which a latency is printed, and its length in nanoseconds. Whole ms and s are printed as such.

    like_ns: a limit, whose unit the latency has if that fits.
    """
    if like_ns is not None:
        name, unit = value_unit(like_ns)
        if unit / _MOST_UNITS_OF_A_LIMIT <= abs(ns or unit) < unit * _MOST_UNITS:
            return name, unit
    size = abs(ns)
    if size < _US:
        return "ns", 1
    if size < _FEW * _MS and (size < _MS or size % _MS):
        return "us", _US
    if size < _FEW * _SECOND and (size < _SECOND or size % _SECOND):
        return "ms", _MS
    return "s", _SECOND


def quantity(n: int, noun: str) -> str:
    """A number and its noun: "1 episode", "196,190,335 activations"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def how_often(n: int) -> str:
    """A number of times: "once", "1,106 times"."""
    return "once" if n == 1 else f"{n:,} times"


def unknown_name(what: str, name: str, known: Iterable[str], more: str = "") -> str:
    """The sentence that refuses a name: what there is, and the name that may have been meant.

    more: what else the user may give.
    """
    return f"there is no {what} {name!r}{names_instead(name, known)}{more}"


def names_instead(name: str, known: Iterable[str]) -> str:
    """What follows a name that there is not: the one that may have been meant, and all that there are."""
    import difflib  # Takes longer to load than most commands take to answer.

    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{meant}; there are: {', '.join(names)}" if names else "; there is none"


def percent(share: float) -> str:
    """A share as a percentage without needless digits: "95 %", "99.9 %"."""
    return f"{share * 100:.6g} %"


def chance(share: float) -> str:
    """A forecast probability in whole per cent: "45 %". A forecast never says 0 % or 100 %, but "< 1 %" or "> 99 %"."""
    rounded = round(100 * share)
    return f"{rounded} %" if 0 < rounded < 100 else f"{'> 99' if rounded else '< 1'} %"


def error(alpha: float) -> str:
    """A probability of error with three digits, rounded up: "5 %", or "1.67 %" for each of three limits."""
    return f"{_error(alpha):f} %"


def sure(alpha: float) -> str:
    """The confidence that belongs to this probability of error, rounded down: "95 %", "98.33 %"."""
    return f"{100 - _error(alpha):f} %"


def _error(alpha: float) -> Decimal:
    """The probability in per cent. Nine digits, because a float holds no more correct digits of 1 - 0.999999."""
    return _ERROR.plus(Decimal(f"{100 * alpha:.9g}")).normalize()


def instant(origin_realtime_ns: int, offset_ns: int) -> str:
    """Date and time in UTC, to the millisecond, of an offset from an origin in CLOCK_REALTIME.

    "unknown" if the date is later than the year 9999.
    """
    milliseconds = (origin_realtime_ns + offset_ns) // 1_000_000
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return "unknown"
    return f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1000:03d}"


def when(origin_realtime_ns: int, offset_ns: int) -> str:
    """Date and time in UTC of an offset from an origin; without an origin (0), the time since measuring began."""
    if not origin_realtime_ns:
        return f"{offset_ns / 1e9:,.3f} s after measuring began"
    return f"{instant(origin_realtime_ns, offset_ns)} UTC"
