# SPDX-License-Identifier: Apache-2.0

import pytest
from report_cases import system_file
from system_records import TOLD, missing, target

from rtproof.record.contents import Record
from rtproof.summary.system_facts import system_facts, troubles


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


def test_timers_that_are_coarse_are_not_active() -> None:
    assert (
        says(target("x", system_file("/proc/timer_list", "  .hres_active    : 0\n")))["high-resolution timers"]
        == "not active"
    )


def test_a_record_without_files_tells_nothing() -> None:
    assert system_facts(target("x")) == ()
