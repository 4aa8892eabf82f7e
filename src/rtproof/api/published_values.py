# SPDX-License-Identifier: Apache-2.0
"""Make the objects of the Python API of the published JSON, so that both say the same."""

from typing import Any

from rtproof.api.late_causes import Budget, BudgetPart, Cause, Coincidence, Explanation
from rtproof.api.results import (
    Distribution,
    Figures,
    Quantile,
    Summary,
)
from rtproof.core.errors import RtproofError
from rtproof.core.notebook import Sentences

Json = dict[str, Any]


def sentences_of(told: list[Json]) -> Sentences:
    """Label and text of each line."""
    return tuple((one["label"], one["text"]) for one in told)


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


def explanation_of(told: Json, text: str) -> Explanation:
    """What a trace explains. text: the same as JSON."""
    return Explanation(
        traced=True,
        limit_ns=told["limit_ns"],
        late=told["late_count"],
        explained=told["explained_count"],
        outside=told["outside_count"],
        causes=tuple(map(_cause, told["causes"])),
        budgets=tuple(map(_budget, told["budgets"])),
        coincidences=(),
        why_none=None,
        _json=text,
    )


def _cause(told: Json) -> Cause:
    return Cause(
        cause=told["cause"],
        name=told["name"],
        words=told["words"],
        share=told["share_ratio"],
        total_ns=told["total_ns"],
        late=told["late_count"],
        first_in=told["first_in_count"],
        advice=told["advice"]["sentence"] if told["advice"] else None,
        waits_for=tuple(told["waits_for"]),
    )


def _budget(told: Json) -> Budget:
    return Budget(
        thread=told["thread"],
        index=told["index"],
        due_ns=told["due_ns"],
        latency_ns=told["latency_ns"],
        whole=told["whole"],
        parts=tuple(
            BudgetPart(
                one["from_ns"],
                one["to_ns"],
                one["phase"],
                one["cpu"],
                one["cause"],
                one["name"],
                one["words"],
                tuple(one["stack"]),
                tuple(one["waits_for"]),
            )
            for one in told["parts"]
        ),
    )


def coincidence_of(told: Json, text: str) -> Explanation:
    """What coincides with late activations of a run without a trace. text: the same as JSON."""
    return Explanation(
        traced=False,
        limit_ns=told["limit_ns"],
        late=told["late_count"],
        explained=0,
        outside=0,
        causes=(),
        budgets=(),
        coincidences=tuple(
            Coincidence(one["name"], one["words"], one["late"], one["ordinary"], one["chance_ratio"])
            for one in told["coincides"]
        ),
        why_none=told["too_few"] or told["trace_refused"],
        _json=text,
    )
