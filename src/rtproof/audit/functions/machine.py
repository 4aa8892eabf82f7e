# SPDX-License-Identifier: Apache-2.0
"""Judge power and clocks, the console, and whether a hypervisor decides when a CPU runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rtproof.audit import conditions, readings
from rtproof.audit.check import Check, Judgement, Outcome, Severity
from rtproof.audit.facts import CPU, ONLINE, Facts, Reading, State, parse_cpu_mask
from rtproof.audit.readings import missing, not_understood, unknown
from rtproof.core.phrases import duration, quantity
from rtproof.core.printable import clean
from rtproof.summary import measured_kernel, system_facts

# Idle states, and the requests that shut them.

BUDGET_US = 50
"""How long it may take to leave an idle state, unless ``names`` of the check has another number for the purpose."""
NO_REQUEST_US = 2_000_000_000
"""What /dev/cpu_dma_latency grants if nobody asks for anything."""
_MEASURING = re.compile(r"(cyclictest|rtproof.*|rtla.*|oslat|timerlat|hwlatdetect|jitterdebugger|latency)$")
"""Programs that ask for short latencies only while they measure."""


REQUEST = "dma-latency"


def _request(facts: Facts) -> tuple[int | None, bool]:
    """What all processes together ask of all CPUs in us, None if nobody asks; and whether that is known."""
    reading = facts.read(REQUEST)
    if not reading.here:
        return None, reading.absent and facts.read(f"{CPU}/cpuidle/current_driver").absent
    us = reading.number()
    known = us is not None and us >= 0
    return (us if us is not None and 0 <= us < NO_REQUEST_US else None), known


def _holder(facts: Facts) -> tuple[str, bool]:
    """Who asks, "" if that is not known, or if it is a driver; and whether only programs that measure ask."""
    rows = [row.split(maxsplit=1) for row in facts.read("dma-latency-holders").text.splitlines()]
    names = [row[1] for row in rows if len(row) == 2]
    if _request(facts)[0] is None or not names:
        return "", False
    return clean(names[0]), all(map(_MEASURING.match, names))


def _budget(facts: Facts, check: Check) -> int:
    return int(check.names.get(facts.request.purpose, (BUDGET_US,))[0])


def _budget_words(facts: Facts, check: Check) -> str:
    purpose = facts.request.purpose
    return f"the budget of {_budget(facts, check)} us" + ("" if purpose == "default" else f" for {purpose}")


@dataclass(frozen=True)
class _IdleState:
    """us: how long it takes to leave it. enabled: None if that is not known. allowed: by a limit of the CPU."""

    reading: Reading
    name: str
    us: int | None
    enabled: bool | None
    allowed: bool

    @property
    def cpu(self) -> int | None:
        return _cpu_of(self.reading)

    def costs_more_than(self, budget_us: int) -> bool:
        """Whether it can be entered, as far as is known, and takes longer to leave."""
        return self.enabled is not False and self.allowed and (self.us or 0) > budget_us


def _cpu_of(reading: Reading) -> int | None:
    found = re.search(r"/cpu(\d{1,6})/", reading.path)
    return int(found[1]) if found else None


def _folder(reading: Reading) -> str:
    return reading.path.rpartition("/")[0]


def _idle_state(facts: Facts, latency: Reading) -> _IdleState:
    folder = _folder(latency)
    name, disable, us = facts.read(f"{folder}/name"), facts.read(f"{folder}/disable"), latency.number()
    own = facts.read(f"{folder.split('/cpuidle/')[0]}/power/pm_qos_resume_latency_us")
    # 0 in the CPU's own limit allows anything, and n/a allows nothing.
    limit = 0 if own.word == "n/a" else own.number() or None
    enabled = True if disable.absent else None if (number := disable.number()) is None else number == 0
    return _IdleState(
        latency,
        clean(name.word or folder.rpartition("/")[2]),
        us if us is not None and us >= 0 else None,
        enabled,
        limit is None or us is None or us <= limit,
    )


def idle_states_but_arm(facts: Facts, check: Check) -> Judgement:
    """As ``idle_states``; the states of Arm have a check of their own."""
    if conditions.CONDITIONS["arm"](facts)[0]:
        return readings.not_applicable("On Arm, pm.idle.arm judges the idle states.")
    return idle_states(facts, check)


def idle_states(facts: Facts, check: Check) -> Judgement:
    """No CPU that matters can enter an idle state that takes longer to leave than the budget."""
    found = facts.match(f"{CPU}/cpu[0-9]*/cpuidle/state*/latency")
    here = [one for one in found if one.here]
    driver = facts.read(f"{CPU}/cpuidle/current_driver")
    if driver.word == "haltpoll" or any(_idle_state(facts, one).name.startswith("haltpoll") for one in here):
        return readings.not_applicable("In this virtual machine the host decides how an idle CPU sleeps.", [driver])
    if not here:
        return readings.missing(check, found)
    online = facts.cpus(ONLINE)
    concerned = [one for one in found if not facts.isolated or _cpu_of(one) in facts.isolated]
    lost = [one for one in concerned if not one.here and (online is None or _cpu_of(one) in {None, *online})]
    states = [_idle_state(facts, one) for one in concerned if one.here]
    if not states:
        return readings.unknown(here, "No idle state of the isolated CPUs was read.")
    judged = _judge_states(facts, check, states)
    if lost and not judged:
        why = f"{clean(lost[0].path)} vanished while it was read; perhaps a CPU went offline." if lost[0].absent else ""
        return readings.unknown(lost, why)
    return judged or _shallow(facts, check, states)


def _judge_states(facts: Facts, check: Check, states: Sequence[_IdleState]) -> Judgement | None:
    """A finding or UNKNOWN; None if every state that can be entered is within the budget."""
    (asked_us, known), (_, measuring), budget = _request(facts), _holder(facts), _budget(facts, check)
    unclear = [one for one in states if one.us is None]
    # A request that outlasts the audit shuts states.
    least = None if measuring else asked_us
    deep = [one for one in states if one.costs_more_than(budget) and (least is None or (one.us or 0) <= least)]
    certain = [one for one in deep if one.enabled]
    if certain and known:
        return _deep_finding(facts, check, certain)
    if certain:
        request = facts.read(REQUEST)
        why = request.reason or "it is no number"
        sentence = f"It is not known whether some process forbids deep states: {clean(request.path)}: {why}."
        return readings.unknown([request, certain[0].reading], sentence)
    if unclear or deep:
        bad = (unclear or deep)[0].reading
        return readings.unknown([bad], f"It is not known whether {clean(_folder(bad))} can be entered.")
    return None


def _deep_finding(facts: Facts, check: Check, deep: Sequence[_IdleState]) -> Judgement:
    worst = max(deep, key=lambda one: one.us or 0)
    sentence = f"CPU {worst.cpu} may enter {worst.name}, which takes {worst.us} us to leave; that is more than "
    sentence += f"{_budget_words(facts, check)}."
    cpus = {one.cpu for one in deep}
    if len(cpus) > 1:
        sentence += f" So may {quantity(len(cpus) - 1, 'other CPU')}."
    holder, measuring = _holder(facts)
    if measuring:
        sentence += f" {holder} forbids it now, but only while it measures."
    folders = [_folder(one.reading) for one in deep]
    named = [folder.removeprefix(f"{CPU}/") for folder in folders if facts.read(f"{folder}/disable").here]
    return readings.finding(sentence, [worst.reading], None, named)


def _shallow(facts: Facts, check: Check, states: Sequence[_IdleState]) -> Judgement:
    needed = [one for one in states if one.costs_more_than(_budget(facts, check))]
    if needed:
        shown = [facts.read(REQUEST), needed[0].reading]
        if _holder(facts)[0]:
            return _held(facts, shown)
        asked = f"Something asks for at most {_request(facts)[0]} us of all CPUs"
        return readings.unknown(shown, f"{asked}, but nobody knows what, nor how long it will.")
    deepest = max(states, key=lambda one: (one.enabled is not False and one.allowed, one.us or 0))
    sentence = f"Every state that a CPU may enter is within {_budget_words(facts, check)}."
    return Judgement(Outcome.GOOD, sentence, [deepest.reading])


def _held(facts: Facts, shown: Sequence[Reading]) -> Judgement:
    sentence = f"{_holder(facts)[0]} asks for at most {_request(facts)[0]} us of all CPUs, as long as it runs."
    return Judgement(Outcome.GOOD, sentence, shown)


def latency_request(facts: Facts, check: Check) -> Judgement:
    """Whether a request of this moment distorts what the audit shows."""
    request, (asked_us, known), (holder, measuring) = facts.read(REQUEST), _request(facts), _holder(facts)
    found = [request, facts.read("dma-latency-holders")]
    if request.here and not known:
        return readings.not_understood(request)
    if not request.here:
        there = "/dev/cpu_dma_latency is not there, although this kernel has idle states: perhaps a container hides it."
        hides = request.absent and not known
        return readings.unknown(found[:1], there) if hides else readings.missing(check, found[:1])
    if asked_us is None:
        sentence = "Nobody asks for anything, so that the idle states are those of production."
        return Judgement(Outcome.GOOD, sentence, found[:1])
    if measuring:
        sentence = f"{holder} asks for at most {asked_us} us while it measures; without it, "
        return readings.finding(sentence + "CPUs may sleep deeper than what was measured.", found)
    if holder:
        return _held(facts, found)
    sentence = f"Something asks for at most {asked_us} us; no process was seen that does, so perhaps a driver does."
    return readings.unknown(found, sentence)


_CPU_TIMERS = re.compile(
    r"lapic(-deadline)?|arch_sys_timer|arch_mem_timer|mct_tick\d+|riscv_timer_clockevent|decrementer|Constant"
    r"|local_timer|twd|xen|Hyper-V clockevent|hv-clockevent|comparator|mips|sh_tmu.*|kvm-clockevent"
)
_SLOW_TIMERS = re.compile(r"pit|hpet\d*|tc_clkevt|at91_tick|jiffies|dummy_timer|<NULL>|bc_hrtimer")
_DEVICE = re.compile(r"^(Broadcast device|Per CPU device: (\d{1,6}))\s*\n\s*Clock Event Device:\s*(.*)$", re.MULTILINE)
_BROADCAST = re.compile(r"^tick_broadcast_mask:\s*([0-9a-f,]{1,4096})$", re.MULTILINE)


def timer_devices(facts: Facts, check: Check) -> Judgement:
    """Each CPU that matters has a timer of its own, and needs no other device while it sleeps."""
    both = [facts.read(source) for source in check.read]
    found = next((one for one in both if one.here), None)
    if found is None:
        return readings.missing(check, [one for one in both if one.state is not State.NOT_COLLECTED] or both)
    timers = {int(cpu): name.strip() for _, cpu, name in _DEVICE.findall(found.text) if cpu}
    if not timers:
        return readings.unknown([found], f"{found.path} names no timer of a CPU.")
    isolated = facts.isolated
    timers = {cpu: name for cpu, name in timers.items() if not isolated or cpu in isolated}
    broadcast = _BROADCAST.search(found.text)
    waiting = (parse_cpu_mask(broadcast[1]) if broadcast else None) or frozenset()
    return _judge_timers(found, timers, waiting)


def _judge_timers(found: Reading, timers: Mapping[int, str], waiting: frozenset[int]) -> Judgement:
    slow = [cpu for cpu, name in timers.items() if _SLOW_TIMERS.fullmatch(name)]
    broadcast = sorted(cpu for cpu in timers if cpu in waiting)
    strange = [cpu for cpu, name in timers.items() if not _CPU_TIMERS.fullmatch(name)]
    shown = [Reading(found.path, found.state, f"CPU {cpu}: {name}") for cpu, name in list(timers.items())[:4]]
    if slow:
        sentence = f"The timer of CPU {slow[0]} is {clean(timers[slow[0]])}, which is slow to program or shared."
        return readings.finding(sentence, shown)
    if broadcast:
        sentence = f"The timer of CPU {broadcast[0]} stops in deep idle states; another CPU must wake it up then."
        return readings.finding(sentence, shown)
    if strange:
        sentence = f"Nobody here knows how fast the timer {clean(timers[strange[0]])} of CPU {strange[0]} is."
        return Judgement(Outcome.UNKNOWN, sentence, shown, Severity.LOW)
    if not timers:
        return readings.unknown([found], f"{found.path} does not name the timers of the isolated CPUs.")
    return readings.good("", shown)


_PRINTK, _CONSOLES = "/proc/sys/kernel/printk", "/proc/consoles"
_CONSOLE = re.compile(r"(\S+)\s+\S+ \(([^)]*)\)")
_VIRTUAL_TERMINAL = re.compile(r"tty\d*|ttynull|netcon\d*|hvc\d+|pstore-\d+|ramoops-\d+")
_ONLY_EMERGENCIES, _ONLY_ERRORS = 1, 4
_LINE_BITS = 800
"""A line of 80 characters, each with a start bit and a stop bit."""


def console_level(facts: Facts, check: Check) -> Judgement:
    """Which messages a slow console prints while interrupts are off."""
    printk, consoles = facts.read(_PRINTK), facts.read(_CONSOLES)
    if not printk.here:
        return missing(check, [printk])
    level = re.match(r"(\d{1,9})\s", printk.text)
    if not level:
        return not_understood(printk)
    read = [printk, consoles]
    if int(level[1]) <= _ONLY_EMERGENCIES:
        return Judgement(Outcome.GOOD, "Only emergencies go to the console.", read)
    if not consoles.here and (facts.boot_words is None or facts.parameter("console").absent):
        return unknown([consoles, printk])
    asked = facts.parameters("console")
    listed = _CONSOLE.findall(consoles.text) if consoles.here else [(value.split(",")[0], "E") for value in asked]
    # A slow one is enabled, a serial line, and prints in the context of whoever logs (no N for nbcon).
    enabled = [name for name, flags in listed if "E" in flags and "N" not in flags]
    slow = [name for name in enabled if not _VIRTUAL_TERMINAL.fullmatch(name)]
    if not slow:
        return Judgement(Outcome.GOOD, "No console is a serial line that prints with interrupts off.", read)
    speeds = [re.fullmatch(rf"{re.escape(slow[0])},(\d{{3,8}})\D?.*", value) for value in asked]
    speed = next((int(match[1]) for match in reversed(speeds) if match), 0)
    takes = f" at {speed:,} baud; 80 characters take {_LINE_BITS / speed * 1000:.0f} ms" if speed else ""
    severity = Severity.MEDIUM if int(level[1]) <= _ONLY_ERRORS else Severity.HIGH
    if facts.preemption.built.value == measured_kernel.RT:
        severity = Severity.LOW  # a thread prints there
    sentence = f"Messages below level {level[1]} go to {clean(slow[0])}, a serial line{takes}."
    return Judgement(Outcome.FINDING, sentence, read, severity)


_STAT = "/proc/stat"
_TICK_NS = 10_000_000


def virtual_machine(facts: Facts, _: Check) -> Judgement:
    """Whether a hypervisor decides when a CPU runs."""
    holds, sentence = conditions.virtual_machine(facts)
    names = [facts.read(path) for path in ("/proc/cpuinfo", *conditions.NAMES_OF_THE_MACHINE)]
    told = system_facts.guest_fact(facts.record)
    read = (
        *(Reading(path, State.HERE, told.says) for path in told.source.split(", ") if facts.read(path).here),
        *(reading for reading in names[1:] if reading.here),
    )
    if holds is None:
        return Judgement(Outcome.UNKNOWN, sentence, names)
    if not holds:
        return Judgement(Outcome.GOOD, sentence, read)
    rows = (re.match(r"cpu\d+(?: \d{1,20}){7} (\d{1,20})", line) for line in facts.read(_STAT).text.splitlines())
    stolen_ns = sum(int(row[1]) for row in rows if row) * _TICK_NS
    steal = f" Since the boot, its CPUs waited {duration(stolen_ns)} for the host (steal)." if stolen_ns else ""
    return Judgement(Outcome.FINDING, f"{sentence}{steal}", read)


_OLD_FIRMWARE_YEARS = 5


def firmware(facts: Facts, check: Check) -> Judgement:
    """How old the firmware is. Its settings cannot be read."""
    names = [facts.read(path) for path in check.read]
    date, *others = names
    match = re.fullmatch(r"(\d\d)/(\d\d)/(\d{4})", date.word) if date.here else None
    if not match:
        return unknown([date], f"{date.path} holds no date." if date.here else "")
    taken = datetime.fromtimestamp(facts.record.begin.origin_realtime_ns / 1e9, UTC).year
    if taken < int(match[3]):
        return unknown([date], f"The clock of the machine says {taken}, and the firmware is of {match[3]}.")
    what = clean(" ".join(reading.word for reading in others if reading.here)) or "The firmware"
    if taken - int(match[3]) >= _OLD_FIRMWARE_YEARS:
        return readings.finding(f"{what} is of {match[3]}.", names)
    return readings.good(f"{what} is of {match[3]}. Its settings cannot be read.", names)
