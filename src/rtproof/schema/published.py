# SPDX-License-Identifier: Apache-2.0
"""The published keys of every result, one table for each object, and the functions that write a result with them.

docs/json-schema.md is made of these tables by ``python tools/json_schema.py``. Raise the version of a document when the
meaning of a key changes or a key goes away.
"""

import math
from collections.abc import Iterable, Sequence

from rtproof.audit.check import Audit, Change, CheckResult, Effect, Measured, Outcome, Severity
from rtproof.audit.facts import Reading
from rtproof.audit.setup_list import PresetResult, SettingResult
from rtproof.compare import comparison_model, history
from rtproof.compare.effects import SHARE
from rtproof.compare.run_metrics import QUANTILES, RunFigures
from rtproof.explain import coincidence
from rtproof.explain.budget import BudgetPart, TimeBudget
from rtproof.explain.causes import Advice, NamedCause
from rtproof.explain.explanation import CauseRow, CommonPath, Explanation, TraceWindows
from rtproof.explain.machine_gone_counts import Counted, CountedGap, MachineCounts
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Episode, Verdict, several_stages, shares_of
from rtproof.judge.episodes import LevelClusters, level_clusters
from rtproof.judge.histogram_only import impossible_figures
from rtproof.judge.planning import LengthPlan, NeededLength
from rtproof.record.contents import Record, Series, View
from rtproof.record.requirement import Requirement
from rtproof.schema.encoder import ITSELF, Json, Key, Scope, by_model, document, encode, row, table
from rtproof.statistics import MIXING
from rtproof.summary import loops, moments, quantiles, tracing_effect
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.kernel_trace import RecorderWindows, TraceSummary, has_trace, trace_summary
from rtproof.summary.measured_kernel import PreemptionModel, PreemptionStatement, core_beside, preemption_model
from rtproof.summary.recorded_facts import virtual_time_clock
from rtproof.summary.summary_model import Cycles, Doubt, Moments, Quantile, Stall, Summary, Switch
from rtproof.summary.system_facts import SystemFact, system_facts
from rtproof.summary.two_board_edges import BoardEdges, EdgeTimes
from rtproof.tail.forecast import FORECAST_CONFIDENCE, Forecast, ForecastRefusal, forecast_lines
from rtproof.tail.stationarity import Stationarity
from rtproof.tail.thresholds import ThresholdFit, TopTest

ANALYSIS_SCHEMA, ANALYSIS_VERSION = "rtproof.analysis", 8

MANY = ("config ", "module ")
"""How the facts begin that no run is published with: the options and modules of the kernel are thousands."""


Share = float | None
SENTENCE = row(
    tuple[str, str],
    "sentence",
    label="what the line is about; an empty label carries on the line before",
    text="the sentence",
)


# Summaries of values.


VIEW = table(
    tuple[Moments, tuple[Quantile, ...]], "*moments=0 quantiles=1", "view", quantiles="one for each share, ascending"
)


LAG = table(
    Summary,
    "pairs_count=lag.pairs correlation_ratio catch_up_pairs_count=lag.catch_up_pairs",
    "lag",
    correlation_ratio=Key("of neighbours", lambda it: moments.lag_correlation(it.lag, it.observed), gives=Share),
)
TOP = row(
    tuple[int, int, int, int],
    "largest value",
    series="the `id` of its series",
    index="the number of the activation",
    due_ns="its due time",
    value_UNIT="the value",
)


def _observed(summary: Summary, scope: Scope) -> tuple[Moments, tuple[Quantile, ...]]:
    """The activations that ran."""
    return _view(summary, View.OBSERVED, scope)


def _schedule(summary: Summary, scope: Scope) -> tuple[Moments, tuple[Quantile, ...]]:
    """All activations that were due: the missed ones too, each with its lateness."""
    return _view(summary, View.CHARGED, scope)


def _view(summary: Summary, view: View, scope: Scope) -> tuple[Moments, tuple[Quantile, ...]]:
    return quantiles.moments_and_counts_of_view(summary, view)[1], quantiles.quantiles(summary, view, scope.shares)


def _top(summary: Summary) -> list[tuple[int, int, int, int]]:
    """The largest values, largest first."""
    top = summary.top
    ids = [summary.series.id] * top.value.size if top.series is None else top.series.tolist()
    return list(zip(ids, top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True))


SUMMARY = table(
    Summary,
    "threads exact expected_count=due obtained_count missed_count=never_ran stalled_count stalled_least_ns lost_count "
    "unbinned_count span_ns observed schedule spread lag top",
    "",
    "series.unit",
    stalled_count="those of the missed at the end, when a thread never ran again",
    stalled_least_ns=Key(
        "how late the first of the stalled was at least; `null`: none",
        lambda it: it.stalled_ns if it.stalled else None,
        gives=int | None,
    ),
    observed=Key(scoped=_observed, shape=VIEW),
    schedule=Key(scoped=_schedule, shape=VIEW),
    spread=quantiles.offset_and_spread,
    lag=Key("how neighbours depend on each other", ITSELF, shape=LAG),
    top=Key(source=_top, each=TOP),
)
THREAD = table(Summary, "series *summary", "thread", summary=Key(source=ITSELF))
STAGE = table(
    Summary, "field=series.field *summary", "stage", field="which field the summary is of", summary=Key(source=ITSELF)
)


def _switch_values(switch: Switch, scope: Scope) -> tuple[Moments, tuple[Quantile, ...]]:
    return switch.moments, tuple(
        quantiles.quantile(switch.counts, share, ends=switch.moments) for share in scope.shares
    )


# Loops, the trace, and what tracing adds.


def _band_ratio(cycles: Cycles) -> float | None:
    """How far the band goes to both sides of the period; None if farther to one side."""
    above, below = cycles.high_ns - cycles.period_ns, cycles.period_ns - cycles.low_ns
    return above / cycles.period_ns if cycles.period_ns and above == below else None


APP_THREAD = table(tuple[int, loops.ApplicationLoops], "thread=0 *loops=1", "app of a thread", thread="the thread")
App = tuple[loops.ApplicationLoops, tuple[tuple[int, loops.ApplicationLoops], ...]]


APP = table(App, "*loops=0 threads=1", "app", lambda _: "ns", threads=Key("the same of each thread", each=APP_THREAD))


def application_loops(analysis: Analysis) -> App | None:
    """The loops of a periodic application (probe ``app``), else None; None without samples."""
    if analysis.run_record is None or not loops.is_app(analysis.record) or not loops.has_samples(analysis.record):
        return None
    threads = loops.loops_of_threads(analysis.record)
    return loops.loops_of_all_threads(threads.values()), tuple(threads.items())


EVENT = row(tuple[str, int], "kind of event", event="the event's name", events_count="how many are left")


# The record and the system.


# The verdict.


REQUIREMENT = table(
    Requirement,
    "limit_ns at_most_ns? confidence_ratio gap_ns longest_ns=fixed_longest_ns bunches_count shows_ns",
    at_most_ns="episodes come at most once per this time; `null`, as `gap_ns`, `longest_ns` and `bunches_count`: the "
    "limit is never to be exceeded",
    gap_ns=Key(
        "exceedances no further apart are one episode", lambda it: None if it.plain else it.gap_ns, gives=int | None
    ),
    longest_ns="no episode lasts longer; `null`, too: none was fixed, before schema 3 of `run.json`",
    bunches_count=Key(
        "episodes that a bunch may bring on average", lambda it: None if it.plain else it.bunches, gives=Share
    ),
)


# The forecast.


RATE_ABOVE = row(
    tuple[int, float],
    "rate above a limit",
    limit_ns="the limit",
    rate_high_per_s="upper limit of the rate above it, at `confidence_ratio`",
)
Rung = tuple[ThresholdFit, float, bool]
RUNG = table(
    Rung,
    "values_count=0.k threshold_ns=0.excesses.threshold shape=0.fit.xi scale_ns=0.fit.sigma anderson_darling=0.a2 "
    "p_ratio=0.p limit_ns=1 used=2",
    "fit of the tail",
    limit_ns="of this fit alone; `null`: infinite",
    used="whether it holds and no lower one fails, so that its limit counts",
)


def _rates_above(found: Forecast, scope: Scope) -> list[tuple[int, float]]:
    """For each limit above all that was measured, unless refused."""
    rates = ((level, found.rate_above(level)) for level in scope.limits_ns)
    return [(level, rate) for level, rate in rates if rate is not None]


def _ladder(found: Forecast) -> list[Rung]:
    """Fits of the tail, from the fewest values to the most."""
    if not found.ladder:
        return []
    share, used = found.unit_ns / found.horizon_ns, found.ladder.used
    return [(rung, rung.limit(share), rung in used) for rung in found.ladder.rungs]


# The whole analysis.


def _trace(analysis: Analysis) -> TraceSummary | None:
    """What the kernel's trace holds (`--trace`), else None."""
    return trace_summary(analysis.record) if analysis.run_record and has_trace(analysis.record) else None


# Plans of a run's length.


PLAN = table(
    Sequence[LengthPlan],
    "schema version limits",
    "plan",
    **document("rtproof.plan", 4),
    limits=Key("one for each limit", ITSELF),
)


def plan_dict(plans: Sequence[LengthPlan]) -> Json:
    """Return the plans as plain data."""
    return encode(plans, PLAN, Scope(tables=MODELS))


# A comparison of runs.


RUN_QUANTILE = row(
    tuple[float, float | None],
    "quantile of a run",
    share_ratio="the share of values that are not larger",
    value_UNIT="nearest rank, the upper end of its bin; `null`: n is too small",
)


Side = tuple[comparison_model.ComparisonSide, str]


SIDE = table(
    Side,
    "name=0.name runs=0.runs values_count overflow_count what=1",
    "side",
    values_count=Key("the number of values of all runs", lambda it: sum(run.n for run in it[0].runs), gives=int),
    overflow_count=Key(
        "values beyond the scale of a histogram", lambda it: sum(run.overflow for run in it[0].runs), gives=int
    ),
    what="what the user compares",
)


ComparisonDocument = tuple[comparison_model.Comparison, tuple[str, ...], str, tuple[str, ...]]


COMMAND = Key("as typed", or_null=True)
NOT_READ = "sentences on files that could not be read"
COMPARISON = table(
    ComparisonDocument,
    "schema version finding=0.finding turns=0.turns sentences=0.sentences sides metrics=0.effects "
    "impossible=0.impossible levels_UNIT=0.levels order=0.order differences=0.differences "
    "left_out=0.left_out command=2 not_read=3",
    "comparison",
    "0.unit",
    **document("rtproof.comparison", 4),
    sentences=Key(each=SENTENCE),
    sides=Key("of A, then of B", lambda it: list(zip((it[0].a, it[0].b), it[1], strict=True)), each=SIDE, gives=list),
    command=COMMAND,
    not_read=NOT_READ,
)
RunsDocument = tuple[str, tuple[RunFigures, ...], str, tuple[str, ...]]
RUNS = table(
    RunsDocument,
    "schema version what=0 runs=1 command=2 not_read=3",
    "runs",
    **document("rtproof.runs", 2),
    what="what the runs are of",
    runs="one for each run",
    command=COMMAND,
    not_read=NOT_READ,
)


def comparison_dict(
    said: comparison_model.Comparison, what: Iterable[str] = ("", ""), command: str = "", not_read: Iterable[str] = ()
) -> Json:
    """Return the comparison as plain data. A number that the runs do not allow is None.

    what: what each side is. not_read: sentences on files that could not be read.
    """
    return encode((said, tuple(what), command, tuple(not_read)), COMPARISON, Scope(tables=MODELS))


def runs_dict(runs: Iterable[RunFigures], what: str, command: str, not_read: Iterable[str]) -> Json:
    """Return runs of the same thing as plain data."""
    return encode((what, tuple(runs), command, tuple(not_read)), RUNS, Scope(tables=MODELS))


# A history of runs.


HistoryDocument = tuple[history.RunHistory, str, tuple[str, ...]]
ConditionRow = tuple[history.FactChange, RunFigures]


CONDITION = table(
    ConditionRow,
    "condition=0.key before=0.before after=0.after run=1.name started_ns=1.started_ns",
    "condition change",
    run="the first run with the new text",
)
HISTORY_RUN = table(RunFigures, "name started_ns values_count=n core", "run of a history")
HISTORY = table(
    HistoryDocument,
    "schema version command=1 fewest_runs sequences=0.sequences conditions order=0.order left_out=0.left_out "
    "not_read=2",
    "history",
    **document("rtproof.history", 3),
    command="as typed",
    fewest_runs=Key("no change is looked for in fewer", fixed=history.FEWEST),
    conditions=Key(
        "what changed between runs of all sequences, in order",
        lambda it: [(change, it[0].every[change.at]) for change in it[0].conditions],
        each=CONDITION,
        gives=list,
    ),
    not_read=NOT_READ,
)


def history_dict(found: history.RunHistory, command: str, not_read: Iterable[str]) -> Json:
    """Return a history as plain data. Runs count from 0 within their sequence."""
    return encode((found, command, tuple(not_read)), HISTORY, Scope(tables=MODELS))


# Why a run was late.


ExplanationDocument = tuple[Explanation, tracing_effect.TracingEffects | None, tuple[str, ...]]
BudgetAndGap = tuple[TimeBudget, CountedGap | None]


TORN_CPU = row(
    tuple[int, int],
    "CPU on which switches are missing",
    cpu="its number",
    windows_count="windows in which a switch has no event there",
)
BUDGET = table(
    BudgetAndGap,
    "thread=0.activation.thread tid=0.activation.tid index=0.activation.index due_ns=0.activation.due_ns "
    "latency_ns=0.activation.latency_ns woken_ns=0.woken_ns ran_ns=0.ran_ns whole=0.whole "
    "possible_firsts=0.possible_firsts counted=1 parts=0.parts",
    "budget",
    counted="where the machine may have been gone, what was counted, or `null`",
)
EXPLANATION = table(
    ExplanationDocument,
    "schema version limit_ns=0.limit_ns late_count=0.late explained_count=0.budgets.# open_count=0.open_count "
    "outside_count=0.outside untraced_count=0.untraced left_out_count=0.left_out ordinary_count=0.ordinary.# "
    "counts_preemption=0.counts_preemption clock_error_ns=0.clock_error_ns blind recorder=0.recorder "
    "windows=0.windows causes=0.rows observer=1 exceeded=2 machine=0.machine budgets",
    "explanation",
    **document("rtproof.explanation", 1),
    explained_count="how many of them have a budget",
    ordinary_count="ordinary activations that were explained for comparison",
    blind=Key(
        "classes of events that the trace lacks",
        lambda it: [each.name.lower() for each in it[0].blind],
        gives=list[str],
    ),
    observer="what tracing adds, or `null`: not measured",
    exceeded="sentences on causes that came more often than `--explain-at-most` allows",
    budgets=Key(
        "of late activations, the largest latency first",
        lambda it: [
            (each, it[0].machine.gaps.get((each.activation.series, each.activation.index))) for each in it[0].budgets
        ],
        each=BUDGET,
        gives=list,
    ),
)
COINCIDENCES = table(
    tuple[coincidence.Coincidences, Record],
    "schema version limit_ns=0.limit_ns late_count=0.late late_seconds_count=0.late_seconds "
    "seconds_count=0.seconds looked_at_count=0.looked_at level_ratio method too_few?=0.too_few "
    "coincides=0.moved waited=0.waited waited_ratio=0.waited_share trace_refused",
    "coincidence",
    **document("rtproof.coincidence", 1),
    level_ratio=Key("the largest chance at which a count coincides", fixed=coincidence.COINCIDENCE_LEVEL),
    method=Key("of the chances", fixed=coincidence.COINCIDENCE_METHOD),
    trace_refused=Key("why there is no trace, or `null`", lambda it: it[1].fact("trace_refused"), gives=str | None),
)


def coincidences_dict(found: coincidence.Coincidences, record: Record) -> Json:
    """Return what coincides as plain data."""
    return encode((found, record), COINCIDENCES, Scope(tables=MODELS))


def explanation_dict(found: Explanation, record: Record, exceeded: tuple[str, ...] = ()) -> Json:
    """Return an explanation as plain data."""
    return encode((found, tracing_effect.tracing_effects(record), exceeded), EXPLANATION, Scope(tables=MODELS))


# What is wrong with a system.


AuditDocument = tuple[Audit, Severity, PresetResult | None]


AUDIT = table(
    AuditDocument,
    "schema version machine=0.machine kernel=0.kernel realtime_ns=0.realtime_ns purpose=0.purpose "
    "collected=0.collected notes=0.notes counts worst=0.worst.check.id fail_on=1 exit_code checks=0.results "
    "setup_list=2",
    "audit",
    **document("rtproof.audit", 2),
    counts=Key(
        "how many checks have each outcome",
        lambda it: {outcome.value: len(it[0].of(outcome)) for outcome in Outcome},
        gives=dict[str, int],
    ),
    worst="the id of the most severe finding",
    fail_on="the severity from which on a finding makes the exit code 1",
    exit_code=Key("of `rtproof audit`", lambda it: it[0].exit_code(it[1]), gives=int),
    setup_list="the setup list of an article beside the system (`--for article-1`); `null` without one",
)


def audit_dict(found: Audit, fail_on: Severity = Severity.HIGH, preset: PresetResult | None = None) -> Json:
    """Return the result of an audit as plain data. preset: the setup list of an article beside the system."""
    return encode((found, fail_on, preset), AUDIT, Scope(tables=MODELS))


PHASES = "A: until the thread was woken; B: until it ran; C: until the end"
BY_CHANCE = Key(interval=True)
PUBLISHED_AS_THEY_ARE = (
    *(Stall, PreemptionStatement, PreemptionModel, SystemFact, ForecastRefusal),
    comparison_model.ImpossibleComparison,
)
"""Models whose attributes have the names of the keys."""
MODELS = by_model(
    *map(table, PUBLISHED_AS_THEY_ARE),
    table(Moments, "values_count=count min_UNIT=smallest mean_UNIT max_UNIT=largest deviation_UNIT"),
    table(
        Quantile,
        "share_ratio=p values_count=n value_UNIT low_UNIT high_UNIT confidence_ratio effective_count dependence "
        "resolution_UNIT",
        low_UNIT=BY_CHANCE,
        high_UNIT=BY_CHANCE,
        confidence_ratio=BY_CHANCE,
        effective_count=BY_CHANCE,
        dependence=BY_CHANCE,
    ),
    table(quantiles.OffsetAndSpread, "offset_UNIT jitter_UNIT peak_to_peak_UNIT deviation_UNIT drift_ppm"),
    SUMMARY,
    table(
        Series,
        "id thread cpu=bound_cpu on_grid external loop has_samples period_ns first_due_ns probe method field unit",
    ),
    table(
        Switch, "earlier later *values backwards_count unpaired_count", values=Key(scoped=_switch_values, shape=VIEW)
    ),
    table(
        LevelClusters,
        "thread=series.thread value_UNIT=level.value learned=level.learned share_above_ratio taught_count=level.taught "
        "since_ns=level.since_ns seconds_count above_observed_count=ran above_schedule_count seconds_above_count=hit "
        "cluster_size_mean=size dispersion_ratio listed_count list_ended=level.list_ended",
        "",
        "series.unit",
    ),
    table(
        Cycles,
        "loops_count period_ns band_ratio low_ns high_ns ignored_count counted_count short_count long_count min_ns "
        "max_ns catch_up_pairs_count correlation_ratio most_out_of_band_ratio confidence_ratio stalls",
        band_ratio=_band_ratio,
        most_out_of_band_ratio=Key(
            "the largest share out of the band that the counted cycles leave possible, if no cycle depends on another",
            loops.most_cycles_out_of_band,
        ),
        confidence_ratio=Key(
            "of `most_out_of_band_ratio`; `null` in virtual time",
            lambda it: None if it.deterministic else loops.BAND_LEVEL,
            gives=Share,
        ),
    ),
    table(
        loops.ApplicationLoops,
        "work loop error slack no_sleep_count loops_sum_ns=loop.sum elapsed_ns holes_count=apart",
        loops_sum_ns="all loop times; the same as `elapsed_ns` where `holes_count` is 0",
    ),
    table(
        TraceSummary,
        "clock kinds=kinds.items missing recorded_count=entries overwritten_count=overrun dropped_count "
        "oldest_ns newest_ns whole_from_ns",
        kinds=Key("the most frequent first", each=EVENT),
    ),
    table(
        tracing_effect.TracingEffect, "statistic without_UNIT with_UNIT=with_trace difference_UNIT low_UNIT high_UNIT"
    ),
    table(
        tracing_effect.TracingEffects,
        "block_ns left_out_ns blocks_count sets_count confidence_ratio method refused? field effects",
        "",
        "unit",
        confidence_ratio=Key("of the intervals, all together", fixed=tracing_effect.EFFECT_CONFIDENCE),
        method=Key("of the intervals", fixed=tracing_effect.EFFECT_METHOD),
    ),
    table(
        Record,
        "path size_bytes format run_id=begin.run_id.hex origin_realtime_ns=begin.origin_realtime_ns "
        "agent_version=begin.agent_version machine=begin.machine kernel_release=begin.kernel_release "
        "kernel_version=begin.kernel_version virtual_time core preemption_model system end_reason "
        "damaged_parts_count=damage.#",
        format=Key("major.minor", lambda it: f"{it.begin.major}.{it.begin.minor}", gives=str),
        run_id="hexadecimal",
        virtual_time=Key(
            "what makes the clock count instructions, so that no figure is a board's time; `null` where the clock "
            "shows time",
            virtual_time_clock,
        ),
        core=Key("the co-kernel beside Linux, so that all figures are in-band; `null`: none was found", core_beside),
        preemption_model=Key("what the kernel can preempt", preemption_model),
        system=Key("what the target said of itself", system_facts),
        end_reason=Key(
            "`as_asked`, `interrupted`, `no_space`, `host_gone`, `load_died`, `guard`, `error`, or `null` if the "
            "record was cut off",
            lambda it: it.end.reason.name.lower() if it.end else None,
            gives=str | None,
        ),
        damaged_parts_count="parts of the file that cannot be read",
    ),
    REQUIREMENT,
    table(Episode, "begin_ns end_ns first_s=first_second last_s=last_second worst_ns threads"),
    table(
        Verdict,
        "state exit_code requirement reasons sentences measured_ns chosen_after deterministic "
        "episodes_count=episodes.# alpha_ratio mixing_ratio tau live_ns log_e_proven log_e_refuted rate_low_per_s "
        "rate_high_per_s rate_high_fixed_per_s decided_at_ns decided_with_count kind proven_at_ns proven_with_count "
        "assumption bunches_bound_ratio bunched withheld longest_seen_ns late_seconds_count refuted_at_latest_ns "
        "needed_ns more_ns needed_with_one_more_ns more_with_one_more_ns chance_ratio chance_with_one_more_ratio "
        "exceeded_count largest_ns shown_rate_per_s exceedances_observed_count exceedances_schedule_count episodes",
        sentences=Key(each=SENTENCE),
        episodes_count="N",
        mixing_ratio=Key(
            "the exponent a = 0.3 of both mixtures of bets", lambda it: None if it.tau is None else MIXING, gives=Share
        ),
        assumption=Key(
            "the sentence that PROVEN and REFUTED by rate rest on; `null` of what was seen",
            verdict_sentences.assumption_of_verdict,
        ),
        episodes="in order of time",
    ),
    table(
        Stationarity,
        "blocks_count block_ns dispersion_p_ratio level_ns lowest_count highest_count slow_change_p_ratio=slow.p",
    ),
    table(TopTest, "values_count=number p_ratio"),
    table(
        Forecast,
        "limit_ns horizon_ns confidence_ratio refusals warnings sentences measured_ns longest_rhythm_ns units_count "
        "unit_ns resolution_ns=step_ns rates_above stationarity top ladder",
        confidence_ratio=Key("how sure the limit is if the model holds", fixed=FORECAST_CONFIDENCE),
        sentences=Key(
            "what a verdict prints of it, line by line", lambda it: list(forecast_lines(it)), gives=list[str]
        ),
        unit_ns=Key("the time that each of them stands for", lambda it: round(it.unit_ns), gives=int),
        rates_above=Key(scoped=_rates_above, each=RATE_ABOVE),
        ladder=Key(source=_ladder, each=RUNG),
    ),
    table(Doubt, "code severity what remedy detail"),
    table(EdgeTimes, "name *moments", "", lambda _: "ns"),
    table(
        BoardEdges,
        "edges_count=given never_answered_ns=never_answered_ns.tolist times",
        never_answered_ns="when edges were given for whose answer the generator waited in vain",
    ),
    table(NeededLength, "episodes_count proven_after_ns more_ns refuted_until_ns"),
    table(LengthPlan, "*requirement alpha_ratio episodes_count measured_ns already needs"),
    table(
        RunFigures,
        "name run_id? core started_realtime_ns=started_ns booted_realtime_ns=booted_ns span_ns values_count=n "
        "overflow_count missed_count lost_count max_UNIT=largest quantiles second_maxima_UNIT=second_maxima.size facts",
        "",
        "unit",
        quantiles=Key(
            "one for each share",
            lambda it: [(share, it.quantile(share).size) for share in QUANTILES],
            each=RUN_QUANTILE,
            gives=list,
        ),
        second_maxima_UNIT="the geometric mean of the largest value of each second",
        facts=Key(
            "texts by key, without the options and modules of the kernel",
            lambda it: {key: text for key, text in it.facts.items() if not key.startswith(MANY)},
            gives=dict[str, str],
        ),
    ),
    table(comparison_model.RunTurns, "interleaved order? order_seed why_not?=why rhythm? unseen_rhythm?=unseen"),
    table(
        comparison_model.MetricEffect,
        "metric label a_UNIT b_UNIT a_runs_UNIT b_runs_UNIT a_to_b_ratio=ratio low_ratio high_ratio p_ratio "
        "p_holm_ratio method margin_ratio run_factor_ratio detectable_ratio finding notes",
        "",
        lambda it: "ratio" if it.unit == SHARE else it.unit,
    ),
    table(
        comparison_model.SideCrossing,
        "value_UNIT share_above_ratio=share after_UNIT=between.0 before_UNIT=between.1 a_lower_below",
        after_UNIT="it lies above this value",
        before_UNIT="it lies below this value",
    ),
    table(
        comparison_model.SideOrder,
        "lower surely_from_UNIT=surely.0 surely_to_UNIT=surely.1 crossings method",
        surely_from_UNIT="they surely differ from here on",
        surely_to_UNIT="and up to here",
    ),
    table(comparison_model.FactDifference, "key a b weight why? source? said"),
    table(comparison_model.LeftOutRun, "side? run why"),
    table(
        history.MetricHistory,
        "key label unit values run_factor_ratio visible_ratio why_not?=why correlation_ratio drift_ratio",
        values=Key(
            "in the order of the runs",
            lambda it: [None if ln is None else math.exp(ln) for ln in it.values],
            gives=list[float | None],
        ),
    ),
    table(
        history.FoundChange,
        "metric run=at first_run=runs.0 end_run=runs.1 before after ratio p",
        first_run="the first run of the stretch before the change",
        end_run="the run behind the stretch after the change",
    ),
    table(history.FactChange, "fact=key before after run=at on_both_sides=steady why? source?"),
    table(history.ChangePlace, "run=at metrics=found facts"),
    table(history.RunSequence, "name judged runs metrics changes=places", runs=Key(each=HISTORY_RUN)),
    table(
        RecorderWindows,
        "above_count kept_count lost_before_count=lost.before lost_queue_count=lost.queue "
        "lost_memory_count=lost.memory lost_gone_count=lost.gone lost_record_count=lost.record untold_count room_bytes",
        lost_before_count="how many came before the trace",
        lost_queue_count="how many came when too many waited",
        lost_memory_count="how many found its memory full of larger ones",
        lost_gone_count="how many had no events any more when the agent came to write them",
        lost_record_count="how many found no room in the record",
    ),
    table(
        TraceWindows,
        "windows_count=count whole_count lost_count untraced_count missing_switch_count=missing "
        "missing_switches=missing_on.items",
        missing_switches=Key("for each CPU that has any", each=TORN_CPU),
    ),
    table(NamedCause, "cause name? tid function? asked_by? words", cause="what it is, as `--explain-at-most` names it"),
    table(CommonPath, "functions share_ratio stacks_count"),
    table(Advice, "short sentence source"),
    table(
        CauseRow,
        "*cause words waits_for threads_count share_ratio total_ns late_count first_in_count open_in_count median_ns "
        "largest_ns typical_ns path advice",
    ),
    table(
        BudgetPart,
        "from_ns to_ns phase cpu *cause words waits_for stack waits_in",
        phase=Key(PHASES, lambda it: it.phase.name, gives=str),
    ),
    table(CountedGap, "cpu length_ns counted stolen_least_ns stolen_most_ns smis_count"),
    table(
        MachineCounts,
        "steal_read smi_read smi_why? stolen_most_ns activations",
        activations=Key(
            "how many with such a gap, by what the counts tell: as `counted` of a gap",
            lambda it: {each.value: it.tally[each] for each in Counted},
            gives=dict[str, int],
        ),
    ),
    table(coincidence.MovedCount, "name words unit late ordinary chance_ratio"),
    table(coincidence.WaitedForCpu, "thread late_ns waited_ns share_ratio"),
    table(Reading, "path value", "read value"),
    table(Change, "now? boot? build? application? firmware? risk?"),
    table(Effect, "text source"),
    table(Measured, "text command contradicts"),
    table(
        CheckResult,
        "id=check.id subject=check.subject title=check.title outcome severity sentence? read source=check.source "
        "why=check.why advice=check.advice change=check.change effect=check.effect measured=check.measured "
        "contradicted explains=check.explains since?=check.since until?=check.until",
    ),
    table(
        SettingResult,
        "asked=setting.asked said=setting.said where=setting.where outcome has? check?=setting.check "
        "check_outcome=check.outcome differs",
        check_outcome="what that check found",
    ),
    table(PresetResult, "title=preset.title article=preset.article settings"),
)


ANALYSIS = table(
    Analysis,
    "schema version record=run_record verdict verdicts forecast doubts threads=summaries pooled stages switches "
    "levels edges cycles app trace observer",
    "analysis",
    "pooled.series.unit",
    **document(ANALYSIS_SCHEMA, ANALYSIS_VERSION),
    threads=Key(each=THREAD),
    stages=Key(source=several_stages, each=STAGE),
    levels=Key(
        "what was above the limits that the agent was given and above learned levels, of each thread; `[]` in a "
        "record before 1.2",
        lambda it: level_clusters(it) if it.run_record else (),
        gives=tuple[LevelClusters, ...],
    ),
    app=Key(source=application_loops, shape=APP),
    trace=_trace,
    observer=Key(
        "what tracing itself adds (`--observer`), else `null`",
        lambda it: tracing_effect.tracing_effects(it.record) if it.run_record else None,
        gives=tracing_effect.TracingEffects | None,
    ),
)


def analysis_dict(analysis: Analysis, shares: tuple[float, ...] | None = None) -> Json:
    """Return the analysis as plain data. A number that n does not allow is None.

    shares: the quantiles to give, from 0 to 1; by default the usual quantiles and those the analysis was asked for.
    """
    limits = tuple(verdict.requirement.limit_ns for verdict in analysis.verdicts if verdict.requirement)
    wanted = shares_of(analysis) if shares is None else shares
    virtual = analysis.virtual_clock is not None
    whole = encode(analysis, ANALYSIS, Scope("ns", wanted, limits, virtual, MODELS))
    return _without_time(whole, analysis, analysis.imported) if analysis.imported else whole


# The same of another tool's histogram: what needs time is null, and some keys more tell what only the tool tells.


IMPOSSIBLE_FIGURE = row(tuple[str, str], "impossible figure", statement="what cannot be said", why="why not")
IMPORTED = table(
    ImportedHistogram,
    "tool title resolution_ns beyond_scale_count=overflow duration_ns period_ns=shortest_period_ns lines_count "
    "impossible",
    "imported",
    beyond_scale_count="samples beyond the scale of the histogram. They are counted but are in no bin",
    lines_count=Key(
        "lines with the figures of one stretch of time each",
        lambda it: sum(each.most_ns.size for each in it.lines),
        gives=int,
    ),
    impossible=Key("what needs more than a histogram", impossible_figures, each=IMPOSSIBLE_FIGURE),
)
COUNTED_ABOVE = table(
    Verdict,
    "above_least_count=above.least above_most_count=above.most share_low_ratio=above.share_low "
    "share_high_ratio=above.share_high",
    "counted above",
)
NEED_TIME = (
    *("expected_count", "missed_count", "stalled_count", "stalled_least_ns", "lost_count", "unbinned_count", "span_ns"),
    *("schedule", "spread", "lag", "top"),
)
"""The keys of a summary that need the time of a value, or the activations that never ran."""


def _without_time(whole: Json, analysis: Analysis, imported: ImportedHistogram) -> Json:
    parts = {part.number: part for part in imported.parts}
    first, several = analysis.verdict, analysis.verdicts
    return whole | {
        "verdict": _untimed_verdict(whole["verdict"], first),
        "verdicts": [_untimed_verdict(each, said) for each, said in zip(whole["verdicts"], several, strict=True)],
        "threads": [
            {"series": _untold(each["series"]), **_counted(each, parts[each["series"]["thread"]])}
            for each in whole["threads"]
        ],
        "pooled": _counted(whole["pooled"], imported),
        "imported": encode(imported, IMPORTED),
    }


def _untimed_verdict(told: Json, verdict: Verdict) -> Json:
    if not verdict.untimed:
        return told
    return told | {"episodes_count": None, "episodes": None} | encode(verdict, COUNTED_ABOVE)


def _untold(series: Json) -> Json:
    """Return a thread's series with None for what another tool does not tell."""
    unknown = dict.fromkeys(("on_grid", "external", "loop", "first_due_ns", "method"))
    return series | unknown | {"period_ns": series["period_ns"] or None}


def _counted(summary: Json, told: PrintedFigures) -> Json:
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
    return figures | dict.fromkeys(NEED_TIME) | {"obtained_count": told.count, "observed": printed}
