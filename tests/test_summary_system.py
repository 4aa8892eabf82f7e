# SPDX-License-Identifier: Apache-2.0

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import CONFIG, DEBUGFS, NO_COKERNEL, THREADS, TOLD, XENOMAI_2, config, missing, target

from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.simulation.events import BURST_GAP_S, EVENT_KINDS, STORM_S, cluster_rate, event_rate, event_times, events
from rtproof.summary import recorded_facts
from rtproof.summary.measured_kernel import (
    LARGEST_CONFIG,
    Confidence,
    kernel_config,
    model_of_version,
    parse_kernel_config,
    preemption_model,
)
from rtproof.summary.system_facts import system_facts, troubles
from rtproof.summary.target_threads import TargetThread, target_threads

LOCKED = missing(DEBUGFS, 1)
NO_HANDLERS = "".join(line for line in THREADS.splitlines(keepends=True) if "[irq/" not in line)


@pytest.mark.parametrize(
    ("version", "model"),
    [
        ("#1 SMP PREEMPT_RT Debian 6.12.90-2 (2026-03-01)", "rt"),
        ("#1 SMP PREEMPT_RT Debian 6.1.119-1 (2024-11-22)", "rt"),
        ("#27 PREEMPT RT Mon Jan 16 14:00:00 CET 2012", "rt"),
        ("#1 SMP PREEMPT RT Tue Mar 8 10:00:00 UTC 2016", "rt"),
        ("#1 SMP PREEMPT_{RT,(full)} x", "rt"),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.12.90-2 (2026-03-01)", "dynamic"),
        ("#41~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Thu May 9 10:00:00 UTC 2024", "dynamic"),
        ("#1 SMP PREEMPT Thu May 9 10:00:00 UTC 2024", "full"),
        ("#250 PREEMPT Thu Oct 18 19:03:02 BST 2012", "full"),
        ("#1 SMP PREEMPT_LAZY x", "lazy"),
        ("#1 SMP Debian 5.10.46-4 (2021-08-03)", None),
        ("#2 Tue Feb 7 12:00:00 CET 2012", None),
        ("#1 SMP liquorix-PREEMPT_RT-like Thu", None),
        ("#1 RT PREEMPTIVE", None),
        ("", None),
    ],
)
def test_the_kernels_own_flag_is_a_whole_word(version: str, model: str | None) -> None:
    assert model_of_version(version) == model


@pytest.mark.parametrize(
    ("version", "options", "built"),
    [
        ("#1 SMP x", "CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\n", "none"),
        ("#1 x", "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n", "voluntary"),
        ("#1 SMP PREEMPT x", "CONFIG_PREEMPT=y\n", "full"),
        ("#1 SMP PREEMPT x", "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "dynamic"),
        ("#1 SMP PREEMPT x", "CONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_LAZY=y\n", "lazy"),
        ("#27 PREEMPT RT x", "CONFIG_PREEMPT_RT_BASE=y\nCONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_RT_FULL=y\n", "rt"),
        ("#1 PREEMPT x", "CONFIG_PREEMPT_RTB=y\nCONFIG_PREEMPT_RT_BASE=y\n", "full"),
        ("#1 SMP PREEMPT_RT x", "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "rt"),
        ("#1 SMP PREEMPT_DYNAMIC x", "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y\n", "dynamic"),
    ],
)
def test_version_and_configuration_make_the_built_model(version: str, options: str, built: str) -> None:
    found = preemption_model(target(version, config(options)))
    assert found.built.value == built
    assert found.disagreements == ()
    sure = Confidence.LIKELY if built in ("none", "voluntary") else Confidence.CERTAIN
    assert found.built.confidence is sure


@pytest.mark.parametrize(
    ("version", "text", "effective"),
    [
        ("#1 SMP PREEMPT_DYNAMIC x", "none (voluntary) full \n", "voluntary"),
        ("#1 SMP PREEMPT_DYNAMIC x", "none voluntary (full) \n", "full"),
        ("#1 SMP PREEMPT_DYNAMIC x", "none voluntary full (lazy) \n", "lazy"),
        ("#1 SMP PREEMPT_DYNAMIC x", "(none) voluntary full lazy \n", "none"),
        ("#1 SMP PREEMPT_RT x", "(full) lazy \n", "rt (full)"),
        ("#1 SMP PREEMPT_RT x", "full (lazy) \n", "rt (lazy)"),
    ],
)
def test_the_word_in_brackets_is_in_effect(version: str, text: str, effective: str) -> None:
    said = preemption_model(target(version, system_file(DEBUGFS, text))).effective
    assert (said.value, said.confidence) == (effective, Confidence.CERTAIN)
    assert text.strip() in said.evidence[0]


def dynamic(log: str = "", command_line: str = "", options: str = "") -> Record:
    files = (system_file("kernel-log", log), system_file("/proc/cmdline", command_line))
    return target("#1 SMP PREEMPT_DYNAMIC x", LOCKED, *files, config(f"CONFIG_PREEMPT_DYNAMIC=y\n{options}"))


def test_where_debugfs_is_locked_the_boot_tells_and_that_it_was_locked() -> None:
    for found, value in (
        (dynamic("<6>[0.0] Dynamic Preempt: full\n", "preempt=none"), "full"),
        (dynamic("", "quiet preempt=none preempt=voluntary -- preempt=full"), "voluntary"),
        (dynamic("", "quiet", "CONFIG_PREEMPT_LAZY=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n"), "lazy"),
        (dynamic("", "preempt=nonsense", "CONFIG_PREEMPT_NONE=y\n"), "none"),
    ):
        said = preemption_model(found).effective
        assert (said.value, said.confidence) == (value, Confidence.LIKELY)
        assert any("Operation not permitted" in line for line in said.evidence)


def test_what_no_source_tells_is_unknown() -> None:
    found = preemption_model(target("#1 SMP x"))
    assert (found.built.value, found.effective.value, found.core.value) == (None, None, None)
    assert found.built.confidence is found.core.confidence is Confidence.UNKNOWN
    cut = preemption_model(target("#1 SMP " + "a" * 60))
    assert "cut off" in cut.built.evidence[0]


def test_the_patch_sets_own_file_is_believed_and_others_are_not() -> None:
    assert preemption_model(target("#1 x", system_file("/sys/kernel/realtime", "1\n"))).built.value == "rt"
    assert preemption_model(target("#1 x", system_file("/sys/kernel/realtime", "0\n"))).built.value is None


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (target("#1 SMP PREEMPT x", config("CONFIG_PREEMPT_NONE=y\n")), "uname -v says full"),
        (target("#1 SMP PREEMPT x", system_file("/sys/kernel/realtime", "1")), "/sys/kernel/realtime says 1"),
        (target("#1 SMP PREEMPT x", release="6.6.1-rt3"), "the release is called 6.6.1-rt3"),
        (target("#1 SMP PREEMPT x", system_file("threads", THREADS)), "threads that only PREEMPT_RT has"),
        (target("#1 SMP PREEMPT_RT x", system_file("threads", NO_HANDLERS)), "no interrupt has a thread of its own"),
        (
            target(
                "#1 SMP PREEMPT_DYNAMIC x",
                system_file(DEBUGFS, "(none) voluntary full \n"),
                system_file(DEBUGFS, "none voluntary (full) \n", Moment.END),
            ),
            f"{DEBUGFS} said none at the start of the run, and full at its end",
        ),
        (
            target("#1 PREEMPT x", system_file("/boot/config-6.1.0", "# Linux/arm 5.4.1 Kernel Configuration\n")),
            "/boot/config-6.1.0 is for 5.4.1, and 6.1.0 runs",
        ),
    ],
)
def test_sources_that_contradict_each_other_are_named(record: Record, sentence: str) -> None:
    assert any(sentence in line for line in preemption_model(record).disagreements)


def test_threads_that_nobody_listed_contradict_nothing() -> None:
    for listed in ("", THREADS, "PID TID CLS RTPRIO NICE PSR COMM\n1 1 TS - 0 0 init\n"):
        assert preemption_model(target("#1 SMP PREEMPT_RT x", system_file("threads", listed))).disagreements == ()


def test_threads_of_rt_may_have_come_by_the_command_line() -> None:
    files = (system_file("threads", THREADS), system_file("/proc/cmdline", "threadirqs"))
    assert preemption_model(target("#1 SMP PREEMPT x", *files)).disagreements == ()


def test_article_ones_kernel_has_another_beside_it() -> None:
    files = (
        system_file("/proc/xenomai/version", "2.6.0\n"),
        missing("/proc/xenomai", 21),
        system_file("/proc/ipipe/version", "1.18-03\n"),
        system_file("/proc/xenomai/stat", XENOMAI_2.format(1)),
        config("CONFIG_XENOMAI=y\nCONFIG_IPIPE=y\nCONFIG_PREEMPT_NONE=y\n"),
    )
    found = preemption_model(target("#1 Fri Feb 3 10:00:00 CET 2012", *files, release="2.6.38.8-ipipe"))
    assert (found.core.value, found.pipeline) == ("Xenomai 2.6.0 (nucleus)", "I-pipe 1.18-03")
    assert found.built.value == "none"


def test_without_a_cokernel_it_is_linux() -> None:
    assert preemption_model(target("#1 x", *NO_COKERNEL)).core.value == "linux"


def says(record: Record) -> dict[str, str]:
    return {fact.what: fact.says for fact in system_facts(record)}


def test_a_board_tells_of_itself() -> None:
    assert says(TOLD) == {
        "hardware": "Atmel AT91SAM9G20-EK",
        "virtual machine": "nothing says that it is a guest",
        "high-resolution timers": "active",
        "clock source": "tcb_clksrc",
        "CPU frequency": "performance, 800000 to 800000 kHz (1 CPU); schedutil, 396000 to 792000 kHz (1 CPU)",
        "memory": "61,000 kB in all, 20,000 kB available, 0 kB of swap",
        "overcommit": "2: memory is promised never",
        "console": "messages below level 1 go to the console",
        "display drivers": "framebuffer 0 mxs-lcdifdrmfb, module galcore",
        "file systems": "root is nfs (10.0.0.1:/srv); / is nfs; /mnt is cifs",
        "kernel's log before the run": '"scheduling while atomic": 1 line; of late tasks in all: 2 lines',
    }


def test_a_system_without_a_display_says_so_only_if_somebody_looked() -> None:
    nothing = (missing("/proc/fb"), missing("/sys/class/drm/version"))
    assert says(target("x", *nothing))["display drivers"] == "none: no framebuffer and no DRM"
    assert says(target("x", nothing[0]))["display drivers"] == "not known: not in the record"
    drm = system_file("/sys/class/drm/version", "drm 1.1.0 20060810\n")
    assert says(target("x", nothing[0], drm))["display drivers"] == "DRM"


def test_lines_of_trouble_are_kept_as_they_are() -> None:
    assert [line.split("] ")[1] for line in troubles(TOLD)] == [
        "BUG: scheduling while atomic: swapper/0/0",
        "sched: RT throttling activated",
    ]


def test_what_could_not_be_read_says_why() -> None:
    paths = ("/proc/timer_list", "kernel-log", "/proc/mounts", "/proc/sys/kernel/printk")
    told = says(target("x", *(missing(path, 13) for path in paths), missing("frequencies")))
    for what in ("high-resolution timers", "kernel's log before the run", "file systems", "console"):
        assert told[what] == "not known: Permission denied"
    assert told["memory"] == "not known: not in the record"
    assert told["CPU frequency"] == "no CPU has a governor"


@pytest.mark.parametrize(
    ("path", "text", "guest"),
    [
        ("kernel-log", "<6>[0.0] Hypervisor detected: KVM\n", "a guest of KVM"),
        ("kernel-log", "<6>[0.0] Booting paravirtualized kernel on Xen\n", "a guest of Xen"),
        ("/sys/hypervisor/type", "xen\n", "a guest of xen"),
        ("/proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n", "a guest: the CPU has the flag hypervisor"),
    ],
)
def test_a_guest_is_told_by_any_sign(path: str, text: str, guest: str) -> None:
    assert says(target("x", system_file(path, text)))["virtual machine"] == guest


def test_bare_hardware_is_no_guest_although_the_kernel_names_it_in_the_same_words() -> None:
    told = says(target("x", system_file("kernel-log", "<6>[0.0] Booting paravirtualized kernel on bare hardware\n")))
    assert told["virtual machine"] == "nothing says that it is a guest"


def test_timers_that_are_coarse_are_not_active() -> None:
    assert (
        says(target("x", system_file("/proc/timer_list", "  .hres_active    : 0\n")))["high-resolution timers"]
        == "not active"
    )


def test_a_record_without_files_tells_nothing() -> None:
    assert system_facts(target("x")) == ()


RECORD = target(
    "x",
    system_file("/a", "Linux \0\n"),
    system_file("/a", "other", Moment.END),
    missing("/gone"),
    missing("/locked", 13),
    missing("/folder", 21),
)


def test_a_file_has_the_text_of_its_moment() -> None:
    assert recorded_facts.file_text(RECORD, "/a") == "Linux \0\n"
    assert recorded_facts.file_line(RECORD, "/a") == "Linux"
    assert recorded_facts.file_text(RECORD, "/a", Moment.END) == "other"


def test_a_file_that_could_not_be_read_has_no_text() -> None:
    assert recorded_facts.file_text(RECORD, "/gone") is recorded_facts.file_line(RECORD, "/locked") is None
    assert recorded_facts.why_no_file(RECORD, "/locked") == "Permission denied"
    assert recorded_facts.why_no_file(RECORD, "/never") == "not in the record"


def test_what_nobody_was_let_in_to_see_may_be_there() -> None:
    assert [recorded_facts.file_is_there(RECORD, path) for path in ("/a", "/folder", "/gone", "/locked", "/never")] == [
        *(True, True, False),
        *(None, None),
    ]


def test_a_thread_has_policy_priority_and_place() -> None:
    found = {thread.name: thread for thread in target_threads(TOLD)}
    assert found["irq/24-eth0"] == TargetThread(62, 62, "FF", 50, None, 0, "irq/24-eth0", True)
    assert found["kworker/1:0H-kblockd"].nice == -20
    assert found["a (strange) name"] == TargetThread(900, 902, "DLN", None, None, 2, "a (strange) name", False)
    assert [thread.name for thread in target_threads(TOLD) if thread.interrupt] == ["irq/24-eth0", "irq/25-mmc0"]
    assert not found["init"].real_time
    assert found["rtproof-0"].real_time


def test_a_record_without_threads_has_none() -> None:
    assert target_threads(target("x")) == ()


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert all(thread.cpu >= 0 for thread in target_threads(target("x", system_file("threads", text))))


TEXT = '# Linux/arm 3.0.12-rt30 Kernel Configuration\nCONFIG_HZ=128\nCONFIG_CMDLINE="a=b c"\n# CONFIG_SMP is not set\n'


def test_options_have_values_and_those_left_out_say_no() -> None:
    found = parse_kernel_config("/x", TEXT)
    assert (found.release, found.options) == ("3.0.12-rt30", {"HZ": "128", "CMDLINE": "a=b c", "SMP": "n"})
    assert not found.has("SMP")
    assert not found.has("HZ")


def test_the_running_kernels_own_copy_comes_first() -> None:
    other = system_file("/boot/config-6.1.0", "CONFIG_B=y\n")
    found = kernel_config(target("x", other, config("CONFIG_A=m\n")))
    assert found is not None
    assert (found.path, found.has("A")) == (CONFIG, True)
    found = kernel_config(target("x", system_file(CONFIG, "", errno=2), other))
    assert found is not None
    assert (found.path, found.has("B")) == ("/boot/config-6.1.0", True)


def test_without_a_configuration_there_is_none() -> None:
    assert kernel_config(target("x", system_file(CONFIG, "no gzip"), system_file("/proc/version", TEXT))) is None


def test_a_bomb_is_not_inflated() -> None:
    bomb = gzip.compress(b"CONFIG_A=y\n" + b"x" * (4 * LARGEST_CONFIG))
    found = kernel_config(target("x", SystemFile(0, Moment.START, CONFIG, 0, False, bomb)))
    assert found is not None
    assert found.has("A")


@given(st.binary())
def test_no_content_is_too_strange(content: bytes) -> None:
    found = kernel_config(target("x", SystemFile(0, Moment.START, CONFIG, 0, False, content)))
    assert found is None or found.path == CONFIG


DAY_S = 86_400.0
RATE = 0.02


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_times_are_sorted_inside_the_run_and_the_same_for_a_seed(kind: str) -> None:
    times = event_times(kind, RATE, DAY_S, generator())
    assert times.dtype == np.float64
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] < DAY_S
    assert np.array_equal(times, event_times(kind, RATE, DAY_S, generator()))
    assert not np.array_equal(times[:5], event_times(kind, RATE, DAY_S, generator(2))[:5])


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_the_mean_rate_is_the_one_asked_for(kind: str) -> None:
    """Also in the first seconds: clusters that began before the run reach into it."""
    counts = [event_times(kind, RATE, DAY_S, generator(seed)).size for seed in range(60)]
    spread = np.std(counts) / np.sqrt(len(counts))
    assert abs(np.mean(counts) - RATE * DAY_S) < 4 * spread
    if kind != "drift":
        early = [np.count_nonzero(event_times(kind, RATE, 600.0, generator(seed)) < 60) for seed in range(2000)]
        assert abs(np.mean(early) - RATE * 60) < 4 * np.std(early) / np.sqrt(len(early))


def starts(times: np.ndarray, gap_s: float) -> int:
    return 1 + int(np.count_nonzero(np.diff(times) > gap_s)) if times.size else 0


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_clusters_come_at_their_rate(kind: str) -> None:
    """At a rate so low that neighbours hardly ever join."""
    rate = event_rate(kind, 1e-5)
    assert cluster_rate(kind, rate) == pytest.approx(1e-5)
    found = [starts(event_times(kind, rate, 1e7, generator(seed)), 120.0) for seed in range(30)]
    assert np.mean(found) == pytest.approx(100, abs=4 * 10 / np.sqrt(30) + 0.5)


def test_the_gaps_of_a_burst_and_the_length_of_a_storm() -> None:
    times = event_times("burst5", event_rate("burst5", 1e-5), 1e8, generator())
    gaps = np.diff(times)
    assert np.mean(gaps[gaps < 200]) == pytest.approx(BURST_GAP_S, rel=0.08)
    times = event_times("storm", event_rate("storm", 1e-6), 1e9, generator())
    edges = np.flatnonzero(np.diff(times) > 200)
    lengths = times[edges[1:]] - times[edges[:-1] + 1]
    assert lengths.max() < STORM_S
    assert lengths.max() > 0.9 * STORM_S


@pytest.mark.parametrize(
    ("kind", "dispersed"), [("poisson", False), ("storm", True), ("storm2", True), ("drift", True)]
)
def test_counts_per_ten_minutes_disperse_where_the_rate_is_not_constant(kind: str, dispersed: bool) -> None:
    counts = np.bincount((event_times(kind, 0.05, DAY_S, generator()) // 600).astype(np.int64), minlength=144)
    assert bool(counts.var() > 2 * counts.mean()) is dispersed


def test_a_drifting_rate_trebles() -> None:
    times = event_times("drift", 1.0, DAY_S, generator())
    first, last = np.count_nonzero(times < DAY_S / 10), np.count_nonzero(times >= 0.9 * DAY_S)
    assert last / first == pytest.approx(1.45 / 0.55, rel=0.06)


def test_only_the_storms_of_storm2_stretch_the_tail() -> None:
    found = events("storm2", 0.01, 1e6, generator())
    assert set(found.stretch.tolist()) == {1.0, 2.0}
    assert np.mean(found.stretch == 2.0) == pytest.approx(EVENT_KINDS["storm2"].clustered, abs=0.05)
    assert set(events("storm", 0.01, 1e6, generator()).stretch.tolist()) == {1.0}


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_nothing_happens_at_no_rate(kind: str) -> None:
    assert event_times(kind, 0.0, DAY_S, generator()).size == 0
