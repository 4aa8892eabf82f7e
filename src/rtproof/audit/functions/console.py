# SPDX-License-Identifier: Apache-2.0
"""Functions for the checks of the console, of tracing and of the kernel's watchdogs."""

import re
from collections.abc import Iterator

from rtproof.audit import conditions
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import Facts, KernelVersion, Reading, parse_cpu_list
from rtproof.audit.readings import hidden, missing, not_understood, read_value, read_values, unknown
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.record.contents import Moment
from rtproof.summary import measured_kernel

_PRINTK, _CONSOLES = "/proc/sys/kernel/printk", "/proc/consoles"
_CONSOLE = re.compile(r"(\S+)\s+\S+ \(([^)]*)\)")
_VIRTUAL_TERMINAL = re.compile(r"tty\d*|ttynull|netcon\d*|hvc\d+|pstore-\d+|ramoops-\d+")
_ONLY_EMERGENCIES, _ONLY_ERRORS = 1, 4
_LINE_BITS = 800
"""A line of 80 characters, each with a start bit and a stop bit."""
_FEW_MESSAGES = 5
_RESTLESS = re.compile(r"[Uu]nder-?voltage|callbacks suppressed")
"""What boards log again and again: too weak a power supply, and messages that came too fast to keep."""
_TRACERS_OFF = ("nop", "")
_TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_BPF_ON_EVENTS = {
    2: "kprobe",
    5: "tracepoint",
    7: "perf event",
    17: "raw tracepoint",
    24: "raw tracepoint",
    26: "tracing",
}
_USUAL_RATE = 100_000
_LONG_HUNG_S = 600
_WATCHDOG_SINCE = KernelVersion(3, 0)


def console_level(facts: Facts, check: Check) -> Judgement:
    """Which messages a slow console prints while interrupts are off."""
    printk, consoles = facts.read(_PRINTK), facts.read(_CONSOLES)
    if not printk.here:
        return missing(check, [printk])
    level = re.match(r"(\d{1,9})\s", printk.text)
    if not level:
        return not_understood(printk)
    read = read_values([printk, consoles])
    if int(level[1]) <= _ONLY_EMERGENCIES:
        return Judgement(Outcome.GOOD, "Only emergencies go to the console.", read)
    if consoles.here:
        slow = [name for name, flags in _CONSOLE.findall(consoles.text) if _is_slow(name, flags)]
    elif facts.boot_words is None or facts.parameter("console").absent:
        return unknown([consoles, printk])
    else:
        slow = [name for name in _asked_consoles(facts) if _is_slow(name, "E")]
    if not slow:
        return Judgement(Outcome.GOOD, "No console is a serial line that prints with interrupts off.", read)
    sentence = f"Messages below level {level[1]} go to {clean(slow[0])}, a serial line{_line_time(facts, slow[0])}."
    return Judgement(Outcome.FINDING, sentence, read, _severity_of_level(facts, int(level[1])))


def _is_slow(name: str, flags: str) -> bool:
    """Whether a console is enabled, a serial line, and prints in the context of whoever logs (no N for nbcon)."""
    return "E" in flags and "N" not in flags and not _VIRTUAL_TERMINAL.fullmatch(name)


def _asked_consoles(facts: Facts) -> list[str]:
    words = [word.partition("=") for word in facts.boot_words or ()]
    return [value.split(",")[0] for key, _, value in words if key == "console"]


def _line_time(facts: Facts, name: str) -> str:
    """How long a line takes, if the command line tells the speed."""
    found = [re.fullmatch(rf"console={re.escape(name)},(\d{{3,8}})\D?.*", word) for word in facts.boot_words or ()]
    speed = next((int(match[1]) for match in reversed(found) if match), 0)
    return f" at {speed:,} baud; 80 characters take {_LINE_BITS / speed * 1000:.0f} ms" if speed else ""


def _severity_of_level(facts: Facts, level: int) -> Severity:
    if facts.preemption.built.value == measured_kernel.RT:
        return Severity.LOW  # a thread prints there
    return Severity.MEDIUM if level <= _ONLY_ERRORS else Severity.HIGH


def log_rate(facts: Facts, check: Check) -> Judgement:
    """How many messages the kernel logged between two moments, or of which it says that they come again and again."""
    path, log = "log-messages", facts.read(measured_kernel.LOG)
    restless = next((line for line in log.text.splitlines() if _RESTLESS.search(line)), "")
    if restless:
        return Judgement(Outcome.FINDING, f"The kernel's log has: {clean(restless)}.", read_values([log]))
    start, end = facts.read(path), facts.read(path, Moment.END)
    if not start.here:
        return missing(check, [start])
    before, after = start.number(), end.number()
    if before is None or after is None or after < before:
        return unknown([end if start.number() is not None else start], "The number of messages is known only once.")
    read = read_values([start, end])
    logged = after - before
    if not logged:
        return Judgement(Outcome.GOOD, "The kernel logged nothing meanwhile.", read)
    severity = Severity.LOW if logged < _FEW_MESSAGES else None
    return Judgement(
        Outcome.FINDING, f"The kernel logged {quantity(logged, 'message')} while the facts were read.", read, severity
    )


def tracing(facts: Facts, check: Check) -> Judgement:
    """Tracers and events that are on."""
    if facts.option("FTRACE").absent:
        return Judgement(Outcome.GOOD, "The kernel is built without tracing.", read_values([facts.option("FTRACE")]))
    root = next((root for root in _TRACING if facts.read(f"{root}/current_tracer").here), _TRACING[0])
    needed = [facts.read(f"{root}/current_tracer"), _events(facts, root)]
    others = [
        reading
        for name in ("current_tracer", "set_event")
        for reading in facts.match(f"{root}/instances/*/{name}")
        if reading.here
    ]
    on = [reading for reading in (*needed, *others) if reading.here and _traces(reading)]
    if on:
        value = read_value(on[0])
        folders = tuple(dict.fromkeys(re.sub("(/events)?/[a-z_]+$", "", reading.path) for reading in on))
        sentence = f"The kernel traces: {value.path} is {value.value}."
        return Judgement(Outcome.FINDING, sentence, read_values(on), named=folders)
    unread = [reading for reading in needed if not reading.here]
    if unread:
        return missing(check, unread)
    return Judgement(Outcome.GOOD, "", read_values([*needed, *others]))


def _events(facts: Facts, root: str) -> Reading:
    """The list of events, or only whether any is on where the list is too long."""
    events = facts.read(f"{root}/set_event")
    return events if events.here else facts.read(f"{root}/events/enable")


def _traces(reading: Reading) -> bool:
    return reading.word not in (("0",) if reading.path.endswith("/enable") else _TRACERS_OFF)


def bpf_programs(facts: Facts, check: Check) -> Judgement:
    """BPF programs that run at events of the kernel."""
    programs, option = facts.read("bpf-programs"), facts.option("BPF_SYSCALL")
    if not programs.here:
        if option.absent:
            return Judgement(Outcome.GOOD, "The kernel is built without BPF for programs.", read_values([option]))
        return missing(check, [programs])
    lines = [re.fullmatch(r"\d+ (\d{1,4})(?: (.*))?", line) for line in programs.word.splitlines()]
    hooked = [(int(line[1]), line[2] or "?") for line in lines if line and int(line[1]) in _BPF_ON_EVENTS]
    if hooked:
        names = ", ".join(f"{clean(name)} ({_BPF_ON_EVENTS[kind]})" for kind, name in hooked[:5])
        sentence = f"At events of the kernel {quantity(len(hooked), 'BPF program')} run: {names}."
        return Judgement(Outcome.FINDING, sentence, read_values([programs]))
    if not all(lines):
        return unknown([programs], "The list of BPF programs holds what this version does not understand.")
    return Judgement(Outcome.GOOD, "No BPF program runs at events of the kernel.", read_values([programs]))


def perf_users(facts: Facts, check: Check) -> Judgement:
    """Who samples with perf, and whether the kernel has already had to lower its rate."""
    users, rate = facts.read("perf-users"), facts.read("/proc/sys/kernel/perf_event_max_sample_rate")
    if rate.absent:
        return Judgement(Outcome.GOOD, "The kernel has no performance events.", read_values([rate]))
    if not users.here:
        return missing(check, [users])
    read = read_values([users, rate])
    if users.word:
        first = clean(users.word.splitlines()[0])
        return Judgement(Outcome.FINDING, f"A process has performance events open: {first}.", read)
    number = rate.number()
    if number is None:
        return unknown([rate])
    if number < _USUAL_RATE:
        sentence = f"The largest rate of samples is {number:,} per second: the kernel, or somebody, has lowered it."
        return Judgement(Outcome.FINDING, sentence, read, Severity.LOW)
    return Judgement(Outcome.GOOD, "", read)


def lockup_detector(facts: Facts, check: Check) -> Judgement:
    """The detector of lock-ups, on the CPUs that shall be isolated or on all."""
    watchdog = facts.read("/proc/sys/kernel/watchdog")
    if not watchdog.here:
        if watchdog.absent and (facts.kernel is None or facts.kernel.is_before(_WATCHDOG_SINCE)):
            return unknown([watchdog], f"Kernels before {_WATCHDOG_SINCE} do not tell it in this file.")
        return missing(check, [watchdog])
    if watchdog.word not in ("0", "1"):
        return not_understood(watchdog)
    if watchdog.word == "0":
        return Judgement(Outcome.GOOD, "The detector is off.", read_values([watchdog]))
    return _watched_cpus(facts, watchdog)


def _watched_cpus(facts: Facts, watchdog: Reading) -> Judgement:
    mask = facts.read("/proc/sys/kernel/watchdog_cpumask")
    read = read_values([watchdog, mask])
    isolated, watched = conditions.isolated_cpus(facts), parse_cpu_list(mask.text) if mask.here else None
    if not isolated:
        return Judgement(Outcome.FINDING, "The detector of lock-ups runs on every CPU.", read, Severity.LOW)
    if watched is not None and not watched & isolated:
        return Judgement(Outcome.GOOD, "The detector spares the isolated CPUs.", read)
    if watched is None and not mask.absent:
        return unknown([mask], f"{mask.path} holds no list of CPUs." if mask.here else "")
    return Judgement(Outcome.FINDING, "The detector of lock-ups runs on isolated CPUs.", read)


def hung_tasks(facts: Facts, check: Check) -> Judgement:
    """How often the kernel looks at all threads for one that hangs."""
    timeout = facts.read(check.read[0])
    seconds = timeout.number()
    if not timeout.here:
        return missing(check, [timeout])
    if seconds is None or seconds < 0:
        return not_understood(timeout)
    if seconds and seconds < _LONG_HUNG_S:
        sentence = f"The kernel looks through all threads every {seconds} s."
        return Judgement(Outcome.FINDING, sentence, read_values([timeout]))
    return Judgement(Outcome.GOOD, "", read_values([timeout]))


def hardware_watchdog(facts: Facts, _: Check) -> Judgement:
    """A watchdog that resets the machine when nothing feeds it any more."""
    folder, old = facts.read("/sys/class/watchdog/"), facts.read("/sys/class/misc/watchdog/dev")
    states = [reading for reading in facts.match("/sys/class/watchdog/*/state") if reading.here]
    identities = [reading for reading in facts.match("/sys/class/watchdog/*/identity") if reading.here]
    read = read_values([*states, *identities] or [folder, old])
    names = ", ".join(clean(reading.word) for reading in identities) or "its kind is not told"
    if any(reading.word == "active" for reading in states):
        return Judgement(Outcome.GOOD, f"A watchdog is fed: {names}.", read)
    if states:
        return Judgement(Outcome.FINDING, f"There is a watchdog, and nothing feeds it: {names}.", read)
    if (folder.here and folder.word) or old.here:
        return Judgement(Outcome.UNKNOWN, "There is a watchdog, and the kernel does not tell whether it is fed.", read)
    if old.absent and (folder.absent or folder.here):
        if conditions.virtual_machine(facts).holds:
            return Judgement(Outcome.NOT_APPLICABLE, "A virtual machine is watched by its host.", read)
        return Judgement(Outcome.FINDING, "There is no hardware watchdog.", read)
    return unknown(hidden((folder, old)))


def panics(facts: Facts, check: Check) -> Judgement:
    """Which troubles make the machine panic, and what it does then."""
    readings = [facts.read(path) for path in check.read]
    after, *causes = readings
    lost = hidden(readings)
    known = [reading for reading in readings if reading.here]
    wrong = [reading for reading in known if reading.number() is None]
    if wrong:
        return unknown(wrong, f"{wrong[0].path} holds what this version does not understand.")
    on = list(_names_of([reading for reading in causes if reading.number()]))
    if on:
        sentence = f"The machine panics after {' or '.join(on)}, and then {_after_panic(after)}."
        return Judgement(Outcome.FINDING, sentence, read_values(known))
    if lost or not known:
        return missing(check, readings)
    return Judgement(Outcome.GOOD, "Neither a lock-up nor a stall makes the machine panic.", read_values(known))


def _names_of(causes: list[Reading]) -> Iterator[str]:
    names = {
        "softlockup_panic": "a soft lock-up",
        "hardlockup_panic": "a hard lock-up",
        "hung_task_panic": "a thread that hangs",
        "panic_on_rcu_stall": "a stall of RCU",
    }
    for reading in causes:
        yield names[reading.path.rsplit("/", 1)[-1]]


def _after_panic(reading: Reading) -> str:
    seconds = reading.number()
    if seconds is None:
        return "does what is not known"
    return (
        f"starts again after {seconds} s" if seconds > 0 else "stands still" if not seconds else "starts again at once"
    )
