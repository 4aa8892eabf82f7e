# SPDX-License-Identifier: Apache-2.0

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import CONFIG, DEBUGFS, THREADS, TOLD, config, missing, target

from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.simulation.events import EVENT_KINDS, events
from rtproof.summary.measured_kernel import (
    LARGEST_CONFIG,
    Confidence,
    kernel_config,
    model_of_version,
    parse_kernel_config,
    preemption_model,
)
from rtproof.summary.system_facts import system_facts
from rtproof.summary.target_threads import TargetThread, target_threads

LOCKED = missing(DEBUGFS, 1)


@pytest.mark.parametrize(
    ("version", "model"),
    [
        ("#1 SMP PREEMPT_RT Debian 6.12.90-2 (2026-03-01)", "rt"),
        ("#27 PREEMPT RT Mon Jan 16 14:00:00 CET 2012", "rt"),
        ("#1 SMP PREEMPT_{RT,(full)} x", "rt"),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.12.90-2 (2026-03-01)", "dynamic"),
        ("#1 SMP PREEMPT Thu May 9 10:00:00 UTC 2024", "full"),
        ("#1 SMP PREEMPT_LAZY x", "lazy"),
        ("#1 SMP Debian 5.10.46-4 (2021-08-03)", None),
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
        ("#1 SMP PREEMPT_DYNAMIC x", "none voluntary full (lazy) \n", "lazy"),
        ("#1 SMP PREEMPT_DYNAMIC x", "(none) voluntary full lazy \n", "none"),
        ("#1 SMP PREEMPT_RT x", "(full) lazy \n", "rt (full)"),
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


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (target("#1 SMP PREEMPT x", config("CONFIG_PREEMPT_NONE=y\n")), "uname -v says full"),
        (target("#1 SMP PREEMPT x", system_file("/sys/kernel/realtime", "1")), "/sys/kernel/realtime is 1"),
        (target("#1 SMP PREEMPT x", release="6.6.1-rt3"), "the release is called 6.6.1-rt3"),
        (target("#1 SMP PREEMPT x", system_file("threads", THREADS)), "threads that only PREEMPT_RT has"),
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


def says(record: Record) -> dict[str, str]:
    return {fact.what: fact.says for fact in system_facts(record)}


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


def test_a_thread_has_policy_priority_and_place() -> None:
    found = {thread.name: thread for thread in target_threads(TOLD)}
    assert found["irq/24-eth0"] == TargetThread(62, 62, "FF", 50, None, 0, "irq/24-eth0", True)
    assert found["kworker/1:0H-kblockd"].nice == -20
    assert found["a (strange) name"] == TargetThread(900, 902, "DLN", None, None, 2, "a (strange) name", False)
    assert [thread.name for thread in target_threads(TOLD) if thread.interrupt] == ["irq/24-eth0", "irq/25-mmc0"]
    assert not found["init"].real_time
    assert found["rtproof-0"].real_time


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
    times = events(kind, RATE, DAY_S, generator())[0]
    assert times.dtype == np.float64
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] < DAY_S
    assert np.array_equal(times, events(kind, RATE, DAY_S, generator())[0])
    assert not np.array_equal(times[:5], events(kind, RATE, DAY_S, generator(2))[0][:5])


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_the_mean_rate_is_the_one_asked_for(kind: str) -> None:
    """Also in the first seconds: clusters that began before the run reach into it."""
    counts = [events(kind, RATE, DAY_S, generator(seed))[0].size for seed in range(60)]
    spread = np.std(counts) / np.sqrt(len(counts))
    assert abs(np.mean(counts) - RATE * DAY_S) < 4 * spread
    if kind != "drift":
        early = [np.count_nonzero(events(kind, RATE, 600.0, generator(seed))[0] < 60) for seed in range(2000)]
        assert abs(np.mean(early) - RATE * 60) < 4 * np.std(early) / np.sqrt(len(early))
