# SPDX-License-Identifier: Apache-2.0
"""Tune a target: find its knobs, measure with them on and off, and leave everything as it was.

The agent restores its settings when a run ends, however it ends. So there is nothing to restore between the runs, and
nothing that this host could forget.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import click

from rtproof.audit.check import Audit, Outcome
from rtproof.compare.run_metrics import RunFigures, figures_of
from rtproof.core.errors import AGENT_SAYS, TargetError, UserError
from rtproof.core.phrases import duration, quantity
from rtproof.core.units import format_cpus, parse_cpus
from rtproof.experiment import audited_system, stored_runs
from rtproof.experiment.run_request import QEMU_TARGET, RunRequest
from rtproof.experiment.run_sets import RUNS_FOLDER
from rtproof.experiment.target_runner import Cell, CellEnd, agent_of, run_cells
from rtproof.record.contents import Record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.targets import Target
from rtproof.tune import tuning
from rtproof.tune.knobs import Knob, KnobOnTarget, TunedCpus, for_cpus, settings_of
from rtproof.tune.tuning import Metrics, Plan, Tuning

MAXIMA, TAIL, MEDIAN = "maximum of a second", "99.9 %", "median"
ABOVE, WORK = "share above the limit", "work of the loads"
START_NS = 1_500_000_000
"""What a run takes beside its warm-up and its length, until runs have shown it."""
REWRITERS = ("svc.tuners", "iso.irqbalance")
"""Checks of the audit that find programs which write the same settings again and again."""
SHORTEST_NS, LONGEST_NS = 2_000_000_000, 20_000_000_000
OTHERS_MISSING = "all CPUs are measured, so there are no others: --cpus names fewer"
NEEDS_BOOT = "needs a boot: try it in a guest (--target qemu), or boot it and compare"

Opened = Callable[[str], AbstractContextManager[Target]]
"""The target within a context. The text: words for the kernel's command line of a target that boots anew."""


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


def look_at(target: Target, own: RunRequest, asked: TuningRequest, folder: Path) -> TunedTarget:
    """Collect the facts, and try each knob once. UserError or TargetError says why there are none."""
    agent = own.agent or agent_of(target)
    file = folder / "facts.rtrec"
    audited_system.collect_on(target, agent, file)
    record = audited_system.read_facts(file)
    cpus = _cpus_of(record, asked.cpus)
    knobs = tuple(_tried(target, agent, asked.knobs, cpus, boots=own.target == QEMU_TARGET))
    return TunedTarget(cpus, knobs, rewriters_of(audited_system.audit_of(record, "default")))


def _cpus_of(record: Record, asked: tuple[int, ...] | None) -> TunedCpus:
    facts = {file.path: file.content.decode(errors="replace").strip() for file in record.files}
    online = parse_cpus(facts.get("/sys/devices/system/cpu/online") or "0")
    measured = asked or online[1:] or online
    if missing := sorted(set(measured) - set(online)):
        raise UserError(f"--cpus: the target has no CPU {format_cpus(missing)}: it has {format_cpus(online)}")
    near: set[int] = set()
    for cpu in measured:
        near |= set(
            parse_cpus(facts.get(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu))
        )
    others = tuple(cpu for cpu in online if cpu not in measured)
    return TunedCpus(measured, others, tuple(sorted(near & set(others) - {0})))


def rewriters_of(audit: Audit) -> tuple[str, ...]:
    """The sentences of the audit on programs that rewrite settings."""
    found = [each for each in audit.results if each.check.id in REWRITERS and each.outcome is Outcome.FINDING]
    return tuple(each.sentence for each in found)


def agent_lines(target: Target, words: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code of an agent's command, and its lines."""
    process = target.start(words)
    lines = list(process.lines())
    return process.wait(), lines


@dataclass(frozen=True)
class Trial:
    """What became of some settings that were tried.

    before: what the first of them was. why: why they do nothing, "" if they work.
    """

    works: bool
    before: str = ""
    why: str = ""


def _tried(
    target: Target, agent: Path, knobs: Sequence[Knob], cpus: TunedCpus, *, boots: bool
) -> Iterator[KnobOnTarget]:
    """Each knob with those of its settings that work. A setting is restored before the next one is tried.

    boots: whether each run boots the target anew, so that words of its command line can be tried.
    """
    groups: dict[str, list[tuple[str, ...]]] = {}
    for knob in knobs:
        settings = settings_of(knob, cpus)
        groups[knob.name] = [settings] if knob.whole and settings else [(each,) for each in settings]
    told = iter(_trials(target, agent, [group for each in groups.values() for group in each]))
    for knob in knobs:
        own = groups[knob.name]
        trials = [next(told) for _ in own]
        works = [each for group, trial in zip(own, trials, strict=True) if trial.works for each in group]
        missing = ""
        if "{hk" in "".join((*knob.set, knob.boot)) and not cpus.others:
            missing = OTHERS_MISSING
        elif not (knob.set or knob.agent):
            missing = "" if boots else NEEDS_BOOT
        elif not (works or knob.agent):
            missing = trials[0].why if trials else "no measured CPU shares its core with another"
        before = next((trial.before for trial in trials if trial.works), "")
        yield KnobOnTarget(knob, tuple(works), for_cpus(knob.boot, cpus), before, missing)


def _trials(target: Target, agent: Path, groups: Sequence[Sequence[str]]) -> list[Trial]:
    """What became of each group, tried by one process of the agent. TargetError if the agent does not say."""
    if not groups:
        return []
    words = [word for group in groups for word in ("--", *(word for each in group for word in ("--set", each)))]
    _, lines = agent_lines(target, (target.push(agent), "try", *words[1:]))
    found: list[Trial] = []
    rows: list[list[str]] = []
    for line in lines:
        kind, *rest = line.split("\t")
        if kind == "setting":
            rows.append(rest)
        elif kind == "refused":
            found.append(Trial(works=False, why=_in_short(rest[0])))
        elif kind == "restored":
            changed = any(not row[-1].startswith("0 set") for row in rows)
            found.append(Trial(changed, rows[0][2], "" if changed else "it is set like this already"))
            rows = []
    if len(found) != len(groups):
        raise TargetError(f"the agent could not try all knobs: {lines[-1] if lines else 'it said nothing'}")
    return found


def _in_short(reason: str) -> str:
    """The agent's refusal without the value that was tried and without what is restored."""
    said = reason.removeprefix(AGENT_SAYS).removesuffix("; all settings are as before")
    return "not here" if "No such file" in said or "No such device" in said else said


def planned(found: TunedTarget, asked: TuningRequest) -> tuple[Plan, int]:
    """The plan, and how long each run measures in ns. UserError if the budget is too short for one knob."""
    able = sorted((each for each in found.knobs if not each.missing), key=lambda each: each.knob.late)
    if not able:
        reasons = "; ".join(f"{each.knob.name}: {each.missing}" for each in found.knobs[:MOST_REASONS])
        raise UserError(f"this target has no knob that can be tried ({reasons})")
    names = [each.knob.name for each in able]
    best = None
    for run_ns in (asked.run_ns,) if asked.run_ns else range(LONGEST_NS, SHORTEST_NS - 1, -1_000_000_000):
        plan = tuning.plan(names, int(asked.budget_ns // (run_ns + asked.warmup_ns + START_NS)))
        if plan and (best is None or len(plan.left_out) < len(best[0].left_out)):
            best = plan, run_ns
    if not best:
        raise UserError(f"--budget: {duration(asked.budget_ns)} are too short to try one knob")
    return best


MOST_REASONS = 5


def measure_tuning(opened: Opened, own: RunRequest, asked: TuningRequest, found: TunedTarget, folder: Path) -> Tuning:
    """Measure and decide. The runs stay in the folder. opened: opens the target for one run."""
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
        knobs = [by_name[name] for name in sorted(on)]
        said = ", ".join(sorted(on)) or "untouched"
        name = f"{runs:04}"
        words = (*asked.arguments, *_words(knobs, found.cpus), "--duration", f"{run_ns}ns")
        left = f"[{name}] {duration(round(1e9 * (ends_s - began_s)))} left: {said}"
        cell = Cell(name, folder / RUNS_FOLDER / name, (("", words),), left, note=said)
        with opened(" ".join(each.boot for each in knobs if not (each.settings or each.knob.agent))) as target:
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
        click.echo(f"at most {quantity(plan.runs, 'run')} for {quantity(len(plan.knobs), 'knob')}", err=True)
    elif (ratios := found.detectable_ratios()) and stage == "screening":
        least = f"{100 * (1 - 1 / ratios[1]):.0f} %"
        click.echo(
            f"runs of the untouched system differ by a factor of {math.exp(found.deviation or 0):.2f}; this tuning can "
            f"find a knob that lowers the {found.metric} by {least} or more",
            err=True,
        )


def _words(on: Sequence[KnobOnTarget], cpus: TunedCpus) -> list[str]:
    """The agent's words for some knobs. Without a knob for it, no run keeps the CPUs from idle states."""
    words = [word for each in on for one in each.settings for word in ("--set", one)]
    held = [word for each in on for word in each.knob.agent] or ["--dma-latency", "off"]
    return [*held, "--cpus", format_cpus(cpus.measured), "--record", "summary", *words]


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
    counted = [each.value for each in record.counters if each.grows and each.name.startswith("load.")]
    work = [int(value[-1] - value[0]) for value in counted if value.size > 1]
    if work and min(work) > 0:
        found[WORK] = sum(map(math.log, work)) / len(work)
    return {name: ln for name, ln in found.items() if ln is not None} if found[MAXIMA] is not None else None


def undo(target: Target, agent: Path | None) -> int:
    """Restore on a target what killed runs left; print what the agent says. Its exit code."""
    code, lines = agent_lines(target, (target.push(agent or agent_of(target)), "undo"))
    for line in lines:
        click.echo(line.removeprefix(AGENT_SAYS))
    return 1 if code else 0
