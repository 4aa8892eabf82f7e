# SPDX-License-Identifier: Apache-2.0
"""Turn an Analysis into plain data for JSON.

docs/json-schema.md describes the keys. A change of a key's meaning there raises VERSION.
"""

from dataclasses import asdict
from typing import Any

from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import NO_LONGEST, Analysis, Requirement, Verdict, several_stages, shares_of
from rtproof.judge.episodes import LevelClusters, level_clusters
from rtproof.judge.histogram_only import impossible_figures
from rtproof.judge.objections import Objection, claim_of, objections
from rtproof.record.contents import Record, Series, View
from rtproof.schema.forecast_json import forecast_dict
from rtproof.statistics import MIXING
from rtproof.summary import moments
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart
from rtproof.summary.kernel_model import PreemptionModel, PreemptionStatement, core_beside, preemption_model
from rtproof.summary.kernel_trace import has_trace, trace_summary
from rtproof.summary.loops import (
    BAND_LEVEL,
    ApplicationLoops,
    has_samples,
    is_app,
    loops_of_all_threads,
    loops_of_threads,
    most_cycles_out_of_band,
)
from rtproof.summary.quantiles import moments_and_counts_of_view, offset_and_spread, quantile, quantiles
from rtproof.summary.recorded_facts import virtual_time_clock
from rtproof.summary.summary_model import Cycles, Doubt, Moments, Quantile, Summary, Switch
from rtproof.summary.system_facts import system_facts
from rtproof.summary.tracing_effect import EFFECT_CONFIDENCE as OBSERVER_CONFIDENCE
from rtproof.summary.tracing_effect import EFFECT_METHOD, TracingEffect, TracingEffects, tracing_effects

JsonObject = dict[str, Any]


def moments_dict(moments: Moments, unit: str) -> JsonObject:
    """Return the moments with their unit in the key; all are None where there is no value."""
    return {
        "values_count": moments.count,
        f"min_{unit}": moments.min if moments.count else None,
        f"mean_{unit}": moments.mean,
        f"max_{unit}": moments.max if moments.count else None,
        f"deviation_{unit}": moments.deviation,
    }


def app_dict(record: Record) -> JsonObject | None:
    """Return the loops of a periodic application, all together and by thread.

    The result is None for every other record, and for a record without samples.
    """
    if not is_app(record) or not has_samples(record):
        return None
    threads = loops_of_threads(record)
    each = [{"thread": thread, **_loops(app)} for thread, app in threads.items()]
    return {**_loops(loops_of_all_threads(threads.values())), "threads": each}


def _loops(app: ApplicationLoops) -> JsonObject:
    parts = {"work": app.work, "loop": app.loop, "error": app.error, "slack": app.slack}
    return {
        **{name: moments_dict(moments, "ns") for name, moments in parts.items()},
        "no_sleep_count": app.no_sleep,
        "loops_sum_ns": app.loop.sum,
        "elapsed_ns": app.elapsed_ns,
        "holes_count": app.apart,
    }


def _band_ratio(cycles: Cycles) -> float | None:
    """Return how far the band reaches on both sides of the period; None if it reaches farther on one side."""
    above, below = cycles.high_ns - cycles.period_ns, cycles.period_ns - cycles.low_ns
    return above / cycles.period_ns if cycles.period_ns and above == below else None


def cycles_dict(cycles: Cycles) -> JsonObject:
    """Return the cycles of a periodic loop, compared with the band."""
    return {
        "loops_count": cycles.loops,
        "period_ns": cycles.period_ns,
        "band_ratio": _band_ratio(cycles),
        "low_ns": cycles.low_ns,
        "high_ns": cycles.high_ns,
        "ignored_count": cycles.ignored,
        "counted_count": cycles.counted,
        "short_count": cycles.short,
        "long_count": cycles.long,
        "min_ns": cycles.min_ns,
        "max_ns": cycles.max_ns,
        "catch_up_pairs_count": cycles.catch_up_pairs,
        "correlation_ratio": cycles.correlation,
        "most_out_of_band_ratio": most_cycles_out_of_band(cycles),
        "confidence_ratio": None if cycles.deterministic else BAND_LEVEL,
        "stalls": [asdict(stall) for stall in cycles.stalls],
    }


ANALYSIS_SCHEMA = "rtproof.analysis"
ANALYSIS_VERSION = 3

OF_INTERVALS = ("low_", "high_", "confidence_", "effective_", "dependence")

Json = dict[str, Any]


def analysis_dict(analysis: Analysis, shares: tuple[float, ...] | None = None) -> Json:
    """Return the analysis as plain data. Keys name the unit of their number; a number that n does not allow is None.

    shares: the quantiles to give, from 0 to 1; by default the usual quantiles and those the analysis was asked for.
    """
    wanted = shares_of(analysis) if shares is None else shares
    whole = _whole(analysis, wanted)
    if analysis.imported:
        return _without_time(whole, analysis.imported)
    return without_intervals(whole) if virtual_time_clock(analysis.record) else whole


def without_intervals(found: Json) -> Json:
    """Return the data without intervals and confidences of quantiles: nothing in virtual time has any."""
    interval = "share_ratio" in found and "confidence_ratio" in found
    return {key: None if interval and key.startswith(OF_INTERVALS) else _inside(value) for key, value in found.items()}


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return without_intervals(value)
    return [_inside(each) for each in value] if isinstance(value, list) else value


TIMED = (
    *("expected_count", "missed_count", "stalled_count", "stalled_least_ns", "lost_count", "unbinned_count", "span_ns"),
    *("schedule", "spread", "lag", "top"),
)
"""The keys of a summary that need the time of a value, or the activations that never ran."""


def _without_time(whole: Json, imported: ImportedHistogram) -> Json:
    """Return the data of another tool's histogram: what needs time is None. ``imported``: what only the tool tells."""
    parts = {part.number: part for part in imported.parts}
    return whole | {
        "record": None,
        "objections": [],
        "threads": [
            {"series": _untold(each["series"]), **_counted(each, parts[each["series"]["thread"]])}
            for each in whole["threads"]
        ],
        "pooled": _counted(whole["pooled"], imported),
        "imported": {
            "tool": imported.tool,
            "title": imported.title,
            "resolution_ns": imported.resolution_ns,
            "beyond_scale_count": imported.overflow,
            "duration_ns": imported.duration_ns,
            "period_ns": imported.shortest_period_ns,
            "impossible": [{"statement": what, "why": why} for what, why in impossible_figures(imported)],
        },
    }


def _untold(series: Json) -> Json:
    """Return a thread's series with None for what another tool does not tell."""
    unknown = dict.fromkeys(("on_grid", "external", "loop", "first_due_ns", "method"))
    return series | unknown | {"period_ns": series["period_ns"] or None}


def _counted(summary: Json, told: ImportedHistogram | ImportedPart) -> Json:
    """Return a summary with the figures that the tool prints."""
    found = [each for each in summary["observed"]["quantiles"] if each["values_count"]]
    on_scale = 1 - (told.overflow or 0) / found[0]["values_count"] if found else 1
    printed = {
        "values_count": told.count,
        "min_ns": told.min_ns,
        "mean_ns": told.mean_ns,
        "max_ns": told.max_ns,
        "deviation_ns": None,
        "quantiles": [each | {"beyond_scale": each["share_ratio"] > on_scale} for each in found],
    }
    figures = {key: value for key, value in summary.items() if key != "series"}
    return figures | dict.fromkeys(TIMED) | {"obtained_count": told.count, "observed": printed}


def _whole(analysis: Analysis, wanted: tuple[float, ...]) -> Json:
    return {
        "schema": ANALYSIS_SCHEMA,
        "version": ANALYSIS_VERSION,
        "record": _record(analysis.record),
        "verdict": _verdict(analysis.verdict),
        "verdicts": [_verdict(verdict) for verdict in analysis.verdicts],
        "forecast": _forecast(analysis),
        "doubts": [_doubt(doubt) for doubt in analysis.doubts],
        "objections": [_objection(each) for each in objections([claim_of(analysis, "this run")])],
        "threads": [{"series": _series(s.series), **_summary(s, wanted)} for s in analysis.summaries],
        "pooled": _summary(analysis.pooled, wanted),
        "stages": [{"field": s.series.field, **_summary(s, wanted)} for s in several_stages(analysis)],
        "switches": [_switch(switch, analysis.pooled.series.unit, wanted) for switch in analysis.switches],
        "levels": [_level(each) for each in level_clusters(analysis)],
        "cycles": cycles_dict(analysis.cycles) if analysis.cycles else None,
        "app": app_dict(analysis.record),
        "trace": _trace(analysis.record) if has_trace(analysis.record) else None,
        "observer": _observer(found) if (found := tracing_effects(analysis.record)) else None,
    }


def _record(record: Record) -> Json:
    begin = record.begin
    return {
        "path": record.path,
        "size_bytes": record.size,
        "format": f"{begin.major}.{begin.minor}",
        "run_id": begin.run_id.hex(),
        "origin_realtime_ns": begin.origin_realtime_ns,
        "agent_version": begin.agent_version,
        "machine": begin.machine,
        "kernel_release": begin.kernel_release,
        "kernel_version": begin.kernel_version,
        "virtual_time": virtual_time_clock(record),
        "core": core_beside(record),
        "preemption_model": _preemption_model(preemption_model(record)),
        "system": [asdict(fact) for fact in system_facts(record)],
        "end_reason": record.end.reason.name.lower() if record.end else None,
        "damaged_parts_count": len(record.damage),
    }


def _preemption_model(model: PreemptionModel) -> Json:
    return {
        **{name: _statement(getattr(model, name)) for name in ("built", "effective", "core")},
        "pipeline": model.pipeline,
        "disagreements": list(model.disagreements),
    }


def _statement(said: PreemptionStatement) -> Json:
    return {"value": said.value, "confidence": said.confidence.value, "evidence": list(said.evidence)}


def _verdict(verdict: Verdict) -> Json:
    told = _judged(verdict)
    if not verdict.untimed:
        return told
    above = verdict.above
    return told | {
        "measured_ns": verdict.measured_ns or None,
        "episodes_count": None,
        "episodes": None,
        "above_least_count": above.least if above else None,
        "above_most_count": above.most if above else None,
        "share_low_ratio": above.share_low if above else None,
        "share_high_ratio": above.share_high if above else None,
    }


def _judged(verdict: Verdict) -> Json:
    return {
        "state": verdict.state.value,
        "exit_code": verdict.state.exit_code,
        "requirement": requirement_dict(verdict.requirement) if verdict.requirement else None,
        "reasons": list(verdict.reasons),
        "sentences": [{"label": label, "text": text} for label, text in verdict.sentences],
        "measured_ns": verdict.measured_ns,
        "chosen_after": verdict.chosen_after,
        "deterministic": verdict.deterministic,
        "episodes_count": len(verdict.episodes),
        **_tested(verdict),
        "exceedances_observed_count": verdict.exceedances_observed,
        "exceedances_schedule_count": verdict.exceedances_schedule,
        "episodes": [
            {
                "begin_ns": e.begin_ns,
                "end_ns": e.end_ns,
                "first_s": e.first_second,
                "last_s": e.last_second,
                "worst_ns": e.worst_ns,
                "threads": list(e.threads),
            }
            for e in verdict.episodes
        ],
    }


def _tested(verdict: Verdict) -> Json:
    return {
        "alpha_ratio": verdict.alpha,
        "mixing_ratio": None if verdict.tau is None else MIXING,
        "tau": verdict.tau,
        "live_ns": verdict.live_ns,
        "log_e_proven": verdict.log_e_proven,
        "log_e_refuted": verdict.log_e_refuted,
        "rate_low_per_s": verdict.rate_low,
        "rate_high_per_s": verdict.rate_high,
        "rate_high_fixed_per_s": verdict.rate_high_fixed,
        "decided_at_ns": verdict.decided_at_ns,
        "decided_with_count": verdict.decided_with,
        "kind": verdict.kind,
        "proven_at_ns": verdict.proven_at_ns,
        "proven_with_count": verdict.proven_with,
        "assumption": verdict_sentences.assumption_of_verdict(verdict),
        "bunches_bound_ratio": verdict.bunches_bound,
        "bunched": verdict.bunched,
        "withheld": verdict.withheld,
        "longest_seen_ns": verdict.longest_seen_ns,
        "late_seconds_count": verdict.late_seconds,
        "refuted_at_latest_ns": verdict.refuted_at_latest_ns,
        "needed_ns": verdict.needed_ns,
        "more_ns": verdict.more_ns,
        "needed_with_one_more_ns": verdict.needed_with_one_more_ns,
        "more_with_one_more_ns": verdict.more_with_one_more_ns,
        "chance_ratio": verdict.chance,
        "chance_with_one_more_ratio": verdict.chance_with_one_more,
    }


def requirement_dict(requirement: Requirement) -> Json:
    """Return a requirement as plain data; longest_ns is None where no longest length was fixed."""
    return {
        "limit_ns": requirement.limit_ns,
        "at_most_ns": requirement.at_most_ns,
        "confidence_ratio": requirement.confidence,
        "gap_ns": requirement.gap_ns,
        "longest_ns": None if requirement.longest_ns == NO_LONGEST else requirement.longest_ns,
        "bunches_count": requirement.bunches,
    }


def _forecast(analysis: Analysis) -> Json | None:
    limits = tuple(verdict.requirement.limit_ns for verdict in analysis.verdicts if verdict.requirement)
    return forecast_dict(analysis.forecast, limits) if analysis.forecast else None


def _doubt(doubt: Doubt) -> Json:
    return {"code": doubt.code, "severity": doubt.severity.value, "what": doubt.what, "remedy": doubt.remedy}


def _objection(objection: Objection) -> Json:
    return {"code": objection.code, "what": objection.what, "doubt": objection.doubt}


def _series(series: Series) -> Json:
    return {
        "id": series.id,
        "thread": series.thread,
        "cpu": series.cpu if series.cpu >= 0 else None,
        "on_grid": series.on_grid,
        "external": series.external,
        "loop": series.loop,
        "has_samples": series.has_samples,
        "period_ns": series.period_ns,
        "first_due_ns": series.first_due_ns,
        "probe": series.probe,
        "method": series.method,
        "field": series.field,
        "unit": series.unit,
    }


def _summary(summary: Summary, shares: tuple[float, ...]) -> Json:
    unit = summary.series.unit
    return {
        "threads": list(summary.threads),
        "exact": summary.exact,
        "expected_count": summary.due,
        "obtained_count": summary.obtained,
        "missed_count": summary.never_ran,
        "stalled_count": summary.stalled,
        "stalled_least_ns": summary.stalled_ns if summary.stalled else None,
        "lost_count": summary.lost,
        "unbinned_count": summary.unbinned,
        "span_ns": summary.span_ns,
        "observed": _view(summary, View.OBSERVED, shares),
        "schedule": _view(summary, View.CHARGED, shares),
        "spread": _spread(summary, unit),
        "lag": {
            "pairs_count": summary.lag.pairs,
            "correlation_ratio": moments.lag_correlation(summary.lag, summary.observed),
            "catch_up_pairs_count": summary.lag.catch_up_pairs,
        },
        "top": _top(summary, unit),
    }


def _view(summary: Summary, view: View, shares: tuple[float, ...]) -> Json:
    return _values(moments_and_counts_of_view(summary, view)[1], summary.series.unit, quantiles(summary, view, shares))


def _values(moments: Moments, unit: str, wanted: tuple[Quantile, ...]) -> Json:
    return {
        **moments_dict(moments, unit),
        "quantiles": [_quantile(quantile, unit) for quantile in wanted],
    }


def _switch(switch: Switch, unit: str, shares: tuple[float, ...]) -> Json:
    wanted = tuple(quantile(switch.counts, share, ends=switch.moments) for share in shares)
    return {
        "earlier": switch.earlier,
        "later": switch.later,
        **_values(switch.moments, unit, wanted),
        "backwards_count": switch.backwards,
        "unpaired_count": switch.unpaired,
    }


def _level(each: LevelClusters) -> Json:
    level, unit = each.level, each.series.unit
    return {
        "thread": each.series.thread,
        f"value_{unit}": level.value,
        "learned": level.learned,
        "share_above_ratio": level.share if level.learned else None,
        "taught_count": level.taught,
        "since_ns": level.since_ns,
        "seconds_count": each.seconds,
        "above_observed_count": each.ran,
        "above_schedule_count": each.ran + each.missed,
        "seconds_above_count": each.hit,
        "cluster_size_mean": each.size,
        "dispersion_ratio": each.dispersion,
        "listed_count": level.index.size,
        "list_ended": level.list_ended,
    }


def _trace(record: Record) -> Json:
    found = trace_summary(record)
    return {
        "clock": found.clock,
        "kinds": [{"event": event, "events_count": n} for event, n in found.kinds.items()],
        "missing": list(found.missing),
        "recorded_count": found.entries,
        "overwritten_count": found.overrun,
        "dropped_count": found.dropped,
        "on_ns": found.on_ns,
        "off_ns": found.off_ns,
        "oldest_ns": found.oldest_ns,
        "newest_ns": found.newest_ns,
        "whole_from_ns": found.whole_from_ns,
    }


def _observer(found: TracingEffects) -> Json:
    return {
        "block_ns": found.block_ns,
        "left_out_ns": found.left_out_ns,
        "blocks_count": found.blocks,
        "sets_count": found.sets,
        "confidence_ratio": OBSERVER_CONFIDENCE,
        "method": EFFECT_METHOD,
        "refused": found.refused or None,
        "fields": [
            {"field": one.field, "effects": [_effect(effect, one.unit) for effect in one.effects]}
            for one in found.fields
        ],
    }


def _effect(effect: TracingEffect, unit: str) -> Json:
    return {
        "statistic": effect.statistic,
        f"without_{unit}": effect.without,
        f"with_{unit}": effect.with_trace,
        f"difference_{unit}": effect.difference,
        f"low_{unit}": effect.low,
        f"high_{unit}": effect.high,
    }


def _quantile(quantile: Quantile, unit: str) -> Json:
    return {
        "share_ratio": quantile.p,
        "values_count": quantile.n,
        f"value_{unit}": quantile.value,
        f"low_{unit}": quantile.low,
        f"high_{unit}": quantile.high,
        "confidence_ratio": quantile.confidence,
        "effective_count": quantile.effective,
        "dependence": quantile.dependence.value,
        f"resolution_{unit}": quantile.resolution,
    }


def _spread(summary: Summary, unit: str) -> Json:
    found = offset_and_spread(summary)
    return {
        f"offset_{unit}": found.offset,
        f"jitter_{unit}": found.jitter,
        f"peak_to_peak_{unit}": found.peak_to_peak,
        f"deviation_{unit}": found.deviation,
        "drift_ppm": found.drift_ppm,
    }


def _top(summary: Summary, unit: str) -> list[Json]:
    top = summary.top
    ids = [summary.series.id] * top.value.size if top.series is None else top.series.tolist()
    columns = zip(ids, top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)
    return [
        {"series": series, "index": index, "due_ns": due_ns, f"value_{unit}": value}
        for series, index, due_ns, value in columns
    ]
