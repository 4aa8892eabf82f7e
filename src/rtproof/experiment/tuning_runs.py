# SPDX-License-Identifier: Apache-2.0
"""Tune a target: find its knobs, measure with them on and off, and leave everything as it was.

The agent restores its settings when a run ends, however it ends. So there is nothing to restore between the runs, and
nothing that this host could forget.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import click

from rtproof.audit.check import Outcome, Severity
from rtproof.audit.facts import CPU, ONLINE, Facts
from rtproof.audit.system_tables import all_threads
from rtproof.compare.run_metrics import RunFigures, figures_of
from rtproof.core.bounded import read_bounded
from rtproof.core.errors import AGENT_SAYS, BoardLostError, TargetError, UserError
from rtproof.core.phrases import duration, quantity
from rtproof.core.scratch import scratch_folder
from rtproof.core.units import format_cpus
from rtproof.experiment import audited_system, stored_runs, tuning_screen
from rtproof.experiment.run_request import INTERRUPTED_CODE, QEMU_TARGET, RunRequest
from rtproof.experiment.run_sets import RUNS_FOLDER
from rtproof.experiment.target_runner import Cell, CellEnd, agent_of, run_cells
from rtproof.record.contents import Moment, Record
from rtproof.record.run_folder import RECORD_NAME
from rtproof.run.session import LOG_NAME
from rtproof.summary import summary_model
from rtproof.targets import ADDED, AskedTarget, Target
from rtproof.tune import tuning
from rtproof.tune.knobs import Knob, KnobOnTarget, TunedCpus, for_cpus, settings_of
from rtproof.tune.tuning import ABOVE, ENERGY, MAXIMA, MEDIAN, TAIL, WORK, Metrics, Plan, Tuning

MOST_WARMUP = 1.5
LEAST_START_NS = 300_000_000
"""What a run takes at least beside its warm-up and its length, until runs have shown what it takes here."""
REWRITERS = ("irqbalance", "irqd", "tuned", "power-profiles-", "tlp", "auto-cpufreq", "cpufreqd")
"""How programs begin that write the same settings again and again."""
MOST_MISSED = 3
"""After so many runs in a row that failed, the next one would fail alike."""
THROTTLED = "throttled"
"""A doubt that no result may have, and that a tuning must measure, because there are knobs against it."""
SHORTEST_NS, LONGEST_NS = 2_000_000_000, 20_000_000_000
OTHERS_MISSING = "all CPUs are measured, so there are no others: --cpus names fewer"
NEEDS_BOOT = "needs a boot: try it in a guest (--target qemu), or on a board with --reboot"

Opened = Callable[[str], AbstractContextManager[Target]]
"""The target within a context. The text: words for the kernel's command line of a target that boots for them."""


@dataclass(frozen=True)
class TuningRequest:
    """What the user asks for. arguments: the agent's, without a length. policy: of the measured threads.

    cpus: measured; None: all but the first. run_ns: how long each run measures; None: as the budget allows. limit_ns:
    whose exceedances are counted, or None. ends_s: when the budget ends, on the monotonic clock. reboot: a board may be
    booted.
    """

    knobs: tuple[Knob, ...]
    arguments: tuple[str, ...]
    budget_ns: int
    ends_s: float
    warmup_ns: int
    run_ns: int | None = None
    policy: str = "fifo"
    cpus: tuple[int, ...] | None = None
    limit_ns: int | None = None
    seed: int = 0
    reboot: bool = False


@dataclass(frozen=True)
class TunedTarget:
    """What was found before the first run.

    knobs: all that were asked for, the one first whose check of the audit has the most severe finding.
    """

    cpus: TunedCpus
    knobs: tuple[KnobOnTarget, ...]


def look_at(target: Target, own: RunRequest, asked: TuningRequest) -> TunedTarget:
    """Collect the facts, and try each knob once. UserError or TargetError says why nothing can be tried."""
    assert own.agent  # found once, by the caller
    with scratch_folder() as folder:
        record = audited_system.collect_on(target, own.agent, folder / "facts.rtrec")
        facts, ranks = Facts(record), _ranks(record)
    if running := _rewriters_in(facts):
        raise UserError(f"{', '.join(running)} would undo what is tried: end it first")
    if facts.parameters(ADDED):
        raise UserError("the target runs with words that a killed tuning added to its command line: boot it first")
    cpus = _cpus_of(facts, asked.cpus)
    tried = list(_tried(target, own.agent, asked, cpus, boots=asked.reboot or own.target == QEMU_TARGET))
    _refuse_without_rights(tried)
    places = {knob.name: at for at, knob in enumerate(asked.knobs)}
    tried.sort(key=lambda each: (ranks.get(each.knob.check, NO_FINDING), each.knob.late, places[each.knob.name]))
    return TunedTarget(cpus, tuple(tried))


NO_FINDING = len(Severity)
"""Less promising than what has a finding, and more than what is good already."""


def _ranks(record: Record) -> dict[str, int]:
    """How promising it is to change what a check is about, by the check's name: 0 first."""
    results = audited_system.audit_of(record, "default").results
    ranks = {each.check.id: each.severity.rank for each in results if each.outcome is Outcome.FINDING}
    return ranks | {each.check.id: NO_FINDING + 1 for each in results if each.outcome is Outcome.GOOD}


def _cpus_of(facts: Facts, asked: tuple[int, ...] | None) -> TunedCpus:
    online = tuple(sorted(facts.cpus(ONLINE) or {0}))
    measured = asked or online[1:] or online
    if missing := sorted(set(measured) - set(online)):
        raise UserError(f"--cpus: the target has no CPU {format_cpus(missing)}: it has {format_cpus(online)}")
    near: set[int] = set()
    for cpu in measured:
        near |= facts.cpus(f"{CPU}/cpu{cpu}/topology/thread_siblings_list") or set()
    others = tuple(cpu for cpu in online if cpu not in measured)
    return TunedCpus(measured, others, tuple(sorted(near & set(others) - {0})))


def _rewriters_in(facts: Facts) -> tuple[str, ...]:
    """The programs that rewrite settings, as NAME/PID."""
    found = [each for each in all_threads(facts) or () if each.pid == each.tid and not each.of_kernel]
    return tuple(each.label for each in found if each.name.startswith(REWRITERS))


NO_RIGHTS = ("Permission denied", "Operation not permitted", "Read-only file system")


def _refuse_without_rights(tried: Sequence[KnobOnTarget]) -> None:
    """UserError where most knobs that are there cannot be set: the rest would say little."""
    refused = [each for each in tried if each.missing.endswith(NO_RIGHTS)]
    if len(refused) > sum(bool(each.settings) for each in tried):
        names = ", ".join(each.knob.name for each in refused[:MOST_NAMED])
        more = f" and {len(refused) - MOST_NAMED} more" if len(refused) > MOST_NAMED else ""
        raise UserError(
            f"{quantity(len(refused), 'knob')} cannot be set ({names}{more}; {refused[0].missing}): "
            "it needs root on the target, and a /proc and /sys that can be written"
        )


MOST_NAMED = 5


def agent_lines(target: Target, words: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code of an agent's command, and its lines."""
    if isinstance(target, AskedTarget):
        return target.ask(words)
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
    target: Target, agent: Path, asked: TuningRequest, cpus: TunedCpus, *, boots: bool
) -> Iterator[KnobOnTarget]:
    """Each knob with those of its settings that work. A setting is restored before the next one is tried.

    boots: whether runs boot the target anew, so that words of its command line can be tried.
    """
    groups: dict[str, list[tuple[str, ...]]] = {}
    # What may cut the link comes last.
    knobs = sorted(asked.knobs, key=lambda knob: knob.late)
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
        elif knob.policy not in ("", asked.policy):
            missing = f"needs --policy {knob.policy}"
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
        elif kind == "restored" and rows:
            changed = any(not row[-1].startswith("0 set") for row in rows)
            found.append(Trial(changed, rows[0][2], "" if changed else "it is set like this already"))
            rows = []
    if lines and "unknown command" in lines[-1]:
        raise UserError("this agent is older than 'tune', and cannot try settings")
    if len(found) != len(groups):
        raise TargetError(f"the agent could not try all knobs: {lines[-1] if lines else 'it said nothing'}")
    return found


def _in_short(reason: str) -> str:
    """The agent's refusal without the value that was tried and without what is restored."""
    said = reason.removeprefix(AGENT_SAYS).removesuffix("; all settings are as before")
    return "not here" if "No such file" in said or "No such device" in said else said


def planned(found: TunedTarget, asked: TuningRequest, start_ns: int) -> tuple[Plan, int]:
    """The plan for the time that is left, and how long each run measures in ns.

    start_ns: what a run takes beside its warm-up and its length. UserError if there is no time for a single knob.
    """
    able = [each.knob.name for each in found.knobs if not each.missing]
    if not able:
        reasons = Counter(each.missing for each in found.knobs).most_common(MOST_NAMED)
        said = "; ".join(f"{quantity(count, 'knob')}: {reason}" for reason, count in reasons)
        raise UserError(f"this target has no knob that can be tried ({said})")
    # The time of one more run is left for the result.
    left_ns = 1e9 * (asked.ends_s - time.monotonic()) - start_ns
    # All knobs if there is time, then the most tried together, then the longest runs.
    fitting: list[tuple[int, int, int, Plan]] = []
    for run_ns in (asked.run_ns,) if asked.run_ns else range(LONGEST_NS, SHORTEST_NS - 1, -1_000_000_000):
        plan = tuning.plan(able, max(0, int(left_ns // (run_ns + MOST_WARMUP * asked.warmup_ns + start_ns))))
        if plan:
            fitting.append((len(plan.knobs), plan.most_together, run_ns, plan))
    if not fitting:
        least_ns = tuning.LEAST_RUNS * ((asked.run_ns or SHORTEST_NS) + asked.warmup_ns + start_ns)
        left = f"{duration(max(0, round(left_ns)))} of {duration(asked.budget_ns)} are left"
        needed = f"{tuning.LEAST_RUNS} runs, which take {duration(round(least_ns))} here"
        raise UserError(f"--budget is too short: {left}, and one knob needs {needed}")
    *_, run_ns, plan = max(fitting, key=lambda each: each[:3])
    return plan, run_ns


@dataclass
class TuningRuns:
    """The runs of one tuning, one after another.

    opened: opens the target for one run. takes_s: the longest that a run took of late. missed: how many in a row
    failed. failure: why the last run could not be judged, or "". told: lines of the agent that were printed.
    """

    opened: Opened
    own: RunRequest
    asked: TuningRequest
    found: TunedTarget
    folder: Path
    run_ns: int = SHORTEST_NS
    plan: Plan | None = None
    takes_s: float = 0
    count: int = 0
    missed: int = 0
    failure: str = ""
    interrupted: bool = False
    told: set[str] = field(default_factory=set)
    by_name: Mapping[str, KnobOnTarget] = field(init=False)

    def __post_init__(self) -> None:
        self.by_name = {each.knob.name: each for each in self.found.knobs}

    def start_ns(self) -> int:
        """What a run takes beside its warm-up and its length: the longer of two runs that serve for nothing else.

        One is of the untouched system, for which a board boots. One has every other knob on. UserError if the first
        one cannot be had.
        """
        able = [each.knob.name for each in self.found.knobs if not each.missing]
        longest_s = 0.0
        with scratch_folder() as scratch:
            for name, on in (("a", frozenset[str]()), ("b", frozenset(able[::2]))):
                began_s = time.monotonic()
                ended, interrupted = self._run(scratch / name, on, "first runs, to learn what a run takes")
                if interrupted:
                    raise KeyboardInterrupt
                if ended.way is None and not on:
                    raise UserError(f"the untouched system cannot be measured: {ended.failure}")
                _metrics_of(ended, scratch / name, self.asked.limit_ns)
                longest_s = max(longest_s, time.monotonic() - began_s)
        return max(LEAST_START_NS, round(1e9 * longest_s) - self.run_ns - self.asked.warmup_ns)

    def measure(self, on: frozenset[str]) -> Metrics | None:
        """The metrics of a run with these knobs on; None if it cannot be judged. OutOfTimeError ends the tuning."""
        began_s = time.monotonic()
        left_s = self.asked.ends_s - began_s
        if left_s < self.takes_s:
            raise tuning.OutOfTimeError
        self.count += 1
        name = f"{self.count:04}"
        try:
            folder = self.folder / RUNS_FOLDER / name
            ended, self.interrupted = self._run(folder, on, self._line(on, left_s))
            metrics, said = (None, "") if self.interrupted else _metrics_of(ended, folder, self.asked.limit_ns)
        except KeyboardInterrupt:
            self.interrupted = True
        except BoardLostError as problem:
            self.missed = MOST_MISSED
            raise tuning.OutOfTimeError(str(problem)) from None
        self._tell_of_settings(folder / LOG_NAME)
        if self.interrupted:
            raise tuning.OutOfTimeError("the user ended it")
        if said:
            click.echo(f"run {name} is {'judged all the same' if metrics else 'not judged'}: {said}", err=True)
        self.failure = "" if metrics else said
        self.missed = self.missed + 1 if ended.failure else 0
        if self.missed == MOST_MISSED:
            raise tuning.OutOfTimeError(f"{quantity(MOST_MISSED, 'run')} in a row failed: {self.failure}")
        self.takes_s = max(0.9 * self.takes_s, time.monotonic() - began_s)
        return metrics

    def _tell_of_settings(self, log: Path) -> None:
        """Print once what the agent says of a setting that it could not restore, or that somebody else has changed."""
        said = read_bounded(log).decode(errors="replace") if log.exists() else ""
        for line in said.splitlines():
            if line.startswith((f"{AGENT_SAYS}/", f"{AGENT_SAYS}'")) and line not in self.told:
                self.told.add(line)
                click.echo(line, err=True)

    def _line(self, on: frozenset[str], left_s: float) -> str:
        assert self.plan
        left_s = min(left_s, (1 + self.plan.runs - self.count) * self.takes_s)
        return tuning_screen.run_line(self.count, self.plan.runs, left_s, on, len(self.plan.knobs))

    def _run(self, folder: Path, on: frozenset[str], announcement: str) -> tuple[CellEnd, bool]:
        """How a run ended, and whether the user interrupted it."""
        knobs = [self.by_name[name] for name in sorted(on)]
        boot = " ".join(each.boot for each in knobs if each.by_boot)
        lengths = _lengths(self.asked, folder.name, self.run_ns)
        words = (*self.asked.arguments, *lengths, *agent_words(knobs, self.found.cpus))
        cell = Cell(
            folder.name, folder, (("", words),), announcement, note=", ".join(sorted(on)) or "untouched", brief=True
        )
        try:
            with self.opened(boot) as target:
                return next(iter(run_cells(target, self.own, [cell])))
        except BoardLostError:
            raise
        except (UserError, TargetError) as problem:
            return CellEnd(folder.name, failure=str(problem)), False


Ended = tuple[Tuning, str, int]
"""The result, why it failed or "", and the exit code."""
FAILED_CODE = 2


def measure_tuning(opened: Opened, own: RunRequest, asked: TuningRequest, found: TunedTarget, folder: Path) -> Ended:
    """Measure and decide. The runs stay in the folder. UserError or TargetError if no run can be had."""
    runs = TuningRuns(opened, own, asked, found, folder, asked.run_ns or SHORTEST_NS)
    planned(found, asked, LEAST_START_NS)
    start_ns = runs.start_ns()
    plan, runs.run_ns = planned(found, asked, start_ns)
    runs.plan = plan
    runs.takes_s = (runs.run_ns + asked.warmup_ns + start_ns) / 1e9
    missing = sum(bool(each.missing) for each in found.knobs)
    tuning_screen.say(tuning_screen.plan_sentences(plan, missing, runs.run_ns, runs.takes_s))
    click.echo(f"--seed {asked.seed} draws the order of the runs", err=True)
    result = tuning.tune(plan, MAXIMA, runs.measure, asked.seed, _say)
    if runs.interrupted:
        return result, "interrupted", INTERRUPTED_CODE
    if runs.missed == MOST_MISSED:
        return result, result.unfinished, FAILED_CODE
    if result.deviation is None:
        return result, f"{result.unfinished}: {runs.failure}", FAILED_CODE
    return result, "", 0


def _say(stage: str, found: Tuning) -> None:
    if stage == "screening":
        tuning_screen.say(tuning_screen.detectable_sentences(found))


def _lengths(asked: TuningRequest, run: str, run_ns: int) -> tuple[str, ...]:
    """The agent's words for a run. Chance draws its warm-up, at most MOST_WARMUP times what was asked.

    So no rhythm of the load meets every run at the same place. In virtual time, runs would even be the same bytes.
    """
    drawn = random.Random(f"{asked.seed} {run}").uniform(1, MOST_WARMUP)  # noqa: S311 - no secret
    return "--warmup", f"{round(drawn * asked.warmup_ns)}ns", "--duration", f"{run_ns}ns"


def agent_words(on: Sequence[KnobOnTarget], cpus: TunedCpus) -> list[str]:
    """The agent's words for some knobs. Without a knob for it, no run keeps the CPUs from idle states."""
    words = [word for each in on for one in each.settings for word in ("--set", one)]
    own = [word for each in on for word in each.knob.agent]
    held = [] if "--dma-latency" in own else ["--dma-latency", "off"]
    return [*own, *held, "--cpus", format_cpus(cpus.measured), "--record", "summary", *words]


def _metrics_of(ended: CellEnd, folder: Path, limit_ns: int | None) -> tuple[Metrics | None, str]:
    """The metrics of a run, or None if it cannot be judged; and what makes it doubtful, or ""."""
    if ended.way is None or ended.failure or not (folder / RECORD_NAME).exists():
        return None, ended.failure or "it left no record"
    try:
        read = stored_runs.read_run(folder, workers=1)
        figures = figures_of(read.analysis)
    except (UserError, TargetError) as problem:
        return None, str(problem)
    invalid = [each for each in read.analysis.doubts if each.severity is summary_model.Severity.INVALID]
    fatal = any(each.code != THROTTLED for each in invalid)
    metrics = None if fatal else metrics_of_figures(figures, read.analysis.record, limit_ns)
    doubts = " ".join(each.what for each in invalid)
    return metrics, doubts or ("" if metrics else "it is shorter than a second")


def metrics_of_figures(figures: RunFigures, record: Record, limit_ns: int | None) -> Metrics | None:
    """The logarithms of what a tuning compares; None without a maximum of a second."""
    found = {MAXIMA: figures.second_maxima.ln, TAIL: figures.quantile(0.999).ln, MEDIAN: figures.quantile(0.5).ln}
    if limit_ns is not None:
        found[ABOVE] = figures.share_above(limit_ns).ln
    counted = [each.value for each in record.counters if each.grows and each.name.startswith("load.")]
    work = [int(value[-1] - value[0]) for value in counted if value.size > 1]
    if work and min(work) > 0:
        found[WORK] = sum(map(math.log, work)) / len(work)
    if used := energy_uj(record):
        found[ENERGY] = math.log(used)
    return {name: ln for name, ln in found.items() if ln is not None} if found[MAXIMA] is not None else None


RAPL = "/sys/class/powercap/intel-rapl:0/"


def energy_uj(record: Record) -> int:
    """What the first processor used during the run; 0 where that is not counted."""
    facts = Facts(record)
    begin, end = (facts.read(f"{RAPL}energy_uj", moment).number() for moment in (Moment.START, Moment.END))
    largest = facts.read(f"{RAPL}max_energy_range_uj").number()
    if begin is None or end is None or largest is None:
        return 0
    # The counter begins at 0 again after its largest value.
    return end - begin if end >= begin else end - begin + largest + 1


def undo(target: Target, agent: Path | None) -> int:
    """Restore on a target what killed runs left; print what the agent says. The exit code."""
    code, lines = agent_lines(target, (target.push(agent or agent_of(target)), "undo"))
    for line in lines:
        click.echo(line.removeprefix(AGENT_SAYS))
    return code if code in (0, 1) else FAILED_CODE
