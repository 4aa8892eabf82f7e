# SPDX-License-Identifier: Apache-2.0
"""The knobs of a tuning: what their data must hold."""

import re
from fnmatch import fnmatchcase
from itertools import combinations

import agent_process
import pytest

from rtproof.audit.boot_words import boot_words
from rtproof.audit.check_file import all_checks
from rtproof.experiment.tuning_runs import agent_words
from rtproof.tune.knobs import Knob, KnobOnTarget, TunedCpus, all_knobs, for_cpus, settings_of

CPUS = TunedCpus((2, 3), (0, 1), (1,))
ASKED_FOR = {
    "frequency governor and min/max": ("governor", "frequency"),
    "idle states": ("idle-latency", "idle-states", "resume-latency"),
    "interrupts": ("irq-affinity", "irq-threads", "softirq-threads"),
    "workqueue cpumask": ("workqueues",),
    "threads of RCU": ("rcu-threads", "no-rcu-callbacks"),
    "timers": ("timer-migration", "timer-slack"),
    "what real-time threads leave to others": ("throttling", "fair-server"),
    "preempt mode": ("preempt", "preempt-at-boot"),
    "huge pages and compaction": ("huge-pages", "khugepaged", "compaction"),
    "swappiness and dirty_*": ("swappiness", "dirty-pages"),
    "stat_interval": ("memory-statistics",),
    "printk": ("printk",),
    "watchdogs": ("watchdog", "watchdog-cpus", "nmi-watchdog", "hung-task"),
    "tick": ("no-tick", "constant-tick", "skewed-tick"),
    "turbo": ("turbo",),
    "perf, KSM, NUMA": ("perf", "same-pages", "numa-balancing"),
    "haltpoll": ("halt-poll",),
    "partition and housekeeping": ("partition", "housekeeping", "isolated-cpus"),
    "sibling": ("sibling",),
    "coalescing": ("coalescing",),
    "boot": ("threaded-interrupts", "idle-poll", "mitigations"),
}
KNOBS = {knob.name: knob for knob in all_knobs()}
every_knob = pytest.mark.parametrize("knob", all_knobs(), ids=lambda knob: knob.name)


def words(knob: Knob) -> list[str]:
    return for_cpus(knob.boot, CPUS).split()


@pytest.mark.parametrize("names", ASKED_FOR.values(), ids=list(ASKED_FOR))
def test_there_is_a_knob_for_all_that_was_asked_for(names: tuple[str, ...]) -> None:
    assert set(names) <= set(KNOBS)


def test_most_knobs_need_no_boot() -> None:
    assert len(KNOBS) == len(all_knobs())
    assert sum(bool(knob.set or knob.agent) for knob in all_knobs()) >= 25


@every_knob
def test_a_knob_says_what_it_costs_and_which_check_speaks_of_it(knob: Knob) -> None:
    assert knob.check in {check.id for check in all_checks()}
    assert knob.set or knob.agent or knob.boot
    assert not knob.title.endswith(".")
    assert all(text.endswith(".") for text in (knob.cost, knob.danger) if text or text is knob.cost)


@every_knob
def test_the_agent_knows_the_form_of_each_setting(knob: Knob) -> None:
    """The last one is refused before any is set, so that the refusal names it unless another is refused as well."""
    last = "/etc/passwd=1"
    given = [word for each in (*settings_of(knob, CPUS), last) for word in ("--set", each)]
    ended = agent_process.run("try", *given)
    assert ended.returncode == 2
    assert f"--set {last}: rtproof does not set this" in ended.stderr


@every_knob
def test_no_knob_but_its_own_keeps_the_cpus_from_idle_states(knob: Knob) -> None:
    given = agent_words([KnobOnTarget(knob)], CPUS)
    assert given[given.index("--dma-latency") + 1] == ("0" if knob.name == "idle-latency" else "off")


@every_knob
def test_a_name_is_safe_in_a_shell_an_ini_file_and_a_rule(knob: Knob) -> None:
    for setting in settings_of(knob, CPUS):
        name, _, value = setting.partition("=")
        assert re.fullmatch(r"[\w/.:*\[\]-]+", name)
        assert re.fullmatch(r"[\w@/,.:-]*", value)


@every_knob
def test_words_for_the_command_line_are_parameters_of_the_kernel(knob: Knob) -> None:
    known = {*boot_words().real_time, *boot_words().other}
    assert {word.partition("=")[0] for word in words(knob)} <= known


def test_a_parameter_of_the_kernel_has_one_value() -> None:
    """Or else two knobs together would be one of them."""
    values: dict[str, set[str]] = {}
    for knob in all_knobs():
        for word in words(knob):
            values.setdefault(word.partition("=")[0], set()).add(word)
    assert all(len(those) == 1 for those in values.values())


def test_two_knobs_that_set_the_same_say_so() -> None:
    alike = [pair for pair in combinations(all_knobs(), 2) if same(*pair) or same(*reversed(pair))]
    assert len(alike) > 1
    for one, other in alike:
        assert any(re.search(rf"\b{b.name}\b", a.cost) for a, b in ((one, other), (other, one))), (one, other)


def same(one: Knob, other: Knob) -> bool:
    """Whether they set the same, as far as their names show it."""
    names = [{each.partition("=")[0] for each in settings_of(knob, CPUS)} for knob in (one, other)]
    return bool({*words(one)} & {*words(other)}) or any(fnmatchcase(b, a) for a in names[0] for b in names[1])
