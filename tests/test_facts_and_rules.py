# SPDX-License-Identifier: Apache-2.0
"""Whatever docs/record-format.md names has a rule, or stands here with the reason why it has none.

A new fact, event kind, counter or file without an entry fails, and so does an entry whose module does not name it.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from analysis_records import fact
from doubt_cases import clean, facts, said_of

from rtproof.record.contents import Moment
from rtproof.summary.summary_model import Severity

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "rtproof"
PAGE = (ROOT / "docs" / "record-format.md").read_text()
VALUES = {"none", "optional", "yes", "schedstat", "summary"}
"""Words of the section on facts that are values."""
CHECKS, COMPARISON = "judge/checks/", "compare/run_metrics.py"
SHOWN, REPEAT = "report/sections/evidence.py", "report/sections/evidence.py"
FACTS: Mapping[str, tuple[str, str]] = {
    "affinity": (CHECKS + "measuring_threads.py", "the doubt affinity"),
    "agent_pid": ("summary/target_threads.py", "which threads are no rivals"),
    "allow_unprivileged": (CHECKS + "measuring_threads.py", "the doubt unprivileged"),
    "args": (REPEAT, "the command that repeats the run"),
    "begin_mark": ("explain/marks.py", "what begins an activation between marks"),
    "check_mean": ("", "only the agent needs it: it says how the checks were drawn, for who wants to draw them again"),
    "check_seed": ("", "as check_mean"),
    "checkpoint_ns": ("", "of the writing of the file: what was lost with a checkpoint is told by the file itself"),
    "clock": (COMPARISON, "a difference of compared runs"),
    "clock_read_ns": (CHECKS + "target_state.py", "the doubt clock-source"),
    "clock_resolution_ns": ("summary/system_facts.py", "whether timers have a high resolution"),
    "cpu": (CHECKS + "measuring_threads.py", "the doubt cpu"),
    "cpu_checks": ("", "the rows of CONDITIONS say how many activations were looked at"),
    "cpu_shares": ("summary/recorded_facts.py", "the doubt virtual-turns"),
    "cpu_time_ns": (CHECKS + "target_state.py", "the doubt rt-budget"),
    "cpus": ("judge/objections/result_row.py", "the objection placement"),
    "dma_latency": (CHECKS + "measuring_threads.py", "the doubt dma-latency"),
    "dma_latency_us": ("", "dma_latency says what was set, or why it was not"),
    "duration_ns": (CHECKS + "counting.py", "the doubts activations-missing and activations-surplus"),
    "end_mark": ("explain/marks.py", "what ends an activation between marks"),
    "frequency_gauges": ("", "names the gauges that follow it; a gauge that is lacking has no counter"),
    "guard": ("", "the event budget says when it acted; its priority is among the shown facts"),
    "involuntary_switches": (CHECKS + "measuring_threads.py", "the doubt run-delay, from the series"),
    "io_calls": (CHECKS + "measuring_threads.py", "the doubt io-calls"),
    "kmsg": (CHECKS + "target_state.py", "the doubt no-kernel-log"),
    "limits_ns": ("summary/recorded_facts.py", "what a record alone is judged by"),
    "load.NAME.cpus": ("", "its name has them, unless it is cut; the doubt load-strayed says if they do not hold"),
    "load.NAME.strays": (CHECKS + "load_work.py", "the doubt load-strayed"),
    "load.NAME.cpu_ms": (CHECKS + "load_work.py", "the doubt load-slight"),
    "load.NAME.idle_parts": (CHECKS + "load_work.py", "the doubt load-part-idle"),
    "load.NAME.lack": (CHECKS + "load_work.py", "the doubt load-lessened"),
    "load.NAME.note": ("report/sections/evidence.py", "told beside the work of the load"),
    "load.NAME.parts": (CHECKS + "load_work.py", "the doubt load-part-idle"),
    "load.NAME.rest_ns": (CHECKS + "load_work.py", "how long a load may do nothing"),
    "loads": (CHECKS + "load_work.py", "the doubt load-unproven"),
    "link_bytes": ("summary/streaming.py", "the doubt link-load"),
    "link_cpu_ns": ("summary/streaming.py", "the doubt link-load"),
    "link_cpus": ("summary/streaming.py", "the doubt link-load"),
    "link_device": ("summary/streaming.py", "whose interrupts are the link's, in the doubt link-load"),
    "link_wakeups": ("summary/streaming.py", "the doubt link-load"),
    "lock_memory": (CHECKS + "measuring_threads.py", "how grave page faults are"),
    "major_faults": (CHECKS + "measuring_threads.py", "the doubt page-faults"),
    "memory_locked": (CHECKS + "measuring_threads.py", "the doubt memory-unlocked"),
    "method": (COMPARISON, "what has to agree in compared runs; from the series"),
    "migrations": (CHECKS + "measuring_threads.py", "the doubt moved"),
    "minor_faults": (CHECKS + "measuring_threads.py", "the doubt page-faults"),
    "nice": (CHECKS + "measuring_threads.py", "the doubts nice-changed and nice"),
    "period_ns": (CHECKS + "counting.py", "how many activations were due"),
    "period_step_ns": (CHECKS + "counting.py", "how many activations were due"),
    "phase_ns": (COMPARISON, "a difference of compared runs"),
    "policy": (CHECKS + "measuring_threads.py", "the doubt policy"),
    "policy_refused": (CHECKS + "measuring_threads.py", "why, in the doubt unprivileged"),
    "priority": (CHECKS + "measuring_threads.py", "the doubt priority"),
    "probe": (COMPARISON, "what has to agree in compared runs; from the series"),
    "probe_options": ("summary/recorded_facts.py", "options of compared runs, the band of a loop"),
    "proxy_of": ("report/sections/loops.py", "says what a proxy stands for"),
    "record": ("", "the series says whether samples were kept"),
    "recorder": ("", "trace/about tells how much of a CPU it took; its policy is for who wants to know how it ran"),
    "run_delay": (CHECKS + "rival_threads_and_budgets.py", "the doubts on run delay"),
    "samples": (CHECKS + "counting.py", "how many activations were due"),
    "samples_dropped": ("", "the events of this kind tell the same, stretch by stretch"),
    "simulated": ("summary/recorded_facts.py", "the doubt simulated"),
    "smi_count": ("explain/machine_counts.py", "why SMIs do not tell whether the machine was gone"),
    "soakers": ("summary/recorded_facts.py", "the doubts virtual-turns and virtual-smp"),
    "stream_bytes": ("", "asked; what did not fit is the doubt samples-dropped"),
    "threads": ("", "asked of the agent; how many there were is told by the series"),
    "tid": ("summary/target_threads.py", "which threads are no rivals"),
    "timer_slack_ns": (CHECKS + "measuring_threads.py", "the doubt timer-slack"),
    "trace": (COMPARISON, "a difference of compared runs"),
    "trace_blocks_ns": ("summary/tracing_effect.py", "the blocks that are compared"),
    "trace_refused": (CHECKS + "counting.py", "the doubt trace-refused"),
    "trace_seed": ("", "each block has its event; the seed is for who wants to repeat the order"),
    "tracer": (CHECKS + "measuring_threads.py", "the doubt traced"),
    "turn_us": ("summary/recorded_facts.py", "the doubts virtual-turns and virtual-smp"),
    "until_decided": ("summary/recorded_facts.py", "the doubt ended-early"),
    "virtual_time": ("summary/recorded_facts.py", "the doubt virtual-time"),
    "voluntary_switches": (SHOWN, "a loop that sleeps has one for each activation, one that waits otherwise none"),
    "warmup_activations": (CHECKS + "counting.py", "the doubt warm-up"),
    "warmup_ns": (CHECKS + "counting.py", "the doubt warm-up"),
    "writer": ("", "what the writer could not keep is the doubt lost; its policy is among the shown facts"),
}
"""The module that uses it and for what; an empty module: no rule, and the reason. The evidence shows all of the run."""
EVENTS: Mapping[str, tuple[str, str]] = {
    "kernel": (CHECKS + "target_state.py", "the doubts throttled and clock-changed"),
    "policy_changed": (CHECKS + "measuring_threads.py", "the doubt policy-changed"),
    "budget": (CHECKS + "target_state.py", "the doubt guard"),
    "stalled": (CHECKS + "counting.py", "the doubt stalled"),
    "load_died": (CHECKS + "load_work.py", "the doubt load-died"),
    "no_space": ("", "END has the reason, which is the doubt ended-early"),
    "interrupted": ("", "as no_space"),
    "host_gone": ("", "as no_space"),
    "continued": (CHECKS + "measuring_threads.py", "the doubt stopped"),
    "clock_stepped": (CHECKS + "target_state.py", "the doubt clock-stepped"),
    "dropped": (CHECKS + "counting.py", "the doubt events-dropped"),
    "limit": (CHECKS + "counting.py", "the doubt limit"),
    "link_behind": ("summary/streaming.py", "since when the link was away, in the doubt samples-dropped"),
    "link_caught_up": ("summary/streaming.py", "until when it was away, in the doubt samples-dropped"),
    "samples_dropped": ("summary/streaming.py", "the doubt samples-dropped"),
}
COUNTERS: Mapping[str, tuple[str, str]] = {
    "load.NAME": (CHECKS + "load_work.py", "the doubts on loads"),
    "temperature.N": ("report/sections/evidence.py", "smallest, mean and largest of each gauge"),
    "frequency.cpuN": ("report/sections/evidence.py", "smallest, mean and largest of each gauge"),
    "steal.cpuN": ("explain/machine_counts.py", "whether the host took the time of a gap"),
    "smi.cpuN": ("explain/machine_counts.py", "whether the firmware took the time of a gap"),
    "clock.raw": (CHECKS + "measuring_threads.py", "the doubt on a clock that is slewed"),
    **dict.fromkeys(
        (
            "interrupts.LABEL.cpuN",
            "softirqs.NAME.cpuN",
            "throttled.cpuN",
            "pressure.cpu",
            "pressure.memory",
            "pressure.io",
            "minor_faults.threadN",
            "major_faults.threadN",
        ),
        ("explain/coincidence.py", "what coincides with late activations where there is no trace"),
    ),
}
"""What is counted second by second. A counter of the kernel is found by the part of its name before the dot."""
CORES, SYSTEM = "summary/measured_kernel.py", "summary/system_facts.py"
CLOCKS = "/sys/devices/system/clocksource/clocksource0"
FILES: Mapping[str, tuple[str, str]] = {
    "threads": ("summary/target_threads.py", "the table of threads"),
    "rt-threads": ("summary/target_threads.py", "the doubt rt-threads"),
    "/proc/config.gz": ("summary/measured_kernel.py", "the preemption model"),
    "kernel-log": (CORES, "co-kernels, preemption model, troubles before the run"),
    "rt-group": (CHECKS + "rival_threads_and_budgets.py", "the doubts on budgets"),
    "fair-server": (CHECKS + "rival_threads_and_budgets.py", "the doubts on budgets"),
    "frequencies": (SYSTEM, "the governor"),
    "/proc/version": ("", "BEGIN has release and version; kept as the kernel said it"),
    "/proc/cmdline": (COMPARISON, "differences of compared runs"),
    "/proc/cpuinfo": (CHECKS + "target_state.py", "the doubt guest"),
    "/proc/meminfo": (SYSTEM, "the memory"),
    "/proc/modules": (COMPARISON, "differences of compared runs"),
    "/proc/mounts": (SYSTEM, "file systems on other machines"),
    "/proc/sys/kernel/sched_rt_period_us": (CHECKS + "target_state.py", "the doubt rt-budget"),
    "/proc/sys/kernel/printk": (SYSTEM, "what goes to the console"),
    "/proc/sys/kernel/osrelease": ("", "BEGIN has the release; kept as the kernel said it"),
    "/proc/sys/vm/overcommit_memory": (SYSTEM, "how memory is promised"),
    "/proc/timer_list": (SYSTEM, "whether timers have a high resolution"),
    "/proc/sys/kernel/tainted": ("", "compared as a file of one line; a taint says nothing of latencies"),
    "/proc/sys/vm/overcommit_ratio": ("", "compared as a file of one line"),
    "/proc/xenomai": (CORES, "the doubt in-band"),
    "/proc/xenomai/version": (CORES, "the doubt in-band"),
    "/proc/ipipe/version": (CORES, "the interrupt pipeline"),
    "/proc/rtai": (CORES, "the doubt in-band"),
    "/sys/class/evl": (CORES, "the doubt in-band"),
    "/proc/fb": (SYSTEM, "display drivers"),
    "/sys/class/drm/version": (SYSTEM, "display drivers"),
    "/proc/device-tree/model": (SYSTEM, "the hardware"),
    "/sys/class/dmi/id/sys_vendor": (SYSTEM, "the hardware"),
    "/sys/class/dmi/id/product_name": (SYSTEM, "the hardware"),
    "/sys/hypervisor/type": (SYSTEM, "whether it is a guest"),
    "/sys/kernel/security/lockdown": (COMPARISON, "a difference of compared runs"),
    "/sys/kernel/realtime": ("summary/measured_kernel.py", "the preemption model"),
    "/sys/devices/system/cpu/isolated": (COMPARISON, "a difference of compared runs"),
    "/sys/devices/system/cpu/nohz_full": (COMPARISON, "a difference of compared runs"),
    "/sys/devices/system/cpu/online": (COMPARISON, "a difference of compared runs"),
    "/sys/devices/system/cpu/smt/active": (COMPARISON, "a difference of compared runs"),
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": (COMPARISON, "a difference of compared runs"),
    "/sys/devices/system/cpu/cpuidle/current_driver": (COMPARISON, "a difference of compared runs"),
    f"{CLOCKS}/available_clocksource": (SYSTEM, "what else the clock source could be"),
    f"{CLOCKS}/current_clocksource": (CHECKS + "target_state.py", "the doubts clock-changed and clock-source"),
    "/proc/stat": (CHECKS + "target_state.py", "the doubt steal"),
    "/proc/interrupts": ("report/sections/evidence.py", "the table of interrupts"),
    "/proc/softirqs": ("report/sections/evidence.py", "the table of interrupts"),
    "/proc/loadavg": ("judge/objections/result_row.py", "the objections unequal-load and not-unloaded"),
    "/proc/vmstat": ("", "of the whole system; faults of the measured loop are facts of each thread"),
    "/proc/xenomai/stat": (CORES, "the doubt mode-switches"),
    "/proc/xenomai/sched/stat": (CORES, "the doubt mode-switches"),
    "/proc/xenomai/sched": (CORES, "the doubt core-tasks"),
    "/proc/xenomai/sched/threads": (CORES, "the doubt core-tasks"),
    "/proc/sys/kernel/sched_rt_runtime_us": (CHECKS + "target_state.py", "the doubt rt-budget"),
    "/sys/kernel/debug/sched/preempt": ("summary/measured_kernel.py", "the preemption model"),
    "/sys/devices/virtual/thread": (CORES, "the doubts mode-switches and core-tasks, of EVL"),
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    return set(re.findall(r"`([a-zA-Z_]+(?:\.[a-zA-Z_]+)*)`", text))


def collected() -> set[str]:
    """Paths in the agent's source: those of runs that it copies and those that it makes. An audit reads more."""
    agent = ROOT / "agent"
    paths = (agent / "collect/paths.c").read_text()
    of_runs = paths[paths.index("What the summary of every run reads") : paths.index("/* kernel */")]
    at_both_ends = paths[paths.index("run_paths[]") :]
    texts = (of_runs, at_both_ends, (agent / "facts/files.c").read_text())
    copied = [path for text in texts for path in re.findall(r'"(/(?:proc|sys)/[^"%]+)"', text)]
    made = re.findall(r'\{ "([a-z/.-]+)", collect_', (agent / "facts/machine.c").read_text())
    return {*copied, *made, "rt-threads"}


def unsaid(entries: Mapping[str, tuple[str, str]], words: Mapping[str, str]) -> list[str]:
    """Entries whose module does not name what it is to use, or that give no reason."""
    missing = []
    for key, (module, why) in entries.items():
        source = (SOURCES / module).read_text() if module else ""
        if not why or (module and words.get(key, key) not in source):
            missing.append(key)
    return missing


def test_every_fact_of_the_page_has_an_entry() -> None:
    assert named(section("Fact keys")) - VALUES == set(FACTS)


def test_every_kind_of_event_has_an_entry() -> None:
    assert set(re.findall(r"`([a-z_]+)`", section("Event kinds"))) == set(EVENTS)


def test_every_counter_has_an_entry() -> None:
    assert {name for name in named(section("Counter names")) if "." in name} - {"load.NAME.2"} == set(COUNTERS)


def test_every_file_that_the_agent_keeps_has_an_entry() -> None:
    made_up = set(re.findall(r"^\* `([^`]+)`", section("What the system says of itself"), re.MULTILINE))
    assert collected() | made_up == set(FILES)


def test_each_entry_names_a_module_that_uses_it() -> None:
    facts_words = {key: key.removeprefix("load.NAME.") for key in FACTS}
    assert unsaid(FACTS, facts_words) == []
    assert unsaid(EVENTS, {}) == []
    kinds = {name: f'"{name.partition(".")[0]}"' for name, (module, _) in COUNTERS.items() if "explain/" in module}
    words = {"load.NAME": "load.", "temperature.N": "gauges", "frequency.cpuN": "gauges", **kinds}
    assert unsaid(COUNTERS, words) == []
    paths = {
        "/proc/xenomai/version": "{XENOMAI}/version",
        f"{CLOCKS}/available_clocksource": "available_clocksource",
        "kernel-log": "kernel-log",
    }
    assert unsaid(FILES, paths) == []


def test_what_has_no_rule_is_shown_or_compared() -> None:
    """Facts of the whole run are all in the evidence."""
    shown = (SOURCES / SHOWN).read_text()
    assert "for fact in record.facts if _belongs_here" in shown
    assert 'NOT_HERE = ("args",)' in shown


def test_calls_in_a_loop_that_only_sleeps_are_a_doubt() -> None:
    assert said_of(clean(facts=(*facts({}), fact("io_calls", 0, Moment.END, 0)))) == {}
    changed = (*facts({}), fact("io_calls", 12, Moment.END, 0))
    found = said_of(clean(facts=changed))
    assert (set(found), found["io-calls"].severity) == ({"io-calls"}, Severity.WARNING)
    assert found["io-calls"].what == "thread 0 made 12 calls to read or write, and its loop needs none"


@pytest.mark.parametrize(("activations", "doubted"), [(0, True), (1, False), (1_000, False)])
def test_a_warm_up_without_an_activation_is_a_doubt(activations: int, doubted: bool) -> None:
    made = clean(facts=(*facts({}), fact("warmup_activations", activations, Moment.START, 0)))
    assert ("warm-up" in said_of(made)) is doubted
