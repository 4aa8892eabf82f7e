# SPDX-License-Identifier: Apache-2.0
"""What a forecast says, and why there is none, in sentences with their figures: one function for each reason."""

import math
from collections.abc import Sequence

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.tail.forecast_model import FORECAST_CONFIDENCE, Forecast, ForecastRefusal
from rtproof.tail.stationarity import FEWEST_BLOCKS, MINUTE_SLOTS, SLOTS, SlowChange, Stationarity
from rtproof.tail.stationarity import FEWEST_MINUTE_BLOCKS as FEWEST_MINUTES
from rtproof.tail.thresholds import ThresholdLadder

DIGITS = 3
_HOUR_NS = 3_600_000_000_000
_RHYTHMS = ((24 * _HOUR_NS, "that of a day"), (7 * 24 * _HOUR_NS, "that of a week"))
OPEN_LENGTH = f"the {percent(FORECAST_CONFIDENCE)} hold for a run of a fixed length, and this run's was not fixed"


def data_refusal(reasons: Sequence[str]) -> ForecastRefusal:
    """The refusal if a part of the tail is missing or cannot be trusted."""
    return ForecastRefusal("DATA", f"the largest latencies were not recorded completely: {'; '.join(reasons)}")


def few_refusal(have: int, needed: int, measured_ns: int, missing_ns: int) -> ForecastRefusal:
    """The refusal if the run has too few seconds. Only the highest tenth of them counts, because it is the tail."""
    more = f"; measure about {duration(missing_ns, up=True)} more" if missing_ns > 0 else ""
    return ForecastRefusal(
        "FEW",
        f"{quantity(have, 'tail event')} in {duration(measured_ns)}, and a forecast needs {needed}{more}",
    )


def narrow_refusal(step_ns: float, spread_ns: float) -> ForecastRefusal:
    """The refusal if the steps between the values are wider than the tail."""
    return ForecastRefusal(
        "COARSE",
        f"the steps of {value(rounded_level(step_ns))} between the values are too coarse for a tail with a spread of "
        f"{value(rounded_level(spread_ns))}; half a step is needed",
    )


def alike_refusal(different: int, needed: int, highest: int, units: int, step_ns: int) -> ForecastRefusal:
    """The refusal if the tail has hardly any different values."""
    return ForecastRefusal(
        "COARSE",
        f"the highest {highest:,} of {units:,} one-second maxima have only {quantity(different, 'different value')}, "
        f"{needed} are needed; all values lie {value(step_ns)} or more apart",
    )


def same_refusal(value_ns: int, count: int, units: int, above: int, needed: int) -> ForecastRefusal:
    """The refusal if one value is so frequent that no tail can be separated from it."""
    higher = f"only {above:,} lie" if above else "none lies"
    return ForecastRefusal(
        "COARSE",
        f"{count:,} of {units:,} one-second maxima have the same value of {value(value_ns)} and {higher} above it; "
        f"a tail of {needed} is needed",
    )


def fit_refusal(p: float, k: int, peaks_ns: Sequence[int]) -> ForecastRefusal:
    """The refusal if no part of the tail looks like one distribution."""
    where = (
        f". One-second maxima gather near {listed_reasons([value(each) for each in peaks_ns])}"
        if len(peaks_ns) > 1
        else ""
    )
    return ForecastRefusal(
        "FIT",
        f"several mechanisms seem to cause the largest latencies (Anderson-Darling p {probability_sentence(p)} for the "
        f"highest {k:,}; more than 0.1 is needed){where}",
    )


def top_refusal(count: int, p: float, largest_ns: int, at: str) -> ForecastRefusal:
    """The refusal if the largest few values have another cause than those below them."""
    return ForecastRefusal(
        "TOP",
        f"the {count} largest have another cause than the rest (p {probability_sentence(p)}); look first at the "
        f"largest, {value(largest_ns)} at {at}",
    )


def heavy_refusal(shape: float, shape_upper: float | None) -> ForecastRefusal:
    """The refusal if the tail falls so slowly that a level beyond the data can be anywhere.

    shape_upper: None if the shape has no upper limit.
    """
    most = "no upper limit" if shape_upper is None else f"at most {shape_upper:.2f}"
    return ForecastRefusal(
        "HEAVY",
        f"large latencies thin out too slowly for a useful limit (shape {shape:.2f}, {most} at "
        f"{percent(FORECAST_CONFIDENCE)}; at most 0.5 and 0.7 are allowed)",
    )


def wide_refusal(limit_ns: float, largest_ns: int, times: float) -> ForecastRefusal:
    """The refusal if there is a limit, but it is too large to be useful."""
    if largest_ns <= 0:
        much = "above 0, and so no multiple of"
    elif limit_ns < 1e6 * largest_ns:
        much = f"{limit_ns / largest_ns:,.1f} times"
    else:
        much = "more than a million times"
    return ForecastRefusal(
        "WIDE",
        f"the limit would be useless: {much} the largest latency measured, {value(largest_ns)}; up to {times:g} times "
        "is allowed",
    )


def drift_refusal(found: Stationarity) -> ForecastRefusal:
    """The refusal if the rate of large latencies changes during the run, or if they come in clusters."""
    return ForecastRefusal(
        "DRIFT",
        "the rate of large latencies changes during the run, or they come in clusters: above "
        f"{value(found.level_ns or 0)} there are {found.lowest:,} to {found.highest:,} events in "
        f"{duration(found.block_ns)} (slots of {found.slot_s} s; dispersion p "
        f"{probability_sentence(found.dispersion_p)}, trend p {probability_sentence(found.trend_p)})",
    )


def slow_refusal(found: SlowChange) -> ForecastRefusal:
    """The refusal if something varies so slowly that the run does not show it completely."""
    which = "half" if found.share == 0.5 else percent(found.share)
    return ForecastRefusal(
        "SLOW",
        f"the latencies change slowly over the whole run: {which} of the one-second maxima lie above "
        f"{value(found.lowest_ns)} in one quarter of the run and above {value(found.highest_ns)} in another "
        f"(p {probability_sentence(found.p)})",
    )


def untold_refusal(found: Stationarity) -> ForecastRefusal:
    """The refusal if the run is too short to test whether the rate of large latencies changes."""
    if found.blocks:
        lacks = (
            f"fewer than {FEWEST_MINUTES} stretches of {duration(found.block_ns * MINUTE_SLOTS // SLOTS)} with values"
        )
    else:
        lacks = (
            f"fewer than {FEWEST_BLOCKS} stretches of {duration(found.block_ns)} with values in at least half of each"
        )
    return ForecastRefusal(
        "DRIFT",
        f"the run is too short to see whether the rate of large latencies changes: {lacks}",
    )


def far_refusal(horizon_ns: int, measured_ns: int, most: int, needed_ns: int) -> ForecastRefusal:
    """The refusal if the horizon is too far for the run."""
    return ForecastRefusal(
        "FAR",
        f"{duration(horizon_ns)} are {math.ceil(10 * horizon_ns / measured_ns) / 10:,.1f} times the measured time of "
        f"{duration(measured_ns)}, and at most {most} times are allowed; measure {duration(needed_ns, up=True)}",
    )


def external_refusal(reasons: Sequence[str]) -> ForecastRefusal:
    """The refusal if the host or the firmware takes part: no run shows the distribution of their delays."""
    return ForecastRefusal("EXTERNAL", f"the host or the firmware can add delays of any size: {'; '.join(reasons)}")


def farther_sentence(times: float, checked: int) -> str:
    """The warning on a forecast that looks further than the method was checked for, because the user asked for it."""
    return (
        f"less certain: this looks {times:,.0f} times as far as the run is long, and the method was checked for up to "
        f"{checked} times"
    )


def probability_sentence(p: float | None) -> str:
    """A p-value in words: "= 0.034" or "< 0.0001"; "unknown" without one."""
    if p is None:
        return "unknown"
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def listed_reasons(words: Sequence[str]) -> str:
    """Words as a list: "5 us, 8 us and 16.7 ms"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def forecast_lines(found: Forecast | None) -> tuple[str, ...]:
    """What a verdict says about a forecast, line by line: the limit and its basis, or every reason against one."""
    if found is None:
        return ()
    if found.limit_ns is not None:
        return (
            given_sentence(found, found.limit_ns),
            *basis_sentence(found),
            unseen_rhythms_sentence(found),
            *found.warnings,
        )
    first, *others = found.refusals or (ForecastRefusal("FIT", "no fit of the tail holds"),)
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
        f"tail fit holds for the highest {_holding(found.ladder)} of {found.units:,} one-second maxima "
        f"(Anderson-Darling p {probability_sentence(best.p)}, shape {best.fit.xi:.2f})",
    )


def unseen_rhythms_sentence(found: Forecast) -> str:
    """The sentence on the condition of every forecast. No test of the run itself can replace this condition."""
    example = next((f", such as {name}," for ns, name in _RHYTHMS if ns > found.measured_ns), "")
    return (
        f"it holds only if the {duration(found.horizon_ns)} are like the {duration(found.measured_ns)} measured; a "
        f"rhythm longer than the run{example} cannot be seen in it"
    )


def _holding(ladder: ThresholdLadder) -> str:
    """The numbers of values whose fits hold: "200 to 2,880" if all fits between these hold too."""
    ks = [f"{rung.k:,}" for rung in ladder.used]
    between = [rung for rung in ladder.rungs if ladder.used[0].k <= rung.k <= ladder.used[-1].k]
    return f"{ks[0]} to {ks[-1]}" if len(ks) == len(between) > 1 else listed_reasons(ks)


def level_above(level_ns: int, rate_per_s: float) -> str:
    """The sentence on the forecast rate above a level that nothing exceeded."""
    seldom = duration(1e9 / rate_per_s)
    return f"> {value(level_ns)}: less often than once per {seldom} ({percent(FORECAST_CONFIDENCE)}, model-based)"


def rounded_level(value_ns: float) -> int:
    """The value rounded to three digits."""
    return int(float(f"{value_ns:.{DIGITS - 1}e}"))


def level_rounded_up(value_ns: int) -> int:
    """The value rounded up to three digits, because an upper limit has no more."""
    unit: int = 10 ** max(len(str(abs(value_ns))) - DIGITS, 0)
    return -(-value_ns // unit) * unit
