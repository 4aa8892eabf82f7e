# SPDX-License-Identifier: Apache-2.0
"""Make the objects of the Python API of the published JSON, so that both say the same."""

from typing import Any

from rtproof.api.results import (
    Distribution,
    Figures,
    Quantile,
    Summary,
)
from rtproof.core.errors import RtproofError

Json = dict[str, Any]


def summary_of(analysis: Json) -> Summary:
    """The numbers of all threads. RtproofError if the values are no times."""
    if "min_ns" not in analysis["pooled"]["observed"]:
        raise RtproofError("the values of this run are no times, so only to_json() has them")
    threads = tuple(_figures(one, one["series"]["thread"], one["series"]["cpu"]) for one in analysis["threads"])
    return Summary(_figures(analysis["pooled"], None, None), threads)


def _figures(told: Json, thread: int | None, cpu: int | None) -> Figures:
    spread, schedule = told["spread"] or {}, told["schedule"]
    return Figures(
        thread=thread,
        cpu=cpu,
        n=told["obtained_count"],
        due=told["expected_count"],
        missed=told["missed_count"],
        lost=told["lost_count"],
        exact=told["exact"],
        observed=_distribution(told["observed"]),
        schedule=_distribution(schedule) if schedule else None,
        offset_ns=spread.get("offset_ns"),
        jitter_ns=spread.get("jitter_ns"),
        peak_to_peak_ns=spread.get("peak_to_peak_ns"),
    )


def _distribution(told: Json) -> Distribution:
    return Distribution(
        n=told["values_count"],
        min_ns=told["min_ns"],
        mean_ns=told["mean_ns"],
        max_ns=told["max_ns"],
        deviation_ns=told["deviation_ns"],
        quantiles=tuple(
            Quantile(
                one["share_ratio"],
                one["values_count"],
                one["value_ns"],
                one["low_ns"],
                one["high_ns"],
                one["confidence_ratio"],
                one.get("beyond_scale", False),
            )
            for one in told["quantiles"]
        ),
    )
