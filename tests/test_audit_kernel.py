# SPDX-License-Identifier: Apache-2.0
"""Checks of the kernel's build: what makes each of them a finding, good, unknown or conflicting."""

import gzip
import re
from pathlib import Path

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit import check_file, kernel_bugs
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Check, Severity
from rtproof.audit.facts import AuditRequest, Facts, State
from rtproof.record.contents import Moment, SystemFile

CONFIG = "/boot/config-6.12.0"
HEAD = "# Linux/x86 6.12.0 Kernel Configuration\n"
END = "CONFIG_RUNTIME_TESTING_MENU=y\n"
GOOD, FINDING, UNKNOWN = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN
NOT_APPLICABLE, CONFLICTING = Outcome.NOT_APPLICABLE, Outcome.CONFLICTING
DYNAMIC = ("6.12.0", "#1 SMP PREEMPT_DYNAMIC")
PLAIN = ("6.12.0", "#1 SMP")
DEBUGFS = "/sys/kernel/debug/sched/preempt"
TIMERS = "/proc/timer_list"
TRACERS = "/sys/kernel/tracing/available_tracers"
BOOTED = "<5>[    0.000000] Linux version 6.12.0 (gcc)\n"


def configured(*lines: str) -> dict[str, str | int]:
    """The file of a whole configuration with these options."""
    return {CONFIG: HEAD + "".join(f"{'' if line[0] == '#' else 'CONFIG_'}{line}\n" for line in lines) + END}


def line(words: str) -> dict[str, str | int]:
    return {"/proc/cmdline": f"{words}\n"}


ISOLATED = AuditRequest(cpus=frozenset({2, 3}))
EFI = {"/sys/firmware/efi/": "runtime\nsystab\n"}
GROUPS = configured("RT_GROUP_SCHED=y", "# CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED is not set")
FREQUENCY = {"/sys/devices/system/cpu/cpufreq/": "policy0\n"}
FLAWS = "/sys/devices/system/cpu/vulnerabilities"

CASES = [
    ("kern.preempt.mode", {DEBUGFS: "none voluntary (full) lazy\n"}, GOOD),
    ("kern.preempt.mode", {DEBUGFS: "none voluntary full (lazy)\n"}, GOOD),
    ("kern.preempt.mode", {DEBUGFS: "none (voluntary) full lazy\n"}, FINDING),
    ("kern.preempt.mode", {DEBUGFS: REFUSED, "kernel-log": "[ 0.1] Dynamic Preempt: none\n"}, FINDING),
    ("kern.preempt.mode", {DEBUGFS: REFUSED, "kernel-log": "[ 0.1] Dynamic Preempt: full\n"}, GOOD),
    ("kern.preempt.mode", {DEBUGFS: REFUSED}, UNKNOWN),
    ("kern.preempt.mode", {DEBUGFS: "gibberish\n"}, UNKNOWN),
    ("kern.hrt", {TIMERS: "  .hres_active    : 1\n  .hres_active    : 1\n"}, GOOD),
    ("kern.hrt", {TIMERS: "  .hres_active    : 1\n  .hres_active    : 0\n"}, FINDING),
    ("kern.hrt", {TIMERS: REFUSED, **configured("HIGH_RES_TIMERS=y")}, UNKNOWN),
    ("kern.hrt", {TIMERS: REFUSED, **configured()}, FINDING),
    ("kern.hrt", {TIMERS: REFUSED, **configured("HIGH_RES_TIMERS=y"), **line("highres=off")}, FINDING),
    ("kern.nohz.periodic", configured("NO_HZ_IDLE=y"), FINDING),
    ("kern.nohz.periodic", {**configured("NO_HZ_IDLE=y"), **line("nohz=off")}, GOOD),
    ("kern.nohz.periodic", configured("HZ_PERIODIC=y"), GOOD),
    ("kern.rtgroup", configured(), GOOD),
    ("kern.rtgroup", GROUPS, FINDING),
    ("kern.rtgroup", {**GROUPS, **line("rt_group_sched=0")}, GOOD),
    ("kern.rtgroup", {**GROUPS, **line("rt_group_sched=1")}, FINDING),
    ("kern.rtgroup", {**configured("RT_GROUP_SCHED=y"), **line("rt_group_sched=0")}, FINDING),
    ("kern.rtgroup", configured("RT_GROUP_SCHED=y", "RT_GROUP_SCHED_DEFAULT_DISABLED=y"), GOOD),
    ("kern.rtgroup", {"rt-group": "/sys/fs/cgroup/cpu 950000\n"}, FINDING),
    ("kern.irq.thread", configured("IRQ_FORCED_THREADING=y"), FINDING),
    ("kern.irq.thread", {**configured("IRQ_FORCED_THREADING=y"), **line("threadirqs")}, GOOD),
    ("kern.irq.thread", {**configured(), **line("threadirqs")}, FINDING),
    ("kern.irq.thread", line("threadirqs"), UNKNOWN),
    ("kern.rcu.nocb", {**configured("RCU_NOCB_CPU=y"), **line("rcu_nocbs=2-3")}, GOOD),
    ("kern.rcu.nocb", {**configured("RCU_NOCB_CPU=y"), **line("rcu_nocbs=2")}, FINDING),
    ("kern.rcu.nocb", {**configured("RCU_NOCB_CPU=y"), **line("nohz_full=2-3")}, GOOD),
    ("kern.rcu.nocb", {**configured(), **line("rcu_nocbs=2-3")}, FINDING),
    ("kern.rcu.nocb", {**configured("RCU_NOCB_CPU=y"), **line("rcu_nocbs=these")}, UNKNOWN),
    ("kern.rcu.nocb", line("rcu_nocbs=2-3"), UNKNOWN),
    ("kern.rcu.boost", configured("RCU_BOOST=y"), GOOD),
    ("kern.rcu.boost", {**configured("RCU_BOOST=y"), "/sys/module/rcutree/parameters/kthread_prio": "0\n"}, FINDING),
    ("kern.rcu.boost", configured(), FINDING),
    ("kern.rcu.lazy", configured("RCU_LAZY=y"), FINDING),
    ("kern.rcu.lazy", {**configured("RCU_LAZY=y"), **line("rcutree.enable_rcu_lazy=0")}, GOOD),
    ("kern.rcu.lazy", configured(), GOOD),
    ("kern.dbg.lockdep", {**configured("PROVE_LOCKING=y"), "/proc/lockdep_stats": MISSING}, FINDING),
    ("kern.dbg.lockdep", {"/proc/lockdep_stats": " lock-classes: 1\n"}, FINDING),
    ("kern.dbg.lockdep", {**configured("# CONFIG_LOCKDEP is not set"), "/proc/lockdep_stats": MISSING}, GOOD),
    ("kern.dbg.lockdep", {"/proc/lockdep_stats": MISSING}, GOOD),
    ("kern.dbg.lockdep", {"/proc/lockdep_stats": MISSING, "/proc/mounts": "sysfs /sys sysfs rw 0 0\n"}, UNKNOWN),
    ("kern.dbg.lockdep", {"/proc/lockdep_stats": REFUSED}, UNKNOWN),
    ("kern.dbg.irqsoff", {TRACERS: "irqsoff function nop\n"}, FINDING),
    ("kern.dbg.irqsoff", {TRACERS: "function nop\n"}, GOOD),
    ("kern.dbg.irqsoff", {TRACERS: REFUSED, **configured("PREEMPT_TRACER=y")}, FINDING),
    ("kern.dbg.irqsoff", {TRACERS: REFUSED}, UNKNOWN),
    ("kern.dbg.kmemleak", configured("DEBUG_KMEMLEAK=y"), FINDING),
    ("kern.dbg.kmemleak", {**configured("DEBUG_KMEMLEAK=y"), **line("kmemleak=off")}, GOOD),
    ("kern.dbg.kmemleak", configured("DEBUG_KMEMLEAK=y", "DEBUG_KMEMLEAK_DEFAULT_OFF=y"), GOOD),
    ("kern.dbg.kmemleak", {"/sys/kernel/debug/": "bdi\nsched\n"}, GOOD),
    ("kern.dbg.kmemleak", {"/sys/kernel/debug/": ""}, UNKNOWN),
    ("kern.dbg.kmemleak", {"/sys/kernel/debug/": "bdi\nkmemleak\n"}, UNKNOWN),
    ("kern.dbg.objects", configured("DEBUG_SPINLOCK=y"), FINDING),
    ("kern.dbg.objects", configured("DEBUG_PAGEALLOC=y"), GOOD),
    ("kern.dbg.objects", {**configured("DEBUG_PAGEALLOC=y"), **line("debug_pagealloc=on")}, FINDING),
    ("kern.dbg.latencytop", {"/proc/sys/kernel/sched_schedstats": "1\n"}, FINDING),
    ("kern.dbg.latencytop", {"/proc/sys/kernel/sched_schedstats": "0\n", **configured()}, GOOD),
    ("kern.dbg.latencytop", {"/proc/sys/kernel/sched_schedstats": "0\n", **configured("LATENCYTOP=y")}, FINDING),
    ("kern.dbg.latencytop", {"/proc/sys/kernel/sched_schedstats": "often\n", **configured()}, UNKNOWN),
    ("kern.efi", {"/sys/firmware/efi/": MISSING}, NOT_APPLICABLE),
    ("kern.efi", {**EFI, **line("efi=debug,noruntime")}, GOOD),
    ("kern.efi", {**EFI, **configured("EFI_DISABLE_RUNTIME=y")}, GOOD),
    ("kern.efi", {**EFI, **configured("EFI_DISABLE_RUNTIME=y"), **line("efi=runtime")}, FINDING),
    ("kern.efi", {**EFI, **configured()}, FINDING),
    ("kern.efi", {**EFI}, UNKNOWN),
    ("kern.cpufreq.cfg", {**FREQUENCY, **configured("CPU_FREQ=y", "CPU_FREQ_DEFAULT_GOV_SCHEDUTIL=y")}, FINDING),
    ("kern.cpufreq.cfg", {**FREQUENCY, **configured("CPU_FREQ=y", "CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y")}, GOOD),
    ("kern.cpufreq.cfg", {**FREQUENCY, **line("cpufreq.default_governor=performance")}, GOOD),
    ("kern.cpufreq.cfg", {"/sys/devices/system/cpu/cpufreq/": ""}, NOT_APPLICABLE),
    ("kern.cpufreq.cfg", {**FREQUENCY}, UNKNOWN),
    ("kern.lockdown", {"kernel-log": "<5>[ 0.0] Kernel is locked down from EFI Secure Boot mode\n"}, FINDING),
    ("kern.lockdown", {"/sys/kernel/security/lockdown": "[none] integrity confidentiality\n"}, GOOD),
    ("kern.lockdown", {"/sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}, FINDING),
    ("kern.lockdown", {"kernel-log": "[ 1.0] Lockdown: swapper/0: hibernation is restricted\n"}, FINDING),
    ("kern.lockdown", {DEBUGFS: REFUSED, "/proc/self/status": "Uid:\t0\t0\t0\t0\n"}, FINDING),
    ("kern.lockdown", {DEBUGFS: REFUSED, "/proc/self/status": "Uid:\t9\t9\t9\t9\n"}, UNKNOWN),
]
_STOCK = ("kern.preempt.mode", "kern.irq.thread")


@pytest.mark.parametrize(("check", "files", "outcome"), CASES)
def test_each_value_has_its_outcome(check: str, files: dict[str, str | int], outcome: Outcome) -> None:
    kernel = DYNAMIC if check in _STOCK else ("6.12.0", "#1 SMP PREEMPT_RT")
    request = ISOLATED if check.startswith("kern.rcu") else AuditRequest()
    found = judged(check, made_facts(files, kernel=kernel, request=request))
    assert found.outcome is outcome, found.sentence
    assert found.sentence or outcome is GOOD


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("#1 SMP PREEMPT_RT Debian 6.12.95-1", GOOD),
        ("#1 SMP PREEMPT RT", GOOD),
        ("#1 SMP PREEMPT_DYNAMIC", FINDING),
        ("#1 SMP PREEMPT Ubuntu-lowlatency", FINDING),
        ("#1-PREEMPT_RT_like-build SMP", FINDING),
        ("#1 SMP " + "x" * 57, UNKNOWN),
    ],
)
def test_only_the_whole_word_in_uname_is_preempt_rt(version: str, outcome: Outcome) -> None:
    assert judged("kern.preempt.rt", made_facts(kernel=("6.12.0", version))).outcome is outcome


def test_a_kernel_that_contradicts_its_configuration_is_conflicting() -> None:
    facts = made_facts(configured("PREEMPT_RT=y"), kernel=DYNAMIC)
    found = judged("kern.preempt.rt", facts)
    assert found.outcome is CONFLICTING
    assert "uname -v says dynamic" in found.sentence


def test_a_configuration_of_another_kernel_is_never_used() -> None:
    other = {CONFIG: HEAD.replace("6.12.0", "6.1.115") + "CONFIG_HIGH_RES_TIMERS=y\n" + END}
    facts = made_facts(other, kernel=PLAIN)
    assert facts.config is None
    assert "6.1.115" in facts.option("RT_GROUP_SCHED").reason
    for check in check_file.check_files()["kernel"].check:
        if all(source.startswith("config:") for source in check.read):
            assert judged(check.id, facts).outcome is UNKNOWN, check.id
    rt = {CONFIG: HEAD.replace("6.12.0", "6.1.115") + "CONFIG_PREEMPT_RT=y\n" + END}
    assert judged("kern.preempt.rt", made_facts(rt, kernel=PLAIN)).outcome is CONFLICTING
    assert judged("kern.preempt.rt", made_facts(rt, kernel=DYNAMIC)).outcome is not GOOD


def test_the_third_number_of_a_distribution_may_differ() -> None:
    config = {"/boot/config-6.1.0-56-rt-amd64": "# Linux/x86 6.1.192 Kernel Configuration\nCONFIG_HZ=250\n" + END}
    facts = made_facts(config, kernel=("6.1.0-56-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.192-1"))
    assert facts.option("HZ").text == "250"


def test_a_cut_configuration_says_nothing_of_what_it_does_not_name() -> None:
    cut = made_facts({CONFIG: HEAD + "CONFIG_HZ=250\n# CONFIG_KASAN is not set\n"})
    assert cut.option("HZ").text == "250"
    assert cut.option("KASAN").absent
    assert cut.option("PROVE_LOCKING").state is State.UNREADABLE
    assert judged("kern.dbg.san", cut).outcome is UNKNOWN


def test_lines_that_an_agent_did_not_keep_are_not_unset() -> None:
    kept = "# rtproof kept lines that begin with: Linux/ CONFIG_HZ CONFIG_RUNTIME\n"
    facts = made_facts({CONFIG: kept + HEAD + END})
    assert facts.option("HZ_PERIODIC").absent
    assert facts.option("KASAN").state is State.UNREADABLE


def compressed(text: str, most: int | None = None) -> Facts:
    """Facts with the kernel's own configuration. most: bytes that are left of it."""
    facts = made_facts(kernel=PLAIN)
    file = SystemFile(0, Moment.START, "/proc/config.gz", 0, False, gzip.compress(text.encode())[:most])
    object.__setattr__(facts.record, "files", (*facts.record.files, file))
    return facts


def test_the_own_configuration_counts_without_its_end_only_if_it_can_be_unpacked() -> None:
    text = HEAD + "CONFIG_HZ=100\n" * 50
    assert compressed(text).option("KASAN").absent
    half = compressed(text, -9)
    assert half.option("KASAN").state is State.UNREADABLE
    assert judged("kern.dbg.san", compressed("", 0)).outcome is UNKNOWN


def test_severity_follows_what_was_found() -> None:
    kfence = judged("kern.dbg.san", made_facts(configured("KFENCE=y")))
    assert (kfence.outcome, kfence.severity) == (FINDING, Severity.LOW)
    both = judged("kern.dbg.san", made_facts(configured("KFENCE=y", "KASAN=y")))
    assert both.severity is Severity.HIGH
    off = made_facts({**configured("KFENCE=y"), "/sys/module/kfence/parameters/sample_interval": "0\n"})
    assert judged("kern.dbg.san", off).outcome is GOOD
    slub = judged("kern.dbg.slub", made_facts(configured("SLUB_DEBUG=y")))
    assert slub.outcome is GOOD
    perf = judged("kern.dmesg.bugs", made_facts({"kernel-log": "<4>[ 9.0] perf: interrupt took too long (3 > 2)\n"}))
    assert perf.severity is Severity.LOW
    assert "[ 9.0]" in perf.sentence
    assert "<4>" not in perf.sentence
    telecom = made_facts(kernel=DYNAMIC, request=AuditRequest(purpose="telecom"))
    assert judged("kern.preempt.rt", telecom).severity is Severity.FATAL


def test_a_model_that_is_built_in_cannot_be_changed() -> None:
    assert judged("kern.preempt.mode", made_facts()).outcome is NOT_APPLICABLE
    lazy = made_facts({DEBUGFS: "full (lazy)\n"}, kernel=("6.14.0", "#1 SMP PREEMPT_RT"))
    assert judged("kern.preempt.mode", lazy).outcome is GOOD


def test_the_mode_is_conflicting_if_it_changes_between_both_looks() -> None:
    facts = made_facts({DEBUGFS: "none (full)\n"}, end={DEBUGFS: "(none) full\n"}, kernel=DYNAMIC)
    assert judged("kern.preempt.mode", facts).outcome is CONFLICTING


@pytest.mark.parametrize(
    ("release", "version", "outcome"),
    [
        ("6.18.44-fc", "#1 SMP", GOOD),
        ("6.12.0", "#1 SMP", FINDING),
        ("6.14.0-29-generic", "#29~24.04.1-Ubuntu SMP PREEMPT_DYNAMIC", UNKNOWN),
        ("6.1.0-28-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.119-1", GOOD),
        ("5.14.0-427.el9.x86_64+rt", "#1 SMP PREEMPT_RT", UNKNOWN),
        ("strange", "#1 SMP", UNKNOWN),
    ],
)
def test_bugs_by_version(release: str, version: str, outcome: Outcome) -> None:
    assert judged("kern.bugwindow", made_facts(kernel=(release, version))).outcome is outcome


def test_a_stable_version_with_the_fix_is_not_named() -> None:
    bug = kernel_bugs.Bug("x", "", "6.12", "6.16", "", Severity.HIGH, "", ("6.12.39",))
    states = [bug.state_in((6, 12, patch)) for patch in (38, 39, None)]
    assert states == [kernel_bugs.BugState.OPEN, kernel_bugs.BugState.CLOSED, kernel_bugs.BugState.UNKNOWN]
    debian = kernel_bugs.exact_version("6.1.0-28-amd64", "#1 SMP Debian 6.1.119-1 (2024)")
    assert debian == (6, 1, 119)


@pytest.mark.parametrize("check", check_file.check_files()["kernel"].check, ids=lambda check: check.id)
def test_nothing_read_is_never_good(check: Check) -> None:
    facts = made_facts({"/proc/cmdline": REFUSED}, kernel=("", ""), request=ISOLATED)
    assert judged(check.id, facts).outcome in (UNKNOWN, NOT_APPLICABLE)


_AGENT = Path(__file__).parent.parent / "agent"
_NAMED = re.compile(r'(?:\boption\(f?"|config:)([A-Z][A-Z0-9_]+)\b')


def _code(subject: str) -> str:
    """The checks and functions of a subject."""
    folder = Path(check_file.__file__).parent
    files = [folder / "checks" / f"{subject}.toml", folder / "functions" / f"{subject}.py"]
    return "\n".join(file.read_text() for file in files if file.exists())


@pytest.mark.parametrize("subject", check_file.SUBJECTS)
def test_the_agent_keeps_every_option_that_a_check_reads(subject: str) -> None:
    table = (_AGENT / "facts" / "machine.c").read_text().partition("options[] = {")[2].partition("};")[0]
    kept = tuple(name.removesuffix("=") for name in re.findall(r'"(CONFIG_[A-Z0-9_]+=?)"', table))
    assert len(kept) > 20
    for name in _NAMED.findall(_code(subject)):
        assert f"CONFIG_{name}".startswith(kept), name
