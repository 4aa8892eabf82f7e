# SPDX-License-Identifier: Apache-2.0

import pytest
from report_cases import system_file
from system_records import DEBUGFS, NO_COKERNEL, THREADS, XENOMAI_2, config, missing, target

from rtproof.record.contents import Moment, Record
from rtproof.summary.kernel_model import Confidence, model_of_version, preemption_model

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
