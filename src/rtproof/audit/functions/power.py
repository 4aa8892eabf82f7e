# SPDX-License-Identifier: Apache-2.0
"""Judge power: frequencies, idle states and the requests against them, links, network devices, throttling."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rtproof.audit import conditions, readings
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check
from rtproof.audit.facts import CPU, ONLINE, Facts, Reading
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean

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
    return readings.judgement(Outcome.GOOD, sentence, [deepest.reading])


def _held(facts: Facts, shown: Sequence[Reading]) -> Judgement:
    sentence = f"{_holder(facts)[0]} asks for at most {_request(facts)[0]} us of all CPUs, as long as it runs."
    return readings.judgement(Outcome.GOOD, sentence, shown)


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
        return readings.judgement(Outcome.GOOD, sentence, found[:1])
    if measuring:
        sentence = f"{holder} asks for at most {asked_us} us while it measures; without it, "
        return readings.finding(sentence + "CPUs may sleep deeper than what was measured.", found)
    if holder:
        return _held(facts, found)
    sentence = f"Something asks for at most {asked_us} us; no process was seen that does, so perhaps a driver does."
    return readings.unknown(found, sentence)
