# SPDX-License-Identifier: Apache-2.0

from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import NO_COKERNEL, XENOMAI_2, XENOMAI_3, missing, target

from rtproof.record.contents import Moment
from rtproof.summary.kernel_model import (
    ModeSwitches,
    cokernel_of,
    counts_mode_switches,
    interrupt_pipeline,
    mode_switches,
    parse_kernel_config,
)

ISDIR = 21


def test_each_is_told_by_its_traces() -> None:
    folder = {name: missing(path, ISDIR) for name, path in (("evl", "/sys/class/evl"), ("rtai", "/proc/rtai"))}
    assert cokernel_of(target("x", folder["evl"]), None, "").name == "EVL (Xenomai 4)"
    assert cokernel_of(target("x", folder["rtai"]), None, "").name == "RTAI"
    assert cokernel_of(target("x", missing("/proc/xenomai", ISDIR)), None, "").name == "Xenomai"
    log = "<6>[1.0] [Xenomai] Cobalt v3.2.4\n"
    assert cokernel_of(target("x", *NO_COKERNEL), None, log).name == "Xenomai 3.2.4 (Cobalt)"


def test_what_nobody_looked_for_or_does_not_show_is_unknown() -> None:
    assert cokernel_of(target("x"), None, "").name is None
    assert cokernel_of(target("x", *NO_COKERNEL[1:], missing("/proc/xenomai", 13)), None, "").name is None
    built = parse_kernel_config("/proc/config.gz", "CONFIG_EVL=y\n")
    assert cokernel_of(target("x", *NO_COKERNEL), built, "").name is None


def test_the_pipeline_is_named_by_its_option() -> None:
    assert (
        interrupt_pipeline(target("x"), parse_kernel_config("", "CONFIG_DOVETAIL=y\nCONFIG_IRQ_PIPELINE=y\n"))
        == "Dovetail"
    )
    assert interrupt_pipeline(target("x"), parse_kernel_config("", "# CONFIG_IPIPE is not set\n")) is None


def test_mode_switches_are_those_of_both_ends() -> None:
    """Article 5's task fell back to Linux by a printf, which only this count shows."""
    path = "/proc/xenomai/sched/stat"
    files = (system_file(path, XENOMAI_3.format(3)), system_file(path, XENOMAI_3.format(90), Moment.END))
    assert ModeSwitches("817 sampling-817", 3, 90) in mode_switches(target("x", *files))
    old = (system_file("/proc/xenomai/stat", XENOMAI_2.format(1)),)
    assert ModeSwitches("411 latency", 1, None) in mode_switches(target("x", *old))
    assert mode_switches(target("x")) == ()


def test_in_band_switches_are_those_that_evl_counts() -> None:
    place = "/sys/devices/virtual/thread/{}/stats"
    files = (
        system_file(place.format("lat-sampler:2136"), "1 200 310 0 5000 1\n"),
        system_file(place.format("lat-sampler:2136"), "41 900 999 0 9000 1\n", Moment.END),
        system_file(place.format("late:7"), "2 1 1 0 1 0\n", Moment.END),
        missing(place.format("gone:9")),
    )
    assert mode_switches(target("x", *files)) == (
        ModeSwitches("lat-sampler:2136", 1, 41),
        ModeSwitches("late:7", None, 2),
        ModeSwitches("gone:9", None, None),
    )


def test_a_name_may_have_blanks() -> None:
    assert counts_mode_switches(XENOMAI_3.format(7))["0 [IRQ4355: [timer]]"] == 0


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert all(number >= 0 for number in counts_mode_switches(f"CPU PID MSW NAME\n{text}").values())
