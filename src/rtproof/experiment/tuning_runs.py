# SPDX-License-Identifier: Apache-2.0
"""Tune a target: find its knobs, measure with them on and off, and leave everything as it was.

The agent restores its settings when a run ends, however it ends. So there is nothing to restore between the runs, and
nothing that this host could forget.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from rtproof.audit.audit_model import Audit
from rtproof.audit.check import Outcome
from rtproof.compare.run_metrics import RunFigures, figures_of
from rtproof.core.errors import AGENT_SAYS, TargetError, UserError
from rtproof.core.phrases import duration, quantity
from rtproof.core.units import format_cpus, parse_cpus
from rtproof.experiment import audited_system, stored_runs
from rtproof.experiment.run_request import ExperimentRequest
from rtproof.experiment.run_sets import RUNS_FOLDER
from rtproof.experiment.target_runner import Cell, CellEnd, agent_of, run_cells
from rtproof.record.contents import Record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.targets import Target
from rtproof.tune import tuning
from rtproof.tune.knobs import Knob, KnobOnTarget, TunedCpus, settings_of
from rtproof.tune.tuning import Metrics, Plan, Tuning

MAXIMA, TAIL, MEDIAN, ABOVE, WORK = (
    "maximum of a second",
    "99.9 %",
    "median",
    "share above the limit",
    "work of the loads",
)
START_NS = 1_500_000_000
"""What a run takes beside its warm-up and its length, until runs have shown it."""
REWRITERS = ("svc.tuners", "iso.irqbalance")
"""Checks of the audit that find programs which write the same settings again and again."""
SHORTEST_NS, LONGEST_NS = 2_000_000_000, 20_000_000_000


@dataclass(frozen=True)
class TuningRequest:
    """What the user asks for. arguments: the agent's, without a length. cpus: measured; None: all but the first.

    run_ns: how long each run measures; None: as the budget allows. limit_ns: whose exceedances are counted, or None.
    """

    knobs: tuple[Knob, ...]
    arguments: tuple[str, ...]
    budget_ns: int
    warmup_ns: int
    run_ns: int | None = None
    cpus: tuple[int, ...] | None = None
    limit_ns: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class TunedTarget:
    """What was found before the first run. knobs: all that were asked for. rewriters: what would fight the tuning."""

    cpus: TunedCpus
    knobs: tuple[KnobOnTarget, ...]
    rewriters: tuple[str, ...]


def look_at(target: Target, own: ExperimentRequest, asked: TuningRequest, folder: Path) -> TunedTarget:
    """Collect the facts, and try each knob once. UserError or TargetError says why there are none."""
    agent = own.agent or agent_of(target)
    file = folder / "facts.rtrec"
    audited_system.collect_on(target, agent, file)
    record = audited_system.read_facts(file)
    cpus = _cpus_of(record, asked.cpus)
    audit = audited_system.audit_of(record, "default")
    knobs = []
    for number, knob in enumerate(asked.knobs, 1):
        click.echo(f"\r[{number}/{len(asked.knobs)}] trying {knob.name:20}", err=True, nl=False)
        knobs.append(_tried(target, agent, knob, cpus))
    click.echo("\r" + " " * 50 + "\r", err=True, nl=False)
    return TunedTarget(cpus, tuple(knobs), rewriters_of(audit))


def _cpus_of(record: Record, asked: tuple[int, ...] | None) -> TunedCpus:
    facts = {file.path: file.content.decode(errors="replace").strip() for file in record.files}
    online = parse_cpus(facts.get("/sys/devices/system/cpu/online") or "0")
    measured = asked or online[1:] or online
    if missing := sorted(set(measured) - set(online)):
        raise UserError(f"--cpus: the target has no CPU {format_cpus(missing)}: it has {format_cpus(online)}")
    siblings: set[int] = set()
    for cpu in measured:
        siblings |= set(
            parse_cpus(facts.get(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu))
        )
    siblings -= {*measured, 0}
    return TunedCpus(measured, tuple(cpu for cpu in online if cpu not in measured), tuple(sorted(siblings)))


def rewriters_of(audit: Audit) -> tuple[str, ...]:
    """The sentences of the audit on programs that rewrite settings."""
    return tuple(
        each.sentence for each in audit.results if each.check.id in REWRITERS and each.outcome is Outcome.FINDING
    )


def agent_lines(target: Target, words: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code of an agent's command, and its lines."""
    process = target.start(words)
    lines = list(process.lines())
    return process.wait(), lines


def _tried(target: Target, agent: Path, knob: Knob, cpus: TunedCpus) -> KnobOnTarget:
    """The knob with those of its settings that work. A setting is restored before the next one is tried."""
    if knob.agent:
        return KnobOnTarget(knob, note="held while a run lasts")
    settings, missing = settings_of(knob, cpus)
    if missing:
        return KnobOnTarget(knob, missing=missing)
    trials = [settings] if knob.whole else [(each,) for each in settings]
    works: list[str] = []
    notes: list[str] = []
    reasons: list[str] = []
    before = ""
    for trial in trials:
        words = (target.push(agent), "try", *(word for each in trial for word in ("--set", each)))
        code, lines = agent_lines(target, words)
        rows = [line.split("\t") for line in lines if line.startswith("setting\t")]
        if code:
            reasons.append(lines[-1].removeprefix(AGENT_SAYS) if lines else f"the agent ended with exit code {code}")
        elif all(row[5].startswith("0 set") for row in rows if row[5]) and not knob.whole:
            reasons.append("it is set like this already")
        else:
            works += trial
            notes += [row[5] for row in rows if row[5]]
            before = before or next((row[3] for row in rows if row[3]), "")
    missing = "" if works else _in_short(reasons[0])
    return KnobOnTarget(knob, tuple(works), before, "; ".join(dict.fromkeys(notes)), missing)


def _in_short(reason: str) -> str:
    """The agent's refusal without the value that was tried and without what is restored."""
    said = reason.removesuffix("; all settings are as before")
    return "not here" if "No such file" in said or "No such device" in said else said


def planned(found: TunedTarget, asked: TuningRequest) -> tuple[Plan, int]:
    """The plan, and how long each run measures in ns. UserError if the budget is too short for one knob."""
    able = [each for each in found.knobs if not each.missing]
    if not able:
        raise UserError("this target has no knob that can be tried: see the reasons above")
    able.sort(key=lambda each: each.knob.late)
    names = [each.knob.name for each in able]
    for run_ns in (asked.run_ns,) if asked.run_ns else range(LONGEST_NS, SHORTEST_NS - 1, -1_000_000_000):
        runs = asked.budget_ns // (run_ns + asked.warmup_ns + START_NS)
        plan = tuning.plan(names, int(runs))
        if plan and (not plan.left_out or run_ns in (asked.run_ns, SHORTEST_NS)):
            return plan, run_ns
    if plan:
        return plan, run_ns
    raise UserError(
        f"a budget of {duration(asked.budget_ns)} is too short to try one knob: give --budget a longer time"
    )


def measure_tuning(
    target: Target, own: ExperimentRequest, asked: TuningRequest, found: TunedTarget, folder: Path
) -> Tuning:
    """Measure and decide. The runs stay in the folder."""
    plan, run_ns = planned(found, asked)
    ends_s = time.monotonic() + asked.budget_ns / 1e9
    by_name = {each.knob.name: each for each in found.knobs}
    takes_s = (run_ns + asked.warmup_ns + START_NS) / 1e9
    runs = 0
    interrupted = False

    def measure(on: frozenset[str]) -> Metrics | None:
        nonlocal takes_s, runs, interrupted
        began_s = time.monotonic()
        if interrupted or began_s + takes_s > ends_s:
            raise tuning.OutOfTimeError
        runs += 1
        cell = _cell(folder, runs, [by_name[name] for name in sorted(on)], asked, found.cpus, run_ns, ends_s - began_s)
        ended, interrupted = next(iter(run_cells(target, own, [cell])))
        takes_s = max(0.9 * takes_s, time.monotonic() - began_s)
        return _metrics_of(ended, cell.folder, asked.limit_ns)

    (folder / RUNS_FOLDER).mkdir(parents=True, exist_ok=True)
    result = tuning.tune(plan, MAXIMA, measure, asked.seed, _say)
    if interrupted:
        result.unfinished = "the user ended it"
    return result


def _say(stage: str, found: Tuning) -> None:
    plan = found.plan
    if stage == "pilot":
        click.echo(f"{quantity(plan.runs, 'run')} of {quantity(len(plan.knobs), 'knob')}", err=True)
    elif ratios := found.detectable_ratios():
        if stage == "screening":
            said = f"it can find a knob that lowers the {found.metric} by {_less(ratios[1])} or more"
            click.echo(f"runs of the untouched system differ by a factor of {_factor(found)}; {said}", err=True)


def _less(ratio: float) -> str:
    return f"{100 * (1 - 1 / ratio):.0f} %"


def _factor(found: Tuning) -> str:
    return f"{math.exp(found.deviation or 0):.2f}"


def _cell(  # noqa: PLR0913 - what a run is made of
    folder: Path,
    number: int,
    on: Sequence[KnobOnTarget],
    asked: TuningRequest,
    cpus: TunedCpus,
    run_ns: int,
    left_s: float,
) -> Cell:
    words = [word for each in on for one in each.settings for word in ("--set", one)]
    held = [word for each in on for word in each.knob.agent] or ["--dma-latency", "off"]
    name = f"{number:04}"
    arguments = (
        *asked.arguments,
        *("--cpus", format_cpus(cpus.measured), "--duration", f"{run_ns}ns", "--record", "summary"),
        *held,
        *words,
    )
    note = ", ".join(each.knob.name for each in on) or "untouched"
    left = duration(int(max(left_s, 0) * 1e9))
    return Cell(name, folder / RUNS_FOLDER / name, (("", arguments),), f"[{name}] {left} left: {note}", "", note)


def _metrics_of(ended: CellEnd, folder: Path, limit_ns: int | None) -> Metrics | None:
    """The metrics of a run; None if nothing was measured, or not what was asked."""
    if ended.way is None or ended.failure or not (folder / RECORD_NAME).exists():
        return None
    try:
        read = stored_runs.read_run(folder, workers=1)
        figures = figures_of(read.analysis)
    except (UserError, TargetError):
        return None
    return None if figures.invalid else metrics_of_figures(figures, read.analysis.record, limit_ns)


def metrics_of_figures(figures: RunFigures, record: Record, limit_ns: int | None) -> Metrics | None:
    """The logarithms of what a tuning compares; None without a maximum of a second."""
    found = {MAXIMA: figures.second_maxima.ln, TAIL: figures.quantile(0.999).ln, MEDIAN: figures.quantile(0.5).ln}
    if limit_ns is not None:
        found[ABOVE] = figures.share_above(limit_ns).ln
    work = [
        int(each.value[-1] - each.value[0])
        for each in record.counters
        if each.grows and each.name.startswith("load.") and each.value.size > 1
    ]
    if work and min(work) > 0:
        found[WORK] = sum(map(math.log, work)) / len(work)
    return {name: ln for name, ln in found.items() if ln is not None} if found[MAXIMA] is not None else None


def undo(target: Target, agent: Path | None) -> int:
    """Restore on a target what killed runs left; print what the agent says. Its exit code."""
    code, lines = agent_lines(target, (target.push(agent or agent_of(target)), "undo"))
    for line in lines:
        click.echo(line.removeprefix(AGENT_SAYS))
    return 1 if code else 0
