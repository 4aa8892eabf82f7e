# SPDX-License-Identifier: Apache-2.0
"""Judge power: frequencies, idle states and the requests against them, links, network devices, throttling."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtproof.audit import conditions, readings
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts, Reading
from rtproof.audit.readings import not_understood
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean

CPU = "/sys/devices/system/cpu"


def _good(found: Iterable[Reading], sentence: str = "") -> Judgement:
    return readings.judgement(Outcome.GOOD, sentence, found)


def _folder(reading: Reading) -> str:
    return reading.path.rpartition("/")[0]


def _number_in(pattern: str, path: str) -> int | None:
    found = re.search(pattern, path)
    return int(found[1]) if found else None


def _concerned(facts: Facts, found: Sequence[Reading]) -> list[Reading]:
    """Of files of single CPUs, those of the isolated CPUs; all files if no CPU is isolated, or nobody knows."""
    isolated = conditions.isolated_cpus(facts)
    return [one for one in found if not isolated or _number_in(r"/cpu(\d{1,6})/", one.path) in isolated]


def _lost(facts: Facts, found: Sequence[Reading]) -> list[Reading]:
    """Files that were listed and could not be read. A CPU that is offline has none to read."""
    online = facts.cpus(f"{CPU}/online")
    return [one for one in found if not one.here and not _offline(one, online)]


def _offline(reading: Reading, online: frozenset[int] | None) -> bool:
    cpu = _number_in(r"/(?:cpu|policy)(\d{1,6})/", reading.path)
    return online is not None and cpu is not None and cpu not in online


def _nothing(check: Check, found: Sequence[Reading]) -> Judgement:
    """The judgement if none is HERE. A policy that was listed and then vanished was not absent."""
    vanished = [one for one in found if one.absent and re.search(r"/policy\d", one.path)]
    if vanished:
        return _vanished(vanished)
    return readings.missing(check, found)


def _vanished(lost: Sequence[Reading]) -> Judgement:
    first = lost[0]
    if first.absent:
        return readings.unknown(lost, f"{clean(first.path)} vanished while it was read; perhaps a CPU went offline.")
    return readings.unknown(lost)


# Idle states, and the requests that shut them.

BUDGET_US = 50
"""How long it may take to leave an idle state, unless ``good_for`` of the check has another number for the purpose."""
NO_REQUEST_US = 2_000_000_000
"""What /dev/cpu_dma_latency grants if nobody asks for anything."""
_MEASURING = re.compile(r"(cyclictest|rtproof.*|rtla.*|oslat|timerlat|hwlatdetect|jitterdebugger|latency)$")
"""Programs that ask for short latencies only while they measure."""


@dataclass(frozen=True)
class _Request:
    """What all processes together ask of all CPUs. us: None if nobody asks. known: False if nobody knows.

    holders: who asks; () if that is not known, or if it is a driver. measuring: only programs that measure ask.
    """

    reading: Reading
    us: int | None
    known: bool
    holders: tuple[str, ...] = ()
    measuring: bool = False


def _request(facts: Facts) -> _Request:
    reading = facts.read("dma-latency")
    if not reading.here:
        hidden = not reading.absent or not facts.read(f"{CPU}/cpuidle/current_driver").absent
        return _Request(reading, None, not hidden)
    us = reading.number()
    if us is None or us < 0 or us >= NO_REQUEST_US:
        return _Request(reading, None, us is not None and us >= 0)
    rows = [row.split(maxsplit=1) for row in facts.read("dma-latency-holders").text.splitlines()]
    names = tuple(row[1] for row in rows if len(row) == 2)
    return _Request(reading, us, True, names, bool(names) and all(map(_MEASURING.match, names)))


def _budget(facts: Facts, check: Check) -> int:
    own = check.good_for.get(facts.request.purpose)
    return own.at_most if own and own.at_most is not None else BUDGET_US


def _budget_words(facts: Facts, check: Check) -> str:
    purpose = facts.request.purpose
    return f"the budget of {_budget(facts, check)} us" + ("" if purpose == "default" else f" for {purpose}")


@dataclass(frozen=True)
class _IdleState:
    """latency: how long it takes to leave it. enabled: None if that is not known. allowed: by a limit of the CPU."""

    reading: Reading
    name: str
    us: int | None
    enabled: bool | None
    allowed: bool

    @property
    def cpu(self) -> int | None:
        return _number_in(r"/cpu(\d{1,6})/", self.reading.path)


def _idle_state(facts: Facts, latency: Reading) -> _IdleState:
    folder = _folder(latency)
    name, disable = facts.read(f"{folder}/name"), facts.read(f"{folder}/disable")
    us, number = latency.number(), disable.number()
    limit = _own_limit_us(facts.read(f"{folder.split('/cpuidle/')[0]}/power/pm_qos_resume_latency_us"))
    enabled = True if disable.absent else None if number is None else number == 0
    return _IdleState(
        latency,
        clean(name.word or folder.rpartition("/")[2]),
        us if us is not None and us >= 0 else None,
        enabled,
        limit is None or us is None or us <= limit,
    )


def _own_limit_us(reading: Reading) -> int | None:
    """What a CPU's own limit allows: 0 in the file allows anything, and n/a allows nothing. None: anything."""
    return 0 if reading.word == "n/a" else reading.number() or None


def idle_states_but_arm(facts: Facts, check: Check) -> Judgement:
    """As ``idle_states``; the states of Arm have a check of their own."""
    arm = conditions.CONDITIONS["arm"](facts)
    return (
        readings.not_applicable("On Arm, pm.idle.arm judges the idle states.")
        if arm.holds
        else idle_states(facts, check)
    )


def idle_states(facts: Facts, check: Check) -> Judgement:
    """No CPU that matters can enter an idle state that takes longer to leave than the budget."""
    found = facts.match(f"{CPU}/cpu[0-9]*/cpuidle/state*/latency")
    here = [one for one in found if one.here]
    driver = facts.read(f"{CPU}/cpuidle/current_driver")
    if driver.word == "haltpoll" or any(_idle_state(facts, one).name.startswith("haltpoll") for one in here):
        return readings.not_applicable("In this virtual machine the host decides how an idle CPU sleeps.", [driver])
    if not here:
        return _nothing(check, found)
    concerned = _concerned(facts, here)
    lost = _lost(facts, _concerned(facts, [one for one in found if not one.here]))
    if not concerned:
        return readings.unknown(here, "No idle state of the isolated CPUs was read.")
    states = [_idle_state(facts, one) for one in concerned]
    return _judge_states(facts, check, states) or (_vanished(lost) if lost else _shallow(facts, check, states))


def _judge_states(facts: Facts, check: Check, states: Sequence[_IdleState]) -> Judgement | None:
    """A finding or UNKNOWN; None if every state that can be entered is within the budget."""
    request, budget = _request(facts), _budget(facts, check)
    unclear = [one for one in states if one.us is None]
    deep = [one for one in states if one.us is not None and one.us > budget and one.enabled is not False]
    deep = [one for one in deep if one.allowed and not _shut(one, request)]
    certain = [one for one in deep if one.enabled]
    if certain and request.known:
        return _deep_finding(facts, check, certain, request)
    if certain:
        why = request.reading.reason or "it is no number"
        sentence = f"It is not known whether some process forbids deep states: {clean(request.reading.path)}: {why}."
        return readings.unknown([request.reading, certain[0].reading], sentence)
    if unclear or deep:
        bad = (unclear or deep)[0].reading
        return readings.unknown([bad], f"It is not known whether {clean(_folder(bad))} can be entered.")
    return None


def _shut(state: _IdleState, request: _Request) -> bool:
    """Whether a request that outlasts the audit shuts the state."""
    return request.us is not None and not request.measuring and state.us is not None and state.us > request.us


def _deep_finding(facts: Facts, check: Check, deep: Sequence[_IdleState], request: _Request) -> Judgement:
    worst = max(deep, key=lambda one: one.us or 0)
    sentence = f"CPU {worst.cpu} may enter {worst.name}, which takes {worst.us} us to leave; that is more than "
    sentence += f"{_budget_words(facts, check)}."
    cpus = {one.cpu for one in deep}
    if len(cpus) > 1:
        sentence += f" So may {quantity(len(cpus) - 1, 'other CPU')}."
    if request.measuring:
        sentence += f" {clean(request.holders[0])} forbids it now, but only while it measures."
    folders = [_folder(one.reading) for one in deep]
    named = [folder.removeprefix(f"{CPU}/") for folder in folders if facts.read(f"{folder}/disable").here]
    return readings.finding(sentence, [worst.reading], None, named)


def _shallow(facts: Facts, check: Check, states: Sequence[_IdleState]) -> Judgement:
    request, budget = _request(facts), _budget(facts, check)
    needed = [one for one in states if one.enabled is not False and one.allowed and (one.us or 0) > budget]
    if needed and not request.holders:
        sentence = (
            f"Something asks for at most {request.us} us of all CPUs, but nobody knows what, nor how long it will."
        )
        return readings.unknown([request.reading, needed[0].reading], sentence)
    if needed:
        sentence = f"{clean(request.holders[0])} asks for at most {request.us} us of all CPUs, as long as it runs."
        return _good([request.reading, needed[0].reading], sentence)
    deepest = max(states, key=lambda one: (one.enabled is not False and one.allowed, one.us or 0))
    return _good([deepest.reading], f"Every state that a CPU may enter is within {_budget_words(facts, check)}.")


def latency_request(facts: Facts, check: Check) -> Judgement:
    """Whether a request of this moment distorts what the audit shows."""
    request = _request(facts)
    found = [request.reading, facts.read("dma-latency-holders")]
    if not request.known or not request.reading.here:
        return _unknown_request(check, request)
    if request.us is None:
        return _good(found[:1], "Nobody asks for anything, so that the idle states are those of production.")
    if request.measuring:
        sentence = f"{clean(request.holders[0])} asks for at most {request.us} us while it measures; without it, "
        return readings.finding(sentence + "CPUs may sleep deeper than what was measured.", found)
    if request.holders:
        return _good(found, f"{clean(request.holders[0])} asks for at most {request.us} us, as long as it runs.")
    sentence = f"Something asks for at most {request.us} us; no process was seen that does, so perhaps a driver does."
    return readings.unknown(found, sentence)


def _unknown_request(check: Check, request: _Request) -> Judgement:
    if request.reading.absent and not request.known:
        sentence = (
            "/dev/cpu_dma_latency is not there, although this kernel has idle states: perhaps a container hides it."
        )
        return readings.unknown([request.reading], sentence)
    return not_understood(request.reading) if request.reading.here else readings.missing(check, [request.reading])


# Devices, and heat.
