# SPDX-License-Identifier: Apache-2.0
"""What a verdict says about a forecast, in sentences with their figures."""

from rtproof.core.phrases import duration, percent, value
from rtproof.tail.forecast_model import FORECAST_CONFIDENCE, Forecast

DIGITS = 3
_HOUR_NS = 3_600_000_000_000
_RHYTHMS = ((24 * _HOUR_NS, "that of a day"), (7 * 24 * _HOUR_NS, "that of a week"))
OPEN_LENGTH = f"the {percent(FORECAST_CONFIDENCE)} hold for a run of a fixed length, and this run's was not fixed"


def forecast_lines(found: Forecast | None) -> tuple[str, ...]:
    """What a verdict says about a forecast, line by line: the limit and its basis, or every reason against one."""
    if found is None:
        return ()
    if found.limit_ns is not None:
        given = given_sentence(found, found.limit_ns)
        return given, *basis_sentence(found), unseen_rhythms_sentence(found), *found.warnings
    if not found.refusals:
        return ("refused (FIT): no fit of the tail holds",)
    first, *others = found.refusals
    return (f"refused ({first.code}): {first.message}", *(f"also {each.code}: {each.message}" for each in others))


def given_sentence(found: Forecast, limit_ns: int) -> str:
    """The sentence with the limit, which says too that the limit is no proof."""
    horizon = duration(found.horizon_ns).replace(" ", "-")
    return (
        f"once-per-{horizon} level <= {value(level_rounded_up(limit_ns))} ({percent(FORECAST_CONFIDENCE)}); "
        "a model, no proof: it assumes that no new mechanism appears"
    )


def basis_sentence(found: Forecast) -> tuple[str, ...]:
    """The sentence on the fits behind the limit; empty without such fits."""
    if found.ladder is None or not found.ladder.used:
        return ()
    best = found.ladder.used[-1]
    return (
        f"tail fit holds up to the highest {best.k:,} of {found.units:,} one-second maxima "
        f"(Anderson-Darling p {probability_sentence(best.p)}, shape {best.fit.xi:.2f})",
    )


def unseen_rhythms_sentence(found: Forecast) -> str:
    """The sentence on the condition of every forecast. No test of the run itself can replace this condition."""
    example = next((f", such as {name}," for ns, name in _RHYTHMS if ns > found.measured_ns), "")
    return (
        f"it holds only if the {duration(found.horizon_ns)} are like the {duration(found.measured_ns)} measured; a "
        f"rhythm longer than the run{example} cannot be seen in it"
    )


def level_above(level_ns: int, rate_per_s: float) -> str:
    """The sentence on the forecast rate above a level that nothing exceeded."""
    seldom = duration(1e9 / rate_per_s)
    return f"> {value(level_ns)}: less often than once per {seldom} ({percent(FORECAST_CONFIDENCE)}, model-based)"


def probability_sentence(p: float | None) -> str:
    """A p-value in words: "= 0.034" or "< 0.0001"; "unknown" without one."""
    if p is None:
        return "unknown"
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def level_rounded_up(value_ns: int) -> int:
    """The value rounded up to three digits, because an upper limit has no more."""
    unit: int = 10 ** max(len(str(abs(value_ns))) - DIGITS, 0)
    return -(-value_ns // unit) * unit
